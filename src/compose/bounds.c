#include "compose/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Directions in which the hypotenuse of links and ranks is looked at. */
enum { TURNS = 4 };
enum { MOST_BASES = TURNS * (MC_MAX_DIMS + 1) + 1 };
/* Which bursts a mean takes off: all, none, one, all but one. */
enum { MOST_VARIANTS = 2 + 2 * MC_MAX_DIMS };

/* Of one block; they lie anywhere in memory. In twos, which every machine adds and compares at once. */
typedef double pair_t __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));
typedef int64_t mask_t __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));
typedef struct {
    pair_t of[MC_LANES / 2];
} lanes_t;

/* Weights of what is busy; fill has 1. */
typedef struct {
    double of[MC_MAX_DIMS + 1];
} base_t;

typedef struct {
    base_t base[MOST_BASES];
    int32_t n, n_first; /* those of all wires come first: they leave most at once */
} bases_t;

/* Parts of a load -------------------------------------------------------------------------------- */

static int32_t part_of_shaped(const mc_load_kind_t *kind, int32_t s)
{
    return 1 + kind->n_busy + MC_SHAPED_PARTS * s;
}

static int32_t part_of_gain(const mc_load_kind_t *kind, int32_t s)
{
    return kind->n_priced + 2 * s;
}

static mc_load_kind_t kind_of(const mc_priced_t *graph, const mc_links_t *links)
{
    mc_load_kind_t kind = {.n_wires = graph->n_wires,
                           .n_busy = graph->n_wires + graph->ranks_apart};
    for (int32_t w = 0; w < graph->n_wires; w++) {
        const mc_link_t *const link = &links->dim[graph->wire[w]];
        if (!graph->shaped[w])
            continue;
        kind.shaped[kind.n_shaped].wire = w;
        kind.shaped[kind.n_shaped].beta = link->beta;
        kind.shaped[kind.n_shaped].burst = link->burst * link->beta;
        kind.shaped[kind.n_shaped++].pulled = link->pulled && link->gap != link->alpha;
    }
    kind.n_priced = 1 + kind.n_busy + MC_SHAPED_PARTS * kind.n_shaped;
    kind.n = kind.n_priced + 2 * kind.n_shaped;
    return kind;
}

/* What a burst takes off bytes that take `seconds`, beyond its part of them all as they share a port: those of a
 * phase that passes them on, or has them come from many at once. */
static double gain(double seconds, double carried, double usual, double burst)
{
    const double passes = carried < burst ? carried : burst;
    const double more = carried > 0 ? (seconds / carried - usual) * passes : seconds;
    return more > 0 ? more : 0;
}

static void load_shaped(const mc_load_kind_t *kind, const mc_price_t *price, double share,
                        double bytes, uint32_t segments, double *load)
{
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const mc_shaped_t *const shaped = &price->shaped[kind->shaped[s].wire];
        double *const part = load + part_of_shaped(kind, s), *const more =
                                                                 load + part_of_gain(kind, s);
        const double burst = kind->shaped[s].burst, rest = segments - 1.0;
        part[0] = shaped->once_fixed + shaped->once * share * bytes / segments;
        part[1] = (shaped->busy_fixed + shaped->busy * share * bytes / segments) * rest;
        part[2] = shaped->carried * share * bytes * kind->shaped[s].beta;
        more[0] = gain(part[0], part[2], 1.0 / segments, burst);
        more[1] = gain(part[1], part[2], rest / segments, burst);
    }
}

void mc_cut_load(const mc_bounds_t *b, mc_cut_t *cut)
{
    const mc_priced_t *const graph = b->graph;
    double *load = cut->load;
    for (int32_t i = 0; i < graph->n_steps; i++, load += b->kind.n) {
        const mc_priced_step_t *const step = &graph->step[i];
        const mc_price_t *const price = &graph->price[step->price];
        const double share = mc_ratio_value(step->share);
        const double bytes = b->bytes * share / cut->segments;
        load[0] = price->fixed + price->per_byte * bytes;
        for (int32_t d = 0; d < b->kind.n_busy; d++)
            load[1 + d] =
                (cut->segments - 1) * (price->busy_fixed[d] + price->busy_per_byte[d] * bytes);
        load_shaped(&b->kind, price, share, b->bytes, cut->segments, load);
    }
}

double mc_bounds_whole(const mc_bounds_t *b, const double *load)
{
    const mc_load_kind_t *const kind = &b->kind;
    double busy[MC_MAX_DIMS + 1] = {0}, fill = load[0], busiest = 0;
    for (int32_t i = 0; i < kind->n_busy; i++)
        busy[i] = load[1 + i];
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const double *const part = load + part_of_shaped(kind, s);
        const double burst = kind->shaped[s].burst;
        const double late = part[2] > burst ? 1 - burst / part[2] : 0;
        fill += late * part[0];
        busy[kind->shaped[s].wire] += late * part[1];
        if (kind->shaped[s].pulled)
            busy[kind->n_wires] += late * part[1];
    }
    for (int32_t i = 0; i < kind->n_wires; i++)
        busiest = busy[i] > busiest ? busy[i] : busiest;
    return fill + mc_busy_both(busiest, busy[kind->n_wires]);
}

/* Means ------------------------------------------------------------------------------------------ */

/* Seen in the direction of turn / TURNS of a right angle to the ranks' own. */
static void add_one(bases_t *bases, int32_t n_wires, int32_t wire, int32_t turn)
{
    base_t *const base = &bases->base[bases->n++];
    const double angle = turn * acos(0) / TURNS;
    base->of[wire] = cos(angle);
    if (turn > 0)
        base->of[n_wires] = sin(angle);
}

static void add_all(bases_t *bases, int32_t n_wires, int32_t turn)
{
    const double angle = turn * acos(0) / TURNS;
    base_t *const base = &bases->base[bases->n++];
    for (int32_t i = 0; i < n_wires; i++)
        base->of[i] = cos(angle) / n_wires;
    if (turn > 0)
        base->of[n_wires] = sin(angle);
}

static void find_bases(const mc_load_kind_t *kind, bases_t *bases)
{
    const int32_t n = kind->n_wires, turns = kind->n_busy > n ? TURNS : 1;
    memset(bases, 0, sizeof *bases);
    for (int32_t turn = turns; turn-- > 0;)
        add_all(bases, n, turn);
    bases->n_first = bases->n;
    for (int32_t turn = 0; turn < turns && n > 1; turn++)
        for (int32_t i = 0; i < n; i++)
            add_one(bases, n, i, turn);
    if (turns > 1)
        bases->base[bases->n++].of[n] = 1; /* the ranks' own alone */
}

/* Bits of the bursts that are taken off, as if all of them passed at once: `bits` of the others' bytes take
 * no time at all. */
static int32_t find_variants(int32_t n_shaped, uint32_t variant[MOST_VARIANTS])
{
    const uint32_t all = (UINT32_C(1) << n_shaped) - 1;
    int32_t n = 0;
    variant[n++] = all;
    for (int32_t i = 0; i <= n_shaped && n_shaped > 0; i++)
        for (int32_t whole = 0; whole < 2; whole++) {
            const uint32_t one = i ? UINT32_C(1) << (i - 1) : 0, bits = whole ? all & ~one : one;
            bool known = false;
            for (int32_t k = 0; k < n; k++)
                known = known || variant[k] == bits;
            if (!known)
                variant[n++] = bits;
        }
    return n;
}

/* Of bytes that take s seconds a burst takes off s * burst / carried, but no more than all. By the second, it is
 * no more than the burst, times how often a carried byte counts, as far as this is usual; beyond, see gain(). */
static void add_mean(mc_bounds_t *b, const base_t *base, uint32_t bursts)
{
    const mc_load_kind_t *const kind = &b->kind;
    const int32_t m = b->n_means++;
    double *const weight =
        b->weight + (size_t)(m / MC_LANES) * (size_t)kind->n * MC_LANES + m % MC_LANES;
    double *const offset = b->offset + (size_t)(m / MC_LANES) * 2 * MC_LANES + m % MC_LANES;
    weight[0] = 1;
    for (int32_t i = 0; i < kind->n_busy; i++)
        weight[(1 + i) * MC_LANES] = base->of[i];
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        double busy = base->of[kind->shaped[s].wire];
        if (!(bursts >> s & 1))
            continue;
        busy += kind->shaped[s].pulled ? base->of[kind->n_wires] : 0;
        double *const part = weight + part_of_shaped(kind, s) * MC_LANES;
        double *const more = weight + part_of_gain(kind, s) * MC_LANES;
        part[0] = 1;
        part[MC_LANES] = busy;
        more[0] = -1;
        more[MC_LANES] = -busy;
        offset[0] -= kind->shaped[s].burst;
        offset[MC_LANES] -= kind->shaped[s].burst * busy;
    }
}

int mc_bounds_init(mc_bounds_t *b, const mc_priced_t *graph, const mc_links_t *links, double bytes)
{
    bases_t bases;
    uint32_t variant[MOST_VARIANTS];
    *b = (mc_bounds_t){.graph = graph, .bytes = bytes, .kind = kind_of(graph, links)};
    find_bases(&b->kind, &bases);
    const int32_t n_variants = find_variants(b->kind.n_shaped, variant), all = bases.n * n_variants;
    b->n_blocks = (all + MC_LANES - 1) / MC_LANES;
    const size_t lanes = (size_t)b->n_blocks * MC_LANES;
    b->weight = calloc(lanes * (size_t)b->kind.n, sizeof *b->weight);
    b->offset = calloc(2 * lanes, sizeof *b->offset);
    const size_t parts = b->kind.n_priced > MC_LANES ? (size_t)b->kind.n_priced : MC_LANES;
    b->at_group = malloc(parts * sizeof *b->at_group * (size_t)graph->n_groups);
    if (!b->weight || !b->offset || !b->at_group) {
        mc_bounds_free(b);
        return mc_fail_memory("the planner's bounds");
    }
    for (int32_t v = 0; v < n_variants; v++)
        for (int32_t i = 0; i < bases.n_first; i++)
            add_mean(b, &bases.base[i], variant[v]);
    for (int32_t v = 0; v < n_variants; v++)
        for (int32_t i = bases.n_first; i < bases.n; i++)
            add_mean(b, &bases.base[i], variant[v]);
    return MESHCOLL_OK;
}

void mc_bounds_free(mc_bounds_t *b)
{
    free(b->weight);
    free(b->offset);
    free(b->at_group);
    *b = (mc_bounds_t){0};
}

static const lanes_t *weights_of(const mc_bounds_t *b, int32_t block)
{
    return (const lanes_t *)b->weight + (size_t)block * (size_t)b->kind.n;
}

/* By node. */
static lanes_t *to_go_of(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    return (lanes_t *)cut->to_go + (size_t)block * (size_t)b->graph->n_nodes;
}

static inline lanes_t added(lanes_t a, lanes_t b)
{
    for (int32_t i = 0; i < MC_LANES / 2; i++)
        a.of[i] += b.of[i];
    return a;
}

static inline lanes_t lower(lanes_t a, lanes_t b)
{
    for (int32_t i = 0; i < MC_LANES / 2; i++) {
        const mask_t less = a.of[i] < b.of[i];
        a.of[i] = (pair_t)((less & (mask_t)a.of[i]) | (~less & (mask_t)b.of[i]));
    }
    return a;
}

static inline lanes_t weighted_sum(lanes_t sum, const lanes_t *weight, const double *load,
                                   int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < MC_LANES / 2; i++)
            sum.of[i] += weight[k].of[i] * load[k];
    return sum;
}

static void fill_groups(mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    const lanes_t *const weight = weights_of(b, block), none = {0};
    const int32_t n = b->kind.n;
    for (int32_t g = 0; g < b->graph->n_groups; g++) {
        const mc_priced_group_t group = b->graph->group[g];
        const double *load = mc_cut_step(b, cut, group.first);
        lanes_t least = weighted_sum(none, weight, load, n);
        for (int32_t i = 1; i < group.n; i++)
            least = lower(weighted_sum(none, weight, load += n, n), least);
        ((lanes_t *)b->at_group)[g] = least;
    }
}

static void fill_to_go(const mc_bounds_t *b, mc_cut_t *cut, int32_t block)
{
    const mc_priced_t *const graph = b->graph;
    const lanes_t *const at_group = (const lanes_t *)b->at_group;
    const lanes_t *const offset = (const lanes_t *)b->offset + 2 * (size_t)block;
    lanes_t *const to_go = to_go_of(b, cut, block);
    lanes_t at_end;
    /* what passes at once, of the first segment and of the others */
    for (int32_t i = 0; i < MC_LANES / 2; i++)
        at_end.of[i] = (offset[0].of[i] + offset[1].of[i] * (cut->segments - 1.0)) / cut->segments;
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        const mc_priced_hop_t *hop = graph->hop + graph->first_hop[node];
        const mc_priced_hop_t *const end = graph->hop + graph->first_hop[node + 1];
        lanes_t least = hop < end ? added(at_group[hop->group], to_go[hop->next]) : at_end;
        while (++hop < end)
            least = lower(added(at_group[hop->group], to_go[hop->next]), least);
        to_go[node] = least;
    }
}

/* The one in lane `l` of many. */
static inline double lane_of(const lanes_t *lanes, int32_t l)
{
    return lanes->of[l / 2][l % 2];
}

static double weighted(const mc_bounds_t *b, int32_t block, int32_t lane, const double *load)
{
    const double *const weight = (const double *)weights_of(b, block) + lane;
    double sum = 0;
    for (int32_t k = 0; k < b->kind.n; k++)
        sum += weight[k * MC_LANES] * load[k];
    return sum;
}

/* Seconds of the path that is cheapest by one mean of the block just filled in. */
static double follow(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block, int32_t lane)
{
    const mc_priced_t *const graph = b->graph;
    double load[MC_MOST_PARTS] = {0};
    for (int32_t node = graph->n_nodes - 1; graph->first_hop[node] < graph->first_hop[node + 1];) {
        int32_t next = -1, step = -1;
        double least = INFINITY;
        for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++) {
            const mc_priced_hop_t hop = graph->hop[h];
            const double sum = b->at_group[hop.group * MC_LANES + lane] +
                               lane_of(&to_go_of(b, cut, block)[hop.next], lane);
            if (sum < least || next < 0) {
                least = sum;
                next = h;
            }
        }
        const mc_priced_group_t group = graph->group[graph->hop[next].group];
        least = INFINITY;
        for (int32_t i = group.first; i < group.first + group.n; i++) {
            const double sum = weighted(b, block, lane, mc_cut_step(b, cut, i));
            if (sum < least || step < 0) {
                least = sum;
                step = i;
            }
        }
        for (int32_t k = 0; k < b->kind.n; k++)
            load[k] += mc_cut_step(b, cut, step)[k];
        node = graph->hop[next].next;
    }
    return mc_bounds_whole(b, load);
}

/* Cuts ------------------------------------------------------------------------------------------- */

static void fill_block(mc_bounds_t *b, mc_cut_t *cut, double *good)
{
    const int32_t block = cut->n_blocks++, left = b->n_means - block * MC_LANES;
    int32_t strongest = 0;
    fill_groups(b, cut, block);
    fill_to_go(b, cut, block);
    const lanes_t *const start = to_go_of(b, cut, block) + b->graph->n_nodes - 1;
    for (int32_t l = 0; l < left && l < MC_LANES; l++) {
        strongest = lane_of(start, l) > lane_of(start, strongest) ? l : strongest;
        if (block == 0)
            *good = fmin(*good, follow(b, cut, block, l));
    }
    if (block > 0)
        *good = fmin(*good, follow(b, cut, block, strongest));
    cut->bound = fmax(cut->bound, lane_of(start, strongest));
}

static void lower_parts(double *least, const double *load, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        least[k] = load[k] < least[k] ? load[k] : least[k];
}

static void least_of_groups(mc_bounds_t *b, const mc_cut_t *cut)
{
    const int32_t n = b->kind.n_priced;
    for (int32_t g = 0; g < b->graph->n_groups; g++) {
        const mc_priced_group_t group = b->graph->group[g];
        double *const least = b->at_group + (size_t)g * (size_t)n;
        memcpy(least, mc_cut_step(b, cut, group.first), sizeof *least * (size_t)n);
        for (int32_t i = group.first + 1; i < group.first + group.n; i++)
            lower_parts(least, mc_cut_step(b, cut, i), n);
    }
}

static void fill_least(mc_bounds_t *b, mc_cut_t *cut)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t n = b->kind.n_priced;
    least_of_groups(b, cut);
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        const int32_t first = graph->first_hop[node], end = graph->first_hop[node + 1];
        double *const least = cut->least + (size_t)node * (size_t)n;
        for (int32_t k = 0; k < n; k++)
            least[k] = first < end ? INFINITY : 0;
        for (int32_t h = first; h < end; h++) {
            const double *const at = b->at_group + (size_t)graph->hop[h].group * (size_t)n;
            const double *const after = cut->least + (size_t)graph->hop[h].next * (size_t)n;
            for (int32_t k = 0; k < n; k++)
                least[k] = at[k] + after[k] < least[k] ? at[k] + after[k] : least[k];
        }
    }
}

int mc_cut_open(mc_bounds_t *b, mc_cut_t *cut, uint32_t segments, double *good)
{
    const size_t nodes = (size_t)b->graph->n_nodes;
    *cut = (mc_cut_t){.segments = segments};
    cut->load = malloc(sizeof(double) * (size_t)b->graph->n_steps * (size_t)b->kind.n);
    cut->to_go = malloc(sizeof(double) * nodes * (size_t)b->n_blocks * MC_LANES);
    if (!cut->load || !cut->to_go) {
        mc_cut_drop(cut);
        return mc_fail_memory("the planner's bounds");
    }
    mc_cut_load(b, cut);
    fill_block(b, cut, good);
    return MESHCOLL_OK;
}

bool mc_cut_tighten(mc_bounds_t *b, mc_cut_t *cut, double *good)
{
    if (cut->n_blocks == b->n_blocks)
        return false;
    fill_block(b, cut, good);
    return true;
}

int mc_cut_close(mc_bounds_t *b, mc_cut_t *cut)
{
    cut->least = malloc(sizeof(double) * (size_t)b->graph->n_nodes * (size_t)b->kind.n_priced);
    if (!cut->least)
        return mc_fail_memory("the planner's bounds");
    fill_least(b, cut);
    return MESHCOLL_OK;
}

void mc_cut_drop(mc_cut_t *cut)
{
    free(cut->load);
    free(cut->to_go);
    free(cut->least);
    *cut = (mc_cut_t){.bound = INFINITY};
}

static bool block_dearer(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block,
                         const double *load, int32_t node, double limit)
{
    const lanes_t sum =
        weighted_sum(to_go_of(b, cut, block)[node], weights_of(b, block), load, b->kind.n);
    mask_t dearer = {0};
    for (int32_t i = 0; i < MC_LANES / 2; i++)
        dearer |= sum.of[i] > limit;
    return dearer[0] | dearer[1];
}

static bool least_dearer(const mc_bounds_t *b, const mc_cut_t *cut, const double *load,
                         int32_t node, double limit)
{
    const int32_t n = b->kind.n_priced;
    const double *const least = cut->least + (size_t)node * (size_t)n;
    double sum[MC_MOST_PARTS];
    for (int32_t k = 0; k < n; k++)
        sum[k] = load[k] + least[k];
    return mc_bounds_whole(b, sum) > limit;
}

bool mc_cut_dearer(const mc_bounds_t *b, const mc_cut_t *cut, const double *load, int32_t node,
                   double limit, int32_t *keen)
{
    const int32_t n = cut->n_blocks;
    for (int32_t i = 0, block = *keen < n ? *keen : 0; i < n;
         i++, block = block + 1 < n ? block + 1 : 0)
        if (block_dearer(b, cut, block, load, node, limit)) {
            *keen = block;
            return true;
        }
    return least_dearer(b, cut, load, node, limit);
}
