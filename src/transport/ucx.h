/* Messages through UCX tag matching, with a context and a worker per dimension. */
#ifndef MC_TRANSPORT_UCX_H
#define MC_TRANSPORT_UCX_H

#include "transport/transport.h"

typedef struct {
    /* As in UCX_TLS: "tcp,self", "^sm", …; then perhaps the network devices to use, as in
     * UCX_NET_DEVICES: "tcp,self@eth0". The user's other UCX settings hold for all dimensions. */
    const char *tls;
    const char *dim; /* the dimension's name, for error texts */
    bool threads;    /* several threads use it, one at a time */
    const char *
        where; /* "10.0.0.1, eth0": this rank is, for error texts here and of its peers; NULL: not known */
} mc_ucx_params_t;

int mc_ucx_create(const mc_ucx_params_t *params, mc_transport_t **transport);

/* Of the sockets that UCX holds and does not show: shuts down all stream sockets that an epoll descriptor watches, and
 * those of epoll descriptors that it watches, so that what would send or receive there fails instead. Found in /proc;
 * nothing happens without. */
void mc_sockets_shut(int epoll);
/* Has UCX made its sockets above 2, and will it make further ones there? Known once a worker listens. */
bool mc_sockets_are_moved(void);

#endif
