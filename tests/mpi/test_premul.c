/* Scaled sums: every strategy of every collective that reduces, in place and not, with a scalar that
 * differs by rank, against sums of products that this test computes itself. */
#include "mesh/mesh.h"
#include "support/element.h"
#include "support/strategies.h"

#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1013, MOST_STRATEGIES = 40 };

static int rank, size, n_run;
static meshcoll_t *mesh;

static void stop(const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, why, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The buffers of one call, for `size` blocks each. `right` holds the sum of the ranks' products. */
typedef struct {
    meshcoll_datatype_t type;
    meshcoll_op_t op;
    size_t all; /* elements */
    char *given, *in, *out, *right;
} data_t;

/* Small integers: sums and products of them are exact in every datatype but those of 8 bits, where
 * they are 0 and 1 and few. */
static mc_number_t value_of(meshcoll_datatype_t type, int of_rank, size_t i)
{
    const bool small = meshcoll_datatype_size(type) == 1;
    const int a =
        small ? (int)(i + (size_t)of_rank) % 2 : (int)((i * 7 + (size_t)of_rank * 3) % 11);
    return (mc_number_t){a, mc_is_complex(type) ? (int)(i % 3) : 0};
}

static mc_number_t scalar_of(meshcoll_datatype_t type, int of_rank)
{
    return (mc_number_t){of_rank % 3, mc_is_complex(type) ? 1 + of_rank % 2 : 0};
}

static mc_number_t product(mc_number_t x, mc_number_t y)
{
    return (mc_number_t){x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a};
}

static void open_data(data_t *d, meshcoll_datatype_t type, size_t all)
{
    const size_t bytes = all * meshcoll_datatype_size(type) + 1;
    *d = (data_t){.type = type, .all = all};
    d->given = calloc(1, bytes);
    d->in = calloc(1, bytes);
    d->out = calloc(1, bytes);
    d->right = calloc(1, bytes);
    char scalar[16] = {0};
    mc_element_set(type, scalar, 0, scalar_of(type, rank));
    if (!d->given || !d->in || !d->out || !d->right || meshcoll_op_premul(scalar, type, &d->op))
        stop("a scaled sum");
    for (size_t i = 0; i < all; i++) {
        mc_number_t sum = {0, 0};
        for (int r = 0; r < size; r++) {
            const mc_number_t p = product(value_of(type, r, i), scalar_of(type, r));
            sum = (mc_number_t){sum.a + p.a, sum.b + p.b};
        }
        mc_element_set(type, d->given, i, value_of(type, rank, i));
        mc_element_set(type, d->right, i, sum);
    }
}

static void close_data(data_t *d)
{
    if (meshcoll_op_free(d->op))
        stop("freeing a scaled sum");
    free(d->right);
    free(d->out);
    free(d->in);
    free(d->given);
}

static void expect(const data_t *d, const char *what, const char *got, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t element = meshcoll_datatype_size(d->type);
        char g[16], w[16];
        memcpy(g, got + i * element, element);
        memcpy(w, d->right + (first + i) * element, element);
        if (mc_element_same(d->type, g, w, 0))
            continue;
        fprintf(stderr, "%s of %s: element %zu is %g, expected %g\n", what,
                meshcoll_datatype_name(d->type), i, mc_element_get(d->type, g, 0).a,
                mc_element_get(d->type, w, 0).a);
        stop("a wrong sum");
    }
    n_run++;
}

typedef struct {
    const char *text;
    bool in_place, persistent;
    int root;
} way_t;

/* Runs a request twice, with the input written anew where it is overwritten. */
static void run(const data_t *d, meshcoll_args_t *a, const way_t *way)
{
    const size_t bytes = d->all * meshcoll_datatype_size(d->type);
    meshcoll_request_t *request = NULL;
    for (int turn = 0; turn < 2; turn++) {
        memcpy(d->in, d->given, bytes);
        memset(d->out, 0x5a, bytes);
        int status = MESHCOLL_OK;
        if (!way->persistent)
            status = meshcoll_begin(mesh, a, &request);
        else if (turn == 0)
            status = meshcoll_init(mesh, a, &request);
        if (status || (way->persistent && meshcoll_start(request)) || meshcoll_wait(request))
            stop(way->text ? way->text : "the planner's choice");
        if (!way->in_place && memcmp(d->in, d->given, bytes) != 0)
            stop("the input was changed");
    }
    if (way->persistent)
        meshcoll_free(request);
}

/* A sum of no elements, by the same request: nothing is left of the last call. */
static void run_nothing(const meshcoll_args_t *last)
{
    meshcoll_args_t a = *last;
    meshcoll_request_t *request;
    a.in = a.out = NULL;
    a.count = 0;
    a.datatype = MESHCOLL_FLOAT32;
    a.op = MESHCOLL_SUM;
    if (meshcoll_begin(mesh, &a, &request) || meshcoll_wait(request))
        stop("a sum of no elements");
}

static void check(const data_t *d, meshcoll_collective_t collective, size_t count, const way_t *way)
{
    const size_t block = collective == MESHCOLL_REDUCE_SCATTER
                             ? (size_t)rank * count * meshcoll_datatype_size(d->type)
                             : 0;
    char *const out = way->in_place ? d->in + block : d->out;
    meshcoll_args_t a = {.size = sizeof a,
                         .collective = collective,
                         .in = d->in,
                         .out = out,
                         .count = count,
                         .datatype = d->type,
                         .op = d->op,
                         .root = way->root,
                         .strategy = way->text};
    const bool has_result = collective != MESHCOLL_REDUCE || rank == way->root;
    if (!has_result)
        a.out = NULL;
    run(d, &a, way);
    run_nothing(&a);
    if (has_result)
        expect(d, way->text ? way->text : "planned", out,
               collective == MESHCOLL_REDUCE_SCATTER ? (size_t)rank * count : 0, count);
}

static void check_ways(const data_t *d, meshcoll_collective_t collective, size_t count,
                       const char *text, int turn)
{
    for (int k = 0; k < 4; k++) {
        const way_t way = {text, k & 1, k & 2, (turn + k) % size};
        check(d, collective, count, &way);
    }
}

static const meshcoll_collective_t reducing[] = {MESHCOLL_REDUCE, MESHCOLL_REDUCE_SCATTER,
                                                 MESHCOLL_ALLREDUCE};

static void check_strategies(void)
{
    data_t d;
    mc_mesh_t shape;
    open_data(&d, MESHCOLL_FLOAT64, (size_t)size * COUNT);
    if (mc_mesh_parse(meshcoll_mesh_text(mesh), &shape))
        stop("the mesh's text");
    for (int c = 0; c < 3; c++) {
        mc_sample_t sample;
        if (mc_sample_open(reducing[c], &shape, MOST_STRATEGIES, &sample))
            stop("strategies");
        for (int i = 0; i < sample.n; i++)
            check_ways(&d, reducing[c], COUNT, sample.text[i], i);
        mc_sample_close(&sample);
    }
    close_data(&d);
}

static void check_datatypes(void)
{
    for (int t = 0; t < MESHCOLL_DATATYPES; t++) {
        const meshcoll_datatype_t type = (meshcoll_datatype_t)t;
        data_t d;
        if (meshcoll_op_check(MESHCOLL_PROD, type))
            continue;
        open_data(&d, type, (size_t)size * COUNT);
        for (int c = 0; c < 3; c++) {
            check_ways(&d, reducing[c], 1, NULL, t);
            check_ways(&d, reducing[c], COUNT, NULL, t);
        }
        close_data(&d);
    }
}

/* Blocks of unequal sizes, with gaps between them and in another order. */
static void check_blocks(void)
{
    data_t d;
    size_t *const counts = calloc((size_t)size, sizeof *counts);
    size_t *const displs = calloc((size_t)size, sizeof *displs);
    open_data(&d, MESHCOLL_INT32, (size_t)size * COUNT);
    if (!counts || !displs)
        stop("tables");
    for (int r = 0; r < size; r++) {
        counts[r] = (size_t)(r * 31 % 50);
        displs[r] = (size_t)(size - 1 - r) * COUNT + 3;
    }
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_REDUCE_SCATTER,
                               .in = d.in,
                               .out = d.out,
                               .count = counts[rank],
                               .datatype = d.type,
                               .op = d.op,
                               .counts = counts,
                               .displs = displs};
    meshcoll_args_t copy = a;
    const way_t way = {.text = NULL};
    run(&d, &copy, &way);
    expect(&d, "reduce_scatterv", d.out, displs[rank], counts[rank]);
    close_data(&d);
    free(displs);
    free(counts);
}

/* Calls that are packed into one. */
static void check_group(void)
{
    data_t d;
    open_data(&d, MESHCOLL_FLOAT32, 64);
    memcpy(d.in, d.given, 64 * sizeof(float));
    if (meshcoll_group_begin(mesh))
        stop("a group");
    for (size_t i = 0; i < 64; i++)
        meshcoll_allreduce(mesh, d.in + i * sizeof(float), d.out + i * sizeof(float), 1, d.type,
                           d.op);
    if (meshcoll_group_end(mesh))
        stop("the group's end");
    expect(&d, "a group", d.out, 0, 64);
    close_data(&d);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = argc > 1 ? argv[1] : NULL};
    if (meshcoll_create(MPI_COMM_WORLD, &params, &mesh))
        stop("meshcoll_create");
    rank = meshcoll_rank(mesh);
    size = meshcoll_size(mesh);
    check_datatypes();
    if (!getenv("MESHCOLL_REPRODUCIBLE")) /* which refuses most strategies */
        check_strategies();
    check_blocks();
    check_group();
    meshcoll_destroy(mesh);
    if (rank == 0)
        printf("%d scaled sums are right\n", n_run);
    MPI_Finalize();
    return 0;
}
