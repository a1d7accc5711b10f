/* Sub-meshes of a mesh: who is in them, that they compute, beside each other and in any order. */
#include <meshcoll/mpi.h>

#include "runtime/handle/handle.h"
#include "support/case.h"
#include "support/mpi/shuffled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, n_checks;

static void check(int good, const char *what)
{
    int all = 0;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    n_checks++;
    if (all)
        return;
    if (!good)
        fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static meshcoll_t *split(meshcoll_t *mesh, const char *dims)
{
    meshcoll_t *sub = NULL;
    check(meshcoll_split(mesh, dims, &sub) == MESHCOLL_OK, dims);
    return sub;
}

/* A group by its members, as bits of the parent's ranks. */
static long members(meshcoll_t *parent, meshcoll_t *sub)
{
    int64_t mine = INT64_C(1) << meshcoll_rank(parent), all = 0;
    if (meshcoll_allreduce(sub, &mine, &all, 1, MESHCOLL_INT64, MESHCOLL_SUM))
        all = -1;
    return (long)all;
}

static void run_all(meshcoll_t *mesh)
{
    check(mc_case_run_all(mesh, true), "collectives");
}

/* Of a=2,b=2,c=2 in the order of the world: rank 4a + 2b + c. */
static void test_groups(void)
{
    static const struct {
        const char *dims, *text;
        int bits; /* of the rank, that the group differs in */
    } groups[] = {{"c", "c=2", 1},       {"b", "b=2", 2},       {"a", "a=2", 4},
                  {"b,c", "b=2,c=2", 3}, {"c,a", "a=2,c=2", 5}, {"a,b,c", "a=2,b=2,c=2", 7}};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "a=2,b=2,c=2"};
    meshcoll_t *mesh;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the mesh");
    for (size_t i = 0; i < MC_COUNT(groups); i++) {
        long wanted = 0, below = 0;
        meshcoll_t *const sub = split(mesh, groups[i].dims);
        for (int r = 0; r < size; r++)
            if ((r & ~groups[i].bits) == (rank & ~groups[i].bits)) {
                wanted |= 1L << r;
                below += r < rank;
            }
        check(strcmp(meshcoll_mesh_text(sub), groups[i].text) == 0, "its text");
        check(members(mesh, sub) == wanted, "its members");
        check(meshcoll_rank(sub) == below, "its ranks in order");
        run_all(sub);
        if (i % 2)
            meshcoll_destroy(sub); /* the others go with the mesh */
    }
    meshcoll_destroy(mesh);
}

static void test_refused(void)
{
    static const char *const wrong[] = {"", "d", "a,", "a,a", "a b", ",a"};
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "a=2,b=4"};
    meshcoll_t *mesh, *sub = NULL;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the mesh");
    for (size_t i = 0; i < MC_COUNT(wrong); i++) {
        check(meshcoll_split(mesh, wrong[i], &sub) == MESHCOLL_ERR_INVALID_ARG && !sub, wrong[i]);
        check(strstr(meshcoll_last_error(), "dimensions of a=2,b=4") != NULL, "says which");
    }
    check(meshcoll_split(NULL, "a", &sub) == MESHCOLL_ERR_INVALID_ARG, "no mesh");
    check(meshcoll_split(mesh, NULL, &sub) == MESHCOLL_ERR_INVALID_ARG, "no dimensions");
    meshcoll_destroy(mesh);
}

enum { BESIDE = 4, COUNT = 40000 };

/* Requests of several meshes at once, started and awaited in another order on every rank. */
static void test_beside(meshcoll_t *mesh[BESIDE])
{
    static int32_t in[BESIDE][COUNT], out[BESIDE][COUNT];
    meshcoll_request_t *request[BESIDE];
    int good = 1;
    for (int i = 0; i < BESIDE; i++) {
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = MESHCOLL_ALLREDUCE,
                                      .in = in[i],
                                      .out = out[i],
                                      .count = COUNT,
                                      .datatype = MESHCOLL_INT32};
        good = good && meshcoll_init(mesh[i], &args, &request[i]) == MESHCOLL_OK;
    }
    check(good, "requests");
    for (int again = 0; again < 5; again++) {
        for (int i = 0; i < BESIDE; i++)
            for (int k = 0; k < COUNT; k++)
                in[i][k] = i + again + k % 7;
        for (int i = 0; i < BESIDE; i++)
            good = good && meshcoll_start(request[(i + rank) % BESIDE]) == MESHCOLL_OK;
        for (int i = 0; i < BESIDE; i++)
            good = good && meshcoll_wait(request[(i + 3 * rank + 1) % BESIDE]) == MESHCOLL_OK;
        for (int i = 0; i < BESIDE; i++)
            for (int k = 0; k < COUNT; k++)
                good = good && out[i][k] == in[i][k] * meshcoll_size(mesh[i]);
        check(good, "sums beside each other");
    }
    for (int i = 0; i < BESIDE; i++)
        meshcoll_free(request[i]);
}

static void test_parent_and_parts(void)
{
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "dp=2,pp=2,tp=2"};
    meshcoll_t *mesh;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the mesh");
    meshcoll_t *const tp = split(mesh, "tp"), *const both = split(mesh, "dp,tp"),
                      *const dp = split(both, "dp");
    test_beside((meshcoll_t *[]){mesh, tp, both, dp});
    check(members(mesh, dp) == (1L << (rank % 4) | 1L << (rank % 4 + 4)), "a part of a part");
    meshcoll_destroy(dp);
    meshcoll_destroy(both);
    run_all(tp);
    meshcoll_destroy(tp);
    test_beside((meshcoll_t *[]){mesh, mesh, mesh, mesh});
    meshcoll_destroy(mesh);
}

/* Four boxes of two, found in an order that goes across them. */
static void test_shuffled(void)
{
    const mc_shuffle_t shuffle = {.boxes = 4, .nodes = 1, .step = 5};
    MPI_Comm comm = mc_shuffled_world(&shuffle);
    meshcoll_t *mesh;
    check(mc_shuffled_create(comm, &shuffle, NULL, &mesh) == MESHCOLL_OK, "the mesh");
    check(mesh->order.comm_rank != NULL, "shuffled");
    meshcoll_t *const box = split(mesh, "box"), *const gpu = split(mesh, "gpu");
    int64_t mine = INT64_C(1) << rank, all = 0;
    check(meshcoll_allreduce(gpu, &mine, &all, 1, MESHCOLL_INT64, MESHCOLL_SUM) == MESHCOLL_OK &&
              all == INT64_C(3) << rank / 2 * 2,
          "a box");
    run_all(box);
    run_all(gpu);
    meshcoll_destroy(mesh);
    MPI_Comm_free(&comm);
}

/* Boxes of unequal sizes split into boxes, or not at all. */
static void test_unequal_boxes(void)
{
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "box=1+4+3"};
    static const char *const wrong[] = {"box", "gpu", "fold", "box,gpu"};
    const int64_t bits[] = {1, 30, 30, 30, 30, 224, 224, 224};
    meshcoll_t *mesh, *none = NULL;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the mesh");
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        check(meshcoll_split(mesh, wrong[i], &none) == MESHCOLL_ERR_UNSUPPORTED && !none, wrong[i]);
    meshcoll_t *const box = split(mesh, "gpu,fold"), *const all = split(mesh, "box,gpu,fold");
    check(members(mesh, box) == bits[rank], "a box of its own size");
    check(members(mesh, all) == 255 && strcmp(meshcoll_mesh_text(all), "box=1+4+3") == 0, "all");
    run_all(box);
    run_all(all);
    meshcoll_destroy(mesh);
}

static int is_close(double a, double b)
{
    return a > b * 0.999999 && a < b * 1.000001;
}

/* Links are the mesh's; four sub-meshes share two ports, or one has them all. */
static void test_settings(void)
{
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "box=2,gpu=4",
                                      .links = "box=alpha:7us;beta:1GB/s;ports:2,"
                                               "gpu=alpha:1us;beta:10GB/s;ports:2"};
    meshcoll_t *mesh;
    int32_t v = 1;
    meshcoll_request_t *request;
    setenv("MESHCOLL_STRATEGY_ALLREDUCE", "reduce:mst(gpu) bcast:mst(gpu)", 1);
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) < 0, "it is none of the whole");
    setenv("MESHCOLL_STRATEGY_ALLREDUCE", "flat-mst", 1);
    setenv("MESHCOLL_STRATEGY_BCAST", "bcast:mst(box) bcast:star(gpu)", 1);
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "the mesh");
    unsetenv("MESHCOLL_STRATEGY_ALLREDUCE");
    unsetenv("MESHCOLL_STRATEGY_BCAST");
    meshcoll_t *const box = split(mesh, "box"), *const gpu = split(mesh, "gpu");
    check(is_close(box->links.dim[0].alpha, 7e-6) && is_close(box->links.dim[0].beta, 2e-9) &&
              box->links.dim[0].ports == 1,
          "four lines on two ports");
    check(is_close(gpu->links.dim[0].beta, 1e-10) && gpu->links.dim[0].ports == 2,
          "a line of its own");
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = &v,
                                  .out = &v,
                                  .count = 1,
                                  .datatype = MESHCOLL_INT32};
    check(meshcoll_init(gpu, &args, &request) == MESHCOLL_OK, "a request");
    check(strstr(meshcoll_request_strategy(request), "mst(gpu)") != NULL, "a strategy that fits");
    meshcoll_free(request);
    check(gpu->choice.is_forced[MESHCOLL_ALLREDUCE] && !gpu->choice.is_forced[MESHCOLL_BCAST],
          "one that does not fit is left to the planner");
    check(meshcoll_set_strategy(gpu, MESHCOLL_BCAST, "bcast:star(gpu)") == MESHCOLL_OK, "its own");
    run_all(gpu);
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 8) {
        if (rank == 0)
            printf("skipped: test_split runs on 8 ranks, not %d\n", size);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 77;
    }
    test_groups();
    test_refused();
    test_parent_and_parts();
    test_shuffled();
    test_unequal_boxes();
    test_settings();
    if (rank == 0)
        printf("test_split: %d checks right\n", n_checks);
    MPI_Finalize();
    return 0;
}
