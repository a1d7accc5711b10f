/* What meshcoll_explain tells: settings, phases of steps and of runs, calls and reasons. */
#include "runtime/diagnose/explain.h"
#include "support/inproc.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 6, MOST = 4000, ROOM = 1 << 15 };

/* Settings --------------------------------------------------------------------------------------- */

static mc_explain_t *explain_of(const char *text)
{
    const mc_settings_t settings = {.explain = text, .links = "lab", .links_from = "a test"};
    mc_explain_t *explain = NULL;
    cr_assert_eq(mc_explain_create(&settings, &explain), MESHCOLL_OK, "%s", meshcoll_last_error());
    return explain;
}

static void expect_setting(const char *text, double factor, const char *path)
{
    mc_explain_t *const e = explain_of(text);
    cr_assert_not_null(e, "%s", text);
    cr_expect_eq(e->factor, factor, "%s", text);
    cr_expect((!path && !e->path) || (path && e->path && strcmp(path, e->path) == 0), "%s", text);
    mc_explain_destroy(e);
}

Test(explained, setting_is_words_and_a_path)
{
    expect_setting("1", 2, NULL);
    expect_setting("stderr,factor:3", 3, NULL);
    expect_setting("factor:1.5", 1.5, NULL);
    expect_setting("factor:4,out/a,b.txt", 4, "out/a,b.txt");
    expect_setting("report.txt", 2, "report.txt");
    cr_expect_null(explain_of("0"));
    cr_expect_null(explain_of("off,factor:3"));
    cr_expect_null(explain_of(NULL));
}

Test(explained, factor_is_a_number_above_one)
{
    static const char *const wrong[] = {"factor:1", "factor:x", "factor:2s,1", "factor:nan",
                                        "factor:"};
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        const mc_settings_t settings = {.explain = wrong[i]};
        mc_explain_t *explain = NULL;
        cr_expect_eq(mc_explain_create(&settings, &explain), MESHCOLL_ERR_PARSE, "%s", wrong[i]);
        cr_expect_null(explain);
    }
}

/* Phases ----------------------------------------------------------------------------------------- */

Test(explained, steps_know_their_phase)
{
    plans_t p;
    plans_of(&p, &(case_t){"box=2,gpu=2", MESHCOLL_ALLREDUCE, 0,
                           "reduce_scatter:ring(gpu) allreduce:mst(box) allgather:ring(gpu) "
                           "segments=2"});
    for (int32_t r = 0; r < p.n; r++) {
        uint32_t seen[3] = {0}, turns = 0;
        for (uint32_t i = 0; i < p.plan[r]->n_steps; i++) {
            const mc_step_t *const s = &p.plan[r]->step[i];
            cr_assert_lt(s->phase, 3);
            seen[s->phase]++;
            turns += i > 0 && s->phase < s[-1].phase;
            if (s->peer >= 0)
                cr_expect_eq(mc_mesh_level(&p.plan[r]->layout.mesh, r, s->peer), s->phase != 1);
        }
        cr_expect_eq(turns, 1); /* to the second segment */
        for (int32_t i = 0; i < 3; i++)
            cr_expect_gt(seen[i], 0);
    }
    plans_free(&p);
}

/* Rank 0 of 2, two phases: it sends and gets a sum, then sends and gets again. */
Test(explained, phases_last_from_first_begin_to_last_end)
{
    plans_t p;
    plans_of(&p,
             &(case_t){"x=2", MESHCOLL_ALLREDUCE, 0, "reduce_scatter:ring(x) allgather:ring(x)"});
    const mc_plan_t *const plan = p.plan[0];
    mc_timeline_t t;
    double seconds[3];
    cr_assert_eq(mc_timeline_init(&t, plan), MESHCOLL_OK);
    t.started = 10;
    t.ended = 31;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const bool sends = mc_op_sends((mc_op_t)s->op);
        /* receives are posted at once; phase 0 takes 11 to 17, phase 1 18 to 30 */
        t.step[i].at[MC_READY] = 10;
        t.step[i].at[MC_POSTED] = !sends ? 10.5 : s->phase ? 18 : 11;
        t.step[i].at[MC_ENDED] = s->phase ? sends ? 20 : 30 : sends ? 12 : 17;
    }
    mc_explain_phases(plan, &t, 2, seconds);
    cr_expect_float_eq(seconds[0], 6.5, 1e-12); /* from the receive on, at 10.5 */
    cr_expect_float_eq(seconds[1], 13, 1e-12);  /* from phase 0's end, which it waited for */
    cr_expect_float_eq(seconds[2], 1, 1e-12);
    mc_timeline_free(&t);
    plans_free(&p);
}

/* A strategy of two sides has the phases of both, also those along dimensions 1 long, which do nothing. */
Test(explained, phases_of_two_sides)
{
    enum { PHASES = 24 };
    plans_t p;
    plans_of(&p, &(case_t){"a=2,b=2,c=1,d=1,e=1,f=1", MESHCOLL_ALLREDUCE, 0, "torus"});
    const mc_plan_t *const plan = p.plan[0];
    mc_timeline_t t;
    double seconds[PHASES + 1];
    bool runs[PHASES] = {false};
    cr_assert_eq(mc_timeline_init(&t, plan), MESHCOLL_OK);
    t.started = 10;
    t.ended = 100;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        runs[plan->step[i].phase] = true;
        t.step[i].at[MC_POSTED] = 11 + i;
        t.step[i].at[MC_ENDED] = 11.5 + i;
    }
    mc_explain_phases(plan, &t, PHASES, seconds);
    for (int i = 0; i < PHASES; i++)
        cr_expect_eq(seconds[i] > 0, runs[i], "phase %d: %g", i, seconds[i]);
    cr_expect(!runs[0] && runs[5] && runs[PHASES - 1]);
    mc_timeline_free(&t);
    plans_free(&p);
}

/* Reports ---------------------------------------------------------------------------------------- */

static void open_on(meshcoll_t *rank[RANKS], const char *links, const char *explain)
{
    const meshcoll_params_t params = {.size = sizeof params, .links = links, .explain = explain};
    cr_assert_eq(mc_inproc_create("box=2,gpu=2", &params, rank), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
}

static void open_world(meshcoll_t *rank[RANKS], const char *explain)
{
    open_on(rank, "uniform", explain);
}

static void close_world(meshcoll_t *rank[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

/* What each rank is asked alike, but for its own count where there are `counts`. */
static void run_args(meshcoll_t *rank[RANKS], const meshcoll_args_t *alike, int times)
{
    static float in[RANKS][RANKS * MOST], out[RANKS][RANKS * MOST];
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        meshcoll_args_t args = *alike;
        args.size = sizeof args;
        args.in = in[r];
        args.out = out[r];
        args.count = args.counts ? args.counts[r] : args.count;
        cr_assert_eq(meshcoll_init(rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
    for (int i = 0; i < times; i++) {
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
        for (int left = 1; left;) {
            left = 0;
            for (int r = 0; r < RANKS; r++)
                left += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
        }
    }
    for (int r = 0; r < RANKS; r++)
        meshcoll_free(request[r]);
}

static void run(meshcoll_t *rank[RANKS], meshcoll_collective_t collective, const char *strategy,
                int times)
{
    const meshcoll_args_t args = {.collective = collective, .count = COUNT, .strategy = strategy};
    run_args(rank, &args, times);
}

static void expect_parts(const char *text, const char *const *part, size_t n)
{
    const char *at = text;
    for (size_t i = 0; i < n; i++) {
        const char *const found = strstr(at, part[i]);
        cr_assert_not_null(found, "expected \"%s\" after what came before it in:\n%s", part[i],
                           text);
        at = found + strlen(part[i]);
    }
}

Test(explained, report_says_who_chose_and_what_else_there_is)
{
    static const char *const chosen[] = {"what ran on box=2,gpu=2, 4 ranks, as rank 2 saw it",
                                         "links: uniform, given to meshcoll_create",
                                         "allreduce of 24 B: 70 runs, median ",
                                         "chosen by the planner",
                                         "next best: ",
                                         " predicted, ",
                                         "times as long",
                                         "phase",
                                         "the whole call"};
    static const char *const forced[] = {
        "bcast of 24 B, root 0: 1 run, median ", "bcast:chain(box*gpu) segments=3",
        "forced by meshcoll_args_t.strategy", "the planner would take ", "bcast:chain(box*gpu) "};
    static const char *const by_mesh[] = {"reduce of 24 B, root 0: 2 runs",
                                          "forced by meshcoll_set_strategy"};
    meshcoll_t *rank[RANKS];
    char *text;
    open_world(rank, "/dev/null");
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(meshcoll_set_strategy(rank[r], MESHCOLL_REDUCE, "flat-mst"), MESHCOLL_OK);
    run(rank, MESHCOLL_ALLREDUCE, NULL, 40);
    run(rank, MESHCOLL_ALLREDUCE, NULL, MC_EXPLAINED_RUNS - 34); /* the same call again */
    run(rank, MESHCOLL_BCAST, "flat-chain segments=3", 1);
    run(rank, MESHCOLL_REDUCE, NULL, 2);
    run(rank, MESHCOLL_GATHER, NULL, 0);
    cr_assert_eq(meshcoll_explain(rank[2], &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_parts(text, chosen, MC_COUNT(chosen));
    expect_parts(text, forced, MC_COUNT(forced));
    expect_parts(text, by_mesh, MC_COUNT(by_mesh));
    cr_expect_null(strstr(text, "gather of"), "what never ran is not told");
    free(text);
    close_world(rank);
}

/* Where they cost nearly the same, by how little they differ. */
Test(explained, report_tells_what_is_next_to_as_good)
{
    static const char *const parts[] = {"forced by meshcoll_args_t.strategy",
                                        "the planner would take allgather:", " predicted, 0.",
                                        " % shorter"};
    meshcoll_t *rank[RANKS];
    char *text;
    open_on(rank, "uniform,gpu=alpha:1us;beta:0.9GB/s", "/dev/null");
    run(rank, MESHCOLL_ALLGATHER, "allgather:ring(box) allgather:ring(gpu)", 1);
    cr_assert_eq(meshcoll_explain(rank[0], &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_parts(text, parts, MC_COUNT(parts));
    free(text);
    close_world(rank);
}

Test(explained, report_tells_what_each_call_takes)
{
    static const char *const parts[] = {"sums", "a call", "7.00 us", "the whole call"};
    static const char *const row[] = {"phase", "of each call", "7.00 us", "the whole call"};
    meshcoll_t *rank[RANKS];
    char *text;
    open_on(rank, "uniform,gpu=call:7us", "/dev/null");
    run(rank, MESHCOLL_ALLREDUCE, NULL, 1);
    cr_assert_eq(meshcoll_explain(rank[0], &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_parts(text, parts, MC_COUNT(parts));
    expect_parts(text, row, MC_COUNT(row));
    free(text);
    close_world(rank);
}

/* Such calls learn nothing, and no other strategy would do. */
Test(explained, report_says_why_blocks_of_unknown_sizes_go_straight)
{
    static const size_t counts[RANKS] = {1, 1, 1, 1};
    static const char *const parts[] = {"alltoall of 16 B: 1 run", "alltoall:pairwise(box*gpu)",
                                        "taken as no rank but the block's two ends knows"};
    const meshcoll_args_t args = {
        .collective = MESHCOLL_ALLTOALL, .counts = counts, .in_counts = counts};
    meshcoll_t *rank[RANKS];
    char *text;
    open_world(rank, "/dev/null");
    run_args(rank, &args, 1);
    cr_assert_eq(meshcoll_explain(rank[0], &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    expect_parts(text, parts, MC_COUNT(parts));
    cr_expect_null(strstr(text, "candidates that calls have tried"));
    cr_expect_null(strstr(text, "the planner would take"));
    free(text);
    close_world(rank);
}

static void take_first(void *context, void *dst, const void *a, const void *b, size_t count,
                       meshcoll_datatype_t datatype)
{
    (void)context, (void)b;
    if (dst != a)
        memcpy(dst, a, count * meshcoll_datatype_size(datatype));
}

/* Blocks of unequal sizes are so many bytes as they are; what else there is keeps the order that an
 * operation needs; a root is the communicator's rank. */
Test(explained, report_says_what_was_asked)
{
    static const size_t counts[RANKS] = {3, 0, 5, 2};
    static int32_t turned[RANKS] = {3, 2, 1, 0};
    static const char *const seen[] = {"as rank 2 saw it"};
    static const char *const blocks[] = {"allgather of 40 B: 1 run"};
    static const char *const in_order[] = {"allreduce of 16 kB: 1 run", "chosen by the planner",
                                           "next best: ", " predicted, "};
    static const char *const rooted[] = {"bcast of 24 B, root 3: 1 run"};
    meshcoll_t *rank[RANKS];
    meshcoll_op_t op;
    char *text;
    cr_assert_eq(meshcoll_op_create(take_first, 0, NULL, &op), MESHCOLL_OK);
    open_world(rank, "/dev/null");
    const meshcoll_args_t allgatherv = {.collective = MESHCOLL_ALLGATHER, .counts = counts};
    const meshcoll_args_t ordered = {.collective = MESHCOLL_ALLREDUCE, .count = MOST, .op = op};
    run_args(rank, &allgatherv, 1);
    run_args(rank, &ordered, 1);
    run(rank, MESHCOLL_BCAST, NULL, 1);
    rank[1]->order = (mc_order_t){.mesh_rank = turned, .comm_rank = turned};
    cr_assert_eq(meshcoll_explain(rank[1], &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    rank[1]->order = (mc_order_t){0};
    expect_parts(text, seen, MC_COUNT(seen));
    expect_parts(text, blocks, MC_COUNT(blocks));
    expect_parts(text, in_order, MC_COUNT(in_order));
    expect_parts(text, rooted, MC_COUNT(rooted));
    cr_expect_null(strstr(text, "reduce_scatter:ring"), "it keeps no order");
    free(text);
    close_world(rank);
    meshcoll_op_free(op);
}

/* Memory within a process takes no 1000 seconds, nor 1 ns. */
Test(explained, warns_where_the_links_are_wrong)
{
    static const char *const links[] = {"box=alpha:1000s;beta:1GB/s;gamma:1GB/s,gpu=uniform",
                                        "box=alpha:1ns;beta:1000TB/s;gamma:1000TB/s,"
                                        "gpu=alpha:1ns;beta:1000TB/s;gamma:1000TB/s"};
    static const char *const parts[][3] = {
        {"times faster than predicted; the phase along ", "box", "the links were given by"},
        {"times slower than predicted", "more than 3 times", "meshcoll tune"}};
    for (size_t i = 0; i < MC_COUNT(links); i++) {
        meshcoll_t *rank[RANKS];
        char *text;
        setenv("MESHCOLL_LINKS", links[i], 1);
        const meshcoll_params_t params = {.size = sizeof params, .explain = "factor:3,/dev/null"};
        cr_assert_eq(mc_inproc_create("box=2,gpu=2", &params, rank), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
        run(rank, MESHCOLL_ALLREDUCE, NULL, 3);
        cr_assert_eq(meshcoll_explain(rank[0], &text), MESHCOLL_OK);
        expect_parts(text, parts[i], MC_COUNT(parts[i]));
        free(text);
        close_world(rank);
    }
    unsetenv("MESHCOLL_LINKS");
}

Test(explained, rank_zero_writes_when_the_mesh_goes)
{
    char path[] = "/tmp/meshcoll-explained-XXXXXX", text[ROOM];
    meshcoll_t *rank[RANKS];
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    open_world(rank, path);
    run(rank, MESHCOLL_ALLGATHER, NULL, 1);
    close_world(rank);
    const ssize_t n = read(fd, text, sizeof text - 1);
    cr_assert_gt(n, 0);
    text[n] = '\0';
    const char *const first = strstr(text, "as rank 0 saw it");
    cr_assert_not_null(first);
    cr_expect_null(strstr(first + strlen("as rank 0 saw it"), "saw it"), "only rank 0 writes");
    cr_expect(strstr(text, "allgather of 96 B: 1 run"), "%s", text);
    close(fd);
    unlink(path);
}

Test(explained, nothing_is_recorded_unasked)
{
    meshcoll_t *rank[RANKS];
    char *text = NULL;
    open_world(rank, NULL);
    run(rank, MESHCOLL_ALLREDUCE, NULL, 1);
    cr_expect_eq(meshcoll_explain(rank[0], &text), MESHCOLL_ERR_INVALID_ARG);
    cr_expect(strstr(meshcoll_last_error(), "MESHCOLL_EXPLAIN=1"), "%s", meshcoll_last_error());
    cr_expect_null(text);
    cr_expect_eq(meshcoll_explain(NULL, &text), MESHCOLL_ERR_INVALID_ARG);
    close_world(rank);
}

/* The library's own exchange of counts, which has records too, runs when its mesh goes. */
Test(explained, mesh_goes_while_counts_are_exchanged)
{
    static int32_t in[RANKS], out[RANKS];
    static const size_t counts[RANKS] = {1, 1, 1, 1};
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLTOALL,
                                  .in = in,
                                  .out = out,
                                  .datatype = MESHCOLL_INT32,
                                  .strategy = "hierarchical",
                                  .counts = counts,
                                  .in_counts = counts};
    meshcoll_t *rank[RANKS];
    meshcoll_request_t *request;
    open_world(rank, "/dev/null");
    cr_assert_eq(meshcoll_begin(rank[0], &args, &request), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_assert_eq(meshcoll_test(request), MESHCOLL_IN_PROGRESS);
    close_world(rank);
    cr_expect_eq(meshcoll_wait(request), MESHCOLL_ERR_INVALID_ARG);
}

/* One rank runs more calls than are kept apart. */
Test(explained, runs_of_too_many_calls_are_counted)
{
    enum { MORE = 3 };
    static float in[MC_EXPLAINED_CALLS + MORE + 1], out[MC_EXPLAINED_CALLS + MORE + 1];
    const meshcoll_params_t params = {.size = sizeof params, .explain = "/dev/null"};
    meshcoll_t *mesh;
    char *text;
    cr_assert_eq(mc_inproc_create("x=1", &params, &mesh), MESHCOLL_OK);
    for (size_t n = 1; n <= MC_EXPLAINED_CALLS + MORE; n++)
        cr_assert_eq(meshcoll_bcast(mesh, in, out, n, MESHCOLL_FLOAT32, 0), MESHCOLL_OK);
    cr_assert_eq(meshcoll_explain(mesh, &text), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect(strstr(text, "3 runs of further calls are not listed"));
    free(text);
    meshcoll_destroy(mesh);
}
