/* Costs of the ring, chain, star and full-mesh algorithms, and of edge-disjoint spanning trees. */
#include "compose/cost/charge.h"

static mc_phase_cost_t same_when_busy(mc_cost_t once)
{
    return (mc_phase_cost_t){.once = once, .busy = once};
}

/* Hops that cross dimension `d` on one way round the ring. */
static int32_t hops_round(const mc_line_shape_t *shape, int32_t d)
{
    const mc_boxes_t *const boxes = shape->boxes;
    if (boxes && d != MC_RAGGED_BOX)
        return d == MC_RAGGED_FOLD ? shape->line.len - boxes->n : 0;
    if (boxes)
        return boxes->n;
    const int32_t p = shape->line.len, block = mc_shape_block(shape, d);
    const int32_t on_ring = p / block - p / (block * shape->mesh->dim[d].extent);
    const bool last_to_first = d == mc_shape_top(shape) && p > 1;
    return on_ring + last_to_first;
}

/* In every round one message of the line leaves each box, of whatever dimension, and one enters it: each
 * port passes it once. */
mc_phase_cost_t mc_cost_ring(const mc_line_shape_t *shape)
{
    mc_cost_t once = mc_cost_zero(), inner = mc_cost_zero();
    const int32_t p = shape->line.len, d = mc_shape_top(shape);
    const mc_ratio_t part = mc_ratio(p - 1, p);
    unsigned passed = 1u << mc_shape_port(shape, d);
    mc_charge(&once, shape, d, p - 1, part, mc_shape_slowed(shape, d, 1), shape->reduces);
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t e = shape->line.dims.first + i, hops = hops_round(shape, e);
        mc_charge_messages(&once, shape, e, (int64_t)(p - 1) * hops, mc_ratio(1, p));
        if (hops > 0 && !(passed >> mc_shape_port(shape, e) & 1))
            mc_charge_wire(&inner, shape, e, part, mc_shape_slowed(shape, e, 1));
        passed |= hops > 0 ? 1u << mc_shape_port(shape, e) : 0;
    }
    return mc_phase_with_inner(&once, &inner);
}

/* Outermost dimension of the line in which indices i and j differ. */
static int32_t level(const mc_line_shape_t *shape, int32_t i, int32_t j)
{
    const mc_boxes_t *const boxes = shape->boxes;
    if (boxes)
        return mc_boxes_find(boxes, i) == mc_boxes_find(boxes, j) ? MC_RAGGED_FOLD : MC_RAGGED_BOX;
    int32_t d = shape->line.dims.first;
    while (i / mc_shape_block(shape, d) == j / mc_shape_block(shape, d))
        d++;
    return d;
}

/* The index at which a chain begins. */
static int32_t chain_begin(const mc_line_shape_t *shape)
{
    return (shape->line.root + shape->reduces) % shape->line.len;
}

/* Each hop waits for the one before. A rank is ready for the next segment after one message. */
mc_phase_cost_t mc_cost_chain(const mc_line_shape_t *shape)
{
    mc_phase_cost_t cost = {.once = mc_cost_zero(), .busy = mc_cost_zero()};
    const int32_t p = shape->line.len, first = chain_begin(shape);
    if (p == 1)
        return cost;
    const int32_t missing = level(shape, first, (first + p - 1) % p);
    /* ports already charged, a bit each: one message of the line leaves a box, in whatever dimension */
    unsigned passed = 0;
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i, n = hops_round(shape, d) - (d == missing);
        const mc_ratio_t slowed = mc_shape_slowed(shape, d, 1);
        if (n == 0)
            continue;
        mc_charge(&cost.once, shape, d, n, mc_ratio(n, 1), slowed, shape->reduces);
        if (!(passed >> mc_shape_port(shape, d) & 1))
            mc_charge(&cost.busy, shape, d, 1, mc_ratio(1, 1), slowed, shape->reduces);
        passed |= 1u << mc_shape_port(shape, d);
        mc_charge_messages(&cost.once, shape, d, n, mc_ratio(1, 1));
        mc_charge_messages(&cost.busy, shape, d, n, mc_ratio(1, 1));
    }
    return cost;
}

/* The tree of rows carries half of the slices, rounded down, and the tree of columns the others. */
static mc_ratio_t half(const mc_line_shape_t *shape, bool columns)
{
    const int32_t p = shape->line.len;
    return mc_ratio((p + columns) / 2, p);
}

/* One row, along the inner dimensions. `lines` is 0: charge_trees counts the messages of all ranks. */
static mc_line_shape_t row_of(const mc_line_shape_t *shape, int32_t rows)
{
    const int32_t d = mc_shape_top(shape), columns = shape->line.len / rows;
    mc_line_shape_t row = *shape;
    row.line.dims = (mc_dims_t){d + 1, shape->line.dims.first + shape->line.dims.count - d - 1};
    row.line.len = columns;
    row.line.root = shape->line.root % columns;
    row.lines = 0;
    row.share = mc_ratio_mul(row.share, half(shape, true));
    return row;
}

/* Counts the messages of both trees. The tree of rows goes along one row, down all columns but one, and
 * in all rows but one from the last rank to the first; the tree of columns does the same with rows and
 * columns exchanged. */
static void charge_trees(mc_cost_t *cost, const mc_line_shape_t *shape, const mc_line_shape_t *row)
{
    const int32_t d = mc_shape_top(shape), columns = row->line.len, first = chain_begin(row);
    const int64_t down = shape->line.len / columns - 1, along = columns - 1;
    const int32_t missing = level(row, first, (first + columns - 1) % columns);
    const mc_ratio_t by_rows = half(shape, false), by_columns = half(shape, true);
    for (int32_t e = d + 1; e < row->line.dims.first + row->line.dims.count; e++) {
        const int64_t hops = hops_round(row, e) - (e == missing);
        mc_charge_messages(cost, shape, e, hops + (e == missing ? down : 0), by_rows);
        mc_charge_messages(cost, shape, e, hops * down, by_columns);
    }
    mc_charge_messages(cost, shape, d, along * down, by_rows);
    mc_charge_messages(cost, shape, d, along + down, by_columns);
}

/* Each tree goes along a row and down a column. The last messages of the two trees are concurrent: one
 * goes along a row, the other down a column. */
mc_phase_cost_t mc_cost_edst(const mc_line_shape_t *shape)
{
    const int32_t d = mc_shape_top(shape), rows = shape->mesh->dim[d].extent;
    if (shape->boxes || rows == shape->line.len)
        return mc_cost_chain(shape);
    const mc_line_shape_t row = row_of(shape, rows);
    mc_phase_cost_t cost = mc_cost_chain(&row);
    const mc_ratio_t slowed = mc_shape_slowed(shape, d, mc_shape_box(shape, d));
    mc_charge(&cost.once, &row, d, rows, mc_ratio(rows, 1), slowed, shape->reduces);
    mc_charge(&cost.busy, &row, d, 1, mc_ratio(1, 1), slowed, shape->reduces);
    charge_trees(&cost.once, shape, &row);
    charge_trees(&cost.busy, shape, &row);
    return cost;
}

/* The part of the tile that one other rank receives from the root, or sends to it. */
static mc_ratio_t star_part(const mc_line_shape_t *shape)
{
    return shape->slices ? mc_ratio_mul(mc_shape_passed(shape), mc_ratio(1, shape->line.len - 1))
                         : mc_ratio(1, 1);
}

/* The root handles p-1 messages one after another. Receivers that pull from it do so all at once, and those
 * of one box share its ports. */
mc_phase_cost_t mc_cost_star(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const mc_ratio_t part = star_part(shape);
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i, block = mc_shape_block(shape, d);
        const int32_t n = mc_shape_beyond(shape, d, shape->line.root);
        const bool at_once = shape->root_sends && shape->pulled[d] && n > 0;
        const int32_t rounds = at_once ? 1 : n;
        const mc_ratio_t moved = mc_ratio_mul(mc_ratio(rounds, 1), part);
        const mc_ratio_t slowed = mc_shape_slowed(shape, d, at_once ? block : 1);
        mc_charge_row(&cost, shape, d, rounds, moved, slowed, shape->reduces);
        mc_charge_messages(&cost, shape, d, n, part);
    }
    return same_when_busy(cost);
}

/* 1 + 2 + … + n. */
static int64_t sum_to(int64_t n)
{
    return n * (n + 1) / 2;
}

/* Port slots taken in rounds k = 1 … n, in which min(k, s) messages of each of `sharers` lines leave a box:
 * max(ports, sharers * min(k, s)) in each. */
static int64_t slots_to(int64_t n, int64_t s, int64_t sharers, int64_t ports)
{
    const int64_t enough = ports / sharers;
    if (s <= enough)
        return n * ports;
    const int64_t low = n < enough ? n : enough, top = n < s ? n : s;
    return low * ports + sharers * (sum_to(top) - sum_to(low) + (n - top) * s);
}

/* Ordered pairs of ranks of the line for which `d` is the outermost dimension in which they differ. */
static int64_t pairs(const mc_line_shape_t *shape, int32_t d)
{
    const mc_boxes_t *const boxes = shape->boxes;
    int64_t n = 0;
    if (!boxes)
        return (int64_t)shape->line.len * mc_shape_beyond(shape, d, 0);
    for (int32_t b = 0; b < boxes->n; b++)
        n += (int64_t)mc_boxes_size(boxes, b) * mc_shape_beyond(shape, d, boxes->first[b]);
    return n;
}

/* Messages in a row that the busiest port of dimension d carries, each way. Ranks of small boxes send most across the
 * network, and boxes of about half of all ranks. */
static mc_ratio_t fullmesh_load(const mc_line_shape_t *shape, int32_t d)
{
    const mc_boxes_t *const boxes = d == MC_RAGGED_BOX ? shape->boxes : NULL;
    const int32_t p = shape->line.len;
    if (!boxes) {
        const int32_t n = shape->boxes ? shape->boxes->most - 1 : mc_shape_beyond(shape, d, 0);
        return mc_ratio_mul(mc_ratio(n, 1), mc_shape_slowed(shape, d, mc_shape_box(shape, d)));
    }
    const int64_t ports = shape->ports[d];
    const bool own = mc_shape_box(shape, d) == 1;
    int64_t most = ports * (p - boxes->fewest);
    for (int32_t b = 0; b < boxes->n; b++) {
        const int64_t size = mc_boxes_size(boxes, b);
        const int64_t leave = (own ? 1 : size) * (p - size) * shape->sharers[d];
        most = leave > most ? leave : most;
    }
    return mc_ratio(most, ports);
}

/* Sets what the wires carry: each rank sends to and receives from every rank that differs from it in a dimension. */
static void load_fullmesh(mc_cost_t *busy, const mc_line_shape_t *shape, mc_ratio_t part)
{
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i;
        const mc_ratio_t load = fullmesh_load(shape, d);
        if (load.num > 0)
            busy->dim[d].beta = mc_ratio_mul(mc_ratio_mul(load, part), shape->share);
    }
}

/* In round k each rank sends to the rank k further; min(k, s, p-k) messages leave a box of s ranks. */
mc_phase_cost_t mc_cost_fullmesh(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const mc_ratio_t part = shape->slices ? mc_ratio(1, shape->line.len) : mc_ratio(1, 1);
    const int32_t p = shape->line.len, d = mc_shape_top(shape), s = mc_shape_box(shape, d);
    const int64_t ports = shape->ports[d], sharers = shape->sharers[d];
    const int64_t slots =
        slots_to((p - 1) / 2, s, sharers, ports) + slots_to(p / 2, s, sharers, ports);
    const mc_ratio_t slowed = p > 1 ? mc_ratio(slots, ports * (p - 1)) : mc_ratio(1, 1);
    const mc_ratio_t moved = mc_ratio_mul(mc_ratio(p - 1, 1), part);
    mc_charge_row(&cost, shape, d, p - 1, moved, slowed, shape->reduces);
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t e = shape->line.dims.first + i;
        mc_charge_messages(&cost, shape, e, pairs(shape, e), part);
    }
    mc_phase_cost_t both = same_when_busy(cost);
    load_fullmesh(&both.busy, shape, part);
    return both;
}

/* The line's first rank sums into the buffer that the others read, so on a pulled link it reads their
 * data after they have read its own. */
mc_phase_cost_t mc_cost_fullmesh_allreduce(const mc_line_shape_t *shape)
{
    mc_phase_cost_t cost = mc_cost_fullmesh(shape);
    const int32_t d = mc_shape_top(shape);
    mc_term_t *const once = &cost.once.dim[d];
    if (shape->pulled[d])
        once->beta = mc_ratio_add(once->beta, once->beta);
    return cost;
}
