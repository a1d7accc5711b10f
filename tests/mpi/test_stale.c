/* A message of a call that its receiver was refused is never taken for one of a later call: not by the next group
 * of the same context, not when numbers wrap, not by the next start. The mesh ends, and all ranks are told who was
 * refused what. Where all ranks were refused the same, it goes on. Two ranks. */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many calls take numbers that those of the first come again. */
enum { WRAPS = (1 << 19) + 8, MANY = 5000 };

static int rank;
static const char *doing;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, %s: %s; last error: %s\n", rank, doing, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static meshcoll_t *open_mesh(const char *what)
{
    meshcoll_t *mesh;
    doing = what;
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
    return mesh;
}

static int group_of(meshcoll_t *mesh, meshcoll_t **group)
{
    static const int both[] = {0, 1};
    return meshcoll_create_group(mesh, both, 2, 0, group);
}

static int bcast(meshcoll_t *mesh, int32_t value, int32_t *got)
{
    *got = rank == 0 ? value : -1;
    return meshcoll_bcast(mesh, got, got, 1, MESHCOLL_INT32, 0);
}

static void check_told(int status)
{
    check(status == MESHCOLL_ERR_PEER, "expected to be told");
}

/* One rank is refused the call; the other completes it, unless it is told before. */
static void check_refused(int status, int refused)
{
    if (rank == refused)
        check(status == MESHCOLL_ERR_INVALID_ARG, "this rank is refused");
    else if (status)
        check_told(status);
}

/* Its receiver is refused it, and its root completes it. */
static void refuse_bcast(meshcoll_t *mesh)
{
    int32_t old = 111;
    const int status = meshcoll_bcast(mesh, &old, rank == 0 ? &old : NULL, 1, MESHCOLL_INT32, 0);
    check_refused(status, 1);
}

/* Later groups, one after another: who waits is told, or has the right data. */
static void next_groups(meshcoll_t *mesh, const char *who)
{
    int status = MESHCOLL_OK;
    for (int i = 0; i < 3 && !status; i++) {
        meshcoll_t *group;
        int32_t x = 222 + rank, y = -1;
        status = group_of(mesh, &group);
        if (status)
            break;
        status = meshcoll_reduce(group, &x, &y, 1, MESHCOLL_INT32, MESHCOLL_SUM, 0);
        check(status || rank == 1 || y == 445, "a sum of old and new");
        status = status ? status : bcast(group, 333, &y);
        check(status || y == 333, "old data");
        meshcoll_destroy(group);
    }
    if (status)
        check_told(status);
    check(!status || strstr(meshcoll_last_error(), who), "who was refused what");
    meshcoll_destroy(mesh);
}

static void group_after_bcast(void)
{
    meshcoll_t *const mesh = open_mesh("a group after a refused bcast"), *group;
    check(group_of(mesh, &group) == MESHCOLL_OK, "a group");
    refuse_bcast(group);
    meshcoll_destroy(group);
    next_groups(mesh, "rank 1 was refused this call (call 0 of ");
}

static void group_after_reduce(void)
{
    meshcoll_t *const mesh = open_mesh("a group after a refused reduce"), *group;
    int32_t x = 100, y = 0;
    check(group_of(mesh, &group) == MESHCOLL_OK, "a group");
    const int status =
        meshcoll_reduce(group, &x, rank == 0 ? NULL : &y, 1, MESHCOLL_INT32, MESHCOLL_SUM, 0);
    check_refused(status, 0);
    meshcoll_destroy(group);
    next_groups(mesh, "rank 0 was refused this call (call 0 of ");
}

static void dropped_group(void)
{
    meshcoll_t *const mesh = open_mesh("a group after calls that were not made"), *group;
    int32_t x = 100;
    check(group_of(mesh, &group) == MESHCOLL_OK, "a group");
    if (rank == 1)
        check(meshcoll_group_begin(group) == MESHCOLL_OK, "a group of calls");
    const int status = meshcoll_bcast(group, &x, &x, 1, MESHCOLL_INT32, 0);
    check(rank == 0 || status == MESHCOLL_OK, "it is collected");
    meshcoll_destroy(group);
    next_groups(mesh, "rank 1 was refused this call (call 0 of ");
}

static void wrapped_numbers(void)
{
    meshcoll_t *const mesh = open_mesh("numbers that wrap");
    int32_t got;
    int status = MESHCOLL_OK;
    refuse_bcast(mesh);
    for (int32_t i = 0; i < WRAPS && !status; i++) {
        status = bcast(mesh, i, &got);
        check(status || got == i, "old data");
    }
    check_told(status ? status : meshcoll_barrier(mesh));
    meshcoll_destroy(mesh);
}

/* What is begun without waiting is held back as well. */
static void begun_calls(void)
{
    meshcoll_t *const mesh = open_mesh("calls that do not wait");
    meshcoll_request_t *request;
    int32_t x = 1, status = MESHCOLL_OK;
    refuse_bcast(mesh);
    for (int i = 0; i < MANY && !status; i++) {
        status = meshcoll_ibcast(mesh, &x, &x, 1, MESHCOLL_INT32, 1, &request);
        status = status ? status : meshcoll_wait(request);
    }
    check_told(status);
    meshcoll_destroy(mesh);
}

/* The receiver starts it twice without waiting, and is refused the second start. */
static void refused_start(void)
{
    meshcoll_t *const mesh = open_mesh("a start that is refused");
    meshcoll_request_t *r;
    int32_t x = 0;
    int status = MESHCOLL_OK;
    check(meshcoll_bcast_init(mesh, &x, &x, 1, MESHCOLL_INT32, 0, &r) == MESHCOLL_OK, "init");
    for (int32_t i = 1; i <= 10 && !status; i++) {
        x = rank == 0 ? i : -1;
        if (i == 4 && rank == 1)
            check(meshcoll_start(r) == MESHCOLL_ERR_INVALID_ARG, "a second start is refused");
        else
            status = meshcoll_start(r);
        if (!status && !(i == 3 && rank == 1))
            status = meshcoll_wait(r);
        check(status || i == 3 || i == 4 || x == i, "the data of another start");
    }
    check_told(status ? status : meshcoll_barrier(mesh));
    check(strstr(meshcoll_last_error(), "rank 1 was refused this start") != NULL, "the sentence");
    meshcoll_free(r);
    meshcoll_destroy(mesh);
}

/* A persistent request keeps its number, however many come and go. */
static void kept_request(void)
{
    meshcoll_t *const mesh = open_mesh("a persistent request that is kept");
    meshcoll_request_t *kept, *other;
    int32_t x = rank == 0 ? 5 : -1, y = 6;
    int status = MESHCOLL_OK;
    check(meshcoll_bcast_init(mesh, &x, &x, 1, MESHCOLL_INT32, 0, &kept) == MESHCOLL_OK, "init");
    for (int i = 0; i < 4 * MANY && !status; i++) {
        status = meshcoll_bcast_init(mesh, &y, &y, 1, MESHCOLL_INT32, 0, &other);
        if (!status)
            meshcoll_free(other);
    }
    check(status == MESHCOLL_OK, "numbers that come again leave it out");
    check(meshcoll_start(kept) == MESHCOLL_OK && meshcoll_wait(kept) == MESHCOLL_OK && x == 5,
          "the one that is kept");
    meshcoll_free(kept);
    check(meshcoll_bcast_init(mesh, &y, &y, 1, MESHCOLL_INT32, 0, &other) == MESHCOLL_OK,
          "another");
    check(meshcoll_start(other) == MESHCOLL_OK && meshcoll_wait(other) == MESHCOLL_OK, "runs");
    meshcoll_free(other);
    meshcoll_destroy(mesh);
}

/* A call runs while numbers wrap around it. */
static void overtaken_call(void)
{
    enum { LARGE = 16 << 20, SMALL_CALLS = 40000 };
    meshcoll_t *const mesh = open_mesh("a call that runs long");
    int32_t *const large = malloc(LARGE * sizeof *large), got;
    meshcoll_request_t *request;
    check(large != NULL, "memory");
    for (int32_t i = 0; i < LARGE; i++)
        large[i] = rank == 0 ? i : -1;
    check(meshcoll_ibcast(mesh, large, large, LARGE, MESHCOLL_INT32, 0, &request) == MESHCOLL_OK,
          "a large call");
    for (int32_t i = 0; i < SMALL_CALLS; i++)
        check(bcast(mesh, i, &got) == MESHCOLL_OK && got == i, "a small call");
    check(meshcoll_wait(request) == MESHCOLL_OK, "the large call");
    for (int32_t i = 0; i < LARGE; i++)
        check(large[i] == i, "its data");
    free(large);
    meshcoll_destroy(mesh);
}

/* The data of a message to a group that its receiver has destroyed stays where it is. */
static void late_message(void)
{
    enum { BYTES = 100, IDS = 1 << 16 };
    meshcoll_t *const mesh = open_mesh("a message to a group that is gone"), *group;
    char data[BYTES];
    check(group_of(mesh, &group) == MESHCOLL_OK, "a group");
    for (int i = 0; i < IDS; i++)
        check((rank == 0 ? meshcoll_send(group, data, BYTES, MESHCOLL_INT8, 1, 0)
                         : meshcoll_recv(group, data, BYTES, MESHCOLL_INT8, 0, 0, NULL)) == 0,
              "messages");
    if (rank == 1)
        meshcoll_destroy(group);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(data, 'o', BYTES);
    if (rank == 0) {
        check(meshcoll_send(group, data, BYTES, MESHCOLL_INT8, 1, 0) == MESHCOLL_OK, "the last");
        meshcoll_destroy(group);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check(group_of(mesh, &group) == MESHCOLL_OK, "the next group");
    memset(data, rank == 0 ? 'n' : '-', BYTES);
    check((rank == 0 ? meshcoll_send(group, data, BYTES, MESHCOLL_INT8, 1, 0)
                     : meshcoll_recv(group, data, BYTES, MESHCOLL_INT8, 0, 0, NULL)) == 0,
          "a message");
    check(data[0] == 'n' && data[BYTES - 1] == 'n', "old data");
    meshcoll_destroy(group);
    meshcoll_destroy(mesh);
}

/* All ranks do the same wrong, many times, and the mesh goes on. */
static void refused_alike(void)
{
    meshcoll_t *const mesh = open_mesh("refused on all ranks"), *group;
    meshcoll_request_t *r, *q;
    int32_t x = 0;
    check(meshcoll_bcast_init(mesh, &x, &x, 1, MESHCOLL_INT32, 0, &r) == MESHCOLL_OK, "init");
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < 1 + i % 3; k++)
            check(meshcoll_bcast(mesh, &x, NULL, 1, MESHCOLL_INT32, 0) == MESHCOLL_ERR_INVALID_ARG,
                  "a refusal");
        check(meshcoll_bcast_init(mesh, &x, NULL, 1, MESHCOLL_INT32, 0, &q) ==
                  MESHCOLL_ERR_INVALID_ARG,
              "a refusal of a persistent one");
        x = rank == 0 ? i : -1;
        check(meshcoll_start(r) == MESHCOLL_OK, "start");
        check(meshcoll_start(r) == MESHCOLL_ERR_INVALID_ARG, "a start of one that runs");
        check(meshcoll_wait(r) == MESHCOLL_OK && x == i, "a run");
        if (i % 2)
            check(bcast(mesh, i, &x) == MESHCOLL_OK && x == i, "a call after refusals");
    }
    for (int i = 0; i < 3; i++) {
        check(group_of(mesh, &group) == MESHCOLL_OK, "a group");
        check(meshcoll_bcast(group, NULL, NULL, 1, MESHCOLL_INT32, 0) == MESHCOLL_ERR_INVALID_ARG,
              "a refusal in a group");
        meshcoll_destroy(group);
    }
    check(bcast(mesh, 7, &x) == MESHCOLL_OK && x == 7, "the mesh goes on");
    meshcoll_free(r);
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"bcast", group_after_bcast},  {"reduce", group_after_reduce},
               {"dropped", dropped_group},    {"wrap", wrapped_numbers},
               {"begun", begun_calls},        {"start", refused_start},
               {"alike", refused_alike},      {"kept", kept_request},
               {"overtaken", overtaken_call}, {"late", late_message}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc < 2 || !strcmp(argv[1], all[i].name))
            all[i].run();
    MPI_Finalize();
    return 0;
}
