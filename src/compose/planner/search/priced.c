#include "compose/planner/search/priced.h"

#include "compose/cost/cost_pairs.h"
#include "compose/price/pricing.h"

#include <stdlib.h>

enum { NODE_BITS = 3, FIRST_ROOM = 64 };

/* State of the construction. The tables hold index + 1 of what exists already, or 0. */
typedef struct {
    mc_priced_t *p;
    bool by_inner; /* prices depend on the inner dimensions in use: their lines share ports */
    bool by_all;   /* prices depend on all dimensions in use: ranks share cores, or a window */
    int32_t room_prices, room_args, room_steps, room_groups, room_hops, room_nodes;
    int32_t *node;  /* by code_of */
    int32_t *group; /* by line, collective, dimensions in use, dimensions cut (site_t) */
    int32_t *price; /* by line, dimensions in use, algorithm */
} build_t;

/* All that the prices of a hop depend on, except the algorithm. */
typedef struct {
    size_t line; /* code of the line's first and last position */
    /* bits by position: dimensions in use inside of the line, or all but the line's if by_all; and
     * dimensions outside of the line that are cut */
    uint32_t used, shards;
    unsigned cut; /* `shards` by dimension */
} site_t;

/* They do unless every rank of a box has a port. */
static bool ranks_share_ports(const mc_mesh_t *mesh, const mc_links_t *links)
{
    for (int32_t d = 0; d < links->ndims; d++)
        if (links->dim[d].ports < mc_mesh_stride(mesh, d))
            return true;
    return mesh->ragged;
}

/* The array, grown if it has no room for one more, or NULL. */
static void *grown(void *array, int32_t n, int32_t *room, size_t size)
{
    if (n < *room)
        return array;
    const int32_t wanted = *room ? 2 * *room : FIRST_ROOM;
    void *const larger = realloc(array, (size_t)wanted * size);
    if (larger)
        *room = wanted;
    return larger;
}

static site_t site_of(const build_t *b, const mc_node_t *node, const mc_hop_t *hop)
{
    const mc_graph_t *const graph = &b->p->graph;
    const int32_t last = hop->first + hop->count - 1;
    site_t site = {.line = (size_t)(hop->first * graph->n + last)};
    for (int32_t i = 0; i < graph->n; i++) {
        const bool outside = i < hop->first || i > last;
        if (outside && node->at[i] == MC_SHARD) {
            site.shards |= 1u << i;
            site.cut |= 1u << graph->dim[i];
        }
        const bool counts = (i > last && b->by_inner) || (outside && b->by_all);
        if (counts && node->at[i] != MC_ROOT)
            site.used |= 1u << i;
    }
    return site;
}

static mc_ratio_t share_of(const build_t *b, const mc_hop_t *hop, const site_t *site)
{
    return hop->gathered ? mc_pairs_share(b->p->mesh, hop->dims)
                         : mc_share_of(b->p->graph.collective, b->p->mesh, hop->collective,
                                       hop->dims, site->cut);
}

static void add_to(mc_linear_t *sum, mc_linear_t f)
{
    *sum = mc_linear_add(*sum, f);
}

static void add_dim(mc_price_t *price, const mc_priced_t *p, int32_t i, const mc_phase_cost_t *cost)
{
    const int32_t d = p->graph.dim[i], wire = p->wire_of[i];
    const mc_term_t *const once = &cost->once.dim[d], *const busy = &cost->busy.dim[d];
    if (!mc_phase_crosses(cost, d))
        return;
    const mc_linear_busy_t occupied = mc_linear_busy(busy, p->links, d);
    add_to(&price->once, mc_linear_of(once, p->links, d));
    add_to(&price->busy[wire], occupied.link);
    add_to(&price->busy[p->n_wires], occupied.own);
}

static mc_price_t price_for(const mc_priced_t *p, const mc_phase_cost_t *cost)
{
    mc_price_t price = {.message = mc_pacing_mean(cost, p->links)};
    for (int32_t i = 0; i < p->graph.n; i++)
        add_dim(&price, p, i, cost);
    return price;
}

/* Numbers the wires. Dimensions that share one have the same number. */
static void find_wires(mc_priced_t *p, const mc_links_t *links)
{
    for (int32_t i = 0; i < p->graph.n; i++) {
        const int32_t d = p->graph.dim[i], wire = mc_links_wire(links, d);
        int32_t w = 0;
        while (w < p->n_wires && p->wire[w] != wire)
            w++;
        p->n_wires = w == p->n_wires ? w + 1 : p->n_wires;
        p->wire[w] = wire;
        p->wire_of[i] = w;
        p->ranks_apart = p->ranks_apart || mc_links_are_apart(links, d);
    }
}

/* Cut dimensions are priced as whole ones, since the share is a factor of its own. */
static mc_priced_args_t args_of(const build_t *b, const mc_node_t *node, const mc_hop_t *hop,
                                int32_t algorithm)
{
    const mc_graph_t *const graph = &b->p->graph;
    mc_priced_args_t args = {.algorithm = algorithm, .dims = hop->dims};
    for (int32_t d = 0; d < b->p->mesh->ndims; d++)
        args.state[d] = (uint8_t)(graph->from == MC_SHARD ? MC_REPLICA : graph->from);
    for (int32_t i = 0; i < graph->n; i++)
        args.state[graph->dim[i]] = node->at[i] == MC_SHARD ? MC_REPLICA : node->at[i];
    return args;
}

static mc_phase_cost_t cost_of(const mc_priced_t *p, const mc_priced_args_t *args)
{
    mc_placement_t state[MC_MAX_DIMS];
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        state[d] = (mc_placement_t)args->state[d];
    return mc_phase_cost(p->graph.collective, args->algorithm, args->dims, p->mesh, p->links,
                         p->root, state, mc_ratio(1, 1), p->walks);
}

/* Index of the price, or -1. */
static int32_t price_of(build_t *b, const mc_node_t *node, const mc_hop_t *hop, const site_t *site,
                        int32_t algorithm)
{
    mc_priced_t *const p = b->p;
    const size_t line = (site->line << p->graph.n) + site->used;
    int32_t *const known = &b->price[line * (size_t)mc_n_algorithms + (size_t)algorithm];
    if (*known)
        return *known - 1;
    mc_price_t *const price = grown(p->price, p->n_prices, &b->room_prices, sizeof *price);
    if (price)
        p->price = price;
    mc_priced_args_t *const args = grown(p->args, p->n_prices, &b->room_args, sizeof *args);
    if (args)
        p->args = args;
    if (!price || !args)
        return -1;
    args[p->n_prices] = args_of(b, node, hop, algorithm);
    const mc_phase_cost_t cost = cost_of(p, &args[p->n_prices]);
    price[p->n_prices] = price_for(p, &cost);
    *known = ++p->n_prices;
    return *known - 1;
}

/* The number of segments that the cut rule needs for a step. */
static uint32_t needed_by(const build_t *b, const mc_node_t *node, const mc_hop_t *hop,
                          int32_t price, int32_t algorithm, mc_ratio_t share)
{
    const mc_priced_t *const p = b->p;
    mc_placement_t state[MC_MAX_DIMS];
    if (!p->pacing)
        return 1;
    for (int32_t d = 0; d < b->p->mesh->ndims; d++)
        state[d] = p->graph.from;
    for (int32_t i = 0; i < p->graph.n; i++)
        state[p->graph.dim[i]] = (mc_placement_t)node->at[i];
    return mc_pacing_segments(p->pacing, b->p->mesh, algorithm, hop->dims, state,
                              p->price[price].message * mc_ratio_value(share) * p->bytes);
}

/* Index of the hop's group, or -1. */
static int32_t group_of(build_t *b, const mc_node_t *node, const mc_hop_t *hop)
{
    mc_priced_t *const p = b->p;
    const int32_t n = p->graph.n;
    const site_t site = site_of(b, node, hop);
    const size_t line = site.line * MESHCOLL_COLLECTIVES + (size_t)hop->collective;
    int32_t *const known = &b->group[(((line << n) + site.used) << n) + site.shards];
    if (*known)
        return *known - 1;
    mc_choices_t left = mc_graph_choices(&p->graph, hop);
    const mc_ratio_t share = share_of(b, hop, &site);
    mc_priced_group_t *const group = grown(p->group, p->n_groups, &b->room_groups, sizeof *group);
    if (!group)
        return -1;
    p->group = group;
    group[p->n_groups] = (mc_priced_group_t){p->n_steps, mc_choices_count(left)};
    while (left) {
        const int32_t algorithm = mc_choices_take(&left);
        const int32_t price = price_of(b, node, hop, &site, algorithm);
        mc_priced_step_t *const step = grown(p->step, p->n_steps, &b->room_steps, sizeof *step);
        if (step)
            p->step = step;
        if (!step || price < 0)
            return -1;
        step[p->n_steps++] = (mc_priced_step_t){
            price, {algorithm, hop->dims}, share, needed_by(b, node, hop, price, algorithm, share)};
    }
    *known = ++p->n_groups;
    return *known - 1;
}

/* A code of all that determines the paths from a node: each dimension's placement and, unless it is final,
 * whether the dimension has been in the other one of root and shard. */
static uint32_t code_of(const mc_graph_t *graph, const mc_node_t *node)
{
    uint32_t code = node->flat;
    for (int32_t i = 0; i < graph->n; i++) {
        const uint32_t other = node->at[i] == MC_ROOT ? MC_SHARD : MC_ROOT;
        const bool turned = node->at[i] != graph->to && (node->been[i] & 1u << other);
        /* in an alltoall source has the code of root, so root takes that of replica, which is free */
        const bool gathered = graph->from == MC_SOURCE && node->at[i] == MC_ROOT;
        const uint32_t at = gathered ? MC_REPLICA : node->at[i] & 3u;
        code = code << NODE_BITS | at << 1 | turned;
    }
    return code;
}

typedef struct {
    mc_hop_t hop[MC_MAX_HOPS];
    int32_t next[MC_MAX_HOPS];
} hops_t;

/* Adds `node` after all nodes that it leads to. Returns its index, or -1. */
static int32_t add_node(build_t *b, const mc_node_t *node);

static int32_t add_new_node(build_t *b, const mc_node_t *node, hops_t *hops)
{
    mc_priced_t *const p = b->p;
    mc_hop_t *const hop = hops->hop;
    int32_t *const next = hops->next;
    int32_t *const known = &b->node[code_of(&p->graph, node)];
    const int32_t n = mc_graph_hops(&p->graph, node, hop);
    for (int32_t h = 0; h < n; h++) {
        const mc_node_t after = mc_graph_after(node, &hop[h]);
        if ((next[h] = add_node(b, &after)) < 0)
            return -1;
    }
    for (int32_t h = 0; h < n; h++) {
        const int32_t group = group_of(b, node, &hop[h]);
        mc_priced_hop_t *const out = grown(p->hop, p->n_hops, &b->room_hops, sizeof *out);
        if (out)
            p->hop = out;
        if (!out || group < 0)
            return -1;
        out[p->n_hops++] = (mc_priced_hop_t){next[h], group};
    }
    /* one entry more than nodes: the end of the last node's hops */
    int32_t *const first = grown(p->first_hop, p->n_nodes + 1, &b->room_nodes, sizeof *first);
    if (!first)
        return -1;
    p->first_hop = first;
    first[p->n_nodes] = p->n_hops - n;
    first[++p->n_nodes] = p->n_hops;
    *known = p->n_nodes;
    return *known - 1;
}

/* On the heap, as nodes follow each other to the depth of the longest path. */
static int32_t add_node(build_t *b, const mc_node_t *node)
{
    const int32_t known = b->node[code_of(&b->p->graph, node)];
    if (known)
        return known - 1;
    hops_t *const hops = malloc(sizeof *hops);
    const int32_t added = hops ? add_new_node(b, node, hops) : -1;
    free(hops);
    return added;
}

int mc_priced_init(mc_priced_t *p, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                   const mc_links_t *links, const mc_planner_query_t *query)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, query->root);
    *p = (mc_priced_t){.graph = mc_graph(collective, &led, query->in_order, query->aligned),
                       .mesh = mesh,
                       .links = links,
                       .pacing = query->pacing,
                       .bytes = query->bytes,
                       .root = query->root};
    build_t b = {
        .p = p,
        /* an alltoall that gathers has other shares, which depend on the dimensions in use */
        .by_inner = collective == MESHCOLL_ALLTOALL || ranks_share_ports(mesh, links),
        .by_all = mc_links_share_cores(links) || query->pacing};
    find_wires(p, links);
    const mc_node_t start = mc_graph_start(&p->graph);
    const int32_t n = p->graph.n;
    const size_t lines = (size_t)(n * n);
    p->walks = calloc(1, sizeof *p->walks);
    b.node = calloc((size_t)1 << (NODE_BITS * n + 1), sizeof *b.node);
    b.group = calloc((lines * MESHCOLL_COLLECTIVES) << (2 * n), sizeof *b.group);
    b.price = calloc((lines * (size_t)mc_n_algorithms) << n, sizeof *b.price);
    const bool done = p->walks && b.node && b.group && b.price && add_node(&b, &start) >= 0;
    free(b.price);
    free(b.group);
    free(b.node);
    if (done)
        return MESHCOLL_OK;
    mc_priced_free(p);
    return mc_fail_memory("the planner's graph");
}

void mc_priced_free(mc_priced_t *p)
{
    free(p->price);
    free(p->args);
    free(p->exact_of);
    free(p->exact);
    free(p->walks);
    free(p->step);
    free(p->group);
    free(p->hop);
    free(p->first_hop);
    *p = (mc_priced_t){0};
}

/* Allocates the table of exact costs on first use. */
static bool make_exact(mc_priced_t *p)
{
    if (p->exact_of)
        return true;
    p->exact_of = malloc(sizeof *p->exact_of * (size_t)p->n_steps);
    for (int32_t i = 0; p->exact_of && i < p->n_steps; i++)
        p->exact_of[i] = (mc_priced_group_t){0, -1};
    return p->exact_of != NULL;
}

static bool add_exact(mc_priced_t *p, int32_t i)
{
    const mc_priced_step_t *const step = &p->step[i];
    const mc_phase_cost_t cost = cost_of(p, &p->args[step->price]);
    const int32_t first = p->n_exact;
    for (int32_t k = 0; k < p->graph.n; k++) {
        const int32_t d = p->graph.dim[k];
        const mc_term_t *const once = &cost.once.dim[d], *const busy = &cost.busy.dim[d];
        mc_priced_term_t *const term = grown(p->exact, p->n_exact, &p->room_exact, sizeof *term);
        if (!term)
            return false;
        p->exact = term;
        if (mc_phase_crosses(&cost, d))
            term[p->n_exact++] = (mc_priced_term_t){d, mc_term_share(once, step->share),
                                                    mc_term_share(busy, step->share)};
    }
    p->exact_of[i] = (mc_priced_group_t){first, p->n_exact - first};
    return true;
}

int32_t mc_priced_exact(mc_priced_t *p, int32_t step, const mc_priced_term_t **term)
{
    if (!make_exact(p) || (p->exact_of[step].n < 0 && !add_exact(p, step)))
        return -1;
    *term = p->exact + p->exact_of[step].first;
    return p->exact_of[step].n;
}
