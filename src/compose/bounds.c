#include "compose/bounds.h"

#include "compose/good.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Directions in which the hypotenuse of links and ranks is looked at. */
enum { TURNS = 4 };
enum { MOST_BASES = TURNS * (MC_MAX_DIMS + 1) + 1 };
/* Which bursts a mean takes off: all, none, one, all but one. */
enum { MOST_VARIANTS = 2 + 2 * MC_MAX_DIMS };

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

/* Dimensions that go over a wire; those among them in which its bytes are the ranks' own time. */
static void count_dims(const mc_priced_t *graph, const mc_links_t *links, int32_t wire, int32_t *n,
                       int32_t *n_own)
{
    *n = *n_own = 0;
    for (int32_t i = 0; i < graph->graph.n; i++)
        if (graph->wire_of[i] == wire) {
            ++*n;
            *n_own += mc_link_is_ranks_own(&links->dim[graph->graph.dim[i]]);
        }
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
        kind.n_shaped++;
    }
    kind.n_priced = 1 + kind.n_busy + MC_SHAPED_PARTS * kind.n_shaped;
    for (int32_t s = 0; s < kind.n_shaped; s++) {
        int32_t n, n_own;
        count_dims(graph, links, kind.shaped[s].wire, &n, &n_own);
        kind.shaped[s].pulled = n_own == n;
        if (n_own > 0 && n_own < n)
            kind.shaped[s].own = kind.n_priced++;
    }
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

/* See mc_bounds_t. */
static void load_step(const mc_bounds_t *b, const mc_priced_step_t *step, double *fixed,
                      double *moved)
{
    const mc_load_kind_t *const kind = &b->kind;
    const mc_price_t *const price = &b->graph->price[step->price];
    const double bytes = b->bytes * mc_ratio_value(step->share);
    fixed[0] = price->fixed;
    moved[0] = price->per_byte * bytes;
    for (int32_t i = 0; i < kind->n_busy; i++) {
        fixed[1 + i] = price->busy_fixed[i];
        moved[1 + i] = price->busy_per_byte[i] * bytes;
    }
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const mc_shaped_t *const shaped = &price->shaped[kind->shaped[s].wire];
        const int32_t part = part_of_shaped(kind, s);
        fixed[part] = shaped->once_fixed;
        moved[part] = shaped->once * bytes;
        fixed[part + 1] = shaped->busy_fixed;
        moved[part + 1] = shaped->busy * bytes;
        moved[part + 2] = shaped->carried * bytes * kind->shaped[s].beta;
        if (kind->shaped[s].own) {
            fixed[kind->shaped[s].own] = shaped->own_fixed;
            moved[kind->shaped[s].own] = shaped->own * bytes;
        }
    }
}

static uint64_t parts_of_step(const mc_load_kind_t *kind, const double *fixed, const double *moved)
{
    const uint64_t all = (UINT64_C(1) << MC_SHAPED_PARTS) - 1;
    uint64_t parts = 0;
    for (int32_t k = 0; k < kind->n_priced; k++)
        parts |= (uint64_t)(fixed[k] + moved[k] > 0) << k;
    for (int32_t s = 0; s < kind->n_shaped; s++)
        if (parts >> part_of_shaped(kind, s) & all)
            parts |= UINT64_C(3) << part_of_gain(kind, s);
    return parts;
}

void mc_bounds_reload(mc_bounds_t *b)
{
    const size_t n = (size_t)b->kind.n;
    memset(b->fixed, 0, sizeof *b->fixed * n * (size_t)b->graph->n_steps);
    memset(b->moved, 0, sizeof *b->moved * n * (size_t)b->graph->n_steps);
    for (size_t i = 0; i < (size_t)b->graph->n_steps; i++) {
        load_step(b, &b->graph->step[i], b->fixed + i * n, b->moved + i * n);
        b->parts[i] = parts_of_step(&b->kind, b->fixed + i * n, b->moved + i * n);
    }
}

static mc_times_t times_of(const mc_bounds_t *b, uint32_t segments)
{
    const mc_load_kind_t *const kind = &b->kind;
    const double piece = b->bytes > 0 ? 1.0 / segments : 0, rest = segments - 1.0;
    mc_times_t times = {{1}, {piece}};
    for (int32_t i = 0; i < kind->n_busy; i++) {
        times.fixed[1 + i] = rest;
        times.moved[1 + i] = rest * piece;
    }
    for (int32_t s = 0; s < kind->n_shaped && b->bytes > 0; s++) {
        const int32_t part = part_of_shaped(kind, s);
        times.fixed[part] = 1;
        times.moved[part] = piece;
        times.fixed[part + 1] = rest;
        times.moved[part + 1] = rest * piece;
        times.moved[part + 2] = 1;
        if (kind->shaped[s].own) {
            times.fixed[kind->shaped[s].own] = rest;
            times.moved[kind->shaped[s].own] = rest * piece;
        }
    }
    return times;
}

static void load_gains(const mc_load_kind_t *kind, uint32_t segments, uint64_t parts, double *load)
{
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const double *const part = load + part_of_shaped(kind, s);
        double *const more = load + part_of_gain(kind, s);
        const double burst = kind->shaped[s].burst;
        if (!(parts >> part_of_gain(kind, s) & 1))
            continue;
        more[0] = gain(part[0], part[2], 1.0 / segments, burst);
        more[1] = gain(part[1], part[2], (segments - 1.0) / segments, burst);
    }
}

static void load_steps(const mc_bounds_t *b, const mc_cut_t *cut)
{
    const mc_times_t *const times = &cut->times;
    const double *fixed = b->fixed, *moved = b->moved;
    const int32_t n = b->kind.n;
    double *load = cut->load;
    for (int32_t i = 0; i < b->graph->n_steps; i++, load += n, fixed += n, moved += n) {
        for (int32_t k = 0; k < n; k++)
            load[k] = fixed[k] * times->fixed[k] + moved[k] * times->moved[k];
        load_gains(&b->kind, cut->segments, b->parts[i], load);
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
        if (kind->shaped[s].own)
            busy[kind->n_wires] += late * load[kind->shaped[s].own];
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
    const int32_t block = m / MC_LANES, lane = m % MC_LANES;
    mc_lanes_t *const weight = b->weight + (size_t)block * (size_t)kind->n;
    mc_lanes_t *const offset = b->offset + 2 * (size_t)block;
    weight[0].of[lane] = 1;
    for (int32_t i = 0; i < kind->n_busy; i++)
        weight[1 + i].of[lane] = base->of[i];
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        double busy = base->of[kind->shaped[s].wire];
        if (!(bursts >> s & 1))
            continue;
        busy += kind->shaped[s].pulled ? base->of[kind->n_wires] : 0;
        mc_lanes_t *const part = weight + part_of_shaped(kind, s);
        mc_lanes_t *const more = weight + part_of_gain(kind, s);
        part[0].of[lane] = 1;
        part[1].of[lane] = busy;
        more[0].of[lane] = -1;
        more[1].of[lane] = -busy;
        offset[0].of[lane] -= kind->shaped[s].burst;
        offset[1].of[lane] -= kind->shaped[s].burst * busy;
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
    b->weight = calloc((size_t)b->n_blocks * (size_t)b->kind.n, sizeof *b->weight);
    b->offset = calloc(2 * (size_t)b->n_blocks, sizeof *b->offset);
    b->at_group = malloc((size_t)b->kind.n_priced * sizeof *b->at_group * (size_t)graph->n_groups);
    b->fixed = malloc(sizeof *b->fixed * (size_t)b->kind.n * (size_t)graph->n_steps);
    b->moved = malloc(sizeof *b->moved * (size_t)b->kind.n * (size_t)graph->n_steps);
    b->parts = malloc(sizeof *b->parts * (size_t)graph->n_steps);
    if (!b->weight || !b->offset || !b->at_group || !b->fixed || !b->moved || !b->parts) {
        mc_bounds_free(b);
        return mc_fail_memory("the planner's bounds");
    }
    for (int32_t v = 0; v < n_variants; v++)
        for (int32_t i = 0; i < bases.n; i++)
            add_mean(b, &bases.base[i], variant[v]);
    mc_bounds_reload(b);
    return MESHCOLL_OK;
}

void mc_bounds_free(mc_bounds_t *b)
{
    free(b->weight);
    free(b->offset);
    free(b->at_group);
    free(b->fixed);
    free(b->moved);
    free(b->parts);
    *b = (mc_bounds_t){0};
}

mc_lanes_t mc_block_mean(const mc_bounds_t *b, int32_t block, const double *load, uint64_t parts)
{
    const mc_lanes_t *const weight = b->weight + (size_t)block * (size_t)b->kind.n;
    mc_lanes_t mean = {{0}};
    for (; parts; parts &= parts - 1) {
        const int32_t k = __builtin_ctzll(parts);
        for (int32_t i = 0; i < MC_LANES / 2; i++)
            mean.two[i] += weight[k].two[i] * load[k];
    }
    return mean;
}

static inline mc_pair_t lesser(mc_pair_t a, mc_pair_t b)
{
#ifdef __SSE2__
    return _mm_min_pd(a, b);
#else
    return (mc_pair_t){a[0] < b[0] ? a[0] : b[0], a[1] < b[1] ? a[1] : b[1]};
#endif
}

/* The lesser of each lane. */
static inline void lower(mc_lanes_t *least, const mc_lanes_t *a)
{
    for (int32_t i = 0; i < MC_LANES / 2; i++)
        least->two[i] = lesser(a->two[i], least->two[i]);
}

static void fill_groups(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    mc_lanes_t *const at_step = mc_block_steps(cut, block);
    for (int32_t i = 0; i < b->graph->n_steps; i++)
        at_step[i] = mc_block_mean(b, block, mc_cut_step(b, cut, i), b->parts[i]);
    for (int32_t g = 0; g < b->graph->n_groups; g++) {
        const mc_priced_group_t group = b->graph->group[g];
        mc_lanes_t least = at_step[group.first];
        for (int32_t i = group.first + 1; i < group.first + group.n; i++)
            lower(&least, &at_step[i]);
        mc_block_groups(b, cut, block)[g] = least;
    }
}

static void fill_nodes(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    const mc_priced_t *const graph = b->graph;
    const mc_lanes_t *const at_group = mc_block_groups(b, cut, block);
    const mc_lanes_t *const offset = b->offset + 2 * (size_t)block;
    mc_lanes_t *const to_go = mc_block_nodes(b, cut, block);
    const mc_lanes_t far = {{INFINITY, INFINITY, INFINITY, INFINITY}};
    mc_lanes_t at_end;
    /* what passes at once, of the first segment and of the others */
    for (int32_t l = 0; l < MC_LANES; l++)
        at_end.of[l] = (offset[0].of[l] + offset[1].of[l] * (cut->segments - 1.0)) / cut->segments;
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        const mc_priced_hop_t *const end = graph->hop + graph->first_hop[node + 1];
        const mc_priced_hop_t *hop = graph->hop + graph->first_hop[node];
        mc_lanes_t least = hop < end ? far : at_end;
        for (; hop < end; hop++) {
            mc_lanes_t by;
            for (int32_t i = 0; i < MC_LANES / 2; i++)
                by.two[i] = at_group[hop->group].two[i] + to_go[hop->next].two[i];
            lower(&least, &by);
        }
        to_go[node] = least;
    }
}

/* Cuts ------------------------------------------------------------------------------------------- */

static int fill_means(mc_bounds_t *b, mc_cut_t *cut)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t block = cut->n_blocks;
    const size_t lanes = (size_t)graph->n_steps + (size_t)graph->n_groups + (size_t)graph->n_nodes;
    if (!(cut->block[block] = malloc(sizeof(mc_lanes_t) * lanes)))
        return mc_fail_memory("the planner's bounds");
    cut->n_blocks++;
    fill_groups(b, cut, block);
    fill_nodes(b, cut, block);
    return MESHCOLL_OK;
}

static int fill_block(mc_bounds_t *b, mc_cut_t *cut, mc_good_t *good)
{
    const int32_t block = cut->n_blocks, left = b->n_means - block * MC_LANES;
    int32_t strongest = 0;
    const int status = fill_means(b, cut);
    if (status)
        return status;
    const mc_lanes_t *const start = &mc_block_nodes(b, cut, block)[b->graph->n_nodes - 1];
    for (int32_t l = 0; l < left && l < MC_LANES; l++) {
        strongest = start->of[l] > start->of[strongest] ? l : strongest;
        if (block == 0)
            mc_good_follow(b, cut, block, l, good);
    }
    if (block > 0)
        mc_good_follow(b, cut, block, strongest, good);
    cut->bound = fmax(cut->bound, start->of[strongest]);
    return MESHCOLL_OK;
}

static void lower_parts(double *restrict least, const double *restrict load, int32_t n)
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

static void lower_sums(double *restrict least, const double *restrict at,
                       const double *restrict after, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        const double sum = at[k] + after[k];
        least[k] = sum < least[k] ? sum : least[k];
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
        for (int32_t h = first; h < end; h++)
            lower_sums(least, b->at_group + (size_t)graph->hop[h].group * (size_t)n,
                       cut->least + (size_t)graph->hop[h].next * (size_t)n, n);
    }
}

static int load_cut(const mc_bounds_t *b, mc_cut_t *cut)
{
    cut->load = malloc(sizeof *cut->load * (size_t)b->graph->n_steps * (size_t)b->kind.n);
    if (!cut->load)
        return mc_fail_memory("the planner's bounds");
    load_steps(b, cut);
    return MESHCOLL_OK;
}

int mc_cut_open(mc_bounds_t *b, mc_cut_t *cut, uint32_t segments, mc_good_t *good)
{
    *cut = (mc_cut_t){.segments = segments, .times = times_of(b, segments)};
    cut->block = malloc(sizeof *cut->block * (size_t)b->n_blocks);
    int status = load_cut(b, cut);
    if (!status && !cut->block)
        status = mc_fail_memory("the planner's bounds");
    if (!status)
        status = fill_block(b, cut, good);
    if (!status && cut->bound < good->seconds)
        status = mc_good_roll_out(b, cut, good);
    if (status) {
        mc_cut_drop(cut);
        return status;
    }
    /* few cuts are looked into, and all this is soon there again */
    free(cut->load);
    cut->load = NULL;
    free(cut->block[--cut->n_blocks]);
    return MESHCOLL_OK;
}

int mc_cut_tighten(mc_bounds_t *b, mc_cut_t *cut, mc_good_t *good)
{
    return cut->n_blocks < b->n_blocks ? fill_block(b, cut, good) : MESHCOLL_OK;
}

int mc_cut_close(mc_bounds_t *b, mc_cut_t *cut)
{
    cut->least = malloc(sizeof *cut->least * (size_t)b->graph->n_nodes * (size_t)b->kind.n_priced);
    int status = cut->least ? load_cut(b, cut) : mc_fail_memory("the planner's bounds");
    if (!status)
        status = fill_means(b, cut);
    if (!status)
        fill_least(b, cut);
    return status;
}

void mc_cut_drop(mc_cut_t *cut)
{
    free(cut->load);
    for (int32_t i = 0; i < cut->n_blocks; i++)
        free(cut->block[i]);
    free(cut->block);
    free(cut->least);
    *cut = (mc_cut_t){.bound = INFINITY};
}

int mc_cut_floor(const mc_bounds_t *b, uint32_t segments, double *seconds)
{
    mc_bounds_t messages = *b;
    mc_good_t none = {.seconds = 0};
    mc_cut_t cut;
    messages.bytes = 0;
    const int status = mc_cut_open(&messages, &cut, segments, &none);
    *seconds = status ? 0 : cut.bound;
    mc_cut_drop(&cut);
    return status;
}

bool mc_cut_least_dearer(const mc_bounds_t *b, const mc_cut_t *cut, const double *load,
                         int32_t node, double limit)
{
    const int32_t n = b->kind.n_priced;
    const double *const least = cut->least + (size_t)node * (size_t)n;
    double sum[MC_MOST_PARTS];
    for (int32_t k = 0; k < n; k++)
        sum[k] = load[k] + least[k];
    return mc_bounds_whole(b, sum) > limit;
}
