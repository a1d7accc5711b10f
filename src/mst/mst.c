#include "mst/mst.h"

typedef struct {
    int32_t lo, hi, root;
} part_t;

static part_t whole(mc_line_t l)
{
    return (part_t){0, l.len - 1, l.root};
}

/* Returns the half this rank is in. */
static part_t my_half(mc_halves_t h, mc_line_t l)
{
    const bool left = l.me <= h.mid, near_left = h.near <= h.mid;
    const int32_t root = left == near_left ? h.near : h.far;
    return left ? (part_t){h.lo, h.mid, root} : (part_t){h.mid + 1, h.hi, root};
}

/* Returns the slices of the half whose root is `far`. */
static mc_tile_t far_slices(mc_halves_t h, mc_line_t l, mc_tile_t v)
{
    return h.far > h.mid ? mc_slices(v, l, h.mid + 1, h.hi + 1) : mc_slices(v, l, h.lo, h.mid + 1);
}

static void bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v, part_t p)
{
    if (p.lo == p.hi)
        return;
    const mc_halves_t h = mc_halve(p.lo, p.hi, p.root);
    if (l.me == h.near)
        mc_send(b, mc_line_rank(l, h.far), v);
    if (l.me == h.far)
        mc_recv(b, mc_line_rank(l, h.near), v);
    bcast(b, l, v, my_half(h, l));
}

/* The sum of the left half is the left operand, so that the sum is in line order whatever the
 * root. */
static void reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v, part_t p, mc_halve_t halve)
{
    if (p.lo == p.hi)
        return;
    const mc_halves_t h = halve(p.lo, p.hi, p.root);
    reduce(b, l, v, my_half(h, l), halve);
    if (l.me == h.far)
        mc_send(b, mc_line_rank(l, h.near), v);
    if (l.me == h.near && h.near < h.far)
        mc_recv_reduce(b, mc_line_rank(l, h.far), v);
    if (l.me == h.near && h.near > h.far)
        mc_recv_reduce_before(b, mc_line_rank(l, h.far), v);
}

static void scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v, part_t p)
{
    if (p.lo == p.hi)
        return;
    const mc_halves_t h = mc_halve(p.lo, p.hi, p.root);
    if (l.me == h.near)
        mc_send(b, mc_line_rank(l, h.far), far_slices(h, l, v));
    if (l.me == h.far)
        mc_recv(b, mc_line_rank(l, h.near), far_slices(h, l, v));
    scatter(b, l, v, my_half(h, l));
}

static void gather(mc_builder_t *b, mc_line_t l, mc_tile_t v, part_t p)
{
    if (p.lo == p.hi)
        return;
    const mc_halves_t h = mc_halve(p.lo, p.hi, p.root);
    gather(b, l, v, my_half(h, l));
    if (l.me == h.far)
        mc_send(b, mc_line_rank(l, h.near), far_slices(h, l, v));
    if (l.me == h.near)
        mc_recv(b, mc_line_rank(l, h.far), far_slices(h, l, v));
}

mc_tile_t mc_mst_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    bcast(b, l, v, whole(l));
    return v;
}

mc_tile_t mc_mst_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    reduce(b, l, v, whole(l), mc_halve);
    return v;
}

mc_tile_t mc_mst_reduce_aligned(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    reduce(b, l, v, whole(l), mc_halve_aligned);
    return v;
}

mc_tile_t mc_mst_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    scatter(b, l, v, whole(l));
    return mc_slice(v, l, l.me);
}

mc_tile_t mc_mst_gather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    gather(b, l, mc_freed(v, l), whole(l));
    return mc_freed(v, l);
}
