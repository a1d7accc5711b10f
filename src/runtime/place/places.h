/* Where ranks run, as hwloc and the operating system tell it. */
#ifndef MC_RUNTIME_PLACES_H
#define MC_RUNTIME_PLACES_H

#include "runtime/place/boxes.h"

enum { MC_CPUS_TEXT = 64 };

/* What this process is bound to. */
typedef struct {
    int32_t node, package;   /* as the operating system numbers them; -1: to more than one */
    char cpus[MC_CPUS_TEXT]; /* "0-3,8"; "" where it is not bound at all */
} mc_bound_to_t;

void mc_bound_to_find(mc_bound_to_t *bound);

/* The kernel's, which is the same in all its containers; "" where it does not tell. Needs no memory. */
enum { MC_BOOT_TEXT = 40 };
void mc_boot_id(char id[MC_BOOT_TEXT]);

/* Places of all ranks, the caller's to free. `machine[r]`: the lowest rank that shares memory with
 * rank r. Collective. */
int mc_places_find(const meshcoll_oob_t *oob, const int32_t *machine, mc_place_t **place);

#endif
