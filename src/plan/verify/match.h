/*
 * The messages of a world: which send belongs to which receive, and an order in which all ranks can
 * run their steps when both sides of a message complete together (rendezvous).
 */
#ifndef MC_PLAN_MATCH_H
#define MC_PLAN_MATCH_H

#include "plan/verify/world.h"

#define MC_NO_STEP UINT32_MAX

/* Steps are numbered through all ranks: step i of rank r is first[r] + i. */
typedef struct {
    mc_arena_t arena;
    uint32_t n_steps;  /* of all ranks */
    uint32_t *first;   /* by rank; n_steps at the end */
    int32_t *rank;     /* by step */
    uint32_t *partner; /* by step: the other side of its message, or MC_NO_STEP */
    uint32_t *next;    /* by message: the next one to (from) the same peer, or MC_NO_STEP */
} mc_match_t;

/* ERR_PLAN names a message without a matching other side. The caller frees its arena. */
int mc_match_create(const mc_world_t *world, mc_match_t *match);

/* Which messages of a rank are serialised, beyond what dependencies require. */
typedef enum {
    MC_IN_TURN_PER_PEER, /* those to one peer, and those from one */
    MC_IN_TURN_PER_RANK  /* all it sends, and all it receives */
} mc_turn_t;

/* Writes sends and local steps to `order`, which has room for n_steps, in an order that all
 * constraints allow. ERR_PLAN names the steps of a cycle. */
int mc_match_order(const mc_world_t *world, const mc_match_t *match, mc_turn_t turn,
                   uint32_t *order, uint32_t *n);

/* The index of a numbered step in its rank's plan, and the step. */
static inline uint32_t mc_match_index(const mc_match_t *match, uint32_t step)
{
    return step - match->first[match->rank[step]];
}
static inline const mc_step_t *mc_match_step(const mc_world_t *world, const mc_match_t *match,
                                             uint32_t step)
{
    return &world->plan[match->rank[step]]->step[mc_match_index(match, step)];
}

/* Fails with ERR_PLAN: "rank 3, step 5 (send -> 2 out[4] #0) <sentence>". */
int mc_fail_step(const mc_plan_t *plan, uint32_t step, const char *format, ...) MC_PRINTF(3, 4);

#endif
