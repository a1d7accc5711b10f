/* Sockets of the bootstrap: never blocking without a time limit. Functions that return an int return 0 or an errno. */
#ifndef MC_HANDSHAKE_WIRE_H
#define MC_HANDSHAKE_WIRE_H

#include "base/base.h"

#include <sys/socket.h>

/* An address and a port, as ranks send them to each other; plain memory. That of IPv4 in IPv6 is one of IPv4. */
typedef struct {
    uint16_t family, port; /* 4 or 6 */
    uint32_t scope;        /* of a link-local address; means nothing to another host */
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

/* Bytes sent that the other end's kernel has not confirmed. */
size_t mc_wire_unconfirmed(int fd);

/* ECONNREFUSED, ETIMEDOUT, …; else *fd is connected. */
int mc_wire_connect(const mc_endpoint_t *to, double deadline, int *fd);
/* EADDRINUSE: no port is free to connect from. The same in two steps: *fd is ready for POLLOUT when mc_wire_connected can tell what became of it. */
int mc_wire_begin_connect(const mc_endpoint_t *to, int *fd);
int mc_wire_connected(int fd);
/* Listens on exactly this address; on [::], for IPv4 too. */
int mc_wire_listen(const mc_endpoint_t *at, int *fd);
/* Listens on all addresses, of IPv6 and IPv4 where there are both. */
int mc_wire_listen_anywhere(uint16_t port, int *fd);
/* Listens at an address, or NULL: anywhere, on a port of MESHCOLL_PORTS, else any. EADDRINUSE: none is free. */
int mc_wire_listen_free(const mc_endpoint_t *at, int *fd);
/* What became of an attempt to listen on any port or to connect, for a sentence. */
const char *mc_wire_error(int error);

/* An accepted socket, ready for use; -1: none. */
int mc_wire_accept(int listener);

/* Of a struct sockaddr of IPv4 or IPv6. */
mc_endpoint_t mc_wire_endpoint(const void *address);
/* The ends of a connection; a listener has its own. */
int mc_wire_own(int fd, mc_endpoint_t *end);
int mc_wire_other(int fd, mc_endpoint_t *end);
/* The address from which this host sends to another, with port 0; nothing is sent. */
int mc_wire_source(const mc_endpoint_t *to, mc_endpoint_t *source);
bool mc_wire_is_loopback(const mc_endpoint_t *endpoint);
/* "10.0.0.1:30500" */
const char *mc_wire_print(const mc_endpoint_t *endpoint, char name[MC_WIRE_NAME]);
const char *mc_wire_print_other(int fd, char name[MC_WIRE_NAME]);

#endif
