/* Range checks of links, the wires that dimensions share, and what links hold in flight. */
#include "mesh/link/link_text.h"

static int check_numbers(const mc_links_t *links, int32_t d, const char *dim)
{
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        const mc_link_kind_t *const kind = field->kind;
        const double number = mc_link_value(field, links, d);
        if (!mc_link_is_within(kind, number))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s of dimension %s must be 0, or from %g to %g %s; got %g", field->name,
                           dim, kind->least, kind->most, kind->unit, number);
    }
    return MESHCOLL_OK;
}

void mc_links_share_wire(mc_links_t *links, int32_t dim)
{
    for (int32_t d = 0; d < dim; d++)
        if (links->dim[d].wire == 0 && mc_links_wire(links, dim) == dim)
            links->dim[d].wire = dim + 1;
}

/* A wire belongs to an inner dimension that has its own: traffic of an outer one leaves through
 * it. */
static bool is_wire_right(const mc_links_t *links, int32_t d)
{
    const int32_t wire = mc_links_wire(links, d);
    return wire >= d && wire < links->ndims && mc_links_wire(links, wire) == wire;
}

static int check_dim(const mc_links_t *links, int32_t d, const char *dim)
{
    const mc_link_t *const link = &links->dim[d];
    const int status = check_numbers(links, d, dim);
    if (status)
        return status;
    if (!is_wire_right(links, d))
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "dimension %s may share only the wire of an inner dimension that has its own", dim);
    if (link->ports < 1)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "dimension %s must have at least one port, not %d",
                       dim, link->ports);
    return MESHCOLL_OK;
}

int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh)
{
    if (links->ndims != mesh->ndims)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "links of %d dimensions for a mesh of %d",
                       links->ndims, mesh->ndims);
    for (int32_t d = 0; d < links->ndims; d++) {
        const int status = check_dim(links, d, mesh->dim[d].name);
        if (status)
            return status;
    }
    return mc_measured_check(mc_links_measured(links));
}

/* The bytes that the link carries in two round trips of 2 alpha each: twice the bandwidth-delay product. */
static double held_by(const mc_link_t *link)
{
    return link->beta > 0 ? 4 * link->alpha / link->beta : 0;
}

double mc_link_window(const mc_links_t *links, int32_t d)
{
    const double held = held_by(&links->dim[d]);
    if (links->correction[d].window > 0)
        return links->correction[d].window;
    return held > MC_LINK_WINDOW ? held : MC_LINK_WINDOW;
}

size_t mc_links_least(const mc_links_t *links, int32_t d)
{
    const int32_t wire = mc_links_wire(links, d);
    const double held = held_by(&links->dim[wire]);
    const bool streams = links->dim[wire].streams || links->correction[wire].window > 0;
    return streams && held < (double)(SIZE_MAX / 2) ? (size_t)held : SIZE_MAX / 2;
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
