#include "compose/price/pricing.h"

#include "compose/cost/charge.h"
#include "compose/cost/cost_pairs.h"
#include "compose/price/networked.h"

/* The line to price, on a mesh that the root leads (mc_mesh_led_by). On a ragged mesh this is the longest
 * line along fold, or one line of all ranks; for the latter each box of `even` becomes as large as the
 * largest. */
static mc_line_t longest_line(const mc_mesh_t *mesh, mc_dims_t dims, int32_t root, mc_mesh_t *even)
{
    mc_line_t line = mc_mesh_line(mesh, dims, root, root);
    if (mesh->ragged && dims.first == MC_RAGGED_FOLD)
        line.len = mesh->dim[MC_RAGGED_FOLD].extent;
    if (!mesh->ragged || dims.count < mesh->ndims)
        return line;
    even->ragged = NULL;
    even->dim[MC_RAGGED_GPU].extent = 1;
    even->dim[MC_RAGGED_FOLD].extent = mesh->ragged->most;
    line.len = mesh->size;
    line.root = root;
    return line;
}

/* The part of a tile that stays at the root of a scatter or gather along `dims` on a ragged mesh: the share
 * of ranks that agree with the root in the dimensions of the line, since boxes hold blocks in proportion to
 * their ranks. */
static mc_ratio_t share_at_root(const mc_mesh_t *mesh, mc_dims_t dims, int32_t root)
{
    int32_t first;
    const int32_t last = dims.first + dims.count - 1;
    const int32_t ranks = last == MC_RAGGED_FOLD ? 1 : mc_mesh_span(mesh, last + 1, root, &first);
    return mc_ratio(ranks, mesh->size);
}

static mc_line_shape_t shape_of(const mc_mesh_t *mesh, mc_mesh_t *even, const mc_links_t *links,
                                mc_dims_t dims, int32_t root,
                                const mc_placement_t state[MC_MAX_DIMS])
{
    mc_line_shape_t shape = {.mesh = even, .lines = 1};
    shape.line = longest_line(mesh, dims, root, even);
    shape.boxes = dims.count == mesh->ndims ? mesh->ragged : NULL;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        if (mc_dims_has(dims, d) || state[d] == MC_ROOT)
            continue;
        shape.lines *= mesh->dim[d].extent;
    }
    const unsigned rooted = mc_placements_rooted(mesh, state);
    const int32_t last = dims.first + dims.count - 1;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const int32_t wire = mc_links_wire(links, d);
        shape.sharers[d] = mc_mesh_sharers(mesh, wire > last ? wire : last, rooted);
        shape.wire[d] = wire + 1;
        shape.ports[d] = links->dim[wire].ports;
        shape.pulled[d] = links->dim[d].pulled;
    }
    return shape;
}

static mc_ratio_t ragged_share(const mc_mesh_t *mesh, meshcoll_collective_t move, mc_dims_t dims,
                               unsigned cut)
{
    const bool all_pass = move == MESHCOLL_ALLGATHER || move == MESHCOLL_REDUCE_SCATTER;
    unsigned sliced = cut;
    if (!all_pass || dims.count == mesh->ndims)
        return mc_ratio(mc_mesh_fullest(mesh, cut), mesh->size);
    for (int32_t d = dims.first; d < dims.first + dims.count; d++)
        sliced |= 1u << d;
    return mc_ratio((int64_t)mc_dims_extent(mesh, dims) * mc_mesh_fullest(mesh, sliced),
                    mesh->size);
}

/* The part of the vector that the move handles on one line. For blocks on boxes of unequal sizes it is the
 * largest part of any rank; if every rank forwards the others' slices, all slices count as long as the
 * longest. */
static mc_ratio_t share_of(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                           meshcoll_collective_t move, mc_dims_t dims,
                           const mc_placement_t state[MC_MAX_DIMS])
{
    int32_t parts = 1;
    unsigned cut = 0; /* the other sharded dimensions, a bit each */
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (!mc_dims_has(dims, d) && state[d] == MC_SHARD) {
            cut |= 1u << d;
            parts *= mesh->dim[d].extent;
        }
    if (mesh->ragged && mc_move_has_blocks(&mc_moves[collective]))
        return ragged_share(mesh, move, dims, cut);
    return mc_ratio(1, parts);
}

/* A segment lasts no less than its busiest wire. On a merged line, whose rounds are charged to the outermost
 * dimension that they cross, that may be an inner one. */
static void last_as_busiest(mc_phase_cost_t *cost, const mc_mesh_t *mesh, const mc_links_t *links)
{
    double all = 0, most = 0;
    int32_t busiest = 0;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const double wire = mc_ratio_value(cost->busy.dim[d].beta) * links->dim[d].beta;
        all += mc_ratio_value(cost->once.dim[d].beta) * links->dim[d].beta;
        busiest = wire > most ? d : busiest;
        most = wire > most ? wire : most;
    }
    for (int32_t d = 0; d < mesh->ndims && most > all; d++)
        cost->once.dim[d].beta = d == busiest ? cost->busy.dim[d].beta : mc_ratio(0, 1);
}

/* Adds the strain of an algorithm, or of both parts of a composite one. */
static void add_strain(struct mc_networked *network, int32_t algorithm, mc_dims_t dims,
                       const mc_mesh_t *led, int32_t root, unsigned rooted, mc_strain_t *strain)
{
    if (mc_algorithms[algorithm].rounds)
        network->strain(network, algorithm, dims, led, root, rooted, strain);
    for (int32_t k = 0; k < 2 && mc_algorithms[algorithm].parts; k++)
        add_strain(network, mc_algorithm_part(algorithm, k), dims, led, root, rooted, strain);
}

mc_phase_cost_t mc_phase_cost(meshcoll_collective_t collective, int32_t algorithm, mc_dims_t dims,
                              const mc_mesh_t *mesh, const mc_links_t *links, int32_t root,
                              const mc_placement_t state[MC_MAX_DIMS], bool gathers,
                              mc_walks_t *walks)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, root);
    mc_mesh_t even = led;
    mc_line_shape_t shape = shape_of(&led, &even, links, dims, root, state);
    shape.share =
        gathers ? mc_pairs_share(mesh, dims)
                : share_of(collective, mesh, mc_algorithms[algorithm].collective, dims, state);
    shape.walks = walks;
    if (mesh->ragged && mc_dims_has(dims, MC_RAGGED_BOX) &&
        mc_move_has_blocks(&mc_moves[collective]))
        shape.at_root = share_at_root(&led, dims, root);
    mc_phase_cost_t cost = mc_algorithm_cost(algorithm, &shape);
    if (dims.count < mesh->ndims && collective == MESHCOLL_ALLTOALL)
        mc_pairs_correct(&cost, mesh, dims);
    if (dims.count > 1)
        last_as_busiest(&cost, mesh, links);
    for (int32_t d = 0; d < mesh->ndims; d++)
        cost.busy.dim[d].row = cost.busy.dim[d].alpha;
    if (links->network) {
        mc_strain_t whole = {0};
        add_strain(links->network, algorithm, dims, &led, root, mc_placements_rooted(&led, state),
                   &whole);
        mc_strain_add(&cost.network, &whole, mc_ratio_value(shape.share));
    }
    return cost;
}

mc_phase_cost_t mc_strategy_phase_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                       const mc_links_t *links, int32_t root, int32_t i)
{
    mc_placement_t state[MC_MAX_DIMS];
    const mc_phase_t *const phase = &strategy->phase[i];
    mc_strategy_state(strategy, mesh, i, state);
    return mc_phase_cost(strategy->collective, phase->algorithm, phase->dims, mesh, links, root,
                         state, mc_strategy_gathers(strategy), NULL);
}
