/* Up to which size do messages in shared memory pass faster copied than read (mc_transport_t.eager)? */
#ifndef MC_CALIBRATE_EAGER_H
#define MC_CALIBRATE_EAGER_H

#include "transport/transport.h"

/* Exchanges among the ranks of a line, in which all send messages of `bytes`; `seconds` of one, the same on all. */
typedef struct {
    mc_transport_t *transport; /* NULL: this rank takes no part */
    int32_t ranks;
    size_t most; /* bytes of a message */
    int (*run)(void *context, size_t bytes, int32_t runs, double *seconds);
    void *context;
    const double *now; /* after the last run, the same on all; and when the time is over */
    double end;
} mc_exchanges_t;

void mc_eager_set(mc_transport_t *transport, size_t bytes);
/* All ranks find the same, and read all messages afterwards. Leaves `bytes` where the time does not suffice. */
int mc_eager_find(const mc_exchanges_t *exchanges, double *bytes);

#endif
