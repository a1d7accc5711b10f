/* What lists of UCX's transports and network devices name, and whether this machine has that. */
#ifndef MC_TRANSPORT_UCX_NAMES_H
#define MC_TRANSPORT_UCX_NAMES_H

#include "base/base.h"

/* Does a list of transports name TCP, and no RDMA? */
bool mc_ucx_names_tcp(const char *tls);
/* May transports of the list, or those that it leaves, be TCP? */
bool mc_ucx_has_tcp(const char *tls);
/* Does a send on these transports complete without its receiver? */
bool mc_ucx_streams(const char *tls);

/* The devices of a list of transports that names none: those of MESHCOLL_NET_DEVICES; else "", which leaves them to
 * UCX, as UCX_NET_DEVICES or an RDMA device does; else `found`, those that lead to the other ranks. */
const char *mc_ucx_devices(const char *tls, const char *found);

/* Are the network devices there that transports will bind to: `devices`, or where that is NULL those of
 * UCX_NET_DEVICES? `dim`: the dimension's name, for the sentence. ERR_TRANSPORT. */
int mc_ucx_check_devices(const char *tls, const char *devices, const char *dim);

#endif
