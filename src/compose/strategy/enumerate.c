/* The graph of placements (paths.h), and the enumeration of its paths, depth first. */
#include "compose/strategy/paths.h"

static bool is_choice(const mc_path_graph_t *graph, const mc_algorithm_t *a)
{
    if (a->parts || (a->aligned == MC_ALIGNED_ANY && !graph->aligned) ||
        (a->turned && !graph->turns))
        return false;
    return !graph->in_order || !mc_moves[a->collective].reduces || a->keeps_order;
}

static mc_choices_t choices_of(const mc_path_graph_t *graph, meshcoll_collective_t collective)
{
    mc_choices_t choices = 0;
    for (int32_t i = 0; i < mc_n_algorithms; i++)
        if (mc_algorithms[i].collective == collective && is_choice(graph, &mc_algorithms[i]))
            choices |= UINT64_C(1) << i;
    return choices;
}

static mc_choices_t planes(void)
{
    mc_choices_t found = 0;
    for (int32_t i = 0; i < mc_n_algorithms; i++)
        found |= mc_algorithms[i].plane ? UINT64_C(1) << i : 0;
    return found;
}

mc_choices_t mc_graph_choices(const mc_path_graph_t *graph, const mc_hop_t *hop)
{
    const mc_choices_t left_out = hop->count == 2 && !hop->flat ? 0 : graph->planes;
    const mc_choices_t all = graph->choices[hop->collective] & ~left_out;
    const bool aligned = graph->aligned && mc_moves[hop->collective].reduces;
    const bool exchange = hop->gathered && hop->collective == MESHCOLL_ALLTOALL;
    mc_choices_t fit = 0;
    const int32_t len = mc_dims_extent(&graph->mesh, hop->dims);
    if (!aligned && !exchange)
        return all;
    for (mc_choices_t left = all; left;) {
        const int32_t i = mc_choices_take(&left);
        if (exchange ? mc_algorithm_exchanges_pairs(i) : mc_algorithm_aligned(i, len))
            fit |= UINT64_C(1) << i;
    }
    return fit;
}

mc_path_graph_t mc_graph(meshcoll_collective_t collective, const mc_mesh_t *mesh, bool in_order,
                         bool turns, const mc_numbering_t *aligned)
{
    mc_path_graph_t graph = {.collective = collective,
                             .from = mc_moves[collective].from,
                             .to = mc_moves[collective].to,
                             .in_order = in_order,
                             .turns = turns,
                             .ragged = mesh->ragged != NULL,
                             .aligned = aligned,
                             .planes = planes(),
                             .mesh = *mesh};
    graph.flat =
        graph.ragged && in_order && mc_moves[collective].reduces && mc_mesh_leader_moved(mesh);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            graph.dim[graph.n++] = d;
    /* a single rank: one phase, so that there is something to print and to run */
    if (graph.n == 0)
        graph.dim[graph.n++] = 0;
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        graph.choices[c] = choices_of(&graph, (meshcoll_collective_t)c);
    return graph;
}

mc_node_t mc_graph_start(const mc_path_graph_t *graph)
{
    mc_node_t node = {{0}, {0}, false};
    for (int32_t i = 0; i < graph->n; i++) {
        node.at[i] = (uint8_t)graph->from;
        node.been[i] = (uint8_t)(1u << graph->from);
    }
    return node;
}

bool mc_graph_ended(const mc_path_graph_t *graph, const mc_node_t *node)
{
    for (int32_t i = 0; i < graph->n; i++)
        if (node->at[i] != graph->to)
            return false;
    return true;
}

/* Does the move start where dimension `i` is, and can the end be reached after it? From root and shard
 * every end is one move away, from replica none is, so replica may only be the end itself. */
static bool leads_on(const mc_path_graph_t *graph, const mc_node_t *node, int32_t i,
                     meshcoll_collective_t move)
{
    const mc_placement_t to = mc_move_ends(graph->collective, &mc_moves[move]);
    return node->at[i] == mc_move_starts(graph->collective, &mc_moves[move]) &&
           !(node->been[i] & 1u << to) && node->at[i] != graph->to &&
           (to == graph->to || to != MC_REPLICA);
}

/* Is a dimension inside of `i` still to be reduced? */
static bool unreduced_inside(const mc_path_graph_t *graph, const mc_node_t *node, int32_t i)
{
    while (++i < graph->n)
        if (node->at[i] == MC_PARTIAL)
            return true;
    return false;
}

static bool keeps_aligned(const mc_path_graph_t *graph, const mc_node_t *node, mc_dims_t dims,
                          const mc_move_t *move)
{
    uint32_t reduced = 0;
    if (!graph->aligned)
        return true;
    if (!move->reduces)
        return !graph->aligned->flat || mc_dims_extent(&graph->mesh, dims) == graph->mesh.size;
    for (int32_t i = 0; i < graph->n; i++)
        if (node->at[i] != MC_PARTIAL)
            reduced |= UINT32_C(1) << graph->dim[i];
    return mc_numbering_check(graph->aligned, &graph->mesh, dims, reduced) == MC_NUMBERED;
}

static bool at_start(const mc_path_graph_t *graph, const mc_node_t *node)
{
    for (int32_t i = 0; i < graph->n; i++)
        if (node->been[i] != 1u << graph->from)
            return false;
    return true;
}

/* Are all dimensions but the last in their final placement? */
static bool others_ended(const mc_path_graph_t *graph, const mc_node_t *node)
{
    for (int32_t i = 0; i + 1 < graph->n; i++)
        if (node->at[i] != graph->to)
            return false;
    return true;
}

/* In an alltoall only the innermost dimension may be gathered, before anything else, and scattered, after
 * everything else. */
static bool suits_exchange(const mc_path_graph_t *graph, const mc_node_t *node, int32_t first,
                           meshcoll_collective_t move)
{
    const int32_t inner = graph->n - 1;
    if (graph->collective != MESHCOLL_ALLTOALL || move == MESHCOLL_ALLTOALL)
        return true;
    if (first < inner || inner == 0 || graph->mesh.ndims == MC_MAX_DIMS)
        return false;
    return move == MESHCOLL_GATHER ? at_start(graph, node) : others_ended(graph, node);
}

/* Does mc_strategy_check accept the move on a ragged mesh, and can the end be reached after it? */
static bool suits_ragged(const mc_path_graph_t *graph, const mc_node_t *node, int32_t first,
                         int32_t last, meshcoll_collective_t move)
{
    const int32_t fold = graph->n - 1;
    const mc_placement_t to = mc_move_ends(graph->collective, &mc_moves[move]);
    if (first == 0 && last == fold)
        return node->flat || at_start(graph, node);
    if (node->flat || graph->flat || (last == fold && first < fold))
        return false;
    if (last < fold)
        return node->at[fold] == MC_ROOT;
    return to == MC_ROOT ||
           (node->at[fold] == MC_ROOT && to == graph->to && others_ended(graph, node));
}

int32_t mc_graph_hops(const mc_path_graph_t *graph, const mc_node_t *node,
                      mc_hop_t hop[MC_MAX_HOPS])
{
    int32_t n = 0;
    const bool exchange = graph->collective == MESHCOLL_ALLTOALL;
    const bool gathered = exchange && node->at[graph->n - 1] == MC_ROOT;
    for (int32_t first = 0; first < graph->n; first++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (int32_t last = first; last < graph->n; last++) {
                const meshcoll_collective_t move = (meshcoll_collective_t)c;
                if (!leads_on(graph, node, last, move) || graph->choices[c] == 0)
                    break;
                if (!suits_exchange(graph, node, first, move))
                    continue;
                if (graph->in_order && mc_moves[c].reduces && unreduced_inside(graph, node, last))
                    continue;
                if (graph->ragged && !suits_ragged(graph, node, first, last, move))
                    continue;
                const mc_dims_t dims = {graph->dim[first],
                                        graph->dim[last] - graph->dim[first] + 1};
                if (!keeps_aligned(graph, node, dims, &mc_moves[c]))
                    continue;
                const int32_t count = last - first + 1;
                hop[n++] =
                    (mc_hop_t){.collective = move,
                               .first = first,
                               .count = count,
                               .to = mc_move_ends(graph->collective, &mc_moves[c]),
                               .gathered = gathered || (exchange && move != MESHCOLL_ALLTOALL),
                               .dims = dims,
                               .flat = graph->ragged && count == graph->n};
            }
    return n;
}

mc_node_t mc_graph_after(const mc_node_t *node, const mc_hop_t *hop)
{
    mc_node_t next = *node;
    next.flat = hop->flat;
    for (int32_t i = hop->first; i < hop->first + hop->count; i++) {
        next.at[i] = (uint8_t)hop->to;
        next.been[i] |= (uint8_t)(1u << next.at[i]);
    }
    return next;
}

typedef struct {
    const mc_path_graph_t *graph;
    mc_paths_t which;
    bool (*each)(void *context, const mc_strategy_t *strategy);
    void *context;
    mc_strategy_t strategy; /* the path so far */
    mc_hop_t hop[MC_MAX_PHASES];
} walk_t;

static mc_choices_t choices_at(const walk_t *w, int32_t i)
{
    return mc_graph_choices(w->graph, &w->hop[i]);
}

static int32_t nth_of(mc_choices_t choices, int32_t n)
{
    int32_t i = mc_choices_take(&choices);
    while (n-- > 0)
        i = mc_choices_take(&choices);
    return i;
}

/* The path with every algorithm in every phase at least once: turn k uses each phase's k-th. */
static bool cover(walk_t *w)
{
    int32_t turns = 1;
    for (int32_t i = 0; i < w->strategy.n_phases; i++) {
        const int32_t n = mc_choices_count(choices_at(w, i));
        turns = n > turns ? n : turns;
    }
    for (int32_t turn = 0; turn < turns; turn++) {
        for (int32_t i = 0; i < w->strategy.n_phases; i++) {
            const mc_choices_t choices = choices_at(w, i);
            w->strategy.phase[i].algorithm = nth_of(choices, turn % mc_choices_count(choices));
        }
        if (!w->each(w->context, &w->strategy))
            return false;
    }
    return true;
}

/* To cover a path, its algorithms are chosen at its end. */
static bool walk(walk_t *w, const mc_node_t *node)
{
    mc_hop_t hop[MC_MAX_HOPS];
    const bool covers = w->which == MC_PATHS_COVER;
    if (mc_graph_ended(w->graph, node))
        return covers ? cover(w) : w->each(w->context, &w->strategy);
    const int32_t n = mc_graph_hops(w->graph, node, hop), i = w->strategy.n_phases++;
    bool more = true;
    for (int32_t h = 0; h < n && more; h++) {
        const mc_node_t next = mc_graph_after(node, &hop[h]);
        w->strategy.phase[i].dims = hop[h].dims;
        w->hop[i] = hop[h];
        for (mc_choices_t left = covers ? 1 : choices_at(w, i); left && more;) {
            w->strategy.phase[i].algorithm = mc_choices_take(&left);
            more = walk(w, &next);
        }
    }
    w->strategy.n_phases = i;
    return more;
}

int mc_strategy_each(meshcoll_collective_t collective, const mc_mesh_t *mesh, mc_paths_t which,
                     bool (*each)(void *context, const mc_strategy_t *strategy), void *context)
{
    const int status = mc_mesh_check(mesh);
    if (status)
        return status;
    if ((unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no collective %d", (int)collective);
    const mc_path_graph_t graph = mc_graph(collective, mesh, false, which == MC_PATHS_COVER, NULL);
    const mc_node_t start = mc_graph_start(&graph);
    walk_t w = {.graph = &graph,
                .which = which,
                .each = each,
                .context = context,
                .strategy = {.collective = collective, .segments = 1}};
    walk(&w, &start);
    return MESHCOLL_OK;
}
