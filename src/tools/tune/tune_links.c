/* What the series of times say of each dimension, and the links that follow. */
#include "tools/tune/tune_tuner.h"

#include "compose/planner/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seen ------------------------------------------------------------------------------------------- */

/* On a wire a message is sent in pieces that flow control can delay, as in pipelines and
 * exchanges. Longer pieces put more bytes into the TCP buffers of a box than queues on the path
 * hold (docs/lab-notes/network.md). */
int32_t mc_tuner_pieces(const dim_t *d, size_t bytes)
{
    const size_t piece = d->line->share.window
                             ? mc_pacing_message(d->line->share.window, d->line->share.concurrent)
                             : RARE_BYTES;
    const size_t pieces = (bytes + piece - 1) / piece;
    return pieces < MC_MAX_SEGMENTS ? (int32_t)pieces : MC_MAX_SEGMENTS;
}

/* Seconds per byte of the p-1 messages of a ring. On a wire only the large ones count: where
 * many ranks share a port, packets of the quarter are lost at the start, which a slope would
 * subtract. */
static double slope(const dim_t *d, double quarter, double large)
{
    const double messages = d->extent - 1, bytes = (double)d->bytes;
    if (large > quarter && d->pulled)
        return (large - quarter) / messages / (bytes * 3 / 4);
    return large / messages / bytes; /* or the difference is noise */
}

/* Seconds per message, of those that a ring sends after its first segment. */
static double in_row(const dim_t *d, double small, double row)
{
    const double messages = (d->extent - 1) * (ROW_MESSAGES - 1);
    /* the difference is noise: use the upper bound */
    return (row > small ? row - small : row) / messages;
}

/* The limit lies halfway between the longer time and the sum: both may share a core or a switch. */
static bool has_own_wire(const tuner_t *t, dim_t *d)
{
    bool any = false; /* the innermost one has its own wire where another one does */
    for (int32_t i = 0; i < t->n_dims && d == t->inner; i++)
        any = any || (t->dim[i] != d && has_own_wire(t, t->dim[i]));
    if (d->both.n == 0)
        return any;
    const double large = mc_series_median(&d->series[LARGE_ALL]);
    const double inner = mc_series_median(&t->inner->series[LARGE_ALL]);
    return mc_series_median(&d->both) < fmax(large, inner) + fmin(large, inner) / 2;
}

mc_seen_t mc_tuner_seen(const tuner_t *t, dim_t *d)
{
    double time[SERIES];
    for (int s = 0; s < SERIES; s++)
        time[s] = mc_series_median(&d->series[s]);
    mc_seen_t seen = {.ranks = meshcoll_size(t->whole),
                      .lines = d->lines,
                      .row = in_row(d, time[SMALL_ALL], time[ROW_ALL]),
                      .together = slope(d, time[QUARTER_ALL], time[LARGE_ALL]),
                      .window = d->pulled ? 0 : (double)d->line->share.window,
                      .own_wire = has_own_wire(t, d),
                      .bytes = d->bytes};
    seen.alone = d->lines > 1 ? slope(d, time[QUARTER_ALONE], time[LARGE_ALONE]) : seen.together;
    return seen;
}

/* Fits the times of round `i`. */
static void fit_round(const tuner_t *t, const mc_mesh_t *mesh, int32_t i,
                      mc_series_t cpu[MC_MAX_DIMS])
{
    double seconds[MC_TUNE_SHAPES] = {0}, alpha[MC_MAX_DIMS], mine[MC_MAX_DIMS];
    for (int32_t k = 0; k < t->n_shapes; k++)
        seconds[k] = t->shape[k].series.time[i];
    mc_tune_check(mc_tune_fit(mesh, seconds, alpha, mine), "small messages");
    for (int32_t d = 0; d < mesh->ndims; d++)
        mc_series_keep(&cpu[d], mine[d]);
}

/* alpha fits the medians; cpu is the median of the rounds, whose differences give its error. */
static void see_small(const tuner_t *t, const mc_mesh_t *mesh, mc_tuning_t *tuning)
{
    double seconds[MC_TUNE_SHAPES] = {0}, alpha[MC_MAX_DIMS], cpu[MC_MAX_DIMS];
    mc_series_t *const by_round = mc_tune_allocate(MC_MAX_DIMS * sizeof *by_round);
    for (int32_t i = 0; i < t->n_shapes; i++)
        seconds[i] = mc_series_median(&t->shape[i].series);
    mc_tune_check(mc_tune_fit(mesh, seconds, alpha, cpu), "small messages");
    for (int32_t i = 0; i < t->shape[0].series.n; i++)
        fit_round(t, mesh, i, by_round);
    for (int32_t d = 0; d < mesh->ndims; d++) {
        tuning->dim[d].alpha = alpha[d];
        tuning->dim[d].cpu = mc_series_estimate(&by_round[d]);
        tuning->dim[d].cpu.value = cpu[d];
    }
    free(by_round);
}

/* The difference of the bursts of both sizes; its number is that of rounds, not of shots. */
static mc_estimate_t burst(const tuner_t *t)
{
    const mc_estimate_t few = mc_series_estimate(&t->burst[0].series),
                        many = mc_series_estimate(&t->burst[1].series);
    return (mc_estimate_t){many.value - few.value, hypot(few.error, many.error),
                           many.n / BURST_SHOTS};
}

void mc_tuner_see_messages(const tuner_t *t, const mc_mesh_t *mesh, mc_tuning_t *tuning)
{
    see_small(t, mesh, tuning);
    tuning->burst = burst(t);
}

/* Links ------------------------------------------------------------------------------------------ */

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
static double gap_of(const mc_seen_t *seen, double alpha)
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
                                   .gap = mc_tune_rounded(gap_of(seen, alpha)),
                                   .beta = mc_tune_rounded(beta),
                                   .gamma = mc_tune_rounded(tuning->gamma),
                                   .ports = ports,
                                   .wire = seen->own_wire ? MC_WIRE_OWN : found.dim[d].wire,
                                   /* a kernel writes to its peer's memory */
                                   .pulled = mc_tune_is_pulled(cluster, d) && !mc_tune_on_device(),
                                   .streams = seen->window > 0};
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
