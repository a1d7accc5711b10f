#include "compose/price/bound.h"

#include <math.h>

/* Ranks that data of one rank has reached after `seconds`, if each that has it starts `fan` messages at once
 * and that many again each gap; a message takes alpha. C(i + k, i) fan^i ranks are i messages from the first
 * and have waited for up to k gaps. gap > 0; stops at `enough`. */
static double reached(double seconds, double fan, double alpha, double gap, double enough)
{
    const double rounded = 1e-9;
    double all = 0;
    for (int32_t i = 0; i * alpha <= seconds && all < enough; i++) {
        const double waits = floor((seconds - i * alpha) / gap + rounded);
        double ranks = 1;
        for (int32_t k = 1; k <= i && ranks < enough; k++)
            ranks *= fan * (waits + k) / k;
        all += ranks;
    }
    return all;
}

/* The fewest gaps with which messages at a depth of `i` reach all `p`; p if no such number does. */
static int32_t gaps_needed(int32_t i, int32_t p, double fan, double alpha, double gap)
{
    int32_t few = 0, many = p;
    while (few < many) {
        const int32_t k = few + (many - few) / 2;
        if (reached(i * alpha + k * gap, fan, alpha, gap, p) >= p)
            many = k;
        else
            few = k + 1;
    }
    return few;
}

/* Seconds until data of one rank is on `p` ranks (or boxes), if each that has it has `fan` senders. */
static double spread(int32_t p, int64_t fan, double alpha, double gap)
{
    const int32_t n = mc_rounds(p, fan);
    double least = n * alpha;
    if (gap == 0 && n > 0)
        return alpha;
    for (int32_t i = 1; i < n && gap < alpha; i++)
        least = fmin(least, i * alpha + gaps_needed(i, p, (double)fan, alpha, gap) * gap);
    return least;
}

static double latency(const mc_mesh_t *mesh, const mc_links_t *links, int32_t top)
{
    const mc_link_t *const network = &links->dim[top];
    double alpha = INFINITY, gap = INFINITY;
    bool wires = true;
    for (int32_t d = top; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1) {
            alpha = fmin(alpha, links->dim[d].alpha);
            gap = fmin(gap, links->dim[d].gap);
            wires = wires && !links->dim[d].pulled;
        }
    const double crossed = network->pulled
                               ? network->alpha
                               : spread(mesh->dim[top].extent, mc_mesh_stride(mesh, top),
                                        network->alpha, network->gap);
    return wires ? fmax(crossed, spread(mesh->size, 1, alpha, gap)) : crossed;
}

/* Returns the multiple of n that must pass the ports of some box. `inside`: ranks of a box. */
static double volume(meshcoll_collective_t collective, double boxes, double inside, bool pulled)
{
    switch (collective) {
    case MESHCOLL_BCAST:
    case MESHCOLL_REDUCE:
        return 1;
    case MESHCOLL_ALLREDUCE:
        return 2 * (boxes - 1) / boxes;
    case MESHCOLL_ALLTOALL: /* each rank has an n of its own */
        return inside * (boxes - 1) / boxes;
    case MESHCOLL_SCATTER: /* receivers that pull do so all at once: what one box receives */
        return pulled ? 1 / boxes : (boxes - 1) / boxes;
    default:
        return (boxes - 1) / boxes;
    }
}

/* Returns the multiple of n that the box with the most to pass must pass, where boxes are of unequal sizes, whatever the
 * root. */
static double ragged_volume(meshcoll_collective_t collective, const mc_boxes_t *boxes, bool pulled)
{
    const double ranks = boxes->first[boxes->n];
    double most = 0;
    switch (collective) {
    case MESHCOLL_SCATTER:
        return pulled ? boxes->fewest / ranks : (ranks - boxes->most) / ranks;
    case MESHCOLL_GATHER:
        return (ranks - boxes->most) / ranks;
    case MESHCOLL_ALLGATHER:
    case MESHCOLL_REDUCE_SCATTER:
        return (ranks - boxes->fewest) / ranks;
    case MESHCOLL_ALLTOALL:
        for (int32_t b = 0; b < boxes->n; b++) {
            const double inside = boxes->first[b + 1] - boxes->first[b];
            most = fmax(most, inside * (ranks - inside) / ranks);
        }
        return most;
    default:
        return volume(collective, boxes->n, 1, pulled);
    }
}

/* Multiple of n that some rank must receive, or send. For an allreduce: an element's sum takes ranks-1
 * messages until one rank has it, and ranks-1 more until all have it; all ranks together receive these. */
static double taken(meshcoll_collective_t collective, double ranks, bool pulled)
{
    switch (collective) {
    case MESHCOLL_BCAST:
    case MESHCOLL_REDUCE:
        return 1;
    case MESHCOLL_ALLREDUCE:
        return 2 * (ranks - 1) / ranks;
    case MESHCOLL_SCATTER: /* the root sends all at once to receivers that pull */
        return (pulled ? 1 : ranks - 1) / ranks;
    default:
        return (ranks - 1) / ranks;
    }
}

/* Do receivers pull along any dimension from `first` to `last`? */
static bool any_pulled(const mc_mesh_t *mesh, const mc_links_t *links, int32_t first, int32_t last)
{
    bool any = false;
    for (int32_t d = first; d <= last; d++)
        any = any || (mesh->dim[d].extent > 1 && links->dim[d].pulled);
    return any;
}

/* Seconds until a rank can have received, or sent, `bytes` over the wires of all its dimensions at once. A
 * wire that dimensions share is as fast as the fastest of their links. */
static double flow(const mc_mesh_t *mesh, const mc_links_t *links, double bytes)
{
    double all = 0, rate[MC_MAX_DIMS] = {0};
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const int32_t wire = mc_links_wire(links, d);
        if (mesh->dim[d].extent == 1)
            continue;
        rate[wire] = fmax(rate[wire], 1 / links->dim[d].beta);
    }
    for (int32_t d = 0; d < mesh->ndims; d++)
        all += rate[d];
    return bytes / all;
}

/* In the textbook's model (mc_busy_t) sums of segments occupy the wires, so those of several dimensions overlap. */
static double computation(const mc_mesh_t *mesh, const mc_links_t *links)
{
    double least = INFINITY;
    unsigned busy = 0; /* by wires and, behind the wires, ranks */
    for (int32_t d = 0; d < mesh->ndims; d++) {
        if (mesh->dim[d].extent == 1)
            continue;
        least = fmin(least, links->dim[d].gamma);
        busy |= 1u << (mc_links_are_apart(links, d) ? links->ndims : mc_links_wire(links, d));
    }
    return (mesh->size - 1.0) / mesh->size * least / __builtin_popcount(busy);
}

/* Multiple of n that must pass the busiest port of the wire of dimension `d`. */
static double least_carried(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t d)
{
    const int32_t wire = mc_links_wire(links, d), inside = mc_mesh_stride(mesh, wire);
    const int32_t boxes = mc_mesh_places(mesh) / inside;
    const int32_t ports = links->dim[wire].ports < inside ? links->dim[wire].ports : inside;
    const bool pulled = any_pulled(mesh, links, d, wire);
    return (mesh->ragged ? ragged_volume(collective, mesh->ragged, pulled)
                         : volume(collective, boxes, inside, pulled)) /
           ports;
}

double mc_lower_bound(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      const mc_links_t *given, double n)
{
    mc_links_t at = mc_links_at(given, n), *const links = &at;
    const unsigned longer = mc_mesh_long(mesh);
    if (!longer)
        return 0;
    const int32_t top = __builtin_ctz(longer);
    if (links->dim[top].pulled && links->correction[top].cpu > 0)
        return mc_links_call(links);
    const int32_t wire = mc_links_wire(links, top);
    for (int32_t d = 0; d < links->ndims; d++)
        if (links->dim[d].pulled && links->correction[d].cpu > 0)
            at.dim[d].beta /= 2; /* of one rank that copies alone (cost.c) */
    double least_beta = links->dim[top].beta;
    for (int32_t d = top; d <= wire; d++)
        if (mesh->dim[d].extent > 1 && links->dim[d].beta < least_beta)
            least_beta = links->dim[d].beta;
    const double passed = n * least_carried(collective, mesh, links, top) * least_beta;
    const double by_rank =
        taken(collective, mesh->size, any_pulled(mesh, links, 0, mesh->ndims - 1));
    const double moved = fmax(passed, flow(mesh, links, n * by_rank));
    const double bound = fmax(latency(mesh, links, top), moved);
    const double summed = mc_moves[collective].reduces ? n * computation(mesh, links) : 0;
    return fmax(bound, summed) + mc_links_call(links);
}
