#include "tools/tune/tune_points.h"

#include <meshcoll/meshcoll.h>

#include "compose/algorithms/placement.h"
#include "tools/tune/tune_batch.h"
#include "tools/tune/tune_fit.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the vectors, from a cache line to more than the caches hold. The sizes are closer
 * where a vector outgrows a cache level. */
static const size_t sizes[] = {64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20};
enum { N_POINTS = MC_COUNT(sizes), LAST_BYTES = 8 << 20 };
_Static_assert((int)N_POINTS <= (int)MC_LINK_POINTS, "a link has room for all sizes");

/* Seconds and number of runs per batch. More rounds, in which all rows alternate, give more than
 * more runs in sequence, which share external load. */
static const double least_seconds = 2e-3;
enum { LEAST_RUNS = 2, MOST_RUNS = 16 };

typedef struct {
    meshcoll_request_t *request;
    mc_used_t used;
    mc_series_t series;
    double once; /* seconds, before all rounds */
} row_t;

/* Probes of the fit, then algorithms that no probe has alone, then pairs of algorithms. */
enum { MOST_ROWS = MC_TUNE_PROBES + MC_MAX_ALGORITHMS + MC_TUNE_PAIRS };

struct mc_tune_points {
    const mc_mesh_t *mesh;
    meshcoll_t *whole;
    char *in, *out;
    int32_t n_probes, n_alike, n, n_pairs;
    mc_tune_probe_t probe[N_POINTS][MOST_ROWS]; /* the first n_alike are the same at all sizes */
    int32_t n_rows[N_POINTS];
    int32_t single[MC_MAX_ALGORITHMS]; /* the row of each algorithm, or -1 */
    mc_tuned_pair_t pair[MC_TUNE_PAIRS];
    int32_t paired[N_POINTS][MC_TUNE_PAIRS]; /* the row of each pair */
    double bytes[N_POINTS];                  /* of the whole vector, rounded to what can be cut */
    row_t row[N_POINTS][MOST_ROWS];
};

static void free_points(mc_tune_points_t *p)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = 0; k < p->n_rows[i]; k++)
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

/* The first runs set up connections and warm the caches. */
static void find_repeats(const mc_tune_points_t *p, row_t *row)
{
    enum { RUNS = 3 };
    double once = 0;
    for (int run = 0; run < RUNS && once < least_seconds; run++) {
        row->series = (mc_series_t){.repeats = 1};
        mc_batch_anew(p->whole, row->request, &row->used, &row->series);
        once = row->series.time[0];
        row->once = run == 0 || once < row->once ? once : row->once;
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

/* Every rank has a part of the vector, so that the smallest sizes may coincide on many ranks. */
static void set_sizes(mc_tune_points_t *p)
{
    const size_t whole = (size_t)p->mesh->size * sizeof(float);
    for (int32_t i = 0; i < N_POINTS; i++) {
        const double cut = (double)((sizes[i] + whole - 1) / whole * whole);
        if (!p->n || cut > p->bytes[p->n - 1])
            p->bytes[p->n++] = cut;
    }
}

/* The index of the first probe equal to probe n; n where there is none. */
static int32_t find_row(const mc_tune_probe_t *probe, int32_t n)
{
    int32_t k = 0;
    while (probe[k].collective != probe[n].collective ||
           strcmp(probe[k].strategy, probe[n].strategy) != 0)
        k++;
    return k;
}

/* The row of an algorithm, a new one if necessary; -1: it is not timed. */
static int32_t single_row(mc_tune_points_t *p, int32_t algorithm)
{
    if (!mc_tune_single(p->mesh, algorithm, &p->probe[0][p->n_alike]))
        return -1;
    const int32_t k = find_row(p->probe[0], p->n_alike);
    p->n_alike += k == p->n_alike;
    return k;
}

/* The fastest algorithm at size `i`. */
static int32_t fastest(const mc_tune_points_t *p, int32_t i, mc_choices_t left)
{
    int32_t best = mc_choices_take(&left);
    while (left) {
        const int32_t a = mc_choices_take(&left);
        if (p->row[i][p->single[a]].once < p->row[i][p->single[best]].once)
            best = a;
    }
    return best;
}

static int open_pairs(mc_tune_points_t *p, int32_t i)
{
    int status = MESHCOLL_OK;
    for (int32_t k = 0; k < p->n_pairs && !status; k++) {
        mc_tuned_pair_t *const pair = &p->pair[k];
        const int32_t n = p->n_rows[i];
        pair->first[i] = fastest(p, i, pair->of.first);
        mc_tune_pair_probe(p->mesh, &pair->of, pair->first[i], &p->probe[i][n]);
        p->paired[i][k] = find_row(p->probe[i], n);
        if (p->paired[i][k] < n)
            continue;
        p->n_rows[i]++;
        status = open_row(p, i, &p->probe[i][n], &p->row[i][n]);
    }
    return status;
}

/* Pairs last: they start with the algorithm that was the fastest alone. */
static int open_size(mc_tune_points_t *p, int32_t i)
{
    int status = MESHCOLL_OK;
    if (i > 0)
        memcpy(p->probe[i], p->probe[0], (size_t)p->n_alike * sizeof p->probe[0][0]);
    while (p->n_rows[i] < p->n_alike && !status) {
        const int32_t k = p->n_rows[i]++;
        status = open_row(p, i, &p->probe[i][k], &p->row[i][k]);
    }
    return status ? status : open_pairs(p, i);
}

static void find_pairs(mc_tune_points_t *p)
{
    mc_tune_pair_t pair[MC_TUNE_PAIRS];
    p->n_pairs = mc_tune_pairs(p->mesh, pair);
    for (int32_t k = 0; k < p->n_pairs; k++)
        p->pair[k].of = pair[k];
}

static int open_rows(mc_tune_points_t *p)
{
    int status = MESHCOLL_OK;
    while (mc_tune_probe(p->mesh, p->n_probes, &p->probe[0][p->n_probes]))
        p->n_probes++;
    p->n_alike = p->n_probes;
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        p->single[a] = single_row(p, a);
    find_pairs(p);
    set_sizes(p);
    for (int32_t i = 0; i < p->n && !status; i++)
        status = open_size(p, i);
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
    memset(p->in, 0, bytes); /* untouched memory would map to a single page */
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
        for (int32_t k = 0; k < p->n_rows[i]; k++) {
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
        status = mc_tune_fit_at(p->mesh, seconds, p->bytes[i], tuning->point, i, i == 0,
                                &tuning->point[i]);
        for (int32_t a = 0; a < mc_n_algorithms; a++)
            if (p->single[a] >= 0)
                tuning->single[i][a] = mc_series_median(&p->row[i][p->single[a]].series);
        for (int32_t k = 0; k < p->n_pairs; k++)
            p->pair[k].seconds[i] = mc_series_median(&p->row[i][p->paired[i][k]].series);
    }
    tuning->n_points = p ? p->n : 0;
    tuning->n_pairs = p ? p->n_pairs : 0;
    for (int32_t k = 0; k < tuning->n_pairs; k++)
        tuning->pair[k] = p->pair[k];
    if (p)
        free_points(p);
    return status;
}
