#include "job/network/wire.h"

#include "base/system/descriptor.h"
#include "base/system/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Waiting -------------------------------------------------------------------------------------- */

static int milliseconds_until(double deadline)
{
    const double left = deadline - mc_now(), most = 1000;
    return left <= 0 ? 0 : (int)(1e3 * (left < most ? left : most)) + 1;
}

int mc_wire_wait(int fd, short events, double deadline, int watched)
{
    struct pollfd polled[2] = {{.fd = fd, .events = events}, {.fd = watched, .events = POLLIN}};
    for (;;) {
        const int n = poll(polled, 2, milliseconds_until(deadline));
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0 && polled[0].revents)
            return 0;
        if (n > 0 && polled[1].revents)
            return ECANCELED;
        if (mc_now() >= deadline)
            return ETIMEDOUT;
    }
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int mc_wire_send_on(int fd, const void *data, size_t bytes, size_t *done, double deadline)
{
    while (*done < bytes) {
        const ssize_t n =
            send(fd, (const char *)data + *done, bytes - *done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            *done += (size_t)n;
        } else if (n < 0 && !would_block()) {
            return errno;
        } else {
            const int failed = mc_wire_wait(fd, POLLOUT, deadline, -1);
            if (failed)
                return failed;
        }
    }
    return 0;
}

int mc_wire_recv_on(int fd, void *data, size_t bytes, size_t *done, double deadline, int watched)
{
    while (*done < bytes) {
        const ssize_t n = recv(fd, (char *)data + *done, bytes - *done, MSG_DONTWAIT);
        if (n > 0) {
            *done += (size_t)n;
        } else if (n == 0) {
            return ECONNRESET;
        } else if (!would_block()) {
            return errno;
        } else {
            const int failed = mc_wire_wait(fd, POLLIN, deadline, watched);
            if (failed)
                return failed;
        }
    }
    return 0;
}

int mc_wire_send(int fd, const void *data, size_t bytes, double deadline)
{
    size_t done = 0;
    return mc_wire_send_on(fd, data, bytes, &done, deadline);
}

int mc_wire_recv(int fd, void *data, size_t bytes, double deadline, int watched)
{
    size_t done = 0;
    return mc_wire_recv_on(fd, data, bytes, &done, deadline, watched);
}

size_t mc_wire_unconfirmed(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

/* Sockets -------------------------------------------------------------------------------------- */

/* A host that is gone without a word is noticed within a minute. */
static void set_up(int fd)
{
    const int one = 1, idle = 30, interval = 10, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* 0: it is of no family that is known here. */
static socklen_t address_of(const mc_endpoint_t *e, struct sockaddr_storage *address)
{
    memset(address, 0, sizeof *address);
    if (e->family == 4) {
        struct sockaddr_in *const four = (struct sockaddr_in *)address;
        four->sin_family = AF_INET;
        four->sin_port = htons(e->port);
        memcpy(&four->sin_addr, e->at, sizeof four->sin_addr);
        return sizeof *four;
    }
    if (e->family != 6)
        return 0;
    struct sockaddr_in6 *const six = (struct sockaddr_in6 *)address;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(e->port);
    memcpy(&six->sin6_addr, e->at, sizeof six->sin6_addr);
    six->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? e->scope : 0;
    return sizeof *six;
}

int mc_wire_begin_connect(const mc_endpoint_t *to, int *fd)
{
    struct sockaddr_storage address;
    const socklen_t bytes = address_of(to, &address);
    if (bytes == 0)
        return EAFNOSUPPORT;
    const int made =
        mc_descriptor(socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made < 0)
        return errno;
    const int failed = connect(made, (const struct sockaddr *)&address, bytes) ? errno : 0;
    if (failed && failed != EINPROGRESS && failed != EINTR) {
        mc_endpoint_t source;
        close(made);
        return failed == EADDRNOTAVAIL && !mc_wire_source(to, &source) ? EADDRINUSE : failed;
    }
    set_up(made);
    *fd = made;
    return 0;
}

int mc_wire_connected(int fd)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? errno : error;
}

int mc_wire_connect(const mc_endpoint_t *to, double deadline, int *fd)
{
    int made = -1, failed = mc_wire_begin_connect(to, &made);
    if (failed)
        return failed;
    failed = mc_wire_wait(made, POLLOUT, deadline, -1);
    if (!failed)
        failed = mc_wire_connected(made);
    if (failed) {
        close(made);
        return failed;
    }
    *fd = made;
    return 0;
}

int mc_wire_listen(const mc_endpoint_t *at, int *fd)
{
    enum { BACKLOG = 1024 };
    static const mc_endpoint_t any;
    struct sockaddr_storage address;
    const socklen_t bytes = address_of(at, &address);
    const int one = 1, only_six = memcmp(at->at, any.at, sizeof any.at) != 0;
    const int made =
        mc_descriptor(socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made < 0)
        return errno;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->family == 6)
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six);
    if (bind(made, (const struct sockaddr *)&address, bytes) || listen(made, BACKLOG)) {
        const int failed = errno;
        close(made);
        return failed;
    }
    *fd = made;
    return 0;
}

int mc_wire_listen_anywhere(uint16_t port, int *fd)
{
    const int failed = mc_wire_listen(&(mc_endpoint_t){.family = 6, .port = port}, fd);
    return !failed || failed == EADDRINUSE || failed == EACCES
               ? failed /* else this host has no IPv6 */
               : mc_wire_listen(&(mc_endpoint_t){.family = 4, .port = port}, fd);
}

/* From the last on, as those before are others' first choice. */
int mc_wire_listen_free(const mc_endpoint_t *at, int *fd)
{
    mc_ports_t ports;
    int failed = mc_ports_read(&ports) ? EINVAL : EADDRINUSE;
    mc_endpoint_t there = at ? *at : (mc_endpoint_t){.family = 0};
    for (int32_t port = ports.last; failed == EADDRINUSE && port >= ports.first; port--) {
        there.port = (uint16_t)port;
        failed = at ? mc_wire_listen(&there, fd) : mc_wire_listen_anywhere(there.port, fd);
    }
    return failed;
}

const char *mc_wire_error(int error)
{
    return error == EADDRINUSE ? "no port is free on this host (MESHCOLL_PORTS, or else sysctl "
                                 "net.ipv4.ip_local_port_range, has too few)"
                               : strerror(error);
}

int mc_wire_accept(int listener)
{
    const int fd = mc_descriptor(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0)
        set_up(fd);
    return fd;
}

/* Addresses ------------------------------------------------------------------------------------ */

mc_endpoint_t mc_wire_endpoint(const void *address)
{
    const struct sockaddr_in6 *const six = address;
    const struct sockaddr_in *const four = address;
    if (four->sin_family != AF_INET6) {
        mc_endpoint_t e = {.family = 4, .port = ntohs(four->sin_port)};
        memcpy(e.at, &four->sin_addr, sizeof four->sin_addr);
        return e;
    }
    mc_endpoint_t e = {.family = 6, .port = ntohs(six->sin6_port), .scope = six->sin6_scope_id};
    memcpy(e.at, &six->sin6_addr, sizeof six->sin6_addr);
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        e.family = 4;
        memset(e.at, 0, sizeof e.at);
        memcpy(e.at, six->sin6_addr.s6_addr + 12, sizeof(struct in_addr));
    }
    return e;
}

int mc_wire_own(int fd, mc_endpoint_t *end)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &bytes))
        return errno;
    *end = mc_wire_endpoint(&address);
    return 0;
}

int mc_wire_other(int fd, mc_endpoint_t *end)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &bytes))
        return errno;
    *end = mc_wire_endpoint(&address);
    return 0;
}

int mc_wire_source(const mc_endpoint_t *to, mc_endpoint_t *source)
{
    struct sockaddr_storage there;
    mc_endpoint_t e = *to;
    e.port = 9; /* which does not matter */
    const socklen_t bytes = address_of(&e, &there);
    const int fd = mc_descriptor(socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return errno;
    const int failed =
        connect(fd, (const struct sockaddr *)&there, bytes) ? errno : mc_wire_own(fd, source);
    close(fd);
    if (!failed)
        source->port = 0;
    return failed;
}

bool mc_wire_is_loopback(const mc_endpoint_t *e)
{
    return e->family == 4 ? e->at[0] == IN_LOOPBACKNET
                          : memcmp(e->at, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

const char *mc_wire_print(const mc_endpoint_t *e, char name[MC_WIRE_NAME])
{
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(e->family == 6 ? AF_INET6 : AF_INET, e->at, text, sizeof text);
    snprintf(name, MC_WIRE_NAME, e->family == 6 ? "[%s]:%u" : "%s:%u", text, (unsigned)e->port);
    return name;
}

const char *mc_wire_print_other(int fd, char name[MC_WIRE_NAME])
{
    mc_endpoint_t e = {.family = 4};
    (void)mc_wire_other(fd, &e);
    return mc_wire_print(&e, name);
}
