/* mc_sockets_shut: sockets that another epoll descriptor watches, and no others. */
#include "transport/ucx.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

/* 0, or the error of a send. */
static int send_error(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : errno;
}

Test(sockets, fails_what_is_watched)
{
    static char many[1 << 16];
    int full[2], other[2];
    const int inner = epoll_create1(0), outer = epoll_create1(0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    watch(inner, full[0]);
    watch(outer, inner);
    while (send(full[0], many, sizeof many, MSG_DONTWAIT) > 0) {}
    cr_expect_eq(send_error(full[0]), EAGAIN, "nobody reads");
    mc_sockets_shut(outer);
    cr_expect_eq(send_error(full[0]), EPIPE);
    cr_expect_eq(send_error(other[0]), 0, "a socket of others");
    mc_sockets_shut(-1);
}
