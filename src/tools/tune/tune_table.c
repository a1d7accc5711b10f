#include "tools/tune/tune.h"

#include "compose/planner/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of the whole vector. At the smallest, messages are all that counts. */
enum { LAST_BYTES = 8 << 20 };
static const size_t sizes[] = {64,       512,       4 << 10, 16 << 10,
                               64 << 10, 256 << 10, 1 << 20, LAST_BYTES};
enum { N_SIZES = MC_COUNT(sizes) };
/* So many of the planner's list are tried at each size, and none that it finds dearer than `within` times the best. */
enum { CANDIDATES = 6, ALL = -1 };
static const double within = 2;
_Static_assert((int)N_SIZES <= (int)MC_MEASURED_SIZES, "room for all times");
_Static_assert(N_SIZES * 8 <= MC_MEASURED_ROWS, "a strategy of each collective for each size");

/* The runs of a cell in one round take at least so long together. */
static const double least_seconds = 2e-3;
enum { LEAST_RUNS = 3, MOST_RUNS = 24 };
_Static_assert((int)MOST_RUNS <= (int)MC_MOST_ANEW, "all runs are timed");

typedef struct {
    meshcoll_request_t *request;
    mc_used_t used;
    mc_series_t series;
    double once; /* seconds, before all rounds */
} cell_t;

/* A strategy at all sizes. */
typedef struct {
    meshcoll_collective_t collective;
    char strategy[MC_MEASURED_TEXT];
    cell_t cell[N_SIZES];
    bool dropped;
} row_t;

struct mc_tune_table {
    const mc_mesh_t *mesh;
    meshcoll_t *whole;
    char *in, *out;
    int32_t n_sizes, n_rows;
    double bytes[N_SIZES]; /* of the whole vector, rounded to what can be cut */
    row_t *row;
    uint32_t capacity; /* rows */
};

/* Cells ------------------------------------------------------------------------------------------ */

static size_t bytes_at(mc_placement_t placement, bool is_root, size_t whole, size_t block)
{
    if (placement == MC_SHARD)
        return block;
    return placement != MC_ROOT || is_root ? whole : 0;
}

static mc_used_t used_by(const mc_tune_table_t *t, meshcoll_collective_t collective, size_t block)
{
    const mc_move_t *const move = &mc_moves[collective];
    const bool is_root = meshcoll_rank(t->whole) == 0;
    const size_t whole = block * (size_t)t->mesh->size;
    return (mc_used_t){.in = t->in,
                       .out = collective == MESHCOLL_BCAST ? t->in : t->out,
                       .in_bytes = bytes_at(move->from, is_root, whole, block),
                       .out_bytes = bytes_at(move->to, is_root, whole, block)};
}

/* The first runs set up connections and warm the caches. */
static void find_repeats(const mc_tune_table_t *t, cell_t *cell)
{
    enum { RUNS = 3 };
    double once = 0;
    for (int run = 0; run < RUNS && once < least_seconds; run++) {
        cell->series = (mc_series_t){.repeats = 1};
        mc_batch_anew(t->whole, cell->request, &cell->used, &cell->series);
        once = mc_series_median(&cell->series);
        cell->once = run == 0 || once < cell->once ? once : cell->once;
    }
    const double repeats = least_seconds / once;
    cell->series = (mc_series_t){.repeats = repeats < MOST_RUNS ? (int32_t)repeats : MOST_RUNS};
    if (cell->series.repeats < LEAST_RUNS)
        cell->series.repeats = LEAST_RUNS;
}

static void open_cell(const mc_tune_table_t *t, row_t *row, int32_t i)
{
    cell_t *const cell = &row->cell[i];
    const size_t bytes = (size_t)t->bytes[i];
    cell->used = used_by(t, row->collective, bytes / (size_t)t->mesh->size);
    cell->request = mc_tune_request(t->whole, row->collective, row->strategy, bytes, t->in, t->out);
    find_repeats(t, cell);
}

/* Every rank has a part of the vector, so that the smallest sizes may coincide on many ranks. */
static void set_sizes(mc_tune_table_t *t)
{
    const size_t whole = (size_t)t->mesh->size * sizeof(float);
    for (int32_t i = 0; i < N_SIZES; i++) {
        const double cut = (double)((sizes[i] + whole - 1) / whole * whole);
        if (!t->n_sizes || cut > t->bytes[t->n_sizes - 1])
            t->bytes[t->n_sizes++] = cut;
    }
}

/* Rows ------------------------------------------------------------------------------------------- */

/* Opens a row, unless there is one of the strategy. */
static void add_row(mc_tune_table_t *t, meshcoll_collective_t collective,
                    const mc_strategy_t *strategy)
{
    char text[sizeof t->row->strategy];
    mc_text_t out = mc_text(text, sizeof text);
    mc_strategy_print(strategy, t->mesh, &out);
    for (int32_t k = 0; k < t->n_rows; k++)
        if (t->row[k].collective == collective && !strcmp(t->row[k].strategy, text))
            return;
    row_t *const rows = mc_grown(t->row, (uint32_t)t->n_rows, &t->capacity, sizeof *rows);
    mc_tune_check(rows ? MESHCOLL_OK : mc_fail_memory("strategies to try"), "memory");
    t->row = rows;
    row_t *const new = &rows[t->n_rows++];
    memset(new, 0, sizeof *new);
    new->collective = collective;
    strcpy(new->strategy, text);
    for (int32_t i = 0; i < t->n_sizes; i++)
        open_cell(t, new, i);
}

/* What the planner finds the cheapest at this size, and what it finds not much dearer. */
static void add_candidates(mc_tune_table_t *t, const mc_links_t *links,
                           meshcoll_collective_t collective, double bytes)
{
    const mc_planner_query_t query = {.bytes = bytes, .max_segments = 1, .most = CANDIDATES};
    mc_ranking_t ranking;
    mc_tune_check(mc_planner_rank(collective, t->mesh, links, &query, &ranking), "strategies");
    for (uint32_t i = 0; i < ranking.n; i++)
        if (ranking.list[i].seconds <= within * ranking.list[0].seconds)
            add_row(t, collective, &ranking.list[i].strategy);
    free(ranking.list);
}

static double least_once(const mc_tune_table_t *t, meshcoll_collective_t collective, int32_t i)
{
    double least = INFINITY;
    for (int32_t k = 0; k < t->n_rows; k++)
        if (t->row[k].collective == collective && t->row[k].cell[i].once < least)
            least = t->row[k].cell[i].once;
    return least;
}

/* Drops rows that were far behind the fastest at every size, so that there is time for the others. */
static void drop_slow(mc_tune_table_t *t)
{
    const double far = 1.5;
    for (int32_t k = 0; k < t->n_rows; k++) {
        row_t *const row = &t->row[k];
        row->dropped = true;
        for (int32_t i = 0; i < t->n_sizes; i++)
            if (row->cell[i].once <= far * least_once(t, row->collective, i))
                row->dropped = false;
    }
}

/* Is the mesh one line, in memory? */
static bool is_memory_line(const mc_cluster_t *c)
{
    const unsigned lines = mc_mesh_long(&c->mesh);
    return __builtin_popcount(lines) == 1 && mc_tls_is_memory(c->tls[__builtin_ctz(lines)]);
}

mc_tune_table_t *mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole,
                                    const mc_links_t *links)
{
    const size_t bytes = LAST_BYTES + (size_t)cluster->mesh.size * sizeof(float);
    if (!is_memory_line(cluster))
        return NULL;
    mc_tune_table_t *const t = mc_tune_allocate(sizeof *t);
    t->mesh = &cluster->mesh;
    t->whole = whole;
    t->in = mc_tune_vector(bytes);
    if (!mc_tune_on_device())
        memset(t->in, 0, bytes); /* untouched memory would map to a single page */
    t->out = mc_tune_vector(bytes);
    set_sizes(t);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        for (int32_t i = 0; i < t->n_sizes; i++)
            add_candidates(t, links, (meshcoll_collective_t)c, t->bytes[i]);
    drop_slow(t);
    return t;
}

void mc_tune_table_run(mc_tune_table_t *t)
{
    for (int32_t i = 0; t && i < t->n_sizes; i++)
        for (int32_t k = 0; k < t->n_rows; k++) {
            cell_t *const cell = &t->row[k].cell[i];
            if (!t->row[k].dropped)
                mc_batch_anew(t->whole, cell->request, &cell->used, &cell->series);
        }
}

/* Results ---------------------------------------------------------------------------------------- */

/* Returns the time at a size; ALL: the sum over the sizes of the logarithms of the times. */
static double time_of(const row_t *row, int32_t i)
{
    double sum = 0;
    if (i != ALL)
        return mc_series_median(&row->cell[i].series);
    for (int32_t k = 0; k < N_SIZES && row->cell[k].request; k++)
        sum += log(time_of(row, k));
    return sum;
}

static const row_t *best_at(const mc_tune_table_t *t, meshcoll_collective_t collective, int32_t i)
{
    const row_t *best = NULL;
    for (int32_t k = 0; k < t->n_rows; k++)
        if (t->row[k].collective == collective && !t->row[k].dropped &&
            (!best || time_of(&t->row[k], i) < time_of(best, i)))
            best = &t->row[k];
    return best;
}

/* Is row `a` faster than `b` at size `i`, by more than twice the error of the difference? */
static bool is_faster(const row_t *a, const row_t *b, int32_t i)
{
    const mc_estimate_t mine = mc_series_estimate(&a->cell[i].series),
                        others = mc_series_estimate(&b->cell[i].series);
    return others.value - mine.value > 2 * hypot(mine.error, others.error);
}

static bool has_row(const mc_measured_t *measured, const row_t *row)
{
    for (int32_t k = 0; k < measured->n_rows; k++)
        if (measured->row[k].collective == row->collective &&
            strcmp(measured->row[k].strategy, row->strategy) == 0)
            return true;
    return false;
}

static void write_row(const mc_tune_table_t *t, const row_t *row, mc_measured_t *measured)
{
    double seconds[N_SIZES];
    for (int32_t i = 0; i < t->n_sizes; i++)
        seconds[i] = mc_coarse(time_of(row, i), 0);
    mc_tune_check(mc_measured_add(measured, row->collective, row->strategy, seconds), "a row");
}

static void write_rows(const mc_tune_table_t *t, meshcoll_collective_t collective,
                       mc_measured_t *measured)
{
    const row_t *const overall = best_at(t, collective, ALL);
    if (overall)
        write_row(t, overall, measured);
    for (int32_t i = 0; overall && i < t->n_sizes; i++) {
        const row_t *const best = best_at(t, collective, i);
        if (!has_row(measured, best) && is_faster(best, overall, i))
            write_row(t, best, measured);
    }
}

void mc_tune_table_close(mc_tune_table_t *t, mc_measured_t *measured)
{
    *measured = (mc_measured_t){0};
    if (!t)
        return;
    measured->n_sizes = t->n_sizes;
    memcpy(measured->bytes, t->bytes, sizeof t->bytes);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        write_rows(t, (meshcoll_collective_t)c, measured);
    for (int32_t k = 0; k < t->n_rows; k++)
        for (int32_t i = 0; i < t->n_sizes; i++)
            meshcoll_free(t->row[k].cell[i].request);
    mc_tune_vector_free(t->in);
    mc_tune_vector_free(t->out);
    free(t->row);
    free(t);
}
