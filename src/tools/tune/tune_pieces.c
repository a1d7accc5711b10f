/*
 * Measures up to which size messages between two ranks of a machine are faster in pieces than by a
 * direct copy. That depends on the cost of a system call and on the distance between the caches of
 * the cores. Both ways are timed alternately, with one sender and one receiver at a time.
 */
#include "tools/tune/tune.h"

#include <meshcoll/mpi.h>

#include "runtime/handle/handle.h"
#include "tools/tune/tune_batch.h"
#include "transport/shm/shm_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Message sizes, ascending. */
static const size_t sizes[] = {8 << 10, 16 << 10, 32 << 10, MC_SHM_EAGER};

static const struct {
    meshcoll_collective_t collective;
    const char *algorithm;
} probes[] = {{MESHCOLL_GATHER, "gather:star"},
              {MESHCOLL_SCATTER, "scatter:star"},
              {MESHCOLL_BCAST, "bcast:mst"},
              {MESHCOLL_REDUCE, "reduce:mst"}};

enum { N_SIZES = MC_COUNT(sizes), N_PROBES = MC_COUNT(probes), RUNS = 8 };
enum { READ, PIECES, WAYS };

typedef struct {
    meshcoll_request_t *request;
    mc_used_t used;
    mc_series_t series;
} row_t;

typedef struct {
    const char *dim;
    meshcoll_t *whole[WAYS];
    char *in, *out;
    row_t row[N_SIZES][N_PROBES][WAYS];
} finder_t;

static void open_row(finder_t *f, int size, int probe, int way)
{
    row_t *const row = &f->row[size][probe][way];
    const meshcoll_collective_t collective = probes[probe].collective;
    const size_t n = (size_t)meshcoll_size(f->whole[way]);
    const bool is_root = meshcoll_rank(f->whole[way]) == 0;
    const size_t of_in = collective == MESHCOLL_SCATTER ? (is_root ? n : 0) : 1;
    const size_t of_out = collective == MESHCOLL_GATHER ? (is_root ? n : 0) : 1;
    char strategy[64];
    snprintf(strategy, sizeof strategy, "%s(%s)", probes[probe].algorithm, f->dim);
    row->used = (mc_used_t){.in = f->in,
                            .out = collective == MESHCOLL_BCAST ? f->in : f->out,
                            .in_bytes = of_in * sizes[size],
                            .out_bytes = of_out * sizes[size]};
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = collective,
                                  .in = row->used.in,
                                  .out = row->used.out,
                                  .count = sizes[size] / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM,
                                  .strategy = strategy};
    mc_tune_check(meshcoll_init(f->whole[way], &args, &row->request), strategy);
    row->series.repeats = RUNS;
}

static void run_round(finder_t *f)
{
    for (int s = 0; s < N_SIZES; s++)
        for (int p = 0; p < N_PROBES; p++)
            for (int way = 0; way < WAYS; way++) {
                row_t *const row = &f->row[s][p][way];
                mc_batch_anew(f->whole[way], row->request, &row->used, &row->series);
            }
}

/* The limit with the least sum over all sizes, equally weighted. A limit covers all sizes up to
 * the next one that was slower. */
static size_t best_limit(finder_t *f)
{
    size_t best = MC_SHM_PAGE;
    double sum = 0, least = 0;
    for (int s = 0; s < N_SIZES; s++) {
        for (int p = 0; p < N_PROBES; p++)
            sum += log(mc_series_median(&f->row[s][p][PIECES].series) /
                       mc_series_median(&f->row[s][p][READ].series));
        if (sum < least) {
            least = sum;
            best = s + 1 < N_SIZES ? sizes[s + 1] - 1 : sizes[s];
        }
    }
    return best;
}

static void open_rows(finder_t *f)
{
    const size_t bytes = sizes[N_SIZES - 1] * (size_t)meshcoll_size(f->whole[READ]);
    f->in = mc_tune_allocate(bytes);
    f->out = mc_tune_allocate(bytes);
    for (int s = 0; s < N_SIZES; s++)
        for (int p = 0; p < N_PROBES; p++)
            for (int way = 0; way < WAYS; way++)
                open_row(f, s, p, way);
}

static void close_rows(finder_t *f)
{
    for (int s = 0; s < N_SIZES; s++)
        for (int p = 0; p < N_PROBES; p++)
            for (int way = 0; way < WAYS; way++)
                meshcoll_free(f->row[s][p][way].request);
    free(f->in);
    free(f->out);
}

/* On oversubscribed cores no sender helps, and without access to the memory of the peer all
 * messages are sent in pieces. */
static bool may_differ(const meshcoll_t *whole)
{
    return whole->access == MC_SHM_READ && !whole->crowded;
}

static double find(finder_t *f, double seconds)
{
    const double end = mc_now() + seconds;
    open_rows(f);
    do
        run_round(f);
    while (mc_tune_most(f->whole[READ], mc_now() - end) < 0);
    const size_t limit = best_limit(f);
    close_rows(f);
    return (double)limit;
}

double mc_tune_find_pieces(const mc_cluster_t *cluster, MPI_Comm comm, double seconds, int32_t *dim)
{
    mc_tune_probe_t probe;
    double limit = 0;
    *dim = 0;
    if (comm != MPI_COMM_WORLD || !mc_tune_probe(&cluster->mesh, 0, &probe) ||
        strcmp(cluster->tls[probe.dim], "shm") != 0)
        return 0;
    finder_t *const f = mc_tune_allocate(sizeof *f);
    f->dim = cluster->mesh.dim[probe.dim].name;
    f->whole[READ] = mc_tune_open(cluster, comm, MC_SHM_PAGE);
    if (may_differ(f->whole[READ])) {
        f->whole[PIECES] = mc_tune_open(cluster, comm, MC_SHM_EAGER);
        limit = find(f, seconds);
        meshcoll_destroy(f->whole[PIECES]);
    }
    meshcoll_destroy(f->whole[READ]);
    free(f);
    *dim = probe.dim;
    return limit;
}
