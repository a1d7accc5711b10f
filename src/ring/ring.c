#include "ring/ring.h"

/* Each turn, pass one slice to the right and add the one received from the left. Rank k ends with
 * slice k + shift. */
static mc_tile_t reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t shift)
{
    const int32_t mine = l.me + shift;
    for (int32_t k = 1; k < l.len; k++) {
        const uint32_t start = b->n_steps;
        mc_send(b, mc_right(l), mc_slice(v, l, mine - k));
        mc_recv_reduce_along(b, l, mc_wrap(l, l.me - 1), mc_slice(v, l, mine - k - 1));
        mc_in_turns(b, start);
    }
    return mc_slice(v, l, mine);
}

/* Each turn, pass on the slice received last. Rank k starts with slice k + shift. */
static mc_tile_t allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v, int32_t shift)
{
    const int32_t mine = l.me + shift;
    for (int32_t k = 1; k < l.len; k++) {
        const uint32_t start = b->n_steps;
        mc_send(b, mc_right(l), mc_slice(v, l, mine - k + 1));
        mc_recv(b, mc_left(l), mc_slice(v, l, mine - k));
        mc_in_turns(b, start);
    }
    return mc_freed(v, l);
}

mc_tile_t mc_ring_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    return reduce_scatter(b, l, v, 0);
}

mc_tile_t mc_ring_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    return allgather(b, l, v, 0);
}

mc_tile_t mc_ring_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    return allgather(b, l, reduce_scatter(b, l, v, 1), 1);
}
