#include "network/overlay.h"

#include "network/graph.h"

#include <stdlib.h>
#include <string.h>

/* WORK: links added to or taken from loads, and nodes that routes over a graph are sought by. */
enum { WINDOW = 8, SWAPS = 12, MOST_HOPS = WINDOW + 1, WORK = 4 << 20 };

/* What counts; less is better. */
typedef struct {
    double load;
    uint32_t n_busiest; /* links of that load */
    int64_t hops;
} score_t;

/* A tournament tree over the links finds the largest load, and how many links have it. */
typedef struct {
    double load;
    uint32_t n;
} most_t;

typedef struct {
    const mc_ring_t *ring;
    int32_t *order;
    uint32_t *messages; /* by link */
    most_t *most;       /* link i at n_leaves + i; node k has 2k and 2k + 1 below it */
    uint32_t n_leaves;
    int64_t hops, work;
    mc_network_route_t route;
    uint64_t drawn;
    bool counts; /* fewer links of the largest load are better too */
    int status;
} laid_t;

/* Laying ------------------------------------------------------------------------------------------ */

static void close_laid(laid_t *l)
{
    free(l->messages);
    free(l->most);
    free(l->route.link);
}

static void load_link(laid_t *l, uint32_t link, int32_t sign)
{
    uint32_t k = l->n_leaves + link;
    l->messages[link] += (uint32_t)sign;
    l->most[k] = (most_t){l->messages[link] * mc_network_beta(l->ring->network, link), 1};
    for (k /= 2; k > 0; k /= 2) {
        const most_t a = l->most[2 * k], b = l->most[2 * k + 1];
        const most_t now = {a.load > b.load ? a.load : b.load, a.load == b.load  ? a.n + b.n
                                                               : a.load > b.load ? a.n
                                                                                 : b.n};
        if (now.load == l->most[k].load && now.n == l->most[k].n)
            break;
        l->most[k] = now;
    }
}

/* Adds what one box sends to another, or takes it away (sign -1). Returns whether that crosses a link of the largest load
 * that others share, or, unless that counts first, more links than to the next box on the network. */
static bool lay(laid_t *l, int32_t from, int32_t to, int32_t sign)
{
    mc_network_t *const network = l->ring->network;
    const int32_t n =
        l->ring->box[from].n > l->ring->box[to].n ? l->ring->box[from].n : l->ring->box[to].n;
    bool crosses = false;
    for (int32_t i = 0; i < n && !l->status; i++) {
        const int32_t a = l->ring->box[from].first + i % l->ring->box[from].n,
                      b = l->ring->box[to].first + i % l->ring->box[to].n;
        l->route.n = 0;
        if (a != b)
            l->status = mc_network_route(network, a, b, &l->route);
        for (uint32_t k = 0; k < l->route.n && !l->status; k++) {
            const uint32_t link = l->route.link[k];
            crosses = crosses || (l->messages[link] > 1 &&
                                  l->most[l->n_leaves + link].load == l->most[1].load);
            if (sign)
                load_link(l, link, sign);
        }
        const uint32_t hops = l->route.n + (a != b ? mc_network_plugs(network) : 0);
        crosses = crosses || (!l->counts && hops > 1 + mc_network_plugs(network));
        l->hops += sign * (int64_t)hops;
        l->work += 1 + l->route.n + (network->graph ? network->graph->n_nodes / 64 : 0);
    }
    return crosses;
}

static int32_t place(const laid_t *l, int32_t at)
{
    const int32_t n = l->ring->n_boxes;
    return (at % n + n) % n;
}

static bool lay_at(laid_t *l, int32_t at, int32_t sign)
{
    return lay(l, l->order[place(l, at)], l->order[place(l, at + 1)], sign);
}

static int open_laid(const mc_ring_t *ring, int32_t *order, laid_t *laid)
{
    const uint32_t n_links = ring->network->n_links;
    laid_t l = {.ring = ring, .order = order, .n_leaves = 1, .drawn = 1};
    while (l.n_leaves < n_links)
        l.n_leaves *= 2;
    l.messages = calloc((size_t)n_links + 1, sizeof *l.messages);
    l.most = calloc(2 * (size_t)l.n_leaves, sizeof *l.most);
    if (!l.messages || !l.most)
        l.status = mc_fail_memory("the loads of links");
    for (int32_t p = 0; p < ring->n_boxes && ring->n_boxes > 1 && !l.status; p++)
        lay_at(&l, p, 1);
    if (l.status)
        close_laid(&l);
    else
        *laid = l;
    return l.status;
}

/* Measuring --------------------------------------------------------------------------------------- */

static void add_busiest(const laid_t *l, uint32_t link, mc_overlay_t *o)
{
    int32_t at = o->n_busiest;
    if (l->messages[link] == 0)
        return;
    while (at > 0 &&
           l->most[l->n_leaves + o->busiest[at - 1].link].load < l->most[l->n_leaves + link].load)
        at--;
    if (at == MC_OVERLAY_BUSIEST)
        return;
    o->n_busiest += o->n_busiest < MC_OVERLAY_BUSIEST;
    memmove(&o->busiest[at + 1], &o->busiest[at],
            (size_t)(o->n_busiest - at - 1) * sizeof *o->busiest);
    o->busiest[at].link = link;
    o->busiest[at].messages = l->messages[link];
}

static void measure(const laid_t *l, mc_overlay_t *o)
{
    int64_t messages = 0;
    *o = (mc_overlay_t){.load = l->most[1].load};
    for (int32_t p = 0; p < l->ring->n_boxes; p++) {
        const int32_t a = l->ring->box[l->order[p]].n,
                      b = l->ring->box[l->order[place(l, p + 1)]].n;
        messages += a > b ? a : b;
    }
    o->stretch = (double)l->hops / (double)messages;
    for (uint32_t link = 0; link < l->ring->network->n_links; link++)
        add_busiest(l, link, o);
}

/* Near ones follow each other ---------------------------------------------------------------------- */

/* The number of a node of a torus on a way back and forth along all dimensions (a reflected Gray code). */
static uint32_t snake(const mc_network_t *n, int32_t node)
{
    int32_t stride = 1, number = 0;
    for (int32_t d = 0; d < n->n_levels; d++)
        stride *= n->level[d].down;
    for (int32_t d = 0; d < n->n_levels; d++) {
        const int32_t extent = n->level[d].down;
        stride /= extent;
        const int32_t c = node / stride % extent;
        number = number * extent + (number % 2 ? extent - 1 - c : c);
    }
    return (uint32_t)number;
}

/* Numbers the ends in the order in which depth first comes to them; from a node to ends before it goes on to switches. */
static int number_depth_first(const mc_graph_t *g, uint32_t *number)
{
    uint32_t *const stack = malloc(g->n_nodes * sizeof *stack), n = 0, n_seen = 0;
    uint32_t *const next = calloc(g->n_nodes, sizeof *next); /* way to look at, + 1: seen */
    if (!stack || !next) {
        free(stack);
        free(next);
        return mc_fail_memory("an order of ends");
    }
    number[0] = n_seen++;
    next[0] = 1;
    stack[n++] = 0;
    while (n > 0) {
        const uint32_t node = stack[n - 1], ways = g->off[node + 1] - g->off[node],
                       k = next[node]++ - 1;
        if (k == 2 * ways) {
            n--;
            continue;
        }
        const uint32_t to = g->next[g->off[node] + k % ways];
        if (next[to] || (to < g->n_ends) != (k < ways))
            continue;
        if (to < g->n_ends)
            number[to] = n_seen++;
        next[to] = 1;
        stack[n++] = to;
    }
    free(stack);
    free(next);
    return MESHCOLL_OK;
}

typedef struct {
    const mc_ring_t *ring;
    uint32_t *number; /* by end: where it comes */
} near_t;

static int by_number(const void *a, const void *b, void *context)
{
    const near_t *const near = context;
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return mc_compare_keys((const int64_t[]){near->number[near->ring->box[x].first], x},
                           (const int64_t[]){near->number[near->ring->box[y].first], y}, 2);
}

static int order_near(const mc_ring_t *ring, int32_t *order)
{
    const mc_network_t *const n = ring->network;
    const uint32_t ends = n->graph ? n->graph->n_ends : (uint32_t)n->ends;
    near_t near = {ring, malloc(ends * sizeof *near.number)};
    int status = near.number ? MESHCOLL_OK : mc_fail_memory("an order of ends");
    for (uint32_t e = 0; e < ends && !status; e++)
        near.number[e] = n->kind == MC_NETWORK_TORUS ? snake(n, (int32_t)e / n->per_node) : e;
    if (!status && n->graph)
        status = number_depth_first(n->graph, near.number);
    for (int32_t b = 0; b < ring->n_boxes; b++)
        order[b] = b;
    if (!status)
        qsort_r(order, (size_t)ring->n_boxes, sizeof *order, by_number, &near);
    free(near.number);
    return status;
}

/* Improving ---------------------------------------------------------------------------------------- */

static score_t score_of(const laid_t *l)
{
    return (score_t){l->most[1].load, l->counts ? l->most[1].n : 0, l->hops};
}

static bool is_better(score_t a, score_t b)
{
    return a.load != b.load             ? a.load < b.load
           : a.n_busiest != b.n_busiest ? a.n_busiest < b.n_busiest
                                        : a.hops < b.hops;
}

/* What happens to the boxes at [at, at + n): the first goes last, the last goes first, all are turned round, or the two at
 * the ends change places. Each but TO_END and TO_START undoes itself. */
typedef enum { TO_END, TO_START, REVERSE, SWAP, MOVES } move_t;
typedef struct {
    move_t move;
    int32_t at, n;
} change_t;

static void swap(laid_t *l, int32_t a, int32_t b)
{
    int32_t *const x = &l->order[place(l, a)], *const y = &l->order[place(l, b)], kept = *x;
    *x = *y;
    *y = kept;
}

static void apply(laid_t *l, change_t c)
{
    const int32_t last = c.at + c.n - 1;
    for (int32_t i = 0; c.move == TO_END && i + 1 < c.n; i++)
        swap(l, c.at + i, c.at + i + 1);
    for (int32_t i = 0; c.move == TO_START && i + 1 < c.n; i++)
        swap(l, last - i, last - i - 1);
    for (int32_t i = 0; c.move == REVERSE && i < c.n / 2; i++)
        swap(l, c.at + i, last - i);
    if (c.move == SWAP)
        swap(l, c.at, last);
}

static void lay_all(laid_t *l, const int32_t *hop, int32_t n, int32_t sign)
{
    for (int32_t i = 0; i < n; i++)
        lay_at(l, hop[i], sign);
}

/* Keeps the change if it is better. */
static bool try_change(laid_t *l, change_t c)
{
    const score_t before = score_of(l);
    int32_t hop[MOST_HOPS], n = 0;
    if (c.move == SWAP) {
        const int32_t at[] = {c.at - 1, c.at, c.at + c.n - 2, c.at + c.n - 1};
        for (int32_t i = 0; i < 4; i++)
            if (n == 0 ||
                (place(l, at[i]) != place(l, hop[n - 1]) && place(l, at[i]) != place(l, hop[0])))
                hop[n++] = at[i];
    } else {
        while (n <= c.n) {
            hop[n] = c.at - 1 + n;
            n++;
        }
    }
    lay_all(l, hop, n, -1);
    apply(l, c);
    lay_all(l, hop, n, 1);
    if (is_better(score_of(l), before))
        return true;
    lay_all(l, hop, n, -1);
    c.move = c.move == TO_END ? TO_START : c.move == TO_START ? TO_END : c.move;
    apply(l, c);
    lay_all(l, hop, n, 1);
    return false;
}

/* splitmix64, Steele et al. 2014 */
static int32_t draw(laid_t *l, int32_t below)
{
    uint64_t z = l->drawn += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int32_t)((z ^ z >> 31) % (uint64_t)below);
}

/* Changes around one hop of the ring. */
static bool improve_at(laid_t *l, int32_t at)
{
    const int32_t n = l->ring->n_boxes;
    bool better = false;
    for (int32_t len = 2; len <= WINDOW && len < n && !better; len++)
        for (int32_t first = at + 2 - len; first <= at + 1 && !better; first++)
            for (move_t move = TO_END; move < SWAP && !better; move++)
                better = try_change(l, (change_t){move, first, len});
    for (int32_t i = 0; i < SWAPS && n > WINDOW && !better; i++)
        better = try_change(l, (change_t){SWAP, at + i % 2, 2 + draw(l, n - 2)});
    return better && !l->status;
}

static void search(laid_t *l)
{
    bool better = l->ring->n_boxes > 3;
    while (better && l->work < WORK && !l->status) {
        better = false;
        for (int32_t p = 0; p < l->ring->n_boxes && l->work < WORK && !l->status; p++)
            while (l->work < WORK && lay_at(l, p, 0) && improve_at(l, p))
                better = true;
    }
}

/* Replaces an order by the same ring as `found`, begun where it began. */
static void take(int32_t *order, const int32_t *found, int32_t n)
{
    int32_t at = 0;
    while (found[at] != order[0])
        at++;
    memcpy(order, found + at, (size_t)(n - at) * sizeof *order);
    memcpy(order + n - at, found, (size_t)at * sizeof *order);
}

/* Searches from an order, which it replaces only by a better one; `counts` as in laid_t. */
static int search_from(const mc_ring_t *ring, bool counts, int32_t *order, score_t *score)
{
    const size_t bytes = (size_t)ring->n_boxes * sizeof *order;
    int32_t *const tried = malloc(bytes);
    laid_t l;
    int status = tried ? MESHCOLL_OK : mc_fail_memory("an order of boxes");
    if (!status) {
        memcpy(tried, order, bytes);
        status = open_laid(ring, tried, &l);
    }
    if (!status) {
        const score_t before = score_of(&l);
        l.counts = counts;
        search(&l);
        l.counts = false;
        status = l.status;
        *score = !status && is_better(score_of(&l), before) ? score_of(&l) : before;
        if (!status && is_better(score_of(&l), before))
            take(order, tried, ring->n_boxes);
        close_laid(&l);
    }
    free(tried);
    return status;
}

int mc_overlay_improve(const mc_ring_t *ring, int32_t *order)
{
    const size_t bytes = (size_t)ring->n_boxes * sizeof *order;
    int32_t *const near = malloc(bytes);
    score_t given_score, near_score;
    int status = near ? MESHCOLL_OK : mc_fail_memory("an order of boxes");
    if (!status)
        status = order_near(ring, near);
    for (int counts = 1; counts >= 0 && !status; counts--) {
        const bool same = memcmp(near, order, bytes) == 0;
        status = search_from(ring, counts, order, &given_score);
        near_score = given_score;
        if (!status && !same)
            status = search_from(ring, counts, near, &near_score);
        else if (!status)
            memcpy(near, order, bytes);
    }
    if (!status && is_better(near_score, given_score))
        take(order, near, ring->n_boxes);
    free(near);
    return status;
}

int mc_overlay_measure(const mc_ring_t *ring, const int32_t *order, mc_overlay_t *overlay)
{
    laid_t l;
    const int status = open_laid(ring, (int32_t *)order, &l);
    if (!status) {
        measure(&l, overlay);
        close_laid(&l);
    }
    return status;
}
