#include "network/graph.h"

#include "base/hash.h"
#include "base/system/file.h"
#include "mesh/link/link_text.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    mc_graph_t *g;
    uint32_t *hash, slots; /* node + 1 by name, open addressing */
} reading_t;

static uint32_t *slot_of(const reading_t *r, mc_word_t name)
{
    for (uint64_t at = mc_fnv(MC_FNV_START, name.at, name.n);; at++) {
        uint32_t *const slot = &r->hash[at % r->slots];
        if (*slot == 0 || mc_word_is(name, r->g->name[*slot - 1]))
            return slot;
    }
}

static int grow_hash(reading_t *r)
{
    free(r->hash);
    r->slots = 4 * r->g->n_nodes + 64;
    r->hash = calloc(r->slots, sizeof *r->hash);
    for (uint32_t i = 0; r->hash && i < r->g->n_nodes; i++)
        *slot_of(r, mc_word_of(r->g->name[i])) = i + 1;
    return r->hash ? MESHCOLL_OK : mc_fail_memory("a graph");
}

static int find_node(reading_t *r, mc_word_t name, uint32_t *node)
{
    mc_graph_t *const g = r->g;
    if (2 * g->n_nodes >= r->slots && grow_hash(r))
        return MESHCOLL_ERR_NO_MEMORY;
    uint32_t *const slot = slot_of(r, name);
    if (*slot == 0) {
        char *const copy = strndup(name.at, name.n);
        if (!copy ||
            mc_array_add(&g->name, &g->n_nodes, &g->node_capacity, &copy, sizeof copy, "a graph")) {
            free(copy);
            return mc_fail_memory("a graph");
        }
        *slot = g->n_nodes;
    }
    *node = *slot - 1;
    return MESHCOLL_OK;
}

static int add_edge(reading_t *r, mc_word_t a, mc_word_t b, double beta)
{
    mc_graph_t *const g = r->g;
    mc_edge_t edge = {.beta = beta};
    int status = find_node(r, a, &edge.node[0]);
    if (!status)
        status = find_node(r, b, &edge.node[1]);
    return status ? status
                  : mc_array_add(&g->edge, &g->n_edges, &g->edge_capacity, &edge, sizeof edge,
                                 "a graph");
}

static int read_line(reading_t *r, mc_word_t line, uint32_t number)
{
    line = mc_word_cut(&line, '#');
    const mc_word_t a = mc_word_next(&line), b = mc_word_next(&line), rate = mc_word_next(&line);
    double beta = 0;
    if (a.n == 0)
        return MESHCOLL_OK;
    if (b.n == 0 || (a.n == b.n && memcmp(a.at, b.at, a.n) == 0) || mc_word_next(&line).n > 0 ||
        (rate.n > 0 && (!mc_link_costs.read(rate, &beta) || beta == 0 ||
                        !mc_link_is_within(&mc_link_costs, beta)))) {
        char meant[96] = "";
        mc_text_t text = mc_text(meant, sizeof meant);
        mc_link_suggest(rate, &text);
        return mc_fail(
            MESHCOLL_ERR_PARSE,
            "%s, line %u: expected a link between two nodes, and perhaps its rate, as in "
            "\"0 switch1\" or \"0 switch1 25GB/s\"%s",
            r->g->path, number, meant);
    }
    if (r->g->n_edges >= MC_NETWORK_MOST)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: a graph has at most %d links", r->g->path,
                       MC_NETWORK_MOST);
    return add_edge(r, a, b, beta);
}

/* Renumbers the nodes: end i is node i, and the others follow in the order of the file. */
static int sort_ends(reading_t *r)
{
    mc_graph_t *const g = r->g;
    uint32_t *const to = malloc((g->n_nodes + 1) * sizeof *to), node;
    char **const name = malloc((g->n_nodes + 1) * sizeof *name), end[16];
    const bool failed = !to || !name;
    for (uint32_t i = 0; !failed && i < g->n_nodes; i++)
        to[i] = UINT32_MAX;
    for (; !failed && g->n_ends < g->n_nodes; g->n_ends++) {
        snprintf(end, sizeof end, "%u", g->n_ends);
        node = *slot_of(r, mc_word_of(end)) - 1;
        if (node == UINT32_MAX)
            break;
        to[node] = g->n_ends;
    }
    for (uint32_t i = 0, next = g->n_ends; !failed && i < g->n_nodes; i++) {
        to[i] = to[i] == UINT32_MAX ? next++ : to[i];
        name[to[i]] = g->name[i];
    }
    for (uint32_t e = 0; !failed && e < 2 * g->n_edges; e++)
        g->edge[e / 2].node[e % 2] = to[g->edge[e / 2].node[e % 2]];
    free(to);
    free(failed ? (void *)name : (void *)g->name);
    g->name = failed ? g->name : name;
    return failed ? mc_fail_memory("a graph") : MESHCOLL_OK;
}

static int list_ways(mc_graph_t *g)
{
    g->off = calloc(g->n_nodes + 2, sizeof *g->off);
    g->way = malloc((4 * (size_t)g->n_edges + 1) * sizeof *g->way);
    g->queue = malloc((g->n_nodes + 1) * sizeof *g->queue);
    g->far = malloc((g->n_nodes + 1) * sizeof *g->far);
    if (!g->off || !g->way || !g->queue || !g->far)
        return mc_fail_memory("a graph");
    for (uint32_t l = 0; l < 2 * g->n_edges; l++)
        g->off[mc_graph_tail(g, l) + 2]++;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        g->off[i + 2] += g->off[i + 1];
    g->next = g->way + 2 * (size_t)g->n_edges;
    for (uint32_t l = 0; l < 2 * g->n_edges; l++) {
        const uint32_t at = g->off[mc_graph_tail(g, l) + 1]++;
        g->way[at] = l;
        g->next[at] = mc_graph_head(g, l);
    }
    return MESHCOLL_OK;
}

void mc_graph_measure(mc_graph_t *g, int32_t from, uint32_t to)
{
    if (g->from != from) {
        g->from = from;
        memset(g->far, 0xff, g->n_nodes * sizeof *g->far);
        g->far[from] = 0;
        g->queue[0] = (uint32_t)from;
        g->n_queued = 1;
        g->n_left = 0;
    }
    int32_t *const far = g->far;
    const uint32_t *const next = g->next, *const off = g->off;
    uint32_t n = g->n_queued, left = g->n_left;
    while (far[to] < 0 && left < n) {
        const uint32_t node = g->queue[left++];
        for (uint32_t w = off[node]; w < off[node + 1]; w++)
            if (far[next[w]] < 0) {
                far[next[w]] = far[node] + 1;
                g->queue[n++] = next[w];
            }
    }
    g->n_queued = n;
    g->n_left = left;
}

int mc_graph_parse(const char *path, const char *text, size_t bytes, mc_graph_t **graph)
{
    reading_t r = {.g = calloc(1, sizeof *r.g)};
    mc_word_t rest = {text, bytes};
    int status = r.g && (r.g->path = strdup(path)) ? MESHCOLL_OK : mc_fail_memory("a graph");
    for (uint32_t line = 1; rest.n > 0 && !status; line++)
        status = read_line(&r, mc_word_cut(&rest, '\n'), line);
    if (!status && r.g->n_edges > 0)
        status = sort_ends(&r);
    if (!status && r.g->n_ends < 1)
        status =
            mc_fail(MESHCOLL_ERR_PARSE,
                    "%s: no link leads to end 0; ends are called 0, 1, 2, …, one for each port of "
                    "a box",
                    path);
    if (!status)
        status = list_ways(r.g);
    if (!status)
        r.g->from = -1;
    for (uint32_t i = 0; !status && i < r.g->n_nodes; i++) {
        mc_graph_measure(r.g, 0, i);
        if (r.g->far[i] < 0)
            status = mc_fail(MESHCOLL_ERR_PARSE, "%s: no links lead from end 0 to %s", path,
                             r.g->name[i]);
    }
    free(r.hash);
    if (status)
        mc_graph_free(r.g);
    else
        *graph = r.g;
    return status;
}

int mc_graph_read(const char *path, mc_graph_t **graph)
{
    char *text = NULL;
    size_t bytes;
    int status = mc_file_read(path, &text, &bytes);
    if (!status && !text)
        status =
            mc_fail(MESHCOLL_ERR_IO, "there is no file %s, which was to describe a network", path);
    if (!status)
        status = mc_graph_parse(path, text, bytes, graph);
    free(text);
    return status;
}

void mc_graph_free(mc_graph_t *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        free(g->name[i]);
    void *const parts[] = {g->path, g->name, g->edge, g->off, g->way, g->queue, g->far};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
    free(g);
}
