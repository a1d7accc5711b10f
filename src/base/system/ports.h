/* MESHCOLL_PORTS=A-B: the ports on which this process may listen, for firewalls that open a range. */
#ifndef MC_BASE_PORTS_H
#define MC_BASE_PORTS_H

#include "base/base.h"

/* The first ones are those at which ranks look for rank 0; all others listen on the rest. */
enum { MC_PORTS_MEET = 8, MC_PORTS_LEAST = 16 };

typedef struct {
    uint16_t first, last; /* 0 and 0: any, as the kernel chooses */
} mc_ports_t;

/* Reads the range of MESHCOLL_PORTS, without the ports at which ranks meet. ERR_INVALID_ARG: it is no such range. */
int mc_ports_read(mc_ports_t *ports);

#endif
