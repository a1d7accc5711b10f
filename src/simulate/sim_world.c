/* Who sends to whom over which links; and which ranks, and which links, do the same. */
#include "simulate/sim_world.h"

#include "network/ends.h"

#include <stdlib.h>
#include <string.h>

/* Links at the ends of a message: a rank that receives, and ports that several ranks share. */
enum { RECEIVER, IN, OUT, WAYS };

/* The links on the way of a message from a to b, in places: its sender's port where ranks share it, the network, the
 * receiver's port. */
static int find_way(const mc_simulation_t *q, const int32_t *end, const mc_sim_world_t *w,
                    int32_t a, int32_t b, int32_t dim, mc_network_route_t *route)
{
    const mc_mesh_t *const mesh = q->mesh;
    const int32_t wire = mc_links_wire(q->links, dim), place[WAYS] = {b, b, a};
    const bool pulled = q->links->dim[dim].pulled;
    int status = MESHCOLL_OK;
    route->n = 0;
    if (q->network && mc_network_joins(mesh, dim) && end[a] != end[b])
        status = mc_network_route(q->network, end[a], end[b], route);
    for (int way = pulled ? IN : RECEIVER; way < (pulled ? OUT : WAYS) && !status; way++) {
        int32_t ports, n, port = mc_network_port(mesh, q->links, wire, place[way], &ports, &n);
        port = way == RECEIVER ? b : port;
        const uint32_t link = w->n_network +
                              ((uint32_t)wire * WAYS + (uint32_t)way) * (uint32_t)mesh->size +
                              (uint32_t)port;
        if (way != RECEIVER && ports == n && w->link[link].slow == 1)
            continue; /* the rank itself sends, receives or pulls one by one */
        status = mc_array_add(&route->link, &route->n, &route->capacity, &link, sizeof link,
                              "the routes of messages");
    }
    return status;
}

static int add_hops(mc_sim_world_t *w, mc_sim_pair_t *pair, const mc_network_route_t *route,
                    uint32_t *n, uint32_t *capacity)
{
    pair->hop = *n;
    pair->n_hops = (uint16_t)route->n;
    int status = route->n < UINT16_MAX
                     ? MESHCOLL_OK
                     : mc_fail(MESHCOLL_ERR_INVALID_ARG, "a route has %u links; %d are the most",
                               route->n, UINT16_MAX);
    for (uint32_t h = 0; h < route->n && !status; h++)
        status = mc_array_add(&w->hop, n, capacity, &(mc_sim_hop_t){route->link[h], 1},
                              sizeof *w->hop, "the routes of messages");
    return status;
}

static int find_pairs(const mc_simulation_t *q, const mc_orbits_t *o, mc_sim_world_t *w,
                      const int32_t *end)
{
    mc_network_route_t route = {0};
    uint32_t n_hops = 0, capacity = 0;
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < q->mesh->size && !status; r++) {
        const mc_program_t *const program = &o->program[o->of[r]];
        const int32_t a = q->order ? q->order[r] : r;
        for (uint32_t k = 0; k < program->plan->n_peers && !status; k++) {
            mc_sim_pair_t *const pair = &w->pair[w->pair_off[r] + k];
            const int32_t peer = mc_orbits_shift(o, program->plan->peer[k], r, 1);
            const int32_t b = q->order ? q->order[peer] : peer;
            const int32_t me = mc_orbits_shift(o, r, peer, -1);
            pair->peer = (uint32_t)peer;
            pair->back = mc_plan_peer(o->program[o->of[peer]].plan, me);
            pair->dim = (uint8_t)mc_mesh_level(q->mesh, a, b);
            route.n = 0;
            if (program->off[MC_SENDS][k] < program->off[MC_SENDS][k + 1])
                status = find_way(q, end, w, a, b, pair->dim, &route);
            if (!status)
                status = add_hops(w, pair, &route, &n_hops, &capacity);
        }
    }
    free(route.link);
    return status;
}

/* Can a message pass it? A link of the mesh is that of a wire, by the number of a group's first rank; what receivers pull
 * passes their ports alone. */
static bool is_used(const mc_simulation_t *q, const mc_sim_world_t *w, uint32_t link)
{
    if (link < w->n_network)
        return true;
    const int32_t size = q->mesh->size, at = (int32_t)(link - w->n_network),
                  wire = at / size / WAYS, way = at / size % WAYS, rank = at % size;
    int32_t ports, n;
    bool used = false;
    for (int32_t d = 0; d < q->mesh->ndims; d++)
        used |= mc_links_wire(q->links, d) == wire && (way == IN || !q->links->dim[d].pulled);
    return used &&
           (way == RECEIVER || mc_network_port(q->mesh, q->links, wire, rank, &ports, &n) == rank);
}

static int slow_down(const mc_simulation_t *q, const mc_slow_t *slow, mc_sim_world_t *w)
{
    for (uint32_t l = 0; l < w->n_links; l++) {
        char name[MC_NETWORK_NAME];
        mc_text_t text = mc_text(name, sizeof name);
        mc_sim_world_name(q, w, l, &text);
        if (strcmp(name, slow->link) != 0 || !is_used(q, w, l))
            continue;
        w->link[l].beta *= slow->factor;
        w->link[l].slow *= slow->factor;
        return MESHCOLL_OK;
    }
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "the network has no link called '%s'; names are as in the list of busiest "
                   "links: \"leaf0.0 up1\", \"%s rank 2 in\", or \"%s port 2 out\", where 2 is the "
                   "first rank of a port",
                   slow->link, q->mesh->dim[0].name, q->mesh->dim[0].name);
}

int mc_sim_world_create(const mc_simulation_t *q, const mc_orbits_t *o, mc_sim_world_t *world)
{
    const size_t size = (size_t)q->mesh->size;
    int32_t per_box, *const end = malloc(size * sizeof *end);
    mc_sim_world_t w = {.n_actors = (uint32_t)size,
                        .n_network = q->network ? q->network->n_links : 0};
    w.n_links = w.n_network + (uint32_t)(q->mesh->ndims * WAYS) * (uint32_t)size;
    w.rank = malloc(size * sizeof *w.rank);
    w.program = malloc(size * sizeof *w.program);
    w.pair_off = malloc((size + 1) * sizeof *w.pair_off);
    w.link = calloc(w.n_links, sizeof *w.link);
    int status = end && w.rank && w.program && w.pair_off && w.link
                     ? MESHCOLL_OK
                     : mc_fail_memory("the ranks and links");
    size_t n_pairs = 0;
    for (size_t r = 0; r < size && !status; r++) {
        w.rank[r] = (int32_t)r;
        w.program[r] = o->of[r];
        w.pair_off[r] = n_pairs;
        n_pairs += o->program[o->of[r]].plan->n_peers;
    }
    if (!status) {
        w.pair_off[size] = n_pairs;
        w.pair = calloc(n_pairs + 1, sizeof *w.pair);
        status = w.pair ? MESHCOLL_OK : mc_fail_memory("the pairs of ranks that exchange messages");
    }
    for (uint32_t l = 0; l < w.n_links && !status; l++)
        w.link[l] = (mc_world_link_t){
            .beta = l < w.n_network ? mc_network_beta(q->network, l) : 0,
            .slow = 1,
            .receiver = l >= w.n_network && (l - w.n_network) / (uint32_t)size % WAYS == RECEIVER,
            .id = l,
            .alike = 1};
    for (uint32_t i = 0; i < q->n_slow && !status; i++)
        status = slow_down(q, &q->slow[i], &w);
    if (!status) {
        mc_network_ends(q->mesh, q->links, end, &per_box);
        status = find_pairs(q, o, &w, end);
    }
    free(end);
    if (status)
        mc_sim_world_free(&w);
    else
        *world = w;
    return status;
}

void mc_sim_world_free(mc_sim_world_t *w)
{
    void *const parts[] = {w->rank, w->program, w->pair_off, w->pair, w->hop, w->link};
    for (size_t i = 0; i < MC_COUNT(parts); i++)
        free(parts[i]);
    *w = (mc_sim_world_t){0};
}

void mc_sim_world_name(const mc_simulation_t *q, const mc_sim_world_t *w, uint32_t link,
                       mc_text_t *text)
{
    const uint32_t id = w->link[link].id, size = (uint32_t)q->mesh->size;
    if (id < w->n_network) {
        mc_network_name(q->network, id, text);
        return;
    }
    const uint32_t port = (id - w->n_network) / size;
    mc_text_add(text, "%s %s %u %s", q->mesh->dim[port / WAYS].name,
                port % WAYS == RECEIVER ? "rank" : "port", (id - w->n_network) % size,
                port % WAYS == OUT ? "out" : "in");
}

/* Colours ------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t *actor, *link, *next; /* colours; next: of actors, then of links */
    uint32_t *class_of, *size; /* by actor, then by link: its class; by class: how many there are */
    uint64_t *seen;            /* open addressing: a colour, and its class */
    uint32_t *number, mask;
} colours_t;

/* Dimensions whose links do the same are one. */
static int32_t alike(const mc_simulation_t *q, int32_t d)
{
    const mc_link_t *const link = &q->links->dim[d];
    for (int32_t e = 0; e < d; e++) {
        const mc_link_t *const l = &q->links->dim[e];
        if (mc_links_wire(q->links, e) == mc_links_wire(q->links, d) && l->alpha == link->alpha &&
            l->gap == link->gap && l->beta == link->beta && l->gamma == link->gamma &&
            l->pulled == link->pulled)
            return e;
    }
    return d;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    a = (a ^ a >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return a ^ a >> 32;
}

/* A colour says what a rank does to whom over which links, and who uses a link and how. Of many users the sum counts. */
static void recolour(const mc_simulation_t *q, const mc_sim_world_t *w, colours_t *c)
{
    uint64_t *const next_link = c->next + w->n_actors;
    memcpy(next_link, c->link, w->n_links * sizeof *next_link);
    for (uint32_t a = 0; a < w->n_actors; a++) {
        uint64_t colour = c->actor[a];
        for (size_t k = w->pair_off[a]; k < w->pair_off[a + 1]; k++) {
            const mc_sim_pair_t *const p = &w->pair[k];
            colour = mix(mix(colour, c->actor[p->peer]),
                         (uint64_t)p->back << 8 | (uint64_t)alike(q, p->dim));
            for (uint32_t h = 0; h < p->n_hops; h++) {
                const uint32_t link = w->hop[p->hop + h].link;
                colour = mix(colour, c->link[link]);
                next_link[link] += mix(mix(c->actor[a], k - w->pair_off[a]), h);
            }
        }
        c->next[a] = colour;
    }
    for (uint32_t l = 0; l < w->n_links; l++)
        c->link[l] = next_link[l] == c->link[l] ? c->link[l] : mix(next_link[l], 1);
    memcpy(c->actor, c->next, w->n_actors * sizeof *c->actor);
}

/* Numbers the colours in the order in which they come; returns how many there are. */
static uint32_t number_colours(colours_t *c, const uint64_t *colour, uint32_t n, uint32_t *class_of,
                               uint32_t *size)
{
    uint32_t found = 0;
    memset(c->number, 0, ((size_t)c->mask + 1) * sizeof *c->number);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)colour[i] & c->mask;
        while (c->number[at] && c->seen[at] != colour[i])
            at = (at + 1) & c->mask;
        if (!c->number[at]) {
            c->seen[at] = colour[i];
            size[found] = 0;
            c->number[at] = ++found;
        }
        class_of[i] = c->number[at] - 1;
        size[class_of[i]]++;
    }
    return found;
}

/* Classes are final when two rounds have found no more of them: what links tell apart takes one round to reach ranks. */
static uint32_t refine(const mc_simulation_t *q, const mc_sim_world_t *w, colours_t *c)
{
    uint32_t classes = 0, same = 0;
    for (uint32_t a = 0; a < w->n_actors; a++)
        c->actor[a] = mix((uint64_t)w->program[a] + 2, q->late ? (uint64_t)q->late[w->rank[a]] : 0);
    for (uint32_t l = 0; l < w->n_links; l++) {
        uint64_t slow;
        memcpy(&slow, &w->link[l].slow, sizeof slow);
        memcpy(&c->link[l], &w->link[l].beta, sizeof c->link[l]);
        c->link[l] = mix(mix(c->link[l], slow), w->link[l].receiver);
    }
    while (same < 2 && classes < w->n_actors) {
        recolour(q, w, c);
        const uint32_t found = number_colours(c, c->actor, w->n_actors, c->class_of, c->size);
        same = found == classes ? same + 1 : 0;
        classes = found;
    }
    return classes;
}

/* Moves the first of each class to the front. A link carries what its users of a class send, as often as there are more of
 * them than links alike. */
static void keep_first(mc_sim_world_t *w, const colours_t *c, uint32_t classes, uint32_t n_links)
{
    const uint32_t *const link_class = c->class_of + w->n_actors, *const links =
                                                                      c->size + w->n_actors;
    uint32_t n = 0, hops = 0;
    size_t pairs = 0;
    for (uint32_t a = 0; a < w->n_actors; a++) {
        const size_t first = w->pair_off[a], end = w->pair_off[a + 1];
        if (c->class_of[a] != n || n == classes)
            continue;
        w->rank[n] = w->rank[a];
        w->program[n] = w->program[a];
        w->pair_off[n] = pairs;
        for (size_t k = first; k < end; k++) {
            mc_sim_pair_t p = w->pair[k];
            p.peer = c->class_of[p.peer];
            for (uint32_t h = 0; h < p.n_hops; h++) {
                const uint32_t link = link_class[w->hop[p.hop + h].link];
                w->hop[hops + h] = (mc_sim_hop_t){link, c->size[n] / links[link]};
            }
            p.hop = hops;
            hops += p.n_hops;
            w->pair[pairs++] = p;
        }
        n++;
    }
    w->pair_off[n] = pairs;
    w->n_actors = n;
    n = 0;
    for (uint32_t l = 0; l < w->n_links; l++)
        if (link_class[l] == n && n < n_links) {
            w->link[n] = w->link[l];
            w->link[n].alike = links[n];
            n++;
        }
    w->n_links = n;
}

int mc_sim_world_fold(const mc_simulation_t *q, mc_sim_world_t *w)
{
    const size_t n = (size_t)w->n_actors + w->n_links;
    colours_t c = {.mask = 1};
    while (c.mask < 2 * n)
        c.mask = 2 * c.mask + 1;
    uint64_t *const room = malloc((2 * n + c.mask + 1) * sizeof *room);
    uint32_t *const numbers = malloc((2 * n + c.mask + 1) * sizeof *numbers);
    if (!room || !numbers) {
        free(room);
        free(numbers);
        return mc_fail_memory("the classes of ranks");
    }
    c.actor = room;
    c.link = room + w->n_actors;
    c.next = room + n;
    c.seen = room + 2 * n;
    c.class_of = numbers;
    c.size = numbers + n;
    c.number = numbers + 2 * n;
    const uint32_t classes = refine(q, w, &c);
    if (classes < w->n_actors) {
        const uint32_t links =
            number_colours(&c, c.link, w->n_links, c.class_of + w->n_actors, c.size + w->n_actors);
        keep_first(w, &c, classes, links);
    }
    free(room);
    free(numbers);
    return MESHCOLL_OK;
}
