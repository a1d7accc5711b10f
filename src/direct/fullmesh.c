#include "direct/direct.h"

static int32_t right_by(mc_line_t l, int32_t k)
{
    return mc_line_rank(l, mc_wrap(l, l.me + k));
}

static int32_t left_by(mc_line_t l, int32_t k)
{
    return mc_line_rank(l, mc_wrap(l, l.me - k));
}

mc_tile_t mc_fullmesh_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k++) {
        const uint32_t start = b->n_steps;
        mc_send(b, right_by(l, k), mc_slice(v, l, l.me));
        mc_recv(b, left_by(l, k), mc_slice(v, l, l.me - k));
        mc_in_turns(b, start);
    }
    return mc_freed(v, l);
}

mc_tile_t mc_fullmesh_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k++) {
        const uint32_t start = b->n_steps;
        mc_send(b, right_by(l, k), mc_slice(v, l, l.me + k));
        mc_recv_reduce_along(b, l, mc_wrap(l, l.me - k), mc_slice(v, l, l.me));
        mc_in_turns(b, start);
    }
    return mc_slice(v, l, l.me);
}

/* Vectors of ranks before this one are summed aside, then its own is added, then the rest: x0 + x1
 * + x2 … on every rank. A single vector is received aside too: added to its own at once it would
 * wait for this rank's sends of that vector, while the peers' sends wait for their own receives. */
static void sum_in_line_order(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (l.me > 0) {
        mc_recv_aside(b, mc_line_rank(l, 0), v);
        for (int32_t i = 1; i < l.me; i++)
            mc_recv_reduce_aside(b, mc_line_rank(l, i), v);
        mc_reduce_aside(b, v);
    }
    for (int32_t i = l.me + 1; i < l.len; i++)
        mc_recv_reduce(b, mc_line_rank(l, i), v);
}

mc_tile_t mc_pairwise_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k++) {
        const uint32_t start = b->n_steps;
        mc_give(b, right_by(l, k), mc_slice(v, l, l.me + k));
        mc_take(b, left_by(l, k), mc_slice(v, l, l.me - k));
        mc_in_turns(b, start);
    }
    mc_keep(b, mc_slice(v, l, l.me));
    return v;
}

mc_tile_t mc_fullmesh_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    for (int32_t k = 1; k < l.len; k++)
        mc_send(b, right_by(l, k), v);
    sum_in_line_order(b, l, v);
    return v;
}
