/*
 * Ranks are threads of this process. While all are in calls, another thread aborts the mesh of one rank, or two threads
 * those of two: every rank's calls end with an error that names one of these, and meshcoll_destroy waits for nobody.
 */
#include "meeting.h"

#include <stdbool.h>

enum { ROUNDS = 3, COUNT = 3000, AFTER_US = 2000 };

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
    int32_t in[COUNT], out[COUNT];
} rank_t;

static void *abort_mesh(void *argument)
{
    const rank_t *const r = argument;
    usleep(AFTER_US);
    check(meshcoll_abort(r->mesh, "a test") == MESHCOLL_OK, "abort");
    return NULL;
}

static bool aborts(int rank, int round)
{
    return rank == round || (round > 0 && rank == RANKS - 1);
}

/* The sentence of each rank's error names who aborted. */
static void check_named(int round)
{
    char sentence[64];
    int named = 0;
    for (int a = 0; a < RANKS; a++) {
        snprintf(sentence, sizeof sentence, "rank %d aborted the mesh: a test", a);
        const bool says = strstr(meshcoll_last_error(), sentence);
        named += says;
        check(!says || aborts(a, round), "a rank is named that did not abort");
    }
    check(named == 1, "nobody is named, or more than one");
}

static int sum_in_a_group(rank_t *r)
{
    int status = meshcoll_group_begin(r->mesh);
    if (!status)
        status = meshcoll_allreduce(r->mesh, r->in, r->out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM);
    const int ended = meshcoll_group_end(r->mesh);
    return ended ? ended : status;
}

static void call_until_it_fails(rank_t *r, int round)
{
    int status = MESHCOLL_OK;
    for (int i = 0; !status; i++) {
        meshcoll_request_t *request;
        if (i % 2 == 0 && (round + r->seat.rank) % 2 == 0)
            status = sum_in_a_group(r);
        else if (i % 2 == 0)
            status =
                meshcoll_allreduce(r->mesh, r->in, r->out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM);
        else if (!(status = meshcoll_iallgather(r->mesh, r->in, r->out, COUNT / RANKS,
                                                MESHCOLL_INT32, &request)))
            status = meshcoll_wait(request);
    }
    check(status == MESHCOLL_ERR_ABORTED, "the status of an aborted call");
    check_named(round);
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    pthread_t thread;
    for (int round = 0; round < ROUNDS; round++) {
        r->mesh = open_mesh(&r->seat, "x=4", "x=shm");
        const bool one = aborts(r->seat.rank, round);
        check(!one || pthread_create(&thread, NULL, abort_mesh, r) == 0, "a thread");
        call_until_it_fails(r, round);
        if (one)
            pthread_join(thread, NULL);
        meshcoll_destroy(r->mesh);
        pthread_barrier_wait(&meeting.barrier);
    }
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {
        {"none", "single"}, {"none", "multiple"}, {"thread", "multiple"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
