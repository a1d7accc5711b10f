/* A rank that runs out of memory while a mesh is created: all ranks are told, none waits for it. */
#include "base/gather.h"
#include "support/allocations.h"

#include <meshcoll/meshcoll.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#ifdef MC_HAS_ALLOCATIONS

enum { RANKS = 4, MOST = 1000 };

typedef struct {
    pthread_barrier_t barrier;
    const void *in[RANKS];
    int short_of, n_told;
    const char *mesh;
} world_t;

static world_t world;

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    world.in[*(const int *)context] = in;
    pthread_barrier_wait(&world.barrier);
    for (int r = 0; r < RANKS; r++)
        memcpy((char *)out + (size_t)r * bytes, world.in[r], bytes);
    pthread_barrier_wait(&world.barrier);
    return 0;
}

/* The allocation of this number fails; whether there was one. */
static int create_short_of(int *rank, unsigned allocation, int *status)
{
    meshcoll_t *mesh = NULL;
    const meshcoll_oob_t oob = {
        .rank = *rank, .size = RANKS, .context = rank, .allgather = allgather};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = world.mesh};
    const long live = n_live;
    n_left = allocation;
    *status = meshcoll_create_oob(&oob, &params, &mesh);
    const int failed = allocation > 0 && n_left == 0;
    n_left = 0;
    meshcoll_destroy(mesh);
    cr_assert(*status == MESHCOLL_OK || !mesh);
    cr_assert_eq(n_live, live, "rank %d: %ld left", *rank, n_live - live);
    return failed;
}

static void *create(void *argument)
{
    int rank = *(const int *)argument, status, all_status[RANKS], failed[RANKS];
    for (unsigned turn = 1; turn < MOST; turn++) {
        const int mine = create_short_of(&rank, rank == world.short_of ? turn : 0, &status);
        allgather(&rank, &status, all_status, sizeof status);
        allgather(&rank, &mine, failed, sizeof mine);
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(all_status[r], status, "%u: rank %d %d, rank %d %d", turn, r,
                         all_status[r], rank, status);
        cr_assert(status == MESHCOLL_OK ||
                      (status == MESHCOLL_ERR_NO_MEMORY && failed[world.short_of]),
                  "%u: %d, %s", turn, status, meshcoll_last_error());
        world.n_told += rank == 0 && status != MESHCOLL_OK;
        if (!failed[world.short_of])
            return NULL;
    }
    cr_assert(false, "there is no end of allocations");
    return NULL;
}

static void expect_told(const char *mesh, int short_of)
{
    pthread_t thread[RANKS];
    int rank[RANKS];
    world = (world_t){.mesh = mesh, .short_of = short_of};
    cr_assert_eq(pthread_barrier_init(&world.barrier, NULL, RANKS), 0);
    for (int r = 0; r < RANKS; r++) {
        rank[r] = r;
        cr_assert_eq(pthread_create(&thread[r], NULL, create, &rank[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&world.barrier);
    cr_expect_gt(world.n_told, 10, "%d", world.n_told);
}

static int copy(void *context, const void *in, void *out, size_t bytes)
{
    (void)context;
    memcpy(out, in, bytes);
    return 0;
}

/* What a process does once, such as looking for a driver, leaves memory of the C library. */
static void create_once(void)
{
    meshcoll_t *mesh;
    const meshcoll_oob_t oob = {.rank = 0, .size = 1, .allgather = copy};
    cr_assert_eq(meshcoll_create_oob(&oob, NULL, &mesh), MESHCOLL_OK);
    meshcoll_destroy(mesh);
}

/* One that waits for ever ends with the test's time. */
Test(create_no_memory, all_ranks_are_told, .timeout = 20)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    setenv("MESHCOLL_MONITOR", "off",
           1); /* the C library keeps memory of threads that have ended */
    create_once();
    expect_told(NULL, 0);
    expect_told("numa=2,gpu=2", 3);
}

/* Other threads without memory have all that is kept for reports. */
Test(create_no_memory, nothing_is_left_to_report_from)
{
    const meshcoll_oob_t oob = {.rank = 0, .size = 1, .allgather = copy};
    const meshcoll_params_t params = {.size = sizeof params};
    mc_rounds_t others[MC_ROUND_SPARES];
    int failed = 0;
    for (int i = 0; i < MC_ROUND_SPARES; i++) {
        n_left = 1;
        mc_rounds_open(&others[i], &oob);
        cr_assert_not_null(others[i].spare);
    }
    for (unsigned turn = 1; turn < 10; turn++) {
        meshcoll_t *mesh = NULL;
        n_left = turn;
        const int status = meshcoll_create_oob(&oob, &params, &mesh);
        n_left = 0;
        failed += status == MESHCOLL_ERR_NO_MEMORY;
        meshcoll_destroy(mesh);
    }
    cr_expect_gt(failed, 2, "%d, %s", failed, meshcoll_last_error());
    for (int i = 0; i < MC_ROUND_SPARES; i++)
        mc_rounds_close(&others[i]);
}

#else

Test(create_no_memory, needs_glibc_and_its_own_allocator)
{
    cr_skip("skipped: malloc is a sanitizer's, or not glibc's: calls are not counted");
}

#endif
