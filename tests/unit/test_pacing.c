/*
 * Pacing on a fast network, by arithmetic on real plans: 8 ranks in a box, 100 Gbit/s (12.5 GB/s, alpha 2 us) through
 * one port and through eight. What windows and credits allow in flight is at least the bandwidth-delay product, and no
 * message below 64 KiB that fits the window is cut.
 */
#include "compose/pace/limits.h"
#include "compose/price/strategy_cost.h"
#include "runtime/execute/pace.h"
#include "support/fake_wire.h"
#include "support/strategies.h"

#include <string.h>

enum { SHARING = 8, SMALL = 64 * KIB, MOST = 64 << 20 };

static const char *const ports[] = {
    "box=alpha:2us;beta:12.5GB/s;gamma:100GB/s;ports:1,gpu=nvlink4",
    "box=alpha:2us;beta:12.5GB/s;gamma:100GB/s;ports:8,gpu=nvlink4"};

static mc_links_t links_of(const char *text, const mc_mesh_t *mesh)
{
    mc_links_t links;
    cr_assert_eq(mc_links_parse(text, mesh, &links), MESHCOLL_OK, "%s", meshcoll_last_error());
    return links;
}

static mc_pacing_t pacing_of(const mc_links_t *links, const mc_mesh_t *mesh)
{
    return (mc_pacing_t){.wire = 0,
                         .concurrent = 1,
                         .window = (size_t)mc_links_window(links, mesh, 0),
                         .least = mc_links_least(links, 0)};
}

/* Through all ports of a box: a round trip of two alphas. */
static double product(const mc_links_t *links)
{
    return 2 * links->dim[0].alpha / links->dim[0].beta * links->dim[0].ports;
}

/* Cuts -------------------------------------------------------------------------------------------- */

/* How many phases were looked at. */
static int check_cuts(const mc_mesh_t *mesh, const mc_links_t *links,
                      meshcoll_collective_t collective, const char *text)
{
    mc_strategy_t s;
    const mc_pacing_t pacing = pacing_of(links, mesh);
    int n = 0;
    cr_assert_eq(mc_strategy_parse(text, collective, mesh, &s), MESHCOLL_OK);
    for (int32_t i = 0; i < s.n_phases; i++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(&s, mesh, links, 0, i);
        /* a tree that passes slices on sends half of its 7 in the first of 3 rounds */
        const double largest = mc_algorithms[s.phase[i].algorithm].slices ? 7 / 3.0 : 1;
        mc_placement_t state[MC_MAX_DIMS];
        mc_strategy_state(&s, mesh, i, state);
        for (size_t bytes = KIB; bytes <= MOST; bytes *= 2) {
            const double message = mc_pacing_mean(&cost, links) * (double)bytes;
            const uint32_t needed = mc_pacing_segments(&pacing, mesh, s.phase[i].algorithm,
                                                       s.phase[i].dims, state, message);
            if (message == 0 || message * largest >= SMALL || message > (double)pacing.window)
                continue;
            n++;
            cr_expect_eq(needed, 1, "%s, phase %d: messages of %.0f bytes are cut in %u", text, i,
                         message, needed);
        }
    }
    return n;
}

Test(pacing, cuts_no_small_message_on_a_fast_network)
{
    mc_mesh_t mesh;
    int n = 0;
    cr_assert_eq(mc_mesh_parse("box=8,gpu=8", &mesh), MESHCOLL_OK);
    for (size_t p = 0; p < MC_COUNT(ports); p++) {
        const mc_links_t links = links_of(ports[p], &mesh);
        for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
            mc_sample_t sample;
            cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, 200, &sample), 0);
            for (int i = 0; i < sample.n; i++)
                n += check_cuts(&mesh, &links, (meshcoll_collective_t)k, sample.text[i]);
            mc_sample_close(&sample);
        }
    }
    cr_expect_gt(n, 5000);
}

/* A slow wire whose switch holds little, as in the lab: there they are cut. */
Test(pacing, cuts_on_a_slow_wire)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse("box=4,gpu=4", &mesh), MESHCOLL_OK);
    const mc_links_t links = links_of("lab", &mesh);
    const mc_pacing_t pacing = pacing_of(&links, &mesh);
    const int32_t algorithm = mc_algorithm_find(MESHCOLL_ALLGATHER, "ring", 4);
    const mc_placement_t state[MC_MAX_DIMS] = {MC_SHARD, MC_SHARD};
    cr_expect_eq(mc_pacing_segments(&pacing, &mesh, algorithm, (mc_dims_t){0, 1}, state, SMALL - 1),
                 4);
}

/* In flight --------------------------------------------------------------------------------------- */

static bool is_of(const rank_t *r, uint32_t t, uint8_t phase, bool sends)
{
    const mc_step_t *const s = &r->executor.plan->step[t];
    const mc_op_t op = (mc_op_t)s->op;
    return s->phase == phase && (sends ? mc_op_sends(op) : mc_op_receives(op));
}

/* Bytes of a phase's messages in one direction, from step `first` on and before step `end`. */
static size_t between(const rank_t *r, uint32_t first, uint32_t end, bool sends)
{
    size_t bytes = 0;
    for (uint32_t t = first; t < end; t++)
        if (is_of(r, t, r->executor.plan->step[first].phase, sends))
            bytes += r->binding.step[t].bytes;
    return bytes;
}

/* What waits for message t: how many of them, each with enough in flight before it. */
static int check_waiting(const rank_t *r, const char *text, uint32_t t, double share)
{
    const mc_task_t *const task = r->executor.task;
    int n = 0;
    for (uint32_t s = task[t].first[MC_BY_WINDOW]; s > 0; s = task[s - 1].next[MC_BY_WINDOW], n++)
        cr_expect_geq((double)between(r, t, s - 1, false), share, "%s: send %u waits for %u", text,
                      s - 1, t);
    for (uint32_t s = task[t].first[MC_BY_CREDIT]; s > 0; s = task[s - 1].next[MC_BY_CREDIT], n++)
        cr_expect_geq(
            (double)between(r, t, s - 1, is_of(r, t, r->executor.plan->step[t].phase, true)), share,
            "%s: message %u waits for a credit of %u", text, s - 1, t);
    return n;
}

/* What several may send to one at once from the start: messages without credits, and those requested first. */
static size_t at_start(const rank_t *r)
{
    const mc_executor_t *const x = &r->executor;
    size_t bytes = 0;
    for (uint32_t l = 0; l < x->n_lanes; l++)
        for (uint32_t i = 0; !x->lane[l].bytes_sent && i < x->lane[l].n_free; i++)
            bytes += r->binding.step[x->queue[x->lane[l].first + i]].bytes;
    for (uint32_t t = x->first_request; t > 0; t = x->task[t - 1].next[MC_BY_CREDIT])
        bytes += r->binding.step[t - 1].bytes;
    return bytes;
}

static int check_in_flight(meshcoll_collective_t collective, const char *text, int32_t rank,
                           size_t block, double window, double share)
{
    static rank_t r;
    int n = 0;
    rank_open(&r, &(opened_t){collective, text, rank, block, SHARING, true, (size_t)window});
    const mc_plan_t *const plan = r.executor.plan;
    for (uint32_t t = 0; t < plan->n_steps; t++)
        n += check_waiting(&r, text, t, share);
    const size_t all = between(&r, 0, plan->n_steps, false);
    if (collective == MESHCOLL_GATHER && all > 0)
        cr_expect_geq((double)at_start(&r), (double)all < share ? (double)all : share,
                      "%s: %zu bytes of %zu may come at once", text, at_start(&r), all);
    rank_close(&r);
    return n;
}

Test(pacing, allows_the_bandwidth_delay_product_in_flight)
{
    static const struct {
        meshcoll_collective_t collective;
        const char *text;
    } by[] = {{MESHCOLL_ALLTOALL, "alltoall:pairwise(x)"},
              {MESHCOLL_ALLTOALL, "alltoall:pairwise(x) segments=8"},
              {MESHCOLL_ALLGATHER, "allgather:ring(x)"},
              {MESHCOLL_ALLGATHER, "allgather:ring(x) segments=16"},
              {MESHCOLL_ALLGATHER, "allgather:fullmesh(x) segments=4"},
              {MESHCOLL_BCAST, "bcast:chain(x) segments=32"},
              {MESHCOLL_GATHER, "gather:star(x) segments=16"},
              {MESHCOLL_SCATTER, "scatter:star(x) segments=16"}};
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse("box=8,gpu=8", &mesh), MESHCOLL_OK);
    for (size_t p = 0; p < MC_COUNT(ports); p++) {
        const mc_links_t links = links_of(ports[p], &mesh);
        const double window = mc_links_window(&links, &mesh, 0);
        int n = 0;
        cr_expect_geq(window, product(&links));
        for (size_t i = 0; i < MC_COUNT(by); i++)
            for (size_t block = 8 * KIB; block <= 4096 * KIB; block *= 4)
                for (int32_t rank = 0; rank < 3; rank++)
                    n += check_in_flight(by[i].collective, by[i].text, rank, block, window,
                                         product(&links) / SHARING);
        cr_expect_gt(n, 500, "%d messages wait for others", n);
    }
}
