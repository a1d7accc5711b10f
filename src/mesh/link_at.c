/* Links as a vector of a certain size finds them, and what they hold. */
#include "mesh/link.h"

/* `share` of the way from one to the other, where what is by the byte counts with its bytes. */
static mc_link_point_t between(const mc_link_point_t *a, const mc_link_point_t *b, double share,
                               double bytes)
{
    const double from = 1 - share, a_bytes = from * a->bytes / bytes,
                 b_bytes = share * b->bytes / bytes;
    return (mc_link_point_t){.bytes = bytes,
                             .alpha = from * a->alpha + share * b->alpha,
                             .gap = from * a->gap + share * b->gap,
                             .cpu = from * a->cpu + share * b->cpu,
                             .beta = a_bytes * a->beta + b_bytes * b->beta,
                             .bus = a_bytes * a->bus + b_bytes * b->bus,
                             .gamma = a_bytes * a->gamma + b_bytes * b->gamma};
}

/* Beyond the ends it is as at the ends. */
static mc_link_point_t point_at(const mc_link_t *link, double bytes)
{
    const mc_link_point_t *const point = link->point, *const last = &point[link->n_points - 1];
    int32_t i = 0;
    if (bytes <= point->bytes || bytes >= last->bytes)
        return bytes <= point->bytes ? *point : *last;
    while (point[i + 1].bytes <= bytes)
        i++;
    const double share = (bytes - point[i].bytes) / (point[i + 1].bytes - point[i].bytes);
    return between(&point[i], &point[i + 1], share, bytes);
}

static void find_point(mc_link_t *link, double bytes)
{
    if (link->n_points == 0)
        return;
    const mc_link_point_t at = point_at(link, bytes);
    link->alpha = at.alpha;
    link->gap = at.gap;
    link->cpu = at.cpu;
    link->beta = at.beta;
    link->bus = at.bus;
    link->gamma = at.gamma;
    link->n_points = 0;
}

mc_links_t mc_links_at(const mc_links_t *links, double bytes)
{
    mc_links_t at = *links;
    for (int32_t d = 0; d < at.ndims; d++)
        find_point(&at.dim[d], bytes);
    return at;
}

double mc_link_window(const mc_link_t *link)
{
    const double held = link->beta > 0 ? 4 * link->alpha / link->beta : 0;
    if (link->window > 0)
        return link->window;
    return held > MC_LINK_WINDOW ? held : MC_LINK_WINDOW;
}

double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d)
{
    const mc_link_t *const wire = &links->dim[mc_links_wire(links, d)];
    const int32_t ranks = mc_mesh_stride(mesh, d);
    return mc_link_window(wire) * (wire->ports < ranks ? wire->ports : ranks);
}

bool mc_links_burst(const mc_links_t *links)
{
    bool any = false;
    for (int32_t d = 0; d < links->ndims; d++)
        any = any || links->dim[d].burst > 0;
    return any;
}

void mc_links_take_burst(const mc_links_t *links, const double carried[MC_MAX_DIMS],
                         mc_links_t *left)
{
    for (int32_t d = 0; d < links->ndims; d++) {
        const int32_t wire = mc_links_wire(links, d);
        const double burst = links->dim[wire].burst, all = carried[wire];
        const double late = burst == 0 ? 1 : all > burst ? 1 - burst / all : 0;
        left->dim[d].beta = links->dim[d].beta * late;
        left->dim[d].burst = 0;
    }
}
