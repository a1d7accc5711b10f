/* Many requests in flight at once. */
#ifndef BENCH_FLIGHT_H
#define BENCH_FLIGHT_H

#include <meshcoll/mpi.h>

/* For each number of `list` ("16,16000"): begins so many allreduces of 8 bytes, then messages to the next rank and
 * from the one before, and waits for all. Rank 0 prints medians of the slowest rank: us of a begin and until the
 * end, for each request. Collective. */
int flight_measure(meshcoll_t *mesh, const char *list, int turns);

#endif
