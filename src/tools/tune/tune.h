/*
 * meshcoll tune: calibration (runtime/calibrate) by hand and for longer; then trials of strategies where a table of them
 * can be written; then a look at sizes that neither has seen: what is worse there than without is not written.
 */
#ifndef MC_TOOLS_TUNE_H
#define MC_TOOLS_TUNE_H

#include "compose/algorithms/registry.h"
#include "runtime/calibrate/fit.h"
#include "runtime/calibrate/series.h"
#include "runtime/create/tuned.h"
#include "runtime/handle/handle.h"
#include "tools/common/ranks.h"
#include "tools/common/tool.h"

/* Memory and failures (tune_memory.c) -------------------------------------------------------------
 *
 * The vectors lie in the host's memory, or in that of a GPU for each rank, where requests run in a stream: one choice
 * for the process. Failures end all ranks. */

/* Prints meshcoll_last_error() in one line on stderr and ends the process, of which the others hear, unless the status is
 * OK. */
void mc_tune_check(int status, const char *what);
/* Returns zeroed memory, never NULL. */
void *mc_tune_allocate(size_t bytes);

enum { MC_TUNE_GPU_TEXT = 128 };

/* Makes vectors lie in memory of a GPU from now on: the rank's of its machine, in the order of ranks. *gpu: "NVIDIA H100,
 * driver 580.65.06, CUDA 13.0". */
int mc_tune_take_gpu(const mc_place_t *place, int32_t rank, char gpu[MC_TUNE_GPU_TEXT]);
bool mc_tune_on_device(void);

/* Returns a zeroed vector, never NULL. */
void *mc_tune_vector(size_t bytes);
void mc_tune_vector_free(void *vector);

/* Runs a request so many times, one after the other, and waits. */
void mc_tune_run(meshcoll_request_t *request, int32_t times);

/* Batches of one request on all ranks (tune_batch.c) ---------------------------------------------- */

enum { MC_MOST_REPEATS = 1 << 20 };

/* A persistent request of vectors of so many bytes in all; `strategy`: NULL: what the library takes. */
meshcoll_request_t *mc_tune_request(meshcoll_t *mesh, meshcoll_collective_t collective,
                                    const char *strategy, size_t bytes, void *in, void *out);

/* The maximum over all ranks: the time of the slowest rank, and the same decision on every rank. */
double mc_tune_most(meshcoll_t *whole, double mine);
/* Seconds per run of `repeats` runs on the slowest rank. */
double mc_batch(meshcoll_t *whole, meshcoll_request_t *request, int32_t repeats);
/* The buffers that a rank writes before a run and reads after it; 0 bytes: none. */
typedef struct {
    void *in, *out;
    size_t in_bytes, out_bytes;
} mc_used_t;
/* Runs that start at an agreed time, on ranks of one machine, which share a clock. Each run is
 * timed separately until the last rank completes, at most MC_MOST_ANEW runs. Before each run,
 * outside the measured time, every rank reads its output and writes its input, as an application
 * does, but for memory of a GPU. Otherwise the data stays in the cache of the rank that moved it last. */
enum { MC_MOST_ANEW = 64 };
void mc_batch_anew(meshcoll_t *whole, meshcoll_request_t *request, const mc_used_t *used,
                   mc_series_t *series);
/* The number of runs for which a batch of operations of `once` seconds is long enough to time. */
int32_t mc_repeats_for(double once);

/* Measuring --------------------------------------------------------------------------------------- */

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
/* Takes the strategies that are the cheapest by these links. Returns NULL where the mesh is not a single line in shared
 * memory, which the other functions accept. */
mc_tune_table_t *mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole,
                                    const mc_links_t *links);
/* Runs one round of trials. */
void mc_tune_table_run(mc_tune_table_t *table);
/*
 * Leaves of each collective the strategy with the least mean over the sizes, and those that are faster than it at some
 * size by more than the error of the difference. Frees `table`.
 */
void mc_tune_table_close(mc_tune_table_t *table, mc_measured_t *measured);

/* Times what the library takes at sizes that the table has not, with the links and table of `tuning` and with `untuned`
 * links, in turns, for about `seconds`. Where tuned is slower, the collective's rows go, and the links are the untuned
 * ones. Collective. */
void mc_tune_prove(const mc_cluster_t *cluster, const mc_ranks_t *ranks, const mc_links_t *untuned,
                   double seconds, mc_tuning_t *tuning);

#endif
