/* Whose socket is at the other end of a connection, and which start of a job a greeting belongs to. */
#include "job/handshake/handshake.h"
#include "job/network/peer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static mc_endpoint_t loopback(int family, int listener)
{
    mc_endpoint_t bound, at = {.family = family == AF_INET6 ? 6 : 4, .at = {127, 0, 0, 1}};
    cr_assert_eq(mc_wire_own(listener, &bound), 0);
    if (family == AF_INET6)
        memcpy(at.at, &in6addr_loopback, sizeof at.at);
    at.port = bound.port;
    return at;
}

static int accept_one(int listener)
{
    int fd;
    cr_assert_eq(mc_wire_wait(listener, POLLIN, mc_now() + 10, -1), 0);
    fd = mc_wire_accept(listener);
    cr_assert_geq(fd, 0);
    return fd;
}

/* IPv4, on a listener of both families, and IPv6 where there is any. */
Test(peer, of_this_user_is_ours, .timeout = 30)
{
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < MC_COUNT(families); i++) {
        int listener, fd;
        cr_assert_eq(mc_wire_listen_anywhere(0, &listener), 0);
        const mc_endpoint_t at = loopback(families[i], listener);
        const int failed = mc_wire_connect(&at, mc_now() + 10, &fd);
        if (!failed) {
            const int accepted = accept_one(listener);
            const mc_peer_t here = mc_peer_find(fd), there = mc_peer_find(accepted);
            cr_expect(here == MC_PEER_OURS || here == MC_PEER_UNKNOWN, "%d: %d", families[i], here);
            cr_expect_eq(there, here);
            close(accepted);
            close(fd);
        }
        cr_assert(!failed || families[i] == AF_INET6);
        close(listener);
    }
}

/* In both directions, and when he has hung up. */
Test(peer, of_another_user_is_a_stranger, .timeout = 30)
{
    int listener, go_on[2];
    char byte;
    if (geteuid() != 0)
        cr_skip_test("needs root");
    cr_assert_eq(pipe(go_on), 0);
    cr_assert_eq(mc_wire_listen_anywhere(0, &listener), 0);
    const mc_endpoint_t at = loopback(AF_INET, listener);
    const pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        int fd;
        if (setresuid(NOBODY, NOBODY, NOBODY) || mc_wire_connect(&at, mc_now() + 10, &fd))
            _exit(1);
        (void)!read(go_on[0], &byte, 1);
        const mc_peer_t peer = mc_peer_find(fd); /* root is taken to be a friend of all */
        (void)!shutdown(fd, SHUT_WR);
        _exit(peer == MC_PEER_OURS || peer == MC_PEER_UNKNOWN ? 0 : 2);
    }
    const int fd = accept_one(listener);
    const mc_peer_t peer = mc_peer_find(fd);
    cr_expect(peer == MC_PEER_STRANGER || peer == MC_PEER_UNKNOWN, "%d", peer);
    cr_assert_eq(write(go_on[1], "x", 1), 1);
    int how;
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%x", (unsigned)how);
    cr_expect_neq(mc_peer_find(fd), MC_PEER_OURS, "a socket of nobody any more");
    close(fd);
    close(listener);
}

/* What rank 0 has drawn tells two starts with the same variables apart. */
Test(peer, of_another_start_is_of_another_job)
{
    mc_self_t a = {.size = 2}, b = {.size = 2, .rank = 1};
    mc_challenge_t challenge;
    mc_hello_t hello = {.kind = MC_HELLO_CHILD};
    int fd[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    cr_assert_eq(mc_handshake_challenge(fd[0], &challenge), 0);
    cr_assert_eq(mc_handshake_hello(&b, &challenge, &hello), 0);
    cr_expect_eq(mc_handshake_judge(&a, &challenge, &hello), MC_ANSWER_OK);
    cr_assert_eq(mc_digest_extend(a.job, "1", 1), MESHCOLL_OK);
    cr_assert_eq(mc_digest_extend(b.job, "2", 1), MESHCOLL_OK);
    cr_assert_eq(mc_handshake_hello(&b, &challenge, &hello), 0);
    cr_expect_eq(mc_handshake_judge(&a, &challenge, &hello), MC_ANSWER_OTHER_JOB);
    close(fd[0]);
    close(fd[1]);
}
