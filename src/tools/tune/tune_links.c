/* Derives alpha, gap, beta, gamma and ports from the measurements. */
#include "tools/tune/tune.h"

#include "compose/planner/planner.h"
#include "tools/tune/tune_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double mc_tune_rounded(double seconds)
{
    char text[32];
    double unit = 1;
    while (unit < 1e12 && seconds * unit < 1)
        unit *= 1e3;
    mc_number_print(text, sizeof text, "%.3g", seconds * unit);
    return mc_number_read(text, NULL) / unit;
}

static double sure(const mc_estimate_t *estimate)
{
    return mc_estimate_is_sure(estimate) ? estimate->value : 0;
}

/* The time of a message of a sequence without the time of the cores for the messages of all
 * ranks. At most 0.99 alpha: one more message of a sequence costs no more than a round, which
 * more collectives measure, and a gap equal to alpha means that it was not measured (link.h). */
double mc_tune_gap(const mc_seen_t *seen, double alpha)
{
    const double gap = seen->row - sure(&seen->cpu) * seen->ranks, most = 0.99 * alpha;
    if (gap <= 0)
        return 0;
    return gap < most ? gap : most;
}

/* The number of lines that run concurrently at the speed of one. */
static int32_t ports_of(const mc_seen_t *seen)
{
    const double ports = round(seen->lines * seen->alone / seen->together);
    if (!(ports >= 1))
        return 1;
    return ports < seen->lines ? (int32_t)ports : seen->lines;
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
        const double alpha = mc_tune_alpha(seen->alpha, sure(&seen->cpu), seen->row);
        const int32_t ports = ports_of(seen);
        /* such that all lines together, which the model slows down by lines / ports, cost what
         * was measured */
        const double beta = seen->together * ports / seen->lines;
        found.dim[d] = (mc_link_t){.alpha = mc_tune_rounded(alpha),
                                   .gap = mc_tune_rounded(mc_tune_gap(seen, alpha)),
                                   .beta = mc_tune_rounded(beta),
                                   .gamma = mc_tune_rounded(tuning->gamma),
                                   .ports = ports,
                                   .wire = seen->own_wire ? MC_WIRE_OWN : found.dim[d].wire,
                                   /* a kernel writes to its peer's memory */
                                   .pulled = mc_tune_is_pulled(cluster, d) && !mc_tune_on_device()};
        found.correction[d] = (mc_correction_t){.window = floor(seen->window / ports),
                                                .cpu = mc_tune_rounded(sure(&seen->cpu))};
    }
    found.measured = &tuning->measured;
    const mc_mesh_t grid = mc_tune_grid(&cluster->mesh);
    const int failed = mc_tune_keep_burst(&grid, &tuning->burst, &found);
    *links = found;
    return failed ? failed : mc_links_check(links, &cluster->mesh);
}

static void print_one(const char *dim, const char *what, const mc_estimate_t *e, double unit,
                      const char *unit_name, mc_text_t *text)
{
    if (e->n > 0 && (e->value != 0 || e->error != 0))
        mc_text_add(text, "%s%s %s %.3g ± %.2g %s%s", text->length ? "; " : "", dim, what,
                    e->value * unit, e->error * unit, unit_name,
                    mc_estimate_is_sure(e) ? "" : ", not written");
}

void mc_tune_print_corrections(const mc_mesh_t *mesh, const mc_tuning_t *tuning, mc_text_t *text)
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const char *const name = mesh->dim[d].name;
        print_one(name, "cpu", &tuning->dim[d].cpu, 1e9, "ns", text);
    }
}
