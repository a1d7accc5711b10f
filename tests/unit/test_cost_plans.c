/* Prices against the plans that they are of: time steps, and what passes a box's NIC. */
#include "compose/planner/planner.h"

#include "direct/direct.h"
#include "doubling/doubling.h"
#include "support/places.h"
#include "support/plans.h"

#include <math.h>

/* Of what leaves or enters the busiest box, in vectors. */
static double busiest_box(const plans_t *plans, int32_t boxes)
{
    const int32_t inside = plans->n / boxes;
    double out[MOST_RANKS] = {0}, in[MOST_RANKS] = {0}, most = 0;
    for (int32_t rank = 0; rank < plans->n; rank++)
        for (uint32_t i = 0; i < plans->plan[rank]->n_steps; i++) {
            const mc_step_t *const step = &plans->plan[rank]->step[i];
            if (!mc_op_sends((mc_op_t)step->op) || step->peer / inside == rank / inside)
                continue;
            const double part = (double)step->run * step->nrun / plans->plan[rank]->n_chunks;
            out[rank / inside] += part;
            in[step->peer / inside] += part;
        }
    for (int32_t box = 0; box < boxes; box++)
        most = fmax(most, fmax(out[box], in[box]));
    return most;
}

/* A full-mesh allreduce receives in the order of the line, so that all ranks get one sum, while its
 * messages are sent in another order: in a trace they wait for each other. */
static bool waits_in_order(const mc_strategy_t *strategy)
{
    for (int32_t i = 0; i < strategy->n_phases; i++)
        if (mc_algorithms[strategy->phase[i].algorithm].generate == mc_fullmesh_allreduce)
            return true;
    return false;
}

/* Ranks that have less to do than the others begin the next phase before these. */
static bool may_overlap(const mc_strategy_t *strategy)
{
    for (int32_t i = 0; i < strategy->n_phases && strategy->n_phases > 1; i++) {
        const mc_generator_t made_by = mc_algorithms[strategy->phase[i].algorithm].generate;
        if (made_by == mc_bruck_allgather || made_by == mc_doubling_allgather ||
            made_by == mc_halving_reduce_scatter || made_by == mc_doubling_allreduce ||
            mc_algorithms[strategy->phase[i].algorithm].turned)
            return true;
    }
    return false;
}

/* A trace has one port a rank, for which the messages of both trees wait in turn; on a torus each has its own. */
static bool has_two_trees(const mc_strategy_t *strategy)
{
    for (int32_t i = 0; i < strategy->n_phases; i++)
        if (mc_algorithms[strategy->phase[i].algorithm].plane)
            return true;
    return false;
}

typedef struct {
    place_t at;
    int32_t root;
} trial_t;

static bool compare_with_plans(void *context, const mc_strategy_t *strategy)
{
    const trial_t *const trial = context;
    const mc_mesh_t *const mesh = &trial->at.mesh;
    char text[MC_STRATEGY_TEXT];
    mc_text_t printed = mc_text(text, sizeof text);
    mc_strategy_print(strategy, mesh, &printed);
    double alpha = 0, beta = 0;
    for (int32_t i = 0; i < strategy->n_phases; i++) {
        const mc_phase_cost_t cost =
            mc_strategy_phase_cost(strategy, mesh, &trial->at.links, trial->root, i);
        for (int32_t d = 0; d < mesh->ndims; d++)
            alpha += mc_ratio_value(cost.once.dim[d].alpha);
        beta += mc_ratio_value(cost.once.dim[0].beta);
    }
    plans_t plans;
    mc_times_t times;
    plans_make(&plans, mesh, strategy, trial->root);
    const mc_world_t world = world_of(&plans);
    cr_assert_eq(mc_world_times(&world, &times), MESHCOLL_OK, "%s: %s", text,
                 meshcoll_last_error());
    if (has_two_trees(strategy))
        cr_assert_leq(times.n_times, 2 * alpha, "%s takes %u steps, beyond twice %g", text,
                      times.n_times, alpha);
    else if (!waits_in_order(strategy) && may_overlap(strategy))
        cr_assert_leq(times.n_times, alpha, "%s takes %u steps, beyond %g", text, times.n_times,
                      alpha);
    else if (!waits_in_order(strategy))
        cr_assert_eq(times.n_times, alpha, "%s takes %u steps, not %g", text, times.n_times, alpha);
    const double moved = busiest_box(&plans, mesh->dim[0].extent);
    cr_assert_leq(moved, beta * (1 + 1e-12), "%s moves %g, beyond %g", text, moved, beta);
    mc_arena_free(&times.arena);
    plans_free(&plans);
    return true;
}

/* The schedules themselves: as many time steps as alpha says, and never more through the one NIC of
 * a box than beta says. */
Test(cost_plans, plans_do_what_the_costs_say)
{
    static const char *const mesh[] = {"box=2", "box=5", "box=8", "box=3,gpu=4", "box=5,gpu=2"};
    for (size_t m = 0; m < MC_COUNT(mesh); m++) {
        trial_t trial = {.at = place_of(mesh[m], "uniform,box=ports:1")};
        const int32_t size = trial.at.mesh.size;
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (trial.root = 0; trial.root < size; trial.root += 1 + size / 2)
                mc_strategy_each((meshcoll_collective_t)c, &trial.at.mesh, MC_PATHS_COVER,
                                 compare_with_plans, &trial);
    }
}
