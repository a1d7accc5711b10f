/*
 * The lead of a rank: how much its calls are ahead of the slowest rank's. A broadcast or a reduction
 * may be complete on one rank before another has begun it, and what is sent to that rank is stored
 * there. So that this is bounded, ranks count the bytes of their calls, by arguments that are the same on all
 * of them. After every MC_LEAD_EPOCH bytes an epoch ends, and all ranks begin a barrier that nobody
 * waits for. A run of an epoch is pending until the barrier of the epoch before the last has
 * completed: then every rank has begun all runs up to there. So at most three epochs are sent ahead,
 * or one larger call in each.
 *
 * Everything depends on the sequence of calls only, never on what has completed. The barriers have operation
 * numbers of their own (call/numbers.h). Persistent requests may be started in any order, so each has a lead of
 * its own.
 *
 * Each barrier also tells whether all ranks made the same calls, by a hash of their digests (digest.h), and were
 * refused the same. A refusal ends the epoch, and runs of the next one wait for its barrier: so
 * nothing starts on a rank that was refused a call before all ranks have agreed that they were, too; and no
 * message of a refused call can meet a later one.
 */
#ifndef MC_HANDLE_LEAD_H
#define MC_HANDLE_LEAD_H

#include "base/base.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Which calls this rank was refused. Peers that made such a call may have sent messages for it that nobody takes: they
 * must not meet a later call of the same tag. So ranks compare what they were refused, by the barrier of their lead,
 * before a rank that was refused something starts anything more. A call is known by how many calls its rank had made
 * with it. */
typedef struct {
    uint32_t first, last;
} mc_refused_run_t;

typedef struct {
    uint64_t hash;    /* of all calls refused so far: equal on ranks that were refused the same */
    uint64_t begun;   /* the hash that the latest barrier compares */
    uint32_t before;  /* calls made when the latest barrier began */
    uint32_t settled; /* up to this call all ranks were refused the same */
    uint32_t n, capacity;
    mc_refused_run_t *run; /* refused since */
} mc_refusals_t;

/* ERR_NO_MEMORY. */
int mc_refusals_add(mc_refusals_t *refusals, uint32_t made);
/* Was this call refused here, or have all ranks agreed on it? */
bool mc_refusals_know(const mc_refusals_t *refusals, uint32_t made);
/* A barrier begins, after so many calls: returns up to which call it settles. */
uint32_t mc_refusals_begin(mc_refusals_t *refusals, uint32_t made);
/* That barrier is complete, and all ranks were refused the same. */
void mc_refusals_settle(mc_refusals_t *refusals, uint32_t made);
void mc_refusals_free(mc_refusals_t *refusals);

/* Three epochs are to take less than 64 MiB, also of messages that take twice their bytes as nobody expects
 * them yet; what a barrier every 8 MiB costs: docs/lab-notes/constants.md. LEAST: a message that nobody expects
 * yet takes one or two pages, however short it is. BLOCKED is more than any sum of calls. */
#define MC_LEAD_EPOCH   (INT64_C(8) << 20)
#define MC_LEAD_LEAST   (INT64_C(4) << 10)
#define MC_LEAD_BLOCKED (INT64_C(1) << 60)
/* Odd, so that no digest is lost. */
#define MC_LEAD_FACTOR UINT64_C(0x9e3779b97f4a7c15)
#define MC_LEAD_MOST   (INT64_C(1) << 50) /* one call counts as this at most */

typedef struct mc_lead {
    /* Bytes of the present epoch that are left; less by BLOCKED while its runs must wait. So one
     * comparison tells a call that it has nothing to do. */
    int64_t left;
    bool blocked;
    uint32_t epoch;  /* the present one, from 0 on; both wrap */
    uint32_t synced; /* the barriers of the epochs below are complete */
    uint32_t needed; /* what `synced` must reach before runs of the present epoch start */
    uint32_t first_number, n_numbers; /* operation numbers of the barriers, in turn */
    uint32_t n_barriers;              /* that are not complete */
    bool dropped;                     /* its persistent request is gone */
    /* What that learns (call/adapt.h): the next barrier to begin tells the words, that of the epoch `told` has all
     * ranks' maxima of them, and a start may wait for these. NULL: it learns nothing. */
    int64_t *words;
    bool tells, awaited;
    uint32_t told;
    mc_list_t waiting; /* requests whose runs wait for a barrier */
    uint64_t hash;     /* of the calls that it has counted */
    uint32_t n_starts; /* of a persistent request, refused ones too */
    mc_refusals_t refused;
} mc_lead_t;

/* Counts a call of so many bytes. Returns whether it is the first of a new epoch: then a barrier is to be
 * begun, for the epoch before. */
static inline bool mc_lead_count(mc_lead_t *l, int64_t bytes)
{
    if (l->blocked)
        l->left += MC_LEAD_BLOCKED;
    l->blocked = false;
    if (l->left >= 0)
        return false;
    l->needed = l->epoch++;
    l->left = MC_LEAD_EPOCH - bytes;
    return true;
}

/* What ranks compare, and then take the maxima of: a hash of all calls that are made and refused, and its
 * complement. The maxima are each other's complement where all ranks have the same hash. */
enum { MC_LEAD_WORDS = 2 };
static inline void mc_lead_compare(const mc_lead_t *l, int64_t both[MC_LEAD_WORDS])
{
    both[0] = (int64_t)(MC_LEAD_FACTOR * l->refused.hash ^ l->hash);
    both[1] = ~both[0];
}
static inline bool mc_lead_differs(const int64_t both[MC_LEAD_WORDS])
{
    return both[0] != ~both[1];
}

/* The next call begins an epoch, as where one was refused: its runs wait for the barrier before it then. */
static inline void mc_lead_end(mc_lead_t *l)
{
    l->left = l->blocked ? -MC_LEAD_BLOCKED - 1 : -1;
}
static inline bool mc_lead_is_refused(const mc_lead_t *l)
{
    return l->refused.hash != l->refused.begun;
}

/* After each count and each barrier: may runs of the present epoch start? */
static inline bool mc_lead_settle(mc_lead_t *l)
{
    const bool blocked = (int32_t)(l->synced - l->needed) < 0;
    if (blocked != l->blocked)
        l->left += blocked ? -MC_LEAD_BLOCKED : MC_LEAD_BLOCKED;
    l->blocked = blocked;
    return !blocked;
}

/* Frees that of a persistent request; NULL is allowed. */
static inline void mc_lead_free(mc_lead_t *l)
{
    if (l)
        mc_refusals_free(&l->refused);
    free(l);
}

/* The barrier of an epoch is complete, and so every rank has begun those before it. */
static inline void mc_lead_reach(mc_lead_t *l, uint32_t epoch)
{
    if ((int32_t)(epoch + 1 - l->synced) > 0)
        l->synced = epoch + 1;
    (void)mc_lead_settle(l);
}

#endif
