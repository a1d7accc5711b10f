/* Times batches of one request on all ranks and stores series of times; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_BATCH_H
#define MC_TOOLS_TUNE_BATCH_H

#include "mesh/mesh.h"
#include "runtime/calibrate/series.h"

#include <meshcoll/meshcoll.h>

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

#endif
