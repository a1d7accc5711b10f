/* Chooses the strategy of a call. */
#ifndef MC_CALL_CHOOSE_CALL_H
#define MC_CALL_CHOOSE_CALL_H

#include "runtime/handle/handle.h"

/* Chooses for checked arguments; *choice belongs to the handle, and is valid until the next
 * choice. */
int mc_call_choose(meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier, mc_memory_t **choice);

#endif
