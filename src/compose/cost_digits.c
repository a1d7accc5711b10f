/* Cost of the alltoall by digits. */
#include "compose/charge.h"
#include "direct/direct.h"

/* One round: everyone sends to the rank whose digit is `k` higher, modulo the radix. */
typedef struct {
    int32_t len, unit, radix, k;
} round_t;

static int32_t partner(const round_t *r, int32_t index, int32_t by)
{
    const int32_t digit = index / r->unit % r->radix;
    return index + ((digit + by) % r->radix - digit) * r->unit;
}

static int32_t common(int32_t a, int32_t b)
{
    return b == 0 ? a : common(b, a % b);
}

/* Messages that leave, or enter, the box of `block` ranks with the most of them. */
static int32_t crossings(const round_t *r, int32_t block)
{
    const int32_t turn = r->unit * r->radix; /* after which digits come again */
    int32_t most = 0;
    if (block % turn == 0)
        return 0;
    if (r->unit % block == 0)
        return block;
    for (int32_t first = 0; first < block / common(block, turn) * turn; first += block) {
        int32_t out = 0, in = 0;
        for (int32_t i = first; i < first + block; i++) {
            out += partner(r, i, r->k) / block != i / block;
            in += partner(r, i, r->radix - r->k) / block != i / block;
        }
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* Of the line's ranks so many send inside of their block of so many. The pattern comes again after whole
 * blocks and turns. */
static int32_t stay_inside(const round_t *r, int32_t block)
{
    const int32_t turn = r->unit * r->radix;
    if (block % turn == 0)
        return r->len;
    if (r->unit % block == 0)
        return 0;
    const int32_t both = block / common(block, turn) * turn;
    const int32_t period = r->len % both ? r->len : both; /* boxes of unequal sizes */
    int32_t inside = 0;
    for (int32_t i = 0; i < period; i++)
        inside += partner(r, i, r->k) / block == i / block;
    return inside * (r->len / period);
}

/* All ranks' messages, by the outermost dimension they cross. */
static void charge_messages(mc_cost_t *cost, const mc_line_shape_t *shape, const round_t *r)
{
    int32_t left = r->len;
    for (int32_t d = mc_shape_top(shape); left > 0; d++) {
        const int32_t inside = stay_inside(r, mc_shape_block(shape, d));
        if (left > inside)
            mc_charge_messages(cost, shape, d, left - inside, mc_ratio(1, r->radix));
        left = inside;
    }
}

/* Of boxes of unequal sizes, all by themselves: digits do not follow them. */
static void charge_ragged_round(mc_cost_t *cost, const mc_line_shape_t *shape, const round_t *r)
{
    const mc_boxes_t *const boxes = shape->boxes;
    int32_t most = 0, all = 0;
    for (int32_t b = 0; b < boxes->n; b++) {
        const int32_t first = boxes->first[b], end = boxes->first[b + 1];
        int32_t out = 0, in = 0;
        for (int32_t i = first; i < end; i++) {
            const int32_t to = partner(r, i, r->k), from = partner(r, i, r->radix - r->k);
            out += to < first || to >= end;
            in += from < first || from >= end;
        }
        all += out;
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    const int32_t d = most > 0 ? MC_RAGGED_BOX : MC_RAGGED_FOLD;
    mc_charge(cost, shape, d, 1, mc_ratio(1, r->radix), mc_shape_slowed(shape, d, most), false);
    mc_charge_messages(cost, shape, MC_RAGGED_BOX, all, mc_ratio(1, r->radix));
    mc_charge_messages(cost, shape, MC_RAGGED_FOLD, r->len - all, mc_ratio(1, r->radix));
}

static void charge_round(mc_cost_t *cost, const mc_line_shape_t *shape, const round_t *r)
{
    if (shape->boxes) {
        charge_ragged_round(cost, shape, r);
        return;
    }
    int32_t d = mc_shape_top(shape), n = crossings(r, mc_shape_block(shape, d));
    while (n == 0)
        n = crossings(r, mc_shape_block(shape, ++d));
    if (mc_shape_port(shape, d) != d)
        n = crossings(r, mc_shape_box(shape, d));
    mc_charge(cost, shape, d, 1, mc_ratio(1, r->radix), mc_shape_slowed(shape, d, n), false);
    charge_messages(cost, shape, r);
}

mc_phase_cost_t mc_cost_digits_alltoall(const mc_line_shape_t *shape)
{
    mc_cost_t cost = mc_cost_zero();
    round_t r = {.len = shape->line.len, .unit = 1};
    for (; r.unit < r.len; r.unit *= r.radix) {
        r.radix = mc_digits_radix(r.len, r.unit);
        for (r.k = 1; r.k < r.radix; r.k++)
            charge_round(&cost, shape, &r);
    }
    return (mc_phase_cost_t){cost, cost};
}
