/*
 * Groups: who is in them, that they compute beside each other and their mesh, that nobody else takes part,
 * and that nothing stays when they are destroyed. On 6 ranks, in 2 boxes that are faked.
 *
 * usage: test_groups [many | time GROUPS]   many groups, one after another; how long a few take
 */
#include <meshcoll/mpi.h>

#include "base/base.h"
#include "support/case.h"
#include "support/mpi/shuffled.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, n_checks;

/* By any rank alone: groups are made by some. */
static void check(int good, const char *what)
{
    n_checks++;
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_told(int status, int wanted, const char *part)
{
    check(status == wanted, part);
    check(strstr(meshcoll_last_error(), part) != NULL, part);
}

static meshcoll_t *group_of(meshcoll_t *parent, const int *ranks, int n, int tag)
{
    meshcoll_t *group = NULL;
    check(meshcoll_create_group(parent, ranks, n, tag, &group) == MESHCOLL_OK, "a group");
    check(meshcoll_size(group) == n && ranks[meshcoll_rank(group)] == meshcoll_rank(parent),
          "its ranks are in the order of the list");
    return group;
}

static int has(const int *ranks, int n, int one)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found = found || ranks[i] == one;
    return found;
}

static void run_all(meshcoll_t *mesh)
{
    check(mc_case_run_all(mesh, false), "collectives");
}

/* Meshes of groups ----------------------------------------------------------------------------- */

static void test_meshes(meshcoll_t *mesh)
{
    static const struct {
        int n, ranks[6];
        const char *text;
    } row[] = {
        {6, {0, 1, 2, 3, 4, 5}, "box=2,gpu=3"},
        {6, {5, 3, 1, 0, 2, 4}, "box=2,gpu=3"},
        {4, {4, 0, 3, 1}, "box=2,gpu=2"},
        {2, {5, 2}, "box=2"},
        {2, {4, 3}, "gpu=2"},
        {1, {3}, "gpu=1"},
        {5, {4, 0, 3, 1, 2}, "box=2+3"},
        {3, {0, 4, 5}, "box=1+2"},
        {2, {0, 4}, "box=2"},
    };
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        if (!has(row[i].ranks, row[i].n, rank))
            continue;
        meshcoll_t *const group = group_of(mesh, row[i].ranks, row[i].n, 3);
        check(strcmp(meshcoll_mesh_text(group), row[i].text) == 0, row[i].text);
        run_all(group);
        meshcoll_destroy(group);
    }
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "the mesh after its groups");
}

/* Beside each other ---------------------------------------------------------------------------- */

enum { COUNT = 20000, LINKS = 3, ROUNDS = 5 };

/* Ranks 0, 1 and 2 in a circle of pairs; each starts its calls in another order. */
static void test_circle(meshcoll_t *mesh)
{
    static const int pair[LINKS][2] = {{0, 1}, {1, 2}, {0, 2}};
    static int32_t in[LINKS][COUNT], out[LINKS][COUNT];
    meshcoll_t *group[LINKS] = {NULL};
    meshcoll_request_t *request[LINKS] = {NULL};
    for (int g = 0; g < LINKS; g++)
        if (has(pair[g], 2, rank))
            group[g] = group_of(mesh, pair[g], 2, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LINKS; i++) {
            const int g = (i + rank) % LINKS;
            for (int k = 0; k < COUNT; k++)
                in[g][k] = 100 * g + rank + round + k % 5;
            if (group[g])
                check(meshcoll_iallreduce(group[g], in[g], out[g], COUNT, MESHCOLL_INT32,
                                          MESHCOLL_SUM, &request[g]) == MESHCOLL_OK,
                      "a call in a circle");
        }
        check(meshcoll_waitall(LINKS, request) == MESHCOLL_OK, "the calls of a circle");
        for (int g = 0; g < LINKS; g++)
            for (int k = 0; group[g] && k < COUNT; k++)
                check(out[g][k] == 2 * (100 * g + round + k % 5) + pair[g][0] + pair[g][1],
                      "a sum in a circle");
    }
    for (int g = 0; g < LINKS; g++)
        meshcoll_destroy(group[g]);
}

/* The others are in a call of MPI until the members are done, and make none of this library. */
static void test_others_sleep(meshcoll_t *mesh)
{
    static const int members[] = {4, 1, 0};
    if (has(members, 3, rank)) {
        meshcoll_t *const group = group_of(mesh, members, 3, 0);
        run_all(group);
        meshcoll_destroy(group);
    }
    int done = 1;
    if (rank == 0)
        for (int r = 1; r < size; r++)
            MPI_Send(&done, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&done, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All ranks are in groups that are made at the same time, and in groups of these. */
static void test_groups_of_groups(meshcoll_t *mesh)
{
    static const int even[] = {4, 2, 0}, odd[] = {1, 3, 5}, last[] = {2, 1};
    meshcoll_t *const half = group_of(mesh, rank % 2 ? odd : even, 3, 0);
    meshcoll_t *pair = NULL, *box = NULL;
    if (has(last, 2, meshcoll_rank(half)))
        pair = group_of(half, last, 2, 7);
    if (pair)
        run_all(pair);
    check(meshcoll_split(mesh, "gpu", &box) == MESHCOLL_OK, "a split beside groups");
    run_all(box);
    run_all(half);
    meshcoll_destroy(half); /* and with it the pair */
    run_all(box);
    meshcoll_destroy(box);
}

/* Tagged messages ------------------------------------------------------------------------------ */

enum { MESSAGES = 200, LARGE = 50000 };

static void send_on_all(meshcoll_t *const on[3], int round)
{
    static int32_t large[LARGE];
    meshcoll_request_t *request[6] = {NULL};
    int32_t x[3];
    for (int m = 0; m < 3; m++) {
        const int to = m == 0 ? 5 : m == 1;
        x[m] = 10 * round + m;
        check(meshcoll_send_begin(on[m], &x[m], 1, MESHCOLL_INT32, to, 9, &request[2 * m]) == 0 &&
                  meshcoll_send_begin(on[m], large, LARGE, MESHCOLL_INT32, to, 8,
                                      &request[2 * m + 1]) == 0,
              "sends");
    }
    check(meshcoll_waitall(6, request) == MESHCOLL_OK, "they are received");
}

static void receive_on(meshcoll_t *mesh, int32_t wanted, int source)
{
    static int32_t large[LARGE];
    meshcoll_received_t got;
    meshcoll_request_t *request;
    int32_t x = -1;
    check(meshcoll_recv_begin(mesh, large, LARGE, MESHCOLL_INT32, MESHCOLL_ANY_SOURCE, 8, NULL,
                              &request) == MESHCOLL_OK,
          "a receive");
    check(meshcoll_recv(mesh, &x, 1, MESHCOLL_INT32, MESHCOLL_ANY_SOURCE, 9, &got) == MESHCOLL_OK &&
              x == wanted && got.source == source,
          "a message of its own group");
    check(meshcoll_wait(request) == MESHCOLL_OK, "a large one");
}

/* The same tags on the mesh and two groups with the same ranks, received in another order than they are
 * sent. The first messages may arrive before their receiver knows the group. */
static void test_tagged(meshcoll_t *mesh)
{
    static const int there[] = {0, 5}, back[] = {5, 0};
    meshcoll_t *on[3] = {mesh, NULL, NULL};
    if (!has(there, 2, rank))
        return;
    on[1] = group_of(mesh, there, 2, 1);
    on[2] = group_of(mesh, back, 2, 1);
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0)
            send_on_all(on, i);
        for (int m = 2; rank == 5 && m >= 0; m--)
            receive_on(on[m], 10 * i + m, m == 2);
    }
    meshcoll_destroy(on[1]);
    meshcoll_destroy(on[2]);
}

/* Errors --------------------------------------------------------------------------------------- */

static void test_refused(meshcoll_t *mesh)
{
    meshcoll_t *group = NULL;
    const int own[] = {rank, (rank + 1) % size}, out[] = {rank, size}, twice[] = {rank, rank},
              others[] = {(rank + 1) % size, (rank + 2) % size};
    const int wrong = MESHCOLL_ERR_INVALID_ARG;
    check_told(meshcoll_create_group(mesh, out, 2, 0, &group), wrong, "ranks[1] is 6");
    check_told(meshcoll_create_group(mesh, twice, 2, 0, &group), wrong, "twice");
    check_told(meshcoll_create_group(mesh, others, 2, 0, &group), wrong, "not in its list");
    check_told(meshcoll_create_group(mesh, own, 0, 0, &group), wrong, "1 to 6 ranks");
    check_told(meshcoll_create_group(mesh, own, 2, -1, &group), wrong, "tag from 0");
    check_told(meshcoll_create_group(NULL, own, 2, 0, &group), wrong, "NULL");
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "a group of calls");
    check_told(meshcoll_create_group(mesh, own, 2, 0, &group), wrong, "a group is open");
    check(meshcoll_group_end(mesh) == MESHCOLL_OK, "its end");
    check(!group, "none was made");
}

static void test_lists_that_differ(meshcoll_t *mesh)
{
    static const int all[] = {0, 1, 2, 3, 4, 5}, turned[] = {1, 0, 2, 3, 4, 5}, right[] = {0, 1};
    meshcoll_t *group = NULL;
    check_told(meshcoll_create_group(mesh, rank == 1 ? turned : all, 6, 5, &group),
               MESHCOLL_ERR_MISMATCH, "disagree");
    if (has(right, 2, rank)) {
        group = group_of(mesh, right, 2, 6);
        run_all(group);
        meshcoll_destroy(group);
    }
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "the mesh goes on");
}

static void test_no_context_left(meshcoll_t *mesh)
{
    enum { MOST = 4095, FAR = 1000 };
    static const int pair[] = {0, 3}, other[] = {3, 4};
    static meshcoll_t *group[MOST];
    meshcoll_t *none = NULL;
    for (int g = 0; (rank == 0 || rank == 3) && g < FAR; g++)
        group[g] = group_of(mesh, pair, 2, 0);
    /* what is free on one rank begins far behind what is free on the other */
    if (rank == 3 || rank == 4) {
        meshcoll_t *const far = group_of(mesh, other, 2, 0);
        run_all(far);
        meshcoll_destroy(far);
    }
    if (rank == 0 || rank == 3) {
        for (int g = FAR; g < MOST; g++)
            group[g] = group_of(mesh, pair, 2, 0);
        check_told(meshcoll_create_group(mesh, pair, 2, 0, &none), MESHCOLL_ERR_UNSUPPORTED,
                   "no context is left");
    }
    if (rank == 3 || rank == 4)
        check_told(meshcoll_create_group(mesh, other, 2, 0, &none), MESHCOLL_ERR_UNSUPPORTED,
                   "no context is left");
    for (int g = 0; (rank == 0 || rank == 3) && g < MOST; g++)
        meshcoll_destroy(group[g]);
    if (rank == 3 || rank == 4)
        meshcoll_destroy(group_of(mesh, other, 2, 0));
}

/* What runs when a group is destroyed goes on; it ends with the mesh. */
static void test_destroyed_early(meshcoll_t *mesh, meshcoll_request_t **left)
{
    static const int pair[] = {2, 5};
    static int32_t x[2];
    meshcoll_request_t *request;
    if (!has(pair, 2, rank))
        return;
    meshcoll_t *const group = group_of(mesh, pair, 2, 0);
    if (rank == 5) {
        check(meshcoll_recv_begin(group, &x[0], 1, MESHCOLL_INT32, 0, 1, NULL, &request) == 0 &&
                  meshcoll_recv_begin(group, &x[1], 1, MESHCOLL_INT32, 0, 2, NULL, left) == 0,
              "receives");
        MPI_Send(x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
        check(meshcoll_wait(request) == MESHCOLL_OK && x[0] == 17, "the one that is matched");
        meshcoll_destroy(group);
        check(strstr(meshcoll_last_error(), "1 requests were still running") != NULL, "is told");
    } else {
        MPI_Recv(x, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        x[0] = 17;
        check(meshcoll_send(group, x, 1, MESHCOLL_INT32, 1, 1) == MESHCOLL_OK, "a send");
        meshcoll_destroy(group);
    }
    meshcoll_t *const next = group_of(mesh, pair, 2, 0);
    run_all(next);
    meshcoll_destroy(next);
}

/* Counts of an alltoallv that differ break the group on rank 0, and all that shares its connections. */
static void test_failure(void)
{
    static const int members[] = {0, 1}, others[] = {2, 0};
    static const size_t ones[] = {1, 1}, wrong[] = {1, 2};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "gpu=6"};
    meshcoll_t *mesh, *beside = NULL;
    int32_t in[2] = {0}, out[3];
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "a mesh");
    if (has(others, 2, rank))
        beside = group_of(mesh, others, 2, 0);
    if (has(members, 2, rank)) {
        meshcoll_t *const group = group_of(mesh, members, 2, 0);
        const int status = meshcoll_alltoallv(group, in, ones, NULL, out, rank == 0 ? wrong : ones,
                                              NULL, MESHCOLL_INT32);
        check(rank == 1 || status == MESHCOLL_ERR_MISMATCH, "the group fails");
    }
    if (rank == 0) {
        check_told(meshcoll_barrier(mesh), MESHCOLL_ERR_MISMATCH, "failed before");
        check_told(meshcoll_barrier(beside), MESHCOLL_ERR_MISMATCH, "failed before");
    }
    meshcoll_destroy(mesh);
}

/* Many ---------------------------------------------------------------------------------------- */

static int count_descriptors(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    int n = 0;
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *const file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

/* Makes, uses and destroys groups of changing members. */
static void make_many(meshcoll_t *mesh, int n)
{
    for (int i = 0; i < n; i++) {
        int members[3] = {0, 0, 0}, m = 0, x = rank, y = -1;
        for (int r = 0; r < size && m < 3; r++)
            if ((i >> r & 1) == 0)
                members[m++] = r;
        if (m == 0 || !has(members, m, rank))
            continue;
        meshcoll_t *const group = group_of(mesh, members, m, i);
        int sum = 0;
        for (int k = 0; k < m; k++)
            sum += members[k];
        check(meshcoll_allreduce(group, &x, &y, 1, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK &&
                  y == sum,
              "a sum of one of many");
        if (m > 1 && members[0] == rank)
            check(meshcoll_send(group, &x, 1, MESHCOLL_INT32, 1, 0) == MESHCOLL_OK, "a send");
        if (m > 1 && members[1] == rank)
            check(meshcoll_recv(group, &y, 1, MESHCOLL_INT32, 0, 0, NULL) == MESHCOLL_OK &&
                      y == members[0],
                  "a receive");
        meshcoll_destroy(group);
    }
}

static void test_many(void)
{
    enum { WARM = 200, MANY = 1000, GROWS_KIB = 2048 };
    meshcoll_t *mesh;
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "a mesh");
    make_many(mesh, WARM);
    const int descriptors = count_descriptors();
    const long kib = resident_kib();
    make_many(mesh, MANY);
    for (int i = 0; i < 10000 && count_descriptors() != descriptors; i++)
        usleep(1000); /* other threads close theirs when they come to it */
    check(count_descriptors() == descriptors, "descriptors stay");
    check(resident_kib() < kib + GROWS_KIB, "memory grows");
    if (rank == 0)
        printf("descriptors: %d; resident: %ld KiB, then %ld KiB\n", descriptors, kib,
               resident_kib());
    meshcoll_destroy(mesh);
}

/* Each rank makes its groups in the same order as the others: of neighbours, at all distances. */
static void test_time(int n)
{
    meshcoll_t *mesh, *group[255];
    check(n <= 255 && meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "a mesh");
    for (int again = 0; again < 2; again++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int g = 0; g < n; g++) {
            int members[64], m = 0;
            for (int r = 0; r < size && m < 64; r++)
                if ((r >> g % 4 & 1) == (rank >> g % 4 & 1))
                    members[m++] = r;
            group[g] = group_of(mesh, members, m, g);
        }
        double took = MPI_Wtime() - begin, most;
        MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%d groups of %d ranks each on %d ranks (%s), %s: %.3f s\n", n, size / 2, size,
                   meshcoll_mesh_text(mesh), again ? "again" : "first", most);
        for (int g = 0; g < n; g++)
            meshcoll_destroy(group[g]);
    }
    meshcoll_destroy(mesh);
}

/* --------------------------------------------------------------------------------------------- */

static void test_all(void)
{
    const mc_shuffle_t boxes = {.boxes = 2, .nodes = 1, .step = 1};
    meshcoll_request_t *left = NULL;
    meshcoll_t *mesh;
    check(size == 6, "6 ranks");
    check(mc_shuffled_create(MPI_COMM_WORLD, &boxes, NULL, &mesh) == MESHCOLL_OK, "the mesh");
    test_meshes(mesh);
    test_circle(mesh);
    test_others_sleep(mesh);
    test_groups_of_groups(mesh);
    test_tagged(mesh);
    test_refused(mesh);
    test_lists_that_differ(mesh);
    test_no_context_left(mesh);
    test_destroyed_early(mesh, &left);
    meshcoll_destroy(mesh);
    if (left)
        check(meshcoll_wait(left) == MESHCOLL_ERR_INVALID_ARG, "what is left ends with the mesh");
    test_failure();
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && strcmp(argv[1], "time") == 0)
        test_time(atoi(argv[2]));
    else if (argc > 1 && strcmp(argv[1], "many") == 0)
        test_many();
    else
        test_all();
    if (rank == 0)
        printf("%d checks\n", n_checks);
    MPI_Finalize();
    return 0;
}
