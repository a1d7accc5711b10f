/*
 * Ranks are threads of this process. While they wait for a late one, on the mesh and on its parts, another
 * thread copies what they wait for: each copy is whole, and names the late rank. Exit 1 otherwise.
 */
#include "meeting.h"

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/handle.h"

#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 4, LATE_US = 60 * 1000, LATE = RANKS - 1, COUNT = 512 };

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
    _Atomic int is_open;
    double in[COUNT], out[COUNT];
} rank_t;

static rank_t rank[RANKS];
static _Atomic int n_named, n_in_part, n_closing;

static void check_copy(const mc_waits_t *w, int of)
{
    char buffer[MC_WAIT_TEXT];
    check(mc_waits_are_sound(w, RANKS) && w->rank == of && w->size == RANKS, "a record");
    for (int32_t i = 0; i < w->n; i++) {
        const mc_wait_t *const wait = &w->wait[i];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        mc_wait_print(wait, MC_WAIT_LONG, &text);
        check(text.length > 0 && wait->age_ms <= MC_WAITS_FRESH_MS, "a text");
        atomic_fetch_add(&n_named, wait->peer == LATE);
        atomic_fetch_add(&n_in_part, wait->in_part >= 0);
    }
}

/* A rank's mesh stays open until nobody copies any more. */
static void *copy_all(void *argument)
{
    mc_waits_t w;
    (void)argument;
    while (atomic_load(&n_closing) == 0)
        for (int r = 0; r < RANKS; r++)
            if (atomic_load(&rank[r].is_open)) {
                mc_waits_copy(rank[r].mesh->job, (uint32_t)r, &w);
                check_copy(&w, r);
            }
    return NULL;
}

static void sum_late(rank_t *r, meshcoll_t *mesh)
{
    if (r->seat.rank == LATE)
        usleep(LATE_US);
    check(meshcoll_allreduce(mesh, r->in, r->out, COUNT, MESHCOLL_FLOAT64, MESHCOLL_SUM) ==
              MESHCOLL_OK,
          "allreduce");
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    meshcoll_t *part;
    pthread_t copies;
    r->mesh = open_mesh(&r->seat, "x=2,y=2", "x=shm;y=shm");
    atomic_store(&r->is_open, 1);
    if (r->seat.rank == 0)
        check(pthread_create(&copies, NULL, copy_all, NULL) == 0, "a thread");
    for (int round = 0; round < ROUNDS; round++) {
        sum_late(r, r->mesh);
        check(meshcoll_split(r->mesh, "y", &part) == MESHCOLL_OK, "split");
        sum_late(r, part);
        meshcoll_destroy(part);
    }
    check(meshcoll_barrier(r->mesh) == MESHCOLL_OK, "barrier");
    if (r->seat.rank == 0) {
        atomic_store(&n_closing, 1);
        pthread_join(copies, NULL);
    }
    check(meshcoll_barrier(r->mesh) == MESHCOLL_OK, "barrier");
    atomic_store(&r->is_open, 0);
    meshcoll_destroy(r->mesh);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {
        {"none", "single"}, {"none", "multiple"}, {"thread", "multiple"}};
    for (size_t i = 0; i < sizeof mode / sizeof mode[0]; i++) {
        atomic_store(&n_closing, 0);
        run_modes(&mode[i], 1, rank, sizeof *rank, run_rank);
    }
    printf("%d named the late rank, %d in a part\n", (int)n_named, (int)n_in_part);
    check(n_named > 0 && n_in_part > 0, "the late rank was never named");
    return 0;
}
