/* Sockets of the bootstrap: never blocking without a time limit. Functions that return an int return 0 or an errno. */
#ifndef MC_HANDSHAKE_WIRE_H
#define MC_HANDSHAKE_WIRE_H

#include "base/base.h"

#include <sys/socket.h>

/* An address as ranks send it to each other; plain memory. */
typedef struct {
    uint32_t family; /* 4 or 6 */
    uint16_t port, unused;
    unsigned char at[16];
} mc_endpoint_t;

enum { MC_WIRE_NAME = 80 };

/* Deadlines are times of mc_now(); MC_WIRE_FOREVER: none. */
#define MC_WIRE_FOREVER 1e300

/* Waits until `fd` is ready for `events` of poll(2). ECANCELED where `watched` (-1: none) has
 * something to read first. */
int mc_wire_wait(int fd, short events, double deadline, int watched);
int mc_wire_send(int fd, const void *data, size_t bytes, double deadline);
/* ECONNRESET where the peer has closed. */
int mc_wire_recv(int fd, void *data, size_t bytes, double deadline, int watched);
/* The same, in several goes: *done of the bytes are through, and after ETIMEDOUT the next call goes on there. */
int mc_wire_send_on(int fd, const void *data, size_t bytes, size_t *done, double deadline);
int mc_wire_recv_on(int fd, void *data, size_t bytes, size_t *done, double deadline, int watched);

/* ECONNREFUSED, ETIMEDOUT, …; else *fd is connected. */
int mc_wire_connect(const struct sockaddr_storage *to, double deadline, int *fd);
/* The same in two steps: *fd is ready for POLLOUT when mc_wire_connected can tell what became of it. */
int mc_wire_begin_connect(const struct sockaddr_storage *to, int *fd);
int mc_wire_connected(int fd);
/* Listens on exactly this address; on [::], for IPv4 too. */
int mc_wire_listen(const struct sockaddr_storage *at, int *fd);
/* Listens on all addresses, of IPv6 and IPv4 where there are both. */
int mc_wire_listen_anywhere(uint16_t port, int *fd);
/* Listens at an address, or NULL: anywhere, on a port of MESHCOLL_PORTS, else any. EADDRINUSE: none is free. */
int mc_wire_listen_free(const struct sockaddr_storage *at, int *fd);
/* Where the socket's own end is, without its port. */
int mc_wire_own_address(int fd, struct sockaddr_storage *address);
/* The address from which this host sends to another; nothing is sent. */
int mc_wire_source(const struct sockaddr_storage *to, struct sockaddr_storage *address);
/* An accepted socket, ready for use; -1: none. */
int mc_wire_accept(int listener);

void mc_wire_set_port(struct sockaddr_storage *address, uint16_t port);
/* That of IPv4 in IPv6 becomes one of IPv4. */
mc_endpoint_t mc_wire_endpoint(const struct sockaddr_storage *address);
bool mc_wire_is_loopback(const mc_endpoint_t *endpoint);
/* The bound address of a listener. */
int mc_wire_listening(int listener, mc_endpoint_t *endpoint);
/* `like` gives the scope of link-local addresses. */
int mc_wire_address(const mc_endpoint_t *endpoint, const struct sockaddr_storage *like,
                    struct sockaddr_storage *address);
/* "10.0.0.1:30500" */
const char *mc_wire_print(const struct sockaddr_storage *address, char name[MC_WIRE_NAME]);
const char *mc_wire_print_peer(int fd, char name[MC_WIRE_NAME]);

#endif
