#include "contention/contention.h"

#include "compose/algorithms/registry.h"
#include "doubling/doubling.h"
#include "network/ends.h"

#include <stdlib.h>
#include <string.h>

/* A rank that sends in a phase, and its line. */
typedef struct {
    int32_t rank, me, base;
} sender_t;

/* A round of all ranks, for a message as large as the tile. */
typedef struct {
    int32_t by; /* 0: not routed yet */
    mc_strain_t strain;
} round_t;

/* The lines along dims on which a phase runs. */
typedef struct {
    mc_dims_t dims;
    unsigned rooted;
    int32_t root, len, stride, rows, index; /* `index` of the root on its line */
    bool across;                            /* do they leave boxes? */
    uint32_t n_senders, n_shifts, shift_capacity;
    sender_t *sender;
    round_t *shift, spread, swap[2][MC_MAX_ROUNDS];
    uint64_t known; /* algorithms whose strain is here, a bit each */
    mc_strain_t strain[MC_MAX_ALGORITHMS];
} lines_t;

struct mc_contention {
    struct mc_networked prices;
    const mc_mesh_t *mesh;
    mc_links_t links;
    mc_network_t *network;
    const int32_t *order;
    int32_t *end; /* by rank */
    int status;
    uint32_t n_lines, line_capacity;
    lines_t **lines;
    /* of the round that is being added up: seconds per byte of the tile of each link, and of each port by wire, out and
     * in; and of all single messages of the algorithm, of each link */
    double *load, *port, *sum;
    uint32_t n_ports, n_loaded, n_used, n_summed, loaded_capacity, used_capacity, summed_capacity;
    uint32_t *loaded, *used, *summed;
    mc_network_route_t route;
    int32_t from, to; /* of `route` */
};

/* Routing ---------------------------------------------------------------------------------------- */

static void fail(mc_contention_t *c, int status)
{
    c->status = c->status ? c->status : status;
}

static void add_load(mc_contention_t *c, double *to, uint32_t at, double load, uint32_t **list,
                     uint32_t *n, uint32_t *capacity)
{
    if (to[at] == 0)
        fail(c, mc_array_add(list, n, capacity, &at, sizeof at, "the loads of a network"));
    to[at] += load;
}

static void add_port(mc_contention_t *c, int32_t wire, int32_t end, bool in, double load)
{
    const uint32_t at = ((uint32_t)wire * c->n_ports + (uint32_t)end) * 2 + in;
    add_load(c, c->port, at, load, &c->used, &c->n_used, &c->used_capacity);
}

static void add_message(mc_contention_t *c, int32_t from, int32_t to, double part)
{
    const int32_t a = c->order ? c->order[from] : from, b = c->order ? c->order[to] : to;
    const int32_t d = mc_mesh_level(c->mesh, a, b), ends[2] = {c->end[a], c->end[b]};
    if (d < 0 || !mc_network_joins(c->mesh, d) || ends[0] == ends[1])
        return;
    if (c->from != ends[0] || c->to != ends[1]) {
        c->route.n = 0;
        fail(c, mc_network_route(c->network, ends[0], ends[1], &c->route));
        c->from = ends[0];
        c->to = ends[1];
    }
    for (uint32_t h = 0; h < c->route.n && !c->status; h++)
        add_load(c, c->load, c->route.link[h], part, &c->loaded, &c->n_loaded, &c->loaded_capacity);
    for (int32_t in = 0; in < 2; in++)
        add_port(c, mc_links_wire(&c->links, d), ends[in], in, part * c->links.dim[d].beta);
}

/* The strain of the messages that were added, which are a round; they are forgotten. `sums`: their loads are kept for
 * take_sums. */
static mc_strain_t take_round(mc_contention_t *c, double sums)
{
    mc_strain_t s = {0};
    double longest = 0, port = 0;
    for (uint32_t i = 0; i < c->n_loaded; i++) {
        const uint32_t link = c->loaded[i];
        const double seconds = c->load[link] * mc_network_beta(c->network, link);
        double *const busy = &s.busy[mc_network_part(c->network, link)];
        *busy = seconds > *busy ? seconds : *busy;
        longest = seconds > longest ? seconds : longest;
        c->load[link] = 0;
        if (sums > 0)
            add_load(c, c->sum, link, seconds * sums, &c->summed, &c->n_summed,
                     &c->summed_capacity);
    }
    for (uint32_t i = 0; i < c->n_used; i++) {
        port = c->port[c->used[i]] > port ? c->port[c->used[i]] : port;
        c->port[c->used[i]] = 0;
    }
    c->n_loaded = c->n_used = 0;
    s.extra = longest > port ? longest - port : 0;
    return s;
}

static void take_sums(mc_contention_t *c, mc_strain_t *strain)
{
    mc_strain_t most = {0};
    for (uint32_t i = 0; i < c->n_summed; i++) {
        double *const busy = &most.busy[mc_network_part(c->network, c->summed[i])];
        *busy = c->sum[c->summed[i]] > *busy ? c->sum[c->summed[i]] : *busy;
        c->sum[c->summed[i]] = 0;
    }
    c->n_summed = 0;
    mc_strain_add(strain, &most, 1);
}

/* Rounds ----------------------------------------------------------------------------------------- */

typedef struct {
    mc_round_sink_t sink;
    mc_contention_t *c;
    lines_t *lines;
    mc_strain_t strain;
} sum_t;

static int32_t rank_on(const mc_contention_t *c, const lines_t *l, const sender_t *s, int32_t index)
{
    const int32_t place = s->base + index * l->stride;
    return l->len == c->mesh->size ? place : mc_mesh_rank_at(c->mesh, place);
}

static void add_from(mc_contention_t *c, const lines_t *l, const sender_t *s, int32_t index,
                     double part)
{
    const int32_t to = rank_on(c, l, s, index);
    if (to >= 0)
        add_message(c, s->rank, to, part);
}

/* A rank has so many messages under way, which share links; the next ones wait for them. Of many distances some stand for
 * all: links share them alike, unless a hash spreads them. */
enum { SPREAD_AT_ONCE = 12, SPREAD_LEAST = 32, SPREAD_MESSAGES = 1 << 15 };

static mc_strain_t route_spread(mc_contention_t *c, const lines_t *l)
{
    const int32_t room = SPREAD_MESSAGES / (int32_t)(l->n_senders + 1), n = l->len - 1;
    const int32_t most = (room > SPREAD_LEAST ? room : SPREAD_LEAST) / SPREAD_AT_ONCE;
    const int32_t turns = (n + SPREAD_AT_ONCE - 1) / SPREAD_AT_ONCE;
    const int32_t samples = turns < most ? turns : most;
    mc_strain_t all = {0};
    for (int32_t k = 0; k < samples; k++) {
        const int32_t first = SPREAD_AT_ONCE * (mc_round_sample(k, samples, turns + 1) - 1) + 1;
        for (int32_t by = first; by < first + SPREAD_AT_ONCE && by <= n; by++)
            for (uint32_t i = 0; i < l->n_senders; i++)
                add_from(c, l, &l->sender[i], (l->sender[i].me + by) % l->len, 1);
        const mc_strain_t turn = take_round(c, 0);
        mc_strain_add(&all, &turn, (double)turns / samples);
    }
    return all;
}

static mc_strain_t route_shift(mc_contention_t *c, const lines_t *l, int32_t by)
{
    for (uint32_t i = 0; i < l->n_senders; i++)
        add_from(c, l, &l->sender[i], (l->sender[i].me + by) % l->len, 1);
    return take_round(c, 0);
}

static mc_strain_t route_swap(mc_contention_t *c, const lines_t *l, int32_t m, bool core)
{
    const mc_core_t all = core ? mc_core(l->len) : (mc_core_t){l->len, 0};
    for (uint32_t i = 0; i < l->n_senders; i++) {
        const sender_t *const s = &l->sender[i];
        const int32_t other = mc_core_member(all, s->me) ^ m;
        if (!mc_core_is_surplus(all, s->me) && other < all.size)
            add_from(c, l, s, mc_core_index(all, other), 1);
    }
    return take_round(c, 0);
}

static void shift(mc_round_sink_t *sink, int32_t by, double part, double times)
{
    sum_t *const sum = (sum_t *)sink;
    lines_t *const l = sum->lines;
    uint32_t i = 0;
    while (i < l->n_shifts && l->shift[i].by != by)
        i++;
    if (i == l->n_shifts) {
        const round_t round = {by, route_shift(sum->c, l, by)};
        const int status = mc_array_add(&l->shift, &l->n_shifts, &l->shift_capacity, &round,
                                        sizeof round, "the loads of a network");
        fail(sum->c, status);
        if (status)
            return;
    }
    mc_strain_add(&sum->strain, &l->shift[i].strain, part * times);
}

static void spread(mc_round_sink_t *sink, double part)
{
    sum_t *const sum = (sum_t *)sink;
    round_t *const round = &sum->lines->spread;
    if (round->by == 0)
        *round = (round_t){1, route_spread(sum->c, sum->lines)};
    mc_strain_add(&sum->strain, &round->strain, part);
}

static void swap(mc_round_sink_t *sink, int32_t m, bool core, double part)
{
    sum_t *const sum = (sum_t *)sink;
    round_t *const round = &sum->lines->swap[core][__builtin_ctz((unsigned)m)];
    if (round->by == 0)
        *round = (round_t){m, route_swap(sum->c, sum->lines, m, core)};
    mc_strain_add(&sum->strain, &round->strain, part);
}

/* The first sender of that index. */
static uint32_t first_at(const lines_t *l, int32_t index)
{
    uint32_t lo = 0, hi = l->n_senders;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (l->sender[mid].me < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void send(mc_round_sink_t *sink, int32_t from, int32_t to, double part)
{
    const sum_t *const sum = (const sum_t *)sink;
    const lines_t *const l = sum->lines;
    for (uint32_t i = first_at(l, from); i < l->n_senders && l->sender[i].me == from; i++)
        add_from(sum->c, l, &l->sender[i], to, part);
}

static void end(mc_round_sink_t *sink, double times)
{
    sum_t *const sum = (sum_t *)sink;
    const mc_strain_t round = take_round(sum->c, times > 0 ? times : 1);
    sum->strain.extra += round.extra * times;
}

/* Lines ------------------------------------------------------------------------------------------ */

static bool sends(const lines_t *l, const mc_mesh_t *mesh, int32_t rank)
{
    const int32_t place = mc_mesh_place(mesh, rank), root = mc_mesh_place(mesh, l->root);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const int32_t stride = mc_mesh_stride(mesh, d), extent = mesh->dim[d].extent;
        if (l->rooted >> d & 1 && !mc_dims_has(l->dims, d) &&
            place / stride % extent != root / stride % extent)
            return false;
    }
    return true;
}

/* Of a ragged mesh a line of all ranks has them in their order. */
static void add_sender(lines_t *l, const mc_mesh_t *mesh, int32_t rank)
{
    const bool all = mesh->ragged && l->dims.count == mesh->ndims;
    const mc_line_t line = mc_mesh_line(mesh, l->dims, rank, l->root);
    l->stride = all ? 1 : line.stride;
    l->len = all ? mesh->size : line.len;
    l->index = all ? l->root : line.root;
    l->sender[l->n_senders++] = (sender_t){rank, all ? rank : line.me, all ? 0 : line.base};
}

static int by_index(const void *a, const void *b)
{
    const sender_t *const x = a, *const y = b;
    return x->me != y->me ? (x->me > y->me) - (x->me < y->me)
                          : (x->rank > y->rank) - (x->rank < y->rank);
}

static lines_t *new_lines(mc_contention_t *c, const mc_mesh_t *mesh, mc_dims_t dims, int32_t root,
                          unsigned rooted)
{
    lines_t *const l = calloc(1, sizeof *l);
    if (l)
        *l = (lines_t){.dims = dims, .root = root, .rooted = rooted};
    for (int32_t d = dims.first; l && d < dims.first + dims.count; d++)
        l->across = l->across || (mc_network_joins(mesh, d) && mesh->dim[d].extent > 1);
    if (l)
        l->sender = calloc((size_t)(l->across ? mesh->size : 1), sizeof *l->sender);
    if (!l || !l->sender ||
        mc_array_add(&c->lines, &c->n_lines, &c->line_capacity, &l, sizeof l, "the lines")) {
        free(l ? l->sender : NULL);
        free(l);
        fail(c, mc_fail_memory("the lines of a network"));
        return NULL;
    }
    for (int32_t r = 0; l->across && r < mesh->size; r++)
        if (sends(l, mesh, r))
            add_sender(l, mesh, r);
    qsort(l->sender, l->n_senders, sizeof *l->sender, by_index);
    for (int32_t d = dims.first; d < dims.first + dims.count && l->rows <= 1; d++)
        l->rows = mesh->dim[d].extent;
    return l;
}

static lines_t *find_lines(mc_contention_t *c, const mc_mesh_t *mesh, mc_dims_t dims, int32_t root,
                           unsigned rooted)
{
    for (uint32_t i = 0; i < c->n_lines; i++) {
        lines_t *const l = c->lines[i];
        if (l->dims.first == dims.first && l->dims.count == dims.count && l->rooted == rooted &&
            l->root == root)
            return l;
    }
    return new_lines(c, mesh, dims, root, rooted);
}

static mc_strain_t strain_of(mc_contention_t *c, lines_t *l, int32_t algorithm)
{
    const mc_algorithm_t *const a = &mc_algorithms[algorithm];
    const mc_round_line_t line = {.len = l->len,
                                  .root = l->index,
                                  .rows = l->rows,
                                  .reduces = mc_moves[a->collective].reduces,
                                  .slices = a->slices,
                                  .root_sends = mc_moves[a->collective].from == MC_ROOT,
                                  .aligned = a->aligned == MC_ALIGNED_ANY};
    sum_t sum = {.sink = {shift, spread, swap, send, end}, .c = c, .lines = l};
    a->rounds(&line, &sum.sink);
    take_sums(c, &sum.strain);
    return sum.strain;
}

static void add_strain(struct mc_networked *self, int32_t algorithm, mc_dims_t dims,
                       const mc_mesh_t *mesh, int32_t root, unsigned rooted, mc_strain_t *strain)
{
    mc_contention_t *const c = (mc_contention_t *)self;
    lines_t *const l = find_lines(c, mesh, dims, root, rooted);
    if (!l || !l->across || c->status)
        return;
    if (!(l->known >> algorithm & 1)) {
        l->strain[algorithm] = strain_of(c, l, algorithm);
        l->known |= UINT64_C(1) << algorithm;
    }
    mc_strain_add(strain, &l->strain[algorithm], 1);
}

int mc_contention_create(const mc_mesh_t *mesh, const mc_links_t *links, mc_network_t *network,
                         const int32_t *order, mc_contention_t **contention)
{
    int32_t per_box;
    mc_contention_t *const c = calloc(1, sizeof *c);
    if (!c)
        return mc_fail_memory("the prices of a network");
    *c = (mc_contention_t){.prices = {add_strain},
                           .mesh = mesh,
                           .links = *links,
                           .network = network,
                           .order = order,
                           .n_ports = (uint32_t)network->ends,
                           .from = -1};
    c->links.network = NULL;
    c->end = malloc((size_t)mesh->size * sizeof *c->end);
    c->load = calloc(network->n_links + 1, sizeof *c->load);
    c->sum = calloc(network->n_links + 1, sizeof *c->sum);
    c->port = calloc((size_t)mesh->ndims * c->n_ports * 2, sizeof *c->port);
    if (!c->end || !c->load || !c->sum || !c->port) {
        mc_contention_free(c);
        return mc_fail_memory("the prices of a network");
    }
    mc_network_ends(mesh, links, c->end, &per_box);
    *contention = c;
    return MESHCOLL_OK;
}

void mc_contention_free(mc_contention_t *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_lines; i++) {
        free(c->lines[i]->sender);
        free(c->lines[i]->shift);
        free(c->lines[i]);
    }
    void *const parts[] = {c->lines,  c->end,  c->load,   c->port,      c->sum,
                           c->loaded, c->used, c->summed, c->route.link};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
    free(c);
}

struct mc_networked *mc_contention_prices(mc_contention_t *c)
{
    return &c->prices;
}

int mc_contention_status(const mc_contention_t *c)
{
    return c->status;
}
