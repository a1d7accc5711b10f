/* Measures a line in shared memory at several sizes of the vector; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_POINTS_H
#define MC_TOOLS_TUNE_POINTS_H

#include "tools/tune/tune.h"

typedef struct mc_tune_points mc_tune_points_t;

/* Sets *points to NULL where the mesh is not a single line in shared memory; the other functions
 * accept that. */
int mc_tune_points_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_points_t **points);
/* One round. */
void mc_tune_points_run(mc_tune_points_t *points);
/* Stores the medians of all rounds as the points of the tuning; frees `points`. */
int mc_tune_points_close(mc_tune_points_t *points, mc_tuning_t *tuning);

#endif
