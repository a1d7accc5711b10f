/*
 * Sub-meshes of one mesh and the mesh itself, each called by a thread of its own at the same time, by ranks
 * that are threads. Exit 1 on any mismatch.
 */
#include "meeting.h"

enum { PARTS = 3, ROUNDS = 30, COUNT = 2500 };

/* A sub-mesh, or the whole, and who drives it. */
typedef struct {
    meshcoll_t *mesh;
    int rank, seed;
    int32_t member[RANKS]; /* by the sub-mesh's rank */
    int32_t in[COUNT], out[COUNT];
} part_t;

typedef struct {
    seat_t seat;
    meshcoll_t *mesh;
    part_t part[PARTS];
} rank_t;

static int32_t value(const part_t *p, int32_t rank, int round, size_t i)
{
    return p->seed * 1000000 + round * 1000 + rank * 100 + (int32_t)i;
}

static void fill(part_t *p, int round)
{
    for (size_t i = 0; i < COUNT; i++)
        p->in[i] = value(p, p->rank, round, i);
    memset(p->out, 0, sizeof p->out);
}

static void expect_sum(const part_t *p, int round)
{
    for (size_t i = 0; i < COUNT; i++) {
        int32_t sum = 0;
        for (int m = 0; m < meshcoll_size(p->mesh); m++)
            sum += value(p, p->member[m], round, i);
        check(p->out[i] == sum, "a wrong sum on a part");
    }
}

static void expect_blocks(const part_t *p, int round, size_t each)
{
    const size_t mine = (size_t)meshcoll_rank(p->mesh) * each;
    for (int m = 0; m < meshcoll_size(p->mesh); m++)
        for (size_t i = 0; i < each; i++)
            check(p->out[(size_t)m * each + i] == value(p, p->member[m], round, mine + i),
                  "a wrong block on a part");
}

/* Blocking calls, one that is waited for later, and a persistent one. */
static void *drive(void *argument)
{
    part_t *const p = argument;
    const size_t each = COUNT / RANKS;
    meshcoll_request_t *again, *call;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = p->in,
                                  .out = p->out,
                                  .count = COUNT,
                                  .datatype = MESHCOLL_INT32};
    check(meshcoll_init(p->mesh, &args, &again) == MESHCOLL_OK, "init");
    for (int round = 0; round < ROUNDS; round++) {
        fill(p, round);
        check(meshcoll_allreduce(p->mesh, p->in, p->out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM) ==
                  MESHCOLL_OK,
              "allreduce");
        expect_sum(p, round);
        check(meshcoll_ialltoall(p->mesh, p->in, p->out, each, MESHCOLL_INT32, &call) ==
                      MESHCOLL_OK &&
                  meshcoll_wait(call) == MESHCOLL_OK,
              "ialltoall");
        expect_blocks(p, round, each);
        check(meshcoll_start(again) == MESHCOLL_OK && meshcoll_wait(again) == MESHCOLL_OK, "start");
        expect_sum(p, round);
    }
    check(meshcoll_barrier(p->mesh) == MESHCOLL_OK, "barrier");
    meshcoll_free(again);
    return NULL;
}

static void open_part(rank_t *r, int k)
{
    static const char *const dims[PARTS - 1] = {"x", "y"};
    part_t *const p = &r->part[k];
    *p = (part_t){.mesh = r->mesh, .rank = r->seat.rank, .seed = k};
    if (k < PARTS - 1)
        check(meshcoll_split(r->mesh, dims[k], &p->mesh) == MESHCOLL_OK, "split");
    check(meshcoll_allgather(p->mesh, &p->rank, p->member, 1, MESHCOLL_INT32) == MESHCOLL_OK,
          "allgather");
    check(meshcoll_size(p->mesh) == (k < PARTS - 1 ? 2 : RANKS), "a part's size");
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    pthread_t thread[PARTS];
    r->mesh = open_mesh(&r->seat, "x=2,y=2", "x=shm;y=shm");
    for (int k = 0; k < PARTS; k++)
        open_part(r, k);
    for (int k = 0; k < PARTS; k++)
        check(pthread_create(&thread[k], NULL, drive, &r->part[k]) == 0, "a thread");
    for (int k = 0; k < PARTS; k++)
        pthread_join(thread[k], NULL);
    meshcoll_destroy(r->part[0].mesh); /* the other one goes with the mesh */
    meshcoll_destroy(r->mesh);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {{"none", "multiple"}, {"thread", "multiple"}};
    static rank_t rank[RANKS];
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
