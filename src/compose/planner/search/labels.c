#include "compose/planner/search/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

static int make_room(const mc_bounds_t *b, mc_labels_t *l)
{
    if (l->n < l->room)
        return MESHCOLL_OK;
    const size_t room = l->room ? 2 * (size_t)l->room : FIRST_ROOM;
    mc_label_t *const label = realloc(l->label, sizeof *label * room);
    l->label = label ? label : l->label;
    double *const load = realloc(l->load, sizeof *load * room * (size_t)b->kind.n);
    l->load = load ? load : l->load;
    double *const mean = realloc(l->mean, sizeof *mean * room * (size_t)b->kind.n_means);
    l->mean = mean ? mean : l->mean;
    if (!label || !load || !mean)
        return mc_fail_memory("the planner's labels");
    l->room = (int32_t)room;
    return MESHCOLL_OK;
}

static void move_labels(const mc_bounds_t *b, mc_labels_t *l, int32_t from, size_t n, int32_t to)
{
    if (from == to)
        return;
    memmove(&l->label[to], &l->label[from], n * sizeof *l->label);
    memmove(mc_label_load(b, l, to), mc_label_load(b, l, from),
            n * (size_t)b->kind.n * sizeof *l->load);
    memmove(mc_label_mean(b, l, to), mc_label_mean(b, l, from),
            n * (size_t)b->kind.n_means * sizeof *l->mean);
}

/* A lower bound of the seconds of any strategy with a beginning of this kind and, from `node` on, the label
 * with `load` and `mean`. *own: the label's part of it; set only if it is within the limit by its means. */
static double least_of(const mc_bounds_t *b, const double *load, const double *mean, int32_t kind,
                       int32_t node, double *own)
{
    const double *const before = mc_bounds_before(b, kind, node);
    double sum[MC_MOST_WIDTH];
    for (int32_t m = 0; m < b->kind.n_means; m++) {
        sum[b->kind.n + m] = mean[m] + before[b->kind.n + m];
        if (sum[b->kind.n + m] > mc_bounds_limit(b))
            return sum[b->kind.n + m];
    }
    for (int32_t k = 0; k < b->kind.n; k++)
        sum[k] = load[k] + before[k];
    *own = mc_load_price(&b->kind, load);
    return mc_bounds_seconds(b, sum);
}

/* May the new label, whose load is at index l->n, be within the limit? Sets its kinds and rank. */
static bool is_within(const mc_bounds_t *b, const mc_labels_t *l, int32_t node, mc_label_t *label)
{
    const double *const load = mc_label_load(b, l, l->n), *const mean = mc_label_mean(b, l, l->n);
    double least = INFINITY;
    for (uint32_t left = label->kinds; left; left &= left - 1) {
        double own = 0;
        const double mine = least_of(b, load, mean, __builtin_ctz(left), node, &own);
        if (mine > mc_bounds_limit(b))
            label->kinds &= ~(left & -left);
        else if (mine < least) {
            least = mine;
            label->rank = least + own;
        }
    }
    return least < INFINITY;
}

/* May label `one` replace `other`? Numbers of segments above max_segments are allowed only if a phase needs them, so there
 * a label that needs them is not replaced by one that does not. */
static bool may_replace(const mc_bounds_t *b, const mc_label_t *one, const mc_label_t *other)
{
    return b->segments <= b->max_segments || one->needs || !other->needs;
}

/* Is the last label dominated by one of those from `first` on? */
static bool is_dominated(const mc_bounds_t *b, const mc_labels_t *l, int32_t first)
{
    const int32_t last = l->n - 1;
    const double *const load = mc_label_load(b, l, last);
    for (int32_t i = first; i < last; i++)
        if (mc_bounds_dominates(b, mc_label_load(b, l, i), true, load) &&
            may_replace(b, &l->label[i], &l->label[last]))
            return true;
    return false;
}

/* Drops the labels from `first` on that the last one dominates. */
static void drop_dominated(const mc_bounds_t *b, mc_labels_t *l, int32_t first)
{
    const int32_t last = l->n - 1;
    const double *const load = mc_label_load(b, l, last);
    int32_t n = first;
    for (int32_t i = first; i < last; i++)
        if (!mc_bounds_dominates(b, load, false, mc_label_load(b, l, i)) ||
            !may_replace(b, &l->label[last], &l->label[i]))
            move_labels(b, l, i, 1, n++);
    move_labels(b, l, last, 1, n++);
    l->n = n;
}

static void drop_worst(const mc_bounds_t *b, mc_labels_t *l, int32_t first)
{
    int32_t worst = l->n - 1;
    for (int32_t i = l->n - 2; i >= first; i--)
        worst = l->label[i].rank > l->label[worst].rank ? i : worst;
    move_labels(b, l, worst + 1, (size_t)(l->n - worst - 1), worst);
    l->n--;
}

/* Adds a label to a state unless it is above the limit or dominated. `most`: labels of a state. */
static int add_label(const mc_bounds_t *b, mc_labels_t *l, int32_t node, mc_label_t label,
                     int32_t most)
{
    const int32_t step = mc_label_step(label.phase);
    const int status = make_room(b, l);
    if (status)
        return status;
    const double *const by = mc_bounds_step(b, step);
    const double *const after = mc_label_load(b, l, label.next);
    const double *const mean = mc_label_mean(b, l, label.next);
    double *const load = mc_label_load(b, l, l->n);
    for (int32_t k = 0; k < b->kind.n; k++)
        load[k] = by[k] + after[k];
    for (int32_t m = 0; m < b->kind.n_means; m++)
        mc_label_mean(b, l, l->n)[m] = by[b->kind.n + m] + mean[m];
    label.kinds = l->label[label.next].kinds;
    if (!is_within(b, l, node, &label))
        return MESHCOLL_OK;
    label.needs = l->label[label.next].needs || mc_bounds_needed(b, step) == b->segments;
    l->label[l->n++] = label;
    if (is_dominated(b, l, l->first[node])) {
        l->n--;
        return MESHCOLL_OK;
    }
    drop_dominated(b, l, l->first[node]);
    if (l->n - l->first[node] > most)
        drop_worst(b, l, l->first[node]);
    return MESHCOLL_OK;
}

static int label_hop(const mc_bounds_t *b, mc_labels_t *l, int32_t node, int32_t h, int32_t most)
{
    const mc_priced_hop_t hop = b->graph->hop[h];
    const int32_t *const useful = b->useful + b->graph->group[hop.group].first;
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < b->n_useful[hop.group]; i++)
        for (int32_t next = l->first[hop.next]; next < l->first[hop.next + 1] && !status; next++) {
            const mc_label_t label = {.phase = mc_label_phase(h, useful[i]), .next = next};
            status = add_label(b, l, node, label, most);
        }
    return status;
}

static int label_end(const mc_bounds_t *b, mc_labels_t *l)
{
    const int status = make_room(b, l);
    if (status)
        return status;
    memset(mc_label_load(b, l, l->n), 0, sizeof *l->load * (size_t)b->kind.n);
    memset(mc_label_mean(b, l, l->n), 0, sizeof *l->mean * (size_t)b->kind.n_means);
    l->label[l->n++] = (mc_label_t){.next = -1, .kinds = (UINT32_C(1) << b->kind.n_wires) - 1};
    return MESHCOLL_OK;
}

int mc_labels_find(const mc_bounds_t *b, mc_labels_t *l, int32_t most)
{
    const mc_priced_t *const graph = b->graph;
    int status = MESHCOLL_OK;
    l->n = 0;
    for (int32_t node = 0; node < graph->n_nodes && !status; node++) {
        const int32_t first = graph->first_hop[node], end = graph->first_hop[node + 1];
        l->first[node] = l->n;
        if (first == end)
            status = label_end(b, l);
        for (int32_t h = first; h < end && !status; h++)
            status = label_hop(b, l, node, h, most);
        l->first[node + 1] = l->n;
    }
    return status;
}

int mc_labels_init(mc_labels_t *l, const mc_priced_t *graph)
{
    *l = (mc_labels_t){.first = calloc((size_t)graph->n_nodes + 1, sizeof *l->first)};
    return l->first ? MESHCOLL_OK : mc_fail_memory("the planner's labels");
}

void mc_labels_free(mc_labels_t *l)
{
    free(l->first);
    free(l->label);
    free(l->load);
    free(l->mean);
    *l = (mc_labels_t){0};
}
