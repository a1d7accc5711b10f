/* The arguments of a call. */
#ifndef MC_HANDLE_ARGS_H
#define MC_HANDLE_ARGS_H

#include "runtime/handle/handle.h"

/* The arguments of a call, checked: *args with defaults for what is not given, and the root as the
 * mesh numbers it. */
int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args);

/* The numbering that a call's sums must follow the aligned tree over, to be reproducible; NULL: any
 * will do. Arguments are checked. */
const mc_numbering_t *mc_args_aligned(const meshcoll_t *h, const meshcoll_args_t *args);
/* Where no strategy of the mesh's ranks does that, or keeps the order of an operation that does not
 * commute, a plan is made as if the mesh's ranks stood in the
 * communicator's order, and its ranks are translated when it is wired. */
bool mc_plans_by_comm(const meshcoll_t *h, const meshcoll_args_t *args);

#endif
