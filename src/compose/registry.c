#include "compose/registry.h"

#include "compose/composite.h"
#include "direct/direct.h"
#include "doubling/doubling.h"
#include "mst/mst.h"
#include "ring/ring.h"

#include <string.h>

/* clang-format off */
const mc_algorithm_t mc_algorithms[] = {
    /* collective             name        generator                   cost                             slices composite keeps order */
    {MESHCOLL_BCAST,          "mst",      mc_mst_bcast,               mc_cost_mst_bcast,               false, false, false},
    {MESHCOLL_BCAST,          "chain",    mc_chain_bcast,             mc_cost_chain_bcast,             false, false, false},
    {MESHCOLL_BCAST,          "star",     mc_star_bcast,              mc_cost_star_bcast,              false, false, false},
    {MESHCOLL_BCAST,          "long",     mc_long_bcast,              mc_cost_long_bcast,              true,  true,  false},
    {MESHCOLL_REDUCE,         "mst",      mc_mst_reduce,              mc_cost_mst_reduce,              false, false, true},
    {MESHCOLL_REDUCE,         "chain",    mc_chain_reduce,            mc_cost_chain_reduce,            false, false, false},
    {MESHCOLL_REDUCE,         "star",     mc_star_reduce,             mc_cost_star_reduce,             false, false, true},
    {MESHCOLL_REDUCE,         "long",     mc_long_reduce,             mc_cost_long_reduce,             true,  true,  false},
    {MESHCOLL_SCATTER,        "mst",      mc_mst_scatter,             mc_cost_mst_scatter,             true,  false, false},
    {MESHCOLL_SCATTER,        "star",     mc_star_scatter,            mc_cost_star_scatter,            true,  false, false},
    {MESHCOLL_GATHER,         "mst",      mc_mst_gather,              mc_cost_mst_scatter,             true,  false, false},
    {MESHCOLL_GATHER,         "star",     mc_star_gather,             mc_cost_star_gather,             true,  false, false},
    {MESHCOLL_ALLGATHER,      "ring",     mc_ring_allgather,          mc_cost_ring_allgather,          true,  false, false},
    {MESHCOLL_ALLGATHER,      "fullmesh", mc_fullmesh_allgather,      mc_cost_fullmesh_allgather,      true,  false, false},
    {MESHCOLL_ALLGATHER,      "doubling", mc_doubling_allgather,      mc_cost_doubling_allgather,      true,  false, false},
    {MESHCOLL_ALLGATHER,      "bruck",    mc_bruck_allgather,         mc_cost_bruck_allgather,         true,  false, false},
    {MESHCOLL_REDUCE_SCATTER, "ring",     mc_ring_reduce_scatter,     mc_cost_ring_reduce_scatter,     true,  false, false},
    {MESHCOLL_REDUCE_SCATTER, "fullmesh", mc_fullmesh_reduce_scatter, mc_cost_fullmesh_reduce_scatter, true,  false, false},
    {MESHCOLL_REDUCE_SCATTER, "halving",  mc_halving_reduce_scatter, mc_cost_halving_reduce_scatter,  true,  false, false},
    {MESHCOLL_ALLREDUCE,      "fullmesh", mc_fullmesh_allreduce,      mc_cost_fullmesh_allreduce,      false, false, true},
    {MESHCOLL_ALLREDUCE,      "doubling", mc_doubling_allreduce,      mc_cost_doubling_allreduce,      false, false, true},
    {MESHCOLL_ALLREDUCE,      "ring",     mc_ring_allreduce,          mc_cost_ring_allreduce,          true,  true,  false},
    {MESHCOLL_ALLREDUCE,      "mst",      mc_mst_allreduce,           mc_cost_mst_allreduce,           false, true,  true},
    {MESHCOLL_ALLTOALL,       "pairwise", mc_pairwise_alltoall,       mc_cost_pairwise_alltoall,       true,  false, false},
    {MESHCOLL_ALLTOALL,       "digits",   mc_digits_alltoall,         mc_cost_digits_alltoall,         true,  false, false},
};
/* clang-format on */
const int32_t mc_n_algorithms = MC_COUNT(mc_algorithms);

int32_t mc_algorithm_find(meshcoll_collective_t collective, const char *name, size_t n)
{
    for (int32_t i = 0; i < mc_n_algorithms; i++)
        if (mc_algorithms[i].collective == collective && strlen(mc_algorithms[i].name) == n &&
            memcmp(mc_algorithms[i].name, name, n) == 0)
            return i;
    return -1;
}
