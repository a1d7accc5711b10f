/* Makes the handle of a sub-mesh or group, from who is in it. */
#ifndef MC_FAMILY_SUB_H
#define MC_FAMILY_SUB_H

#include "runtime/handle/handle.h"

typedef struct {
    const char *function; /* for error texts */
    meshcoll_t *parent;
    mc_mesh_t mesh;
    mc_order_t order;         /* the new handle takes it over */
    int32_t dim[MC_MAX_DIMS]; /* by dimension: the parent's whose links it uses */
    int32_t *member;          /* by rank: its mesh rank in the parent */
    int32_t rank;             /* this rank */
    bool at_once;             /* the parent splits into such parts, which mostly run at once */
    int32_t tag;              /* of its creation */
    uint64_t list;            /* a hash of what all members must have passed */
} mc_members_t;

/* `status`: of finding the members. Collective over them. The caller holds the lock. */
int mc_sub_create(mc_members_t *members, int status, meshcoll_t **sub);
/* Frees what was not taken over. */
void mc_members_free(mc_members_t *members);

/* Of ranks in ascending order, for qsort and bsearch. */
int mc_compare_ranks(const void *a, const void *b);
/* Can something be made from it now? An open group would only collect calls. */
int mc_sub_check(const char *function, meshcoll_t *parent);

/* Adds to a hash; begin with 0. */
static inline uint64_t mc_members_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

#endif
