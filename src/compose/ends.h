/*
 * What is left of a path costs at least, by the outermost dimension of its last phase; for the search.
 *
 * What comes last may have the whole vector (an allgather, a broadcast), and only one line comes last. Means and least
 * parts do not see that: each dimension is last somewhere, and none need be dear. So ends are of kinds, by the outermost
 * dimension of their last phase (which a merged line has most bytes on), and each part of a load grows by the least it
 * can for each kind; a path is left when all kinds are too dear. Kinds that are too dear for its beginning stay so.
 */
#ifndef MC_COMPOSE_ENDS_H
#define MC_COMPOSE_ENDS_H

#include "compose/bounds.h"

/* A bit for each kind. */
typedef uint32_t mc_end_set_t;

typedef struct {
    bool known;
    int32_t n;
    /* by kind, node and part: seconds of any segment; behind all parts those of all bytes in one. INFINITY: no such
     * path */
    double *least[MC_MAX_DIMS];
} mc_ends_t;

/* Of the kinds that some of the cuts have a path of within `limit`. */
int mc_ends_find(mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut, int32_t n_cuts,
                 double limit);
void mc_ends_free(mc_ends_t *e);
/* Those of `ends` that a path with that load may have within `limit` seconds, from `node` on. */
mc_end_set_t mc_ends_within(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut,
                            const double *load, int32_t node, double limit, mc_end_set_t ends);

static inline mc_end_set_t mc_ends_all(const mc_ends_t *e)
{
    return (UINT32_C(1) << e->n) - 1;
}

#endif
