/* MESHCOLL_CHECK=1 in groups: the calls of a group are compared at its end, before any starts. The hooks of a mesh
 * whose calls are compared (hooks.h). */
#ifndef MC_DIAGNOSE_CHECK_GROUP_H
#define MC_DIAGNOSE_CHECK_GROUP_H

#include "runtime/diagnose/fingerprint.h"

/* What the open group's calls ask for. */
typedef struct mc_checks {
    mc_fingerprint_t *call;
    uint32_t n, capacity;
    uint32_t number;          /* of the comparison */
    uint32_t n_made;          /* calls, with those that were refused */
    uint64_t hash;            /* of all */
    bool is_refused;          /* one was, so that the group is */
    mc_fingerprint_t refused; /* its first one */
} mc_checks_t;

uint32_t mc_check_group_opened(meshcoll_t *h);
int mc_check_group_added(meshcoll_t *h, const mc_description_t *call);
void mc_check_group_refused(meshcoll_t *h);
int mc_check_group_ends(meshcoll_t *h);

#endif
