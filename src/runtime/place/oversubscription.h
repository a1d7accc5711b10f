/* Oversubscription: whether a rank shares its cores with more ranks than there are. A rank that waits on a core of
 * its own may keep polling; one that shares it yields at once. */
#ifndef MC_RUNTIME_OVERSUBSCRIPTION_H
#define MC_RUNTIME_OVERSUBSCRIPTION_H

#include "base/base.h"

/* The cores that a rank may use, as it tells the others; plain memory. */
typedef struct {
    uint64_t
        pool; /* equal for ranks of one kernel with the same affinity, or with the same quota of their cgroup */
    int32_t n; /* cores of the pool */
    int32_t unused;
} mc_cores_t;

/* `kernel` is equal for ranks of the same kernel: boxes may be containers of one machine. */
mc_cores_t mc_cores_find(uint64_t kernel);

/* Are there more ranks in the pool of `rank` than cores? `cores` of n ranks, `stride` bytes apart. */
bool mc_cores_are_shared(const void *cores, size_t stride, int32_t n, int32_t rank);

/* The cores that a cgroup's cpu.max in `directory` allows, rounded up; 0: no limit. */
int32_t mc_cores_quota(const char *directory);

#endif
