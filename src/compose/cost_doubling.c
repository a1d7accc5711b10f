/* Costs of recursive doubling and halving, and of Bruck's allgather. */
#include "compose/charge.h"
#include "doubling/doubling.h"

static mc_phase_cost_t alike(mc_cost_t once)
{
    return (mc_phase_cost_t){once, once};
}

/* Of the members below `v`, those that have the lower partner's place: m apart, by turns m of them. */
static int32_t lower_below(int32_t v, int32_t m)
{
    const int32_t rest = v % (2 * m);
    return v / (2 * m) * m + (rest < m ? rest : m);
}

/* Those in [lo, hi) whose partner is no less than `end` above them, by m. */
static int32_t lower_from(int32_t lo, int32_t hi, int32_t end, int32_t m)
{
    const int32_t first = end - m > lo ? end - m : lo;
    return first < hi ? lower_below(hi, m) - lower_below(first, m) : 0;
}

/* The first member whose index is no less. */
static int32_t member_from(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus ? (index + 1) / 2 : index - c.surplus;
}

/* Messages between members m apart that leave (and enter) one box of dimension d: the most. By boxes, of
 * which there are few, as a box's members follow each other. */
static int32_t crossings(const mc_line_shape_t *shape, mc_core_t c, int32_t m, int32_t d)
{
    const int32_t block = mc_shape_block(shape, d);
    int32_t most = 0;
    if (c.surplus == 0 && block % (2 * m) == 0)
        return 0;
    if (c.surplus == 0 && m % block == 0 && c.size % (2 * m) == 0)
        return block;
    for (int32_t at = 0; at < shape->line.len && most < block; at += block) {
        const int32_t lo = member_from(c, at), hi = member_from(c, at + block);
        const int32_t lower = lower_from(lo, hi, lo, m), upper = hi - lo - lower;
        const int32_t above = lower_from(lo, hi, hi, m), alone = lower_from(lo, hi, c.size, m);
        /* what does not go up to another box stays, and is what comes up to one here */
        const int32_t n = above - alone + upper - (lower - above);
        most = n > most ? n : most;
    }
    return most;
}

/* The outermost dimension that members m apart exchange messages in. */
static int32_t top_of(const mc_line_shape_t *shape, mc_core_t c, int32_t m)
{
    int32_t d = shape->line.dims.first;
    while (crossings(shape, c, m, d) == 0)
        d++;
    return d;
}

static int32_t rounds_of(mc_core_t c)
{
    int32_t rounds = 0;
    while (1 << rounds < c.size)
        rounds++;
    return rounds;
}

/* All members exchange `part` with the one m apart. */
static void charge_round(mc_cost_t *cost, const mc_line_shape_t *shape, mc_core_t c, int32_t m,
                         mc_ratio_t part, bool reduces)
{
    const int32_t top = top_of(shape, c, m);
    const int32_t n = mc_shape_block(shape, top) == 1 ? 1 : crossings(shape, c, m, top);
    const mc_ratio_t slowed = mc_shape_slowed(shape, top, n);
    mc_charge(cost, shape, top, 1, part, slowed, reduces);
    /* one segment's rounds and the next one's have different partners */
    mc_charge_incast(cost, shape, top, rounds_of(c), part, slowed);
}

/* Surplus ranks give `part` to their neighbours, or get it; of a box one message leaves at most. */
static void charge_surplus(mc_cost_t *cost, const mc_line_shape_t *shape, mc_core_t c,
                           mc_ratio_t part, bool reduces)
{
    int32_t top = shape->line.dims.first;
    if (c.surplus == 0)
        return;
    /* pairs begin at even indices: one is parted by the end of an odd block among them */
    while (mc_shape_block(shape, top) % 2 == 0 || mc_shape_block(shape, top) >= 2 * c.surplus)
        top++;
    mc_charge(cost, shape, top, 1, part, mc_shape_slowed(shape, top, 1), reduces);
}

/* The largest run of slices that m members of the core stand for: the first. */
static mc_ratio_t largest_block(const mc_line_shape_t *shape, mc_core_t c, int32_t m)
{
    return mc_ratio(mc_core_index(c, m), shape->line.len);
}

mc_phase_cost_t mc_cost_doubling_allreduce(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const mc_core_t c = mc_core(shape->line.len);
    charge_surplus(&cost, shape, c, mc_ratio(1, 1), true);
    for (int32_t m = 1; m < c.size; m *= 2)
        charge_round(&cost, shape, c, m, mc_ratio(1, 1), true);
    charge_surplus(&cost, shape, c, mc_ratio(1, 1), false);
    return alike(cost);
}

mc_phase_cost_t mc_cost_halving_reduce_scatter(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const mc_core_t c = mc_core(shape->line.len);
    charge_surplus(&cost, shape, c, mc_ratio(1, 1), true);
    for (int32_t m = c.size / 2; m > 0; m /= 2)
        charge_round(&cost, shape, c, m, largest_block(shape, c, m), true);
    charge_surplus(&cost, shape, c, mc_ratio(1, shape->line.len), false);
    return alike(cost);
}

mc_phase_cost_t mc_cost_doubling_allgather(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const mc_core_t c = mc_core(shape->line.len);
    charge_surplus(&cost, shape, c, mc_ratio(1, shape->line.len), false);
    for (int32_t m = 1; m < c.size; m *= 2)
        charge_round(&cost, shape, c, m, largest_block(shape, c, m), false);
    charge_surplus(&cost, shape, c, mc_ratio(1, 1), false);
    return alike(cost);
}

/* A round's slices are two messages at ranks whose slices run over the line's end; the last rank's
 * do in every round but the first. In the round of k, min(k, s, p-k) ranks of a box of s send out of
 * it. */
mc_phase_cost_t mc_cost_bruck_allgather(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    const int32_t p = shape->line.len, d = mc_shape_top(shape), s = mc_shape_block(shape, d);
    int32_t rounds = 0;
    for (int32_t k = 1; k < p; k *= 2)
        rounds++;
    for (int32_t k = 1; k < p; k *= 2) {
        const int32_t n = k < p - k ? k : p - k, leave = n < s ? n : s;
        const mc_ratio_t slowed = mc_shape_slowed(shape, d, leave);
        mc_charge(&cost, shape, d, n > 1 ? 2 : 1, mc_ratio(n, p), slowed, false);
        mc_charge_incast(&cost, shape, d, rounds, mc_ratio(n, p), slowed);
    }
    return alike(cost);
}
