/*
 * Depth first through the graph of placements, in the order of enumeration. For each number of
 * segments, what a path costs is fill + (segments - 1) * busy, and busy is no less than the maximum over
 * links, with the ranks' own time as the other leg of a right angle where that is apart (mc_busy_both). The
 * maximum is no less than any weighted mean, nor the hypotenuse than its legs along any direction, and
 * with these in its place the cost is a sum over phases (bounds.h). A path is left whose cheapest end, by
 * one of the means (of wires each alone, two and two, all; in several directions), is dearer than what was
 * found; or would be if each part of its load grew by the least it can.
 *
 * Where one strategy is wanted, each number of segments is searched alone: most are left at once,
 * because the start's cheapest end is dearer than what another number of segments gives; and a path is
 * left at a node that an earlier one came to no dearer.
 *
 * Where links let bursts through, bytes are the dearer the more of them a path has pass a port. What they take
 * at full rate and what a port carries are parts of the load then, with which the price still only grows.
 */
#include "compose/search.h"

#include "compose/bounds.h"
#include "compose/ends.h"
#include "compose/marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_FOUND = 64 };

/* Where links are much alike, very many paths cost nearly the same. After so many steps tried for the cheapest,
 * one within this much of it will do: half of that for what a path is left for, half for what is to win. */
enum { MANY_TRIED = 2048 };
static const double ENOUGH = 0.01;

/* The first limit when several are wanted. */
static const double FIRST_EXCESS = 0.02;

typedef struct {
    double seconds;
    uint32_t segments;
    int32_t n_phases;
    uint64_t path[MC_MAX_PHASES]; /* hop and step; compared, the order of enumeration */
} found_t;

typedef struct {
    const mc_links_t *links;
    bool bursts;     /* of links */
    mc_links_t left; /* of bursts, for one path */
    double bytes;
    mc_priced_t *graph;
    mc_bounds_t bounds;
    mc_ends_t ends;                          /* where one is wanted and the search is longer */
    mc_end_set_t end_set[MC_MAX_PHASES + 1]; /* of the path's first phases: how it may end */
    int32_t keen;                            /* the block of means that left a path last */
    int32_t n_cuts, first_cut, end_cut;      /* all there are; those that are searched now */
    mc_cut_t cut[MC_MOST_CUTS];
    /* of the path's beginnings, by their phases and the cuts that are searched: by part; by block */
    double *load;
    mc_lanes_t *lanes;
    int32_t n_slots;

    uint32_t most;
    double limit; /* what is dearer need not be found */
    int32_t n_tried;
    bool left_out; /* something was dearer */
    uint64_t n_priced;
    uint64_t path[MC_MAX_PHASES];
    mc_phase_cost_t exact[MC_MAX_PHASES + 1]; /* of the path's first phases */
    int32_t n_exact;                          /* so many are right */
    mc_marks_t marks;
    found_t *found;
    uint32_t n_found, room_found;
    int status;
} search_t;

static uint32_t segments_of(int32_t c)
{
    return (uint32_t)1 << c;
}

static int32_t start_of(const search_t *s)
{
    return s->graph->n_nodes - 1;
}

static bool is_end(const search_t *s, int32_t node)
{
    return s->graph->first_hop[node] == s->graph->first_hop[node + 1];
}

/* Prices ----------------------------------------------------------------------------------------- */

static mc_phase_cost_t exact_longer(search_t *s, const mc_phase_cost_t *before, uint64_t phase)
{
    const mc_priced_term_t *term = NULL;
    const int32_t n = mc_priced_exact(s->graph, mc_path_step(phase), &term);
    mc_phase_cost_t longer = *before;
    if (n < 0)
        s->status = mc_fail_memory("the planner's exact costs");
    for (int32_t i = 0; i < n; i++) {
        mc_term_t *const once = &longer.once.dim[term[i].dim];
        mc_term_t *const busy = &longer.busy.dim[term[i].dim];
        *once = mc_term_add(once, &term[i].once);
        *busy = mc_term_add(busy, &term[i].busy);
    }
    return longer;
}

/* Adds up what the path's phases cost, from the first that is not the same as at the last end. */
static const mc_phase_cost_t *exact_cost(search_t *s, int32_t n_phases)
{
    for (; s->n_exact < n_phases; s->n_exact++)
        s->exact[s->n_exact + 1] = exact_longer(s, &s->exact[s->n_exact], s->path[s->n_exact]);
    return &s->exact[n_phases];
}

static double exact_seconds(search_t *s, const mc_phase_cost_t *cost, uint32_t segments)
{
    if (!s->bursts)
        return mc_phase_cost_seconds(cost, s->links, segments, s->bytes);
    mc_links_carry(s->links, &cost->busy, s->bytes, &s->left);
    return mc_phase_cost_seconds(cost, &s->left, segments, s->bytes);
}

/* Of the path's first phases, for a number of segments. */
static double *load_at(const search_t *s, int32_t n_phases, int32_t c)
{
    const size_t slot = (size_t)n_phases * (size_t)s->n_slots + (size_t)(c - s->first_cut);
    return s->load + slot * (size_t)s->bounds.kind.n;
}

static mc_lanes_t *lanes_at(const search_t *s, int32_t n_phases, int32_t c)
{
    const size_t slot = (size_t)n_phases * (size_t)s->n_slots + (size_t)(c - s->first_cut);
    return s->lanes + slot * (size_t)s->bounds.n_blocks;
}

/* Sums of seconds below this may be below the limit. */
static double wide_limit(const search_t *s)
{
    return s->limit * (1 + 2 * MC_SLACK);
}

/* Is every end dearer than what is wanted, if the path goes on by this step, or by any of a group? */
static bool hopeless(search_t *s, int32_t n_phases, int32_t lane, int32_t node)
{
    const double limit = wide_limit(s);
    const int32_t to = mc_lane_of_node(&s->bounds, node);
    for (int32_t c = s->first_cut; c < s->end_cut; c++)
        if (!mc_cut_dearer(&s->cut[c], lanes_at(s, n_phases, c), lane, to, limit, &s->keen))
            return false;
    return true;
}

static bool least_hopeless(const search_t *s, int32_t n_phases, int32_t node)
{
    const double limit = wide_limit(s);
    for (int32_t c = s->first_cut; c < s->end_cut; c++)
        if (!mc_cut_least_dearer(&s->bounds, &s->cut[c], load_at(s, n_phases, c), node, limit))
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
        if (s->marks.alike > 0)
            s->limit /= 1 + ENOUGH / 2;
    }
}

static void keep(search_t *s, double seconds, uint32_t segments, const uint64_t *path,
                 int32_t n_phases)
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
    memcpy(entry->path, path, sizeof *path * (size_t)n_phases);
    if (s->most && (s->most == 1 || s->n_found >= 2 * s->most + FIRST_FOUND))
        settle(s);
}

static void price_end(search_t *s, int32_t n_phases)
{
    const mc_phase_cost_t *const cost = exact_cost(s, n_phases);
    double best = INFINITY;
    uint32_t segments = 1;
    for (int32_t c = s->first_cut; c < s->end_cut; c++) {
        const double seconds = exact_seconds(s, cost, segments_of(c));
        if (seconds < best) {
            best = seconds;
            segments = segments_of(c);
        }
    }
    s->n_priced++;
    if (best <= s->limit)
        keep(s, best, segments, s->path, n_phases);
}

/* What bounds met on their way is a strategy like those that the search finds. */
static void keep_good(search_t *s, const mc_good_t *good)
{
    mc_phase_cost_t cost = s->exact[0];
    for (int32_t i = 0; i < good->n_phases; i++)
        cost = exact_longer(s, &cost, good->path[i]);
    const double seconds = exact_seconds(s, &cost, good->segments);
    if (good->n_phases > 0 && seconds <= s->limit)
        keep(s, seconds, good->segments, good->path, good->n_phases);
}

/* The search ------------------------------------------------------------------------------------ */

/* No dimension takes more than three phases; fill and both legs of what is busy may be more each time, and what
 * shaped wires have to them. */
static void be_content(search_t *s)
{
    const double parts = 1 + sqrt(2) + MC_SHAPED_PARTS * s->bounds.kind.n_shaped;
    s->marks.alike = s->limit * ENOUGH / 2 / (3 * s->graph->graph.n) / parts;
    s->limit /= 1 + ENOUGH / 2;
}

/* One block more, and what it says of the path's first phases. */
static void tighten(search_t *s, int32_t n_phases)
{
    mc_cut_t *const cut = &s->cut[s->first_cut];
    const int32_t block = cut->n_blocks;
    const uint64_t all = (UINT64_C(1) << s->bounds.kind.n) - 1;
    mc_good_t good = {.seconds = s->limit};
    s->status = mc_cut_tighten(&s->bounds, cut, &good);
    if (s->status || cut->n_blocks == block)
        return;
    for (int32_t i = 0; i <= n_phases; i++)
        lanes_at(s, i, s->first_cut)[block] =
            mc_block_mean(&s->bounds, block, load_at(s, i, s->first_cut), all);
    keep_good(s, &good);
}

/* What is known of ends from here on is true of all cuts. */
static void find_ends(search_t *s)
{
    s->status = mc_ends_find(&s->ends, &s->bounds, s->cut, s->n_cuts, wide_limit(s));
    for (int32_t i = 0; i <= MC_MAX_PHASES; i++)
        s->end_set[i] = mc_ends_all(&s->ends);
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++)
        if (s->cut[c].bound < INFINITY)
            s->cut[c].bound =
                fmax(s->cut[c].bound, mc_ends_bound(&s->ends, &s->bounds, &s->cut[c]));
}

/* Can the path come to none of the ends within the limit? */
static bool endless(search_t *s, int32_t n_phases, int32_t node)
{
    const mc_end_set_t before = n_phases > 0 ? s->end_set[n_phases - 1] : mc_ends_all(&s->ends);
    s->end_set[n_phases] =
        mc_ends_within(&s->ends, &s->bounds, &s->cut[s->first_cut],
                       load_at(s, n_phases, s->first_cut), node, wide_limit(s), before);
    return s->end_set[n_phases] == 0;
}

static bool too_dear(search_t *s, int32_t n_phases, int32_t node)
{
    return s->ends.known && !is_end(s, node) ? endless(s, n_phases, node)
                                             : least_hopeless(s, n_phases, node);
}

/* Bounds get better as the search gets longer: for so many steps tried, a part of the hops, another block of
 * means is about as much work again; and for as many as there are hops, all kinds of ends. */
enum { HOPS_TRIED = 4 };
static void note_tried(search_t *s, int32_t n_phases)
{
    if (++s->n_tried == MANY_TRIED)
        be_content(s);
    if (s->n_tried % ((s->graph->n_hops + s->graph->n_steps) / HOPS_TRIED + 1) == 0)
        tighten(s, n_phases);
    if (s->n_tried == s->graph->n_hops && !s->status)
        find_ends(s);
}

/* By one step more than its first phases. */
static void extend(const search_t *s, int32_t n_phases, int32_t step)
{
    const int32_t n = s->bounds.kind.n;
    for (int32_t c = s->first_cut; c < s->end_cut; c++) {
        const double *const more = mc_cut_step(&s->bounds, &s->cut[c], step);
        const double *const load = load_at(s, n_phases, c);
        const mc_lanes_t *const lanes = lanes_at(s, n_phases, c);
        double *const longer = load_at(s, n_phases + 1, c);
        mc_lanes_t *const means = lanes_at(s, n_phases + 1, c);
        for (int32_t i = 0; i < n; i++)
            longer[i] = load[i] + more[i];
        for (int32_t i = 0; i < s->cut[c].n_blocks; i++)
            for (int32_t l = 0; l < MC_LANES / 2; l++)
                means[i].two[l] = lanes[i].two[l] + mc_block_steps(&s->cut[c], i)[step].two[l];
    }
}

static void explore(search_t *s, int32_t node, int32_t n_phases);

static void explore_step(search_t *s, int32_t h, int32_t step, int32_t n_phases)
{
    const int32_t next = s->graph->hop[h].next;
    if (s->marks.last)
        note_tried(s, n_phases);
    if (s->status)
        return;
    if (hopeless(s, n_phases, step, next)) {
        s->left_out = true;
        return;
    }
    extend(s, n_phases, step);
    if (too_dear(s, n_phases + 1, next)) {
        s->left_out = true;
        return;
    }
    if (s->marks.last && mc_marks_outdone(&s->marks, next, load_at(s, n_phases + 1, s->first_cut)))
        return;
    if (s->marks.failed) /* ranks that choose without them might choose otherwise */
        s->status = mc_fail_memory("the planner's marks");
    s->path[n_phases] = mc_path_phase(h, step);
    s->n_exact = s->n_exact < n_phases ? s->n_exact : n_phases;
    explore(s, next, n_phases + 1);
}

static void explore_hop(search_t *s, int32_t h, int32_t n_phases)
{
    const mc_priced_hop_t hop = s->graph->hop[h];
    const mc_priced_group_t group = s->graph->group[hop.group];
    if (hopeless(s, n_phases, mc_lane_of_group(&s->bounds, hop.group), hop.next)) {
        s->left_out = true;
        return;
    }
    for (int32_t i = group.first; i < group.first + group.n && !s->status; i++)
        explore_step(s, h, i, n_phases);
}

static void explore(search_t *s, int32_t node, int32_t n_phases)
{
    if (is_end(s, node))
        price_end(s, n_phases);
    for (int32_t h = s->graph->first_hop[node]; h < s->graph->first_hop[node + 1] && !s->status;
         h++)
        explore_hop(s, h, n_phases);
}

static void explore_all(search_t *s)
{
    for (int32_t c = s->first_cut; c < s->end_cut; c++) {
        memset(load_at(s, 0, c), 0, sizeof(double) * (size_t)s->bounds.kind.n);
        memset(lanes_at(s, 0, c), 0, sizeof(mc_lanes_t) * (size_t)s->bounds.n_blocks);
    }
    mc_marks_clear(&s->marks);
    s->n_exact = 0;
    explore(s, start_of(s), 0);
}

/* The number of segments that may be the cheapest of those left, or -1. */
static int32_t next_cut(const search_t *s)
{
    int32_t next = 0;
    for (int32_t c = 1; c < s->n_cuts; c++)
        if (s->cut[c].bound < s->cut[next].bound)
            next = c;
    return s->cut[next].bound * (1 - MC_SLACK) <= s->limit ? next : -1;
}

/* Takes out steps that cannot be on the cheapest path, once it is known what a good one costs. */
static void prune(search_t *s, mc_good_t *good)
{
    mc_priced_prune(s->graph, good->seconds * MC_SLACK);
    mc_cut_drop(&s->cut[0]); /* steps have moved */
    mc_bounds_reload(&s->bounds);
    good->seconds = INFINITY;
    s->status = mc_cut_open(&s->bounds, &s->cut[0], 1, good);
}

/* Is a cut that is too dear so by its messages alone, and with it all of more segments? *hope: what they can come
 * to at most; with twice the segments they are no more than twice as dear. */
static bool is_last(search_t *s, int32_t c, double good, double *hope)
{
    double floor = 0;
    *hope *= 2;
    if (s->cut[c].bound * (1 - MC_SLACK) <= good || *hope <= good)
        return false;
    s->status = mc_cut_floor(&s->bounds, segments_of(c), &floor);
    *hope = floor;
    return floor * (1 - MC_SLACK) > good;
}

/* Bounds of all numbers of segments, by the first means. */
static mc_good_t open_cuts(search_t *s, bool wants_best)
{
    mc_good_t good = {.seconds = INFINITY};
    double hope = INFINITY;
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++) {
        s->status = mc_cut_open(&s->bounds, &s->cut[c], segments_of(c), &good);
        if (!wants_best || s->status)
            continue;
        if (!s->graph->pruned)
            prune(s, &good);
        else if (is_last(s, c, good.seconds, &hope))
            s->n_cuts = c + 1;
    }
    return good;
}

static void make_room(search_t *s, int32_t n_slots)
{
    const size_t n = (size_t)n_slots * (MC_MAX_PHASES + 1);
    s->n_slots = n_slots;
    s->load = malloc(sizeof *s->load * n * (size_t)s->bounds.kind.n);
    s->lanes = malloc(sizeof *s->lanes * n * (size_t)s->bounds.n_blocks);
    if (!s->load || !s->lanes)
        s->status = mc_fail_memory("the planner's paths");
}

/* The cheapest: each number of segments alone, within what a good strategy costs. */
static void find_best(search_t *s)
{
    const mc_good_t good = open_cuts(s, true);
    s->marks.last = malloc(sizeof *s->marks.last * (size_t)s->graph->n_nodes);
    if (!s->status && !s->marks.last)
        s->status = mc_fail_memory("the planner's marks");
    if (!s->status)
        make_room(s, 1);
    s->limit = INFINITY;
    if (!s->status)
        keep_good(s, &good);
    for (int32_t c; !s->status && (c = next_cut(s)) >= 0;) {
        s->first_cut = c;
        s->end_cut = c + 1;
        s->status = mc_cut_close(&s->bounds, &s->cut[c]);
        if (!s->status)
            explore_all(s);
        mc_cut_drop(&s->cut[c]);
    }
}

/* Several: within a limit above what one good strategy costs; a wider one until enough are found. */
static void find_several(search_t *s)
{
    double excess = FIRST_EXCESS;
    mc_good_t good = open_cuts(s, false);
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++)
        s->status = mc_cut_close(&s->bounds, &s->cut[c]);
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++)
        while (s->cut[c].n_blocks < s->bounds.n_blocks && !s->status)
            s->status = mc_cut_tighten(&s->bounds, &s->cut[c], &good);
    s->first_cut = 0;
    s->end_cut = s->n_cuts;
    if (!s->status)
        make_room(s, s->n_cuts);
    if (s->status)
        return;
    do {
        s->n_found = 0;
        s->n_priced = 0;
        s->left_out = false;
        s->limit = s->most && good.seconds > 0 ? good.seconds * (1 + excess) : INFINITY;
        explore_all(s);
        excess *= 4;
    } while (!s->status && s->left_out && s->n_found < s->most);
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
            strategy.phase[k] = s->graph->step[mc_path_step(found->path[k])].phase;
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
        mc_cut_drop(&s->cut[c]);
    mc_ends_free(&s->ends);
    mc_bounds_free(&s->bounds);
    free(s->load);
    free(s->lanes);
    free(s->marks.last);
    free(s->marks.before);
    free(s->marks.load);
    free(s->found);
}

int mc_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_links_t *links,
              const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
              uint32_t *considered)
{
    search_t s = {.graph = graph,
                  .links = links,
                  .bursts = mc_links_burst(links),
                  .left = *links,
                  .bytes = query->bytes,
                  .most = most};
    s.exact[0] = (mc_phase_cost_t){mc_cost_zero(), mc_cost_zero()};
    for (s.n_cuts = 1; s.n_cuts < MC_MOST_CUTS && segments_of(s.n_cuts) <= query->max_segments;)
        s.n_cuts++;
    s.status = mc_bounds_init(&s.bounds, graph, links, query->bytes);
    s.marks.n_loads = s.bounds.kind.n_priced;
    s.marks.n_nodes = graph->n_nodes;
    if (!s.status)
        (most == 1 ? find_best : find_several)(&s);
    if (!s.status)
        s.status = hand_out(&s, collective, ranked, n, considered);
    release(&s);
    return s.status;
}
