/* All ranks of a mesh in one process, for tests. */
#ifndef MC_RUNTIME_INPROC_H
#define MC_RUNTIME_INPROC_H

#include <meshcoll/meshcoll.h>

/*
 * `ranks` has room for as many handles as the mesh has ranks; the caller destroys each. Blocking
 * calls would wait for ranks that cannot run: start the requests of all ranks, and call
 * meshcoll_test in turn.
 */
int mc_inproc_create(const char *mesh, const meshcoll_params_t *params, meshcoll_t **ranks);

#endif
