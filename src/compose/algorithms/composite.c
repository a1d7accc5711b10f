#include "compose/algorithms/composite.h"

#include "mst/mst.h"
#include "ring/ring.h"

mc_tile_t mc_long_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    return mc_ring_allgather(b, l, mc_mst_scatter(b, l, v));
}

mc_tile_t mc_long_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    return mc_mst_gather(b, l, mc_ring_reduce_scatter(b, l, v));
}
