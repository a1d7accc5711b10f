/* Greetings of the bootstrap. First byte: 0 a pending connection's hello to the acceptor, 1 the answer to a rank that joins; +2: with a
 * valid signature, as anyone can make where there is no secret. */
#include "fuzz/fuzz.h"
#include "job/bootstrap/tree.h"
#include "job/handshake/acceptor.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER = 1, SIGNED = 2, RANKS = 9 };

static const mc_environment_t env = {.self = {.rank = 3, .size = RANKS}};

static void send_all(int fd, const void *at, size_t bytes)
{
    FUZZ_CHECK(bytes == 0 || send(fd, at, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "%zu", bytes);
    FUZZ_CHECK(shutdown(fd, SHUT_WR) == 0, "%d", errno);
}

/* Through mc_acceptor_wait, as by a connection that the acceptor has accepted. */
static void visit(fuzz_bytes_t *bytes, bool is_signed)
{
    mc_acceptor_t *const acceptor = calloc(1, sizeof *acceptor);
    mc_pending_t pending;
    int fd[2], which;
    FUZZ_CHECK(acceptor && socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "%d", errno);
    mc_acceptor_open(acceptor, &env.self, -1);
    acceptor->n_lines = 1 << 10; /* writes none */
    acceptor->pending[acceptor->n++] = (mc_pending_t){.fd = fd[0], .deadline = MC_WIRE_FOREVER};
    if (is_signed) {
        mc_hello_t hello;
        fuzz_fill(bytes, &hello, sizeof hello);
        memcpy(hello.job, env.self.job, sizeof hello.job);
        FUZZ_CHECK(!mc_handshake_sign_hello(&env.self, &acceptor->pending[0].challenge, &hello),
                   "mac");
        send_all(fd[1], &hello, sizeof hello);
    } else {
        send_all(fd[1], bytes->at, (size_t)(bytes->end - bytes->at));
    }
    for (int i = 0; acceptor->n > 0 && i < 4; i++)
        if (mc_acceptor_wait(acceptor, 0, NULL, 0, &which, &pending) == 0)
            close(pending.fd);
    FUZZ_CHECK(acceptor->n == 0, "a pending connection stays");
    mc_acceptor_close(acceptor);
    close(fd[1]);
    free(acceptor);
}

/* The place in the tree that an accepted answer names must be one. */
static void answer_to(fuzz_bytes_t *bytes, bool is_signed)
{
    const mc_challenge_t challenge = {0};
    const mc_hello_t hello = {.kind = MC_HELLO_JOIN, .rank = env.self.rank, .size = RANKS};
    mc_answer_t answer;
    fuzz_fill(bytes, &answer, sizeof answer);
    if (is_signed)
        FUZZ_CHECK(!mc_handshake_sign_answer(&env.self, &challenge, &hello, &answer), "mac");
    (void)mc_answer_text(answer.code);
    if (mc_handshake_accepted(&env.self, &challenge, &hello, &answer) ||
        answer.code != MC_ANSWER_OK)
        return;
    mc_tree_t tree;
    mc_tree_init(&tree, &env);
    mc_tree_place(&tree, answer.index);
    for (int32_t i = 0; i < tree.n_children; i++)
        FUZZ_CHECK(tree.child[i].node > answer.index && tree.child[i].node < RANKS, "%d", i);
    char name[MC_WIRE_NAME];
    for (int i = 0; i < MC_ENDPOINTS; i++)
        (void)mc_wire_print(&answer.parent[i], name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes_t bytes = {data, data + size};
    const uint8_t what = fuzz_byte(&bytes);
    (what & ANSWER ? answer_to : visit)(&bytes, what & SIGNED);
    return 0;
}
