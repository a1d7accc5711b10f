/* What the choice of a call's strategy depends on (choose/choice.h). */
#ifndef MC_REQUEST_CHOOSE_CALL_H
#define MC_REQUEST_CHOOSE_CALL_H

#include "runtime/handle/handle.h"

/* Of checked arguments. */
mc_choice_key_t mc_call_key(const meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier);
/* Also refuses strategies that cannot run a call whose counts only the root has. */
int mc_call_choose(const meshcoll_t *h, const meshcoll_args_t *a, const mc_choice_key_t *key,
                   mc_ranked_t *best);

#endif
