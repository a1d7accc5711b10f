#include "doubling/doubling.h"

/* Blocks [first, middle) and [middle, end) that are joined; in the last pair of a line the second
 * may be short. */
typedef struct {
    int32_t first, middle, end;
} pair_t;

static pair_t pair_of(mc_line_t l, int32_t index, int32_t block)
{
    const int32_t first = index / (2 * block) * (2 * block), end = first + 2 * block;
    return (pair_t){first, first + block, end < l.len ? end : l.len};
}

static bool meets(pair_t p)
{
    return p.middle < p.end;
}

/* Allreduce ------------------------------------------------------------------------------------ */

/* Receives aside: the own vector may still be in flight to a peer. */
static void exchange(mc_builder_t *b, mc_line_t l, mc_tile_t v, pair_t p)
{
    const int32_t there = p.end - p.middle, block = p.middle - p.first;
    const bool lower = l.me < p.middle;
    const int32_t at = l.me - (lower ? p.first : p.middle);
    if (!lower)
        for (int32_t to = at; to < block; to += there)
            mc_send(b, mc_line_rank(l, p.first + to), v);
    else if (at < there)
        mc_send(b, mc_line_rank(l, p.middle + at), v);
    mc_recv_aside(b, mc_line_rank(l, lower ? p.middle + at % there : p.first + at), v);
    if (lower)
        mc_reduce_behind(b, v);
    else
        mc_reduce_aside(b, v);
}

mc_tile_t mc_aligned_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t block = 1; block < l.len; block *= 2) {
        const pair_t p = pair_of(l, l.me, block);
        if (meets(p))
            exchange(b, l, v, p);
    }
    return v;
}

/* Reduce-scatter ------------------------------------------------------------------------------- */

/* Returns the rank of [first, end) that holds the sum over them of a slice: the slice's own rank
 * where it is one of them; else the core's ranks in turn, so that the holder of a block is also the
 * holder in one of its halves. */
static int32_t holder(int32_t first, int32_t end, int32_t slice)
{
    return first <= slice && slice < end ? slice : first + slice % mc_core(end - first).size;
}

/* The holder of one block sends its partial sum of a slice to the holder of the pair. */
static void join(mc_builder_t *b, mc_line_t l, mc_tile_t v, pair_t p, int32_t slice)
{
    const int32_t lower = holder(p.first, p.middle, slice), upper = holder(p.middle, p.end, slice);
    const int32_t to = holder(p.first, p.end, slice), from = to == lower ? upper : lower;
    if (l.me == from)
        mc_send(b, mc_line_rank(l, to), mc_slice(v, l, slice));
    else if (l.me == to && from == upper)
        mc_recv_reduce(b, mc_line_rank(l, from), mc_slice(v, l, slice));
    else if (l.me == to)
        mc_recv_reduce_before(b, mc_line_rank(l, from), mc_slice(v, l, slice));
}

mc_tile_t mc_aligned_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (mc_is_power(l.len))
        return mc_halving_near_reduce_scatter(b, l, v);
    for (int32_t block = 1; block < l.len; block *= 2) {
        const pair_t p = pair_of(l, l.me, block);
        for (int32_t slice = 0; slice < l.len && meets(p); slice++)
            join(b, l, v, p, slice);
    }
    return mc_slice(v, l, l.me);
}
