/* What lies in a slot and is not of the call that would take it: the receiver of a broadcast was refused it, and its
 * root need not wait; or the ranks make different calls. */
#include "rig.h"

#include "gpu/cuda/driver.h"
#include "job/monitor/state.h"
#include "runtime/handle/handle.h"

#include <unistd.h>

static void put(const meshcoll_args_t *a, int32_t value)
{
    int32_t host[100];
    for (size_t i = 0; i < a->count; i++)
        host[i] = value;
    NEED(cuMemcpyHtoD_v2((mc_cu_address_t)a->in, host, a->count * sizeof *host) == 0);
}

static bool holds(const meshcoll_args_t *a, int32_t value)
{
    int32_t host[100];
    NEED(cuMemcpyDtoH_v2(host, (mc_cu_address_t)a->in, a->count * sizeof *host) == 0);
    return host[0] == value && host[a->count - 1] == value;
}

static void refuse_one(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    meshcoll_args_t bad = *a;
    put(a, 111);
    bad.out = rig_rank == 1 ? NULL : bad.out;
    const int status = meshcoll_enqueue(mesh, &bad, NULL);
    NEED(rig_rank == 0 ? !status || status == MESHCOLL_ERR_PEER : status != MESHCOLL_OK);
}

static void rank_stale(meshcoll_t *mesh)
{
    enum { MOST = 1000 };
    const meshcoll_args_t a = rig_call(MESHCOLL_BCAST);
    int status = MESHCOLL_OK;
    NEED(rig_works(mesh));
    refuse_one(mesh, &a);
    for (int i = 0; i < MOST && !status; i++) {
        put(&a, rig_rank == 0 ? i : -1);
        status = meshcoll_bcast(mesh, a.in, a.out, a.count, a.datatype, 0);
        NEED(status || holds(&a, i));
    }
    NEED(status == MESHCOLL_ERR_PEER && rig_says("rank 1 was refused this call"));
}

bool test_stale(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_stale);
}

/* A start of a persistent request that the receiver is refused, as a group is open. */
static void rank_stale_start(meshcoll_t *mesh)
{
    enum { MOST = 10 }; /* more than there are slots */
    const meshcoll_args_t a = rig_call(MESHCOLL_BCAST);
    meshcoll_request_t *r;
    int status = MESHCOLL_OK;
    NEED(rig_works(mesh));
    NEED(meshcoll_init(mesh, &a, &r) == MESHCOLL_OK);
    NEED(rig_rank == 0 || meshcoll_group_begin(mesh) == MESHCOLL_OK);
    put(&a, 111);
    status = meshcoll_enqueue_request(r, NULL);
    NEED(rig_rank == 0 ? !status || status == MESHCOLL_ERR_PEER : status != MESHCOLL_OK);
    NEED(rig_rank == 0 || meshcoll_group_end(mesh) == MESHCOLL_OK);
    if (rig_rank == 1)
        put(&a, -1);
    status = MESHCOLL_OK;
    for (int i = 0; i < MOST && !status; i++)
        status = meshcoll_enqueue_request(r, NULL);
    if (rig_rank == 1 && !status)
        NEED(cuStreamSynchronize(NULL) == 0 && !holds(&a, 111));
    NEED((status ? status : rig_await_error(mesh)) == MESHCOLL_ERR_PEER &&
         rig_says("rank 1 was refused this call (persistent"));
    meshcoll_free(r);
}

bool test_stale_start(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_stale_start);
}

/* Where graphs hold calls of the mesh, the refused rank waits at once, as it is not asked when they start. */
static void rank_stale_captured(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_BCAST);
    const mc_cu_stream_t stream = rig_new_stream();
    fake_graph_t graph;
    NEED(rig_works(mesh));
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    NEED(meshcoll_enqueue(mesh, &a, stream) == MESHCOLL_OK);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    for (int i = 0; i < 3; i++) { /* refused on both, they go on */
        meshcoll_args_t bad = a;
        bad.out = NULL;
        bad.in = NULL;
        NEED(meshcoll_enqueue(mesh, &bad, NULL) == MESHCOLL_ERR_INVALID_ARG);
        put(&a, rig_rank == 0 ? i : -1);
        NEED(cuGraphLaunch(graph, stream) == 0 && cuStreamSynchronize(stream) == 0);
        NEED(holds(&a, i));
    }
    NEED(rig_works(mesh));
    refuse_one(mesh, &a);
    NEED(rig_rank == 0 || mesh->job->failure.status == MESHCOLL_ERR_PEER);
    put(&a, rig_rank == 0 ? 222 : -1);
    if (rig_rank == 0) {
        NEED(cuStreamSynchronize(NULL) == 0);
        usleep(300 * 1000); /* nobody tells the other one meanwhile */
        NEED(meshcoll_barrier(mesh) == MESHCOLL_ERR_PEER);
    }
    /* a stream whose waits were ended takes what lies in the slot: let that be of rank 0's graph */
    if (rig_streams && rig_rank == 1)
        rig_meet();
    NEED(cuGraphLaunch(graph, stream) == 0 && cuStreamSynchronize(stream) == 0);
    if (rig_streams && rig_rank == 0)
        rig_meet();
    NEED(!holds(&a, 111) || rig_rank == 0);
    NEED(meshcoll_barrier(mesh) == MESHCOLL_ERR_PEER);
    NEED(cuGraphDestroy(graph) == 0);
}

bool test_stale_captured(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_stale_captured);
}

/* Different calls ---------------------------------------------------------------------------------- */

typedef enum { TYPE, OP, COUNT, COLLECTIVE, ROOT, ROOTS, MEMORY, N_WAYS } way_t;
static way_t way;
static bool blocks;

static meshcoll_args_t other_call(void)
{
    meshcoll_args_t a = rig_call(way == ROOT    ? MESHCOLL_BCAST
                                 : way == ROOTS ? MESHCOLL_REDUCE
                                                : MESHCOLL_ALLREDUCE);
    if (rig_rank != 1)
        return a;
    a.datatype = way == TYPE ? MESHCOLL_FLOAT32 : a.datatype;
    a.op = way == OP ? MESHCOLL_MAX : a.op;
    a.count = way == COUNT ? 80 : a.count;
    a.collective = way == COLLECTIVE ? MESHCOLL_REDUCE : a.collective;
    a.root = way == ROOT || way == ROOTS;
    return a;
}

static int call(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    static int32_t host[100];
    if (way == MEMORY && rig_rank == 1)
        return meshcoll_allreduce(mesh, host, host, a->count, a->datatype, a->op);
    if (!blocks)
        return meshcoll_enqueue(mesh, a, NULL);
    switch (a->collective) {
    case MESHCOLL_BCAST:
        return meshcoll_bcast(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_REDUCE:
        return meshcoll_reduce(mesh, a->in, a->out, a->count, a->datatype, a->op, a->root);
    default:
        return meshcoll_allreduce(mesh, a->in, a->out, a->count, a->datatype, a->op);
    }
}

/* The first questions to this rank's monitor are not answered, as on a busy machine. */
enum { UNANSWERED = 2 };
static mc_monitor_answer_t answers;
static int n_asked;

static size_t answer_late(void *context, uint32_t question, void *out, size_t room)
{
    return n_asked++ < UNANSWERED ? 0 : answers(context, question, out, room);
}

static void slow_down(const meshcoll_t *mesh)
{
    answers = mesh->job->monitor->answer;
    mesh->job->monitor->answer = answer_late;
}

/* Two roots of a broadcast both send, and end; what they sent is told from the next broadcast's. Two of a reduction wait
 * for each other, and ask. */
static void rank_differ(meshcoll_t *mesh)
{
    static const char *const theirs[] = {
        [TYPE] = "allreduce of 100 float32, 400 B (call 3), sum, in device memory",
        [OP] = "allreduce of 100 int32, 400 B (call 3), max, in device memory",
        [COUNT] = "allreduce of 80 int32, 320 B (call 3), sum, in device memory",
        [COLLECTIVE] = "reduce of 100 int32, 400 B (call 3), sum, root 0, in device memory",
        [ROOTS] = "reduce of 100 int32, 400 B (call 3), sum, root 1, in device memory",
        [MEMORY] = "allreduce of 100 int32, 400 B (call 3), sum, in device memory"};
    const meshcoll_args_t a = other_call();
    NEED(rig_works(mesh) && rig_works(mesh) && rig_works(mesh));
    if (way == OP)
        slow_down(mesh);
    rig_meet();
    int status = call(mesh, &a);
    if (way == ROOT) {
        const meshcoll_args_t again = rig_call(MESHCOLL_BCAST);
        NEED(status == MESHCOLL_OK || (blocks && status == MESHCOLL_ERR_MISMATCH));
        put(&again, 500 + rig_rank);
        status = call(mesh, &again);
        NEED(rig_rank == 0 || status || (cuStreamSynchronize(NULL) == 0 && !holds(&again, 400)));
    }
    status = status ? status : rig_await_error(mesh);
    NEED(status == MESHCOLL_ERR_MISMATCH);
    NEED(rig_says(" has made another call than rank ") && rig_says("make the same calls"));
    NEED(way == ROOT || rig_says(theirs[way]));
    NEED(way == ROOT || rig_says(way == ROOTS ? "reduce of 100 int32, 400 B (call 3), sum, root 0"
                                              : "allreduce of 100 int32, 400 B (call 3), sum"));
    NEED(cuStreamSynchronize(NULL) == 0); /* kernels have given up */
}

static bool differ(const char *mesh, const char *machines)
{
    const rig_t rig = {.mesh = mesh, .machines = machines, .blocks = "2", .timeout = "20"};
    bool good = true;
    for (int i = 0; i < 2 * N_WAYS && good; i++) {
        way = (way_t)(i % N_WAYS);
        blocks = i >= N_WAYS;
        good = rig_run(&rig, rank_differ);
        if (!good)
            printf("way %d, blocks %d\n", (int)way, blocks);
    }
    return good;
}

bool test_differ(void)
{
    return differ("gpu=2", NULL);
}

bool test_far_differ(void)
{
    return rig_can_part() ? differ("box=2,gpu=1", "01") : rig_skip(RIG_CANNOT_PART);
}
