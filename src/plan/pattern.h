/*
 * Derives what steps wait for from the order in which they read and write chunks. Chunks that no
 * step tells apart are one cell, so that time and memory grow with the number of steps, not of
 * chunks.
 */
#ifndef MC_PLAN_PATTERN_H
#define MC_PLAN_PATTERN_H

#include "plan/plan.h"

/* Steps in program order, which stay the caller's; successors as in a plan. */
typedef struct {
    const mc_step_t *step;
    uint32_t n, n_edges;
    uint32_t *succ_off, *succ, *n_pred; /* one allocation */
} mc_pattern_t;

/* Fills in the successors of p->step, whose ranges lie in `chunks` chunks, or in `scratch` chunks
 * of SCRATCH. mc_pattern_free also frees the outcome of a failure. */
int mc_pattern_derive(mc_pattern_t *p, uint32_t chunks, uint32_t scratch);
void mc_pattern_free(mc_pattern_t *p);

#endif
