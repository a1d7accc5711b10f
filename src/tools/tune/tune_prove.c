/* Cells that were held out: what the library takes there, with tuned links and without, timed in turns. */
#include "tools/tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sizes of the whole vector, none of which is in the table (tune_table.c). */
static const size_t sizes[] = {2 << 10, 32 << 10, 512 << 10};
enum { LEAST_TURNS = 5, MOST_TURNS = 40 };
/* Slower by more than what links rounded to steps may cost, and by more than twice the error of the difference. */
static const double much = 1.05;

typedef struct {
    meshcoll_t *mesh[2]; /* untuned, tuned */
    char *in, *out;
    double seconds; /* of a cell */
} proof_t;

/* Returns whether the tuned choice is slower. */
static bool is_worse(const proof_t *p, meshcoll_request_t *const request[2])
{
    static mc_series_t series[2];
    double used = 0;
    for (int which = 0; which < 2; which++) {
        series[which].n = 0;
        series[which].repeats = mc_repeats_for(mc_batch(p->mesh[0], request[which], 2));
    }
    for (int turn = 0; turn < LEAST_TURNS || (turn < MOST_TURNS && used < p->seconds); turn++)
        for (int which = 0; which < 2; which++) {
            const double once = mc_batch(p->mesh[0], request[which], series[which].repeats);
            mc_series_keep(&series[which], once);
            used += once * series[which].repeats;
        }
    const mc_estimate_t untuned = mc_series_estimate(&series[0]),
                        tuned = mc_series_estimate(&series[1]);
    return tuned.value > much * untuned.value &&
           tuned.value - untuned.value > 2 * hypot(tuned.error, untuned.error);
}

static bool is_same(meshcoll_request_t *const request[2])
{
    static char text[2][MC_STRATEGY_TEXT];
    for (int which = 0; which < 2; which++)
        snprintf(text[which], sizeof text[which], "%s", meshcoll_request_strategy(request[which]));
    return strcmp(text[0], text[1]) == 0;
}

static void drop_rows(mc_measured_t *measured, meshcoll_collective_t collective)
{
    int32_t n = 0;
    for (int32_t k = 0; k < measured->n_rows; k++)
        if (measured->row[k].collective != collective)
            measured->row[n++] = measured->row[k];
    measured->n_rows = n;
    if (n == 0)
        *measured = (mc_measured_t){0};
}

/* Without rows the links price the collective, and they are the untuned ones where anything was worse. */
static void prove_collective(const proof_t *p, meshcoll_collective_t collective,
                             mc_tuning_t *tuning)
{
    bool worse = false;
    for (size_t i = 0; i < MC_COUNT(sizes) && !worse; i++) {
        meshcoll_request_t *request[2];
        for (int which = 0; which < 2; which++)
            request[which] =
                mc_tune_request(p->mesh[which], collective, NULL, sizes[i], p->in, p->out);
        if (!is_same(request)) {
            tuning->compared++;
            /* one of so many is by chance: it is asked again */
            worse = is_worse(p, request) && is_worse(p, request);
            tuning->worse += worse;
        }
        meshcoll_free(request[0]);
        meshcoll_free(request[1]);
    }
    if (worse)
        drop_rows(&tuning->measured, collective);
}

void mc_tune_prove(const mc_cluster_t *cluster, const mc_ranks_t *ranks, const mc_links_t *untuned,
                   double seconds, mc_tuning_t *tuning)
{
    const size_t room = sizes[MC_COUNT(sizes) - 1] + (size_t)cluster->mesh.size * sizeof(float);
    mc_links_t tuned = tuning->links;
    tuned.measured = tuning->measured.n_rows ? &tuning->measured : NULL;
    const proof_t p = {
        .mesh = {mc_tune_open(cluster, ranks, untuned), mc_tune_open(cluster, ranks, &tuned)},
        .in = mc_tune_vector(room),
        .out = mc_tune_vector(room),
        .seconds = seconds / MESHCOLL_COLLECTIVES / MC_COUNT(sizes)};
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        prove_collective(&p, (meshcoll_collective_t)c, tuning);
    if (tuning->worse)
        tuning->links = *untuned;
    mc_tune_vector_free(p.in);
    mc_tune_vector_free(p.out);
    meshcoll_destroy(p.mesh[1]);
    meshcoll_destroy(p.mesh[0]);
}
