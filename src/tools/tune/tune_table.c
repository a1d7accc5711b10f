#include "tools/tune/tune.h"

#include "compose/strategy/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of the whole vector. At the smallest, messages are all that counts. */
enum { LAST_BYTES = 8 << 20 };
static const size_t sizes[] = {64,       512,       4 << 10, 16 << 10,
                               64 << 10, 256 << 10, 1 << 20, LAST_BYTES};
enum { N_SIZES = MC_COUNT(sizes), MOST_ROWS = 96 };
_Static_assert((int)N_SIZES <= (int)MC_MEASURED_SIZES, "room for all times");
_Static_assert(N_SIZES * 8 <= MC_MEASURED_ROWS, "a strategy of each collective for each size");

/* Of the runs of a cell together in one round. */
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
    int32_t dim; /* of the line */
    meshcoll_t *whole;
    char *in, *out;
    int32_t n_sizes, n_rows;
    double bytes[N_SIZES];             /* of the whole vector, rounded to what can be cut */
    int32_t single[MC_MAX_ALGORITHMS]; /* the row of each algorithm alone, or -1 */
    row_t row[MOST_ROWS];
};

static void free_table(mc_tune_table_t *t)
{
    for (int32_t k = 0; k < t->n_rows; k++)
        for (int32_t i = 0; i < t->n_sizes; i++)
            meshcoll_free(t->row[k].cell[i].request);
    mc_tune_vector_free(t->in);
    mc_tune_vector_free(t->out);
    free(t);
}

/* Cells ------------------------------------------------------------------------------------------ */

static size_t bytes_at(mc_placement_t placement, bool is_root, size_t whole, size_t block)
{
    if (placement == MC_SHARD)
        return block;
    return placement != MC_ROOT || is_root ? whole : 0;
}

/* A broadcast has one buffer, as in MPI. */
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

static int open_cell(const mc_tune_table_t *t, row_t *row, int32_t i)
{
    const size_t size = (size_t)t->mesh->size, block = (size_t)t->bytes[i] / sizeof(float) / size;
    const bool has_blocks = mc_move_has_blocks(&mc_moves[row->collective]);
    cell_t *const cell = &row->cell[i];
    cell->used = used_by(t, row->collective, block * sizeof(float));
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = row->collective,
                                  .in = cell->used.in,
                                  .out = cell->used.out,
                                  .count = has_blocks ? block : block * size,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM,
                                  .strategy = row->strategy};
    const int status = meshcoll_init(t->whole, &args, &cell->request);
    if (!status)
        find_repeats(t, cell);
    return status;
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

/* Opens a row of one or two algorithms, unless there is one already. *row: its index. */
static int add_row(mc_tune_table_t *t, meshcoll_collective_t collective, int32_t first,
                   int32_t second, int32_t *row)
{
    const int32_t algorithm[] = {first, second};
    row_t *const new = &t->row[t->n_rows];
    int status = MESHCOLL_OK;
    if (t->n_rows == MOST_ROWS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "a table of %d strategies is full", MOST_ROWS);
    mc_text_t text = mc_text(new->strategy, sizeof new->strategy);
    for (size_t i = 0; i < MC_COUNT(algorithm) && algorithm[i] >= 0; i++) {
        const mc_algorithm_t *const a = &mc_algorithms[algorithm[i]];
        mc_text_add(&text, "%s%s:%s(%s)", i ? " " : "", meshcoll_collective_name(a->collective),
                    a->name, t->mesh->dim[t->dim].name);
    }
    new->collective = collective;
    for (*row = 0; *row < t->n_rows; ++*row)
        if (t->row[*row].collective == collective &&
            strcmp(t->row[*row].strategy, new->strategy) == 0)
            return MESHCOLL_OK;
    t->n_rows++;
    for (int32_t i = 0; i < t->n_sizes && !status; i++)
        status = open_cell(t, new, i);
    return status;
}

static int add_singles(mc_tune_table_t *t)
{
    int status = MESHCOLL_OK;
    for (int32_t a = 0; a < mc_n_algorithms && !status; a++) {
        const bool left_out = mc_algorithms[a].composite || mc_algorithms[a].plane;
        t->single[a] = -1;
        if (!left_out)
            status = add_row(t, mc_algorithms[a].collective, a, -1, &t->single[a]);
    }
    return status;
}

/* The algorithm that was the fastest alone at size `i`. */
static int32_t fastest(const mc_tune_table_t *t, int32_t i, mc_choices_t left)
{
    int32_t best = mc_choices_take(&left);
    while (left) {
        const int32_t a = mc_choices_take(&left);
        if (t->row[t->single[a]].cell[i].once < t->row[t->single[best]].cell[i].once)
            best = a;
    }
    return best;
}

/* Adds, for a small, a medium and a large vector, the two algorithms that were the fastest alone. */
static int add_pair(mc_tune_table_t *t, const mc_graph_t *graph, const mc_hop_t *first,
                    const mc_hop_t *second)
{
    const int32_t some[] = {0, t->n_sizes / 2, t->n_sizes - 1};
    int32_t row;
    int status = MESHCOLL_OK;
    for (size_t k = 0; k < MC_COUNT(some) && !status; k++)
        status = add_row(t, graph->collective, fastest(t, some[k], mc_graph_choices(graph, first)),
                         fastest(t, some[k], mc_graph_choices(graph, second)), &row);
    return status;
}

static int add_pairs_of(mc_tune_table_t *t, const mc_graph_t *graph)
{
    static mc_hop_t first[MC_MAX_HOPS], second[MC_MAX_HOPS];
    const mc_node_t start = mc_graph_start(graph);
    const int32_t firsts = mc_graph_hops(graph, &start, first);
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < firsts; i++) {
        const mc_node_t middle = mc_graph_after(&start, &first[i]);
        const int32_t seconds = mc_graph_hops(graph, &middle, second);
        for (int32_t k = 0; k < seconds && !status; k++) {
            const mc_node_t end = mc_graph_after(&middle, &second[k]);
            /* an alltoall that gathers sends the vector once per rank: too long to be timed */
            if (mc_graph_ended(graph, &end) && !first[i].gathered && !second[k].gathered)
                status = add_pair(t, graph, &first[i], &second[k]);
        }
    }
    return status;
}

static int add_pairs(mc_tune_table_t *t)
{
    int status = MESHCOLL_OK;
    for (int c = 0; c < MESHCOLL_COLLECTIVES && !status; c++) {
        const mc_graph_t graph = mc_graph((meshcoll_collective_t)c, t->mesh, false, NULL);
        status = add_pairs_of(t, &graph);
    }
    return status;
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

/* The only dimension longer than 1, or -1. */
static int32_t line_of(const mc_mesh_t *mesh)
{
    int32_t line = -1;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        if (mesh->dim[d].extent > 1 && line >= 0)
            return -1;
        line = mesh->dim[d].extent > 1 ? d : line;
    }
    return line;
}

int mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_table_t **table)
{
    const int32_t line = line_of(&cluster->mesh);
    *table = NULL;
    if (line < 0 || !mc_tls_is_memory(cluster->tls[line]))
        return MESHCOLL_OK;
    mc_tune_table_t *const t = mc_tune_allocate(sizeof *t);
    const size_t bytes = LAST_BYTES + (size_t)cluster->mesh.size * sizeof(float);
    t->mesh = &cluster->mesh;
    t->dim = line;
    t->whole = whole;
    t->in = mc_tune_vector(bytes);
    if (!mc_tune_on_device())
        memset(t->in, 0, bytes); /* untouched memory would map to a single page */
    t->out = mc_tune_vector(bytes);
    set_sizes(t);
    int status = add_singles(t);
    if (!status)
        status = add_pairs(t);
    if (status) {
        free_table(t);
        return status;
    }
    drop_slow(t);
    *table = t;
    return MESHCOLL_OK;
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

static bool is_candidate(const mc_tune_table_t *t, int32_t row, meshcoll_collective_t collective)
{
    return t->row[row].collective == collective && !t->row[row].dropped;
}

/* Sum over the sizes of the logarithms of the times. */
static double mean_of(const mc_tune_table_t *t, const row_t *row)
{
    double sum = 0;
    for (int32_t i = 0; i < t->n_sizes; i++)
        sum += log(mc_series_median(&row->cell[i].series));
    return sum;
}

static const row_t *best_overall(const mc_tune_table_t *t, meshcoll_collective_t collective)
{
    const row_t *best = NULL;
    double least = INFINITY;
    for (int32_t k = 0; k < t->n_rows; k++) {
        const double mean = is_candidate(t, k, collective) ? mean_of(t, &t->row[k]) : INFINITY;
        if (mean < least) {
            least = mean;
            best = &t->row[k];
        }
    }
    return best;
}

static const row_t *best_at(const mc_tune_table_t *t, meshcoll_collective_t collective, int32_t i)
{
    const row_t *best = NULL;
    double least = INFINITY;
    for (int32_t k = 0; k < t->n_rows; k++) {
        const double time =
            is_candidate(t, k, collective) ? mc_series_median(&t->row[k].cell[i].series) : INFINITY;
        if (time < least) {
            least = time;
            best = &t->row[k];
        }
    }
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

/* To three digits, the precision of a measurement, in the unit in which it is printed. */
static double rounded(double seconds)
{
    char text[32];
    double unit = 1;
    while (unit < 1e12 && seconds * unit < 1)
        unit *= 1e3;
    mc_number_print(text, sizeof text, "%.3g", seconds * unit);
    return mc_number_read(text, NULL) / unit;
}

static int write_row(const mc_tune_table_t *t, const row_t *row, mc_measured_t *measured)
{
    double seconds[N_SIZES];
    for (int32_t i = 0; i < t->n_sizes; i++)
        seconds[i] = rounded(mc_series_median(&row->cell[i].series));
    return mc_measured_add(measured, row->collective, row->strategy, seconds);
}

static int write_rows(const mc_tune_table_t *t, meshcoll_collective_t collective,
                      mc_measured_t *measured)
{
    const row_t *const overall = best_overall(t, collective);
    int status = overall ? write_row(t, overall, measured) : MESHCOLL_OK;
    for (int32_t i = 0; overall && i < t->n_sizes && !status; i++) {
        const row_t *const best = best_at(t, collective, i);
        if (!has_row(measured, best) && is_faster(best, overall, i))
            status = write_row(t, best, measured);
    }
    return status;
}

int mc_tune_table_close(mc_tune_table_t *t, mc_measured_t *measured)
{
    static mc_measured_t found;
    int status = MESHCOLL_OK;
    found = (mc_measured_t){0};
    if (t) {
        found.n_sizes = t->n_sizes;
        memcpy(found.bytes, t->bytes, sizeof t->bytes);
        for (int c = 0; c < MESHCOLL_COLLECTIVES && !status; c++)
            status = write_rows(t, (meshcoll_collective_t)c, &found);
        free_table(t);
    }
    if (!status)
        *measured = found;
    return status;
}
