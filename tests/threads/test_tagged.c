/*
 * Tagged messages among ranks that are threads of this process, each with threads of its own that send
 * and receive at once, with and without a progress thread, over the shared-memory transport alone, so
 * that the thread sanitizer sees all there is to see. Exit 1 on any mismatch.
 */
#include "meeting.h"

enum { WORKERS = 3, ROUNDS = 30, MOST = 20000 };

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
} rank_t;

typedef struct {
    rank_t *rank;
    int number;
    int32_t in[MOST], out[MOST];
} worker_t;

static size_t count_of(int round)
{
    static const size_t counts[] = {0, 1, 20, 21, 2000, 2049, MOST};
    return counts[(size_t)round % (sizeof counts / sizeof counts[0])];
}

/* Its own tag to every rank; from a rank in turn, or from any that has sent with the tag. */
static void exchange(worker_t *w, int round)
{
    meshcoll_t *const mesh = w->rank->mesh;
    const int rank = w->rank->seat.rank, far = round % RANKS;
    const int to = (rank + far) % RANKS, from = (rank + RANKS - far) % RANKS;
    const int tag = w->number * ROUNDS + round;
    const size_t n = count_of(round + w->number);
    meshcoll_request_t *request[2];
    meshcoll_received_t got;
    for (size_t i = 0; i < n; i++)
        w->out[i] = tag * RANKS + rank + (int32_t)i;
    check(meshcoll_send_begin(mesh, w->out, n, MESHCOLL_INT32, to, tag, &request[0]) == 0, "send");
    check(meshcoll_recv_begin(mesh, w->in, n, MESHCOLL_INT32,
                              round % 2 ? from : MESHCOLL_ANY_SOURCE, tag, &got, &request[1]) == 0,
          "receive");
    if (round % 3 == 0)
        while (meshcoll_test(request[1]) == MESHCOLL_IN_PROGRESS)
            sched_yield();
    else
        check(meshcoll_wait(request[1]) == MESHCOLL_OK, "wait");
    check(got.source == from && got.tag == tag && got.count == n, "another message");
    for (size_t i = 0; i < n; i++)
        check(w->in[i] == tag * RANKS + from + (int32_t)i, "other elements");
    check(meshcoll_wait(request[0]) == MESHCOLL_OK, "wait for the send");
}

static void *work(void *argument)
{
    for (int round = 0; round < ROUNDS; round++)
        exchange(argument, round);
    return NULL;
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    pthread_t thread[WORKERS];
    worker_t *const worker = calloc(WORKERS, sizeof *worker);
    int32_t sum = 0, one = 1;
    check(worker != NULL, "memory");
    r->mesh = open_mesh(&r->seat, "gpu=4", "gpu=shm");
    for (int i = 0; i < WORKERS; i++) {
        worker[i].rank = r;
        worker[i].number = i;
        check(pthread_create(&thread[i], NULL, work, &worker[i]) == 0, "a thread");
    }
    check(meshcoll_allreduce(r->mesh, &one, &sum, 1, MESHCOLL_INT32, MESHCOLL_SUM) == 0, "a sum");
    check(sum == RANKS, "a wrong sum");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    meshcoll_destroy(r->mesh);
    free(worker);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {{"none", "multiple"}, {"thread", "single"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
