/*
 * meshcoll tune: calibration (runtime/calibrate) by hand and for longer; then trials of strategies where a table of them
 * can be written; then a look at sizes that neither has seen: what is worse there than without is not written.
 */
#ifndef MC_TOOLS_TUNE_H
#define MC_TOOLS_TUNE_H

#include "compose/algorithms/registry.h"
#include "runtime/calibrate/fit.h"
#include "runtime/create/tuned.h"
#include "runtime/handle/handle.h"
#include "tools/common/ranks.h"
#include "tools/common/tool.h"
#include "tools/tune/tune_batch.h"
#include "tools/tune/tune_memory.h"

typedef struct {
    mc_sight_t sight;
    mc_links_t links;       /* that `sight` gives, or the untuned ones; `measured` is not set */
    mc_measured_t measured; /* empty unless the mesh is a single line in memory */
    int32_t compared;       /* cells in which tuned and untuned links differ */
    int32_t worse; /* of which tuned ones were slower: then the links are the untuned ones */
    double seconds;
} mc_tuning_t;

/* Collective over `ranks`, which form the cluster. Runs for about `seconds`. A failure ends this process, and with it the
 * job. */
void mc_tune_measure(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                     mc_tuning_t *tuning);

/* Creates the cluster's mesh on its transports with these links; a further one shares its connections. */
meshcoll_t *mc_tune_open(const mc_cluster_t *cluster, const mc_ranks_t *ranks,
                         const mc_links_t *links);

/* Measures strategies of a line in shared memory at several sizes of the vector. */
typedef struct mc_tune_table mc_tune_table_t;
/* Of the cheapest ones by these links. NULL where the mesh is not a single line in shared memory; the other functions
 * accept that. */
mc_tune_table_t *mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole,
                                    const mc_links_t *links);
/* One round. */
void mc_tune_table_run(mc_tune_table_t *table);
/*
 * Of each collective: the strategy with the least mean over the sizes, and those that are faster than it at some size by
 * more than the error of the difference. Frees `table`.
 */
void mc_tune_table_close(mc_tune_table_t *table, mc_measured_t *measured);

/* Times what the library takes at sizes that the table has not, with the links and table of `tuning` and with `untuned`
 * links, in turns, for about `seconds`. Where tuned is slower, the collective's rows go, and the links are the untuned
 * ones. Collective. */
void mc_tune_prove(const mc_cluster_t *cluster, const mc_ranks_t *ranks, const mc_links_t *untuned,
                   double seconds, mc_tuning_t *tuning);

#endif
