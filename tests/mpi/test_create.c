/* Creation: meshes found, given and refused; settings that only rank 0 has; handles side by side. */
#include <meshcoll/mpi.h>

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

static int sums(meshcoll_t *mesh, int ranks)
{
    int32_t in = 1, out = 0;
    return meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK &&
           out == ranks && meshcoll_barrier(mesh) == MESHCOLL_OK;
}

static void test_found(void)
{
    char wanted[64];
    meshcoll_t *mesh = NULL;
    snprintf(wanted, sizeof wanted, "rank=%d", size);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "a mesh is found");
    check(strcmp(meshcoll_mesh_text(mesh), wanted) == 0, "one machine is one box");
    check(meshcoll_rank(mesh) == rank && meshcoll_size(mesh) == size, "rank and size are MPI's");
    check(sums(mesh, size), "it adds up");
    meshcoll_destroy(mesh);
    meshcoll_destroy(NULL);
}

/* "" is a mesh of its own, where the environment names that of all. */
static void test_found_anyway(void)
{
    char wanted[64];
    meshcoll_t *mesh = NULL;
    const meshcoll_params_t params = {.size = sizeof params, .mesh = ""};
    snprintf(wanted, sizeof wanted, "rank=%d", size);
    setenv("MESHCOLL_MESH", "x=2,y=2", 1);
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "a mesh to be found");
    unsetenv("MESHCOLL_MESH");
    check(strcmp(meshcoll_mesh_text(mesh), wanted) == 0, "it is found, not taken from elsewhere");
    meshcoll_destroy(mesh);
}

/* A driver of one rank stands for GPUs. */
static void test_found_with_gpus(void)
{
    char wanted[64];
    meshcoll_t *mesh = NULL;
    snprintf(wanted, sizeof wanted, "gpu=%d", size);
    if (rank == size - 1)
        setenv("MESHCOLL_LIBCUDA", "/no/driver.so", 1);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "a mesh of GPUs is found");
    setenv("MESHCOLL_LIBCUDA", "off", 1);
    check(strcmp(meshcoll_mesh_text(mesh), wanted) == 0, "it is named by them");
    meshcoll_destroy(mesh);
}

static int refuses(const char *text, int status, const char *says)
{
    meshcoll_t *mesh = NULL;
    const meshcoll_params_t params = {.size = sizeof params, .mesh = text};
    const int got = meshcoll_create(MPI_COMM_WORLD, &params, &mesh);
    return got == status && !mesh && strstr(meshcoll_last_error(), says);
}

static void test_refused(void)
{
    char fits[64];
    meshcoll_t *mesh = NULL;
    snprintf(fits, sizeof fits, "gpu=%d", size);
    check(refuses("gpu=77", MESHCOLL_ERR_MESH, fits), "a mesh of another size, with one that fits");
    check(refuses("box=2,gpu=77", MESHCOLL_ERR_MESH, "box=2,gpu=2"), "the same in 2D");
    check(refuses("box:2", MESHCOLL_ERR_PARSE, "box=4,gpu=8"), "a text that does not parse");
    const meshcoll_params_t empty = {0};
    check(meshcoll_create(MPI_COMM_WORLD, &empty, &mesh) == MESHCOLL_ERR_INVALID_ARG,
          "parameters without size");
    const meshcoll_params_t odd = {
        .size = sizeof odd, .mesh = "box=2,gpu=2", .transports = "rack=tcp,self"};
    check(meshcoll_create(MPI_COMM_WORLD, &odd, &mesh) == MESHCOLL_ERR_PARSE,
          "transports of no dimension");
    const meshcoll_params_t none = {
        .size = sizeof none, .mesh = "box=2,gpu=2", .transports = "gpu=nosuchthing"};
    check(meshcoll_create(MPI_COMM_WORLD, &none, &mesh) == MESHCOLL_ERR_TRANSPORT,
          "transports that do not exist");
    const meshcoll_params_t links = {.size = sizeof links, .links = "nosuchpreset"};
    check(meshcoll_create(MPI_COMM_WORLD, &links, &mesh) < 0, "links that do not exist");
    check(!mesh, "no handle comes with an error");
}

/* Of the last rank alone; creation fails on all of them. */
static void test_missing_device(void)
{
    char before[256] = "";
    const char *const set = getenv("UCX_NET_DEVICES");
    const int last = rank == size - 1;
    meshcoll_t *mesh = NULL;
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "box=2,gpu=2", .transports = "box=tcp,self;gpu=shm"};
    snprintf(before, sizeof before, "%s", set ? set : "");
    if (last)
        setenv("UCX_NET_DEVICES", "nosuch0", 1);
    const int status = meshcoll_create(MPI_COMM_WORLD, &params, &mesh);
    check(status == MESHCOLL_ERR_TRANSPORT && !mesh, "a device that one rank lacks");
    check(!last || strstr(meshcoll_last_error(), "no network device 'nosuch0', which "
                                                 "UCX_NET_DEVICES names, on this machine"),
          "its name, on that rank");
    if (last && set)
        setenv("UCX_NET_DEVICES", before, 1);
    else if (last)
        unsetenv("UCX_NET_DEVICES");
}

/* What only rank 0 knows holds for all. */
static void test_settings_are_rank_0s(void)
{
    meshcoll_t *mesh = NULL;
    int32_t v = 1;
    meshcoll_request_t *request;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = &v,
                                  .out = &v,
                                  .count = 1,
                                  .datatype = MESHCOLL_INT32};
    setenv("MESHCOLL_MESH", rank == 0 ? "x=2,y=2" : "nonsense", 1);
    if (rank == 0)
        setenv("MESHCOLL_STRATEGY_ALLREDUCE", "flat-mst", 1);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "rank 0's environment");
    unsetenv("MESHCOLL_MESH");
    unsetenv("MESHCOLL_STRATEGY_ALLREDUCE");
    check(strcmp(meshcoll_mesh_text(mesh), "x=2,y=2") == 0, "rank 0's mesh");
    check(meshcoll_init(mesh, &args, &request) == MESHCOLL_OK, "a request");
    check(strstr(meshcoll_request_strategy(request), "mst(x*y)") != NULL, "rank 0's strategy");
    check(sums(mesh, size), "it adds up");
    meshcoll_free(request);
    meshcoll_destroy(mesh);
}

static void test_side_by_side(void)
{
    meshcoll_t *all = NULL, *half = NULL, *again = NULL;
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "box=2,gpu=2"};
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    check(meshcoll_create(MPI_COMM_WORLD, &params, &all) == MESHCOLL_OK, "one of all");
    check(meshcoll_create(comm, NULL, &half) == MESHCOLL_OK, "one of half");
    check(meshcoll_create(MPI_COMM_WORLD, &params, &again) == MESHCOLL_OK, "one more of all");
    for (int i = 0; i < 3; i++) {
        check(sums(half, size / 2), "the half adds up");
        check(sums(all, size), "all add up");
        check(sums(again, size), "all add up again");
    }
    meshcoll_destroy(half);
    check(sums(all, size), "all still add up");
    meshcoll_destroy(again);
    meshcoll_destroy(all);
    MPI_Comm_free(&comm);
}

/* Even ranks beside odd ones: there is no rank of all. */
static void test_inter_communicator(void)
{
    meshcoll_t *mesh = NULL;
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    check(meshcoll_create(both, NULL, &mesh) == MESHCOLL_ERR_INVALID_ARG && !mesh &&
              strstr(meshcoll_last_error(), "inter-communicator"),
          "an inter-communicator");
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static int gather(void *context, const void *in, void *out, size_t bytes)
{
    const MPI_Comm *const comm = context;
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, *comm);
}

static int gather_fails(void *context, const void *in, void *out, size_t bytes)
{
    (void)context, (void)in, (void)out, (void)bytes;
    return 1;
}

static void test_out_of_band(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    meshcoll_t *mesh = NULL;
    meshcoll_oob_t oob = {.rank = rank, .size = size, .context = &comm, .allgather = gather};
    check(meshcoll_create_oob(&oob, NULL, &mesh) == MESHCOLL_OK, "without MPI's help");
    check(strncmp(meshcoll_mesh_text(mesh), "rank=", 5) == 0, "one machine is one box here too");
    check(sums(mesh, size), "it adds up");
    meshcoll_destroy(mesh);
    mesh = NULL;
    oob.allgather = gather_fails;
    check(meshcoll_create_oob(&oob, NULL, &mesh) == MESHCOLL_ERR_TRANSPORT && !mesh,
          "an allgather that fails");
    oob.rank = size;
    check(meshcoll_create_oob(&oob, NULL, &mesh) == MESHCOLL_ERR_INVALID_ARG, "a rank too many");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) {
        if (rank == 0)
            printf("test_create: runs on 4 ranks, not %d\n", size);
        MPI_Finalize();
        return 77;
    }
    setenv("MESHCOLL_LIBCUDA", "off", 1); /* the same on a machine with GPUs */
    test_found();
    test_found_anyway();
    test_found_with_gpus();
    test_refused();
    test_missing_device();
    test_settings_are_rank_0s();
    test_side_by_side();
    test_inter_communicator();
    test_out_of_band();
    if (rank == 0)
        printf("test_create: %d checks right\n", n_checks);
    MPI_Finalize();
    return 0;
}
