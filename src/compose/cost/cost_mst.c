/*
 * Costs of the MST algorithms. On a merged line the recursive halving of src/mst is followed interval by
 * interval: each depth is a round, charged to the outermost dimension that any of its messages crosses.
 * Of equal intervals one is followed, so the work grows with the number of boxes that are cut in different
 * ways, not with the number of ranks.
 */
#include "compose/cost/charge.h"
#include "mst/mst.h"

#include <string.h>

/* Messages of one round that leave (or enter) a box: `n` of `box`, the box that is being counted. */
typedef struct {
    int32_t box, n;
} tally_t;

typedef struct {
    /* by port: messages, and the outermost dimension that they cross */
    tally_t out[MC_MAX_DIMS], in[MC_MAX_DIMS];
    int8_t level[MC_MAX_DIMS];
    int8_t top; /* outermost dimension crossed */
} round_t;

typedef struct {
    const mc_line_shape_t *shape;
    mc_halve_t halve;
    int32_t block[MC_MAX_DIMS], n_rounds;
    int32_t inner; /* innermost dimension longer than 1 */
    /* depths (a bit each) at which a whole block was followed, by its root's end: left, right */
    uint32_t seen[MC_MAX_DIMS][2];
    round_t round[MC_MAX_ROUNDS];
    /* `sent` are the slices that the root sends, 0 after its last message. `inner` is by port until the walk
     * ends: the most messages of any box, and the slices of the largest. */
    mc_round_t *found;
} walk_t;

/* Intervals of one depth are visited from left to right, so the messages of a box are adjacent. */
static void count(tally_t *tally, int32_t box, int32_t *most)
{
    tally->n = tally->box == box ? tally->n + 1 : 1;
    tally->box = box;
    if (tally->n > *most)
        *most = tally->n;
}

static void note_port(walk_t *walk, int32_t depth, int32_t port, int32_t level, int32_t slices)
{
    round_t *const round = &walk->round[depth];
    int32_t *const most = &walk->found[depth].inner[port].slices;
    if (level < round->level[port])
        round->level[port] = (int8_t)level;
    if (slices > *most)
        *most = slices;
}

/* The block of dimension d that the rank at `index` is in. */
static int32_t block_of(const walk_t *walk, int32_t d, int32_t index)
{
    const mc_boxes_t *const boxes = mc_shape_boxes(walk->shape, d);
    return boxes ? mc_boxes_find(boxes, index) : index / walk->block[d];
}

static void note(walk_t *walk, int32_t depth, int32_t from, int32_t to, int32_t slices)
{
    round_t *round = &walk->round[depth];
    int32_t d = walk->shape->line.dims.first;
    while (block_of(walk, d, from) == block_of(walk, d, to))
        d++;
    if (depth >= walk->n_rounds)
        walk->n_rounds = depth + 1;
    if (d < round->top)
        round->top = (int8_t)d;
    if (from == walk->shape->line.root)
        walk->found[depth].sent = slices;
    note_port(walk, depth, mc_shape_port(walk->shape, d), d, slices);
    d = mc_shape_port(walk->shape, d);
    int32_t *const most = &walk->found[depth].inner[d].most;
    count(&round->out[d], block_of(walk, d, from), most);
    count(&round->in[d], block_of(walk, d, to), most);
}

/* Notes the rounds of an interval inside one line of the innermost dimension, in which each rank sends or
 * receives at most one message a round. Returns false if the interval is no such one. */
static bool inside(walk_t *walk, int32_t depth, int32_t lo, int32_t hi)
{
    if (block_of(walk, walk->inner - 1, lo) != block_of(walk, walk->inner - 1, hi))
        return false;
    int32_t len = hi - lo + 1;
    for (int32_t r = depth, end = depth + mc_rounds(len, 1); r < end; r++) {
        round_t *const round = &walk->round[r];
        note_port(walk, r, walk->inner, walk->inner, (len + 1) / 2);
        len = (len + 1) / 2;
        round->top = walk->inner < round->top ? (int8_t)walk->inner : round->top;
        walk->found[r].inner[walk->inner].most = 1;
        walk->n_rounds = r >= walk->n_rounds ? r + 1 : walk->n_rounds;
    }
    return true;
}

/* Is the interval a whole block of some dimension, of which an equal one was followed at this depth? */
static bool as_before(walk_t *walk, int32_t depth, int32_t lo, int32_t hi, int32_t root)
{
    for (int32_t d = walk->shape->line.dims.first; d < walk->inner && !walk->shape->boxes; d++) {
        const int32_t block = walk->block[d];
        if (hi - lo + 1 != block || lo % block != 0)
            continue;
        uint32_t *const seen = &walk->seen[d][root == hi];
        if (*seen >> depth & 1)
            return true;
        *seen |= UINT32_C(1) << depth;
        return false;
    }
    return false;
}

static void walk_halves(walk_t *walk, int32_t depth, int32_t lo, int32_t hi, int32_t root)
{
    if (lo == hi)
        return;
    /* the subtree root of an interval without the line's root is at one of its ends */
    if (root != walk->shape->line.root &&
        (inside(walk, depth, lo, hi) || as_before(walk, depth, lo, hi, root)))
        return;
    const mc_halves_t h = walk->halve(lo, hi, root);
    const bool near_left = h.near <= h.mid;
    note(walk, depth, h.near, h.far, near_left ? h.hi - h.mid : h.mid - h.lo + 1);
    walk_halves(walk, depth + 1, h.lo, h.mid, near_left ? h.near : h.far);
    walk_halves(walk, depth + 1, h.mid + 1, h.hi, near_left ? h.far : h.near);
}

static void walk_init(walk_t *walk, const mc_line_shape_t *shape)
{
    const tally_t none = {-1, 0};
    *walk = (walk_t){.shape = shape, .halve = shape->aligned ? mc_halve_aligned : mc_halve};
    for (int32_t d = shape->line.dims.first; d < shape->line.dims.first + shape->line.dims.count;
         d++)
        if (shape->mesh->dim[d].extent > 1)
            walk->inner = d;
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        walk->block[d] = mc_shape_block(shape, d);
    for (int32_t r = 0; r < MC_MAX_ROUNDS; r++) {
        walk->round[r].top = MC_MAX_DIMS;
        for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
            walk->round[r].out[d] = walk->round[r].in[d] = none;
            walk->round[r].level[d] = MC_MAX_DIMS;
        }
    }
}

MC_APART static int32_t find_rounds(const mc_line_shape_t *shape, mc_round_t found[MC_MAX_ROUNDS])
{
    walk_t walk;
    walk_init(&walk, shape);
    walk.found = found;
    memset(found, 0, MC_MAX_ROUNDS * sizeof *found);
    walk_halves(&walk, 0, 0, shape->line.len - 1, shape->line.root);
    for (int32_t r = 0; r < walk.n_rounds; r++) {
        const round_t *const round = &walk.round[r];
        const int32_t port = mc_shape_port(shape, round->top);
        const mc_round_t by_port = found[r];
        /* the textbook's time is the root's; between unequal boxes other ranks may send more */
        const int32_t others = shape->boxes ? by_port.inner[port].slices : 0;
        found[r] = (mc_round_t){round->top,
                                others > by_port.sent ? others : by_port.sent,
                                by_port.inner[port].most,
                                {{0, 0}}};
        for (int32_t d = 0; d < MC_MAX_DIMS; d++)
            if (d != port && round->level[d] < MC_MAX_DIMS)
                found[r].inner[round->level[d]] = by_port.inner[d];
    }
    return walk.n_rounds;
}

/* The part of the tile that a message of `slices` carries. */
static mc_ratio_t part_of(const mc_line_shape_t *shape, int32_t slices)
{
    return shape->slices
               ? mc_ratio_mul(mc_shape_passed(shape), mc_ratio(slices, shape->line.len - 1))
               : mc_ratio(1, 1);
}

static void charge_inner(mc_cost_t *inner, const mc_line_shape_t *shape, const mc_round_t *round)
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        if (round->inner[d].most > 0)
            mc_charge_wire(inner, shape, d, part_of(shape, round->inner[d].slices),
                           mc_shape_slowed(shape, d, round->inner[d].most));
}

MC_APART static mc_phase_cost_t merged(const mc_line_shape_t *shape)
{
    const mc_dims_t dims = shape->line.dims;
    mc_walks_t *const walks = shape->aligned ? NULL : shape->walks;
    mc_cost_t once = mc_cost_zero(), inner = mc_cost_zero();
    mc_round_t mine[MC_MAX_ROUNDS], *round = mine;
    int32_t own = 0, *n = &own;
    if (walks) {
        round = walks->line[dims.first][dims.first + dims.count - 1].round;
        n = &walks->line[dims.first][dims.first + dims.count - 1].n;
    }
    if (*n == 0)
        *n = find_rounds(shape, round);
    for (int32_t r = 0; r < *n; r++) {
        mc_charge(&once, shape, round[r].top, 1, part_of(shape, round[r].sent),
                  mc_shape_slowed(shape, round[r].top, round[r].most), shape->reduces);
        charge_inner(&inner, shape, &round[r]);
    }
    return mc_phase_with_inner(&once, &inner);
}

/* The textbook's formula. On a plain line no box sends or receives two messages of a line in a round. */
static mc_phase_cost_t plain(const mc_line_shape_t *shape, int32_t d)
{
    mc_cost_t cost = mc_cost_zero();
    const int32_t p = shape->line.len, rounds = mc_rounds(p, 1);
    const mc_ratio_t part = shape->slices ? mc_shape_passed(shape) : mc_ratio(rounds, 1);
    mc_charge(&cost, shape, d, rounds, part, mc_shape_slowed(shape, d, 1), shape->reduces);
    return (mc_phase_cost_t){.once = cost, .busy = cost};
}

/* Numbers of intervals of one depth of a halving, without the one that has the line's root: they have k
 * or k + 1 ranks, and their subtree roots are at an end. */
typedef struct {
    int32_t k;
    int64_t n[2][2]; /* [k or k + 1 ranks][subtree root at the left or right end] */
} depth_t;

static void add_interval(depth_t *to, int32_t size, bool right, int64_t n)
{
    if (n > 0)
        to->n[size - to->k][right] += n;
}

/* Halves all intervals of `from` into `to`. Returns the slices that they send. */
static int64_t halve_all(const depth_t *from, depth_t *to)
{
    int64_t slices = 0;
    for (int32_t more = 0; more < 2; more++)
        for (int32_t right = 0; right < 2; right++) {
            const int32_t size = from->k + more;
            const int64_t n = from->n[more][right];
            if (n == 0 || size < 2)
                continue;
            /* the halves' subtree roots are at the two ends of the interval */
            add_interval(to, size - size / 2, false, n);
            add_interval(to, size / 2, true, n);
            slices += n * (right ? size - size / 2 : size / 2);
        }
    return slices;
}

/* Slices that all p ranks together send in a scatter by halving. */
static int64_t slices_passed(int32_t p, int32_t root)
{
    int64_t slices = 0;
    int32_t lo = 0, hi = p - 1;
    depth_t at = {.k = p};
    while (hi > lo || at.k > 1 || at.n[1][0] + at.n[1][1] > 0) {
        depth_t next = {.k = at.k / 2};
        slices += halve_all(&at, &next);
        if (hi > lo) {
            const mc_halves_t h = mc_halve(lo, hi, root);
            const bool right = h.far > h.mid;
            const int32_t far = right ? h.hi - h.mid : h.mid - h.lo + 1;
            add_interval(&next, far, right, 1);
            slices += far;
            lo = right ? lo : h.mid + 1;
            hi = right ? h.mid : hi;
        }
        at = next;
    }
    return slices;
}

/* Between boxes of unequal sizes the tree sends one message to each box but the root's. */
static void charge_ragged_tree(mc_cost_t *cost, const mc_line_shape_t *shape)
{
    const int32_t p = shape->line.len, boxes = shape->boxes->n, inside = p - boxes;
    const int64_t all = shape->slices ? slices_passed(p, shape->line.root) : (int64_t)(p - 1) * p;
    const mc_ratio_t part = mc_ratio(all, (int64_t)(p - 1) * p);
    mc_charge_messages(cost, shape, MC_RAGGED_BOX, boxes - 1, part);
    mc_charge_messages(cost, shape, MC_RAGGED_FOLD, inside, part);
}

/* Counts the messages of a tree whose subtrees are the blocks of the line: in each dimension one less than
 * there are blocks. This is an approximation if a halving cuts through a block: some of its messages then
 * cross an outer dimension instead. */
static void charge_tree(mc_cost_t *cost, const mc_line_shape_t *shape)
{
    const int32_t p = shape->line.len;
    if (shape->boxes) {
        charge_ragged_tree(cost, shape);
        return;
    }
    for (int32_t d = shape->line.dims.first; d < shape->line.dims.first + shape->line.dims.count;
         d++) {
        const int32_t extent = shape->mesh->dim[d].extent, block = mc_shape_block(shape, d);
        const int32_t trees = p / (block * extent), root = shape->line.root / block % extent;
        const int64_t n = (int64_t)trees * (extent - 1);
        if (n == 0)
            continue;
        const int64_t slices = shape->slices ? slices_passed(extent, root) * trees * block : n * p;
        mc_charge_messages(cost, shape, d, n, mc_ratio(slices, n * p));
    }
}

/* `busy` has the rounds of `once`: the root sends or receives in every round of a segment. */
mc_phase_cost_t mc_cost_mst(const mc_line_shape_t *shape)
{
    const int32_t top = mc_shape_top(shape);
    const bool is_plain = mc_shape_block(shape, top) == 1;
    mc_phase_cost_t cost = is_plain ? plain(shape, top) : merged(shape);
    charge_tree(&cost.once, shape);
    charge_tree(&cost.busy, shape);
    return cost;
}
