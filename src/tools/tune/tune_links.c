/* Derives alpha, gap, beta, gamma and ports from the measurements. */
#include "tools/tune/tune.h"

#include "compose/planner/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds to three digits, the precision of a measurement, in the unit in which the value is
 * printed. */
static double rounded(double seconds)
{
    char text[32];
    double unit = 1;
    while (unit < 1e12 && seconds * unit < 1)
        unit *= 1e3;
    snprintf(text, sizeof text, "%.3g", seconds * unit);
    return strtod(text, NULL) / unit;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The time of a message of a sequence without the time of the cores for the messages of all
 * ranks. At most 0.99 alpha: one more message of a sequence costs no more than a round, which
 * more collectives measure, and a gap equal to alpha means that it was not measured (link.h). */
static double gap_of(const mc_seen_t *seen, double alpha)
{
    const double gap = seen->row - seen->cpu * seen->ranks, most = 0.99 * alpha;
    if (gap <= 0)
        return 0;
    return gap < most ? gap : most;
}

/* The overhead of a piece on the wire, with the time of the ranks as in mc_term_busy(). */
static double header_of(const mc_seen_t *seen, double gap)
{
    const double own = gap + seen->cpu * seen->ranks / seen->lines;
    return seen->fine.seconds > 0 ? floor(mc_tune_header(&seen->coarse, &seen->fine, own)) : 0;
}

/* The number of lines that run concurrently at the speed of one. */
static int32_t ports_of(const mc_seen_t *seen)
{
    const double ports = round(seen->lines * seen->alone / seen->together);
    if (!(ports >= 1))
        return 1;
    return ports < seen->lines ? (int32_t)ports : seen->lines;
}

/* The probes at several sizes have only few messages in sequence and no segments. So the gap is
 * at least the one measured for a sequence; otherwise pipelines of very small segments would
 * appear to cost nothing. */
static double gap_at(const mc_link_point_t *at, const mc_link_t *link)
{
    const double most = 0.99 * at->alpha;
    return larger(at->gap, link->gap < most ? link->gap : most);
}

/* Only a single line has points. */
static void add_points(const mc_tuning_t *tuning, mc_link_t *link)
{
    for (int32_t i = 0; i < tuning->n_points; i++) {
        const mc_link_point_t *const at = &tuning->point[i];
        const double gap = gap_at(at, link);
        link->point[link->n_points++] = (mc_link_point_t){.bytes = at->bytes,
                                                          .alpha = rounded(at->alpha),
                                                          .gap = rounded(gap),
                                                          .cpu = rounded(at->cpu),
                                                          .beta = rounded(at->beta),
                                                          .bus = rounded(at->bus),
                                                          .gamma = rounded(at->gamma)};
    }
}

/* Factors of algorithms: measured time over the closed form with these links. */
static int add_factors(const mc_mesh_t *mesh, const mc_tuning_t *tuning, mc_links_t *links)
{
    const mc_links_t plain = *links;
    mc_tune_probe_t probe;
    mc_strategy_t strategy;
    int status = MESHCOLL_OK;
    for (int32_t a = 0; a < mc_n_algorithms && !status; a++) {
        if (!mc_tune_single(mesh, a, &probe))
            continue;
        status = mc_strategy_parse(probe.strategy, probe.collective, mesh, &strategy);
        for (int32_t i = 0; i < tuning->n_points && !status; i++) {
            const double expected =
                mc_strategy_seconds(&strategy, mesh, &plain, 0, tuning->point[i].bytes);
            const mc_factor_key_t key = {probe.dim, probe.collective, probe.collective,
                                         mc_algorithms[a].name};
            if (tuning->single[i][a] > 0 && expected > 0)
                mc_links_set_factor(links, &key, i, tuning->single[i][a] / expected);
        }
    }
    return status;
}

/* Factors of algorithms as second phase of a pair; `links` has those of single algorithms. */
static int add_pair_factors(const mc_mesh_t *mesh, const mc_tuning_t *tuning, mc_links_t *links)
{
    const mc_links_t own = *links;
    int status = MESHCOLL_OK;
    for (int32_t k = 0; k < tuning->n_pairs; k++) {
        const mc_tuned_pair_t *const pair = &tuning->pair[k];
        const mc_algorithm_t *const second = &mc_algorithms[pair->of.second];
        for (int32_t i = 0; i < tuning->n_points && !status; i++) {
            mc_tune_probe_t probe;
            double factor;
            mc_tune_pair_probe(mesh, &pair->of, pair->first[i], &probe);
            const mc_factor_key_t key = {probe.dim, probe.collective, second->collective,
                                         second->name};
            status = mc_tune_pair_factor(mesh, &own, &probe, tuning->point[i].bytes,
                                         pair->seconds[i], &factor);
            if (!status)
                mc_links_set_factor(links, &key, i, factor);
        }
    }
    return status;
}

int mc_tune_links(const mc_cluster_t *cluster, const mc_tuning_t *tuning, mc_links_t *links)
{
    mc_links_t found;
    const int status = mc_links_parse(NULL, &cluster->mesh, &found);
    if (status)
        return status;
    for (int32_t d = 0; d < cluster->mesh.ndims; d++) {
        const mc_seen_t *const seen = &tuning->dim[d];
        if (cluster->mesh.dim[d].extent == 1)
            continue;
        const int32_t ports = ports_of(seen);
        /* such that all lines together, which the model slows down by lines / ports, cost what
         * was measured */
        const double alpha = mc_tune_alpha(seen->alpha, seen->cpu, seen->row);
        const double gap = gap_of(seen, alpha);
        const double header = header_of(seen, gap);
        /* of the bytes alone */
        const double beta = seen->together * seen->piece / (seen->piece + header);
        found.dim[d] = (mc_link_t){.alpha = rounded(alpha),
                                   .gap = rounded(gap),
                                   .cpu = rounded(seen->cpu),
                                   .incast = floor(seen->incast * 100 + 0.5) / 100,
                                   .header = header,
                                   .window = seen->window,
                                   .pieces = seen->pieces,
                                   .beta = rounded(beta * ports / seen->lines),
                                   .gamma = rounded(tuning->gamma),
                                   .ports = ports,
                                   .wire = seen->own_wire ? MC_WIRE_OWN : found.dim[d].wire,
                                   .pulled = mc_tune_is_pulled(cluster, d)};
        add_points(tuning, &found.dim[d]);
    }
    const mc_mesh_t grid = mc_tune_grid(&cluster->mesh);
    int failed = mc_tune_keep_burst(&grid, tuning->burst, &found);
    if (!failed)
        failed = add_factors(&cluster->mesh, tuning, &found);
    if (!failed)
        failed = add_pair_factors(&cluster->mesh, tuning, &found);
    *links = found;
    return failed ? failed : mc_links_check(links, &cluster->mesh);
}
