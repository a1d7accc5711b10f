/*
 * Costs of recursive doubling and halving, of the aligned tree's sums, and of Bruck's allgather and
 * alltoall. On lengths that are no power of two, `surplus` ranks fold onto their neighbours, and the core
 * of the line, whose ranks are the members, has a power of two (mc_core_t). The messages that leave each
 * box are counted in every round, box by box only where boxes differ.
 */
#include "compose/cost/charge.h"
#include "doubling/doubling.h"

/* The rounds, each charged to the outermost dimension that it crosses, and what inner wires carry in them. */
typedef struct {
    mc_cost_t once, inner;
} sum_t;

static sum_t nothing(void)
{
    return (sum_t){mc_cost_zero(), mc_cost_zero()};
}

/* Counts the members below `v` that are the lower of two partners m apart: m lower ones and m upper ones
 * alternate. */
static int32_t lower_below(int32_t v, int32_t m)
{
    const int32_t rest = v % (2 * m);
    return v / (2 * m) * m + (rest < m ? rest : m);
}

/* The number of lower partners in [lo, hi) whose upper partner, m above, is at `end` or beyond. */
static int32_t lower_from(int32_t lo, int32_t hi, int32_t end, int32_t m)
{
    const int32_t first = end - m > lo ? end - m : lo;
    return first < hi ? lower_below(hi, m) - lower_below(first, m) : 0;
}

/* The first member whose index on the line is at least `index`. */
static int32_t member_from(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus ? (index + 1) / 2 : index - c.surplus;
}

/* Messages between members m apart that leave the box [at, at + block) of the line; as many enter it. */
static int32_t crossing(mc_core_t c, int32_t m, int32_t at, int32_t block)
{
    const int32_t lo = member_from(c, at), hi = member_from(c, at + block);
    const int32_t lower = lower_from(lo, hi, lo, m), upper = hi - lo - lower;
    const int32_t above = lower_from(lo, hi, hi, m), alone = lower_from(lo, hi, c.size, m);
    /* a lower partner whose upper one is in this box accounts for one upper partner here */
    return above - alone + upper - (lower - above);
}

typedef struct {
    int32_t most; /* of one box */
    int64_t all;
} crossings_t;

/* Boxes of `block` ranks along a line, and members of its core m apart. */
typedef struct {
    mc_core_t core;
    int32_t m, block;
} boxes_t;

/* Do the members from `lo` to the end of their half of a turn lack a partner? */
static bool is_alone(const boxes_t *b, int32_t lo)
{
    return lo >= b->core.size - b->m && lo % (2 * b->m) < b->m;
}

/* The number of boxes from `at` on whose members are all in one half of a turn of 2 m. Each of these
 * members has its partner in another box, or none of them has a partner. */
static int32_t equal_from(const boxes_t *b, int32_t at, int32_t end)
{
    const mc_core_t c = b->core;
    const int32_t lo = member_from(c, at), half = (lo / b->m + 1) * b->m, paired = c.size - b->m;
    int32_t limit = half < c.size ? half : c.size;
    if (lo < paired && paired < limit)
        limit = paired;
    int32_t stop = mc_core_index(c, limit);
    if (at < 2 * c.surplus && stop > 2 * c.surplus)
        stop = 2 * c.surplus;
    stop = stop < end ? stop : end;
    return stop > at ? (stop - at) / b->block : 0;
}

/* Adds the messages of a group of boxes, which occurs `times` times. */
static void add_crossings(crossings_t *n, crossings_t more, int32_t times)
{
    n->most = more.most > n->most ? more.most : n->most;
    n->all += times * more.all;
}

/* Messages that leave the boxes in [at, end). */
static crossings_t crossings_in(const boxes_t *b, int32_t at, int32_t end)
{
    crossings_t n = {0, 0};
    while (at < end) {
        const int32_t equal = equal_from(b, at, end), next = at + (equal ? equal : 1) * b->block;
        const int32_t lo = member_from(b->core, at), here = crossing(b->core, b->m, at, b->block);
        const int64_t paired = is_alone(b, lo) ? 0 : member_from(b->core, next) - lo;
        add_crossings(&n, (crossings_t){here, equal ? paired : here}, 1);
        /* among surplus ranks every other box of odd size has one member more */
        if (equal > 1)
            add_crossings(&n, (crossings_t){crossing(b->core, b->m, at + b->block, b->block), 0},
                          1);
        at = next;
    }
    return n;
}

/* Adds the same for boxes whose pattern repeats after `turn` ranks, a power of two: one period is
 * counted. */
static void add_repeated(const boxes_t *b, int32_t at, int32_t end, int32_t turn, crossings_t *n)
{
    const int32_t low = b->block & -b->block, period = turn / (low < turn ? low : turn);
    const int32_t boxes = (end - at) / b->block, again = boxes / period, rest = boxes % period;
    if (again > 0)
        add_crossings(n, crossings_in(b, at, at + period * b->block), again);
    add_crossings(n, crossings_in(b, at, at + rest * b->block), 1);
}

/* The end of the last whole box that ends in [at, upto]. */
static int32_t whole_boxes(const boxes_t *b, int32_t at, int32_t upto)
{
    return upto > at ? at + (upto - at) / b->block * b->block : at;
}

/* Adds the messages that leave the boxes in [at, end). Those of surplus ranks, and those whose ranks all have partners,
 * repeat; the others are counted one by one. */
static void add_boxes(const boxes_t *b, int32_t at, int32_t end, crossings_t *n)
{
    const int32_t surplus = 2 * b->core.surplus, paired = b->core.size - b->m;
    const int32_t first = whole_boxes(b, at, surplus < end ? surplus : end);
    const int32_t second = first < surplus && first < end ? first + b->block : first;
    const int32_t third =
        whole_boxes(b, second, mc_is_power(b->core.size) || paired > end ? end : paired);
    add_repeated(b, at, first, 4 * b->m, n);
    add_crossings(n, crossings_in(b, first, second), 1);
    add_repeated(b, second, third, 2 * b->m, n);
    add_crossings(n, crossings_in(b, third, end), 1);
}

/* Messages that leave boxes of dimension d. */
static crossings_t crossings(const mc_line_shape_t *shape, mc_core_t c, int32_t m, int32_t d)
{
    const mc_boxes_t *const boxes = mc_shape_boxes(shape, d);
    const int32_t block = mc_shape_block(shape, d);
    crossings_t n = {0, 0};
    if (!boxes && c.surplus == 0 && block % (2 * m) == 0)
        return n;
    if (!boxes && c.surplus == 0 && m % block == 0 && c.size % (2 * m) == 0)
        return (crossings_t){block, c.size};
    if (!boxes)
        add_boxes(&(boxes_t){c, m, block}, 0, shape->line.len, &n);
    for (int32_t box = 0, end; boxes && box < boxes->n; box = end) {
        const int32_t size = mc_boxes_size(boxes, box);
        for (end = box + 1; end < boxes->n && mc_boxes_size(boxes, end) == size;)
            end++;
        add_boxes(&(boxes_t){c, m, size}, boxes->first[box], boxes->first[end], &n);
    }
    return n;
}

/* A round between members m apart: what leaves boxes of each dimension, and the outermost one crossed. */
typedef struct {
    crossings_t of[MC_MAX_DIMS];
    int32_t top;
} exchange_t;

static exchange_t exchange_of(const mc_line_shape_t *shape, mc_core_t c, int32_t m)
{
    const int32_t first = shape->line.dims.first, end = first + shape->line.dims.count;
    exchange_t x = {.top = end};
    for (int32_t d = first; d < end; d++) {
        if (d == first || shape->mesh->dim[d].extent > 1)
            x.of[d] = crossings(shape, c, m, d);
        else
            x.of[d] = x.of[d - 1];
        x.top = x.top == end && x.of[d].most > 0 ? d : x.top;
    }
    return x;
}

/* Factor by which its messages of dimension d slow down. */
static mc_ratio_t slowed_at(const mc_line_shape_t *shape, const exchange_t *x, int32_t d)
{
    const bool own = mc_shape_box(shape, d) == 1;
    return mc_shape_slowed(shape, d, own ? 1 : x->of[mc_shape_port(shape, d)].most);
}

/* Counts one message of each member that has a partner. Dimension d is crossed by those that leave a box
 * of d, less those that leave a box of an outer dimension. In one round a port is charged once. */
static void charge_exchanges(sum_t *sum, const mc_line_shape_t *shape, const exchange_t *x,
                             mc_ratio_t part, bool counts)
{
    int64_t outer = 0;
    unsigned passed = 0;
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i, port = mc_shape_port(shape, d);
        const int64_t n = x->of[d].all - outer;
        outer = x->of[d].all;
        if (counts)
            mc_charge_messages(&sum->once, shape, d, n, part);
        if (n > 0 && passed && !(passed >> port & 1))
            mc_charge_wire(&sum->inner, shape, d, part, slowed_at(shape, x, d));
        passed |= n > 0 ? 1u << port : 0;
    }
}

/* Charges the time in which its members exchange `part`. */
static void charge_time(sum_t *sum, const mc_line_shape_t *shape, const exchange_t *x,
                        mc_ratio_t part, bool reduces)
{
    mc_charge(&sum->once, shape, x->top, 1, part, slowed_at(shape, x, x->top), reduces);
}

/* Each member that has a partner m apart exchanges `part` with it. */
static void charge_round(sum_t *sum, const mc_line_shape_t *shape, mc_core_t c, int32_t m,
                         mc_ratio_t part, bool reduces)
{
    const exchange_t x = exchange_of(shape, c, m);
    charge_time(sum, shape, &x, part, reduces);
    charge_exchanges(sum, shape, &x, part, true);
}

/* The number of pairs (0, 1), (2, 3), … of surplus ranks whose ranks are in different blocks of dimension d: a block
 * ends between them if the next begins at an odd index. */
static int64_t parted_pairs(const mc_line_shape_t *shape, int32_t d, int32_t surplus)
{
    const mc_boxes_t *const boxes = mc_shape_boxes(shape, d);
    const int32_t block = mc_shape_block(shape, d);
    int64_t n = 0;
    if (!boxes)
        return block % 2 ? ((2 * surplus - 1) / block + 1) / 2 : 0;
    for (int32_t b = 1; b < boxes->n && boxes->first[b] < 2 * surplus; b++)
        n += boxes->first[b] % 2;
    return n;
}

/* Surplus ranks send `part` to their neighbours, or receive it. At most one message leaves a box. */
static void charge_surplus(sum_t *sum, const mc_line_shape_t *shape, mc_core_t c, mc_ratio_t part,
                           bool reduces)
{
    int32_t top = shape->line.dims.first;
    if (c.surplus == 0)
        return;
    while (parted_pairs(shape, top, c.surplus) == 0)
        top++;
    int64_t outer = 0;
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i;
        const int64_t n = parted_pairs(shape, d, c.surplus);
        mc_charge_messages(&sum->once, shape, d, n - outer, part);
        if (d > top && n > outer && mc_shape_port(shape, d) != mc_shape_port(shape, top))
            mc_charge_wire(&sum->inner, shape, d, part, mc_shape_slowed(shape, d, 1));
        outer = n;
    }
    mc_charge(&sum->once, shape, top, 1, part, mc_shape_slowed(shape, top, 1), reduces);
}

/* The most slices that m consecutive members of the core stand for: those of the first m members. */
static mc_ratio_t largest_block(const mc_line_shape_t *shape, mc_core_t c, int32_t m)
{
    return mc_ratio(mc_core_index(c, m), shape->line.len);
}

/* Counts the classes of members modulo `every` that have members of both kinds: their slices are two messages. */
static int32_t mixed_classes(mc_core_t c, int32_t every)
{
    const int32_t doubles = c.surplus < every ? c.surplus : every;
    const int32_t singles = c.size - c.surplus < every ? c.size - c.surplus : every;
    return doubles + singles > every ? doubles + singles - every : 0;
}

/* A round between members m apart, whose slices are those of a class modulo 2 m. */
static void charge_class_round(sum_t *sum, const mc_line_shape_t *shape, mc_core_t c, int32_t m)
{
    const int32_t mixed = mixed_classes(c, 2 * m);
    const exchange_t x = exchange_of(shape, c, m);
    const mc_ratio_t part = mc_ratio(mc_core_class(c, 2 * m), shape->line.len);
    mc_charge_row(&sum->once, shape, x.top, mixed > 0 ? 2 : 1, part, slowed_at(shape, &x, x.top),
                  shape->reduces);
    charge_exchanges(sum, shape, &x, part, true);
    mc_charge_messages(&sum->once, shape, x.top, (int64_t)mixed * (c.size / (2 * m)),
                       mc_ratio(0, 1));
}

/* The largest round goes to members next to each other, the smallest to those half of the core apart. */
mc_phase_cost_t mc_cost_doubling_turned(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const mc_core_t c = mc_core(shape->line.len);
    const mc_ratio_t whole = mc_ratio(1, 1), slice = mc_ratio(1, shape->line.len);
    charge_surplus(&cost, shape, c, shape->reduces ? whole : slice, shape->reduces);
    for (int32_t m = 1; m < c.size; m *= 2)
        charge_class_round(&cost, shape, c, m);
    charge_surplus(&cost, shape, c, shape->reduces ? slice : whole, false);
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

mc_phase_cost_t mc_cost_doubling(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const mc_core_t c = mc_core(shape->line.len);
    const mc_ratio_t whole = mc_ratio(1, 1), slice = mc_ratio(1, shape->line.len);
    const bool gathers = shape->slices && !shape->reduces, scatters = shape->slices && !gathers;
    charge_surplus(&cost, shape, c, gathers ? slice : whole, shape->reduces);
    for (int32_t m = 1; m < c.size; m *= 2)
        charge_round(&cost, shape, c, m, shape->slices ? largest_block(shape, c, m) : whole,
                     shape->reduces);
    charge_surplus(&cost, shape, c, scatters ? slice : whole, false);
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

/* A core of all ranks of the line. If their number is no power of two, some have no partner. */
static mc_core_t all_of(const mc_line_shape_t *shape)
{
    return (mc_core_t){shape->line.len, 0};
}

/* Size of the last, short block, the partner of a block of m ranks; 0 if there is none. */
static int32_t short_block(const mc_line_shape_t *shape, int32_t m)
{
    const int32_t over = shape->line.len % (2 * m);
    return over > m ? over - m : 0;
}

/* The number of i below n with i % few < rest. */
static int64_t rests_below(int32_t n, int32_t few, int32_t rest)
{
    return (int64_t)(n / few) * rest + (n % few < rest ? n % few : rest);
}

/* Ranks few and above of a block of m have no partner in the short block of `few` ranks; rank few + i
 * receives from rank i % few of it instead. Returns how many of these messages leave a block of
 * dimension d. */
static int64_t unpaired(const mc_line_shape_t *shape, int32_t m, int32_t few, int32_t d)
{
    const mc_boxes_t *const boxes = mc_shape_boxes(shape, d);
    const int32_t first = shape->line.len - few - m, block = mc_shape_block(shape, d);
    const int32_t box = boxes ? mc_boxes_find(boxes, first + m) : 0;
    const int32_t begin = boxes ? boxes->first[box] : (first + m) / block * block;
    const int32_t end = boxes ? boxes->first[box + 1] : begin + block;
    const int32_t next = end - (first + m), rest = next < few ? next : few;
    const int32_t least = begin - first > few ? begin - first : few;
    const int64_t same = least < m ? rests_below(m, few, rest) - rests_below(least, few, rest) : 0;
    return m - few - same;
}

/* The time of these messages, up to `more` of one rank, is charged to dimension `top`. */
static void charge_unpaired(sum_t *sum, const mc_line_shape_t *shape, int32_t m, int32_t few,
                            int32_t more, int32_t top)
{
    int64_t outer = 0;
    for (int32_t i = 0; i < shape->line.dims.count && few > 0; i++) {
        const int32_t d = shape->line.dims.first + i;
        const int64_t n = unpaired(shape, m, few, d);
        mc_charge_messages(&sum->once, shape, d, n - outer, mc_ratio(1, 1));
        if (d > top && n > outer)
            mc_charge_wire(&sum->inner, shape, d, mc_ratio(more, 1), mc_shape_slowed(shape, d, 1));
        outer = n;
    }
}

/* A rank of the short block also sends to ranks without a partner of their own, in a row. */
mc_phase_cost_t mc_cost_aligned_allreduce(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const mc_core_t c = all_of(shape);
    for (int32_t m = 1; m < c.size; m *= 2) {
        const exchange_t x = exchange_of(shape, c, m);
        const int32_t few = short_block(shape, m), more = few ? (m + few - 1) / few - 1 : 0;
        const int32_t box = mc_shape_box(shape, x.top), leave = few < box ? few : box;
        charge_time(&cost, shape, &x, mc_ratio(1, 1), true);
        charge_exchanges(&cost, shape, &x, mc_ratio(1, 1), true);
        charge_unpaired(&cost, shape, m, few, more, x.top);
        if (more)
            mc_charge_row(&cost.once, shape, x.top, more, mc_ratio(more, 1),
                          mc_shape_slowed(shape, x.top, leave), false);
    }
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

/* If the length is no power of two, each slice is a message of its own, and the ranks of a short block
 * send more of them. */
mc_phase_cost_t mc_cost_aligned_reduce_scatter(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const mc_core_t c = all_of(shape);
    const int32_t p = c.size;
    for (int32_t m = 1; m < p; m *= 2) {
        const exchange_t x = exchange_of(shape, c, m);
        const int32_t few = short_block(shape, m);
        const int32_t usual = (p + 2 * m - 1) / (2 * m), core = few ? mc_core(few).size : 1;
        const int32_t most = few ? (p - few + core - 1) / core : 0;
        const int32_t slices = most > usual ? most : usual;
        charge_time(&cost, shape, &x, mc_ratio(slices, p), true);
        charge_exchanges(&cost, shape, &x, mc_ratio(slices, p), mc_is_power(p));
        if (!mc_is_power(p)) {
            mc_term_t *const term = &cost.once.dim[x.top];
            mc_charge_messages(&cost.once, shape, x.top, (int64_t)(p + m - 1) / (2 * m) * p,
                               mc_ratio(1, p));
            term->alpha = mc_ratio_add(term->alpha, mc_ratio(slices - 1, 1));
            term->row = mc_ratio_add(term->row, mc_ratio(slices - 1, 1));
        }
    }
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

/* Counts the ranks whose messages to the rank n away leave a block of dimension d. */
static int64_t leaving(const mc_line_shape_t *shape, int32_t d, int32_t n)
{
    const mc_boxes_t *const boxes = mc_shape_boxes(shape, d);
    const int32_t block = mc_shape_block(shape, d);
    int64_t all = 0;
    if (!boxes)
        return (int64_t)(shape->line.len / block) * (n < block ? n : block);
    for (int32_t b = 0; b < boxes->n; b++)
        all += n < mc_boxes_size(boxes, b) ? n : mc_boxes_size(boxes, b);
    return all;
}

/* Each rank sends `part` in `messages` messages to the rank n away, on either side: min(n, s) ranks of a
 * block of s send out of it. */
static void charge_turn(mc_cost_t *cost, const mc_line_shape_t *shape, int32_t n, int32_t messages,
                        mc_ratio_t part)
{
    int64_t outer = 0;
    for (int32_t i = 0; i < shape->line.dims.count; i++) {
        const int32_t d = shape->line.dims.first + i;
        if (shape->mesh->dim[d].extent > 1) {
            const int64_t leave = leaving(shape, d, n);
            const mc_ratio_t each = messages ? mc_ratio_mul(part, mc_ratio(1, messages)) : part;
            mc_charge_messages(cost, shape, d, (leave - outer) * messages, each);
            outer = leave;
        }
    }
}

/* Charges what such a round carries on the wires inside of the outermost dimension, to which its time is charged. Ranks
 * n apart are in one block of the next outer dimension if it is longer than n. */
static void charge_turn_inside(mc_cost_t *inner, const mc_line_shape_t *shape, int32_t n,
                               mc_ratio_t part)
{
    const int32_t top = mc_shape_top(shape), end = shape->line.dims.first + shape->line.dims.count;
    unsigned passed = 1u << mc_shape_port(shape, top);
    for (int32_t d = top + 1; d < end; d++) {
        const int32_t extent = shape->mesh->dim[d].extent, s = mc_shape_box(shape, d);
        const unsigned port = 1u << mc_shape_port(shape, d);
        if (extent == 1 || n >= mc_shape_block(shape, d) * extent || passed & port)
            continue;
        mc_charge_wire(inner, shape, d, part, mc_shape_slowed(shape, d, n < s ? n : s));
        passed |= port;
    }
}

/* In a round each rank sends `slices` slices to the rank k away, min(k, s, p-k) of a box of s out of it. Those of
 * `wrapping` ranks are two messages. */
static void charge_bruck_round(sum_t *sum, const mc_line_shape_t *shape, int32_t k, int32_t slices,
                               int32_t wrapping)
{
    const int32_t p = shape->line.len, d = mc_shape_top(shape), s = mc_shape_box(shape, d);
    const int32_t n = k < p - k ? k : p - k, leave = n < s ? n : s;
    const mc_ratio_t part = mc_ratio(slices, p);
    mc_charge(&sum->once, shape, d, wrapping > 0 ? 2 : 1, part, mc_shape_slowed(shape, d, leave),
              shape->reduces);
    charge_turn(&sum->once, shape, n, 1, part);
    charge_turn_inside(&sum->inner, shape, n, part);
    mc_charge_messages(&sum->once, shape, d, wrapping, mc_ratio(0, 1));
}

mc_phase_cost_t mc_cost_bruck_allgather(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const int32_t p = shape->line.len;
    for (int32_t k = 1; k < p; k *= 2) {
        const int32_t n = k < p - k ? k : p - k;
        charge_bruck_round(&cost, shape, k, n, 0);
    }
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

/* Every 2k-th slice: where they are not all of their kind, those past the line's end are a message of their own. */
mc_phase_cost_t mc_cost_bruck_turned(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const int32_t p = shape->line.len;
    for (int32_t k = 1; k < p; k *= 2) {
        const int32_t n = mc_bruck_far_slices(p, k), last = (n - 1) * 2 * k;
        charge_bruck_round(&cost, shape, k, n, n * 2 * k == p ? 0 : last);
    }
    return mc_phase_with_inner(&cost.once, &cost.inner);
}

/* Messages of one rank in the round of `unit`. Whole runs of slices go in one message, or, if they do not
 * fill the line, in one for each line outside of it; a run that the line's end cuts is one more. */
static int32_t bit_messages(const mc_line_shape_t *shape, int32_t unit)
{
    const int32_t p = shape->line.len, whole = p / (2 * unit), rest = p % (2 * unit);
    int32_t outside = 1;
    for (int32_t d = 0; d < shape->line.dims.first; d++)
        outside *= shape->mesh->dim[d].extent;
    return (whole > 1 && rest > 0 ? outside : whole > 0) + (rest > unit);
}

/* In the round of `unit`, min(unit, s, p-unit) ranks of a box of s send out of it. */
mc_phase_cost_t mc_cost_bruck_alltoall(const mc_line_shape_t *shape)
{
    sum_t cost = nothing();
    const int32_t p = shape->line.len, d = mc_shape_top(shape), s = mc_shape_box(shape, d);
    for (int32_t unit = 1; unit < p; unit *= 2) {
        const int32_t n = unit < p - unit ? unit : p - unit, leave = n < s ? n : s;
        const int32_t messages = bit_messages(shape, unit);
        const mc_ratio_t part = mc_ratio(mc_bruck_bit_slices(p, unit), p);
        mc_charge_row(&cost.once, shape, d, messages, part, mc_shape_slowed(shape, d, leave),
                      false);
        charge_turn(&cost.once, shape, n, messages, part);
        charge_turn_inside(&cost.inner, shape, n, part);
    }
    return mc_phase_with_inner(&cost.once, &cost.inner);
}
