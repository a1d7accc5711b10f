/* Costs of strategies of two sides. */
#ifndef MC_COMPOSE_SIDES_H
#define MC_COMPOSE_SIDES_H

#include "compose/price/linear.h"
#include "compose/price/pricing.h"

/*
 * A strategy of two sides takes fill + (segments / 2 - 1) * every seconds for n bytes. One segment of each
 * side, a piece of n / segments bytes, is in progress at a time.
 *   fill   time of the first segment of each side. Phases start in program order (the first of both sides,
 *          the second of both, …), each when the phase before it on its side has ended and the links of its
 *          dimensions are free; it occupies these links for its `busy` time, or until it ends if that is
 *          sooner
 *   every  time for which two segments, one of each side, occupy the busiest link: the sides' times add up
 *          for each wire
 * Neither is less than a rank's own time for two segments: a rank starts one message at a time and sums on
 * one core, so alphas and gammas of both sides and all dimensions add up.
 */
typedef struct {
    double fill, every;
    int32_t busiest; /* what determines `every`, as of mc_cost_busy */
} mc_pipeline_t;
mc_pipeline_t mc_sides_pipeline(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                const mc_links_t *links, int32_t root, double n);

/* A side priced on links, as functions of the bytes of a segment. */
typedef struct {
    int32_t n;
    struct {
        mc_linear_t once, busy;
        unsigned links; /* the wires that it uses, and the parts of the network, a bit each */
    } phase[MC_MAX_PHASES];
    mc_linear_t busy[MC_BUSY_WIRES]; /* of all phases, by wire and part of the network */
    mc_linear_t own;                 /* messages and sums of all phases */
    bool shares_cores;               /* ranks' time and wires' time add up (mc_cost_busy) */
} mc_side_flow_t;

/* One side of a strategy, 0 or 1. */
mc_side_flow_t mc_flow_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                          const mc_links_t *links, int32_t root);
/* Seconds of two sides for n bytes in so many segments. */
double mc_flows_seconds(const mc_side_flow_t *a, const mc_side_flow_t *b, uint32_t segments,
                        double n);

#endif
