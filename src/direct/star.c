#include "direct/direct.h"

static int32_t index_after_root(mc_line_t l, int32_t k)
{
    return mc_wrap(l, l.root + k);
}

mc_tile_t mc_star_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (l.me != l.root)
        mc_recv(b, mc_line_rank(l, l.root), v);
    for (int32_t k = 1; k < l.len && l.me == l.root; k++)
        mc_send(b, mc_line_rank(l, index_after_root(l, k)), v);
    return v;
}

mc_tile_t mc_star_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (l.me != l.root)
        mc_send(b, mc_line_rank(l, l.root), v);
    /* from the root outwards on either side, so that the sum is in line order */
    for (int32_t i = l.root - 1; i >= 0 && l.me == l.root; i--)
        mc_recv_reduce_before(b, mc_line_rank(l, i), v);
    for (int32_t i = l.root + 1; i < l.len && l.me == l.root; i++)
        mc_recv_reduce(b, mc_line_rank(l, i), v);
    return v;
}

mc_tile_t mc_star_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (l.me != l.root)
        mc_recv(b, mc_line_rank(l, l.root), mc_slice(v, l, l.me));
    for (int32_t k = 1; k < l.len && l.me == l.root; k++) {
        const int32_t index = index_after_root(l, k);
        mc_send(b, mc_line_rank(l, index), mc_slice(v, l, index));
    }
    return mc_slice(v, l, l.me);
}

mc_tile_t mc_star_gather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (l.me != l.root)
        mc_send(b, mc_line_rank(l, l.root), mc_slice(v, l, l.me));
    for (int32_t k = 1; k < l.len && l.me == l.root; k++) {
        const int32_t index = index_after_root(l, k);
        mc_recv(b, mc_line_rank(l, index), mc_slice(v, l, index));
    }
    return mc_freed(v, l);
}
