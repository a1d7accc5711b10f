/* Links at one size of the vector, their windows, and bursts folded into beta. */
#include "mesh/link.h"

#include <math.h>

/* Interpolates in time, not in rate: costs per byte are weighted by their bytes. */
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

/* Returns the first or last point beyond the ends. */
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

/* A size among the link's points: `share` of the way from point `i` to the next. */
typedef struct {
    int32_t i;
    double share;
} place_t;

/* The logarithm, as every processor has it: libm's has other last digits where multiply and add are one. m is within
 * [sqrt(1/2), sqrt(2)], and log(m) = 2 atanh((m - 1) / (m + 1)). */
static double logarithm(double x)
{
    enum { TERMS = 24 }; /* the last one is less than 1e-17 of the first */
    static const double ln_2 = 0x1.62e42fefa39efp-1, root = 0x1.6a09e667f3bcdp-1;
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < root) {
        m *= 2;
        exponent--;
    }
    const double t = (m - 1) / (m + 1);
    for (int k = TERMS; k-- > 0;)
        sum = sum * (t * t) + 1.0 / (2 * k + 1);
    return exponent * ln_2 + 2 * t * sum;
}

/* A factor describes a protocol, not the cost of one more byte: interpolate over the logarithm of
 * the size. */
static place_t place_of(const mc_link_t *link, double bytes)
{
    const mc_link_point_t *const point = link->point;
    const int32_t last = link->n_points - 1;
    int32_t i = 0;
    if (bytes <= point[0].bytes)
        return (place_t){0, 0};
    if (bytes >= point[last].bytes)
        return (place_t){last, 0};
    while (point[i + 1].bytes <= bytes)
        i++;
    /* 0 where the two sizes are adjacent doubles */
    const double span = logarithm(point[i + 1].bytes / point[i].bytes);
    return (place_t){i, span > 0 ? logarithm(bytes / point[i].bytes) / span : 0};
}

static void find_factors(const mc_links_t *links, double bytes, mc_links_t *at)
{
    place_t place[MC_MAX_DIMS];
    for (int32_t d = 0; d < links->ndims; d++)
        place[d] = links->dim[d].n_points > 0 ? place_of(&links->dim[d], bytes) : (place_t){0, 0};
    for (int32_t f = 0; f < links->n_factors; f++) {
        const place_t *const in = &place[links->factor[f].dim];
        const uint16_t *const known = &links->factor[f].at[in->i];
        const double here = known[0], next = in->share > 0 ? known[1] : here;
        at->factor[f].at[0] = (uint16_t)lround(here + in->share * (next - here));
    }
}

mc_links_t mc_links_at(const mc_links_t *links, double bytes)
{
    mc_links_t at = *links;
    if (at.n_factors > 0)
        find_factors(links, bytes, &at);
    for (int32_t d = 0; d < at.ndims; d++)
        find_point(&at.dim[d], bytes);
    return at;
}

double mc_link_held(const mc_link_t *link)
{
    return link->beta > 0 ? 4 * link->alpha / link->beta : 0;
}

double mc_link_window(const mc_link_t *link)
{
    const double held = mc_link_held(link);
    if (link->window > 0)
        return link->window;
    return held > MC_LINK_WINDOW ? held : MC_LINK_WINDOW;
}

size_t mc_links_least(const mc_links_t *links, int32_t d)
{
    const double held = mc_link_held(&links->dim[mc_links_wire(links, d)]);
    return held < (double)(SIZE_MAX / 2) ? (size_t)held : SIZE_MAX / 2;
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
