#include "tools/tune_points.h"

#include <meshcoll/meshcoll.h>

#include "compose/placement.h"
#include "tools/tune_batch.h"
#include "tools/tune_fit.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the vectors, from a cache line to more than caches hold: where they pass from a cache to the next one times
 * bend, and the sizes lie closer. */
static const size_t sizes[] = {64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20};
enum { N_POINTS = MC_COUNT(sizes), LAST_BYTES = 8 << 20 };
_Static_assert((int)N_POINTS <= (int)MC_LINK_POINTS, "a link has room for all sizes");

/* Of a batch: seconds of runs, and how many. More rounds, in which all have their turn, tell more than more runs in a
 * row, which share what happens beside them. */
static const double least_seconds = 2e-3;
enum { LEAST_RUNS = 2, MOST_RUNS = 16 };

typedef struct {
    meshcoll_request_t *request;
    mc_used_t used;
    mc_series_t series;
} row_t;

/* What the fit wants, then algorithms that none of these has by itself. */
enum { MOST_ROWS = MC_TUNE_PROBES + MC_MAX_ALGORITHMS };

struct mc_tune_points {
    const mc_mesh_t *mesh;
    meshcoll_t *whole;
    char *in, *out;
    int32_t n_probes, n_rows, n;
    mc_tune_probe_t probe[MOST_ROWS];
    int32_t single[MC_MAX_ALGORITHMS]; /* the row of each algorithm, or -1 */
    double bytes[N_POINTS];            /* of the whole vector, as it can be cut */
    row_t row[N_POINTS][MOST_ROWS];
};

static void free_points(mc_tune_points_t *p)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = 0; k < p->n_rows; k++)
            meshcoll_free(p->row[i][k].request);
    free(p->in);
    free(p->out);
    free(p);
}

static size_t bytes_at(mc_placement_t placement, bool is_root, size_t whole, size_t block)
{
    if (placement == MC_SHARD)
        return block;
    return placement != MC_ROOT || is_root ? whole : 0;
}

/* A broadcast has one buffer, as in MPI. */
static mc_used_t used_by(const mc_tune_points_t *p, meshcoll_collective_t collective, size_t block)
{
    const mc_move_t *const move = &mc_moves[collective];
    const bool is_root = meshcoll_rank(p->whole) == 0;
    const size_t whole = block * (size_t)p->mesh->size;
    return (mc_used_t){.in = p->in,
                       .out = collective == MESHCOLL_BCAST ? p->in : p->out,
                       .in_bytes = bytes_at(move->from, is_root, whole, block),
                       .out_bytes = bytes_at(move->to, is_root, whole, block)};
}

/* The first runs connect and warm up. */
static void find_repeats(const mc_tune_points_t *p, row_t *row)
{
    enum { RUNS = 3 };
    double once = 0;
    for (int run = 0; run < RUNS && once < least_seconds; run++) {
        row->series = (mc_series_t){.repeats = 1};
        mc_batch_anew(p->whole, row->request, &row->used, &row->series);
        once = row->series.time[0];
    }
    const double repeats = least_seconds / once;
    row->series = (mc_series_t){.repeats = repeats < MOST_RUNS ? (int32_t)repeats : MOST_RUNS};
    if (row->series.repeats < LEAST_RUNS)
        row->series.repeats = LEAST_RUNS;
}

static int open_row(mc_tune_points_t *p, int32_t i, const mc_tune_probe_t *probe, row_t *row)
{
    const size_t size = (size_t)p->mesh->size, block = (size_t)p->bytes[i] / sizeof(float) / size;
    const bool has_blocks = mc_move_has_blocks(&mc_moves[probe->collective]);
    row->used = used_by(p, probe->collective, block * sizeof(float));
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = probe->collective,
                                  .in = row->used.in,
                                  .out = row->used.out,
                                  .count = has_blocks ? block : block * size,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM,
                                  .strategy = probe->strategy};
    const int status = meshcoll_init(p->whole, &args, &row->request);
    if (!status)
        find_repeats(p, row);
    return status;
}

/* Every rank gets a part, so that the first sizes may be one and the same on many ranks. */
static void set_sizes(mc_tune_points_t *p)
{
    const size_t whole = (size_t)p->mesh->size * sizeof(float);
    for (int32_t i = 0; i < N_POINTS; i++) {
        const double cut = (double)((sizes[i] + whole - 1) / whole * whole);
        if (!p->n || cut > p->bytes[p->n - 1])
            p->bytes[p->n++] = cut;
    }
}

/* The row of an algorithm, which may be a new one; -1: it is not timed. */
static int32_t single_row(mc_tune_points_t *p, int32_t algorithm)
{
    mc_tune_probe_t *const last = &p->probe[p->n_rows];
    if (!mc_tune_single(p->mesh, algorithm, last))
        return -1;
    int32_t k = 0;
    while (strcmp(p->probe[k].strategy, last->strategy) != 0)
        k++;
    p->n_rows += k == p->n_rows;
    return k;
}

static int open_rows(mc_tune_points_t *p)
{
    int status = MESHCOLL_OK;
    while (mc_tune_probe(p->mesh, p->n_probes, &p->probe[p->n_probes]))
        p->n_probes++;
    p->n_rows = p->n_probes;
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        p->single[a] = single_row(p, a);
    set_sizes(p);
    for (int32_t i = 0; i < p->n && !status; i++)
        for (int32_t k = 0; k < p->n_rows && !status; k++)
            status = open_row(p, i, &p->probe[k], &p->row[i][k]);
    return status;
}

int mc_tune_points_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_points_t **points)
{
    mc_tune_probe_t probe;
    *points = NULL;
    if (!mc_tune_probe(&cluster->mesh, 0, &probe) || !mc_tune_is_pulled(cluster, probe.dim))
        return MESHCOLL_OK;
    mc_tune_points_t *const p = mc_tune_allocate(sizeof *p);
    const size_t bytes = LAST_BYTES + (size_t)cluster->mesh.size * sizeof(float);
    p->mesh = &cluster->mesh;
    p->whole = whole;
    p->in = mc_tune_allocate(bytes);
    memset(p->in, 0, bytes); /* untouched it would be one page, again and again */
    p->out = mc_tune_allocate(bytes);
    const int status = open_rows(p);
    if (status)
        free_points(p);
    else
        *points = p;
    return status;
}

void mc_tune_points_run(mc_tune_points_t *p)
{
    for (int32_t i = 0; p && i < p->n; i++)
        for (int32_t k = 0; k < p->n_rows; k++) {
            row_t *const row = &p->row[i][k];
            mc_batch_anew(p->whole, row->request, &row->used, &row->series);
        }
}

int mc_tune_points_close(mc_tune_points_t *p, mc_tuning_t *tuning)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; p && i < p->n && !status; i++) {
        double seconds[MC_TUNE_PROBES];
        for (int32_t k = 0; k < p->n_probes; k++)
            seconds[k] = mc_series_median(&p->row[i][k].series);
        status = mc_tune_fit_at(p->mesh, seconds, p->bytes[i], tuning->point, i, &tuning->point[i]);
        for (int32_t a = 0; a < mc_n_algorithms; a++)
            if (p->single[a] >= 0)
                tuning->single[i][a] = mc_series_median(&p->row[i][p->single[a]].series);
    }
    tuning->n_points = p ? p->n : 0;
    if (p)
        free_points(p);
    return status;
}
