#include "ring/ring.h"

mc_tile_t mc_chain_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const int32_t hops_from_root = mc_wrap(l, l.me - l.root);
    if (hops_from_root > 0)
        mc_recv(b, mc_left(l), v);
    if (hops_from_root < l.len - 1)
        mc_send(b, mc_right(l), v);
    return v;
}

mc_tile_t mc_chain_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    const int32_t hops_to_root = mc_wrap(l, l.root - l.me);
    if (hops_to_root < l.len - 1)
        mc_recv_reduce_along(b, l, mc_wrap(l, l.me - 1), v);
    if (hops_to_root > 0)
        mc_send(b, mc_right(l), v);
    return v;
}
