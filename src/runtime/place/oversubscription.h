/* Oversubscription: how many ranks share a core. A rank that waits on a core of its own may keep
 * polling; one that shares its core yields at once. */
#ifndef MC_RUNTIME_OVERSUBSCRIPTION_H
#define MC_RUNTIME_OVERSUBSCRIPTION_H

#include "base/base.h"

/* The cores that this process may run on, 64 to a word; `*words` is up to the last with a core. The
 * caller frees it; NULL: no memory. */
uint64_t *mc_cores_find(size_t *words);

/* Ranks per core, on the least loaded core that this rank may run on; each rank counts as an
 * equal part on every core that it may run on. `sets` has `words` words of each rank, `stride` words
 * apart. Only ranks with the same `kernel` share cores. */
double mc_oversubscription_of(const uint64_t *sets, size_t words, size_t stride,
                              const int32_t *kernel, int32_t n, int32_t rank);

/* By rank, whether it runs on the cores of `rank`: ranks share a kernel by its boot id, as boxes may
 * be containers of one machine, or, where there is none, a machine (boxes.h). */
void mc_kernels_find(const void *locations, size_t location_stride, const int32_t *machine,
                     int32_t n, int32_t rank, int32_t *kernel);

#endif
