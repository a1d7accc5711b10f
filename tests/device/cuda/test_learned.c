/*
 * Calls on device memory learn, by times of events that the tests make up. A program's number tells which candidate ran:
 * the planner's choice is 0, and those that it is compared with are made after it, in the same order on all ranks.
 */
#include "rig.h"

#include "runtime/call/adapt.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
    CALLS = 200,
    AGREES = MC_LEARN_QUIET + MC_LEARN_LONG, /* the call at which ranks first tell their times */
    TRIAL = AGREES + MC_LEARN_AGREEING,      /* and the one that takes the first other candidate */
    LATE_TRIAL = TRIAL + 2 * MC_LEARN_AGREEING, /* it does, where times were late once */
    FASTEST = 2,
    CAPTURED = 10
};

/* The kernels of this rank, in their order. */
static struct {
    uint32_t n, program[2 * CALLS];
} ran;

static double took(const mc_device_call_t *call)
{
    ran.program[ran.n++ % (2 * CALLS)] = call->program;
    return call->program == FASTEST ? 50e-6 : 100e-6 * (1 + call->program);
}

/* Were these kernels, up to `end`, of one program? */
static bool were(uint32_t first, uint32_t end, uint32_t program)
{
    bool so = end <= ran.n;
    for (uint32_t i = first; i < end && so; i++)
        if ((so = ran.program[i] == program) == false)
            printf("rank %d: kernel %u was of program %u, expected %u\n", rig_rank, i,
                   ran.program[i], program);
    return so;
}

/* The candidates take turns from `first` on, and the fastest one is used at the end. */
static bool have_learned(uint32_t first)
{
    bool so = were(0, first, 0);
    for (uint32_t c = 1; c <= FASTEST && so; c++)
        so = were(first + (c - 1) * MC_LEARN_SHORT, first + c * MC_LEARN_SHORT, c);
    return so && were(ran.n - MC_LEARN_LONG, ran.n, FASTEST);
}

static const mc_case_t sum = {
    .collective = MESHCOLL_ALLREDUCE, .count = 3000, .datatype = MESHCOLL_INT32};

static void enqueue(meshcoll_t *mesh, rig_case_t *r, int calls, mc_cu_stream_t stream)
{
    for (int i = 0; i < calls; i++)
        NEED(meshcoll_enqueue(mesh, &r->args, stream) == MESHCOLL_OK);
}

/* Blocking calls and enqueued ones count alike. */
static void run(meshcoll_t *mesh, rig_case_t *r, int calls, mc_cu_stream_t stream)
{
    for (int i = 0; i < calls; i++) {
        rig_fill(r, stream);
        NEED(cuStreamSynchronize(stream) == 0);
        if (i % 3 == 0)
            NEED(meshcoll_allreduce(mesh, r->args.in, r->args.out, r->args.count, r->args.datatype,
                                    r->args.op) == MESHCOLL_OK);
        else
            enqueue(mesh, r, 1, stream);
        NEED(rig_check(r, stream));
    }
}

static void rank_learned(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    rig_case_t r;
    char *text;
    rig_open(mesh, &sum, NULL, &r);
    fake_clock(took);
    run(mesh, &r, CALLS, stream);
    NEED(have_learned(TRIAL));
    NEED(meshcoll_explain(mesh, &text) == MESHCOLL_OK);
    NEED(strstr(text, "allreduce of 12000 bytes, on device memory: settled\n"));
    NEED(strstr(text, "    *       50.0 us, predicted"));
    free(text);
    rig_close(&r);
    NEED(cuStreamDestroy_v2(stream) == 0);
}

/* Does not learn. */
static void rank_off(meshcoll_t *mesh)
{
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    fake_clock(took);
    run(mesh, &r, CALLS, NULL);
    NEED(were(0, CALLS, 0));
    rig_close(&r);
}

/* Rank 1 has no memory for the program of candidate 1, and no rank tries it. */
static void rank_cannot_try(meshcoll_t *mesh)
{
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    fake_clock(took);
    run(mesh, &r, AGREES, NULL);
    if (rig_rank == 1)
        fake_fail("cuMemAlloc_v2", 0, MC_CU_ERROR_OUT_OF_MEMORY);
    run(mesh, &r, CALLS - AGREES, NULL);
    NEED(were(0, TRIAL, 0) && were(TRIAL, TRIAL + MC_LEARN_SHORT, 2));
    NEED(were(CALLS - MC_LEARN_LONG, CALLS, FASTEST));
    rig_close(&r);
}

/* Results alone, of all collectives; what is tried takes no pinned memory for further ranks of other machines. */
static void rank_learns_all(meshcoll_t *mesh)
{
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        const mc_case_t c = {.collective = (meshcoll_collective_t)k,
                             .count = 500,
                             .datatype = MESHCOLL_FLOAT32,
                             .op = MESHCOLL_MAX,
                             .root = mc_case_is_rooted((meshcoll_collective_t)k) ? 1 : 0};
        rig_case_t r;
        unsigned pinned = 0;
        rig_open(mesh, &c, NULL, &r);
        for (int i = 0; i < TRIAL + MC_CANDIDATES * MC_LEARN_SHORT; i++) {
            rig_fill(&r, NULL);
            enqueue(mesh, &r, 1, NULL);
            NEED(rig_check(&r, NULL));
            pinned = i == 0 ? fake_calls("cuMemHostAlloc") : pinned;
        }
        NEED(pinned == fake_calls("cuMemHostAlloc"));
        rig_close(&r);
    }
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
}

bool test_learned(void)
{
    const rig_t rig = {.mesh = "gpu=4", .explain = "1,/dev/null", .tidy = true};
    const rig_t streams = {.mesh = "gpu=2", .gpus = 1, .tidy = true};
    const rig_t far = {.mesh = "box=4", .machines = "0123", .slot = "1024"};
    bool good = rig_run(&rig, rank_learned) && rig_run(&rig, rank_cannot_try) &&
                rig_run(&streams, rank_learns_all);
    if (good && rig_can_part())
        good = rig_run(&far, rank_learns_all);
    setenv("MESHCOLL_ADAPT", "off", 1);
    good = good && rig_run(&rig, rank_off);
    unsetenv("MESHCOLL_ADAPT");
    return good;
}

/* Times that come late ---------------------------------------------------------------------------- */

static _Atomic bool is_open;

static void await_open(void *context)
{
    (void)context;
    while (!is_open)
        sched_yield();
}

/* No call has run when ranks tell their times: they tell them once more, and go on together. */
static void rank_late_times(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    rig_fill(&r, stream);
    fake_clock(took);
    NEED(cuLaunchHostFunc(stream, await_open, NULL) == 0);
    enqueue(mesh, &r, TRIAL, stream);
    NEED(ran.n == 0);
    is_open = true;
    NEED(rig_check(&r, stream));
    run(mesh, &r, CALLS, stream);
    NEED(have_learned(LATE_TRIAL));
    rig_close(&r);
    NEED(cuStreamDestroy_v2(stream) == 0);
}

static struct {
    meshcoll_t *mesh;
    int32_t in[3], out[3];
    meshcoll_request_t *request;
} host;

static void begin_host(void)
{
    NEED(meshcoll_iallreduce(host.mesh, host.in, host.out, 3, MESHCOLL_INT32, MESHCOLL_SUM,
                             &host.request) == MESHCOLL_OK);
}

/* While rank 0 waits: then rank 1 may go on. */
static void call_back(void *context, meshcoll_request_t *received, int status)
{
    static const int32_t go = 1;
    meshcoll_request_t *sent;
    (void)context, (void)received;
    NEED(status == MESHCOLL_OK);
    begin_host();
    NEED(meshcoll_send_begin(host.mesh, &go, 1, MESHCOLL_INT32, 1, 0, &sent) == MESHCOLL_OK);
    meshcoll_free(sent);
}

/* On rank 0 the call that uses the agreement waits for rank 1. It and the host's, which a callback makes meanwhile, both
 * begin another one, and count in the lead: in the order of the calls. */
static void rank_calls_back(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    meshcoll_request_t *received = NULL;
    int32_t word = 0;
    rig_case_t r;
    host.mesh = mesh;
    rig_open(mesh, &sum, NULL, &r);
    rig_fill(&r, stream);
    fake_clock(took);
    for (int i = 0; i < AGREES; i++) {
        begin_host();
        NEED(meshcoll_wait(host.request) == MESHCOLL_OK);
    }
    enqueue(mesh, &r, 1, stream);
    NEED(cuStreamSynchronize(stream) == 0);
    NEED(cuLaunchHostFunc(stream, await_open, NULL) == 0);
    if (rig_rank == 0) {
        enqueue(mesh, &r, TRIAL - 1, stream);
        NEED(meshcoll_recv_begin(mesh, &word, 1, MESHCOLL_INT32, 1, 0, NULL, &received) ==
             MESHCOLL_OK);
        NEED(meshcoll_set_callback(received, call_back, NULL) == MESHCOLL_OK);
    }
    rig_meet();
    if (rig_rank == 0) {
        enqueue(mesh, &r, 1, stream);
        NEED(host.request && meshcoll_wait(received) == MESHCOLL_OK);
    } else {
        NEED(meshcoll_send(mesh, &word, 1, MESHCOLL_INT32, 0, 0) == MESHCOLL_OK);
        NEED(meshcoll_recv(mesh, &word, 1, MESHCOLL_INT32, 0, 0, NULL) == MESHCOLL_OK);
        enqueue(mesh, &r, TRIAL, stream);
        begin_host();
    }
    /* the host's lesson is the first one, and its agreement the last one */
    NEED(mesh->calls.adapt->begun == 3 && mesh->calls.adapt->lessons.lesson[0]->agreement == 3);
    is_open = true;
    NEED(meshcoll_wait(host.request) == MESHCOLL_OK && rig_check(&r, stream));
    run(mesh, &r, CALLS, stream);
    NEED(have_learned(LATE_TRIAL + 4 * MC_LEARN_AGREEING)); /* late twice */
    /* what is refused lets ranks compare what they have made */
    NEED(meshcoll_barrier(mesh) == MESHCOLL_OK);
    NEED(meshcoll_enqueue(mesh, NULL, stream) == MESHCOLL_ERR_INVALID_ARG);
    run(mesh, &r, 1, stream);
    rig_close(&r);
    NEED(cuStreamDestroy_v2(stream) == 0);
}

/* While candidates take turns, some calls not complete. */
static void rank_left(meshcoll_t *mesh)
{
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    rig_fill(&r, NULL);
    enqueue(mesh, &r, AGREES + 1, NULL);
    NEED(rig_check(&r, NULL));
    fake_kernels(1000, 1);
    enqueue(mesh, &r, MC_LEARN_AGREEING + MC_LEARN_SHORT, NULL);
    mc_case_close(&r.host);
}

bool test_late_times(void)
{
    const rig_t rig = {.mesh = "gpu=3", .tidy = true};
    const rig_t left = {.mesh = "gpu=3", .tidy = true, .leaves = 2}; /* the buffers */
    const rig_t two = {.mesh = "gpu=2", .tidy = true};
    return rig_run(&rig, rank_late_times) && rig_run(&left, rank_left) &&
           rig_run(&two, rank_calls_back);
}

/* Captures ---------------------------------------------------------------------------------------- */

/* In the middle of a turn: what is captured is what was used before, and the turn goes on. */
static void rank_captures(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    fake_graph_t graph;
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    fake_clock(took);
    run(mesh, &r, TRIAL + 1, stream);
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    enqueue(mesh, &r, CAPTURED, stream);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    run(mesh, &r, CALLS - TRIAL - 1, stream);
    NEED(have_learned(TRIAL));
    rig_fill(&r, stream);
    NEED(cuGraphLaunch(graph, stream) == 0);
    NEED(rig_check(&r, stream) && cuGraphDestroy(graph) == 0);
    NEED(were(CALLS, CALLS + CAPTURED, 0));
    rig_close(&r);
}

/* One rank captures a call that the others enqueue. They take different strategies later, and are told. */
static void rank_differs(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    fake_graph_t graph;
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    run(mesh, &r, 1, stream);
    if (rig_rank == 0)
        NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    enqueue(mesh, &r, 1, stream);
    if (rig_rank == 0)
        NEED(cuStreamEndCapture(stream, &graph) == 0 && cuGraphLaunch(graph, stream) == 0);
    run(mesh, &r, TRIAL - 2, stream);
    rig_meet();
    NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_MISMATCH);
    NEED(cuStreamSynchronize(stream) == 0);
}

bool test_learned_captured(void)
{
    const rig_t rig = {.mesh = "gpu=3"}, differ = {.mesh = "gpu=2"};
    return rig_run(&rig, rank_captures) && rig_run(&differ, rank_differs);
}

/* Bits -------------------------------------------------------------------------------------------- */

enum { FLOATS = 1000 };

/* In which order they are added shows. */
static void fill_floats(mc_cu_address_t at, mc_cu_stream_t stream)
{
    static float x[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        x[i] = 1.0f / (float)(1 + i * 7 + rig_rank * 1013) * (i % 5 == 0 ? 1e6f : 1);
    NEED(cuMemcpyHtoDAsync_v2(at, x, sizeof x, stream) == 0);
}

static bool bits_stay(meshcoll_t *mesh, uint32_t *programs)
{
    static float first[FLOATS], now[FLOATS];
    const mc_cu_stream_t stream = rig_new_stream();
    mc_cu_address_t at;
    bool stay = true;
    NEED(cuMemAlloc_v2(&at, 2 * sizeof first) == 0);
    const mc_cu_address_t out = at + sizeof first;
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_ALLREDUCE,
                               .in = (void *)(uintptr_t)at,
                               .out = (void *)(uintptr_t)out,
                               .count = FLOATS,
                               .datatype = MESHCOLL_FLOAT32};
    fake_clock(took);
    fill_floats(at, stream);
    for (int i = 0; i < CALLS; i++) {
        float *const to = i == 0 ? first : now;
        NEED(meshcoll_enqueue(mesh, &a, stream) == MESHCOLL_OK);
        NEED(cuMemcpyDtoHAsync_v2(to, out, sizeof first, stream) == 0);
        NEED(cuStreamSynchronize(stream) == 0);
        stay = stay && (i == 0 || memcmp(first, now, sizeof now) == 0);
    }
    *programs = 0;
    for (uint32_t i = 0; i < ran.n; i++)
        *programs = ran.program[i] >= *programs ? ran.program[i] + 1 : *programs;
    return stay;
}

static void rank_ordered_sums(meshcoll_t *mesh)
{
    uint32_t programs;
    NEED(bits_stay(mesh, &programs) && programs > 1);
}

/* So that the test above has something to see. */
static void rank_any_sums(meshcoll_t *mesh)
{
    uint32_t programs;
    NEED(!bits_stay(mesh, &programs) && programs > 1);
}

bool test_learned_bits(void)
{
    const rig_t rig = {.mesh = "gpu=4"};
    bool good = rig_run(&rig, rank_ordered_sums);
    setenv("MESHCOLL_ADAPT", "all", 1);
    good = good && rig_run(&rig, rank_any_sums);
    unsetenv("MESHCOLL_ADAPT");
    return good;
}
