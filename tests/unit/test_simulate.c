/* Simulated times: small networks by hand, and classes of ranks against all of them. */
#include "compose/price/bound.h"
#include "network/ends.h"
#include "simulate/simulate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static mc_simulated_t simulated(const char *collective_text, const char *mesh_text,
                                const char *links_text, const char *network_text,
                                const char *strategy, double bytes, mc_simulation_t q)
{
    mc_mesh_t mesh;
    mc_links_t links;
    mc_network_t network;
    mc_strategy_t s;
    mc_simulated_t result;
    meshcoll_collective_t collective = MESHCOLL_BCAST;
    while (strcmp(mc_moves[collective].name, collective_text) != 0)
        collective++;
    cr_assert_eq(mc_mesh_parse(mesh_text, &mesh), 0, "%s", meshcoll_last_error());
    cr_assert_eq(mc_links_parse(links_text, &mesh, &links), 0, "%s", meshcoll_last_error());
    cr_assert_eq(mc_strategy_parse(strategy, collective, &mesh, &s), 0, "%s",
                 meshcoll_last_error());
    if (network_text) {
        cr_assert_eq(mc_network_parse(network_text, &network), 0, "%s", meshcoll_last_error());
        cr_assert_eq(mc_network_fit_to(&mesh, &links, &network), 0, "%s", meshcoll_last_error());
        q.network = &network;
    }
    q.mesh = &mesh;
    q.links = &links;
    q.strategy = &s;
    q.bytes = bytes;
    cr_assert_eq(mc_simulate(&q, &result), 0, "%s on %s: %s", strategy, mesh_text,
                 meshcoll_last_error());
    mc_links_free(&links);
    if (network_text)
        mc_network_free(&network);
    return result;
}

#define PLAIN "x=alpha:1us;beta:1GB/s"
static const int64_t US = 1000000;

/* Six steps of 1 MB; crossed, two messages share the only link up of each leaf. */
Test(simulate, two_leaves_by_hand)
{
    static const int32_t crossed[] = {0, 2, 1, 3};
    mc_simulated_t r = simulated("allreduce", "x=4", PLAIN, "tree=2:1:1GB/s", "allreduce:ring", 4e6,
                                 (mc_simulation_t){0});
    cr_assert_eq(r.ps, 6006 * US, "%lld", (long long)r.ps);
    r = simulated("allreduce", "x=4", PLAIN, "tree=2:1:1GB/s", "allreduce:ring", 4e6,
                  (mc_simulation_t){.order = crossed});
    cr_assert_eq(r.ps, 12006 * US, "%lld", (long long)r.ps);
    cr_assert_eq(r.n_busiest, 3);
    cr_assert_str_eq(r.busiest[0].name, "leaf0.0 up0");
    cr_assert_eq(r.busiest[0].busy, 12000 * US);
}

/* A port sends one message after the other, and a receiver of many receives one link's worth at a time. */
Test(simulate, ports_by_hand)
{
    const mc_simulation_t q = {0};
    /* the tree's root sends 1 MB twice, and its first receiver once: 2 (1 ms + 1 us) */
    cr_assert_eq(simulated("bcast", "x=4", PLAIN, NULL, "bcast:mst", 1e6, q).ps, 2002 * US);
    /* a star: the third message leaves after two others and their gaps */
    cr_assert_eq(simulated("bcast", "x=4", PLAIN, NULL, "bcast:star", 1e6, q).ps, 3003 * US);
    cr_assert_eq(
        simulated("bcast", "x=4", "x=alpha:5us;gap:1us;beta:1GB/s", NULL, "bcast:star", 1e6, q).ps,
        3007 * US);
    /* three that start together share the receiver, with a gap after each; then sums wait for each other */
    cr_assert_eq(simulated("reduce", "x=4", PLAIN, NULL, "reduce:star", 1e6, q).ps, 3003 * US);
    cr_assert_eq(simulated("reduce", "x=4", "x=alpha:1us;beta:1GB/s;gamma:2GB/s", NULL,
                           "reduce:star", 1e6, q)
                     .ps,
                 4503 * US);
    /* pulled: all receivers of a star copy at once, and the root of a gather one by one */
    cr_assert_eq(simulated("bcast", "gpu=4", "gpu=alpha:1us;beta:1GB/s;pulled:yes", NULL,
                           "bcast:star", 1e6, q)
                     .ps,
                 1001 * US);
    cr_assert_eq(simulated("gather", "gpu=4", "gpu=alpha:1us;beta:1GB/s;pulled:yes", NULL,
                           "gather:star", 4e6, q)
                     .ps,
                 3003 * US);
    /* two boxes of two ranks behind one port: both send through it at once */
    cr_assert_eq(simulated("reduce_scatter", "box=2,gpu=2",
                           "box=alpha:1us;beta:1GB/s,gpu=alpha:0;beta:0;pulled:yes", NULL,
                           "reduce_scatter:ring(gpu) reduce_scatter:ring(box)", 4e6, q)
                     .ps,
                 2001 * US);
    /* at most four are on their way: the fifth of five short messages waits for the first to arrive */
    cr_assert_eq(
        simulated("bcast", "x=5", "x=alpha:100us;gap:1us;beta:1GB/s", NULL, "bcast:star", 1, q).ps,
        103 * US + 4000);
    cr_assert_eq(
        simulated("bcast", "x=6", "x=alpha:100us;gap:1us;beta:1GB/s", NULL, "bcast:star", 1, q).ps,
        200 * US + 2000);
}

Test(simulate, late_ranks_and_slow_links)
{
    int64_t late[4] = {0, 500 * US, 0, 0};
    mc_simulated_t r =
        simulated("bcast", "x=4", PLAIN, NULL, "bcast:chain", 1e6, (mc_simulation_t){.late = late});
    cr_assert_eq(r.ps, 3003 * US, "%lld", (long long)r.ps); /* it waits for its message anyway */
    late[1] = 1501 * US;
    r = simulated("bcast", "x=4", PLAIN, NULL, "bcast:chain", 1e6, (mc_simulation_t){.late = late});
    cr_assert_eq(r.ps, 3503 * US, "%lld", (long long)r.ps);
    r = simulated("bcast", "gpu=4", "gpu=alpha:1us;beta:1GB/s;pulled:yes", NULL, "bcast:star", 1e6,
                  (mc_simulation_t){.late = late});
    cr_assert_eq(r.ps, 2501 * US, "%lld", (long long)r.ps);
    r = simulated("allreduce", "x=4", PLAIN, "tree=2:1:1GB/s", "allreduce:ring", 4e6,
                  (mc_simulation_t){.slow = &(mc_slow_t){"leaf1.0 up0", 3}, .n_slow = 1});
    cr_assert_eq(r.ps, 18001 * US, "%lld", (long long)r.ps);
    cr_assert_str_eq(r.busiest[0].name, "leaf1.0 up0");
    /* ports of ranks and of boxes, and what a rank receives or pulls: 1 MB takes 1 ms, and 3 ms there */
    static const struct {
        const char *mesh, *links, *strategy, *slow;
        int64_t us;
    } ports[] = {
        {"x=4", PLAIN, "bcast:chain", "x port 1 out", 5003},
        {"x=4", PLAIN, "bcast:chain", "x rank 2 in", 5003},
        {"x=4", PLAIN, "bcast:chain", "x port 2 in", 5003},
        {"x=4", PLAIN, "bcast:star", "x port 0 out", 9001},
        {"x=4", PLAIN, "bcast:chain", "x port 3 out", 3003},
        {"gpu=4", "gpu=alpha:1us;beta:1GB/s;pulled:yes", "bcast:chain", "gpu port 2 in", 5003},
        {"box=2,gpu=2", "box=alpha:1us;beta:1GB/s;ports:1,gpu=alpha:1us;beta:10GB/s",
         "bcast:chain(box) bcast:chain(gpu)", "box port 2 in", 3102}};
    for (size_t i = 0; i < MC_COUNT(ports); i++) {
        const mc_slow_t slow[] = {{ports[i].slow, 3}};
        for (int whole = 0; whole < 2; whole++) {
            r = simulated("bcast", ports[i].mesh, ports[i].links, NULL, ports[i].strategy, 1e6,
                          (mc_simulation_t){.slow = slow, .n_slow = 1, .whole = whole});
            cr_expect_eq(r.ps, ports[i].us * US, "%s: %lld", ports[i].slow, (long long)r.ps);
        }
    }
    const mc_slow_t two[] = {{"x rank 1 in", 3}, {"x port 2 out", 2}};
    r = simulated("bcast", "x=4", PLAIN, NULL, "bcast:chain", 1e6,
                  (mc_simulation_t){.slow = two, .n_slow = 2});
    cr_assert_eq(r.ps, 6003 * US, "%lld", (long long)r.ps);
}

/* 16 ranks on leaves of 4 with one link up, alpha 1 us, n ps per byte of the vector: the rounds that cross a leaf carry
 * n/2 and n/4 four at a time where far comes first, n/8 and n/16 where near does; the others 3/16 and 3/4 of n. Those of
 * Bruck all cross some. */
Test(simulate, near_rounds_first_spare_a_network_that_narrows)
{
    static const struct {
        const char *collective, *strategy;
        int64_t us;
    } row[] = {{"reduce_scatter", "reduce_scatter:halving", 4 + 3000 + 187},
               {"reduce_scatter", "reduce_scatter:halving-near", 4 + 750 + 750},
               {"reduce_scatter", "reduce_scatter:bruck-near", 2 + 1750},
               {"allgather", "allgather:doubling", 4 + 3000 + 187},
               {"allgather", "allgather:doubling-far", 4 + 750 + 750},
               {"allgather", "allgather:bruck-far", 4 + 1750}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        const mc_simulated_t r = simulated(row[i].collective, "x=16", PLAIN, "tree=4:1:1GB/s",
                                           row[i].strategy, 1e6, (mc_simulation_t){0});
        cr_expect_eq(r.ps / US, row[i].us, "%s: %lld us, not %lld", row[i].strategy,
                     (long long)(r.ps / US), (long long)row[i].us);
    }
}

/* Ranks that do the same: one for each class takes exactly as long as all of them. */
Test(simulate, classes_agree_with_all_ranks)
{
    static const char *const networks[] = {NULL,
                                           "tree=8:8:47GB/s",
                                           "tree=4:2:47GB/s/4:2:47GB/s;rails",
                                           "tree=6:3:20GB/s/3:5:30GB/s",
                                           "tree=8:4:47GB/s;ecmp",
                                           "torus=8x16:47GB/s",
                                           "torus=16:10GB/s"};
    static const char *const strategies[][3] = {
        {"allreduce", "box=16,gpu=8", "hierarchical"},
        {"allreduce", "box=16,gpu=8", "flat-ring segments=2"},
        {"allreduce", "box=16,gpu=8", "torus segments=4"},
        {"allreduce", "box=16,gpu=8",
         "reduce_scatter:halving(gpu) allreduce:ring(box) allgather:fullmesh(gpu)"},
        {"allgather", "pod=4,box=4,gpu=8",
         "allgather:ring(pod*box) allgather:fullmesh(gpu) segments=3"},
        {"alltoall", "box=16,gpu=8", "alltoall:pairwise(box*gpu)"},
        {"alltoall", "box=16,gpu=8", "alltoall:pairwise(box) alltoall:pairwise(gpu)"},
        {"bcast", "box=16,gpu=8", "option3 segments=2"},
        {"reduce_scatter", "pod=4,box=4,gpu=8",
         "reduce_scatter:ring(gpu) reduce_scatter:halving(pod) reduce_scatter:ring(box)"}};
    int folded = 0;
    for (size_t n = 0; n < MC_COUNT(networks); n++)
        for (size_t i = 0; i < MC_COUNT(strategies); i++) {
            const mc_simulated_t few =
                simulated(strategies[i][0], strategies[i][1], "dgx-h100", networks[n],
                          strategies[i][2], 3e7, (mc_simulation_t){0});
            const mc_simulated_t all =
                simulated(strategies[i][0], strategies[i][1], "dgx-h100", networks[n],
                          strategies[i][2], 3e7, (mc_simulation_t){.whole = true});
            cr_assert_eq(few.ps, all.ps, "%s on %s: %lld, all %lld", strategies[i][2], networks[n],
                         (long long)few.ps, (long long)all.ps);
            cr_assert_eq(memcmp(few.phase, all.phase, sizeof few.phase), 0, "%s on %s",
                         strategies[i][2], networks[n]);
            cr_assert_eq(few.busiest[0].busy, all.busiest[0].busy);
            cr_assert_eq(all.classes, 128);
            folded += few.classes < 128;
        }
    cr_assert_geq(folded, 40, "%d", folded);
}

typedef struct {
    double bytes;
    int64_t last;
    int n;
} seen_t;
static void see(void *context, const mc_sent_t *m)
{
    seen_t *const seen = context;
    cr_assert(m->start < m->arrival && m->from != m->to);
    seen->bytes += m->bytes;
    seen->last = m->arrival > seen->last ? m->arrival : seen->last;
    seen->n++;
}

Test(simulate, messages_are_recorded)
{
    seen_t seen = {0};
    const mc_simulated_t r =
        simulated("allgather", "x=5", PLAIN, NULL, "allgather:ring", 5e6,
                  (mc_simulation_t){.whole = true, .record = see, .context = &seen});
    cr_assert_eq(seen.n, 20);
    cr_assert_eq((int)r.messages, 20);
    cr_assert_float_eq(seen.bytes, 20e6, 1e-6);
    cr_assert_eq(seen.last, r.ps);
}

/* Boxes of unequal sizes, and every collective: nothing is stuck, and no time is below the bound. */
static bool runs(void *context, const mc_strategy_t *s)
{
    const mc_mesh_t *const mesh = context;
    mc_links_t links;
    mc_simulated_t r;
    cr_assert_eq(mc_links_parse("generic", mesh, &links), 0);
    const mc_simulation_t q = {.mesh = mesh, .links = &links, .strategy = s, .bytes = 1e6};
    cr_assert_eq(mc_simulate(&q, &r), 0, "%s", meshcoll_last_error());
    cr_expect_geq((double)r.ps / 1e12, 0.99 * mc_lower_bound(s->collective, mesh, &links, 1e6),
                  "%s of %d ranks", mc_moves[s->collective].name, mesh->size);
    return true;
}

Test(simulate, every_strategy_of_the_cover_ends)
{
    static const char *const meshes[] = {"box=3+2+1", "box=3,gpu=2", "x=5"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        mc_mesh_t mesh;
        cr_assert_eq(mc_mesh_parse(meshes[m], &mesh), 0);
        for (int c = MESHCOLL_BCAST; c <= MESHCOLL_ALLTOALL; c++)
            cr_assert_eq(
                mc_strategy_each((meshcoll_collective_t)c, &mesh, MC_PATHS_COVER, runs, &mesh), 0);
    }
}
