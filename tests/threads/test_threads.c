/*
 * Ranks are threads of this process, and have threads of their own that call and wait at once, with and
 * without a progress thread. They meet over the shared-memory transport alone, so that the thread
 * sanitizer sees all there is to see. Exit 1 on any mismatch.
 */
#include "meeting.h"

enum { WORKERS = 3, ROUNDS = 40, COUNT = 3000, SMALL = 5, PARTS = 6 };

/* One rank --------------------------------------------------------------------------------------- */

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
    int32_t in[WORKERS][COUNT], out[WORKERS][COUNT];
    meshcoll_request_t *persistent[WORKERS];
} rank_t;

typedef struct {
    rank_t *rank;
    int number;
} worker_t;

static void fill(int32_t *in, size_t n, int rank, int salt)
{
    for (size_t i = 0; i < n; i++)
        in[i] = salt + rank + (int32_t)i;
}

static void expect(const int32_t *out, size_t n, int salt)
{
    for (size_t i = 0; i < n; i++)
        check(out[i] == RANKS * (salt + (int32_t)i) + RANKS * (RANKS - 1) / 2, "a wrong sum");
}

/* Starts and waits by itself, while the others do; persistent ones may in any order. */
static void *work(void *argument)
{
    const worker_t *const w = argument;
    rank_t *const r = w->rank;
    for (int round = 0; round < ROUNDS; round++) {
        const int salt = 1000 * w->number + round;
        fill(r->in[w->number], COUNT, r->seat.rank, salt);
        check(meshcoll_start(r->persistent[w->number]) == MESHCOLL_OK, "start");
        if ((round + w->number) % 3 == 0)
            while (meshcoll_test(r->persistent[w->number]) == MESHCOLL_IN_PROGRESS)
                sched_yield();
        check(meshcoll_wait(r->persistent[w->number]) == MESHCOLL_OK, "wait");
        expect(r->out[w->number], COUNT, salt);
    }
    return NULL;
}

static void run_persistent(rank_t *r)
{
    pthread_t thread[WORKERS];
    worker_t worker[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = MESHCOLL_ALLREDUCE,
                                      .in = r->in[i],
                                      .out = r->out[i],
                                      .count = COUNT,
                                      .datatype = MESHCOLL_INT32};
        check(meshcoll_init(r->mesh, &args, &r->persistent[i]) == MESHCOLL_OK, "init");
    }
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (worker_t){.rank = r, .number = i};
        check(pthread_create(&thread[i], NULL, work, &worker[i]) == 0, "a thread");
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        meshcoll_free(r->persistent[i]);
}

typedef struct {
    meshcoll_request_t *request;
    int status;
} handed_t;

static void *wait_for(void *argument)
{
    handed_t *const h = argument;
    h->status = meshcoll_wait(h->request);
    return NULL;
}

/* One thread calls, others wait for what it has started. */
static void run_handed_over(rank_t *r)
{
    for (int round = 0; round < ROUNDS / 4; round++) {
        pthread_t thread[WORKERS];
        handed_t handed[WORKERS] = {0};
        for (int i = 0; i < WORKERS; i++) {
            fill(r->in[i], COUNT, r->seat.rank, 7 * i + round);
            check(meshcoll_iallreduce(r->mesh, r->in[i], r->out[i], COUNT, MESHCOLL_INT32,
                                      MESHCOLL_SUM, &handed[i].request) == MESHCOLL_OK,
                  "iallreduce");
            check(pthread_create(&thread[i], NULL, wait_for, &handed[i]) == 0, "a thread");
        }
        for (int i = 0; i < WORKERS; i++) {
            pthread_join(thread[i], NULL);
            check(handed[i].status == MESHCOLL_OK, "wait in another thread");
            expect(r->out[i], COUNT, 7 * i + round);
        }
        check(meshcoll_barrier(r->mesh) == MESHCOLL_OK, "barrier");
    }
}

/* A sleeper's rank computes for a while; the others' waits reach the condition. */
static void run_many(rank_t *r)
{
    meshcoll_request_t *request[WORKERS];
    for (int round = 0; round < 5; round++) {
        int left = WORKERS, at;
        if (r->seat.rank == round % RANKS)
            usleep(30 * 1000);
        for (int i = 0; i < WORKERS; i++) {
            fill(r->in[i], COUNT, r->seat.rank, i);
            check(meshcoll_iallreduce(r->mesh, r->in[i], r->out[i], COUNT, MESHCOLL_INT32,
                                      MESHCOLL_SUM, &request[i]) == MESHCOLL_OK,
                  "iallreduce");
        }
        if (round % 2) {
            check(meshcoll_waitall(WORKERS, request) == MESHCOLL_OK, "waitall");
        } else {
            for (; left > 0; left--)
                check(meshcoll_waitany(WORKERS, request, &at) == MESHCOLL_OK && at >= 0, "waitany");
            check(meshcoll_waitany(WORKERS, request, &at) == MESHCOLL_OK && at < 0, "none is left");
        }
        for (int i = 0; i < WORKERS; i++)
            expect(r->out[i], COUNT, i);
    }
}

static void run_group(rank_t *r)
{
    int32_t in[PARTS][SMALL], out[PARTS][SMALL];
    for (int round = 0; round < 5; round++) {
        check(meshcoll_group_begin(r->mesh) == MESHCOLL_OK, "group_begin");
        for (int i = 0; i < PARTS; i++) {
            fill(in[i], SMALL, r->seat.rank, 10 * i + round);
            check(meshcoll_allreduce(r->mesh, in[i], out[i], SMALL, MESHCOLL_INT32, MESHCOLL_SUM) ==
                      MESHCOLL_OK,
                  "a call in a group");
        }
        check(meshcoll_group_end(r->mesh) == MESHCOLL_OK, "group_end");
        for (int i = 0; i < PARTS; i++)
            expect(out[i], SMALL, 10 * i + round);
    }
}

/* With a progress thread it is complete without a look of this one. */
static void run_alone(rank_t *r)
{
    meshcoll_request_t *request;
    fill(r->in[0], COUNT, r->seat.rank, 3);
    check(meshcoll_iallreduce(r->mesh, r->in[0], r->out[0], COUNT, MESHCOLL_INT32, MESHCOLL_SUM,
                              &request) == MESHCOLL_OK,
          "iallreduce");
    usleep(200 * 1000);
    check(meshcoll_wait(request) == MESHCOLL_OK, "wait");
    expect(r->out[0], COUNT, 3);
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    r->mesh = open_mesh(&r->seat, "gpu=4", "gpu=shm");
    run_persistent(r);
    run_handed_over(r);
    run_many(r);
    run_group(r);
    run_alone(r);
    meshcoll_destroy(r->mesh);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {{"none", "multiple"}, {"thread", "single"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
