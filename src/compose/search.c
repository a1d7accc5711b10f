/*
 * Depth first through the graph of placements, in the order of enumeration. For each number of
 * segments, what a path costs is fill + (segments - 1) * busy, and busy is no less than the maximum over
 * links, with the ranks' own time as the other leg of a right angle where that is apart (mc_busy_both). The
 * maximum is no less than any weighted mean, nor the hypotenuse than its legs along any direction, and
 * with these in its place the cost is a sum over phases: the cheapest way to the end is then known for
 * every node. A path is left whose cheapest end, by one of the means (of links each alone, two and two,
 * all; in several directions), is dearer than what was found.
 *
 * Where one strategy is wanted, each number of segments is searched alone: most are left at once,
 * because the start's cheapest end is dearer than what another number of segments gives; and a path is
 * left at a node that an earlier one came to no dearer.
 *
 * Where links let bursts through, bytes are the dearer the more of them a path has pass a port. Bounds then
 * have the bytes of the path with the fewest, and no path is compared with another before its end.
 */
#include "compose/search.h"

#include "compose/priced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUSY = MC_MAX_DIMS + 1, TURNS = 4 };
enum { MAX_MEANS = TURNS * (MC_MAX_DIMS * (MC_MAX_DIMS + 1) / 2 + 1) + 1 };
enum { MAX_CUTS = 16, FIRST_FOUND = 64, FIRST_MARKS = 256, MOST_MARKS = 64 };
enum { LOADS = MAX_BUSY + 1 };

/* Sums of seconds are compared after rounding of this much; the prices of ends are exact. */
static const double SLACK = 1e-9;

/* Where links are much alike, very many paths cost nearly the same. After so many steps tried for the cheapest,
 * one within this much of it will do: half of that for what a path is left for, half for what is to win. */
enum { MANY_TRIED = 2048 };
static const double ENOUGH = 0.01;

/* The first limit when several are wanted. */
static const double FIRST_EXCESS = 0.02;

/* A number of segments. A load is fill, then busy times (segments - 1) by link and of the ranks: 1 + n_busy
 * seconds, of a step or of a path. */
typedef struct {
    double *load;  /* by step */
    double *to_go; /* seconds by node and mean */
    double bound;  /* what the cheapest path costs at least */
} cut_t;

typedef struct {
    double seconds;
    uint32_t segments;
    int32_t n_phases;
    uint64_t path[MC_MAX_PHASES]; /* hop and step; compared, the order of enumeration */
} found_t;

/* A path so far: its load for each number of segments that is searched. */
typedef struct {
    double load[MAX_CUTS][LOADS];
} prefix_t;

/* A path that came to a node, so that no dearer one need be followed there. */
typedef struct {
    int32_t before; /* the node's mark before, as index + 1 */
    double load[LOADS];
} mark_t;

typedef struct {
    const mc_links_t *links;
    bool bursts; /* of links */
    double bytes;
    mc_priced_t *graph;
    int32_t n_means, n_first;         /* those that are looked at first */
    int32_t n_busy;                   /* the links of graph.dim, and the ranks where they may be */
    double mean[MAX_MEANS][MAX_BUSY]; /* weights */
    int32_t keen;                     /* the mean that left a path last */
    int32_t n_cuts, first_cut, end_cut; /* all there are; those that are searched now */
    cut_t cut[MAX_CUTS];
    double *weight, *ahead; /* by group, by node: of one mean */

    uint32_t most;
    double limit; /* what is dearer need not be found */
    double alike; /* seconds by which a load may be more and count as no dearer; 0: none */
    int32_t n_tried;
    bool left; /* something was dearer */
    uint64_t n_priced;
    uint64_t path[MC_MAX_PHASES];
    mc_phase_cost_t exact[MC_MAX_PHASES + 1]; /* of the path's first phases */
    int32_t n_exact;                          /* so many are right */
    int32_t *last_mark, n_marks, room_marks;  /* by node, as index + 1; NULL: not marked */
    mark_t *mark;
    found_t *found;
    uint32_t n_found, room_found;
    int status;
} search_t;

static uint32_t segments_of(int32_t c)
{
    return (uint32_t)1 << c;
}

static int32_t loads_of(const search_t *s)
{
    return s->n_busy + 1;
}

static int32_t start_of(const search_t *s)
{
    return s->graph->n_nodes - 1;
}

static const double *load_of(const search_t *s, int32_t c, int32_t step)
{
    return s->cut[c].load + (size_t)step * (size_t)loads_of(s);
}

static const double *to_go_of(const search_t *s, int32_t c, int32_t node)
{
    return s->cut[c].to_go + (size_t)node * (size_t)s->n_means;
}

static bool is_end(const search_t *s, int32_t node)
{
    return s->graph->first_hop[node] == s->graph->first_hop[node + 1];
}

/* Prices ----------------------------------------------------------------------------------------- */

static const mc_priced_step_t *step_at(const search_t *s, const uint64_t *path, int32_t i)
{
    return &s->graph->step[(uint32_t)path[i]];
}

/* Adds up what the path's phases cost, from the first that is not the same as at the last end. */
static const mc_phase_cost_t *exact_cost(search_t *s, int32_t n_phases)
{
    for (; s->n_exact < n_phases; s->n_exact++) {
        const mc_priced_step_t *const step = step_at(s, s->path, s->n_exact);
        const mc_phase_cost_t *const cost = &s->graph->price[step->price].exact;
        const mc_cost_t once = mc_cost_share(&cost->once, step->share);
        const mc_cost_t busy = mc_cost_share(&cost->busy, step->share);
        const mc_phase_cost_t *const before = &s->exact[s->n_exact];
        s->exact[s->n_exact + 1] =
            (mc_phase_cost_t){mc_cost_add(&before->once, &once), mc_cost_add(&before->busy, &busy)};
    }
    return &s->exact[n_phases];
}

static double exact_seconds(const search_t *s, const mc_phase_cost_t *cost, int32_t c)
{
    if (!s->bursts)
        return mc_phase_cost_seconds(cost, s->links, segments_of(c), s->bytes);
    const mc_links_t left = mc_links_carrying(s->links, &cost->busy, s->bytes);
    return mc_phase_cost_seconds(cost, &left, segments_of(c), s->bytes);
}

/* Bounds ---------------------------------------------------------------------------------------- */

/* Half of each of two links, seen in the direction of turn / TURNS of a right angle to the ranks' own. */
static void add_mean(search_t *s, int32_t first, int32_t second, int32_t turn)
{
    double *const mean = s->mean[s->n_means++];
    const double angle = turn * acos(0) / TURNS, links = cos(angle);
    mean[first] += links / 2;
    mean[second] += links / 2;
    if (turn > 0)
        mean[s->graph->graph.n] = sin(angle);
}

static void add_mean_of_all(search_t *s, int32_t turn)
{
    const int32_t n = s->graph->graph.n;
    const double angle = turn * acos(0) / TURNS;
    double *const mean = s->mean[s->n_means++];
    for (int32_t i = 0; i < n; i++)
        mean[i] = cos(angle) / n;
    if (turn > 0)
        mean[n] = sin(angle);
}

/* All first: it leaves most at once. */
static void add_means(search_t *s)
{
    const int32_t n = s->graph->graph.n, turns = s->n_busy > n ? TURNS : 1;
    for (int32_t turn = turns; turn-- > 0 && n > 2;)
        add_mean_of_all(s, turn);
    s->n_first = n > 2 ? s->n_means : 1;
    for (int32_t turn = 0; turn < turns; turn++)
        for (int32_t i = 0; i < n; i++)
            for (int32_t j = i; j < n; j++)
                add_mean(s, i, j, turn);
    if (turns > 1)
        s->mean[s->n_means++][n] = 1; /* the ranks' own alone */
}

static void fill_loads(search_t *s, int32_t c)
{
    const uint32_t segments = segments_of(c);
    double *load = s->cut[c].load;
    for (int32_t i = 0; i < s->graph->n_steps; i++) {
        const mc_priced_step_t *const step = &s->graph->step[i];
        const mc_price_t *const price = &s->graph->price[step->price];
        const double bytes =
            s->bytes * (double)step->share.num / (double)step->share.den / segments;
        *load++ = price->fixed + price->per_byte * bytes;
        for (int32_t d = 0; d < s->n_busy; d++)
            *load++ = (segments - 1) * (price->busy_fixed[d] + price->busy_per_byte[d] * bytes);
    }
}

static double weighted(const search_t *s, int32_t m, const double *load)
{
    double sum = load[0];
    for (int32_t i = 0; i < s->n_busy; i++)
        sum += s->mean[m][i] * load[1 + i];
    return sum;
}

static double whole(const search_t *s, const double *load)
{
    const int32_t links = s->graph->graph.n;
    double busiest = 0;
    for (int32_t i = 0; i < links; i++)
        busiest = load[1 + i] > busiest ? load[1 + i] : busiest;
    return load[0] + mc_busy_both(busiest, s->n_busy > links ? load[1 + links] : 0);
}

static void fill_weights(search_t *s, int32_t c, int32_t m)
{
    for (int32_t g = 0; g < s->graph->n_groups; g++) {
        const mc_priced_group_t group = s->graph->group[g];
        double least = INFINITY;
        for (int32_t i = group.first; i < group.first + group.n; i++) {
            const double weight = weighted(s, m, load_of(s, c, i));
            least = weight < least ? weight : least;
        }
        s->weight[g] = least;
    }
}

static void fill_to_go(search_t *s, int32_t c, int32_t m)
{
    const mc_priced_hop_t *hop = s->graph->hop;
    for (int32_t node = 0; node < s->graph->n_nodes; node++) {
        const mc_priced_hop_t *const end = s->graph->hop + s->graph->first_hop[node + 1];
        double least = hop == end ? 0 : INFINITY;
        for (; hop < end; hop++) {
            const double seconds = s->weight[hop->group] + s->ahead[hop->next];
            least = seconds < least ? seconds : least;
        }
        s->ahead[node] = least;
        s->cut[c].to_go[node * s->n_means + m] = least;
    }
}

/* Seconds of the path that is cheapest by the mean just filled in. */
static double follow(search_t *s, int32_t c, int32_t m)
{
    double load[LOADS] = {0};
    int32_t n = 0;
    s->n_exact = 0;
    for (int32_t node = start_of(s); !is_end(s, node);) {
        int32_t h = s->graph->first_hop[node];
        while (s->weight[s->graph->hop[h].group] + s->ahead[s->graph->hop[h].next] > s->ahead[node])
            h++;
        const mc_priced_group_t group = s->graph->group[s->graph->hop[h].group];
        int32_t i = group.first;
        while (weighted(s, m, load_of(s, c, i)) > s->weight[s->graph->hop[h].group])
            i++;
        for (int32_t k = 0; k < loads_of(s); k++)
            load[k] += load_of(s, c, i)[k];
        s->path[n++] = (uint64_t)h << 32 | (uint32_t)i;
        node = s->graph->hop[h].next;
    }
    return s->bursts ? exact_seconds(s, exact_cost(s, n), c) : whole(s, load);
}

static void drop_cut(cut_t *cut)
{
    free(cut->load);
    free(cut->to_go);
    *cut = (cut_t){.bound = INFINITY};
}

/* Bounds of a number of segments by means [first, end). Gives it up (its bound is INFINITY then) once it
 * is dearer than `*good`, which is lowered to the best path seen. */
static void bound_cut(search_t *s, int32_t c, int32_t first, int32_t end, double *good)
{
    cut_t *const cut = &s->cut[c];
    for (int32_t m = first; m < end; m++) {
        if (s->most == 1 && cut->bound * (1 - SLACK) > *good) {
            drop_cut(cut);
            return;
        }
        fill_weights(s, c, m);
        fill_to_go(s, c, m);
        const double seconds = follow(s, c, m), bound = s->ahead[start_of(s)];
        *good = seconds < *good ? seconds : *good;
        cut->bound = bound > cut->bound ? bound : cut->bound;
    }
}

/* By the first few means. */
static int open_cut(search_t *s, int32_t c, double *good)
{
    cut_t *const cut = &s->cut[c];
    cut->load = malloc(sizeof(double) * (size_t)s->graph->n_steps * (size_t)loads_of(s));
    cut->to_go = malloc(sizeof(double) * (size_t)s->graph->n_nodes * (size_t)s->n_means);
    if (!cut->load || !cut->to_go)
        return mc_fail_memory("the planner's bounds");
    fill_loads(s, c);
    bound_cut(s, c, 0, s->n_first, good);
    return MESHCOLL_OK;
}

/* By the others; of most numbers of segments they need not be known. */
static void close_cuts(search_t *s, double *good)
{
    for (int32_t c = 0; c < s->n_cuts; c++)
        if (s->cut[c].load)
            bound_cut(s, c, s->n_first, s->n_means, good);
}

/* Is any end of a path to `node` dearer than what is wanted? The mean that said so last is asked first. */
static bool is_dearer(search_t *s, int32_t c, const double *load, int32_t node)
{
    const double *const to_go = to_go_of(s, c, node);
    for (int32_t i = 0, m = s->keen; i < s->n_means; i++, m = m + 1 < s->n_means ? m + 1 : 0)
        if ((weighted(s, m, load) + to_go[m]) * (1 - SLACK) > s->limit) {
            s->keen = m;
            return true;
        }
    return false;
}

static bool hopeless(search_t *s, const prefix_t *prefix, int32_t node)
{
    for (int32_t c = s->first_cut; c < s->end_cut; c++)
        if (!is_dearer(s, c, prefix->load[c], node))
            return false;
    return true;
}

/* What was found ------------------------------------------------------------------------------- */

static int by_price(const void *left, const void *right)
{
    const found_t *const a = left, *const b = right;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    /* no path is the beginning of another */
    for (int32_t i = 0; i < a->n_phases && i < b->n_phases; i++)
        if (a->path[i] != b->path[i])
            return a->path[i] < b->path[i] ? -1 : 1;
    return a->segments < b->segments ? -1 : a->segments > b->segments;
}

/* Sorts, and keeps the cheapest `most`. */
static void settle(search_t *s)
{
    if (s->n_found > 1)
        qsort(s->found, s->n_found, sizeof *s->found, by_price);
    if (s->most && s->n_found >= s->most) {
        s->n_found = s->most;
        s->limit = s->found[s->most - 1].seconds;
        if (s->alike > 0)
            s->limit /= 1 + ENOUGH / 2;
    }
}

static void keep(search_t *s, double seconds, uint32_t segments, int32_t n_phases)
{
    if (s->n_found == s->room_found) {
        const uint32_t room = s->room_found ? 2 * s->room_found : FIRST_FOUND;
        found_t *const found = realloc(s->found, sizeof *found * room);
        if (!found) {
            s->status = mc_fail_memory("the planner's list of strategies");
            return;
        }
        s->found = found;
        s->room_found = room;
    }
    found_t *const entry = &s->found[s->n_found++];
    *entry = (found_t){.seconds = seconds, .segments = segments, .n_phases = n_phases};
    memcpy(entry->path, s->path, sizeof *s->path * (size_t)n_phases);
    if (s->most && (s->most == 1 || s->n_found >= 2 * s->most + FIRST_FOUND))
        settle(s);
}

static void price_end(search_t *s, int32_t n_phases)
{
    const mc_phase_cost_t *const cost = exact_cost(s, n_phases);
    double best = INFINITY;
    uint32_t segments = 1;
    for (int32_t c = s->first_cut; c < s->end_cut; c++) {
        const double seconds = exact_seconds(s, cost, c);
        if (seconds < best) {
            best = seconds;
            segments = segments_of(c);
        }
    }
    s->n_priced++;
    if (best <= s->limit)
        keep(s, best, segments, n_phases);
}

/* The search ------------------------------------------------------------------------------------ */

static bool no_dearer(const double *a, const double *b, int32_t n, double alike)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i] > b[i] + alike)
            return false;
    return true;
}

/* No dimension takes more than three phases; fill and both legs of what is busy may be more each time. */
static void be_content(search_t *s)
{
    s->alike = s->limit * ENOUGH / 2 / (3 * s->graph->graph.n) / (1 + sqrt(2));
    if (s->n_found > 0)
        s->limit /= 1 + ENOUGH / 2;
}

/* Was there an earlier path to this node that is no dearer, whatever follows? Ties are the earlier
 * one's. Else this path is marked. */
static bool outdone(search_t *s, int32_t node, const double *load)
{
    int32_t n = 0;
    for (int32_t m = s->last_mark[node]; m; m = s->mark[m - 1].before, n++)
        if (no_dearer(s->mark[m - 1].load, load, loads_of(s), s->alike))
            return true;
    if (n >= MOST_MARKS)
        return false;
    if (s->n_marks == s->room_marks) {
        const int32_t room = s->room_marks ? 2 * s->room_marks : FIRST_MARKS;
        mark_t *const mark = realloc(s->mark, sizeof *mark * (size_t)room);
        if (!mark) /* without it the search only takes longer */
            return false;
        s->mark = mark;
        s->room_marks = room;
    }
    mark_t *const mark = &s->mark[s->n_marks++];
    mark->before = s->last_mark[node];
    memcpy(mark->load, load, sizeof *load * (size_t)loads_of(s));
    s->last_mark[node] = s->n_marks;
    return false;
}

static void extend(const search_t *s, const prefix_t *prefix, int32_t step, prefix_t *longer)
{
    const int32_t n = loads_of(s);
    for (int32_t c = s->first_cut; c < s->end_cut; c++) {
        const double *const load = load_of(s, c, step);
        for (int32_t i = 0; i < n; i++)
            longer->load[c][i] = prefix->load[c][i] + load[i];
    }
}

static void explore(search_t *s, int32_t node, int32_t n_phases, const prefix_t *prefix);

static void explore_group(search_t *s, int32_t h, int32_t n_phases, const prefix_t *prefix)
{
    const mc_priced_hop_t hop = s->graph->hop[h];
    const mc_priced_group_t group = s->graph->group[hop.group];
    prefix_t longer;
    for (int32_t i = group.first; i < group.first + group.n && !s->status; i++) {
        extend(s, prefix, i, &longer);
        if (s->last_mark && ++s->n_tried == MANY_TRIED)
            be_content(s);
        if (hopeless(s, &longer, hop.next)) {
            s->left = true;
            continue;
        }
        if (s->last_mark && outdone(s, hop.next, longer.load[s->first_cut]))
            continue;
        s->path[n_phases] = (uint64_t)h << 32 | (uint32_t)i;
        s->n_exact = s->n_exact < n_phases ? s->n_exact : n_phases;
        explore(s, hop.next, n_phases + 1, &longer);
    }
}

static void explore(search_t *s, int32_t node, int32_t n_phases, const prefix_t *prefix)
{
    if (is_end(s, node))
        price_end(s, n_phases);
    for (int32_t h = s->graph->first_hop[node]; h < s->graph->first_hop[node + 1]; h++)
        explore_group(s, h, n_phases, prefix);
}

static void explore_all(search_t *s)
{
    const prefix_t empty = {{{0}}};
    s->n_marks = s->n_exact = 0;
    if (s->last_mark)
        memset(s->last_mark, 0, sizeof *s->last_mark * (size_t)s->graph->n_nodes);
    explore(s, start_of(s), 0, &empty);
}

/* The number of segments that may be the cheapest of those left, or -1. */
static int32_t next_cut(const search_t *s)
{
    int32_t next = 0;
    for (int32_t c = 1; c < s->n_cuts; c++)
        if (s->cut[c].bound < s->cut[next].bound)
            next = c;
    return s->cut[next].bound * (1 - SLACK) <= s->limit ? next : -1;
}

/* The cheapest: each number of segments alone, within what a good strategy costs. */
static void find_best(search_t *s)
{
    double good = INFINITY;
    s->status = open_cut(s, 0, &good);
    if (s->status)
        return;
    if (!s->bursts) {
        mc_priced_prune(s->graph, good * SLACK);
        fill_loads(s, 0); /* steps have moved */
    }
    for (int32_t c = 1; c < s->n_cuts && !s->status; c++)
        s->status = open_cut(s, c, &good);
    if (!s->status)
        close_cuts(s, &good);
    if (!s->bursts)
        s->last_mark = malloc(sizeof *s->last_mark * (size_t)s->graph->n_nodes);
    if (!s->status && !s->last_mark && !s->bursts)
        s->status = mc_fail_memory("the planner's marks");
    s->limit = good * (1 + SLACK);
    for (int32_t c; !s->status && (c = next_cut(s)) >= 0;) {
        s->first_cut = c;
        s->end_cut = c + 1;
        explore_all(s);
        drop_cut(&s->cut[c]);
    }
}

/* Several: within a limit above what one good strategy costs; a wider one until enough are found. */
static void find_several(search_t *s)
{
    double good = INFINITY, excess = FIRST_EXCESS;
    s->first_cut = 0;
    s->end_cut = s->n_cuts;
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++)
        s->status = open_cut(s, c, &good);
    if (s->status)
        return;
    close_cuts(s, &good);
    do {
        s->n_found = 0;
        s->n_priced = 0;
        s->left = false;
        s->limit = s->most && good > 0 ? good * (1 + excess) : INFINITY;
        explore_all(s);
        excess *= 4;
    } while (!s->status && s->left && s->n_found < s->most);
    settle(s);
}

static int hand_out(const search_t *s, meshcoll_collective_t collective, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *const list = malloc(sizeof *list * (s->n_found ? s->n_found : 1));
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    for (uint32_t i = 0; i < s->n_found; i++) {
        const found_t *const found = &s->found[i];
        mc_strategy_t strategy = {
            .collective = collective, .segments = found->segments, .n_phases = found->n_phases};
        for (int32_t k = 0; k < found->n_phases; k++)
            strategy.phase[k] = step_at(s, found->path, k)->phase;
        list[i] = (mc_ranked_t){strategy, found->seconds};
    }
    *ranked = list;
    *n = s->n_found;
    *considered = s->n_priced > UINT32_MAX ? UINT32_MAX : (uint32_t)s->n_priced;
    return MESHCOLL_OK;
}

static void release(search_t *s)
{
    for (int32_t c = 0; c < s->n_cuts; c++)
        drop_cut(&s->cut[c]);
    free(s->weight);
    free(s->ahead);
    free(s->last_mark);
    free(s->mark);
    free(s->found);
}

/* By the textbook the links' time is all there is. */
static int32_t ranks_count(const mc_links_t *links)
{
    for (int32_t d = 0; d < links->ndims; d++)
        if (links->dim[d].gap != links->dim[d].alpha)
            return 1;
    return 0;
}

int mc_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_links_t *links,
              const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
              uint32_t *considered)
{
    search_t s = {.graph = graph,
                  .links = links,
                  .bursts = mc_links_burst(links),
                  .bytes = query->bytes,
                  .most = most};
    s.exact[0] = (mc_phase_cost_t){mc_cost_zero(), mc_cost_zero()};
    if (s.bursts) {
        const int status = mc_priced_after_burst(graph, links, s.bytes);
        if (status)
            return status;
    }
    s.n_busy = graph->graph.n + ranks_count(links);
    add_means(&s);
    for (s.n_cuts = 1; s.n_cuts < MAX_CUTS && segments_of(s.n_cuts) <= query->max_segments;)
        s.n_cuts++;
    s.weight = malloc(sizeof(double) * (size_t)graph->n_groups);
    s.ahead = malloc(sizeof(double) * (size_t)graph->n_nodes);
    if (!s.weight || !s.ahead)
        s.status = mc_fail_memory("the planner's bounds");
    else
        (most == 1 ? find_best : find_several)(&s);
    if (!s.status)
        s.status = hand_out(&s, collective, ranked, n, considered);
    release(&s);
    return s.status;
}
