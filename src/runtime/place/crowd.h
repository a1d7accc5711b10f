/* How many ranks share a core: who waits on a core of his own may keep it, who has it from others gives
 * it back at once. */
#ifndef MC_RUNTIME_CROWD_H
#define MC_RUNTIME_CROWD_H

#include "base/base.h"

/* Ranks per core where this rank is best off: each counts as a part on all cores it may run on.
 * Ranks share cores where they share a kernel (by its boot_id: boxes may be containers of one machine),
 * or, where it does not tell, `machine` as in boxes.h. Collective. */
int mc_crowd_find(const meshcoll_oob_t *oob, const int32_t *machine, double *crowd);

/* The same for the ranks of one machine and the sets of cores they may run on, of `words` words each. */
double mc_crowd_of(const uint64_t *sets, size_t words, const int32_t *machine, int32_t n,
                   int32_t rank);

#endif
