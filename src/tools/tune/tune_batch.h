/* Batches of one request on all ranks, timed, and series of them; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_BATCH_H
#define MC_TOOLS_TUNE_BATCH_H

#include "mesh/mesh.h"

#include <meshcoll/meshcoll.h>

enum { MC_MOST_REPEATS = 1 << 20, MC_MOST_ROUNDS = 1000 };

typedef struct {
    int32_t repeats; /* in one batch */
    double time[MC_MOST_ROUNDS];
    int32_t n;
} mc_series_t;

/* A status other than OK is told in one line, and ends all ranks. */
void mc_tune_check(int status, const char *what);
/* Zeroed; never NULL. */
void *mc_tune_allocate(size_t bytes);
/* The largest of all ranks' numbers: the slowest one's time, and the same decision everywhere. */
double mc_tune_most(meshcoll_t *whole, double mine);
/* Seconds of one of `repeats` runs, the slowest rank's; a rank without a request waits asleep. */
double mc_batch(meshcoll_t *whole, meshcoll_request_t *request, int32_t repeats);
/* What a rank writes before a run and reads after it; of 0 bytes: nothing. */
typedef struct {
    void *in, *out;
    size_t in_bytes, out_bytes;
} mc_used_t;
/* Runs that begin together, of ranks on one machine, whose clocks are one: from a moment on which they agreed until the last is
 * done. Each is kept by itself, MC_MOST_ANEW at most. Before each, out of the time, every rank reads its output
 * and writes its input, as a program does: else they stay in the cache of who moved them the last time. */
enum { MC_MOST_ANEW = 64 };
void mc_batch_anew(meshcoll_t *whole, meshcoll_request_t *request, const mc_used_t *used,
                   mc_series_t *series);
/* How often, so that a batch of what takes `once` seconds takes long enough to be timed. */
int32_t mc_repeats_for(double once);
void mc_series_keep(mc_series_t *s, double time);
/* 0 of none. */
double mc_series_median(mc_series_t *s);

#endif
