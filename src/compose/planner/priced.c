#include "compose/planner/priced.h"

#include "compose/price/pricing.h"

#include <stdlib.h>

enum { NODE_BITS = 3, MOST_DEPTH = MC_MAX_PHASES + 1 };

/* State of the construction. The tables hold index + 1 of what exists already, or 0. */
typedef struct {
    mc_priced_t *p;
    const mc_planner_query_t *query;
    bool by_inner; /* prices depend on the inner dimensions in use: their lines share ports */
    bool
        by_all; /* prices depend on all dimensions in use: ranks share cores, a window, or a network */
    uint32_t room_steps, room_groups, room_hops, room_nodes;
    uint32_t *node;  /* by code_of */
    uint32_t *group; /* by group_code */
    mc_hop_t *hops; /* of the nodes that are being added, each behind those of the node before it */
    mc_walks_t *walks;
} build_t;

/* They do unless every rank of a box has a port. */
static bool ranks_share_ports(const mc_mesh_t *mesh, const mc_links_t *links)
{
    for (int32_t d = 0; d < links->ndims; d++)
        if (links->dim[d].ports < mc_mesh_stride(mesh, d))
            return true;
    return mesh->ragged;
}

/* Steps ------------------------------------------------------------------------------------------ */

static void state_at(const mc_path_graph_t *graph, const mc_node_t *node,
                     mc_placement_t state[MC_MAX_DIMS])
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        state[d] = graph->from;
    for (int32_t i = 0; i < graph->n; i++)
        state[graph->dim[i]] = (mc_placement_t)node->at[i];
}

static void add_to(mc_linear_t *sum, mc_linear_t f)
{
    *sum = mc_linear_add(*sum, f);
}

static void make_linear(mc_priced_step_t *step, const mc_links_t *links)
{
    const int32_t ranks = mc_priced_wires(links);
    add_to(&step->once, (mc_linear_t){0, step->cost.network.extra});
    for (int32_t k = links->ndims; k < ranks; k++)
        step->busy[k].per_byte = step->cost.network.busy[k - links->ndims];
    for (int32_t d = 0; d < links->ndims; d++) {
        if (!mc_phase_crosses(&step->cost, d))
            continue;
        const mc_linear_busy_t busy = mc_linear_busy(&step->cost.busy.dim[d], links, d);
        add_to(&step->once, mc_linear_of(&step->cost.once.dim[d], links, d));
        add_to(&step->busy[mc_links_wire(links, d)], busy.link);
        add_to(&step->busy[ranks], busy.own);
    }
}

/* The hop by one algorithm. */
static mc_priced_step_t step_of(const build_t *b, const mc_node_t *node, const mc_hop_t *hop,
                                int32_t algorithm)
{
    const mc_priced_t *const p = b->p;
    mc_placement_t state[MC_MAX_DIMS];
    state_at(&p->graph, node, state);
    mc_priced_step_t step = {.phase = {algorithm, hop->dims},
                             .cost = mc_phase_cost(p->graph.collective, algorithm, hop->dims,
                                                   p->mesh, p->links, b->query->root, state,
                                                   hop->gathered, b->walks),
                             .least_segments = 1};
    make_linear(&step, p->links);
    if (b->query->pacing)
        step.least_segments =
            mc_pacing_segments(b->query->pacing, p->mesh, algorithm, hop->dims, state,
                               mc_pacing_mean(&step.cost, p->links) * b->query->bytes);
    return step;
}

/* A code of all that the steps of a hop depend on: its line and collective, which dimensions are in use inside of the
 * line (or all but the line's if by_all), and which outside of the line are cut. */
static size_t group_code(const build_t *b, const mc_node_t *node, const mc_hop_t *hop)
{
    const mc_path_graph_t *const graph = &b->p->graph;
    const int32_t n = graph->n, last = hop->first + hop->count - 1;
    size_t used = 0, cut = 0;
    for (int32_t i = 0; i < n; i++) {
        const bool outside = i < hop->first || i > last;
        const bool counts = (i > last && b->by_inner) || (outside && b->by_all);
        used |= (size_t)(counts && node->at[i] != MC_ROOT) << i;
        cut |= (size_t)(outside && node->at[i] == MC_SHARD) << i;
    }
    const size_t line = (size_t)(hop->first * n + last);
    return (((line * MESHCOLL_COLLECTIVES + (size_t)hop->collective) << n) + used) << n | cut;
}

/* Index of the hop's group, or -1. */
static int32_t group_of(build_t *b, const mc_node_t *node, const mc_hop_t *hop)
{
    mc_priced_t *const p = b->p;
    uint32_t *const known = &b->group[group_code(b, node, hop)];
    if (*known)
        return (int32_t)*known - 1;
    mc_choices_t left = mc_graph_choices(&p->graph, hop);
    mc_priced_group_t *const group =
        mc_grown(p->group, p->n_groups, &b->room_groups, sizeof *group);
    if (!group)
        return -1;
    p->group = group;
    group[p->n_groups] = (mc_priced_group_t){(int32_t)p->n_steps, mc_choices_count(left)};
    while (left) {
        mc_priced_step_t *const step = mc_grown(p->step, p->n_steps, &b->room_steps, sizeof *step);
        if (!step)
            return -1;
        p->step = step;
        step[p->n_steps++] = step_of(b, node, hop, mc_choices_take(&left));
    }
    *known = ++p->n_groups;
    return (int32_t)*known - 1;
}

/* Nodes ------------------------------------------------------------------------------------------ */

/* A code of all that determines the paths from a node: each dimension's placement and, unless it is final,
 * whether the dimension has been in the other one of root and shard. */
static uint32_t code_of(const mc_path_graph_t *graph, const mc_node_t *node)
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

static bool add_hop(build_t *b, int32_t next, int32_t group)
{
    mc_priced_t *const p = b->p;
    mc_priced_hop_t *const hop = mc_grown(p->hop, p->n_hops, &b->room_hops, sizeof *hop);
    if (!hop)
        return false;
    p->hop = hop;
    hop[p->n_hops++] = (mc_priced_hop_t){next, group};
    return group >= 0;
}

static int32_t known_node(const build_t *b, const mc_node_t *node)
{
    return (int32_t)b->node[code_of(&b->p->graph, node)] - 1;
}

/* Adds a node after all nodes that it leads to, unless it is known. */
static bool add_node(build_t *b, const mc_node_t *node)
{
    mc_priced_t *const p = b->p;
    mc_hop_t *const hop = b->hops;
    if (known_node(b, node) >= 0)
        return true;
    const int32_t n = mc_graph_hops(&p->graph, node, hop);
    bool added = true;
    b->hops += n;
    for (int32_t h = 0; h < n && added; h++) {
        const mc_node_t next = mc_graph_after(node, &hop[h]);
        added = add_node(b, &next);
    }
    b->hops = hop;
    for (int32_t h = 0; h < n && added; h++) {
        const mc_node_t next = mc_graph_after(node, &hop[h]);
        added = add_hop(b, known_node(b, &next), group_of(b, node, &hop[h]));
    }
    if (!added)
        return false;
    /* one entry more than nodes: the end of the last node's hops */
    uint32_t *const first = mc_grown(p->first_hop, p->n_nodes + 1, &b->room_nodes, sizeof *first);
    if (!first)
        return false;
    p->first_hop = first;
    first[p->n_nodes] = p->n_hops - (uint32_t)n;
    first[++p->n_nodes] = p->n_hops;
    b->node[code_of(&p->graph, node)] = p->n_nodes;
    return true;
}

int mc_priced_init(mc_priced_t *p, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                   const mc_links_t *links, const mc_planner_query_t *query)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, query->root);
    *p = (mc_priced_t){.graph = mc_graph(collective, &led, query->in_order, links->network != NULL,
                                         query->aligned),
                       .mesh = mesh,
                       .links = links};
    build_t b = {
        .p = p,
        .query = query,
        /* an alltoall that gathers has other shares, which depend on the dimensions in use */
        .by_inner = collective == MESHCOLL_ALLTOALL || ranks_share_ports(mesh, links),
        .by_all = mc_links_share_cores(links) || query->pacing || links->network};
    const mc_node_t start = mc_graph_start(&p->graph);
    const int32_t n = p->graph.n;
    b.node = calloc((size_t)1 << (NODE_BITS * n + 1), sizeof *b.node);
    b.group = calloc(((size_t)(n * n) * MESHCOLL_COLLECTIVES) << (2 * n), sizeof *b.group);
    mc_hop_t *const hops = b.hops = malloc(MOST_DEPTH * MC_MAX_HOPS * sizeof *hops);
    b.walks = calloc(1, sizeof *b.walks);
    const bool done = b.node && b.group && b.hops && b.walks && add_node(&b, &start);
    free(b.walks);
    free(hops);
    free(b.group);
    free(b.node);
    if (done)
        return MESHCOLL_OK;
    mc_priced_free(p);
    return mc_fail_memory("the planner's graph");
}

void mc_priced_free(mc_priced_t *p)
{
    free(p->step);
    free(p->group);
    free(p->hop);
    free(p->first_hop);
    *p = (mc_priced_t){0};
}
