/* Creation takes at most four rounds of the out-of-band allgather, however ranks reach each other; and its
 * last call, the barrier of a destroy, disturbs nothing. */
#include "runtime/handle/handle.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, MOST_ROUNDS = 4 };

static struct {
    pthread_barrier_t barrier;
    const void *in[RANKS];
    const meshcoll_params_t *params;
    int n_rounds; /* of rank 0 */
    int rounds_allowed;
    size_t most;         /* bytes of a record */
    _Atomic bool leaves; /* rank 1 is in the barrier of its destroy */
} world = {.rounds_allowed = MOST_ROUNDS};

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    const int rank = *(const int *)context;
    world.in[rank] = in;
    if (rank == 0) {
        world.n_rounds++;
        world.most = bytes > world.most ? bytes : world.most;
    }
    pthread_barrier_wait(&world.barrier);
    for (int r = 0; r < RANKS; r++)
        memcpy((char *)out + (size_t)r * bytes, world.in[r], bytes);
    pthread_barrier_wait(&world.barrier);
    return 0;
}

static void *create(void *argument)
{
    int *const rank = argument;
    meshcoll_t *mesh = NULL;
    float x = 1;
    const meshcoll_oob_t oob = {
        .rank = *rank, .size = RANKS, .context = rank, .allgather = allgather};
    cr_assert_eq(meshcoll_create_oob(&oob, world.params, &mesh), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    if (*rank == 0)
        cr_expect_eq(world.n_rounds, world.rounds_allowed, "%d rounds", world.n_rounds);
    cr_assert_eq(meshcoll_allreduce(mesh, &x, &x, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM), MESHCOLL_OK);
    cr_expect_eq(x, RANKS);
    meshcoll_destroy(mesh);
    return NULL;
}

static void run(void *(*body)(void *), const meshcoll_params_t *params)
{
    pthread_t thread[RANKS];
    int rank[RANKS];
    world.params = params;
    world.n_rounds = 0;
    world.most = 0;
    cr_assert_eq(pthread_barrier_init(&world.barrier, NULL, RANKS), 0);
    for (int r = 0; r < RANKS; r++) {
        rank[r] = r;
        cr_assert_eq(pthread_create(&thread[r], NULL, body, &rank[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&world.barrier);
}

static void expect_four(const char *mesh, const char *transports)
{
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = mesh, .transports = transports, .links = "uniform"};
    run(create, &params);
}

Test(rounds, at_most_four, .timeout = 60)
{
    expect_four(NULL, NULL);
    expect_four("box=2,gpu=2", NULL);
    expect_four("box=2,gpu=2", "gpu=shm:copy");
    expect_four("gpu=4", "gpu=tcp,self");
}

/* A list of transports that names a dimension again and again. */
static void expect_long(int repeats, int rounds)
{
    static char transports[16 * 1024];
    transports[0] = '\0';
    for (int i = 0; i < repeats; i++)
        strcat(transports, i ? ";gpu=shm" : "gpu=shm");
    const meshcoll_params_t params = {
        .size = sizeof params, .transports = transports, .links = "uniform"};
    world.rounds_allowed = rounds;
    run(create, &params);
    world.rounds_allowed = MOST_ROUNDS;
    cr_expect_gt(world.most, strlen(transports));
}

/* Only memory for settings beyond MC_ROUND_ROOM takes a round more. */
Test(rounds, with_long_settings, .timeout = 60)
{
    expect_long(300, MOST_ROUNDS);
    expect_long(1000, MOST_ROUNDS + 1);
}

/* A destroy with a message that nobody receives ------------------------------------------------- */

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* The result is undefined until all ranks are here. */
static int destroying(void *context, const void *in, void *out, size_t bytes)
{
    if (bytes == 1)
        memset(out, 0xff, RANKS);
    if (bytes == 1 && *(const int *)context == 1)
        world.leaves = true;
    return allgather(context, in, out, bytes);
}

/* Ranks 1 and 2 exchange a message, so that rank 1 hears rank 0's while it is in the barrier. */
static void *leave(void *argument)
{
    int *const rank = argument;
    meshcoll_t *mesh = NULL;
    char x = 0;
    const meshcoll_oob_t oob = {
        .rank = *rank, .size = RANKS, .context = rank, .allgather = destroying};
    cr_assert_eq(meshcoll_create_oob(&oob, world.params, &mesh), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    if (*rank == 1)
        cr_expect_eq(meshcoll_send(mesh, &x, 1, MESHCOLL_UINT8, 2, 0), MESHCOLL_OK);
    if (*rank == 2)
        cr_expect_eq(meshcoll_recv(mesh, &x, 1, MESHCOLL_UINT8, 1, 0, NULL), MESHCOLL_OK);
    if (*rank == 0) {
        while (!world.leaves)
            nap(1);
        cr_expect_eq(meshcoll_send(mesh, &x, 1, MESHCOLL_UINT8, 1, 0), MESHCOLL_OK);
        nap(300);
    }
    meshcoll_destroy(mesh);
    return NULL;
}

Test(rounds, destroy_with_a_message_that_nobody_receives, .timeout = 60)
{
    setenv("MESHCOLL_MONITOR", "off", 1); /* else the monitors meet, not the allgather */
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "box=1,gpu=4",
                                      .transports = "gpu=tcp,self",
                                      .links = "uniform",
                                      .progress = "thread"};
    run(leave, &params);
}
