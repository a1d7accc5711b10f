/* What strategies of two sides cost. */
#ifndef MC_COMPOSE_SIDES_H
#define MC_COMPOSE_SIDES_H

#include "compose/price/pricing.h"

/*
 * Seconds of a strategy with two sides for n bytes are fill + (segments / 2 - 1) * every, where a
 * piece is n / segments and one segment of each side goes through side by side.
 *   fill   of the first two: the sides' phases in program order (the first of both, the second of
 *          both, ...), each when the one before it on its side has ended and the links of its
 *          dimensions are free of the phases before it; these it keeps as long as it is busy
 *   every  how long two segments, one of each side, keep the busiest link: both sides' times add up
 *          for each dimension
 * Neither is less than a rank's own time for two segments: a rank starts one message at a time and
 * sums on one processor, so alphas and gammas of both sides and of all dimensions add up.
 */
typedef struct {
    double fill, every;
    int32_t busiest; /* the dimension that `every` is the time of; -1: the rank itself */
} mc_pace_t;
mc_pace_t mc_sides_pace(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n);
double mc_sides_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n);

/* Seconds for a piece: fixed + per_byte * bytes. */
typedef struct {
    double fixed, per_byte;
} mc_piece_seconds_t;

/* A term's part in them: seconds; bytes on the wire, of headers and as a multiple of the piece; seconds per byte
 * on the bus and to reduce. */
typedef struct {
    double fixed, headers, wire, bus, sums;
} mc_piece_parts_t;

/* A side's phases and what its ports carry. How fast wires are is left out: where bursts pass, it depends on
 * the side beside it. */
typedef struct {
    int32_t n;
    struct {
        int32_t n, dim[MC_MAX_DIMS]; /* those with messages */
        mc_piece_parts_t once[MC_MAX_DIMS], busy[MC_MAX_DIMS];
    } phase[MC_MAX_PHASES];
    mc_ratio_t carried[MC_MAX_DIMS]; /* by dimension */
} mc_course_t;

/* A side, priced. */
typedef struct {
    int32_t n;
    struct {
        mc_piece_seconds_t once, busy;
        unsigned links; /* a bit for each wire it sends over */
    } phase[MC_MAX_PHASES];
    mc_piece_seconds_t busy[MC_MAX_DIMS]; /* of all phases, by wire */
    mc_piece_seconds_t once;              /* of all phases, one after another */
    mc_piece_seconds_t own;               /* messages and sums of all phases */
    bool apart;                           /* of links whose gap is known: mc_busy_t */
} mc_flow_t;

/* One side of a strategy: 0, or of two the second. */
void mc_course_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                  const mc_links_t *links, int32_t root, mc_course_t *course);
/* On links that have no bursts, or had them taken off. */
mc_flow_t mc_flow_on(const mc_course_t *course, const mc_links_t *links);
/* Of two sides: without the fill, and *ranks: how much of it is the ranks' own time; what their pieces of `bytes` take. */
mc_pace_t mc_flows_every(const mc_flow_t *a, const mc_flow_t *b, double bytes, double *ranks);
/* Seconds of both for n bytes in so many segments, and what they are no less than. */
double mc_flows_seconds(const mc_flow_t *a, const mc_flow_t *b, uint32_t segments, double n);
double mc_flows_least(const mc_flow_t *a, const mc_flow_t *b, uint32_t segments, double n);

#endif
