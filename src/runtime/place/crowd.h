/* Oversubscription: how many ranks share a core. A rank that waits on a core of its own may keep
 * polling; one that shares its core yields at once. */
#ifndef MC_RUNTIME_CROWD_H
#define MC_RUNTIME_CROWD_H

#include "base/base.h"

/* Ranks per core, on the least loaded core that this rank may run on; each rank counts as an
 * equal part on every core that it may run on. Ranks share cores if they share a kernel (by its
 * boot id, as boxes may be containers of one machine), or, without a boot id, a `machine` as in
 * boxes.h. Collective. */
int mc_crowd_find(const meshcoll_oob_t *oob, const int32_t *machine, double *crowd);

/* The same, from the sets of cores that ranks may run on, of `words` words each. Only ranks with
 * the same `machine` share cores. */
double mc_crowd_of(const uint64_t *sets, size_t words, const int32_t *machine, int32_t n,
                   int32_t rank);

#endif
