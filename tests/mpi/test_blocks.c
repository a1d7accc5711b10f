/*
 * The blocking v-variants over the real transports: tables that change from call to call at the same
 * addresses, empty blocks, and all of it beside the plain collectives, whose requests they share.
 *
 * usage: test_blocks MESH
 */
#include <meshcoll/mpi.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16, BLOCK = 700, ROOM = MOST * BLOCK };

static int rank, size;
static meshcoll_t *mesh;
static int32_t in[ROOM], out[ROOM];
static size_t counts[MOST], displs[MOST], in_counts[MOST], in_displs[MOST];

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static int32_t value(int r, size_t i)
{
    return (int32_t)i * 3 + r * 100000;
}

static size_t elements(int from, int to, int turn)
{
    static const size_t some[] = {0, 1, 3, 200, BLOCK};
    return some[(size_t)(from * 3 + to * 2 + turn) % 5];
}

/* The last rank's block first. */
static void lay_out(const size_t *c, size_t *d)
{
    size_t end = 0;
    for (int r = size - 1; r >= 0; r--) {
        d[r] = end;
        end += c[r];
    }
}

static void prepare(int turn)
{
    for (int r = 0; r < size; r++)
        counts[r] = elements(r, 0, turn);
    lay_out(counts, displs);
    for (size_t i = 0; i < ROOM; i++) {
        in[i] = value(rank, i);
        out[i] = -1;
    }
}

static void expect(size_t at, int32_t right, const char *what)
{
    if (out[at] != right) {
        fprintf(stderr, "rank %d: %s: out[%zu] is %d, expected %d\n", rank, what, at, (int)out[at],
                (int)right);
        stop("wrong");
    }
}

static void check_gathered(const char *what)
{
    for (int s = 0; s < size; s++)
        for (size_t k = 0; k < counts[s]; k++)
            expect(displs[s] + k, value(s, k), what);
}

static void run_rooted(int turn)
{
    const int root = turn % size;
    prepare(turn);
    if (meshcoll_scatterv(mesh, rank == root ? in : NULL, counts, displs, out, counts[rank],
                          MESHCOLL_INT32, root))
        stop("scatterv");
    for (size_t k = 0; k < counts[rank]; k++)
        expect(k, value(root, displs[rank] + k), "scatterv");
    prepare(turn);
    if (meshcoll_gatherv(mesh, in, counts[rank], rank == root ? out : NULL, counts, displs,
                         MESHCOLL_INT32, root))
        stop("gatherv");
    if (rank == root)
        check_gathered("gatherv");
}

static void end(int status, meshcoll_request_t *request)
{
    if (status || meshcoll_wait(request))
        stop("counts at the root");
}

/* Only the root has counts and displs; in three ways, with what must not be read where it is wrong. */
static void run_at_root(int turn)
{
    const int root = turn % size;
    const bool is_root = rank == root;
    const size_t *const c = is_root ? counts : NULL, *const d = is_root ? displs : NULL;
    meshcoll_request_t *request = NULL;
    prepare(turn);
    const size_t mine = counts[rank];
    const void *const from = is_root ? in : NULL;
    int status = MESHCOLL_OK;
    if (turn % 3 == 0)
        status = meshcoll_scatterv_at_root(mesh, from, c, d, out, mine, MESHCOLL_INT32, root);
    else if (turn % 3 == 1)
        status =
            meshcoll_iscatterv_at_root(mesh, from, c, d, out, mine, MESHCOLL_INT32, root, &request);
    else if (!(status = meshcoll_scatterv_at_root_init(mesh, from, c, d, out, mine, MESHCOLL_INT32,
                                                       root, &request)))
        status = meshcoll_start(request);
    end(status, request);
    if (turn % 3 == 2)
        meshcoll_free(request);
    for (size_t k = 0; k < mine; k++)
        expect(k, value(root, displs[rank] + k), "scatterv_at_root");
    prepare(turn);
    request = NULL;
    void *const to = is_root ? out : NULL;
    if (turn % 3 == 0)
        status = meshcoll_gatherv_at_root(mesh, in, mine, to, c, d, MESHCOLL_INT32, root);
    else if (turn % 3 == 1)
        status =
            meshcoll_igatherv_at_root(mesh, in, mine, to, c, d, MESHCOLL_INT32, root, &request);
    else if (!(status = meshcoll_gatherv_at_root_init(mesh, in, mine, to, c, d, MESHCOLL_INT32,
                                                      root, &request)))
        status = meshcoll_start(request);
    end(status, request);
    if (turn % 3 == 2)
        meshcoll_free(request);
    if (is_root)
        check_gathered("gatherv_at_root");
}

/* In a group, with a strategy of the call's own, and what is refused on all ranks. */
static void check_at_root_args(void)
{
    prepare(1);
    meshcoll_args_t a = {.size = sizeof a,
                         .collective = MESHCOLL_GATHER,
                         .in = in,
                         .out = rank == 0 ? out : NULL,
                         .count = counts[rank],
                         .datatype = MESHCOLL_INT32,
                         .strategy = "flat-star segments=3",
                         .counts = rank == 0 ? counts : NULL,
                         .displs = rank == 0 ? displs : NULL,
                         .counts_at_root = 1};
    meshcoll_request_t *request = NULL;
    if (meshcoll_group_begin(mesh) || meshcoll_begin(mesh, &a, &request) ||
        meshcoll_group_end(mesh))
        stop("gatherv_at_root in a group");
    if (rank == 0)
        check_gathered("gatherv_at_root in a group");
    a.strategy = "flat-mst";
    if (size > 1 && meshcoll_begin(mesh, &a, &request) != MESHCOLL_ERR_STRATEGY)
        stop("a tree is taken with counts at the root only");
    a.collective = MESHCOLL_ALLGATHER;
    a.strategy = NULL;
    if (meshcoll_begin(mesh, &a, &request) != MESHCOLL_ERR_INVALID_ARG)
        stop("counts of an allgather at the root only are taken");
}

static void run_all(int turn)
{
    prepare(turn);
    if (meshcoll_allgatherv(mesh, in, counts[rank], out, counts, displs, MESHCOLL_INT32))
        stop("allgatherv");
    check_gathered("allgatherv");
    prepare(turn);
    if (meshcoll_reduce_scatterv(mesh, in, out, counts, MESHCOLL_INT32, MESHCOLL_MAX))
        stop("reduce_scatterv");
    size_t before = 0;
    for (int r = 0; r < rank; r++)
        before += counts[r];
    for (size_t k = 0; k < counts[rank]; k++)
        expect(k, value(size - 1, before + k), "reduce_scatterv");
}

static void run_exchange(int turn)
{
    prepare(turn);
    for (int r = 0; r < size; r++) {
        counts[r] = elements(r, rank, turn);
        in_counts[r] = elements(rank, r, turn);
    }
    lay_out(counts, displs);
    lay_out(in_counts, in_displs);
    if (meshcoll_alltoallv(mesh, in, in_counts, in_displs, out, counts, displs, MESHCOLL_INT32))
        stop("alltoallv");
    for (int s = 0; s < size; s++) {
        size_t there = 0; /* where the block for this rank starts at rank s */
        for (int r = size - 1; r > rank; r--)
            there += elements(s, r, turn);
        for (size_t k = 0; k < counts[s]; k++)
            expect(displs[s] + k, value(s, there + k), "alltoallv");
    }
}

/* Of the same strategies, and so from the same requests, where the planner chooses them. */
static void run_plain(void)
{
    enum { EACH = 5 };
    prepare(0);
    if (meshcoll_allgather(mesh, in, out, EACH, MESHCOLL_INT32))
        stop("allgather");
    for (int i = 0; i < size * EACH; i++)
        expect((size_t)i, value(i / EACH, (size_t)(i % EACH)), "allgather");
    if (meshcoll_alltoall(mesh, in, out, EACH, MESHCOLL_INT32))
        stop("alltoall");
    for (int i = 0; i < size * EACH; i++)
        expect((size_t)i, value(i / EACH, (size_t)(rank * EACH + i % EACH)), "alltoall");
}

int main(int argc, char **argv)
{
    enum { TURNS = 10 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = argc > 1 ? argv[1] : NULL};
    if (size > MOST || meshcoll_create(MPI_COMM_WORLD, &params, &mesh))
        stop("meshcoll_create");
    for (int turn = 0; turn < TURNS; turn++) {
        run_rooted(turn);
        run_at_root(turn);
        run_all(turn);
        run_exchange(turn);
        run_plain();
    }
    check_at_root_args();
    if (rank == 0)
        printf("test_blocks: %s: %d turns right\n", meshcoll_mesh_text(mesh), TURNS);
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
