#include "job/network/wire.h"

#include "base/system/descriptor.h"
#include "base/system/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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

static socklen_t length_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int mc_wire_begin_connect(const struct sockaddr_storage *to, int *fd)
{
    const int made =
        mc_descriptor(socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made < 0)
        return errno;
    const int failed = connect(made, (const struct sockaddr *)to, length_of(to)) ? errno : 0;
    if (failed && failed != EINPROGRESS && failed != EINTR) {
        close(made);
        return failed;
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

int mc_wire_connect(const struct sockaddr_storage *to, double deadline, int *fd)
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

static bool is_any(const struct sockaddr_storage *at)
{
    const struct sockaddr_in6 *const six = (const struct sockaddr_in6 *)at;
    return at->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

int mc_wire_listen(const struct sockaddr_storage *at, int *fd)
{
    enum { BACKLOG = 1024 };
    const int one = 1, only_six = !is_any(at);
    const int made =
        mc_descriptor(socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made < 0)
        return errno;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ss_family == AF_INET6)
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six);
    if (bind(made, (const struct sockaddr *)at, length_of(at)) || listen(made, BACKLOG)) {
        const int failed = errno;
        close(made);
        return failed;
    }
    *fd = made;
    return 0;
}

int mc_wire_listen_anywhere(uint16_t port, int *fd)
{
    struct sockaddr_storage any = {.ss_family = AF_INET6};
    mc_wire_set_port(&any, port);
    const int failed = mc_wire_listen(&any, fd);
    if (!failed || failed == EADDRINUSE || failed == EACCES)
        return failed;
    any = (struct sockaddr_storage){.ss_family = AF_INET}; /* this host has no IPv6 */
    mc_wire_set_port(&any, port);
    return mc_wire_listen(&any, fd);
}

/* From the last on, as those before are others' first choice. */
int mc_wire_listen_free(const struct sockaddr_storage *at, int *fd)
{
    mc_ports_t ports;
    int failed = mc_ports_read(&ports) ? EINVAL : EADDRINUSE;
    for (int32_t port = ports.last; failed == EADDRINUSE && port >= ports.first; port--) {
        struct sockaddr_storage there;
        if (at) {
            there = *at;
            mc_wire_set_port(&there, (uint16_t)port);
        }
        failed = at ? mc_wire_listen(&there, fd) : mc_wire_listen_anywhere((uint16_t)port, fd);
    }
    return failed;
}

int mc_wire_accept(int listener)
{
    const int fd = mc_descriptor(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0)
        set_up(fd);
    return fd;
}

/* Addresses ------------------------------------------------------------------------------------ */

void mc_wire_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

int mc_wire_own_address(int fd, struct sockaddr_storage *address)
{
    socklen_t bytes = sizeof *address;
    memset(address, 0, sizeof *address);
    if (getsockname(fd, (struct sockaddr *)address, &bytes))
        return errno;
    mc_wire_set_port(address, 0);
    return 0;
}

int mc_wire_source(const struct sockaddr_storage *to, struct sockaddr_storage *address)
{
    struct sockaddr_storage there = *to;
    const int fd = mc_descriptor(socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return errno;
    mc_wire_set_port(&there, 9); /* which does not matter */
    const int failed = connect(fd, (const struct sockaddr *)&there, length_of(&there))
                           ? errno
                           : mc_wire_own_address(fd, address);
    close(fd);
    return failed;
}

mc_endpoint_t mc_wire_endpoint(const struct sockaddr_storage *address)
{
    mc_endpoint_t e = {.family = address->ss_family == AF_INET6 ? 6 : 4};
    if (e.family == 6) {
        const struct sockaddr_in6 *const a = (const struct sockaddr_in6 *)address;
        e.port = ntohs(a->sin6_port);
        memcpy(e.at, &a->sin6_addr, sizeof a->sin6_addr);
        if (IN6_IS_ADDR_V4MAPPED(&a->sin6_addr)) {
            e.family = 4;
            memset(e.at, 0, sizeof e.at);
            memcpy(e.at, a->sin6_addr.s6_addr + 12, sizeof(struct in_addr));
        }
    } else {
        const struct sockaddr_in *const a = (const struct sockaddr_in *)address;
        e.port = ntohs(a->sin_port);
        memcpy(e.at, &a->sin_addr, sizeof a->sin_addr);
    }
    return e;
}

bool mc_wire_is_loopback(const mc_endpoint_t *e)
{
    return e->family == 4 ? e->at[0] == IN_LOOPBACKNET
                          : memcmp(e->at, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

int mc_wire_listening(int listener, mc_endpoint_t *endpoint)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &bytes))
        return errno;
    *endpoint = mc_wire_endpoint(&address);
    return 0;
}

int mc_wire_address(const mc_endpoint_t *e, const struct sockaddr_storage *like,
                    struct sockaddr_storage *address)
{
    memset(address, 0, sizeof *address);
    if (e->family != 4 && e->family != 6)
        return EAFNOSUPPORT;
    address->ss_family = e->family == 6 ? AF_INET6 : AF_INET;
    if (e->family == 6) {
        struct sockaddr_in6 *const a = (struct sockaddr_in6 *)address;
        memcpy(&a->sin6_addr, e->at, sizeof a->sin6_addr);
        if (like->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr))
            a->sin6_scope_id = ((const struct sockaddr_in6 *)like)->sin6_scope_id;
    } else {
        memcpy(&((struct sockaddr_in *)address)->sin_addr, e->at, sizeof(struct in_addr));
    }
    mc_wire_set_port(address, e->port);
    return 0;
}

const char *mc_wire_print(const struct sockaddr_storage *address, char name[MC_WIRE_NAME])
{
    char text[INET6_ADDRSTRLEN] = "?";
    const mc_endpoint_t e = mc_wire_endpoint(address);
    inet_ntop(e.family == 6 ? AF_INET6 : AF_INET, e.at, text, sizeof text);
    snprintf(name, MC_WIRE_NAME, e.family == 6 ? "[%s]:%u" : "%s:%u", text, (unsigned)e.port);
    return name;
}

const char *mc_wire_print_peer(int fd, char name[MC_WIRE_NAME])
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    socklen_t bytes = sizeof address;
    (void)getpeername(fd, (struct sockaddr *)&address, &bytes);
    return mc_wire_print(&address, name);
}
