/* Prices on a network: the rounds against the plans, prices against simulations, and choices. */
#include "contention/contention.h"

#include "mesh/aligned.h"
#include "network/ends.h"
#include "simulate/simulate.h"
#include "support/places.h"
#include "support/plans.h"

#include <math.h>
#include <string.h>

/* Rounds ----------------------------------------------------------------------------------------- */

enum { LONGEST = 17 };

/* Parts of the tile that ranks send each other. */
typedef struct {
    mc_round_sink_t sink;
    int32_t len;
    double sent[LONGEST][LONGEST], once[LONGEST][LONGEST];
} heard_t;

static void hear_shift(mc_round_sink_t *sink, int32_t by, double part, double times)
{
    heard_t *const h = (heard_t *)sink;
    for (int32_t i = 0; i < h->len; i++)
        h->sent[i][(i + by) % h->len] += part * times;
}

static void hear_spread(mc_round_sink_t *sink, double part)
{
    for (int32_t by = 1; by < ((heard_t *)sink)->len; by++)
        hear_shift(sink, by, part, 1);
}

static void hear_swap(mc_round_sink_t *sink, int32_t m, bool core, double part)
{
    heard_t *const h = (heard_t *)sink;
    int32_t size = 1;
    while (2 * size <= h->len)
        size *= 2;
    const int32_t surplus = core ? h->len - size : 0, n = core ? size : h->len;
    for (int32_t i = 0; i < n; i++)
        if ((i ^ m) < n) {
            const int32_t to = i ^ m;
            h->sent[i < surplus ? 2 * i : i + surplus][to < surplus ? 2 * to : to + surplus] +=
                part;
        }
}

static void hear_send(mc_round_sink_t *sink, int32_t from, int32_t to, double part)
{
    ((heard_t *)sink)->once[from][to] += part;
}

static void hear_end(mc_round_sink_t *sink, double times)
{
    heard_t *const h = (heard_t *)sink;
    for (int32_t i = 0; i < h->len; i++)
        for (int32_t k = 0; k < h->len; k++)
            h->sent[i][k] += h->once[i][k] * (times > 0 ? times : 1);
    memset(h->once, 0, sizeof h->once);
}

static void count_sent(const mc_mesh_t *mesh, int32_t algorithm, int32_t root,
                       double sent[LONGEST][LONGEST])
{
    mc_strategy_t s = {
        .collective = mc_algorithms[algorithm].collective, .segments = 1, .n_phases = 1};
    plans_t plans;
    s.phase[0] = (mc_phase_t){algorithm, {0, mesh->ndims}};
    plans_make(&plans, mesh, &s, root);
    for (int32_t rank = 0; rank < plans.n; rank++)
        for (uint32_t i = 0; i < plans.plan[rank]->n_steps; i++) {
            const mc_step_t *const step = &plans.plan[rank]->step[i];
            if (mc_op_sends((mc_op_t)step->op))
                sent[rank][step->peer] +=
                    (double)step->run * step->nrun / plans.plan[rank]->n_chunks;
        }
    plans_free(&plans);
}

/* A block of the core counts as long as the longest. */
static void compare_rounds(const mc_mesh_t *mesh, int32_t algorithm, int32_t root)
{
    const mc_algorithm_t *const a = &mc_algorithms[algorithm];
    heard_t h = {
        {hear_shift, hear_spread, hear_swap, hear_send, hear_end}, mesh->size, {{0}}, {{0}}};
    static double sent[LONGEST][LONGEST];
    const bool power = mc_is_power(mesh->size);
    const bool loose = a->rounds == mc_rounds_doubling || a->rounds == mc_rounds_doubling_turned;
    const mc_round_line_t line = {.len = mesh->size,
                                  .root = root,
                                  .rows = mesh->dim[0].extent,
                                  .reduces = mc_moves[a->collective].reduces,
                                  .slices = a->slices,
                                  .root_sends = mc_moves[a->collective].from == MC_ROOT,
                                  .aligned = a->aligned == MC_ALIGNED_ANY};
    memset(sent, 0, sizeof sent);
    count_sent(mesh, algorithm, root, sent);
    a->rounds(&line, &h.sink);
    for (int32_t i = 0; i < mesh->size; i++)
        for (int32_t k = 0; k < mesh->size; k++) {
            const double least = sent[i][k] - 1e-9;
            const double most = loose && !power ? 2 * sent[i][k] + 1e-9 : sent[i][k] + 1e-9;
            const double edst = a->plane ? 0.5 / mesh->size : 0; /* halves of an odd number */
            cr_expect(h.sent[i][k] >= least - edst && h.sent[i][k] <= most + edst,
                      "%s:%s of %d, root %d: %d sends %g to %d, not %g",
                      mc_moves[a->collective].name, a->name, mesh->size, root, i, h.sent[i][k], k,
                      sent[i][k]);
        }
}

Test(contention, rounds_send_what_the_plans_send)
{
    static const char *const meshes[] = {"x=2",  "x=3",  "x=4",  "x=5",     "x=7",    "x=8",
                                         "x=12", "x=16", "x=17", "x=3,y=4", "x=4,y=4"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++)
        for (int32_t a = 0; a < mc_n_algorithms; a++) {
            mc_mesh_t mesh;
            cr_assert_eq(mc_mesh_parse(meshes[m], &mesh), 0);
            cr_assert(mc_algorithms[a].rounds || mc_algorithms[a].parts);
            /* unequal blocks of the aligned tree are left out */
            if (!mc_algorithms[a].rounds ||
                (mc_algorithms[a].rounds == mc_rounds_aligned && !mc_is_power(mesh.size)) ||
                (mc_algorithms[a].plane && mesh.ndims < 2))
                continue;
            compare_rounds(&mesh, a, 0);
            if (mc_moves[mc_algorithms[a].collective].rooted)
                compare_rounds(&mesh, a, mesh.size - 2);
        }
}

/* Prices ----------------------------------------------------------------------------------------- */

typedef struct {
    mc_mesh_t mesh;
    mc_links_t links;
    mc_network_t network;
    mc_contention_t *contention;
} on_t;

static void open_on(on_t *on, const char *mesh, const char *links, const char *network,
                    const int32_t *order)
{
    cr_assert_eq(mc_mesh_parse(mesh, &on->mesh), 0, "%s", meshcoll_last_error());
    cr_assert_eq(mc_links_parse(links, &on->mesh, &on->links), 0, "%s", meshcoll_last_error());
    cr_assert_eq(mc_network_parse(network, &on->network), 0, "%s", meshcoll_last_error());
    cr_assert_eq(mc_network_fit_to(&on->mesh, &on->links, &on->network), 0, "%s",
                 meshcoll_last_error());
    cr_assert_eq(mc_contention_create(&on->mesh, &on->links, &on->network, order, &on->contention),
                 0);
    on->links.network = mc_contention_prices(on->contention);
}

static void close_on(on_t *on)
{
    cr_assert_eq(mc_contention_status(on->contention), 0);
    mc_contention_free(on->contention);
    mc_network_free(&on->network);
    mc_links_free(&on->links);
}

static double simulated_on(on_t *on, const mc_strategy_t *s, double bytes, const int32_t *order)
{
    mc_simulated_t result;
    const mc_simulation_t q = {.mesh = &on->mesh,
                               .links = &on->links,
                               .strategy = s,
                               .bytes = bytes,
                               .network = &on->network,
                               .order = order};
    cr_assert_eq(mc_simulate(&q, &result), 0, "%s", meshcoll_last_error());
    return (double)result.ps / 1e12;
}

static mc_strategy_t parsed(const on_t *on, meshcoll_collective_t c, const char *text)
{
    mc_strategy_t s;
    cr_assert_eq(mc_strategy_parse(text, c, &on->mesh, &s), 0, "%s", meshcoll_last_error());
    return s;
}

/* What the model without a network gets wrong by up to 3 times. */
Test(contention, prices_are_what_is_simulated)
{
    static const struct {
        const char *mesh, *links, *network;
        meshcoll_collective_t c;
        const char *strategy;
        double within;
    } row[] = {
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_REDUCE_SCATTER, "reduce_scatter:halving",
         0.01},
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_ALLGATHER, "allgather:doubling-far", 0.01},
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_ALLGATHER, "allgather:bruck", 0.01},
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_ALLGATHER, "allgather:ring", 0.01},
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_BCAST, "bcast:mst", 0.01},
        {"x=16", "uniform", "tree=4:1:1GB/s", MESHCOLL_SCATTER, "scatter:mst", 0.01},
        {"x=16", "uniform", "torus=16:1GB/s", MESHCOLL_REDUCE_SCATTER,
         "reduce_scatter:halving-near", 0.01},
        {"x=16", "uniform", "torus=16:1GB/s", MESHCOLL_ALLREDUCE, "allreduce:doubling", 0.01},
        {"x=16", "uniform", "torus=4x4:1GB/s", MESHCOLL_ALLTOALL, "alltoall:pairwise", 0.05},
        {"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s", MESHCOLL_ALLREDUCE,
         "reduce_scatter:fullmesh(gpu) reduce_scatter:halving(box) allgather:doubling(box) "
         "allgather:fullmesh(gpu)",
         0.02},
        {"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s;rails", MESHCOLL_ALLREDUCE,
         "reduce_scatter:fullmesh(gpu) reduce_scatter:halving-near(box) "
         "allgather:doubling-far(box) allgather:fullmesh(gpu)",
         0.02},
        {"x=8,y=8", "tpu-v4", "torus=8x8:50GB/s", MESHCOLL_ALLREDUCE,
         "reduce_scatter:halving(x) allreduce:doubling(y) allgather:doubling(x)", 0.05}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        on_t on;
        open_on(&on, row[i].mesh, row[i].links, row[i].network, NULL);
        const mc_strategy_t s = parsed(&on, row[i].c, row[i].strategy);
        const double price = mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 1 << 26);
        const double took = simulated_on(&on, &s, 1 << 26, NULL);
        cr_expect(fabs(price / took - 1) < row[i].within, "%s on %s: price %g, takes %g",
                  row[i].strategy, row[i].network, price, took);
        close_on(&on);
    }
}

/* Segments that follow each other wait for a link that each fills for longer than its ports. */
Test(contention, segments_share_links)
{
    on_t on;
    open_on(&on, "x=8,y=8", "uniform", "torus=8x8:1GB/s", NULL);
    const mc_strategy_t s =
        parsed(&on, MESHCOLL_ALLREDUCE,
               "reduce_scatter:halving(x) allreduce:doubling(y) allgather:doubling(x) "
               "segments=8");
    const double price = mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 1 << 26);
    const double took = simulated_on(&on, &s, 1 << 26, NULL);
    on.links.network = NULL;
    const double before = mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 1 << 26);
    cr_expect(fabs(price / took - 1) < 0.1, "price %g, takes %g", price, took);
    cr_expect_lt(before, 0.8 * took);
    close_on(&on);
}

/* Across is what is near in the order of ranks: a leaf has ranks 0, 2, …, 14, so neighbours are far. */
Test(contention, an_order_of_ranks_counts)
{
    static int32_t order[16];
    on_t on;
    for (int32_t r = 0; r < 16; r++)
        order[r] = r % 2 * 8 + r / 2;
    open_on(&on, "x=16", "uniform", "tree=8:2:1GB/s", order);
    const mc_strategy_t near = parsed(&on, MESHCOLL_ALLGATHER, "allgather:doubling-far");
    const double price = mc_strategy_seconds(&near, &on.mesh, &on.links, 0, 1 << 24);
    const double took = simulated_on(&on, &near, 1 << 24, order);
    cr_expect(fabs(price / took - 1) < 0.01, "price %g, takes %g", price, took);
    cr_expect_gt(took, 1.2 * simulated_on(&on, &near, 1 << 24, NULL));
    close_on(&on);
}

/* Choices ---------------------------------------------------------------------------------------- */

/* Simulated, the choice takes at most `now` of what that without the network takes. */
Test(contention, the_network_changes_the_choice)
{
    static const struct {
        const char *mesh, *links, *network;
        meshcoll_collective_t c;
        double bytes, now;
    } row[] = {{"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s", MESHCOLL_ALLREDUCE,
                1 << 30, 0.4},
               {"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s", MESHCOLL_ALLREDUCE,
                1 << 26, 0.5},
               {"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s", MESHCOLL_ALLGATHER,
                1 << 26, 0.5},
               {"x=8,y=8", "tpu-v4", "torus=8x8:50GB/s", MESHCOLL_ALLREDUCE, 1 << 22, 0.45},
               {"x=8,y=8", "tpu-v4", "torus=8x8:50GB/s", MESHCOLL_ALLREDUCE, 1 << 28, 0.45}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        on_t on;
        mc_ranked_t with, without;
        const mc_planner_query_t query = {.bytes = row[i].bytes, .max_segments = 64};
        open_on(&on, row[i].mesh, row[i].links, row[i].network, NULL);
        cr_assert_eq(mc_planner_best(row[i].c, &on.mesh, &on.links, &query, &with), 0);
        on.links.network = NULL;
        cr_assert_eq(mc_planner_best(row[i].c, &on.mesh, &on.links, &query, &without), 0);
        const double before = simulated_on(&on, &without.strategy, row[i].bytes, NULL);
        const double after = simulated_on(&on, &with.strategy, row[i].bytes, NULL);
        cr_expect_leq(after, row[i].now * before, "%s of %g on %s: %g, before %g",
                      mc_moves[row[i].c].name, row[i].bytes, row[i].network, after, before);
        cr_expect(fabs(with.seconds / after - 1) < 0.1, "price %g, takes %g", with.seconds, after);
        close_on(&on);
    }
}

/* Links as fast as ports, and a network that does not narrow: the price of rings is what it was, to the bit. */
Test(contention, a_wide_network_adds_nothing)
{
    on_t on;
    open_on(&on, "box=8,gpu=4", "dgx-h100", "tree=32", NULL);
    const mc_strategy_t s = parsed(&on, MESHCOLL_ALLREDUCE, "hierarchical segments=4");
    const double with = mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 1e8);
    on.links.network = NULL;
    cr_expect_eq(with, mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 1e8));
    close_on(&on);
}

/* Ranks of unequal boxes have ports too. */
Test(contention, unequal_boxes)
{
    on_t on;
    open_on(&on, "box=4+3+1", "uniform,box=ports:1", "tree=1:1:500MB/s", NULL);
    const mc_strategy_t s = parsed(&on, MESHCOLL_ALLGATHER, "flat-ring");
    const double price = mc_strategy_seconds(&s, &on.mesh, &on.links, 0, 8e6);
    const double took = simulated_on(&on, &s, 8e6, NULL);
    cr_expect(fabs(price / took - 1) < 0.05, "price %g, takes %g", price, took);
    close_on(&on);
}
