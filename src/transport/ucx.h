/* Messages through UCX tag matching: a context and a worker of its own for each dimension. */
#ifndef MC_TRANSPORT_UCX_H
#define MC_TRANSPORT_UCX_H

#include "transport/transport.h"

typedef struct {
    /* As UCX_TLS takes it: "tcp,self", "^sm", … What the user sets for UCX otherwise
     * (UCX_NET_DEVICES, …) holds for all dimensions. */
    const char *tls;
    const char *dim; /* the dimension's name, for error messages */
    bool threads;    /* several use it, one at a time */
} mc_ucx_params_t;

/* Does a send on these transports complete without its receiver? */
bool mc_ucx_streams(const char *tls);

int mc_ucx_create(const mc_ucx_params_t *params, mc_transport_t **transport);

#endif
