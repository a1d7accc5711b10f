/* From a strategy to one rank's plan: a fold of its phases over the tile the rank owns. */
#include "compose/strategy.h"

#include <assert.h>

static mc_holds_t held(mc_placement_t state, bool at_root)
{
    switch (state) {
    case MC_ROOT:
        return at_root ? MC_HOLDS_WHOLE : MC_HOLDS_NONE;
    case MC_SHARD:
        return MC_HOLDS_HOME;
    default:
        return MC_HOLDS_WHOLE;
    }
}

/* The tile a rank owns: its slice along sharded dimensions, everything along the others. */
static mc_tile_t owned_tile(const mc_mesh_t *mesh, const mc_placement_t state[MC_MAX_DIMS],
                            const int32_t coord[MC_MAX_DIMS], uint32_t segment)
{
    mc_tile_t v = mc_tile_whole(segment);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (state[d] == MC_SHARD)
            v.at[d] = coord[d];
    return v;
}

/* Has this rank data to bring or to get in a phase along `dims`? */
static bool takes_part(const mc_mesh_t *mesh, mc_dims_t dims,
                       const mc_placement_t state[MC_MAX_DIMS], const int32_t coord[MC_MAX_DIMS],
                       const int32_t root[MC_MAX_DIMS])
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (!mc_dims_has(dims, d) && state[d] == MC_ROOT && coord[d] != root[d])
            return false;
    return true;
}

static void add_segment(mc_builder_t *b, const mc_strategy_t *s, const mc_mesh_t *mesh,
                        uint32_t segment)
{
    const int32_t rank = b->head.rank, root = b->head.root;
    int32_t coord[MC_MAX_DIMS], root_coord[MC_MAX_DIMS];
    mc_placement_t state[MC_MAX_DIMS];
    mc_mesh_coords(mesh, rank, coord);
    mc_mesh_coords(mesh, root, root_coord);
    for (int32_t i = 0; i < s->n_phases; i++) {
        const mc_phase_t *const phase = &s->phase[i];
        mc_strategy_state(s, mesh, i, state);
        if (!takes_part(mesh, phase->dims, state, coord, root_coord))
            continue;
        const mc_line_t line = mc_mesh_line(mesh, phase->dims, rank, root);
        const mc_tile_t owned = owned_tile(mesh, state, coord, segment);
        b->phase = (uint8_t)i;
        mc_algorithms[phase->algorithm].generate(b, line, owned);
    }
    mc_settle(b, segment);
}

int mc_strategy_plan(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t rank,
                     int32_t root, mc_plan_t **plan)
{
    mc_layout_t layout;
    mc_builder_t b;
    const mc_move_t *const move = &mc_moves[strategy->collective];
    if (rank < 0 || rank >= mesh->size || (move->rooted && (root < 0 || root >= mesh->size)))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "rank and root lie in 0 to %d; got rank %d and root %d", mesh->size - 1,
                       rank, root);
    /* strategies without a root of their own pass through rank 0 */
    root = move->rooted ? root : 0;
    int status = mc_strategy_check(strategy, mesh);
    if (!status)
        status = mc_strategy_layout(strategy, mesh, &layout);
    if (!status)
        status = mc_builder_init(&b, &layout, strategy->collective, rank, root,
                                 held(move->from, rank == root), held(move->to, rank == root));
    if (status)
        return status;
    b.turns = strategy->n_phases;
    for (uint32_t segment = 0; segment < strategy->segments; segment++)
        add_segment(&b, strategy, mesh, segment);
    status = mc_seal(&b, plan);
    mc_builder_free(&b);
    return status;
}
