/* From the call to the wire, all ranks in this process: every collective, strategy and shape. */
#include "mesh/mesh.h"
#include "runtime/create/create.h"
#include "runtime/handle/digest.h"
#include "runtime/handle/handle.h"
#include "support/case.h"
#include "support/element.h"
#include "support/inproc.h"
#include "support/strategies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, SAMPLE = 12 };

/* More turns than any of these takes: whoever needs them hangs. */
enum { MOST_TURNS = 200000 };

typedef struct {
    meshcoll_t *rank[MOST_RANKS];
    mc_mesh_t mesh;
    const char *text;
} world_t;

static void world_open(world_t *w, const char *text)
{
    w->text = text;
    cr_assert(mc_mesh_parse(text, &w->mesh) == MESHCOLL_OK);
    cr_assert(w->mesh.size <= MOST_RANKS);
    cr_assert(mc_inproc_create(text, NULL, w->rank) == MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void world_close(world_t *w)
{
    for (int r = 0; r < w->mesh.size; r++)
        meshcoll_destroy(w->rank[r]);
}

typedef struct {
    mc_case_rank_t buffers[MOST_RANKS];
    meshcoll_request_t *request[MOST_RANKS];
    char name[512];
} run_t;

static void run_open(const world_t *w, const mc_case_t *c, const char *strategy, run_t *run)
{
    char what[128];
    snprintf(run->name, sizeof run->name, "%s on %s: %s", mc_case_print(c, what, sizeof what),
             w->text, strategy ? strategy : "the planner's");
    for (int r = 0; r < w->mesh.size; r++) {
        cr_assert(mc_case_open(c, r, w->mesh.size, &run->buffers[r]) == 0);
        const meshcoll_args_t args = mc_case_args(c, &run->buffers[r], strategy);
        cr_assert(meshcoll_init(w->rank[r], &args, &run->request[r]) == MESHCOLL_OK, "%s: %s",
                  run->name, meshcoll_last_error());
    }
}

static void run_start(const world_t *w, run_t *run)
{
    for (int r = 0; r < w->mesh.size; r++)
        cr_assert(meshcoll_start(run->request[r]) == MESHCOLL_OK, "%s: rank %d: %s", run->name, r,
                  meshcoll_last_error());
}

static void run_finish(const world_t *w, run_t *run)
{
    int left = w->mesh.size;
    for (int turn = 0; left > 0; turn++) {
        left = 0;
        for (int r = 0; r < w->mesh.size; r++) {
            const int status = meshcoll_test(run->request[r]);
            cr_assert(status >= 0, "%s: rank %d: %s", run->name, r, meshcoll_last_error());
            left += status == MESHCOLL_IN_PROGRESS;
        }
        cr_assert(turn < MOST_TURNS, "%s: hangs", run->name);
    }
}

static void run_check(const world_t *w, const mc_case_t *c, const run_t *run)
{
    char why[128];
    for (int r = 0; r < w->mesh.size; r++)
        cr_assert(mc_case_check(c, &run->buffers[r], why, sizeof why) == 0, "%s: %s", run->name,
                  why);
}

static void run_close(const world_t *w, run_t *run)
{
    for (int r = 0; r < w->mesh.size; r++) {
        meshcoll_free(run->request[r]);
        mc_case_close(&run->buffers[r]);
    }
}

static void run_case(const world_t *w, const mc_case_t *c, const char *strategy)
{
    run_t run;
    run_open(w, c, strategy, &run);
    run_start(w, &run);
    run_finish(w, &run);
    run_check(w, c, &run);
    run_close(w, &run);
}

/* The sweep ------------------------------------------------------------------------------------- */

static const size_t counts[] = {0, 1, 2, 3, 7, 16, 100, 1000};

/* Datatype, operation, place and root change from case to case, so that a sweep over strategies,
 * segments and counts sees all of them together without their full product. */
static mc_case_t turn_case(meshcoll_collective_t collective, size_t count, int size, unsigned turn)
{
    const int roots[] = {0, size - 1, size / 2, size / 3};
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = count,
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)(turn / 4))
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? roots[turn / 2 % 4] : 0,
                       .in_place = turn % 3 == 0,
                       .bare = turn % 5 < 3};
}

static void sweep_strategy(const world_t *w, meshcoll_collective_t collective, const char *strategy,
                           unsigned *turn)
{
    char text[2048];
    for (int segments = 1; segments <= 3; segments += 2) {
        const char *const more = strchr(strategy, '|') ? " segments=4" : " segments=3";
        snprintf(text, sizeof text, "%s%s", strategy, segments > 1 ? more : "");
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++, ++*turn) {
            const mc_case_t c = turn_case(collective, counts[i], w->mesh.size, *turn);
            run_case(w, &c, text);
        }
    }
}

static void sweep(const char *mesh)
{
    world_t w;
    unsigned turn = 0;
    world_open(&w, mesh);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        const meshcoll_collective_t collective = (meshcoll_collective_t)k;
        mc_sample_t sample;
        cr_assert(mc_sample_open(collective, &w.mesh, SAMPLE, &sample) == 0);
        for (int i = 0; i < sample.n; i++, turn++)
            if (!strstr(sample.text[i], "segments="))
                sweep_strategy(&w, collective, sample.text[i], &turn);
        mc_sample_close(&sample);
    }
    world_close(&w);
}

Test(runtime, one_rank)
{
    sweep("gpu=1");
    sweep("box=1,gpu=1");
}

Test(runtime, one_dimension)
{
    sweep("gpu=2");
    sweep("gpu=5");
    sweep("gpu=8");
}

Test(runtime, two_dimensions)
{
    sweep("box=2,gpu=2");
    sweep("box=3,gpu=4");
    sweep("box=5,gpu=2");
}

Test(runtime, two_dimensions_with_ones)
{
    sweep("box=1,gpu=4");
    sweep("box=3,gpu=1");
}

Test(runtime, three_dimensions)
{
    sweep("rack=2,box=2,gpu=2");
    sweep("rack=2,box=3,gpu=2");
    sweep("x=2,y=1,z=3");
}

/* Where sends stream, messages that are too much at once wait for credits (runtime/execute/pace.h). A request
 * begins anew each time. */
static void stream(const char *mesh, meshcoll_collective_t collective, size_t count)
{
    const mc_case_t c = {.collective = collective, .count = count, .root = 1};
    char text[2048];
    world_t w;
    mc_sample_t sample;
    run_t run;
    world_open(&w, mesh);
    for (int r = 0; r < w.mesh.size; r++)
        for (int32_t d = 0; d < w.mesh.ndims; d++)
            w.rank[r]->transport[d]->streams = d == 0 || w.mesh.ndims == 3;
    cr_assert(mc_sample_open(collective, &w.mesh, SAMPLE, &sample) == 0);
    for (int i = 0; i < sample.n; i++) {
        snprintf(text, sizeof text, "%s%s", sample.text[i],
                 strstr(sample.text[i], "segments=") || i % 2 ? "" : " segments=6");
        run_open(&w, &c, text, &run);
        for (int again = 0; again < 2; again++) {
            run_start(&w, &run);
            run_finish(&w, &run);
            run_check(&w, &c, &run);
        }
        run_close(&w, &run);
    }
    mc_sample_close(&sample);
    world_close(&w);
}

Test(runtime, what_streams_waits_for_credits)
{
    enum { KIB = 1024 };
    static const char *const meshes[] = {"gpu=7", "box=5,gpu=2", "x=2,y=3,z=2"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        stream(meshes[i], MESHCOLL_GATHER, 25 * KIB);
        stream(meshes[i], MESHCOLL_SCATTER, 25 * KIB);
        stream(meshes[i], MESHCOLL_BCAST, 50 * KIB);
        stream(meshes[i], MESHCOLL_REDUCE, 50 * KIB);
    }
}

/* The rest -------------------------------------------------------------------------------------- */

Test(runtime, planner_chooses)
{
    static const size_t sizes[] = {1, 100, 5000};
    world_t w;
    world_open(&w, "box=2,gpu=3");
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++)
        for (size_t i = 0; i < 3; i++) {
            const mc_case_t c =
                turn_case((meshcoll_collective_t)k, sizes[i], w.mesh.size, (unsigned)(k * 3) + 1);
            run_case(&w, &c, NULL);
        }
    world_close(&w);
}

Test(runtime, requests_run_again)
{
    const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE, .count = 50, .datatype = MESHCOLL_INT32};
    world_t w;
    run_t run;
    world_open(&w, "box=2,gpu=3");
    run_open(&w, &c, "flat-ring segments=3", &run);
    for (int again = 0; again < 5; again++) {
        for (int r = 0; r < w.mesh.size; r++)
            mc_case_fill(&c, &run.buffers[r]);
        run_start(&w, &run);
        run_finish(&w, &run);
        run_check(&w, &c, &run);
    }
    run_close(&w, &run);
    world_close(&w);
}

/* Two operations under way at once, with the same peers, do not take each other's messages, though
 * the ranks start and drive them in different orders. */
Test(runtime, operations_do_not_mix)
{
    const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE, .count = 60, .datatype = MESHCOLL_INT64};
    const mc_case_t d = {.collective = MESHCOLL_ALLREDUCE,
                         .count = 60,
                         .datatype = MESHCOLL_INT64,
                         .op = MESHCOLL_MAX};
    world_t w;
    run_t a, b;
    world_open(&w, "box=3,gpu=2");
    run_open(&w, &c, "flat-ring segments=3", &a);
    run_open(&w, &d, "flat-ring segments=3", &b);
    for (int r = 0; r < w.mesh.size; r++) {
        run_t *const first = r % 2 ? &a : &b, *const second = r % 2 ? &b : &a;
        cr_assert(meshcoll_start(first->request[r]) == MESHCOLL_OK);
        cr_assert(meshcoll_start(second->request[r]) == MESHCOLL_OK);
    }
    run_finish(&w, &b);
    run_finish(&w, &a);
    run_check(&w, &c, &a);
    run_check(&w, &d, &b);
    run_close(&w, &a);
    run_close(&w, &b);
    world_close(&w);
}

/* An in-box bcast sends nothing over the network but once per box; bytes are the vector's. */
Test(runtime, bytes_by_dimension)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .count = 100, .datatype = MESHCOLL_FLOAT32};
    world_t w;
    uint64_t box = 0, gpu = 0;
    world_open(&w, "box=4,gpu=2");
    run_case(&w, &c, "bcast:mst(box) bcast:mst(gpu)");
    for (int r = 0; r < w.mesh.size; r++) {
        box += meshcoll_bytes_sent(w.rank[r], 0);
        gpu += meshcoll_bytes_sent(w.rank[r], 1);
    }
    cr_assert(box == 3 * 400, "box: %llu", (unsigned long long)box);
    cr_assert(gpu == 4 * 400, "gpu: %llu", (unsigned long long)gpu);
    world_close(&w);
}

Test(runtime, strategies_are_forced)
{
    world_t w;
    int32_t in = 3, out = 0;
    meshcoll_request_t *request;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = &in,
                                  .out = &out,
                                  .count = 1,
                                  .datatype = MESHCOLL_INT32};
    world_open(&w, "box=2,gpu=2");
    cr_assert(meshcoll_set_strategy(w.rank[0], MESHCOLL_ALLREDUCE, "flat-mst") == MESHCOLL_OK, "%s",
              meshcoll_last_error());
    cr_assert(meshcoll_init(w.rank[0], &args, &request) == MESHCOLL_OK);
    cr_assert_not_null(strstr(meshcoll_request_strategy(request), "mst(box*gpu)"), "%s",
                       meshcoll_request_strategy(request));
    cr_assert(meshcoll_request_predicted(request) > 0);
    meshcoll_free(request);
    cr_assert(meshcoll_set_strategy(w.rank[0], MESHCOLL_ALLREDUCE, "bcast:mst(gpu)") < 0);
    cr_assert(strlen(meshcoll_last_error()) > 0);
    cr_assert(meshcoll_set_strategy(w.rank[0], MESHCOLL_ALLREDUCE, NULL) == MESHCOLL_OK);
    world_close(&w);
}

Test(runtime, environment_forces_strategies)
{
    world_t w;
    setenv("MESHCOLL_STRATEGY_REDUCE_SCATTER", "flat-ring segments=2", 1);
    world_open(&w, "box=2,gpu=2");
    unsetenv("MESHCOLL_STRATEGY_REDUCE_SCATTER");
    const mc_case_t c = {
        .collective = MESHCOLL_REDUCE_SCATTER, .count = 5, .datatype = MESHCOLL_INT32};
    run_t run;
    run_open(&w, &c, NULL, &run);
    cr_assert_not_null(strstr(meshcoll_request_strategy(run.request[0]), "ring(box*gpu)"));
    cr_assert_not_null(strstr(meshcoll_request_strategy(run.request[0]), "segments=2"));
    run_close(&w, &run);
    world_close(&w);
    meshcoll_t *ranks[4];
    setenv("MESHCOLL_STRATEGY_BCAST", "nonsense", 1);
    cr_assert(mc_inproc_create("box=2,gpu=2", NULL, ranks) < 0);
    cr_assert_not_null(strstr(meshcoll_last_error(), "bcast"), "%s", meshcoll_last_error());
    unsetenv("MESHCOLL_STRATEGY_BCAST");
}

Test(runtime, arguments_are_checked)
{
    world_t w;
    float v[64] = {0};
    meshcoll_request_t *request = NULL;
    const meshcoll_args_t good = {.size = sizeof good,
                                  .collective = MESHCOLL_ALLGATHER,
                                  .in = v,
                                  .out = v + 8,
                                  .count = 2,
                                  .datatype = MESHCOLL_FLOAT32};
    world_open(&w, "box=2,gpu=2");
    meshcoll_args_t a[8];
    for (int i = 0; i < 8; i++)
        a[i] = good;
    a[0].size = 0;
    a[1].collective = MESHCOLL_COLLECTIVES;
    a[2].datatype = MESHCOLL_DATATYPES;
    a[3].in = NULL;
    a[4].out = NULL;
    a[5].count = SIZE_MAX / 8;
    a[6].in = v + 9; /* overlaps out, and is not its block */
    a[7].collective = MESHCOLL_BCAST;
    a[7].root = 4;
    for (int i = 0; i < 8; i++) {
        cr_expect(meshcoll_init(w.rank[0], &a[i], &request) == MESHCOLL_ERR_INVALID_ARG, "case %d",
                  i);
        cr_expect(strlen(meshcoll_last_error()) > 0);
    }
    cr_assert_null(request);
    cr_assert(meshcoll_init(w.rank[0], &good, &request) == MESHCOLL_OK);
    meshcoll_free(request);
    world_close(&w);
}

Test(runtime, sizes_end_with_a_field)
{
    world_t w;
    int32_t v = 1;
    meshcoll_request_t *request = NULL;
    meshcoll_args_t a = {.size = sizeof a,
                         .collective = MESHCOLL_ALLREDUCE,
                         .in = &v,
                         .out = &v,
                         .count = 1,
                         .datatype = MESHCOLL_INT32};
    world_open(&w, "gpu=2");
    a.size = offsetof(meshcoll_args_t, strategy) + 1;
    cr_expect(meshcoll_init(w.rank[0], &a, &request) == MESHCOLL_ERR_INVALID_ARG);
    a.size = offsetof(meshcoll_args_t, strategy);
    cr_assert(meshcoll_init(w.rank[0], &a, &request) == MESHCOLL_OK, "%s", meshcoll_last_error());
    meshcoll_free(request);
    world_close(&w);
    meshcoll_t *ranks[2];
    const meshcoll_params_t p = {.size = offsetof(meshcoll_params_t, links) - 1};
    cr_expect(mc_inproc_create("gpu=2", &p, ranks) == MESHCOLL_ERR_INVALID_ARG);
}

Test(runtime, null_is_answered)
{
    cr_expect(meshcoll_rank(NULL) < 0);
    cr_expect(meshcoll_size(NULL) < 0);
    cr_expect(meshcoll_coord(NULL, 0, 0) < 0);
    cr_expect_null(meshcoll_mesh_text(NULL));
    cr_expect(meshcoll_bytes_sent(NULL, 0) == 0);
    cr_expect_null(meshcoll_request_strategy(NULL));
    cr_expect(meshcoll_request_predicted(NULL) == 0);
    cr_expect_not_null(strstr(meshcoll_last_error(), "NULL"));
}

static int no_allgather(void *context, const void *in, void *out, size_t bytes)
{
    (void)context, (void)in, (void)out, (void)bytes;
    return 1;
}

Test(runtime, ranks_fit_into_tags)
{
    meshcoll_t *mesh = NULL;
    const mc_creation_t creation = {
        .oob = {.size = (1 << MC_TAG_SOURCE_BITS) + 1, .allgather = no_allgather}};
    cr_expect(mc_handle_create(&creation, &mesh) == MESHCOLL_ERR_UNSUPPORTED);
}

/* Failure and giving up ------------------------------------------------------------------------- */

enum { PART = 9000 };

static meshcoll_request_t *sum_request(meshcoll_t *mesh, float *in, float *out, size_t count)
{
    meshcoll_request_t *request = NULL;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .strategy = "flat-fullmesh"};
    cr_assert(meshcoll_init(mesh, &args, &request) == MESHCOLL_OK, "%s", meshcoll_last_error());
    return request;
}

/* A smaller count with the same digest: the messages match. */
static size_t count_taken_for(size_t count)
{
    const uint32_t bits = (1 << MC_TAG_DIGEST_BITS) - 1;
    const meshcoll_args_t given = {.count = count};
    meshcoll_args_t other = {.count = count - 1};
    while ((mc_digest_of_count(&given) ^ mc_digest_of_count(&other)) & bits)
        other.count--;
    return other.count;
}

/* Rank 1 has another count. What the others post stays written to after they have failed and were
 * freed, until their handles go. */
Test(runtime, a_failed_run_breaks_the_mesh)
{
    static float in[3][PART], out[3][PART];
    meshcoll_request_t *q[3], *p[3];
    world_t w;
    world_open(&w, "gpu=3");
    for (int r = 0; r < 3; r++) {
        q[r] = sum_request(w.rank[r], in[r], out[r], r == 1 ? count_taken_for(9000) : 9000);
        p[r] = sum_request(w.rank[r], in[r], out[r], 10);
    }
    cr_assert(meshcoll_start(q[0]) == MESHCOLL_OK);
    cr_assert(meshcoll_start(q[1]) == MESHCOLL_ERR_MISMATCH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "were expected: do the ranks agree"), "%s",
                       meshcoll_last_error());
    cr_assert(meshcoll_test(q[0]) == MESHCOLL_ERR_MISMATCH);
    meshcoll_free(q[0]);
    cr_assert(meshcoll_start(p[0]) == MESHCOLL_ERR_MISMATCH);
    cr_expect_not_null(strstr(meshcoll_last_error(), "this mesh failed before: a message of"), "%s",
                       meshcoll_last_error());
    cr_assert(meshcoll_barrier(w.rank[0]) == MESHCOLL_ERR_MISMATCH);
    meshcoll_start(q[2]); /* sends to what rank 0 has freed */
    for (int r = 0; r < 3; r++) {
        meshcoll_test(q[2]);
        meshcoll_free(p[r]);
    }
    meshcoll_free(q[1]);
    world_close(&w);
    meshcoll_free(q[2]); /* after its mesh */
}

Test(runtime, running_requests_are_freed_late)
{
    static float in[2][PART], out[2][PART];
    meshcoll_request_t *q[2], *p;
    world_t w;
    world_open(&w, "gpu=2");
    for (int r = 0; r < 2; r++)
        q[r] = sum_request(w.rank[r], in[r], out[r], PART);
    p = sum_request(w.rank[0], in[0], out[0], 10);
    in[0][PART - 1] = 1;
    in[1][PART - 1] = 2;
    cr_assert(meshcoll_start(q[0]) == MESHCOLL_OK);
    meshcoll_free(q[0]);
    cr_expect_not_null(strstr(meshcoll_last_error(), "still running"), "%s", meshcoll_last_error());
    cr_assert(meshcoll_start(p) == MESHCOLL_OK);
    cr_assert(meshcoll_start(q[1]) == MESHCOLL_OK);
    for (int turn = 0; meshcoll_test(q[1]) == MESHCOLL_IN_PROGRESS && turn < MOST_TURNS; turn++)
        meshcoll_test(p);
    meshcoll_test(p);
    cr_expect(out[0][PART - 1] == 3 && out[1][PART - 1] == 3);
    meshcoll_free(q[1]);
    meshcoll_destroy(w.rank[0]);
    cr_expect_not_null(strstr(meshcoll_last_error(), "1 requests were still running"), "%s",
                       meshcoll_last_error());
    cr_expect(meshcoll_wait(p) == MESHCOLL_ERR_INVALID_ARG);
    cr_expect(meshcoll_start(p) == MESHCOLL_ERR_INVALID_ARG);
    meshcoll_free(p);
    meshcoll_destroy(w.rank[1]);
}
