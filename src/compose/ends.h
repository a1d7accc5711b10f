/*
 * What is left of a path costs at least, by what its last phase keeps busiest; for the search.
 *
 * What comes last may have the whole vector (an allgather, a broadcast), and one wire has most of it. Means and least
 * parts do not see that: each wire is busy with it in some path, and none need be in all. So ends are of kinds, by the
 * wire that their last phase keeps busiest, and each part of a load grows by the least it can for each kind; a path is
 * left when all kinds are too dear. Kinds that are too dear for its beginning stay so. Where an end is too dear after
 * even the least that can come before it, whatever number of segments there is, it does not count: what is left of a
 * kind is much alike then.
 */
#ifndef MC_COMPOSE_ENDS_H
#define MC_COMPOSE_ENDS_H

#include "compose/bounds.h"

/* A bit for each kind. */
typedef uint32_t mc_end_set_t;

typedef struct {
    bool known;
    int32_t n_kinds;
    mc_end_set_t *kinds; /* by node: those that there are */
    /* by node, kind and part: seconds of any segment; behind all parts those of all bytes in one */
    double *least;
} mc_ends_t;

/* Of paths that are within `limit` by one of the cuts. */
int mc_ends_find(mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut, int32_t n_cuts,
                 double limit);
void mc_ends_free(mc_ends_t *e);
/* Those of `ends` that a path with that load may have within `limit` seconds, from `node` on. */
mc_end_set_t mc_ends_within(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut,
                            const double *load, int32_t node, double limit, mc_end_set_t ends);
/* Seconds that no path takes less than. */
double mc_ends_bound(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut);

static inline mc_end_set_t mc_ends_all(const mc_ends_t *e)
{
    return (UINT32_C(1) << e->n_kinds) - 1;
}

#endif
