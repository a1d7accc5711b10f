/* Cost of the alltoall by digits (mc_digits_alltoall): the number of messages of each round that leave a
 * box is counted, not bounded. */
#include "compose/cost/charge.h"
#include "direct/direct.h"

/* One round: each rank sends to the rank whose digit is `k` higher, modulo the radix. `unit`: distance of
 * ranks whose digits differ by 1; `turn`: number of ranks after which the digits repeat. */
typedef struct {
    int32_t len, unit, radix, turn, k;
} round_t;

/* `n` consecutive blocks of `size` ranks each; the first block starts at rank `first`. */
typedef struct {
    int32_t first, size, n;
} run_t;

/* `inside`: ranks that send to their own block; `most`: the most ranks of one block that send to other
 * blocks, which is also the most messages that one block receives. */
typedef struct {
    int64_t inside;
    int32_t most;
} sent_t;

/* Counts the ranks among `n` consecutive ones of one turn that send to one of these `n`: k units up or,
 * where the digit wraps, radix - k units down. */
static int32_t among(const round_t *r, int32_t n)
{
    const int32_t up = n - r->k * r->unit, down = n - (r->radix - r->k) * r->unit;
    return (up > 0 ? up : 0) + (down > 0 ? down : 0);
}

/* Counts the ranks among `n` consecutive ones of several turns that send to one of these `n`; `room` of them
 * are in the first turn. In a whole turn all ranks send inside. */
static int32_t among_turns(const round_t *r, int32_t n, int32_t room)
{
    const int32_t rest = n - room, tail = rest % r->turn;
    return among(r, room) + rest - tail + among(r, tail);
}

/* Blocks inside one turn have equal counts, so one of them is counted. */
static void count_run(const round_t *r, const run_t *run, sent_t *sent)
{
    for (int32_t b = 0, n; b < run->n; b += n) {
        const int32_t room = r->turn - (run->first + b * run->size) % r->turn;
        const int32_t fitting = room / run->size, left = run->n - b;
        const int32_t inside = fitting > 0 ? among(r, run->size) : among_turns(r, run->size, room);
        n = fitting == 0 ? 1 : fitting < left ? fitting : left;
        sent->inside += (int64_t)inside * n;
        sent->most = run->size - inside > sent->most ? run->size - inside : sent->most;
    }
}

static sent_t sent_by(const round_t *r, int32_t block)
{
    const run_t all = {0, block, r->len / block};
    sent_t sent = {0, 0};
    if (block % r->turn == 0)
        return (sent_t){r->len, 0};
    if (r->unit % block == 0)
        return (sent_t){0, block};
    count_run(r, &all, &sent);
    return sent;
}

/* Rounds, and port slots taken in them (`ports` each where the ports suffice, see mc_shape_slowed). */
typedef struct {
    int64_t rounds, slots;
} slots_t;

/* Sums over a digit's rounds for one dimension: rounds charged to it, rounds charged to an outer one in which
 * it is crossed too, and messages that cross it. */
typedef struct {
    slots_t own, inner;
    int64_t messages;
} tally_t;

static void add_round(slots_t *slots, const mc_line_shape_t *shape, int32_t d, int32_t crossings)
{
    const int64_t lines = (int64_t)crossings * shape->sharers[d], ports = shape->ports[d];
    slots->rounds++;
    slots->slots += lines > ports ? lines : ports;
}

/* Adjacent boxes of one size, from box `b` on. */
static run_t run_from(const mc_boxes_t *boxes, int32_t b)
{
    run_t run = {boxes->first[b], mc_boxes_size(boxes, b), 1};
    while (b + run.n < boxes->n && mc_boxes_size(boxes, b + run.n) == run.size)
        run.n++;
    return run;
}

/* Boxes of unequal sizes do not align with digits, so each run of boxes is counted; unless the round goes
 * further than the largest box, as all but a few do where the radix is large. */
static void count_ragged(tally_t *tally, const mc_line_shape_t *shape, const round_t *r)
{
    const int32_t largest = shape->boxes->most, up = r->k * r->unit;
    const bool leaves = up >= largest && r->turn - up >= largest;
    sent_t sent = {0, leaves ? largest : 0};
    for (int32_t b = 0; b < shape->boxes->n && !leaves;) {
        const run_t run = run_from(shape->boxes, b);
        count_run(r, &run, &sent);
        b += run.n;
    }
    const int32_t d = sent.most > 0 ? MC_RAGGED_BOX : MC_RAGGED_FOLD;
    add_round(&tally[d].own, shape, d, sent.most);
    if (sent.most > 0 && sent.inside > 0)
        add_round(&tally[MC_RAGGED_FOLD].inner, shape, MC_RAGGED_FOLD, 1);
    tally[MC_RAGGED_BOX].messages += r->len - sent.inside;
    tally[MC_RAGGED_FOLD].messages += sent.inside;
}

/* Charges the round to the outermost dimension crossed, once to each port, and counts each message at the
 * dimension that it crosses itself. */
static void count_round(tally_t *tally, const mc_line_shape_t *shape, const round_t *r)
{
    int64_t left = r->len;
    unsigned passed = 0;
    for (int32_t d = mc_shape_top(shape); left > 0; d++) {
        const int32_t port = mc_shape_port(shape, d);
        const sent_t sent = sent_by(r, mc_shape_block(shape, d));
        const bool crossed = left > sent.inside;
        if (crossed && !(passed >> port & 1))
            add_round(passed ? &tally[d].inner : &tally[d].own, shape, d,
                      port == d ? sent.most : sent_by(r, mc_shape_box(shape, d)).most);
        passed |= crossed ? 1u << port : 0;
        tally[d].messages += left - sent.inside;
        left = sent.inside;
    }
}

/* The part of the tile that the rounds move, and by how much the ports slow them down. */
static mc_ratio_t part_of(const slots_t *slots, const round_t *r)
{
    return mc_ratio(slots->rounds, r->radix);
}

static mc_ratio_t slowed_of(const slots_t *slots, const mc_line_shape_t *shape, int32_t d)
{
    return mc_ratio(slots->slots, slots->rounds * shape->ports[d]);
}

static void charge_digit(mc_cost_t *once, mc_cost_t *inner, const mc_line_shape_t *shape, round_t r)
{
    tally_t tally[MC_MAX_DIMS] = {{.messages = 0}};
    for (r.k = 1; r.k < r.radix; r.k++) {
        if (shape->boxes)
            count_ragged(tally, shape, &r);
        else
            count_round(tally, shape, &r);
    }
    for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
        const slots_t *const own = &tally[d].own, *const in = &tally[d].inner;
        if (own->rounds > 0)
            mc_charge(once, shape, d, own->rounds, part_of(own, &r), slowed_of(own, shape, d),
                      false);
        if (in->rounds > 0)
            mc_charge_wire(inner, shape, d, part_of(in, &r), slowed_of(in, shape, d));
        if (tally[d].messages > 0)
            mc_charge_messages(once, shape, d, tally[d].messages, mc_ratio(1, r.radix));
    }
}

mc_phase_cost_t mc_cost_digits_alltoall(const mc_line_shape_t *shape)
{
    mc_cost_t once = mc_cost_zero(), inner = mc_cost_zero();
    round_t r = {.len = shape->line.len, .unit = 1};
    for (; r.unit < r.len; r.unit = r.turn) {
        r.radix = mc_digits_radix(r.len, r.unit);
        r.turn = r.unit * r.radix;
        charge_digit(&once, &inner, shape, r);
    }
    return mc_phase_with_inner(&once, &inner);
}
