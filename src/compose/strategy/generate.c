/* Generates one rank's plan from a strategy: for each segment and phase, the rank's line and the tile that
 * it owns go to the 1D algorithm's generator. */
#include "compose/strategy/strategy.h"
#include "direct/direct.h"
#include "plan/pairs.h"
#include "ring/ring.h"

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

/* Does this rank send or receive data in a phase along `dims`? */
static bool takes_part(const mc_mesh_t *mesh, mc_dims_t dims,
                       const mc_placement_t state[MC_MAX_DIMS], const int32_t coord[MC_MAX_DIMS],
                       const int32_t root[MC_MAX_DIMS])
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (!mc_dims_has(dims, d) && state[d] == MC_ROOT && coord[d] != root[d])
            return false;
    return true;
}

/* Returns false if there is nothing to do: an exchange on a line of one rank would only copy. */
static bool begin_pairs(mc_builder_t *b, const mc_phase_t *phase, mc_line_t line)
{
    switch (mc_algorithms[phase->algorithm].collective) {
    case MESHCOLL_GATHER:
        mc_pairs_begin(b, MC_PAIRS_GATHER);
        return true;
    case MESHCOLL_SCATTER:
        mc_pairs_begin(b, MC_PAIRS_SCATTER);
        return true;
    default:
        mc_pairs_begin(b, MC_PAIRS_EXCHANGE);
        return line.len > 1;
    }
}

_Static_assert(MC_MAX_SIDES *MC_MAX_PHASES <= MC_PLAN_PHASES, "room for all phases");

static uint16_t narrow(int32_t n)
{
    return (uint16_t)(n < UINT16_MAX ? n : UINT16_MAX);
}

static mc_traffic_t traffic_of(const mc_mesh_t *mesh, const mc_phase_t *phase,
                               const mc_placement_t state[MC_MAX_DIMS], int32_t len)
{
    const unsigned single = mc_algorithm_single(phase->algorithm, mesh, phase->dims);
    return (mc_traffic_t){.senders = narrow(mc_algorithm_senders(phase->algorithm, len)),
                          .receivers = narrow(mc_algorithm_receivers(phase->algorithm, len)),
                          .rooted = (uint8_t)(mc_placements_rooted(mesh, state) | single),
                          .moves = (uint8_t)mc_algorithms[phase->algorithm].collective,
                          .passes_on = mc_algorithm_passes_on(phase->algorithm, len)};
}

static void add_phase(mc_builder_t *b, const mc_strategy_t *s, const mc_mesh_t *mesh,
                      uint32_t segment, int32_t i)
{
    const mc_phase_t *const phase = &s->phase[i];
    const int32_t rank = b->head.rank, root = b->head.root;
    int32_t coord[MC_MAX_DIMS], root_coord[MC_MAX_DIMS];
    mc_placement_t state[MC_MAX_DIMS];
    mc_mesh_coords(mesh, rank, coord);
    mc_mesh_coords(mesh, root, root_coord);
    mc_strategy_state(s, mesh, i, state);
    if (!takes_part(mesh, phase->dims, state, coord, root_coord) && !b->counting)
        return;
    const mc_line_t line = mc_mesh_line(mesh, phase->dims, rank, root);
    if (b->pairs && !begin_pairs(b, phase, line))
        return;
    const mc_tile_t owned = owned_tile(mesh, state, coord, segment);
    b->phase = (uint8_t)i;
    b->head.traffic[i] = traffic_of(mesh, phase, state, line.len);
    mc_algorithm_generate(phase->algorithm, b, line, owned);
}

static void add_segment(mc_builder_t *b, const mc_strategy_t *s, const mc_mesh_t *mesh,
                        uint32_t segment)
{
    for (int32_t i = 0; i < s->n_phases; i++)
        add_phase(b, s, mesh, segment, i);
    mc_settle(b, segment);
}

/* Does every rank of a line take the same number of turns, on any length? */
static bool in_step(const mc_phase_t *phase)
{
    const mc_generator_t generate = mc_algorithms[phase->algorithm].generate;
    return generate == mc_ring_allgather || generate == mc_ring_reduce_scatter ||
           generate == mc_fullmesh_allgather || generate == mc_fullmesh_reduce_scatter;
}

/* Two such phases along different dimensions may alternate turn by turn, since all ranks still agree on
 * the order of messages. */
static bool may_alternate(const mc_phase_t *a, const mc_phase_t *b)
{
    const bool apart = a->dims.first + a->dims.count <= b->dims.first ||
                       b->dims.first + b->dims.count <= a->dims.first;
    return apart && in_step(a) && in_step(b);
}

static int32_t side_length(const mc_strategy_t *s, int32_t side)
{
    return mc_side_end(s, side) - mc_side_first(s, side);
}

/* Phase i of each side, for one turn: a segment of each. */
static void add_both(mc_builder_t *b, const mc_strategy_t *s, const mc_mesh_t *mesh, uint32_t turn,
                     int32_t i)
{
    const uint32_t start = b->n_steps;
    uint32_t middle = start;
    for (int32_t side = 0; side < 2; side++) {
        middle = side ? b->n_steps : middle;
        if (i < side_length(s, side))
            add_phase(b, s, mesh, 2 * turn + (uint32_t)side, mc_side_first(s, side) + i);
    }
    if (i < side_length(s, 0) && i < side_length(s, 1) &&
        may_alternate(&s->phase[i], &s->phase[s->second + i]))
        mc_alternate(b, start, middle);
    for (int32_t side = 0; side < 2; side++)
        if (i == side_length(s, side) - 1)
            mc_settle(b, 2 * turn + (uint32_t)side);
}

/* Messages between two ranks keep program order, and both sides use the links of every dimension. The
 * sides therefore go phase by phase, so that neither waits behind a later phase of the other. Turns are
 * staggered, older ones first: the first phases of a turn are in flight during the second phases of the
 * turn before. */
static void add_waves(mc_builder_t *b, const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    const uint32_t turns = s->segments / 2;
    const int32_t a = side_length(s, 0), z = side_length(s, 1);
    const uint32_t longest = (uint32_t)(a > z ? a : z);
    for (uint32_t wave = 0; wave + 1 < turns + longest; wave++)
        for (uint32_t turn = wave < longest ? 0 : wave - longest + 1; turn <= wave && turn < turns;
             turn++)
            add_both(b, s, mesh, turn, (int32_t)(wave - turn));
}

/* The plan on a mesh that the root leads (mc_mesh_led_by). The strategy was checked. */
static int make_plan(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t rank,
                     int32_t root, mc_plan_t **plan)
{
    mc_layout_t layout;
    mc_builder_t b;
    const mc_move_t *const move = &mc_moves[strategy->collective];
    int status = mc_strategy_layout(strategy, mesh, &layout);
    if (!status)
        status = mc_builder_init(&b, &layout, strategy->collective, rank, root,
                                 held(move->from, rank == root), held(move->to, rank == root));
    if (status)
        return status;
    if (mc_strategy_gathers(strategy))
        status = mc_pairs_init(&b);
    if (status) {
        mc_builder_free(&b);
        return status;
    }
    b.counting = move->to == MC_DESTINATION;
    if (b.counting) /* a segment without steps */
        add_segment(&b, strategy, mesh, 0);
    if (mc_strategy_sides(strategy) > 1)
        add_waves(&b, strategy, mesh);
    else
        for (uint32_t segment = 0; segment < strategy->segments; segment++)
            add_segment(&b, strategy, mesh, segment);
    status = mc_seal(&b, plan);
    mc_builder_free(&b);
    return status;
}

int mc_strategy_plan(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t rank,
                     int32_t root, mc_plan_t **plan)
{
    if (rank < 0 || rank >= mesh->size || root < 0 || root >= mesh->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "rank and root lie in 0 to %d; got rank %d and root %d", mesh->size - 1,
                       rank, root);
    const int status = mc_strategy_check(strategy, mesh);
    if (status)
        return status;
    if (mesh->ragged && mc_strategy_is_flat(strategy, mesh)) {
        const mc_strategy_t on_line = mc_strategy_flat(strategy);
        const mc_mesh_t line = mc_mesh_flat(mesh);
        return make_plan(&on_line, &line, rank, root, plan);
    }
    const mc_mesh_t led = mc_mesh_led_by(mesh, root);
    return make_plan(strategy, &led, rank, root, plan);
}
