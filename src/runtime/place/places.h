/* Where ranks run, according to hwloc and the operating system. */
#ifndef MC_RUNTIME_PLACES_H
#define MC_RUNTIME_PLACES_H

#include "base/base.h"
#include "runtime/place/boxes.h"

/* Oversubscription: whether a rank shares its cores with more ranks than there are. A rank that waits on a core of
 * its own may keep polling; one that shares it yields at once. */

/* The cores that a rank may use, as it tells the others; plain memory. */
typedef struct {
    uint64_t
        pool; /* equal for ranks of one kernel with the same affinity, or with the same quota of their cgroup */
    int32_t n; /* cores of the pool */
    int32_t unused;
} mc_cores_t;

/* `kernel` is equal for ranks of the same kernel: boxes may be containers of one machine. */
mc_cores_t mc_cores_find(uint64_t kernel);

/* Ranks to a core in the pool of `rank`; above 1 they share cores. `cores` of n ranks, `stride` bytes apart. */
double mc_cores_crowd(const void *cores, size_t stride, int32_t n, int32_t rank);

/* The cores that a cgroup's cpu.max in `directory` allows, rounded up; 0: no limit. */
int32_t mc_cores_quota(const char *directory);

enum { MC_CPUS_TEXT = 64 };

/* What this process is bound to. */
typedef struct {
    int32_t node, package;   /* numbers of the operating system; -1: more than one */
    char cpus[MC_CPUS_TEXT]; /* "0-3,8"; "": not bound */
} mc_bound_to_t;

void mc_bound_to_find(mc_bound_to_t *bound);
/* What a rank bound to each core of the machine in hwloc's `file` would be bound to; the caller frees them. ERR_IO. */
int mc_bound_to_cores(const char *file, mc_bound_to_t **bound, int32_t *n);

/* Where a rank runs, as it tells the others; plain memory. */
typedef struct {
    uint64_t machine;      /* equal for ranks that can share memory */
    int32_t node, package; /* as in mc_bound_to_t */
    int32_t gpus, unused;  /* gpus: 1: the machine has some */
    uint64_t network;      /* equal for ranks of one network namespace */
    mc_cores_t cores;
} mc_location_t;

void mc_location_find(mc_location_t *location);

/* The places of `n` ranks from their locations, `stride` bytes apart. `seen` is work space for `n`
 * numbers. */
void mc_places_of(const void *locations, size_t stride, int32_t n, int32_t *seen,
                  mc_place_t *place);
/* Places of all ranks; the caller frees them. Collective. */
int mc_places_gather(const meshcoll_oob_t *oob, mc_place_t **place);

#endif
