/* What links may have, and which wires their dimensions share. */
#include "mesh/link_fields.h"

#include <math.h>
#include <stddef.h>

#define FIELD(name, per_byte)                                                       \
    {                                                                               \
#name, offsetof(mc_link_t, name), offsetof(mc_link_point_t, name), per_byte \
    }
const mc_link_field_t mc_link_fields[MC_LINK_FIELDS] = {FIELD(alpha, false), FIELD(gap, false),
                                                        FIELD(cpu, false),   FIELD(beta, true),
                                                        FIELD(bus, true),    FIELD(gamma, true)};

static bool usable(double number)
{
    return isfinite(number) && number >= 0;
}

static bool is_link_usable(const mc_link_t *link)
{
    bool good = usable(link->incast) && usable(link->burst) && usable(link->header) &&
                usable(link->window) && usable(link->pieces);
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++)
        good = good && usable(mc_link_value(&mc_link_fields[i], link));
    return good;
}

static bool are_points_usable(const mc_link_t *link)
{
    double before = 0;
    bool good = true;
    for (int32_t i = 0; i < link->n_points; i++) {
        good = good && link->point[i].bytes > before;
        before = link->point[i].bytes;
        for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
            good = good && usable(mc_link_point_value(&mc_link_fields[f], &link->point[i]));
    }
    return good;
}

void mc_links_share_wire(mc_links_t *links, int32_t dim)
{
    for (int32_t d = 0; d < dim; d++)
        if (links->dim[d].wire == 0 && mc_links_wire(links, dim) == dim)
            links->dim[d].wire = dim + 1;
}

/* A box is inside of what its wires lead to, and has one end of each. */
static bool is_wire_right(const mc_links_t *links, int32_t d)
{
    const int32_t wire = mc_links_wire(links, d);
    return wire >= d && wire < links->ndims && mc_links_wire(links, wire) == wire;
}

int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh)
{
    if (links->ndims != mesh->ndims)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "links of %d dimensions for a mesh of %d",
                       links->ndims, mesh->ndims);
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_link_t *const link = &links->dim[d];
        if (!is_link_usable(link))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "alpha, gap, cpu, beta, bus, burst, gamma, header, incast, window and "
                           "pieces of dimension %s are finite and not negative",
                           mesh->dim[d].name);
        if (!are_points_usable(link))
            return mc_fail(
                MESHCOLL_ERR_INVALID_ARG,
                "the link of dimension %s at its sizes: these ascend, and its numbers are "
                "finite and not negative",
                mesh->dim[d].name);
        if (!is_wire_right(links, d))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "dimension %s shares the wire of one inside of it, that has its own",
                           mesh->dim[d].name);
        if (link->ports < 1)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "dimension %s has at least one port, not %d",
                           mesh->dim[d].name, link->ports);
    }
    if (!mc_links_are_factors_usable(links))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "factors of links are of their dimensions and collectives, and more than 0");
    return MESHCOLL_OK;
}
