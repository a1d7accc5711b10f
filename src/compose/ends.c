#include "compose/ends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parts of any segment, and of all bytes. */
enum { BOTH_PARTS = 2 * MC_MOST_PARTS };

typedef struct {
    mc_ends_t *ends;
    const mc_bounds_t *b;
    const mc_cut_t *cut[MC_MOST_CUTS]; /* that may have a path within the limit */
    int32_t n_cuts, keen;              /* the one that had the last */
    double limit;
    double *step;   /* by step and part */
    double *before; /* by node and part: the least on the way to it */
} finding_t;

static int32_t n_parts(const mc_bounds_t *b)
{
    return 2 * b->kind.n_priced;
}

static bool is_end(const mc_priced_t *graph, int32_t node)
{
    return graph->first_hop[node] == graph->first_hop[node + 1];
}

static double *least_from(const mc_ends_t *e, const mc_bounds_t *b, int32_t node, int32_t kind)
{
    return e->least + ((size_t)node * (size_t)e->n_kinds + (size_t)kind) * (size_t)n_parts(b);
}

/* Of a path with that load, if the rest of it has those parts. */
static double seconds_with(const mc_bounds_t *b, const mc_cut_t *cut, const double *load,
                           const double *parts)
{
    const int32_t n = b->kind.n_priced;
    double sum[MC_MOST_PARTS];
    for (int32_t k = 0; k < n; k++)
        sum[k] = load[k] + parts[k] * cut->times.fixed[k] + parts[n + k] * cut->times.moved[k];
    return mc_bounds_whole(b, sum);
}

/* Is there a cut by which a path with those parts is within the limit? */
static bool is_wanted(finding_t *f, const double *parts)
{
    const double none[MC_MOST_PARTS] = {0};
    for (int32_t i = 0, c = f->keen; i < f->n_cuts; i++, c = c + 1 < f->n_cuts ? c + 1 : 0)
        if (seconds_with(f->b, f->cut[c], none, parts) <= f->limit) {
            f->keen = c;
            return true;
        }
    return false;
}

static void fill_steps(finding_t *f)
{
    const mc_bounds_t *const b = f->b;
    const size_t n = (size_t)b->kind.n_priced;
    for (size_t i = 0; i < (size_t)b->graph->n_steps; i++) {
        memcpy(f->step + 2 * n * i, b->fixed + (size_t)b->kind.n * i, sizeof *f->step * n);
        memcpy(f->step + 2 * n * i + n, b->moved + (size_t)b->kind.n * i, sizeof *f->step * n);
    }
}

static void lower_sums(double *restrict least, const double *restrict a, const double *restrict b,
                       int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        const double sum = a[k] + b[k];
        least[k] = sum < least[k] ? sum : least[k];
    }
}

static void lower(double *restrict least, const double *restrict a, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        least[k] = a[k] < least[k] ? a[k] : least[k];
}

/* Hops lead to lower nodes. */
static void fill_before(finding_t *f, double *at_group)
{
    const mc_priced_t *const graph = f->b->graph;
    const size_t n = (size_t)n_parts(f->b), start = (size_t)graph->n_nodes - 1;
    for (size_t g = 0; g < (size_t)graph->n_groups; g++) {
        const mc_priced_group_t group = graph->group[g];
        memcpy(at_group + n * g, f->step + n * (size_t)group.first, sizeof *at_group * n);
        for (int32_t i = group.first + 1; i < group.first + group.n; i++)
            lower(at_group + n * g, f->step + n * (size_t)i, (int32_t)n);
    }
    for (size_t i = 0; i < n * start; i++)
        f->before[i] = INFINITY;
    memset(f->before + n * start, 0, sizeof *f->before * n);
    for (int32_t node = graph->n_nodes; node-- > 0;)
        for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++)
            lower_sums(f->before + n * (size_t)graph->hop[h].next, f->before + n * (size_t)node,
                       at_group + n * (size_t)graph->hop[h].group, (int32_t)n);
}

/* The wire that a last phase keeps busiest. */
static int32_t kind_of(const mc_bounds_t *b, const double *parts)
{
    const mc_load_kind_t *const kind = &b->kind;
    const int32_t n = kind->n_priced;
    double busy[MC_MAX_DIMS];
    int32_t most = 0;
    for (int32_t w = 0; w < kind->n_wires; w++)
        busy[w] = parts[1 + w] + parts[n + 1 + w];
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const int32_t part = 1 + kind->n_busy + MC_SHAPED_PARTS * s + 1;
        busy[kind->shaped[s].wire] += parts[part] + parts[n + part];
    }
    for (int32_t w = 1; w < kind->n_wires; w++)
        most = busy[w] > busy[most] ? w : most;
    return most;
}

/* Ends that go on by this step. */
static void add_step(finding_t *f, int32_t node, int32_t next, int32_t step)
{
    const int32_t n = n_parts(f->b);
    const double *const before = f->before + (size_t)n * (size_t)node;
    const double *const by = f->step + (size_t)n * (size_t)step;
    for (mc_end_set_t left = f->ends->kinds[next]; left; left &= left - 1) {
        const int32_t after = __builtin_ctz(left);
        const int32_t kind = is_end(f->b->graph, next) ? kind_of(f->b, by) : after;
        const double *const rest = least_from(f->ends, f->b, next, after);
        double end[BOTH_PARTS], all[BOTH_PARTS];
        for (int32_t k = 0; k < n; k++) {
            end[k] = by[k] + rest[k];
            all[k] = before[k] + end[k];
        }
        if (!is_wanted(f, all))
            continue;
        lower(least_from(f->ends, f->b, node, kind), end, n);
        f->ends->kinds[node] |= UINT32_C(1) << kind;
    }
}

static void fill_ends(finding_t *f)
{
    const mc_priced_t *const graph = f->b->graph;
    const size_t n = (size_t)n_parts(f->b) * (size_t)f->ends->n_kinds;
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        double *const least = least_from(f->ends, f->b, node, 0);
        const bool ended = is_end(graph, node);
        for (size_t k = 0; k < n; k++)
            least[k] = ended ? 0 : INFINITY;
        f->ends->kinds[node] = ended;
        for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++) {
            const mc_priced_group_t group = graph->group[graph->hop[h].group];
            for (int32_t i = group.first; i < group.first + group.n; i++)
                add_step(f, node, graph->hop[h].next, i);
        }
    }
}

int mc_ends_find(mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut, int32_t n_cuts,
                 double limit)
{
    const size_t n = (size_t)n_parts(b), n_nodes = (size_t)b->graph->n_nodes;
    finding_t f = {.ends = e, .b = b, .limit = limit};
    for (int32_t c = 0; c < n_cuts; c++)
        if (cut[c].bound <= limit)
            f.cut[f.n_cuts++] = &cut[c];
    e->n_kinds = b->kind.n_wires;
    e->kinds = malloc(sizeof *e->kinds * n_nodes);
    e->least = malloc(sizeof *e->least * n * n_nodes * (size_t)e->n_kinds);
    f.step = malloc(sizeof *f.step * n * (size_t)b->graph->n_steps);
    f.before = malloc(sizeof *f.before * n * n_nodes);
    double *const at_group = malloc(sizeof *at_group * n * (size_t)b->graph->n_groups);
    e->known = e->kinds && e->least && f.step && f.before && at_group;
    if (e->known) {
        fill_steps(&f);
        fill_before(&f, at_group);
        fill_ends(&f);
    }
    free(f.step);
    free(f.before);
    free(at_group);
    return e->known ? MESHCOLL_OK : mc_fail_memory("the planner's bounds of ends");
}

void mc_ends_free(mc_ends_t *e)
{
    free(e->kinds);
    free(e->least);
    *e = (mc_ends_t){0};
}

mc_end_set_t mc_ends_within(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut,
                            const double *load, int32_t node, double limit, mc_end_set_t ends)
{
    mc_end_set_t within = 0;
    for (ends &= e->kinds[node]; ends; ends &= ends - 1) {
        const int32_t kind = __builtin_ctz(ends);
        if (seconds_with(b, cut, load, least_from(e, b, node, kind)) <= limit)
            within |= UINT32_C(1) << kind;
    }
    return within;
}

double mc_ends_bound(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut)
{
    const double none[MC_MOST_PARTS] = {0};
    const int32_t start = b->graph->n_nodes - 1;
    double least = INFINITY;
    for (mc_end_set_t left = e->kinds[start]; left; left &= left - 1)
        least =
            fmin(least, seconds_with(b, cut, none, least_from(e, b, start, __builtin_ctz(left))));
    return least;
}
