/* Tracks of programs: which phases have one, that no dependency between them is lost, and that they end. */
#include "gpu/launch/price.h"

#include "gpu/program/program.h"
#include "runtime/call/request.h"
#include "support/program_text.h"
#include "support/stand.h"
#include "support/strategies.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { WORLDS = 40, BLOCKS = 4 };

typedef struct {
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    mc_device_tracks_t tracks;
    struct {
        mc_plan_t *plan;
        mc_binding_t binding;
        mc_device_program_t *program;
    } rank[STAND_RANKS];
} world_t;

static void open_world(world_t *w, const char *mesh, meshcoll_collective_t collective,
                       const char *strategy, uint32_t segments, meshcoll_op_t op)
{
    static char in, out; /* not in place: nothing is moved */
    uint32_t widest = 1;
    cr_assert_eq(mc_mesh_parse(mesh, &w->mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse(strategy, collective, &w->mesh, &w->strategy), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    w->strategy.segments *= segments;
    w->tracks = mc_gpu_tracks(&w->strategy, &w->mesh, BLOCKS);
    for (int32_t r = 0; r < w->mesh.size; r++) {
        cr_assert_eq(mc_strategy_plan(&w->strategy, &w->mesh, r, 0, &w->rank[r].plan), MESHCOLL_OK);
        const uint32_t own = mc_device_widest(w->rank[r].plan);
        widest = own > widest ? own : widest;
    }
    for (int32_t r = 0; r < w->mesh.size; r++) {
        mc_binding_t *const b = &w->rank[r].binding;
        const mc_operands_t operands = {
            .in = &in, .out = &out, .count = 97, .datatype = MESHCOLL_INT16, .op = op};
        cr_assert_eq(mc_binding_init(b, w->rank[r].plan), MESHCOLL_OK);
        cr_assert_eq(mc_binding_measure(b, &operands), MESHCOLL_OK);
        cr_assert_eq(mc_device_lower(b, widest, BLOCKS, &w->tracks, NULL, &w->rank[r].program),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
    }
}

static void close_world(world_t *w)
{
    for (int32_t r = 0; r < w->mesh.size; r++) {
        mc_device_program_free(w->rank[r].program);
        mc_binding_free(&w->rank[r].binding);
        mc_plan_free(w->rank[r].plan);
    }
}

/* Which phases ------------------------------------------------------------------------------------- */

static void expect(const char *mesh, const char *strategy, uint32_t blocks, uint32_t n,
                   const char *of)
{
    mc_mesh_t m;
    mc_strategy_t s;
    cr_assert_eq(mc_mesh_parse(mesh, &m), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse(strategy, MESHCOLL_ALLREDUCE, &m, &s), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    const mc_device_tracks_t t = mc_gpu_tracks(&s, &m, blocks);
    cr_expect_eq(t.n, n, "%s: %u tracks", strategy, t.n);
    for (int32_t i = 0; of[i]; i++)
        cr_expect_eq(t.of[i], of[i] - '0', "%s: phase %d is of track %u", strategy, i, t.of[i]);
}

Test(tracks, phases)
{
    static const char in_and_out[] = "reduce_scatter:halving(gpu) reduce_scatter:ring(box) "
                                     "allgather:ring(box) allgather:doubling(gpu) segments=4";
    expect("box=2,gpu=4", in_and_out, 32, 3, "0112");
    expect("box=2,gpu=4", in_and_out, 2, 2, "0111");
    expect("box=2,gpu=4", in_and_out, 1, 1, "0000");
    expect("box=2,gpu=4", "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu)",
           32, 1, "000");
    expect("box=2,gpu=4",
           "reduce_scatter:ring(gpu) allgather:ring(gpu) allreduce:fullmesh(box) segments=2", 32, 2,
           "001");
    expect("box=2,gpu=4", "torus", 32, 4, "01112333");
    expect("box=2,gpu=4", "torus", 3, 2, "00001111");
    expect("box=1,gpu=4", "reduce_scatter:ring(box*gpu) allgather:ring(gpu) segments=2", 32, 1,
           "00");
}

/* When they are taken ------------------------------------------------------------------------------ */

static bool pay(const world_t *w, double bytes, uint32_t slot_bytes)
{
    mc_links_t links;
    mc_gpu_load_t load = {0};
    const mc_gpu_layout_t layout = {.blocks = 32, .slot_bytes = slot_bytes};
    cr_assert_eq(mc_links_parse("dgx-h100", &w->mesh, &links), MESHCOLL_OK);
    for (int32_t r = 0; r < w->mesh.size; r++)
        mc_gpu_load_add(&load, &w->tracks, &links, w->rank[r].plan);
    return mc_gpu_tracks_pay(&w->tracks, &load, &layout, bytes / w->rank[0].plan->n_chunks,
                             w->strategy.segments);
}

/* They hide what is short beside the network; but with small slots, or few bytes, messages cost more than they
 * hide, and one that does not fit has no price. */
Test(tracks, are_taken_where_they_pay)
{
    static world_t w;
    open_world(&w, "box=2,gpu=4", MESHCOLL_REDUCE_SCATTER,
               "reduce_scatter:halving(gpu) reduce_scatter:ring(box)", 4, MESHCOLL_SUM);
    cr_assert_eq(w.tracks.n, 2);
    cr_expect(pay(&w, 1 << 28, 1 << 18));
    cr_expect_not(pay(&w, 1 << 28, 1 << 10));
    cr_expect_not(pay(&w, 1 << 28, 1));
    close_world(&w);
}

/* Dependencies ------------------------------------------------------------------------------------- */

static uint32_t track_of_run(const mc_device_run_t *run)
{
    return (uint32_t)run->flags >> MC_DEVICE_TRACK_SHIFT;
}

/* By track: the last step of it that is known to be done; -1: none. */
typedef struct {
    bool runs; /* does the step move anything? */
    int64_t done[MC_DEVICE_TRACKS];
} seen_t;

/* Steps of the plan up to which a mark of a track tells. */
static int64_t step_of_mark(const mc_device_program_t *p, uint32_t track, uint32_t mark)
{
    uint32_t i = 0;
    while (p->run[i].op != MC_DEVICE_MARK || p->run[i].lane != track || p->run[i].n != mark)
        i++;
    return p->run[i].step;
}

/* Walks the list in order: what each step's track has awaited when it begins. */
static void walk(const mc_device_program_t *p, seen_t *seen)
{
    seen_t now[MC_DEVICE_TRACKS];
    memset(now, 0xff, sizeof now);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const mc_device_run_t *const r = &p->run[i];
        seen_t *const own = &now[track_of_run(r)];
        own->runs = true;
        if (r->op == MC_DEVICE_AFTER)
            own->done[r->lane] = step_of_mark(p, r->lane, r->n);
        else if (r->op < MC_DEVICE_DIVIDE && !seen[r->step].runs)
            seen[r->step] = *own;
    }
}

static void check_edges(const world_t *w, int32_t rank, const char *what)
{
    const mc_plan_t *const plan = w->rank[rank].plan;
    seen_t *const seen = calloc((size_t)plan->n_steps + 1, sizeof *seen);
    cr_assert(seen);
    walk(w->rank[rank].program, seen);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (uint32_t e = plan->succ_off[i]; e < plan->succ_off[i + 1]; e++) {
            const uint32_t next = plan->succ[e], other = w->tracks.of[plan->step[i].phase];
            cr_assert(!seen[next].runs || other == w->tracks.of[plan->step[next].phase] ||
                          seen[next].done[other] >= i,
                      "%s: step %u of rank %d may come too early", what, next, rank);
        }
    free(seen);
}

static bool ends(const world_t *w)
{
    static stand_t s;
    s = (stand_t){.ranks = w->mesh.size, .slots = MC_DEVICE_SLOTS};
    for (int r = 0; r < s.ranks; r++)
        s.program[r] = w->rank[r].program;
    stand_run(&s);
    return stand_completes(&s);
}

static void check_world(const world_t *w, const char *what)
{
    static const uint64_t room[] = {1 << 16, 1 << 16, 1 << 16};
    for (int32_t r = 0; r < w->mesh.size; r++) {
        cr_assert_eq(mc_device_program_check(w->rank[r].program, room), MESHCOLL_OK, "%s: %s", what,
                     meshcoll_last_error());
        check_edges(w, r, what);
    }
    cr_assert(ends(w), "%s stands still", what);
}

/* Returns how many had several tracks. */
static unsigned sweep(const char *text)
{
    static world_t w;
    mc_mesh_t mesh;
    unsigned several = 0, turn = 0;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, WORLDS, &sample), 0);
        for (int i = 0; i < sample.n; i++, turn++) {
            open_world(&w, text, (meshcoll_collective_t)k, sample.text[i], 1 + turn % 3,
                       turn % 2 ? MESHCOLL_SUM : MESHCOLL_AVG);
            check_world(&w, sample.text[i]);
            several += w.tracks.n > 1;
            close_world(&w);
        }
        mc_sample_close(&sample);
    }
    return several;
}

Test(tracks, keep_dependencies_and_end)
{
    const unsigned several =
        sweep("box=2,gpu=4") + sweep("box=4+3+1") + sweep("rack=2,box=2,gpu=2");
    cr_expect_gt(several, 250, "%u worlds", several);
}

/* Faults ------------------------------------------------------------------------------------------- */

static void break_mark(mc_device_run_t *run)
{
    run->n++;
}
static void break_track(mc_device_run_t *run)
{
    run->flags |= 3 << MC_DEVICE_TRACK_SHIFT;
}
static void break_self(mc_device_run_t *run)
{
    run->lane = track_of_run(run);
}
static void break_early(mc_device_run_t *run)
{
    run->n += 1000;
}

Test(tracks, the_check_finds_each_fault)
{
    static const struct {
        uint8_t op;
        void (*breaks)(mc_device_run_t *run);
        const char *what;
    } broken[] = {{MC_DEVICE_MARK, break_mark, "not the next one"},
                  {MC_DEVICE_SEND, break_track, "of no track"},
                  {MC_DEVICE_AFTER, break_self, "waits for a mark that is not set"},
                  {MC_DEVICE_AFTER, break_early, "waits for a mark that is not set"}};
    static const uint64_t room[] = {1 << 16, 1 << 16, 1 << 16};
    for (size_t i = 0; i < MC_COUNT(broken); i++) {
        world_t w;
        open_world(&w, "box=2,gpu=2", MESHCOLL_ALLREDUCE,
                   "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu)", 3,
                   MESHCOLL_SUM);
        cr_assert_eq(w.tracks.n, 3);
        const mc_device_program_t *const p = w.rank[1].program;
        uint32_t at = 0;
        while (p->run[at].op != broken[i].op)
            at++;
        cr_assert_eq(mc_device_program_check(p, room), MESHCOLL_OK);
        broken[i].breaks((mc_device_run_t *)&p->run[at]);
        cr_assert_eq(mc_device_program_check(p, room), MESHCOLL_ERR_PLAN);
        cr_assert(strstr(meshcoll_last_error(), broken[i].what), "%s", meshcoll_last_error());
        close_world(&w);
    }
}

/* Ranks that wait for each other's marks in a circle are found. */
Test(tracks, a_circle_stands_still)
{
    static world_t w;
    open_world(&w, "box=2,gpu=2", MESHCOLL_ALLREDUCE,
               "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu)", 3,
               MESHCOLL_SUM);
    const mc_device_program_t *const p = w.rank[0].program;
    uint32_t at = 0;
    while (p->run[at].op != MC_DEVICE_AFTER)
        at++;
    ((mc_device_run_t *)&p->run[at])->n = 1000;
    cr_assert_not(ends(&w));
    close_world(&w);
}
