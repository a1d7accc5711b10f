/* Numbers of persistent requests, and contexts of groups, are given out again. */
#include <meshcoll/mpi.h>

#include "runtime/call/leads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 3, LATE = 700, MADE = 13 * MC_PERSISTENT_NUMBERS / 8, SELDOM = 1009 };

static int rank, size;
static meshcoll_t *mesh;

static void check(bool good, const char *what, int i)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, request %d: %s; last error: %s\n", rank, i, what,
            meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static meshcoll_request_t *make(int32_t *vector)
{
    meshcoll_request_t *own = NULL;
    check(meshcoll_bcast_init(mesh, vector, vector, 1, MESHCOLL_INT32, 0, &own) == MESHCOLL_OK,
          "init", 0);
    return own;
}

static void run(meshcoll_request_t *own, int32_t *vector, int value)
{
    *vector = rank == 0 ? value : -1;
    check(meshcoll_start(own) == MESHCOLL_OK, "start", value);
    check(meshcoll_wait(own) == MESHCOLL_OK, "wait", value);
    check(*vector == value, "another request's value", value);
}

/* The last ones of odd ranks are freed late. No number comes that any rank uses, and it is the same on all. */
static void test_come_again(void)
{
    static bool is_used[2 * MC_CALL_NUMBERS];
    static meshcoll_request_t *late[LATE];
    int32_t vector[KEPT + 1];
    meshcoll_request_t *kept[KEPT];
    uint64_t hash = 0;
    for (int k = 0; k < KEPT; k++)
        is_used[(kept[k] = make(&vector[k]))->number] = true;
    for (int i = 0; i < MADE; i++) {
        meshcoll_request_t *const own = make(&vector[KEPT]), **const last = &late[i % LATE];
        hash = (hash ^ own->number) * UINT64_C(0x9e3779b97f4a7c15);
        check(!is_used[own->number], "its number is in use here", i);
        if (i % SELDOM == 0) {
            const uint64_t mine[] = {hash, ~hash};
            uint64_t most[2];
            MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
            check(most[0] == hash && most[1] == ~hash, "other ranks have other numbers", i);
            run(own, &vector[KEPT], i);
            for (int k = 0; k < KEPT; k++)
                run(kept[k], &vector[k], i + k);
        }
        if (*last)
            is_used[(*last)->number] = false;
        meshcoll_free(*last);
        *last = rank % 2 ? own : NULL;
        is_used[own->number] = rank % 2;
        if (rank % 2 == 0)
            meshcoll_free(own);
    }
    for (int i = 0; i < LATE; i++)
        meshcoll_free(late[i]);
    for (int k = 0; k < KEPT; k++)
        meshcoll_free(kept[k]);
}

/* One more than there are numbers is refused, on all ranks alike; and made when one is free on all ranks. */
static void test_all_in_use(void)
{
    static meshcoll_request_t *own[MC_PERSISTENT_NUMBERS];
    static int32_t vector[MC_PERSISTENT_NUMBERS];
    meshcoll_request_t *more = NULL;
    for (int i = 0; i < MC_PERSISTENT_NUMBERS; i++)
        own[i] = make(&vector[i]);
    check(meshcoll_bcast_init(mesh, vector, vector, 1, MESHCOLL_INT32, 0, &more) ==
              MESHCOLL_ERR_UNSUPPORTED,
          "all numbers are in use", 0);
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "the mesh goes on", 0);
    meshcoll_free(own[7]);
    own[7] = make(&vector[7]);
    run(own[7], &vector[7], 70);
    run(own[8], &vector[8], 80);
    for (int i = 0; i < MC_PERSISTENT_NUMBERS; i++)
        meshcoll_free(own[i]);
}

static void destroy(void *context, meshcoll_request_t *request, int status)
{
    (void)request;
    check(status == MESHCOLL_OK, "a call of a group", 0);
    meshcoll_destroy(context);
}

/* More groups than there are free contexts, each destroyed in a callback while a wait uses it. The last mesh stays. */
static void test_contexts(void)
{
    enum { GROUPS = 200, FREE = 100 };
    const int both[] = {0, 1};
    meshcoll_request_t *request;
    for (int i = 0; i < GROUPS; i++) {
        meshcoll_t *group = NULL;
        check(meshcoll_create_group(mesh, both, 2, 0, &group) == MESHCOLL_OK, "a group", i);
        for (int k = FREE; k < MC_CONTEXTS && i == 0; k++)
            mc_context_take(mesh->job->family, (uint32_t)k);
        check(meshcoll_ibarrier(group, &request) == MESHCOLL_OK, "ibarrier", i);
        check(meshcoll_set_callback(request, destroy, group) == MESHCOLL_OK, "a callback", i);
        check(meshcoll_wait(request) == MESHCOLL_OK, "a wait", i);
    }
    check(meshcoll_barrier(mesh) == MESHCOLL_OK && mesh->entry.next == NULL,
          "the others are freed but for the last", GROUPS);
    check(meshcoll_ibarrier(mesh, &request) == MESHCOLL_OK, "ibarrier", GROUPS);
    check(meshcoll_set_callback(request, destroy, mesh) == MESHCOLL_OK, "a callback", GROUPS);
    check(meshcoll_wait(request) == MESHCOLL_OK, "a wait", GROUPS);
    check(strstr(meshcoll_last_error(), "the end of the last mesh waits for all ranks"), "told",
          GROUPS);
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "the last mesh stays", GROUPS);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create", 0);
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        test_all_in_use();
    else if (argc > 1)
        test_contexts();
    else
        test_come_again();
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
