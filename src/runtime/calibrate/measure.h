/*
 * Measures the links of a mesh: at creation for a fraction of a second, by `meshcoll tune` for longer. Every line of a
 * dimension runs ring allgathers, in which every rank sends and receives all the time: at the same time in all boxes, as
 * in collectives. Ranks without a line block in a barrier meanwhile. Series alternate, round by round, so that other load
 * affects all of them equally.
 */
#ifndef MC_CALIBRATE_MEASURE_H
#define MC_CALIBRATE_MEASURE_H

#include "runtime/calibrate/fit.h"
#include "runtime/handle/handle.h"

/* Whose memory the vectors lie in. */
typedef struct {
    void *(*vector)(size_t bytes); /* zeroed; NULL: there is none */
    void (*free)(void *vector);
    int (*run)(meshcoll_request_t *request, int32_t times); /* one after the other, and waits */
    bool queued; /* the runs of a GPU are, and so are timed together */
} mc_vectors_t;
extern const mc_vectors_t mc_host_vectors;

/* Collective over the ranks of the mesh, on which nothing else runs: its numbers of calls do not move on. Ends after
 * about `seconds`, and may leave out dimensions for which they do not suffice. An error is the job's.
 * `fixes`: memory whose ranks share cores is left out, for links of its own (mc_seen_t). */
int mc_measure(meshcoll_t *mesh, double seconds, const mc_vectors_t *vectors, bool fixes,
               mc_sight_t *sight);

#endif
