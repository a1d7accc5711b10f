/*
 * How the members of a sub-mesh or group agree on its context, when they make it. Each offers a
 * window of the contexts that are free on it, from the first free one on; along a binomial tree of the
 * members, in the order of their ranks in the parent, the offers are intersected on the way up, and the
 * smallest is told on the way down. Where the windows have none in common, the next round's begin further
 * on. Only members take part.
 *
 * A rank offers its contexts to one creation at a time, of those that threads run at once to the first in
 * an order that is the same on all ranks (mc_creating_t). A creation to which some member offers none is
 * repeated; the first of all is never refused twice, so that it succeeds, then the next.
 */
#ifndef MC_FAMILY_AGREE_H
#define MC_FAMILY_AGREE_H

#include "runtime/handle/handle.h"

typedef struct {
    const char *function; /* for error texts */
    meshcoll_t *parent;
    const int32_t *member; /* mesh ranks of the parent, ascending */
    int32_t n, me;         /* members; this rank's place among them */
    int32_t tag;
    uint64_t list; /* a hash of what all must have passed */
} mc_agreement_t;

/* Between creations of a parent that cannot be told apart by a tag of the caller's. */
enum { MC_TAG_OF_SPLITS = INT32_MIN };

/* `status` is this rank's so far: an error is told to all, who return it too. The context is taken on
 * success. ERR_MISMATCH where members passed different lists, which not all may learn. The caller holds
 * the lock. */
int mc_context_agree(const mc_agreement_t *a, int status, uint32_t *context, uint32_t *creation);

#endif
