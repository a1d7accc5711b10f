#include "runtime/calibrate/fit.h"

#include "base/number.h"

#include <math.h>

/* Numbers of E12 in tenths, and ten again; those of E6 are every other one. */
static const double e12[] = {10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82, 100};
enum { E12 = MC_COUNT(e12) - 1 };

/* The nearest of the series, by ratio. */
static double nearest(double tenths, int32_t by)
{
    int32_t i = 0;
    while (i < E12 && tenths * tenths > e12[i] * e12[i + by])
        i += by;
    return e12[i];
}

static double three_digits(double number)
{
    char text[32];
    mc_number_print(text, sizeof text, "%.3g", number);
    return mc_number_read(text, NULL);
}

/* In the unit in which it is printed (us, ns, …), so that its text is as short as it looks. */
double mc_coarse(double number, int32_t steps)
{
    double unit = 1, decade = 10;
    if (!(number > 0))
        return 0;
    while (unit < 1e12 && number * unit < 1)
        unit *= 1e3;
    if (steps == 0)
        return three_digits(number * unit) / unit;
    while (number * unit >= decade && decade < 1e4)
        decade *= 10;
    while (number * unit * 10 < decade && decade > 1e-6)
        decade /= 10;
    const double tenths = nearest(number * unit / decade * 100, E12 / steps);
    return (decade >= 100 ? tenths * (decade / 100) : tenths / (100 / decade)) / unit;
}

bool mc_sight_is_whole(const mc_sight_t *sight, const mc_mesh_t *mesh)
{
    bool whole = true;
    for (int32_t d = 0; d < mesh->ndims; d++)
        whole = whole && (sight->dim[d].ranks > 1 || mesh->dim[d].extent == 1);
    return whole;
}

/* The number of lines that run at once at the speed of one. */
static int32_t ports_of(const mc_seen_t *seen)
{
    const double ports = round(seen->lines * seen->alone / seen->together);
    if (!(ports >= 1))
        return 1;
    return ports < seen->lines ? (int32_t)ports : seen->lines;
}

/* Memory whose ranks share cores (docs/lab-notes/calibration.md): in a round a core switches to each of its ranks, which
 * takes alpha; a message takes it `gap`, a byte `beta`, in which it is summed too. Choices need no more than the ratios
 * of these. */
static const mc_link_t shared = {
    .alpha = 1.75e-6, .gap = 0.4e-6, .beta = 0.08e-9, .ports = 1, .pulled = true};

static void set_shared(const mc_sight_t *sight, mc_link_t *link, mc_correction_t *correction)
{
    *link = shared;
    link->alpha = mc_coarse(shared.alpha * sight->crowd, 0);
    *correction = (mc_correction_t){.cpu = mc_coarse(shared.gap * sight->crowd / sight->ranks, 0)};
}

/* Where ranks share cores, their time for the messages of all ranks is in each round: of a sequence on all lines it is all
 * there is (mc_correction_t.cpu), and rounds of one line have that of its ranks. */
static void set_times(const mc_sight_t *sight, const mc_seen_t *seen, int32_t steps,
                      mc_link_t *link, mc_correction_t *correction)
{
    if (sight->crowd > 1) {
        const double cpu = seen->row / sight->ranks, own = seen->round - cpu * seen->ranks;
        correction->cpu = mc_coarse(cpu, steps);
        link->alpha = mc_coarse(own > cpu ? own : cpu, steps);
        link->gap = 0;
        return;
    }
    link->alpha = mc_coarse(seen->round, steps);
    link->gap = mc_coarse(seen->row < seen->round ? seen->row : seen->round, steps);
}

/* Coarse: a power of two, as it varies most. */
static double burst_of(double bytes, bool coarse)
{
    if (!(bytes >= 1))
        return 0;
    return coarse ? exp2(round(log2(bytes))) : round(bytes);
}

void mc_sight_links(const mc_sight_t *sight, bool coarse, mc_links_t *links)
{
    /* what ranks measure of times varies more than the rate of a wire */
    const int32_t times = coarse ? 6 : 0, rates = coarse ? 12 : 0;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_seen_t *const seen = &sight->dim[d];
        if (seen->ranks < 2)
            continue;
        mc_link_t *const link = &links->dim[d];
        if (seen->pulled && sight->crowd > 1 && seen->together == 0) {
            set_shared(sight, link, &links->correction[d]);
            continue;
        }
        const int32_t ports = ports_of(seen);
        *link = (mc_link_t){
            .gamma = sight->gamma > 0 ? mc_coarse(sight->gamma, rates) : link->gamma,
            /* all lines together, which the model slows down by lines / ports, cost what was measured */
            .beta = mc_coarse(seen->together * ports / seen->lines, rates),
            .ports = ports,
            .wire = seen->own_wire ? MC_WIRE_OWN : link->wire,
            .pulled = seen->pulled,
            .streams = seen->streams && !seen->pulled};
        links->correction[d] =
            (mc_correction_t){.burst = burst_of(seen->burst, coarse), .eager = seen->eager};
        set_times(sight, seen, times, link, &links->correction[d]);
    }
}
