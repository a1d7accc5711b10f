/*
 * MESHCOLL_REPRODUCIBLE: the same values on the same ranks give the same bits however these ranks are
 * placed in boxes. Ranks of this machine take themselves for ranks of several, of one size or another,
 * in order or not; each mesh runs every way of reducing, and what comes out is compared with what came
 * out on the first one. Without the setting some of it must differ, or this shows nothing.
 */
#include "runtime/call/request.h"
#include "support/mpi/shuffled.h"

#include <meshcoll/mpi.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 12, BLOCK = 700, COUNT = MOST * BLOCK, ELEMENT = 16, WAYS = 9 };

static int rank, size;
static char in[COUNT * ELEMENT], out[COUNT * ELEMENT];

static const struct {
    meshcoll_datatype_t type;
    meshcoll_op_t op;
} kind[] = {{MESHCOLL_FLOAT32, MESHCOLL_SUM},    {MESHCOLL_FLOAT64, MESHCOLL_AVG},
            {MESHCOLL_FLOAT16, MESHCOLL_SUM},    {MESHCOLL_BFLOAT16, MESHCOLL_AVG},
            {MESHCOLL_COMPLEX64, MESHCOLL_PROD}, {MESHCOLL_FLOAT8_E4M3, MESHCOLL_SUM},
            {MESHCOLL_FLOAT32, MESHCOLL_MIN},    {MESHCOLL_INT32, MESHCOLL_SUM}};
enum { KINDS = sizeof kind / sizeof kind[0] };

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void check(int status, const char *what)
{
    if (status)
        stop(what);
}

/* The communicator's rank decides, not where it runs. Many magnitudes, both signs and zeros. */
static double value(int r, size_t i)
{
    const uint64_t mixed = (i * 131 + (uint64_t)r * 7919 + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    if (mixed % 29 == 0)
        return mixed % 2 ? -0.0 : 0.0;
    const double x = (double)(mixed % 100003) / 65536 - 0.7;
    return ldexp(x, (int)(mixed >> 22 & 15) - 8);
}

static uint16_t half_of(float x)
{
    union {
        float f;
        uint32_t bits;
    } u = {.f = x};
    return (uint16_t)(u.bits >> 16);
}

/* 16 bits and fewer take bits as they come, small and finite: numbers below 2 for float16. */
static void fill(meshcoll_datatype_t type, int r)
{
    for (size_t i = 0; i < COUNT; i++) {
        const double x = value(r, i);
        switch (type) {
        case MESHCOLL_FLOAT32:
            ((float *)in)[i] = (float)x;
            break;
        case MESHCOLL_FLOAT64:
            ((double *)in)[i] = x;
            break;
        case MESHCOLL_COMPLEX64:
            ((float *)in)[2 * i] = (float)(1 + x / 64);
            ((float *)in)[2 * i + 1] = (float)(value(r + MOST, i) / 64);
            break;
        case MESHCOLL_FLOAT16:
            ((uint16_t *)in)[i] = half_of((float)x) & 0xbfffu;
            break;
        case MESHCOLL_BFLOAT16:
            ((uint16_t *)in)[i] = half_of((float)x);
            break;
        case MESHCOLL_FLOAT8_E4M3:
            ((uint8_t *)in)[i] = (uint8_t)(half_of((float)x) >> 8) & 0xbfu;
            break;
        default:
            ((int32_t *)in)[i] = (int32_t)(x * 1e6);
        }
    }
}

/* Ways of reducing ------------------------------------------------------------------------------------ */

static const char *way_name(int way)
{
    static const char *const name[WAYS] = {"allreduce",
                                           "allreduce of 3 elements",
                                           "reduce to 0",
                                           "reduce to the last",
                                           "reduce_scatter",
                                           "reduce_scatterv",
                                           "persistent allreduce in place",
                                           "group of iallreduces",
                                           "sub-mesh allreduce"};
    return name[way];
}

static int run_v(meshcoll_t *m, meshcoll_datatype_t type, meshcoll_op_t op, size_t *bytes)
{
    size_t counts[MOST], element = meshcoll_datatype_size(type);
    for (int r = 0; r < size; r++)
        counts[r] = (size_t)(r * 37 % 5) * 101;
    *bytes = counts[rank] * element;
    return meshcoll_reduce_scatterv(m, in, out, counts, type, op);
}

static int run_persistent(meshcoll_t *m, meshcoll_datatype_t type, meshcoll_op_t op)
{
    meshcoll_request_t *request;
    memcpy(out, in, sizeof in);
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_ALLREDUCE,
                               .in = out,
                               .out = out,
                               .count = COUNT / 4,
                               .datatype = type,
                               .op = op};
    int status = meshcoll_init(m, &a, &request);
    if (!status)
        status = meshcoll_start(request);
    if (!status)
        status = meshcoll_wait(request);
    if (!status)
        meshcoll_free(request);
    return status;
}

static int run_group(meshcoll_t *m, meshcoll_datatype_t type, meshcoll_op_t op, size_t *bytes)
{
    const size_t counts[] = {5, 1, 900, 2}, element = meshcoll_datatype_size(type);
    int status = meshcoll_group_begin(m);
    *bytes = 0;
    for (int i = 0; i < 4 && !status; i++) {
        status = meshcoll_allreduce(m, in + *bytes, out + *bytes, counts[i], type, op);
        *bytes += counts[i] * element;
    }
    const int ended = meshcoll_group_end(m);
    return status ? status : ended;
}

/* Of one dimension of all ranks it has the parent's ranks, and may be compared too. */
static int run_part(meshcoll_t *m, meshcoll_datatype_t type, meshcoll_op_t op, size_t *bytes)
{
    meshcoll_t *part;
    char dim[64];
    const char *const text = meshcoll_mesh_text(m);
    *bytes = 0;
    if (strpbrk(text, ",+"))
        return MESHCOLL_OK;
    snprintf(dim, sizeof dim, "%.*s", (int)strcspn(text, "="), text);
    int status = meshcoll_split(m, dim, &part);
    if (status)
        return status;
    *bytes = COUNT / 8 * meshcoll_datatype_size(type);
    status = meshcoll_allreduce(part, in, out, COUNT / 8, type, op);
    meshcoll_destroy(part);
    return status;
}

static int run(meshcoll_t *m, int way, meshcoll_datatype_t type, meshcoll_op_t op, size_t *bytes)
{
    const size_t element = meshcoll_datatype_size(type), n = COUNT / 2;
    meshcoll_request_t *request = NULL;
    int status;
    *bytes = n * element;
    switch (way) {
    case 0:
        status = meshcoll_iallreduce(m, in, out, n, type, op, &request);
        return status ? status : meshcoll_wait(request);
    case 1:
        *bytes = 3 * element;
        return meshcoll_allreduce(m, in, out, 3, type, op);
    case 2:
    case 3: {
        const int root = way == 2 ? 0 : size - 1;
        *bytes = rank == root ? n * element : 0;
        return meshcoll_reduce(m, in, out, n, type, op, root);
    }
    case 4:
        *bytes = BLOCK * element;
        return meshcoll_reduce_scatter(m, in, out, BLOCK, type, op);
    case 5:
        return run_v(m, type, op, bytes);
    case 6:
        *bytes = COUNT / 4 * element;
        return run_persistent(m, type, op);
    case 7:
        return run_group(m, type, op, bytes);
    default:
        return run_part(m, type, op, bytes);
    }
}

static uint64_t hash_of(const void *data, size_t bytes)
{
    const unsigned char *const at = data;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

typedef struct {
    uint64_t hash[KINDS][WAYS];
} results_t;

static void run_all(meshcoll_t *m, results_t *results)
{
    for (int k = 0; k < KINDS; k++)
        for (int way = 0; way < WAYS; way++) {
            size_t bytes = 0;
            fill(kind[k].type, rank);
            memset(out, 0, sizeof out);
            check(run(m, way, kind[k].type, kind[k].op, &bytes), way_name(way));
            results->hash[k][way] = bytes ? hash_of(out, bytes) : 0;
        }
}

/* How many differ anywhere; where they may not, says which. */
static int differing(const results_t *a, const results_t *b, const char *mesh, int may)
{
    int n = 0;
    for (int k = 0; k < KINDS; k++)
        for (int way = 0; way < WAYS; way++) {
            const uint64_t x = a->hash[k][way], y = b->hash[k][way];
            const int differs = x && y && x != y;
            if (differs && !may)
                fprintf(stderr, "rank %d: %s %s, %s: other bits on %s\n", rank,
                        meshcoll_datatype_name(kind[k].type), meshcoll_op_name(kind[k].op),
                        way_name(way), mesh);
            n += differs;
        }
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return n;
}

/* Meshes ---------------------------------------------------------------------------------------------- */

/* All in their order in one box, in `boxes`, or `step` apart; by whose links strategies are chosen. */
typedef struct {
    int boxes, step;
    const char *mesh, *links;
} placed_t;

static void run_placed(const placed_t *p, const char *reproducible, results_t *results)
{
    const mc_shuffle_t shuffle = {.boxes = p->boxes, .nodes = 1, .step = p->step};
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = p->mesh, .links = p->links, .reproducible = reproducible};
    const MPI_Comm comm = mc_shuffled_world(&shuffle);
    MPI_Comm own = comm;
    meshcoll_t *m;
    MPI_Comm_rank(comm, &rank);
    check(mc_shuffled_create(comm, &shuffle, &params, &m), "meshcoll_create");
    run_all(m, results);
    meshcoll_destroy(m);
    MPI_Comm_free(&own);
}

/* Results by the communicator's rank: ranks of the world hold other ones' when they are shuffled. */
static void sort_results(int by, results_t *results)
{
    results_t all[MOST];
    int ranks[MOST], self;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Allgather(&by, 1, MPI_INT, ranks, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(results, sizeof *results, MPI_BYTE, all, sizeof *results, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        if (ranks[r] == self)
            *results = all[r];
}

static int compare(const placed_t *placed, int n, const char *reproducible, results_t *first)
{
    int differ = 0;
    for (int i = 0; i < n; i++) {
        results_t now;
        char name[160];
        run_placed(&placed[i], reproducible, &now);
        sort_results(rank, &now);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(name, sizeof name, "%d boxes, ranks %d apart, mesh %s, links %s", placed[i].boxes,
                 placed[i].step, placed[i].mesh ? placed[i].mesh : "found", placed[i].links);
        if (i == 0)
            *first = now;
        else
            differ += differing(first, &now, name, *reproducible == '0');
    }
    return differ;
}

/* What all ranks get is the same, to begin with. */
static int differ_by_rank(const results_t *results)
{
    static const int same[] = {0, 1, 6, 7, 8};
    int n = 0;
    for (int k = 0; k < KINDS; k++)
        for (size_t w = 0; w < sizeof same / sizeof same[0]; w++) {
            uint64_t root = results->hash[k][same[w]];
            MPI_Bcast(&root, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
            n += root != results->hash[k][same[w]];
        }
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return n;
}

static int refuses_other_strategies(void)
{
    const meshcoll_params_t params = {.size = sizeof params, .reproducible = "1"};
    meshcoll_t *m;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &m), "meshcoll_create");
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_ALLREDUCE,
                               .in = in,
                               .out = out,
                               .count = 8,
                               .datatype = MESHCOLL_FLOAT32,
                               .op = MESHCOLL_SUM,
                               .strategy = "allreduce:ring(gpu)"};
    meshcoll_request_t *request = NULL;
    const int status = meshcoll_init(m, &a, &request);
    const int good = status == MESHCOLL_ERR_STRATEGY &&
                     strstr(meshcoll_last_error(), "MESHCOLL_REPRODUCIBLE") != NULL;
    /* integers have the same bits in any way, and are not held to it */
    meshcoll_args_t free_to = a;
    free_to.datatype = MESHCOLL_INT32;
    check(meshcoll_init(m, &free_to, &request), "a ring of integers");
    meshcoll_free(request);
    meshcoll_destroy(m);
    return good;
}

/* An operation that does not commute ------------------------------------------------------------------- */

/* Maps x -> a x + b modulo 2^16, one after another: the tree has them in the communicator's order. */
static uint32_t after(uint32_t f, uint32_t g)
{
    const uint32_t fa = f >> 16, fb = f & 0xffff, ga = g >> 16, gb = g & 0xffff;
    return fa * ga << 16 | ((fa * gb + fb) & 0xffff);
}

static void compose(void *context, void *dst, const void *a, const void *b, size_t count,
                    meshcoll_datatype_t datatype)
{
    (void)context;
    (void)datatype;
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)dst)[i] = after(((const uint32_t *)a)[i], ((const uint32_t *)b)[i]);
}

static uint32_t map_of(int r, size_t i)
{
    return (uint32_t)(2 * r + 3) << 16 | (uint32_t)((size_t)r * 7 + i);
}

/* Its plan has the communicator's ranks; what tells of its steps (a timeline) must say the mesh's, as its
 * connections do. How many steps go to ranks that have other numbers in the plan; -1: one is told wrong. */
static int translated_peers(meshcoll_t *m, meshcoll_op_t op)
{
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = in,
                                  .out = out,
                                  .count = BLOCK,
                                  .datatype = MESHCOLL_UINT32,
                                  .op = op};
    meshcoll_request_t *r;
    int others = 0;
    check(meshcoll_init(m, &args, &r), "meshcoll_init");
    const mc_run_t *const run = mc_run_of(r);
    for (uint32_t t = 0; t < run->plan->n_steps && others >= 0; t++) {
        const int32_t planned = run->plan->step[t].peer, told = mc_run_rank_of(run, planned);
        if (planned >= 0 && run->executor.lane[run->executor.task[t].lane].peer->rank != told)
            others = -1;
        else
            others += told != planned;
    }
    meshcoll_free(r);
    return others;
}

/* Ranks that do not stand in the mesh's order are no hindrance. */
static int composes_in_order(const placed_t *p)
{
    const mc_shuffle_t shuffle = {.boxes = p->boxes, .nodes = 1, .step = p->step};
    const meshcoll_params_t params = {.size = sizeof params, .reproducible = "1"};
    MPI_Comm comm = mc_shuffled_world(&shuffle);
    meshcoll_t *m;
    meshcoll_op_t op;
    int wrong = 0;
    MPI_Comm_rank(comm, &rank);
    check(mc_shuffled_create(comm, &shuffle, &params, &m), "meshcoll_create");
    check(meshcoll_op_create(compose, 0, NULL, &op), "meshcoll_op_create");
    for (size_t i = 0; i < BLOCK; i++)
        ((uint32_t *)in)[i] = map_of(rank, i);
    check(meshcoll_allreduce(m, in, out, BLOCK, MESHCOLL_UINT32, op), "compose");
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t right = map_of(0, i);
        for (int r = 1; r < size; r++)
            right = after(right, map_of(r, i));
        wrong += ((uint32_t *)out)[i] != right;
    }
    int translated[2] = {translated_peers(m, op), 0};
    MPI_Allreduce(&translated[0], &translated[1], 1, MPI_INT, MPI_MAX, comm);
    wrong += translated[0] < 0 || translated[1] == 0;
    meshcoll_destroy(m);
    check(meshcoll_op_free(op), "meshcoll_op_free");
    MPI_Comm_free(&comm);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return !wrong;
}

int main(int argc, char **argv)
{
    static const placed_t of_8[] = {{1, 1, NULL, "uniform"},
                                    {2, 1, NULL, "lab"},
                                    {4, 1, NULL, "lab"},
                                    {8, 1, NULL, "lab"},
                                    {2, 3, NULL, "lab"},
                                    {4, 5, NULL, "dgx-h100"},
                                    {1, 1, "x=2,y=2,z=2", "uniform"},
                                    {1, 1, NULL, "dgx-h100"}};
    static const placed_t of_6[] = {{1, 1, NULL, "uniform"}, {2, 1, NULL, "lab"},
                                    {3, 1, NULL, "lab"},     {6, 1, NULL, "lab"},
                                    {2, 5, NULL, "lab"},     {3, 5, NULL, "uniform"}};
    /* 2, 2, 2 and 1 ranks, 3, 3 and 1, and as given */
    static const placed_t of_7[] = {{1, 1, NULL, "uniform"}, {3, 1, NULL, "lab"},
                                    {2, 1, NULL, "lab"},     {2, 3, NULL, "uniform"},
                                    {3, 3, NULL, "lab"},     {1, 1, "box=4+2+1", "lab"}};
    static const struct {
        const placed_t *placed;
        int n;
    } of[] = {[6] = {of_6, sizeof of_6 / sizeof of_6[0]},
              [7] = {of_7, sizeof of_7 / sizeof of_7[0]},
              [8] = {of_8, sizeof of_8 / sizeof of_8[0]}};
    results_t first;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 6 || size > 8)
        stop("6 to 8 ranks are expected");
    const placed_t *const placed = of[size].placed;
    const int n = of[size].n;
    const int differ = compare(placed, n, "1", &first);
    const int by_rank = differ_by_rank(&first);
    const int without = compare(placed, n, "0", &first);
    const int refused = refuses_other_strategies();
    const int in_order = composes_in_order(&placed[4]);
    if (rank == 0)
        printf("reproducible: %d results differ; without: %d; between ranks: %d; other strategies "
               "%s; maps %s\n",
               differ, without, by_rank, refused ? "refused" : "taken",
               in_order ? "in order" : "out of order");
    MPI_Finalize();
    return differ || !without || by_rank || !refused || !in_order;
}
