#include "compose/algorithms/registry.h"

#include "direct/direct.h"
#include "doubling/doubling.h"
#include "mst/mst.h"
#include "ring/ring.h"

#include <string.h>

/* Made of two others, for users who know their textbook names. Chan et al. 2007, §6. */
static const mc_part_name_t long_bcast[2] = {{MESHCOLL_SCATTER, "mst"},
                                             {MESHCOLL_ALLGATHER, "ring"}};
static const mc_part_name_t long_reduce[2] = {{MESHCOLL_REDUCE_SCATTER, "ring"},
                                              {MESHCOLL_GATHER, "mst"}};
static const mc_part_name_t ring_both[2] = {{MESHCOLL_REDUCE_SCATTER, "ring"},
                                            {MESHCOLL_ALLGATHER, "ring"}};
static const mc_part_name_t mst_both[2] = {{MESHCOLL_REDUCE, "mst"}, {MESHCOLL_BCAST, "mst"}};

/* clang-format off */
const mc_algorithm_t mc_algorithms[] = {
    /* collective             name            generator                         cost                             rounds                      slices  parts        keeps order, aligned, fan, plane, rotates, turned */
    {MESHCOLL_BCAST,          "mst",          mc_mst_bcast,                     mc_cost_mst,                     mc_rounds_mst,              false, NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_OUT_LOG,  false, false, false},
    {MESHCOLL_BCAST,          "chain",        mc_chain_bcast,                   mc_cost_chain,                   mc_rounds_chain,            false, NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_CHAIN,    false, false, false},
    {MESHCOLL_BCAST,          "star",         mc_star_bcast,                    mc_cost_star,                    mc_rounds_star,             false, NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_OUT_ALL,  false, false, false},
    {MESHCOLL_BCAST,          "edst",         mc_edst_bcast,                    mc_cost_edst,                    mc_rounds_edst,             true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_CHAIN,    true,  false, false},
    {MESHCOLL_BCAST,          "long",         NULL,                             NULL,                            NULL,                       true,  long_bcast,  false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, false},
    {MESHCOLL_REDUCE,         "mst",          mc_mst_reduce,                    mc_cost_mst,                     mc_rounds_mst,              false, NULL,        true,  MC_ALIGNED_POWERS,  MC_FAN_IN_LOG,   false, false, false},
    {MESHCOLL_REDUCE,         "chain",        mc_chain_reduce,                  mc_cost_chain,                   mc_rounds_chain,            false, NULL,        false, MC_ALIGNED_TWO,     MC_FAN_CHAIN,    false, false, false},
    {MESHCOLL_REDUCE,         "star",         mc_star_reduce,                   mc_cost_star,                    mc_rounds_star,             false, NULL,        true,  MC_ALIGNED_TWO,     MC_FAN_IN_ALL,   false, false, false},
    {MESHCOLL_REDUCE,         "aligned",      mc_mst_reduce_aligned,            mc_cost_mst,                     mc_rounds_mst,              false, NULL,        true,  MC_ALIGNED_ANY,     MC_FAN_IN_LOG,   false, false, false},
    {MESHCOLL_REDUCE,         "edst",         mc_edst_reduce,                   mc_cost_edst,                    mc_rounds_edst,             true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_CHAIN,    true,  false, false},
    {MESHCOLL_REDUCE,         "long",         NULL,                             NULL,                            NULL,                       true,  long_reduce, false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, false},
    {MESHCOLL_SCATTER,        "mst",          mc_mst_scatter,                   mc_cost_mst,                     mc_rounds_mst,              true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_OUT_LOG,  false, false, false},
    {MESHCOLL_SCATTER,        "star",         mc_star_scatter,                  mc_cost_star,                    mc_rounds_star,             true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_OUT_ALL,  false, false, false},
    {MESHCOLL_GATHER,         "mst",          mc_mst_gather,                    mc_cost_mst,                     mc_rounds_mst,              true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_IN_LOG,   false, false, false},
    {MESHCOLL_GATHER,         "star",         mc_star_gather,                   mc_cost_star,                    mc_rounds_star,             true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_IN_ALL,   false, false, false},
    {MESHCOLL_ALLGATHER,      "ring",         mc_ring_allgather,                mc_cost_ring,                    mc_rounds_ring,             true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_ALLGATHER,      "fullmesh",     mc_fullmesh_allgather,            mc_cost_fullmesh,                mc_rounds_fullmesh,         true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_ALLGATHER,      "doubling",     mc_doubling_allgather,            mc_cost_doubling,                mc_rounds_doubling,         true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLGATHER,      "bruck",        mc_bruck_allgather,               mc_cost_bruck_allgather,         mc_rounds_bruck_allgather,  true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_ALLGATHER,      "doubling-far", mc_doubling_far_allgather,        mc_cost_doubling_turned,         mc_rounds_doubling_turned,  true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, true},
    {MESHCOLL_ALLGATHER,      "bruck-far",    mc_bruck_far_allgather,           mc_cost_bruck_turned,     mc_rounds_bruck_turned,        true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, true},
    {MESHCOLL_REDUCE_SCATTER, "ring",         mc_ring_reduce_scatter,           mc_cost_ring,                    mc_rounds_ring,             true,  NULL,        false, MC_ALIGNED_TWO,     MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_REDUCE_SCATTER, "fullmesh",     mc_fullmesh_reduce_scatter,       mc_cost_fullmesh,                mc_rounds_fullmesh,         true,  NULL,        false, MC_ALIGNED_TWO,     MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_REDUCE_SCATTER, "halving",      mc_halving_reduce_scatter,        mc_cost_doubling,                mc_rounds_doubling,         true,  NULL,        false, MC_ALIGNED_TWO,     MC_FAN_NONE,     false, false, false},
    {MESHCOLL_REDUCE_SCATTER, "halving-near", mc_halving_near_reduce_scatter,   mc_cost_doubling_turned,         mc_rounds_doubling_turned,  true,  NULL,        true,  MC_ALIGNED_POWERS,  MC_FAN_NONE,     false, false, true},
    {MESHCOLL_REDUCE_SCATTER, "bruck-near", mc_bruck_near_reduce_scatter,   mc_cost_bruck_turned,         mc_rounds_bruck_turned,  true,  NULL,        false, MC_ALIGNED_TWO,  MC_FAN_NONE,     false, false, true},
    {MESHCOLL_REDUCE_SCATTER, "aligned",      mc_aligned_reduce_scatter,        mc_cost_aligned_reduce_scatter,  mc_rounds_aligned,          true,  NULL,        true,  MC_ALIGNED_ANY,     MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLREDUCE,      "fullmesh",     mc_fullmesh_allreduce,            mc_cost_fullmesh_allreduce,      mc_rounds_fullmesh,         false, NULL,        true,  MC_ALIGNED_THREE,   MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLREDUCE,      "doubling",     mc_doubling_allreduce,            mc_cost_doubling,                mc_rounds_doubling,         false, NULL,        true,  MC_ALIGNED_POWERS,  MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLREDUCE,      "aligned",      mc_aligned_allreduce,             mc_cost_aligned_allreduce,       mc_rounds_aligned,          false, NULL,        true,  MC_ALIGNED_ANY,     MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLREDUCE,      "ring",         mc_ring_allreduce,                NULL,                            NULL,                       true,  ring_both,   false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_ALLREDUCE,      "mst",          NULL,                             NULL,                            NULL,                       false, mst_both,    true,  MC_ALIGNED_POWERS,  MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLTOALL,       "pairwise",     mc_pairwise_alltoall,             mc_cost_fullmesh,                mc_rounds_fullmesh,         true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, true,  false},
    {MESHCOLL_ALLTOALL,       "digits",       mc_digits_alltoall,               mc_cost_digits_alltoall,         mc_rounds_digits,           true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, false},
    {MESHCOLL_ALLTOALL,       "bruck",        mc_bruck_alltoall,                mc_cost_bruck_alltoall,          mc_rounds_bruck_alltoall,   true,  NULL,        false, MC_ALIGNED_NEVER,   MC_FAN_NONE,     false, false, false},
};
/* clang-format on */
const int32_t mc_n_algorithms = MC_COUNT(mc_algorithms);
_Static_assert(MC_COUNT(mc_algorithms) <= MC_MAX_ALGORITHMS, "mc_choices_t has a bit for each");

int32_t mc_algorithm_part(int32_t algorithm, int32_t k)
{
    const mc_part_name_t *const part = &mc_algorithms[algorithm].parts[k];
    return mc_algorithm_find(part->collective, part->name, strlen(part->name));
}

mc_tile_t mc_algorithm_generate(int32_t algorithm, mc_builder_t *b, mc_line_t l, mc_tile_t v)
{
    if (mc_algorithms[algorithm].generate)
        return mc_algorithms[algorithm].generate(b, l, v);
    return mc_algorithm_generate(mc_algorithm_part(algorithm, 1), b, l,
                                 mc_algorithm_generate(mc_algorithm_part(algorithm, 0), b, l, v));
}

mc_phase_cost_t mc_algorithm_cost(int32_t algorithm, const mc_line_shape_t *shape)
{
    const mc_algorithm_t *const a = &mc_algorithms[algorithm];
    if (a->parts) {
        const mc_phase_cost_t first = mc_algorithm_cost(mc_algorithm_part(algorithm, 0), shape);
        const mc_phase_cost_t second = mc_algorithm_cost(mc_algorithm_part(algorithm, 1), shape);
        return mc_phase_cost_add(&first, &second);
    }
    mc_line_shape_t used = *shape;
    used.reduces = mc_moves[a->collective].reduces;
    used.slices = a->slices;
    used.root_sends = mc_moves[a->collective].from == MC_ROOT;
    used.aligned = a->aligned == MC_ALIGNED_ANY;
    return a->cost(&used);
}

bool mc_algorithm_aligned(int32_t algorithm, int32_t len)
{
    switch (mc_algorithms[algorithm].aligned) {
    case MC_ALIGNED_TWO:
        return len <= 2;
    case MC_ALIGNED_THREE:
        return len <= 3;
    case MC_ALIGNED_POWERS:
        return mc_is_power(len);
    case MC_ALIGNED_ANY:
        return true;
    default:
        return len <= 1;
    }
}

static int32_t others(bool all, int32_t len)
{
    return all ? len - 1 : mc_rounds(len, 1);
}

int32_t mc_algorithm_senders(int32_t algorithm, int32_t len)
{
    const mc_fan_t fan = mc_algorithms[algorithm].fan;
    const bool all = fan == MC_FAN_IN_ALL;
    return all || fan == MC_FAN_IN_LOG ? others(all, len) : 1;
}

int32_t mc_algorithm_receivers(int32_t algorithm, int32_t len)
{
    const mc_fan_t fan = mc_algorithms[algorithm].fan;
    const bool all = fan == MC_FAN_OUT_ALL;
    return all || fan == MC_FAN_OUT_LOG ? others(all, len) : 1;
}

bool mc_algorithm_passes_on(int32_t algorithm, int32_t len)
{
    return len > 2 && mc_algorithms[algorithm].fan == MC_FAN_CHAIN;
}

unsigned mc_algorithm_single(int32_t algorithm, const mc_mesh_t *mesh, mc_dims_t dims)
{
    const mc_fan_t fan = mc_algorithms[algorithm].fan;
    unsigned single = 0;
    if (mesh->ragged || (fan != MC_FAN_IN_LOG && fan != MC_FAN_OUT_LOG))
        return 0;
    for (int32_t d = dims.first; d < dims.first + dims.count; d++) {
        if (!mc_is_power(mesh->dim[d].extent))
            return 0;
        single |= d > dims.first ? 1u << d : 0;
    }
    return single;
}

bool mc_algorithm_exchanges_pairs(int32_t algorithm)
{
    return mc_algorithms[algorithm].collective == MESHCOLL_ALLTOALL &&
           mc_algorithms[algorithm].generate != mc_bruck_alltoall;
}

int32_t mc_algorithm_find(meshcoll_collective_t collective, const char *name, size_t n)
{
    for (int32_t i = 0; i < mc_n_algorithms; i++)
        if (mc_algorithms[i].collective == collective && strlen(mc_algorithms[i].name) == n &&
            memcmp(mc_algorithms[i].name, name, n) == 0)
            return i;
    return -1;
}
