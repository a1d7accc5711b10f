/* Where ranks run, according to hwloc and the operating system. */
#ifndef MC_RUNTIME_PLACES_H
#define MC_RUNTIME_PLACES_H

#include "runtime/place/boxes.h"

enum { MC_CPUS_TEXT = 64 };

/* What this process is bound to. */
typedef struct {
    int32_t node, package;   /* numbers of the operating system; -1: more than one */
    char cpus[MC_CPUS_TEXT]; /* "0-3,8"; "": not bound */
} mc_bound_to_t;

void mc_bound_to_find(mc_bound_to_t *bound);

/* The kernel's boot id, the same in all containers on it; "" if unknown. Allocates nothing. */
enum { MC_BOOT_TEXT = 40 };
void mc_boot_id(char id[MC_BOOT_TEXT]);

/* Places of all ranks; the caller frees them. `machine[r]`: the lowest rank that shares memory
 * with rank r. Collective. */
int mc_places_find(const meshcoll_oob_t *oob, const int32_t *machine, mc_place_t **place);

#endif
