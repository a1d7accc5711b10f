/* Where links are, and routes over them: one function for each kind of network. */
#include "network/graph.h"

/* A number drawn for both ends of a flow and a place on its way. */
static uint64_t draw(const mc_network_t *n, int32_t from, int32_t to, int32_t at)
{
    uint64_t z =
        n->seed + UINT64_C(0x9e3779b97f4a7c15) *
                      (((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * 31 + (uint32_t)at + 1);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64, Steele et al. 2014 */
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int append(mc_network_route_t *route, uint64_t link)
{
    return mc_array_add(&route->link, &route->n, &route->capacity, &(uint32_t){(uint32_t)link},
                        sizeof *route->link, "the routes of a network");
}

/* Trees: switch U of a subtree at level l, of W(l) there, has `up` links up, to switches U * up + u of the next level. */

static int64_t product(const mc_network_t *n, int32_t level, bool down)
{
    int64_t all = 1;
    for (int32_t l = 0; l < level && all <= MC_NETWORK_LINKS; l++)
        all *= down ? n->level[l].down : n->level[l].up;
    return all;
}

/* Where an end is plugged in, counted along the leaves. */
static int64_t place_of(const mc_network_t *n, int32_t end)
{
    const int32_t box = end / n->per_box, rail = end % n->per_box, down = n->level[0].down;
    return n->rails ? ((int64_t)(box / down) * n->per_box + rail) * down + box % down : end;
}

static int fit_tree(mc_network_t *n)
{
    int64_t places = 0, links = 0;
    for (int32_t rail = 0; rail < n->per_box; rail++) {
        const int64_t place = place_of(n, n->ends - 1 - rail) + 1;
        places = place > places ? place : places;
    }
    const int64_t room = product(n, n->n_levels, true);
    if (n->level[n->n_levels - 1].up == 0 && places > room)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "the mesh has %d ports that lead out of its boxes; the tree has room for %lld%s",
            n->ends, (long long)room, n->rails ? ", by rails" : "");
    for (int32_t l = 0; l < n->n_levels && links <= MC_NETWORK_LINKS; l++) {
        const int64_t subtrees = (places - 1) / product(n, l + 1, true) + 1;
        n->first[l] = (uint32_t)links;
        links += 2 * subtrees * product(n, l + 1, false);
    }
    if (links > MC_NETWORK_LINKS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "the tree has more than %d links, the most there may be", MC_NETWORK_LINKS);
    n->n_links = (uint32_t)links;
    return MESHCOLL_OK;
}

static int route_tree(const mc_network_t *n, int32_t from, int32_t to, mc_network_route_t *route)
{
    const int64_t x = place_of(n, from), y = place_of(n, to);
    uint64_t down[MC_NETWORK_LEVELS];
    int64_t ends = 1, ways = 1, at = 0;
    int32_t l = 0;
    int status = MESHCOLL_OK;
    for (; l < n->n_levels && !status; l++) {
        const int32_t up = n->level[l].up;
        ends *= n->level[l].down;
        if (x / ends == y / ends)
            break;
        const int64_t u =
            (int64_t)((n->ecmp ? draw(n, from, to, l) : (uint64_t)(y / ways)) % (uint64_t)up);
        const int64_t way = at * up + u;
        ways *= up;
        down[l] = n->first[l] + (uint64_t)(2 * (y / ends * ways + way) + 1);
        status = append(route, n->first[l] + (uint64_t)(2 * (x / ends * ways + way)));
        at = way;
    }
    while (l-- > 0 && !status)
        status = append(route, down[l]);
    return status;
}

static void name_tree(const mc_network_t *n, uint32_t link, mc_text_t *text)
{
    static const char *const levels[] = {"leaf", "spine", "core"};
    int32_t l = n->n_levels - 1;
    while (n->first[l] > link)
        l--;
    const int64_t at = (link - n->first[l]) / 2, each = product(n, l, false), up = n->level[l].up;
    if (l < (int32_t)MC_COUNT(levels))
        mc_text_add(text, "%s", levels[l]);
    else
        mc_text_add(text, "level%d-", l);
    mc_text_add(text, "%lld.%lld %s%lld", (long long)(at / up / each), (long long)(at / up % each),
                (link - n->first[l]) % 2 ? "down" : "up", (long long)(at % up));
}

/* Tori: link 2 d of a node leads forward along dimension d, 2 d + 1 back. */

static int fit_torus(mc_network_t *n)
{
    const int64_t nodes = product(n, n->n_levels, true);
    if (nodes * n->n_levels * 2 > MC_NETWORK_LINKS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "the torus has more than %d links, the most there may be", MC_NETWORK_LINKS);
    if (n->ends % nodes != 0)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "the mesh has %d ports that lead out of its boxes, which are not as many for each "
            "of the %lld nodes of the torus",
            n->ends, (long long)nodes);
    n->per_node = (int32_t)(n->ends / nodes);
    n->n_links = (uint32_t)(nodes * n->n_levels * 2);
    return MESHCOLL_OK;
}

static int route_torus(const mc_network_t *n, int32_t from, int32_t to, mc_network_route_t *route)
{
    const int32_t dims = n->n_levels, y = to / n->per_node;
    const uint64_t drawn = n->ecmp ? draw(n, from, to, 0) : 0;
    int32_t at = from / n->per_node;
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < dims; i++) {
        const int32_t d = (int32_t)((drawn / 64 + (uint64_t)i) % (uint64_t)dims),
                      extent = n->level[d].down;
        int32_t stride = 1;
        for (int32_t k = d + 1; k < dims; k++)
            stride *= n->level[k].down;
        int32_t hops = (y / stride - at / stride) % extent;
        hops += hops < 0 ? extent : 0;
        const bool back = 2 * hops > extent || (2 * hops == extent && (drawn >> d & 1));
        for (hops = back ? extent - hops : hops; hops > 0 && !status; hops--) {
            const int32_t c = at / stride % extent, next = (c + (back ? extent - 1 : 1)) % extent;
            status = append(route, 2 * ((uint64_t)at * (uint64_t)dims + (uint64_t)d) + back);
            at += (next - c) * stride;
        }
    }
    return status;
}

static void name_torus(const mc_network_t *n, uint32_t link, mc_text_t *text)
{
    const uint32_t dims = (uint32_t)n->n_levels, node = link / 2 / dims;
    uint32_t inner = (uint32_t)product(n, n->n_levels, true);
    for (uint32_t d = 0; d < dims; d++) {
        inner /= (uint32_t)n->level[d].down;
        mc_text_add(text, "%s%u", d == 0 ? "node" : ".", node / inner % (uint32_t)n->level[d].down);
    }
    mc_text_add(text, " %c%c", link % 2 ? '-' : '+', "xyzuvw"[link / 2 % dims]);
}

/* Graphs: back from the destination, over nodes that are nearer and nearer. */

static int fit_graph(mc_network_t *n)
{
    if ((uint32_t)n->ends > n->graph->n_ends)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "the mesh has %d ports that lead out of its boxes; %s has %u ends, called 0 to %u",
            n->ends, n->graph->path, n->graph->n_ends, n->graph->n_ends - 1);
    n->n_links = 2 * n->graph->n_edges;
    return MESHCOLL_OK;
}

static int route_graph(const mc_network_t *n, int32_t from, int32_t to, mc_network_route_t *route)
{
    mc_graph_t *const g = n->graph;
    const uint32_t start = route->n;
    int status = MESHCOLL_OK;
    mc_graph_measure(g, from, (uint32_t)to);
    for (uint32_t node = (uint32_t)to; node != (uint32_t)from && !status;) {
        uint32_t nearer = 0;
        for (uint32_t w = g->off[node]; w < g->off[node + 1]; w++)
            nearer += g->far[g->next[w]] == g->far[node] - 1;
        uint64_t pick = (n->ecmp ? draw(n, from, to, g->far[node]) : (uint64_t)to) % nearer;
        uint32_t w = g->off[node];
        while (g->far[g->next[w]] != g->far[node] - 1 || pick-- > 0)
            w++;
        status = append(route, g->way[w] ^ 1);
        node = g->next[w];
    }
    for (uint32_t a = start, b = route->n; a + 1 < b; a++) {
        const uint32_t kept = route->link[--b];
        route->link[b] = route->link[a];
        route->link[a] = kept;
    }
    return status;
}

static void name_graph(const mc_network_t *n, uint32_t link, mc_text_t *text)
{
    mc_text_add(text, "%s>%s", n->graph->name[mc_graph_tail(n->graph, link)],
                n->graph->name[mc_graph_head(n->graph, link)]);
}

static const struct {
    int (*fit)(mc_network_t *network);
    int (*route)(const mc_network_t *network, int32_t from, int32_t to, mc_network_route_t *route);
    void (*name)(const mc_network_t *network, uint32_t link, mc_text_t *text);
} kinds[] = {[MC_NETWORK_TREE] = {fit_tree, route_tree, name_tree},
             [MC_NETWORK_TORUS] = {fit_torus, route_torus, name_torus},
             [MC_NETWORK_GRAPH] = {fit_graph, route_graph, name_graph}};

int mc_network_fit(mc_network_t *n, int32_t ends, int32_t per_box)
{
    if (ends < 1 || per_box < 1 || (n->rails && ends % per_box != 0))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "rails need as many ports in each box; the mesh has %d, not %d for each box",
                       ends, per_box);
    n->ends = ends;
    n->per_box = per_box;
    return kinds[n->kind].fit(n);
}

int mc_network_route(mc_network_t *n, int32_t from, int32_t to, mc_network_route_t *route)
{
    return kinds[n->kind].route(n, from, to, route);
}

int32_t mc_network_part(const mc_network_t *n, uint32_t link)
{
    int32_t l = n->n_levels - 1;
    if (n->kind == MC_NETWORK_TORUS)
        return (int32_t)(link / 2 % (uint32_t)n->n_levels);
    while (n->kind == MC_NETWORK_TREE && n->first[l] > link)
        l--;
    return n->kind == MC_NETWORK_TREE ? l : 0;
}

double mc_network_beta(const mc_network_t *n, uint32_t link)
{
    if (n->kind == MC_NETWORK_GRAPH && n->graph->edge[link / 2].beta > 0)
        return n->graph->edge[link / 2].beta;
    return n->kind == MC_NETWORK_TREE ? n->level[mc_network_part(n, link)].beta : n->beta;
}

void mc_network_name(const mc_network_t *n, uint32_t link, mc_text_t *text)
{
    kinds[n->kind].name(n, link, text);
}
