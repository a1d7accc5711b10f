/* Where a run of a plan stands. */
#ifndef MC_WAITS_BLOCKED_H
#define MC_WAITS_BLOCKED_H

#include "runtime/diagnose/waits.h"
#include "runtime/state/state.h"

typedef struct {
    mc_awaited_t awaits;
    uint32_t step; /* n_steps of the plan: none */
    int32_t peer;  /* a mesh rank; -1: none */
} mc_blocked_t;

/*
 * Finds the first step in program order that is not complete. All steps before it are, so it depends
 * on no step of this rank: it is at work, or its message waits for the peer. Plans complete where
 * every rank takes its steps one after another in program order (pace/pace.h), so these waits form
 * no circle within a collective.
 */
mc_blocked_t mc_blocked_find(const mc_executor_t *x);
/* Bytes of that step's message that have come or gone, as far as the transport tells. */
uint64_t mc_blocked_done(const mc_executor_t *x);

#endif
