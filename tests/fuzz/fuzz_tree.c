/* Messages of the bootstrap's tree: what a neighbour sends while ranks exchange. First byte: 0 a child of node 0, 1 the
 * parent of node 1, +2: before the exchange begins. */
#include "fuzz/fuzz.h"
#include "job/bootstrap/tree.h"
#include "job/network/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PARENT = 1, EARLY = 2, BLOCK = 8, RANKS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char in[BLOCK] = "mine";
    const mc_environment_t env = {.self.size = RANKS, .timeout = 1};
    fuzz_bytes_t bytes = {data, data + size};
    const uint8_t what = fuzz_byte(&bytes);
    const size_t n = (size_t)(bytes.end - bytes.at);
    char out[RANKS * BLOCK];
    int fd[2];
    mc_tree_t tree;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "%d", errno);
    mc_tree_init(&tree, &env);
    tree.self.rank = what & PARENT ? 1 : 0;
    mc_tree_place(&tree, what & PARENT ? 1 : 0);
    mc_branch_t *const from = what & PARENT ? &tree.parent : &tree.child[0];
    from->fd = fd[0];
    from->rank = what & PARENT ? 0 : 1;
    FUZZ_CHECK(n == 0 || send(fd[1], bytes.at, n, MSG_NOSIGNAL) == (ssize_t)n, "%d", errno);
    FUZZ_CHECK(shutdown(fd[1], SHUT_WR) == 0, "%d", errno);
    int status = what & EARLY ? mc_tree_take_early(&tree, from) : MESHCOLL_OK;
    if (!status)
        status = mc_tree_allgather(&tree, in, out, BLOCK, MC_WIRE_FOREVER);
    if (!status && !(what & PARENT))
        FUZZ_CHECK(memcmp(out, in, BLOCK) == 0, "a rank's own block");
    FUZZ_CHECK(!status || (tree.broken && strlen(tree.why) < sizeof tree.why), "no sentence");
    mc_tree_close(&tree);
    close(fd[1]);
    return 0;
}
