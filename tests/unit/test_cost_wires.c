/* What a price charges to each dimension of a merged line, against what its plans send across it. */
#include "support/places.h"
#include "support/plans.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Vectors across each dimension: of the busiest rank, or of the busiest box divided by its ports. */
typedef struct {
    double of[MC_MAX_DIMS];
} carried_t;

static double most_of(const double *moved, const mc_mesh_t *mesh, int32_t d, int32_t ports)
{
    const mc_boxes_t *const boxes = d == 0 ? mesh->ragged : NULL;
    const int32_t inside = mesh->ragged ? 1 : mc_mesh_stride(mesh, d);
    double most = 0;
    for (int32_t first = 0, b = 0, end; first < mesh->size; first = end, b++) {
        double box = 0;
        end = first + (boxes ? mc_boxes_size(boxes, b) : inside);
        for (int32_t rank = first; rank < end; rank++) {
            most = fmax(most, moved[rank]);
            box += moved[rank];
        }
        most = fmax(most, box / ports);
    }
    return most;
}

static carried_t count(const plans_t *plans, const place_t *at)
{
    static double sent[MC_MAX_DIMS][MOST_RANKS], received[MC_MAX_DIMS][MOST_RANKS];
    carried_t c = {{0}};
    memset(sent, 0, sizeof sent);
    memset(received, 0, sizeof received);
    for (int32_t rank = 0; rank < plans->n; rank++)
        for (uint32_t i = 0; i < plans->plan[rank]->n_steps; i++) {
            const mc_step_t *const step = &plans->plan[rank]->step[i];
            if (!mc_op_sends((mc_op_t)step->op))
                continue;
            const int32_t d = mc_mesh_level(&at->mesh, rank, step->peer);
            const double part = (double)step->run * step->nrun / plans->plan[rank]->n_chunks;
            sent[d][rank] += part;
            received[d][step->peer] += part;
        }
    for (int32_t d = 0; d < at->mesh.ndims; d++)
        c.of[d] = fmax(most_of(sent[d], &at->mesh, d, at->links.dim[d].ports),
                       most_of(received[d], &at->mesh, d, at->links.dim[d].ports));
    return c;
}

typedef struct {
    carried_t priced, carried;
} charge_t;

static charge_t charge_of(const place_t *at, int32_t algorithm, int32_t root)
{
    mc_strategy_t strategy = {
        .collective = mc_algorithms[algorithm].collective, .segments = 1, .n_phases = 1};
    plans_t plans;
    charge_t c;
    strategy.phase[0] = (mc_phase_t){algorithm, {0, at->mesh.ndims}};
    plans_make(&plans, &at->mesh, &strategy, root);
    c.carried = count(&plans, at);
    plans_free(&plans);
    const mc_phase_cost_t cost = mc_strategy_phase_cost(&strategy, &at->mesh, &at->links, root, 0);
    for (int32_t d = 0; d < at->mesh.ndims; d++)
        c.priced.of[d] = mc_ratio_value(cost.busy.dim[d].beta);
    return c;
}

/* Never charged less than it carries, and at most `most` times that. */
static void compare(const place_t *at, int32_t algorithm, int32_t root, double most,
                    const char *mesh)
{
    const mc_algorithm_t *const a = &mc_algorithms[algorithm];
    const charge_t c = charge_of(at, algorithm, root);
    for (int32_t d = 0; d < at->mesh.ndims; d++)
        cr_expect(c.priced.of[d] >= c.carried.of[d] * (1 - 1e-12) &&
                      c.priced.of[d] <= most * c.carried.of[d] * (1 + 1e-12),
                  "%s:%s on %s, ports %d, root %d: dimension %d is charged %g, carries %g",
                  meshcoll_collective_name(a->collective), a->name, mesh, at->links.dim[0].ports,
                  root, d, c.priced.of[d], c.carried.of[d]);
}

/* How far a charge may be above what is carried. Where all extents are powers of two, each round is in one
 * dimension, and the charge is exact; with two ports for more lines, rounds with one message leave a port idle.
 * Elsewhere the ranks that are busy in one round are idle in another. The two halves of a composite algorithm
 * use a wire in opposite directions. */
static double slack_of(const mc_algorithm_t *a, bool powers, int32_t ports)
{
    if (a->parts)
        return powers ? 2 : 4;
    return powers                         ? (ports == 2 ? (a->turned ? 1.25 : 1.1) : 1)
           : a->aligned == MC_ALIGNED_ANY ? 5
                                          : 3;
}

Test(cost_wires, each_wire_is_charged_what_it_carries)
{
    static const struct {
        const char *mesh;
        bool powers;
    } row[] = {{"x=2,y=8", true},      {"x=4,y=4", true},  {"x=8,y=2", true},
               {"x=2,y=4,z=2", true},  {"x=3,y=5", false}, {"x=5,y=3", false},
               {"x=3,y=2,z=3", false}, {"x=6,y=4", false}};
    static const char *const links[] = {"uniform", "uniform,x=ports:1", "uniform,x=ports:2"};
    for (size_t m = 0; m < MC_COUNT(row); m++)
        for (size_t l = 0; l < MC_COUNT(links); l++) {
            const place_t at = place_of(row[m].mesh, links[l]);
            for (int32_t i = 0; i < mc_n_algorithms; i++) {
                const mc_algorithm_t *const a = &mc_algorithms[i];
                const double most = slack_of(a, row[m].powers, at.links.dim[0].ports);
                const int32_t roots = mc_moves[a->collective].rooted ? at.mesh.size : 1;
                for (int32_t root = 0; root < roots; root += 5)
                    compare(&at, i, root, most, row[m].mesh);
            }
        }
}

/* Flat lines through unequal boxes: what the wires between boxes are charged, at most `most` times what they carry.
 * Flows and the full mesh are exact; the rounds of the others each take what their busiest box has, which is not the
 * same box in all. */
Test(cost_wires, flat_lines_of_unequal_boxes)
{
    static const char *const meshes[] = {"box=4+3+1", "box=8+8+4", "box=2+1",   "box=5+2",
                                         "box=8+1+1", "box=3+8",   "box=1+1+6", "box=4+4+4+2"};
    static const struct {
        const char *name;
        double most;
    } row[] = {{"ring", 1},       {"chain", 1},        {"edst", 1},         {"star", 1},
               {"fullmesh", 1},   {"pairwise", 1},     {"digits", 1.32},    {"halving", 1.56},
               {"bruck", 1.62},   {"long", 1.8},       {"doubling", 2},     {"aligned", 3},
               {"mst", 10.0 / 3}, {"halving-near", 2}, {"doubling-far", 2}, {"bruck-far", 2},
               {"bruck-near", 2}};
    for (size_t m = 0; m < 2 * MC_COUNT(meshes); m++) {
        const place_t at = place_of(meshes[m / 2], m % 2 ? "uniform,box=ports:1" : "uniform");
        for (int32_t i = 0; i < mc_n_algorithms; i++) {
            const mc_algorithm_t *const a = &mc_algorithms[i];
            const int32_t roots = mc_moves[a->collective].rooted ? at.mesh.size : 1;
            size_t r = 0;
            while (r < MC_COUNT(row) && strcmp(row[r].name, a->name) != 0)
                r++;
            cr_assert(r < MC_COUNT(row), "%s", a->name);
            for (int32_t root = 0; root < roots; root += 2) {
                const charge_t c = charge_of(&at, i, root);
                const double priced = c.priced.of[MC_RAGGED_BOX],
                             exact = c.carried.of[MC_RAGGED_BOX];
                cr_expect(priced >= exact * (1 - 1e-12) &&
                              priced <= row[r].most * exact * (1 + 1e-12),
                          "%s:%s on %s, root %d: the network is charged %g, carries %g",
                          meshcoll_collective_name(a->collective), a->name, meshes[m / 2], root,
                          priced, exact);
            }
        }
    }
}

/* Slow wires inside of a fast line are not left out, in whatever number of segments: bruck's last round goes
 * across x, the three before it along y, where the busiest rank sends 7/16. */
Test(cost_wires, a_slow_inner_wire_is_in_the_price)
{
    const place_t at = place_of("x=2,y=8", "x=alpha:0;beta:1TB/s;ports:all,y=alpha:0;beta:1GB/s");
    static const char *const segments[] = {"1", "8"};
    for (size_t i = 0; i < MC_COUNT(segments); i++) {
        char text[80];
        snprintf(text, sizeof text, "allgather:bruck(x*y) segments=%s", segments[i]);
        cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLGATHER, text, 16e9), 7, 1e-9, "%s", text);
    }
}
