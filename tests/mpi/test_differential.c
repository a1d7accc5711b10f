/*
 * Calls drawn at random, beside MPI's own collectives: results, what must not be written, inputs.
 *
 * usage: test_differential [--seed S] [--cases N | --case K | --minutes M]
 * A case follows from seed, number and the number of ranks alone. The first that differs, or hangs,
 * ends the run with the command line that repeats it.
 */
#include <meshcoll/mpi.h>

#include "support/call.h"
#include "support/drawn.h"
#include "support/mpi/shuffled.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESHES = 16, GUARD = 64, FILL = 0xA5, PATIENCE = 60, SAMPLE = 60 };

/* The same ranks as another mesh. */
typedef struct {
    MPI_Comm comm;
    int rank;
    meshcoll_t *mesh;
    mc_sample_t sample[MESHCOLL_COLLECTIVES];
} place_t;

/* Memory of in and out: as the library finds it, as it should leave it, and as MPI reads it. */
typedef struct {
    char *memory[2], *right[2], *source;
    size_t bytes[2];
} buffers_t;

typedef struct {
    const place_t *place;
    mc_drawn_t drawn;
    mc_drawn_layout_t layout;
    buffers_t b;
    size_t element; /* bytes */
} run_t;

typedef struct {
    unsigned long long seed, first, end;
    double minutes;
} options_t;

static int size, n_meshes;
static place_t meshes[MESHES];
static char repeat[PATH_MAX + 200];
static const int watched[] = {SIGALRM, SIGSEGV, SIGBUS, SIGABRT};
static struct sigaction before[sizeof watched / sizeof *watched];

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n%s", what, why, repeat);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* A hang or a crash must name its case too. */
static void tell(int sig)
{
    if (write(STDERR_FILENO, repeat, strlen(repeat)) < 0)
        _exit(1);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (watched[i] == sig)
            sigaction(sig, &before[i], NULL);
    raise(sig);
}

static void watch(void)
{
    const struct sigaction action = {.sa_handler = tell};
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaction(watched[i], &action, &before[i]);
}

/* Meshes ----------------------------------------------------------------------------------------- */

static void add_mesh(MPI_Comm comm, const char *text, const mc_shuffle_t *shuffle)
{
    if (n_meshes == MESHES)
        stop(text ? text : "the boxes found", "more meshes than there is room for");
    place_t *const p = &meshes[n_meshes++];
    const meshcoll_params_t params = {.size = sizeof params, .mesh = text};
    mc_mesh_t mesh;
    p->comm = comm;
    MPI_Comm_rank(comm, &p->rank);
    const int status = shuffle ? mc_shuffled_create(comm, shuffle, &params, &p->mesh)
                               : meshcoll_create(comm, &params, &p->mesh);
    if (status || mc_mesh_parse(meshcoll_mesh_text(p->mesh), &mesh))
        stop("creating a mesh", meshcoll_last_error());
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        if (mc_sample_open((meshcoll_collective_t)c, &mesh, SAMPLE, &p->sample[c]))
            stop("drawing strategies", "no memory");
}

/* One dimension, every pair of two, three, boxes of unequal sizes, and boxes that lie across the order of ranks. */
static void open_meshes(void)
{
    char text[64];
    snprintf(text, sizeof text, "gpu=%d", size);
    add_mesh(MPI_COMM_WORLD, text, NULL);
    for (int boxes = 2; boxes < size; boxes++) {
        if (size % boxes)
            continue;
        snprintf(text, sizeof text, "box=%d,gpu=%d", boxes, size / boxes);
        add_mesh(MPI_COMM_WORLD, text, NULL);
    }
    if (size % 8 == 0) {
        snprintf(text, sizeof text, "rack=2,box=2,gpu=%d", size / 4);
        add_mesh(MPI_COMM_WORLD, text, NULL);
    }
    if (size > 3) {
        snprintf(text, sizeof text, "box=%d+%d+1", size / 2, size - size / 2 - 1);
        add_mesh(MPI_COMM_WORLD, text, NULL);
    }
    if (size > 2 && size % 2 == 0) {
        const mc_shuffle_t shuffle = {.boxes = 2, .nodes = 1, .step = size - 1};
        add_mesh(mc_shuffled_world(&shuffle), NULL, &shuffle);
    }
}

static void close_meshes(void)
{
    for (int i = 0; i < n_meshes; i++) {
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            mc_sample_close(&meshes[i].sample[c]);
        meshcoll_destroy(meshes[i].mesh);
        if (meshes[i].comm != MPI_COMM_WORLD)
            MPI_Comm_free(&meshes[i].comm);
    }
}

/* Buffers ---------------------------------------------------------------------------------------- */

static void *reserve(size_t bytes)
{
    void *const memory = malloc(bytes + 1);
    if (!memory)
        stop("buffers", "no memory");
    return memory;
}

/* Where in or out of this call starts in one of the memories. */
static char *start(const run_t *r, int k, char *const memory[2])
{
    return memory[r->layout.buffer[k]] + GUARD + r->layout.at[k] * r->element;
}

static void fill(const run_t *r)
{
    const mc_case_t *const c = &r->drawn.c;
    for (int k = 0; k < 2; k++)
        memset(r->b.memory[k], FILL, r->b.bytes[k]);
    for (size_t i = 0; i < r->layout.own[0]; i++)
        mc_element_set(c->datatype, start(r, 0, r->b.memory), i,
                       mc_case_value(c, r->place->rank, size, i + r->drawn.salt));
}

static void open_buffers(run_t *r)
{
    const mc_drawn_layout_t *const l = &r->layout;
    for (int k = 0; k < 2; k++) {
        r->b.bytes[k] = (l->shift[k] + l->elements[k]) * r->element + 2 * GUARD;
        r->b.memory[k] = reserve(r->b.bytes[k]);
        r->b.right[k] = reserve(r->b.bytes[k]);
    }
    fill(r);
    for (int k = 0; k < 2; k++)
        memcpy(r->b.right[k], r->b.memory[k], r->b.bytes[k]);
    r->b.source = reserve(l->own[0] * r->element);
    memcpy(r->b.source, start(r, 0, r->b.memory), l->own[0] * r->element);
}

static void close_buffers(run_t *r)
{
    for (int k = 0; k < 2; k++) {
        free(r->b.memory[k]);
        free(r->b.right[k]);
    }
    free(r->b.source);
}

/* MPI's result ----------------------------------------------------------------------------------- */

static const MPI_Op mpi_op[MESHCOLL_OPS] = {
    [MESHCOLL_SUM] = MPI_SUM,       [MESHCOLL_MIN] = MPI_MIN,   [MESHCOLL_MAX] = MPI_MAX,
    [MESHCOLL_PROD] = MPI_PROD,     [MESHCOLL_AVG] = MPI_SUM,   [MESHCOLL_LAND] = MPI_LAND,
    [MESHCOLL_LOR] = MPI_LOR,       [MESHCOLL_LXOR] = MPI_LXOR, [MESHCOLL_BAND] = MPI_BAND,
    [MESHCOLL_BOR] = MPI_BOR,       [MESHCOLL_BXOR] = MPI_BXOR, [MESHCOLL_MINLOC] = MPI_MINLOC,
    [MESHCOLL_MAXLOC] = MPI_MAXLOC,
};

/* The same operation on the same type; MPI_DATATYPE_NULL where MPI has none. */
static MPI_Datatype twin_of(const mc_case_t *c)
{
    const MPI_Datatype twin[MESHCOLL_DATATYPES] = {
        [MESHCOLL_FLOAT32] = MPI_FLOAT,
        [MESHCOLL_FLOAT64] = MPI_DOUBLE,
        [MESHCOLL_INT32] = MPI_INT32_T,
        [MESHCOLL_INT64] = MPI_INT64_T,
        [MESHCOLL_INT8] = MPI_INT8_T,
        [MESHCOLL_INT16] = MPI_INT16_T,
        [MESHCOLL_UINT8] = MPI_UINT8_T,
        [MESHCOLL_UINT16] = MPI_UINT16_T,
        [MESHCOLL_UINT32] = MPI_UINT32_T,
        [MESHCOLL_UINT64] = MPI_UINT64_T,
        [MESHCOLL_FLOAT16] = MPI_DATATYPE_NULL,
        [MESHCOLL_BFLOAT16] = MPI_DATATYPE_NULL,
        [MESHCOLL_FLOAT8_E4M3] = MPI_DATATYPE_NULL,
        [MESHCOLL_FLOAT8_E5M2] = MPI_DATATYPE_NULL,
        [MESHCOLL_COMPLEX64] = MPI_C_FLOAT_COMPLEX,
        [MESHCOLL_COMPLEX128] = MPI_C_DOUBLE_COMPLEX,
        [MESHCOLL_FLOAT32_INT32] = MPI_FLOAT_INT,
        [MESHCOLL_FLOAT64_INT32] = MPI_DOUBLE_INT,
        [MESHCOLL_INT32_INT32] = MPI_2INT,
        [MESHCOLL_INT64_INT32] = sizeof(long) == 8 ? MPI_LONG_INT : MPI_DATATYPE_NULL,
        [MESHCOLL_FLOAT64_INT64] = MPI_DATATYPE_NULL,
        [MESHCOLL_INT64_INT64] = MPI_DATATYPE_NULL,
        [MESHCOLL_BOOL] = MPI_UINT8_T, /* of 0 and 1; MPI_C_BOOL lacks all but logical operations */
    };
    /* Open MPI 4.1 saturates sums of 8 and 16 bits where it has AVX; they wrap here */
    const bool saturates = c->op == MESHCOLL_SUM && meshcoll_datatype_size(c->datatype) <= 2;
    return c->op == MESHCOLL_AVG || saturates ? MPI_DATATYPE_NULL : twin[c->datatype];
}

static size_t given(const run_t *r)
{
    return mc_case_has_blocks(r->drawn.c.collective) ? r->layout.own[0] : r->drawn.c.count;
}

static void mpi_reduce(const run_t *r, const void *in, void *out, MPI_Datatype type, MPI_Op op)
{
    const mc_case_t *const c = &r->drawn.c;
    int counts[MC_DRAWN_RANKS];
    for (int i = 0; i < size; i++)
        counts[i] = (int)r->layout.table[0].counts[i];
    if (c->collective == MESHCOLL_REDUCE)
        MPI_Reduce(in, out, (int)c->count, type, op, c->root, r->place->comm);
    else if (c->collective == MESHCOLL_ALLREDUCE)
        MPI_Allreduce(in, out, (int)c->count, type, op, r->place->comm);
    else
        MPI_Reduce_scatter(in, out, counts, type, op, r->place->comm);
    int ranks;
    MPI_Comm_size(r->place->comm, &ranks);
    if (ranks == 1 && (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)) /* MPI copies */
        MPI_Reduce_local(in, out,
                         c->collective == MESHCOLL_REDUCE_SCATTER ? counts[0] : (int)c->count, type,
                         MPI_LAND);
}

/* As value and index, where only comparisons are asked for, or as complex numbers: of float64, in
 * which the values here, their sums and products are exact. */
static void mpi_reduce_wide(const run_t *r, void *right)
{
    typedef struct {
        double value;
        int index;
    } pair_t;
    const mc_case_t *const c = &r->drawn.c;
    const bool most = c->op == MESHCOLL_MAX || c->op == MESHCOLL_MAXLOC;
    const bool compares = most || c->op == MESHCOLL_MIN || c->op == MESHCOLL_MINLOC;
    const size_t n = given(r);
    mc_number_t *const in = reserve(n * sizeof *in), *const out = reserve(n * sizeof *out);
    pair_t *const pairs = (pair_t *)(void *)in, *const best = (pair_t *)(void *)out;
    for (size_t i = 0; i < n; i++) {
        const mc_number_t x = mc_case_value(c, r->place->rank, size, i + r->drawn.salt);
        if (compares)
            pairs[i] = (pair_t){x.a, (int)x.b};
        else
            in[i] = x;
    }
    mpi_reduce(r, in, out, compares ? MPI_DOUBLE_INT : MPI_C_DOUBLE_COMPLEX,
               !compares ? mpi_op[c->op]
               : most    ? MPI_MAXLOC
                         : MPI_MINLOC);
    for (size_t i = 0; i < r->layout.own[1]; i++) {
        mc_number_t x = compares ? (mc_number_t){best[i].value, best[i].index} : out[i];
        if (c->op == MESHCOLL_AVG && size > 1)
            x = (mc_number_t){mc_case_divided(c->datatype, x.a, size),
                              mc_case_divided(c->datatype, x.b, size)};
        mc_element_set(c->datatype, right, i, x);
    }
    free(out);
    free(in);
}

static void mpi_move(const run_t *r, void *right)
{
    const mc_case_t *const c = &r->drawn.c;
    const MPI_Comm comm = r->place->comm;
    int counts[2][MC_DRAWN_RANKS], displs[2][MC_DRAWN_RANKS];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < size; i++) {
            counts[k][i] = (int)(r->layout.table[k].counts[i] * r->element);
            displs[k][i] = (int)(r->layout.table[k].displs[i] * r->element);
        }
    const int mine = counts[0][r->place->rank];
    if (c->collective == MESHCOLL_BCAST) {
        if (r->place->rank == c->root)
            memcpy(right, r->b.source, c->count * r->element);
        MPI_Bcast(right, (int)(c->count * r->element), MPI_BYTE, c->root, comm);
    } else if (c->collective == MESHCOLL_SCATTER) {
        MPI_Scatterv(r->b.source, counts[0], displs[0], MPI_BYTE, right, mine, MPI_BYTE, c->root,
                     comm);
    } else if (c->collective == MESHCOLL_GATHER) {
        MPI_Gatherv(r->b.source, mine, MPI_BYTE, right, counts[1], displs[1], MPI_BYTE, c->root,
                    comm);
    } else if (c->collective == MESHCOLL_ALLGATHER) {
        MPI_Allgatherv(r->b.source, mine, MPI_BYTE, right, counts[1], displs[1], MPI_BYTE, comm);
    } else {
        MPI_Alltoallv(r->b.source, counts[0], displs[0], MPI_BYTE, right, counts[1], displs[1],
                      MPI_BYTE, comm);
    }
}

static void ask_mpi(const run_t *r)
{
    const mc_case_t *const c = &r->drawn.c;
    void *const right = start(r, 1, r->b.right);
    if (!mc_case_reduces(c->collective))
        mpi_move(r, right);
    else if (twin_of(c) == MPI_DATATYPE_NULL)
        mpi_reduce_wide(r, right);
    else
        mpi_reduce(r, r->b.source, right, twin_of(c), mpi_op[c->op]);
}

/* The library's ---------------------------------------------------------------------------------- */

/* Every byte; but results may differ in padding, and complex products in the sign of a zero. */
static void expect_same(const run_t *r, const char *what)
{
    const mc_case_t *const c = &r->drawn.c;
    const bool loose =
        mc_case_reduces(c->collective) &&
        (mc_is_pair(c->datatype) || (mc_is_complex(c->datatype) && c->op == MESHCOLL_PROD));
    char why[120];
    for (int k = 0; k < 2; k++) {
        const char *const got = r->b.memory[k], *const right = r->b.right[k];
        const size_t end = r->b.bytes[k] - GUARD;
        for (size_t i = 0; i < r->b.bytes[k] && memcmp(got, right, r->b.bytes[k]) != 0; i++) {
            const size_t at = i < GUARD || i >= end ? 0 : (i - GUARD) / r->element;
            if (got[i] == right[i] || (loose && i >= GUARD && i < end &&
                                       mc_element_same(c->datatype, got + GUARD + at * r->element,
                                                       right + GUARD + at * r->element, 0)))
                continue;
            snprintf(why, sizeof why, "rank %d: byte %td of %s is %02x, with MPI %02x",
                     r->place->rank,
                     (ptrdiff_t)i - GUARD - (ptrdiff_t)(r->layout.shift[k] * r->element),
                     k ? "out" : "in", got[i] & 255, right[i] & 255);
            stop(what, why);
        }
    }
}

static meshcoll_args_t args_of(const run_t *r)
{
    const mc_drawn_layout_t *const l = &r->layout;
    const mc_case_t *const c = &r->drawn.c;
    const int rank = r->place->rank;
    const bool uses_in = mc_case_share_in(c, rank) != MC_SHARE_NOTHING;
    const bool uses_out = mc_case_share_out(c, rank) != MC_SHARE_NOTHING;
    const mc_case_rank_t buffers = {.in = uses_in || !c->bare ? start(r, 0, r->b.memory) : NULL,
                                    .out = uses_out || !c->bare ? start(r, 1, r->b.memory) : NULL};
    meshcoll_args_t a = mc_case_args(c, &buffers, r->drawn.strategy[0] ? r->drawn.strategy : NULL);
    if (!r->drawn.unequal)
        return a;
    const int blocks =
        mc_case_share_in(c, c->root) == MC_SHARE_WHOLE && c->collective != MESHCOLL_ALLTOALL ? 0
                                                                                             : 1;
    a.count = l->table[blocks].counts[rank];
    a.counts = l->table[blocks].counts;
    a.displs = l->table[blocks].packed ? NULL : l->table[blocks].displs;
    if (c->collective == MESHCOLL_ALLTOALL) {
        a.in_counts = l->table[0].counts;
        a.in_displs = l->table[0].packed ? NULL : l->table[0].displs;
    }
    return a;
}

static void run_persistent(const run_t *r, const meshcoll_args_t *args, const char *what)
{
    meshcoll_request_t *request;
    if (r->drawn.how == MC_PERSISTENT ? meshcoll_init(r->place->mesh, args, &request)
                                      : mc_call_init(r->place->mesh, args, &request))
        stop(what, meshcoll_last_error());
    for (int again = 0; again < 2; again++) {
        fill(r);
        if (meshcoll_start(request) || meshcoll_wait(request))
            stop(what, meshcoll_last_error());
        expect_same(r, what);
    }
    meshcoll_free(request);
}

static void run_call(const run_t *r, const meshcoll_args_t *args, const char *what)
{
    meshcoll_t *const mesh = r->place->mesh;
    meshcoll_request_t *request = NULL;
    int status;
    if (r->drawn.how == MC_BLOCKING)
        status = mc_call(mesh, args);
    else if (r->drawn.how == MC_BEGUN)
        status = meshcoll_begin(mesh, args, &request);
    else
        status = mc_call_begin(mesh, args, &request);
    if (!status)
        status = meshcoll_wait(request);
    if (status)
        stop(what, meshcoll_last_error());
    expect_same(r, what);
}

/* By name calls take the strategy that was set. */
static void force(const run_t *r, const char *strategy, const char *what)
{
    const bool by_args = r->drawn.how == MC_BEGUN || r->drawn.how == MC_PERSISTENT;
    if (!by_args && meshcoll_set_strategy(r->place->mesh, r->drawn.c.collective, strategy))
        stop(what, meshcoll_last_error());
}

static void run_case(const options_t *o, unsigned long long k)
{
    char what[MC_STRATEGY_TEXT + 400], call[MC_STRATEGY_TEXT + 300];
    static run_t r;
    mc_random_t random = mc_random_of(o->seed, k);
    r.place = &meshes[mc_random_below(&random, (size_t)n_meshes)];
    mc_draw(&random, size, r.place->sample, &r.drawn);
    mc_draw_layout(&r.drawn, r.place->rank, size, &r.layout);
    r.element = meshcoll_datatype_size(r.drawn.c.datatype);
    snprintf(what, sizeof what, "case %llu: %s%s: %s", k, meshcoll_mesh_text(r.place->mesh),
             r.place->comm == MPI_COMM_WORLD ? "" : " shuffled",
             mc_drawn_print(&r.drawn, call, sizeof call));
    open_buffers(&r);
    ask_mpi(&r);
    const meshcoll_args_t args = args_of(&r);
    force(&r, args.strategy, what);
    if (r.drawn.how == MC_PERSISTENT || r.drawn.how == MC_PERSISTENT_BY_NAME)
        run_persistent(&r, &args, what);
    else
        run_call(&r, &args, what);
    force(&r, NULL, what);
    close_buffers(&r);
}

static unsigned long long number(const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    if (end == text || *end)
        stop(text, "expected a number");
    return n;
}

static options_t read_options(int argc, char **argv)
{
    static const struct option known[] = {{"seed", required_argument, NULL, 's'},
                                          {"cases", required_argument, NULL, 'n'},
                                          {"case", required_argument, NULL, 'k'},
                                          {"minutes", required_argument, NULL, 'm'},
                                          {0}};
    options_t o = {.seed = 1, .end = 1000};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 's')
            o.seed = number(optarg);
        else if (c == 'n')
            o.end = number(optarg);
        else if (c == 'k')
            o.end = (o.first = number(optarg)) + 1;
        else if (c == 'm')
            o.minutes = (double)number(optarg);
        else
            stop("usage", "test_differential [--seed S] [--cases N | --case K | --minutes M]");
    }
    if (o.minutes > 0)
        o.end = ULLONG_MAX;
    return o;
}

/* Rank 0's clock holds for all. */
static bool is_over(const options_t *o, unsigned long long k, double begin)
{
    int over = k >= o->end;
    if (o->minutes > 0 && k % 64 == 0) {
        over = MPI_Wtime() - begin > o->minutes * 60;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return over;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const options_t o = read_options(argc, argv);
    if (size > MC_DRAWN_RANKS)
        stop("ranks", "64 at most");
    open_meshes();
    watch();
    const double begin = MPI_Wtime();
    unsigned long long k = o.first;
    for (; !is_over(&o, k, begin); k++) {
        snprintf(repeat, sizeof repeat,
                 "repeat it:              mpirun -n %d %s --seed %llu --case %llu\n"
                 "with those before it:   mpirun -n %d %s --seed %llu --cases %llu\n",
                 size, argv[0], o.seed, k, size, argv[0], o.seed, k + 1);
        alarm(PATIENCE);
        run_case(&o, k);
    }
    alarm(0);
    if (rank == 0)
        printf("test_differential: %d meshes of %d ranks, seed %llu: %llu cases as MPI in %.1f s\n",
               n_meshes, size, o.seed, k - o.first, MPI_Wtime() - begin);
    close_meshes();
    MPI_Finalize();
    return 0;
}
