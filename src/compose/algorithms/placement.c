#include "compose/algorithms/placement.h"

#include <string.h>

const mc_move_t mc_moves[MESHCOLL_COLLECTIVES] = {
    [MESHCOLL_BCAST] = {"bcast", MC_ROOT, MC_REPLICA, true, false},
    [MESHCOLL_REDUCE] = {"reduce", MC_PARTIAL, MC_ROOT, true, true},
    [MESHCOLL_SCATTER] = {"scatter", MC_ROOT, MC_SHARD, true, false},
    [MESHCOLL_GATHER] = {"gather", MC_SHARD, MC_ROOT, true, false},
    [MESHCOLL_ALLGATHER] = {"allgather", MC_SHARD, MC_REPLICA, false, false},
    [MESHCOLL_REDUCE_SCATTER] = {"reduce_scatter", MC_PARTIAL, MC_SHARD, false, true},
    [MESHCOLL_ALLREDUCE] = {"allreduce", MC_PARTIAL, MC_REPLICA, false, true},
    [MESHCOLL_ALLTOALL] = {"alltoall", MC_SOURCE, MC_DESTINATION, false, false},
};

unsigned mc_placements_rooted(const mc_mesh_t *mesh, const mc_placement_t state[MC_MAX_DIMS])
{
    unsigned rooted = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        rooted |= (unsigned)(state[d] == MC_ROOT) << d;
    return rooted;
}

const char *mc_placement_name(mc_placement_t placement)
{
    static const char *const name[] = {"root",    "shard",  "replica",
                                       "partial", "source", "destination"};
    return (size_t)placement < MC_COUNT(name) ? name[placement] : "?";
}

int mc_collective_find(const char *name, size_t n)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (strlen(mc_moves[c].name) == n && memcmp(mc_moves[c].name, name, n) == 0)
            return c;
    return -1;
}

const char *meshcoll_collective_name(meshcoll_collective_t collective)
{
    return (unsigned)collective < MESHCOLL_COLLECTIVES ? mc_moves[collective].name : NULL;
}
