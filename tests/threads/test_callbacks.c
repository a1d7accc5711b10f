/*
 * Ranks are threads of this process; callbacks and hooks, with and without a progress thread, while
 * threads of each rank begin, wait and are called. Exit 1 on any mismatch.
 */
#include "meeting.h"

#include <sched.h>
#include <stdatomic.h>

enum { WORKERS = 3, ROUNDS = 30, COUNT = 3000, CHAIN = 50 };

typedef struct rank rank_t;

/* A persistent request, started again and again by one thread. */
typedef struct {
    rank_t *rank;
    int number;
    meshcoll_request_t *request;
    _Atomic int n_calls;
    int32_t in[COUNT], out[COUNT];
} worker_t;

struct rank {
    seat_t seat;
    meshcoll_t *mesh;
    worker_t worker[WORKERS];
    /* a chain of calls, each begun by the callback of the one before */
    meshcoll_t *chained;
    int32_t in, out;
    _Atomic int n_left, n_failed;
    _Atomic long n_hooks;
};

/* Nothing but relaxed: what it protects, the library orders. */
static int hook(void *context)
{
    rank_t *const r = context;
    atomic_fetch_add_explicit(&r->n_hooks, 1, memory_order_relaxed);
    return 0;
}

static void count(void *context, meshcoll_request_t *request, int status)
{
    worker_t *const w = context;
    check(status == MESHCOLL_OK && request == w->request, "the callback's arguments");
    check(w->out[7] == RANKS * w->in[7], "the result in the callback");
    atomic_fetch_add_explicit(&w->n_calls, 1, memory_order_relaxed);
}

static void *work(void *argument)
{
    worker_t *const w = argument;
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            w->in[i] = 100 * w->number + round + i;
        check(meshcoll_start(w->request) == MESHCOLL_OK, "start");
        if ((round + w->number) % 3 == 0)
            while (meshcoll_test(w->request) == MESHCOLL_IN_PROGRESS)
                sched_yield();
        check(meshcoll_wait(w->request) == MESHCOLL_OK, "wait");
        check(atomic_load_explicit(&w->n_calls, memory_order_relaxed) == round,
              "one callback for each run, before its wait returns");
    }
    return NULL;
}

static void run_workers(rank_t *r)
{
    pthread_t thread[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        worker_t *const w = &r->worker[i];
        w->rank = r;
        w->number = i;
        check(meshcoll_allreduce_init(r->mesh, w->in, w->out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM,
                                      &w->request) == MESHCOLL_OK,
              "init");
        check(meshcoll_set_callback(w->request, count, w) == MESHCOLL_OK, "set_callback");
    }
    for (int i = 0; i < WORKERS; i++)
        check(pthread_create(&thread[i], NULL, work, &r->worker[i]) == 0, "a thread");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        meshcoll_free(r->worker[i].request);
}

static void begin_next(rank_t *r);

static void go_on(void *context, meshcoll_request_t *request, int status)
{
    rank_t *const r = context;
    if (status || r->out != RANKS)
        atomic_fetch_add(&r->n_failed, 1);
    meshcoll_free(request);
    if (atomic_fetch_sub(&r->n_left, 1) > 1)
        begin_next(r);
}

static void begin_next(rank_t *r)
{
    meshcoll_request_t *request;
    r->in = 1;
    check(meshcoll_iallreduce(r->chained, &r->in, &r->out, 1, MESHCOLL_INT32, MESHCOLL_SUM,
                              &request) == MESHCOLL_OK,
          "iallreduce in a callback");
    check(meshcoll_set_callback(request, go_on, r) == MESHCOLL_OK, "set_callback in a callback");
}

/* This thread waits on another mesh, and whoever progresses the chain calls its callbacks. The
 * ranks agree when all are through. */
static void run_chain(rank_t *r)
{
    int32_t left = 1, most = 1;
    atomic_store(&r->n_left, CHAIN);
    begin_next(r);
    while (most > 0) {
        left = atomic_load(&r->n_left);
        check(meshcoll_allreduce(r->mesh, &left, &most, 1, MESHCOLL_INT32, MESHCOLL_MAX) ==
                  MESHCOLL_OK,
              "allreduce");
    }
    check(atomic_load(&r->n_failed) == 0, "the chain's results");
}

/* Rank 0 is late: the others' waits run their hooks. */
static void run_hooks(rank_t *r)
{
    for (int round = 0; round < 3; round++) {
        if (r->seat.rank == 0)
            usleep(100 * 1000);
        check(meshcoll_barrier(r->mesh) == MESHCOLL_OK, "barrier");
    }
    check(r->seat.rank == 0 || atomic_load(&r->n_hooks) > 0, "the hook is called");
}

static meshcoll_t *open_hooked(rank_t *r)
{
    meshcoll_t *mesh = NULL;
    const meshcoll_oob_t oob = {
        .rank = r->seat.rank, .size = RANKS, .context = &r->seat, .allgather = allgather};
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "gpu=4",
                                      .transports = "gpu=shm",
                                      .links = "uniform",
                                      .progress = r->seat.mode.progress,
                                      .threads = r->seat.mode.threads,
                                      .hook = hook,
                                      .hook_context = r};
    check(meshcoll_create_oob(&oob, &params, &mesh) == MESHCOLL_OK, "create");
    return mesh;
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    r->mesh = open_hooked(r);
    r->chained = open_mesh(&r->seat, "gpu=4", "gpu=shm");
    run_workers(r);
    run_chain(r);
    run_hooks(r);
    meshcoll_destroy(r->chained);
    meshcoll_destroy(r->mesh);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {
        {"thread", "single"}, {"none", "multiple"}, {"thread", "multiple"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof *mode, rank, sizeof *rank, run_rank);
    return 0;
}
