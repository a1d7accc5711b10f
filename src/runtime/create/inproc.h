/* For tests: all ranks of a mesh in this process. */
#ifndef MC_RUNTIME_INPROC_H
#define MC_RUNTIME_INPROC_H

#include <meshcoll/meshcoll.h>

/*
 * `ranks` takes as many handles as the mesh has ranks, each to be destroyed. Blocking calls would
 * wait for ranks that cannot run: start requests of all ranks, and call meshcoll_test in turn.
 */
int mc_inproc_create(const char *mesh, const meshcoll_params_t *params, meshcoll_t **ranks);

#endif
