/* Range checks of links, and the wires that dimensions share. */
#include "mesh/link_fields.h"

static int fail_range(const char *dim, const char *field, const mc_link_range_t *range,
                      double number)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s of dimension %s must be 0, or from %g to %g %s; got %g", field, dim,
                   range->least, range->most, range->unit, number);
}

static int check_fields(const mc_link_t *link, const char *dim)
{
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        const double number = mc_link_value(field, link);
        if (!mc_link_is_within(mc_link_range(field), number))
            return fail_range(dim, field->name, mc_link_range(field), number);
    }
    return MESHCOLL_OK;
}

static int check_others(const mc_link_t *link, const char *dim)
{
    const struct {
        const char *name;
        double number;
        const mc_link_range_t *range;
    } others[] = {{"burst", link->burst, &mc_link_sizes},
                  {"header", link->header, &mc_link_sizes},
                  {"incast", link->incast, &mc_link_shares},
                  {"window", link->window, &mc_link_sizes},
                  {"pieces", link->pieces, &mc_link_sizes}};
    for (size_t i = 0; i < MC_COUNT(others); i++)
        if (!mc_link_is_within(others[i].range, others[i].number))
            return fail_range(dim, others[i].name, others[i].range, others[i].number);
    return MESHCOLL_OK;
}

static int check_point(const mc_link_point_t *point, const char *dim)
{
    if (!mc_link_is_within(&mc_link_sizes, point->bytes))
        return fail_range(dim, "a size", &mc_link_sizes, point->bytes);
    for (int32_t i = 0; i < MC_LINK_FIELDS; i++) {
        const mc_link_field_t *const field = &mc_link_fields[i];
        const double number = mc_link_point_value(field, point);
        if (!mc_link_is_within(mc_link_range(field), number))
            return fail_range(dim, field->name, mc_link_range(field), number);
    }
    return MESHCOLL_OK;
}

static int check_points(const mc_link_t *link, const char *dim)
{
    double before = 0;
    if (link->n_points < 0 || link->n_points > MC_LINK_POINTS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "the link of dimension %s has %d sizes, of at most %d", dim, link->n_points,
                       MC_LINK_POINTS);
    for (int32_t i = 0; i < link->n_points; i++) {
        const mc_link_point_t *const point = &link->point[i];
        const int status = check_point(point, dim);
        if (status)
            return status;
        if (!(point->bytes > before))
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "the sizes of the link of dimension %s must ascend; got %g bytes "
                           "after %g",
                           dim, point->bytes, before);
        before = point->bytes;
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
    int status = check_fields(link, dim);
    if (!status)
        status = check_others(link, dim);
    if (!status)
        status = check_points(link, dim);
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
    if (!mc_links_are_factors_usable(links))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a factor of a link must name a dimension and a collective, and be above 0");
    return MESHCOLL_OK;
}
