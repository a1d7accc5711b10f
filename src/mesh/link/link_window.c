/* What links hold in flight. */
#include "mesh/link/link.h"

double mc_link_held(const mc_link_t *link)
{
    return link->beta > 0 ? 4 * link->alpha / link->beta : 0;
}

double mc_link_window(const mc_links_t *links, int32_t d)
{
    const double held = mc_link_held(&links->dim[d]);
    if (links->correction[d].window > 0)
        return links->correction[d].window;
    return held > MC_LINK_WINDOW ? held : MC_LINK_WINDOW;
}

size_t mc_links_least(const mc_links_t *links, int32_t d)
{
    const double held = mc_link_held(&links->dim[mc_links_wire(links, d)]);
    return held < (double)(SIZE_MAX / 2) ? (size_t)held : SIZE_MAX / 2;
}

double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d)
{
    const int32_t wire = mc_links_wire(links, d), ranks = mc_mesh_stride(mesh, d);
    const int32_t ports = links->dim[wire].ports;
    return mc_link_window(links, wire) * (ports < ranks ? ports : ranks);
}

bool mc_links_share_cores(const mc_links_t *links)
{
    bool any = false;
    for (int32_t d = 0; d < links->ndims; d++)
        any = any || links->correction[d].cpu > 0;
    return any;
}

mc_links_t mc_links_at(const mc_links_t *links, double bytes)
{
    mc_links_t at = *links;
    for (int32_t d = 0; d < links->ndims; d++) {
        const double burst = links->correction[mc_links_wire(links, d)].burst;
        if (burst > 0)
            at.dim[d].beta *= bytes / (bytes + burst);
        at.correction[d].burst = 0;
    }
    return at;
}

bool mc_links_burst(const mc_links_t *links)
{
    bool any = false;
    for (int32_t d = 0; d < links->ndims; d++)
        any = any || links->correction[d].burst > 0;
    return any;
}
