/* Calibration, trials and proof, one after the other, each for a part of the time. */
#include "runtime/calibrate/measure.h"
#include "tools/tune/tune.h"

/* Creation calibrates for half as long where nobody has tuned (runtime/create/calibrated.c), and rounds; twice the time
 * depends less on luck. */
static const double untuned_seconds = 0.2;
/* These shares of the time go to the links, if there are no strategies to try or if there are, and to the proof. */
static const double links_share = 0.6, few_share = 0.15, proof_share = 0.3;

static int run(meshcoll_request_t *request, int32_t times)
{
    mc_tune_run(request, times);
    return MESHCOLL_OK;
}

static mc_vectors_t vectors(void)
{
    return (mc_vectors_t){mc_tune_vector, mc_tune_vector_free, run, mc_tune_on_device()};
}

/* A kernel writes to its peer's memory. */
static void push(mc_links_t *links)
{
    for (int32_t d = 0; d < links->ndims && mc_tune_on_device(); d++)
        links->dim[d].pulled = false;
}

static mc_links_t links_of(meshcoll_t *whole, double seconds, const mc_vectors_t *memory,
                           mc_sight_t *sight)
{
    mc_links_t links = whole->links;
    mc_tune_check(mc_measure(whole, seconds, memory, false, sight), "the links");
    mc_sight_links(sight, false, &links);
    links.measured = NULL;
    return links;
}

/* Where so short a time does not suffice, creation calibrates nothing, and there is nothing to compare with but what
 * twice the time finds, and so on. */
static mc_links_t untuned_links(meshcoll_t *whole, double most, mc_sight_t *sight)
{
    mc_links_t links;
    double seconds = untuned_seconds;
    do {
        links = links_of(whole, seconds, &mc_host_vectors, sight);
        seconds *= 2;
    } while (!mc_sight_is_whole(sight, &whole->mesh) && seconds < most);
    return links;
}

/* Runs as many rounds as fit, at least one. */
static void try_strategies(mc_tune_table_t *table, meshcoll_t *whole, double until,
                           mc_measured_t *measured)
{
    double longest = 0;
    for (double now = mc_tune_most(whole, mc_now()), before = now;
         table && (longest == 0 || now + longest < until); before = now) {
        mc_tune_table_run(table);
        now = mc_tune_most(whole, mc_now());
        longest = now - before > longest ? now - before : longest;
    }
    mc_tune_table_close(table, measured);
}

void mc_tune_measure(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                     mc_tuning_t *tuning)
{
    static mc_sight_t brief;
    const mc_vectors_t own = vectors();
    const double began = mc_now();
    meshcoll_t *const whole = mc_tune_open(cluster, ranks, NULL);
    const mc_links_t untuned = untuned_links(whole, seconds * few_share, &brief);
    mc_tune_table_t *const table = mc_tune_table_open(cluster, whole, &untuned);
    tuning->links =
        links_of(whole, seconds * (table ? few_share : links_share), &own, &tuning->sight);
    push(&tuning->links);
    /* clocks of machines differ, but a table's ranks share one */
    try_strategies(table, whole, began + seconds * (1 - proof_share), &tuning->measured);
    mc_tune_prove(cluster, ranks, &untuned, seconds * proof_share, tuning);
    meshcoll_destroy(whole);
    tuning->seconds = mc_now() - began;
}
