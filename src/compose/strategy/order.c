#include "compose/strategy/order.h"

#include "base/hash.h"

#include <string.h>

/* Brackets that several algorithms share; an algorithm with others of its own has its index. */
enum { ALIGNED = MC_MAX_ALGORITHMS, HALVES };

static int32_t brackets_of(const mc_phase_t *p, int32_t len)
{
    const mc_algorithm_t *const a = &mc_algorithms[p->algorithm];
    if (mc_algorithm_aligned(p->algorithm, len))
        return ALIGNED;
    return strcmp(a->name, "mst") == 0 ? HALVES : p->algorithm;
}

/* Are the brackets the same for all slices? */
static bool is_uniform(const mc_phase_t *p, int32_t len)
{
    return !mc_algorithms[p->algorithm].slices || mc_algorithm_aligned(p->algorithm, len);
}

static bool adds(const mc_phase_t *p, const mc_mesh_t *mesh)
{
    return mc_moves[mc_algorithms[p->algorithm].collective].reduces &&
           mc_dims_extent(mesh, p->dims) > 1;
}

static uint64_t with(uint64_t hash, int64_t value)
{
    return mc_fnv(hash, &value, sizeof value);
}

static uint64_t hash_side(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t side,
                          bool *uniform)
{
    uint64_t hash = MC_FNV_START;
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_t *const p = &s->phase[i];
        const int32_t len = mc_dims_extent(mesh, p->dims);
        if (!adds(p, mesh))
            continue;
        *uniform = *uniform && is_uniform(p, len);
        hash = with(with(with(hash, p->dims.first), p->dims.count), brackets_of(p, len));
    }
    return hash;
}

/* Which elements are in which slice. */
static int hash_cuts(const mc_strategy_t *s, const mc_mesh_t *mesh, uint64_t *hash)
{
    mc_layout_t l;
    const int status = mc_strategy_layout(s, mesh, &l);
    if (status)
        return status;
    *hash = with(with(*hash, l.sides), l.segments);
    for (uint32_t side = 0; side < l.sides; side++)
        for (int32_t d = 0; d < mesh->ndims; d++)
            *hash = with(with(*hash, l.extent[d]), l.extent[d] > 1 ? l.stride[side][d] : 0);
    return MESHCOLL_OK;
}

int mc_strategy_sum_order(const mc_strategy_t *s, const mc_mesh_t *mesh, uint64_t *order)
{
    const mc_numbering_t own = mc_numbering(mesh, NULL);
    bool uniform = true;
    if (!mc_moves[s->collective].reduces) {
        *order = 0;
        return MESHCOLL_OK;
    }
    if (mc_strategy_check_aligned(s, mesh, &own) == MESHCOLL_OK) {
        *order = ALIGNED;
        return MESHCOLL_OK;
    }
    uint64_t hash = hash_side(s, mesh, 0, &uniform);
    if (mc_strategy_sides(s) > 1) {
        const uint64_t other = hash_side(s, mesh, 1, &uniform);
        uniform = uniform && other == hash;
        hash = uniform ? hash : with(hash, (int64_t)other);
    }
    if (!uniform) {
        const int status = hash_cuts(s, mesh, &hash);
        if (status)
            return status;
    }
    *order = hash;
    return MESHCOLL_OK;
}

bool mc_strategy_sums_as(const mc_strategy_t *a, const mc_strategy_t *b, const mc_mesh_t *mesh)
{
    uint64_t one, other;
    return !mc_strategy_sum_order(a, mesh, &one) && !mc_strategy_sum_order(b, mesh, &other) &&
           one == other;
}
