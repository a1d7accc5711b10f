/* The pair types as MPI programs declare them, and a user's operation that does not commute, beside
 * MPI's own results; and the alignment of operands. */
#include "runtime/handle/handle.h"
#include "support/mpi/shuffled.h"
#include "support/strategies.h"

#include <meshcoll/mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1013 };

static int rank, size, n_run;
static meshcoll_t *mesh;
static MPI_Comm comm;

static void stop(const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, why, meshcoll_last_error());
    MPI_Abort(comm, 1);
}

static void expect_same(const char *what, const void *got, const void *right, size_t bytes)
{
    if (memcmp(got, right, bytes) != 0)
        stop(what);
    n_run++;
}

/* Pairs: many ties, so that the lowest index matters. */
#define CHECK_PAIR(value_type, datatype, mpi_type)                                    \
    static void check_##datatype(void)                                                \
    {                                                                                 \
        struct {                                                                      \
            value_type value;                                                         \
            int index;                                                                \
        } in[COUNT], out[COUNT], right[COUNT];                                        \
        const MPI_Op mpi_op[] = {MPI_MINLOC, MPI_MAXLOC};                             \
        const meshcoll_op_t op[] = {MESHCOLL_MINLOC, MESHCOLL_MAXLOC};                \
        for (int k = 0; k < 2; k++) {                                                 \
            memset(in, 0, sizeof in);                                                 \
            memset(out, 0, sizeof out);                                               \
            memset(right, 0, sizeof right);                                           \
            for (int i = 0; i < COUNT; i++) {                                         \
                in[i].value = (value_type)((rank * 7 + i * 5) % 3);                   \
                in[i].index = size - rank;                                            \
            }                                                                         \
            if (meshcoll_allreduce(mesh, in, out, COUNT, datatype, op[k]))            \
                stop(#datatype);                                                      \
            MPI_Allreduce(in, right, COUNT, mpi_type, mpi_op[k], comm);               \
            for (int i = 0; i < COUNT; i++)                                           \
                if (out[i].value < right[i].value || out[i].value > right[i].value || \
                    out[i].index != right[i].index)                                   \
                    stop(#datatype " differs from MPI's");                            \
            n_run++;                                                                  \
        }                                                                             \
    }

CHECK_PAIR(float, MESHCOLL_FLOAT32_INT32, MPI_FLOAT_INT)
CHECK_PAIR(double, MESHCOLL_FLOAT64_INT32, MPI_DOUBLE_INT)
CHECK_PAIR(int, MESHCOLL_INT32_INT32, MPI_2INT)
CHECK_PAIR(long, MESHCOLL_INT64_INT32, MPI_LONG_INT)

/* x -> a x + b modulo 2^32: one after the other, which does not commute. */
typedef struct {
    uint32_t a, b;
} affine_t;

static affine_t after(affine_t first, affine_t second)
{
    return (affine_t){first.a * second.a, first.b * second.a + second.b};
}

static void compose(void *context, void *dst, const void *a, const void *b, size_t count,
                    meshcoll_datatype_t datatype)
{
    affine_t *const d = dst;
    const affine_t *const x = a, *const y = b;
    if (datatype != MESHCOLL_UINT64)
        stop("another datatype than asked for");
    ++*(int *)context;
    for (size_t i = 0; i < count; i++)
        d[i] = after(x[i], y[i]);
}

static void mpi_compose(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    (void)datatype;
    affine_t *const d = inout;
    const affine_t *const x = in;
    for (int i = 0; i < *count; i++)
        d[i] = after(x[i], d[i]);
}

static void fill(affine_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        in[i] =
            (affine_t){2 * (uint32_t)i + (uint32_t)rank + 3, (uint32_t)(rank * 11) + (uint32_t)i};
}

/* Blocking calls on one handle, with operations in turn: what is kept from one call must not serve the
 * next where the operation wants another strategy. */
static void check_users(void)
{
    affine_t *const in = malloc((size_t)size * COUNT * sizeof *in);
    affine_t out[COUNT], right[COUNT];
    int calls = 0;
    meshcoll_op_t op;
    MPI_Op mpi_op;
    MPI_Op_create(mpi_compose, 0, &mpi_op);
    if (!in || meshcoll_op_create(compose, 0, &calls, &op))
        stop("an operation");
    for (int turn = 0; turn < 3; turn++) {
        fill(in, (size_t)size * COUNT);
        if (meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_UINT64, MESHCOLL_BXOR))
            stop("bxor");
        MPI_Allreduce(in, right, COUNT, MPI_UINT64_T, MPI_BXOR, comm);
        expect_same("bxor differs from MPI's", out, right, sizeof out);
        if (meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_UINT64, op))
            stop("allreduce");
        MPI_Allreduce(in, right, COUNT, MPI_UINT64_T, mpi_op, comm);
        expect_same("a user's allreduce differs from MPI's", out, right, sizeof out);
        for (int root = 0; root < size; root++) {
            if (meshcoll_reduce(mesh, in, out, COUNT, MESHCOLL_UINT64, op, root))
                stop("reduce");
            MPI_Reduce(in, right, COUNT, MPI_UINT64_T, mpi_op, root, comm);
            if (rank == root)
                expect_same("a user's reduce differs from MPI's", out, right, sizeof out);
        }
        if (meshcoll_reduce_scatter(mesh, in, out, COUNT, MESHCOLL_UINT64, op))
            stop("reduce_scatter");
        MPI_Reduce_scatter_block(in, right, COUNT, MPI_UINT64_T, mpi_op, comm);
        expect_same("a user's reduce_scatter differs from MPI's", out, right, sizeof out);
    }
    if (calls == 0 && size > 1 && rank == 0)
        stop("the user's function was never called");
    if (meshcoll_op_free(op))
        stop("meshcoll_op_free");
    if (meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_UINT64, op) != MESHCOLL_ERR_INVALID_ARG)
        stop("an operation that was freed is taken");
    MPI_Op_free(&mpi_op);
    free(in);
}

/* Structs of 12 bytes, which divide no power of two: in messages of a cache line, and in such as a
 * transport moves in pieces. */
typedef struct {
    uint32_t a, b, n;
} step_t;

static void compose_steps(void *context, void *dst, const void *a, const void *b, size_t count,
                          meshcoll_datatype_t datatype)
{
    step_t *const d = dst;
    const step_t *const x = a, *const y = b;
    (void)context;
    if (meshcoll_datatype_size(datatype) != sizeof *d)
        stop("another datatype than asked for");
    for (size_t i = 0; i < count; i++)
        d[i] = (step_t){x[i].a * y[i].a, x[i].b * y[i].a + y[i].b, x[i].n + y[i].n};
}

static void mpi_compose_steps(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    (void)datatype;
    compose_steps(NULL, inout, in, inout, (size_t)*count, MESHCOLL_DATATYPE_BYTES + sizeof(step_t));
}

static void check_structs(size_t count)
{
    const size_t all = (size_t)size * count;
    step_t *const in = malloc(all * sizeof *in), *const out = malloc(all * sizeof *out),
                  *const right = malloc(all * sizeof *right);
    meshcoll_datatype_t type;
    meshcoll_op_t op;
    MPI_Datatype mpi_type;
    MPI_Op mpi_op;
    MPI_Op_create(mpi_compose_steps, 0, &mpi_op);
    MPI_Type_contiguous(sizeof *in, MPI_BYTE, &mpi_type);
    MPI_Type_commit(&mpi_type);
    if (!in || !out || !right || meshcoll_op_create(compose_steps, 0, NULL, &op) ||
        meshcoll_datatype_of(sizeof *in, &type))
        stop("a datatype");
    for (size_t i = 0; i < all; i++)
        in[i] =
            (step_t){2 * (uint32_t)i + (uint32_t)rank + 3, (uint32_t)rank * 11 + (uint32_t)i, 1};
    if (meshcoll_allreduce(mesh, in, out, count, type, op))
        stop("allreduce of structs");
    MPI_Allreduce(in, right, (int)count, mpi_type, mpi_op, comm);
    expect_same("an allreduce of structs differs from MPI's", out, right, count * sizeof *in);
    if (meshcoll_reduce_scatter(mesh, in, out, count, type, op))
        stop("reduce_scatter of structs");
    MPI_Reduce_scatter_block(in, right, (int)count, mpi_type, mpi_op, comm);
    expect_same("a reduce_scatter of structs differs from MPI's", out, right, count * sizeof *in);
    if (meshcoll_alltoall(mesh, in, out, count, type))
        stop("alltoall of structs");
    MPI_Alltoall(in, (int)count, mpi_type, right, (int)count, mpi_type, comm);
    expect_same("an alltoall of structs differs from MPI's", out, right, all * sizeof *in);
    if (meshcoll_allreduce(mesh, in, out, count, type, MESHCOLL_SUM) != MESHCOLL_ERR_UNSUPPORTED)
        stop("a sum of structs is taken");
    meshcoll_op_free(op);
    MPI_Op_free(&mpi_op);
    MPI_Type_free(&mpi_type);
    free(right);
    free(out);
    free(in);
}

/* Structs of 16, 32 and 64 bytes, aligned as such, over all ways that operands come: slots, pages, messages before
 * their receive, scratch, large ones in pieces; as every strategy cuts them. */
enum { MOST_WORDS = 8 };
static size_t words; /* of an element */

static void add_aligned(void *context, void *dst, const void *a, const void *b, size_t count,
                        meshcoll_datatype_t datatype)
{
    const size_t bytes = words * sizeof(uint64_t);
    if (((uintptr_t)dst | (uintptr_t)a | (uintptr_t)b) % bytes)
        stop("an operand is not aligned");
    if (meshcoll_datatype_size(datatype) != bytes)
        stop("another datatype than asked for");
    ++*(int *)context;
    uint64_t *const d = dst;
    const uint64_t *const x = a, *const y = b;
    for (size_t i = 0; i < count * words; i++)
        d[i] = x[i] + y[i];
}

/* Word i is (rank + 1) i, so that a sum is i size (size + 1) / 2. */
static void check_sums(const meshcoll_args_t *args, const char *strategy)
{
    const bool scatters = args->collective == MESHCOLL_REDUCE_SCATTER;
    const bool has_result = args->collective != MESHCOLL_REDUCE || rank == args->root;
    const uint64_t ranks = (uint64_t)size, all = ranks * (ranks + 1) / 2;
    const uint64_t *const out = args->out;
    const size_t n = has_result ? args->count * words : 0, first = scatters ? (size_t)rank * n : 0;
    for (size_t i = 0; i < n; i++)
        if (out[i] != all * (first + i))
            stop(strategy);
    n_run++;
}

static void run_aligned(const meshcoll_args_t *args)
{
    meshcoll_request_t *request;
    static unsigned turn;
    const bool is_late = turn++ % (unsigned)(3 * size) == (unsigned)rank;
    if (is_late) /* the others' messages come before its receives */
        usleep(500);
    if (meshcoll_init(mesh, args, &request) || meshcoll_start(request) || meshcoll_wait(request))
        stop(args->strategy);
    meshcoll_free(request);
    check_sums(args, args->strategy);
}

static void check_aligned(meshcoll_collective_t collective, size_t count)
{
    mc_sample_t sample;
    meshcoll_args_t args = {.size = sizeof args, .collective = collective, .count = count};
    const size_t bytes = count * words * sizeof(uint64_t), all = bytes * (size_t)size;
    uint64_t *const in = aligned_alloc(64, all + 64 - all % 64), *const out = aligned_alloc(
                                                                     64, bytes + 64 - bytes % 64);
    int calls = 0;
    if (!in || !out || mc_sample_open(collective, &mesh->mesh, 12, &sample) ||
        meshcoll_op_create(add_aligned, 1, &calls, &args.op) ||
        meshcoll_datatype_of(words * sizeof(uint64_t), &args.datatype))
        stop("an operation on aligned structs");
    for (size_t i = 0; i < (size_t)size * count * words; i++)
        in[i] = (uint64_t)(rank + 1) * i;
    args.in = in;
    args.out = out;
    for (int i = 0; i < sample.n; i++) {
        args.strategy = sample.text[i];
        args.root = i % size;
        run_aligned(&args);
    }
    if (calls == 0 && size > 1 && rank == 0 && collective == MESHCOLL_ALLREDUCE)
        stop("the user's function was never called");
    mc_sample_close(&sample);
    meshcoll_op_free(args.op);
    free(out);
    free(in);
}

static void check_alignments(void)
{
    static const size_t counts[] = {1, 3, 100, 1500};
    for (words = 2; words <= MOST_WORDS; words *= 2)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            check_aligned(MESHCOLL_ALLREDUCE, counts[i]);
            check_aligned(MESHCOLL_REDUCE, counts[i]);
            check_aligned(MESHCOLL_REDUCE_SCATTER, counts[i]);
        }
}

/* A strategy that would reduce box by box is refused where the ranks stand otherwise. */
static void check_refused(void)
{
    static const char hierarchical[] =
        "reduce:mst(gpu) reduce:mst(box) bcast:mst(box) bcast:mst(gpu)";
    affine_t v = {1, 1};
    int calls = 0;
    meshcoll_op_t op;
    meshcoll_request_t *request;
    if (meshcoll_op_create(compose, 0, &calls, &op))
        stop("an operation");
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = &v,
                                  .out = &v,
                                  .count = 1,
                                  .datatype = MESHCOLL_UINT64,
                                  .op = op,
                                  .strategy = hierarchical};
    if (meshcoll_init(mesh, &args, &request) != MESHCOLL_ERR_STRATEGY ||
        !strstr(meshcoll_last_error(), "do not stand in the mesh in their order"))
        stop("a strategy that goes box by box is taken");
    meshcoll_op_free(op);
}

/* usage: test_ops [MESH [BOXES NODES STEP]]; with BOXES the ranks are shuffled (support/mpi/shuffled.h) */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = argc > 1 ? argv[1] : NULL};
    comm = MPI_COMM_WORLD;
    if (argc > 4) {
        const mc_shuffle_t shuffle = {atoi(argv[2]), atoi(argv[3]), atoi(argv[4])};
        comm = mc_shuffled_world(&shuffle);
        if (mc_shuffled_create(comm, &shuffle, &params, &mesh) || !mesh->order.comm_rank)
            stop("creating shuffled boxes");
    } else if (meshcoll_create(comm, &params, &mesh)) {
        stop("meshcoll_create");
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    check_MESHCOLL_FLOAT32_INT32();
    check_MESHCOLL_FLOAT64_INT32();
    check_MESHCOLL_INT32_INT32();
    if (sizeof(long) == sizeof(int64_t))
        check_MESHCOLL_INT64_INT32();
    check_users();
    check_structs(1);
    check_structs(30011);
    check_alignments();
    if (argc > 4)
        check_refused();
    meshcoll_destroy(mesh);
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    if (rank == 0)
        printf("%d results as MPI's\n", n_run);
    MPI_Finalize();
    return 0;
}
