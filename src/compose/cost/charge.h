/* Charges the messages of an algorithm's rounds to the dimensions that they cross; for the cost
 * functions. */
#ifndef MC_COMPOSE_CHARGE_H
#define MC_COMPOSE_CHARGE_H

#include "compose/cost/cost.h"

/* Ranks of the line that agree in dimension `d` and all outer ones. */
static inline int32_t mc_shape_block(const mc_line_shape_t *shape, int32_t d)
{
    const int32_t last = shape->line.dims.first + shape->line.dims.count;
    int32_t block = 1;
    for (int32_t e = d + 1; e < last; e++)
        block *= shape->mesh->dim[e].extent;
    return block;
}

/* The blocks of dimension `d`, these ranks, where they differ in size: mc_shape_block is then the largest. Else NULL. */
static inline const mc_boxes_t *mc_shape_boxes(const mc_line_shape_t *shape, int32_t d)
{
    return d == MC_RAGGED_FOLD ? NULL : shape->boxes;
}

/* Messages of dimension `d` leave a box through the port of its wire, which may be that of an inner
 * dimension. Ranks of the line that differ in the returned dimension use different ports. */
static inline int32_t mc_shape_port(const mc_line_shape_t *shape, int32_t d)
{
    const int32_t last = shape->line.dims.first + shape->line.dims.count - 1;
    const int32_t wire = shape->wire[d] > 0 ? shape->wire[d] - 1 : d;
    return wire < last ? wire : last;
}

/* Ranks of the line that share a port of dimension `d`. */
static inline int32_t mc_shape_box(const mc_line_shape_t *shape, int32_t d)
{
    return mc_shape_block(shape, mc_shape_port(shape, d));
}

/* Outermost dimension of the line that is longer than 1: a round in which all ranks send crosses it. */
static inline int32_t mc_shape_top(const mc_line_shape_t *shape)
{
    int32_t d = shape->line.dims.first;
    while (d + 1 < shape->line.dims.first + shape->line.dims.count &&
           shape->mesh->dim[d].extent == 1)
        d++;
    return d;
}

/* Ranks of the line that agree with the one at `index` in all dimensions outside of `d` and differ in
 * `d`. */
static inline int32_t mc_shape_beyond(const mc_line_shape_t *shape, int32_t d, int32_t index)
{
    if (!shape->boxes)
        return mc_shape_block(shape, d) * (shape->mesh->dim[d].extent - 1);
    const int32_t inside = mc_boxes_size(shape->boxes, mc_boxes_find(shape->boxes, index));
    if (d == MC_RAGGED_BOX)
        return shape->line.len - inside;
    return d == MC_RAGGED_FOLD ? inside - 1 : 0;
}

/* The part of the tile that leaves the root of a scatter, or arrives at the root of a gather. */
static inline mc_ratio_t mc_shape_passed(const mc_line_shape_t *shape)
{
    const mc_ratio_t at_root = shape->at_root.num ? shape->at_root : mc_ratio(1, shape->line.len);
    return mc_ratio(at_root.den - at_root.num, at_root.den);
}

/* Factor by which messages of dimension `d` slow down when each line has `crossings` messages leave one
 * box at once: 1 unless they outnumber the ports. */
static inline mc_ratio_t mc_shape_slowed(const mc_line_shape_t *shape, int32_t d, int64_t crossings)
{
    const int64_t lines = crossings * shape->sharers[d];
    return lines > shape->ports[d] ? mc_ratio(lines, shape->ports[d]) : mc_ratio(1, 1);
}

/* Charges `rounds` messages of dimension `d`, each of which waits for the one before; together they carry
 * `part` of the tile. */
static inline void mc_charge(mc_cost_t *cost, const mc_line_shape_t *shape, int32_t d,
                             int64_t rounds, mc_ratio_t part, mc_ratio_t slowed, bool reduces)
{
    mc_term_t *term = &cost->dim[d];
    const mc_ratio_t moved = mc_ratio_mul(part, shape->share);
    term->alpha = mc_ratio_add(term->alpha, mc_ratio(rounds, 1));
    term->beta = mc_ratio_add(term->beta, mc_ratio_mul(moved, slowed));
    if (reduces)
        term->gamma = mc_ratio_add(term->gamma, moved);
}

/* Charges `messages` none of which waits for the one before: the first takes alpha, each other one a gap. */
static inline void mc_charge_row(mc_cost_t *cost, const mc_line_shape_t *shape, int32_t d,
                                 int64_t messages, mc_ratio_t part, mc_ratio_t slowed, bool reduces)
{
    mc_term_t *const term = &cost->dim[d];
    mc_charge(cost, shape, d, messages, part, slowed, reduces);
    if (messages > 1)
        term->row = mc_ratio_add(term->row, mc_ratio(messages - 1, 1));
}

/* Charges what messages of an inner dimension carry in rounds whose time is charged to an outer one. */
static inline void mc_charge_wire(mc_cost_t *inner, const mc_line_shape_t *shape, int32_t d,
                                  mc_ratio_t part, mc_ratio_t slowed)
{
    mc_term_t *const term = &inner->dim[d];
    term->beta = mc_ratio_add(term->beta, mc_ratio_mul(mc_ratio_mul(part, shape->share), slowed));
}

/* Returns `once` with the wires' load: that of its rounds, and what the inner wires carry in them. */
static inline mc_phase_cost_t mc_phase_with_inner(const mc_cost_t *once, const mc_cost_t *inner)
{
    return (mc_phase_cost_t){.once = *once, .busy = mc_cost_add(once, inner)};
}

/* Charges what all ranks of a line together send across dimension `d`: `messages` messages with `part` of
 * the tile each. */
static inline void mc_charge_messages(mc_cost_t *cost, const mc_line_shape_t *shape, int32_t d,
                                      int64_t messages, mc_ratio_t part)
{
    mc_term_t *const term = &cost->dim[d];
    const int64_t all = messages * shape->lines;
    term->messages += (double)all;
    term->volume = mc_ratio_add(term->volume,
                                mc_ratio_mul(mc_ratio_mul(part, shape->share), mc_ratio(all, 1)));
}

#endif
