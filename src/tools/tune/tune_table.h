/* Measures strategies of a line in shared memory at several sizes of the vector; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_TABLE_H
#define MC_TOOLS_TUNE_TABLE_H

#include "tools/tune/tune.h"

typedef struct mc_tune_table mc_tune_table_t;

/* Sets *table to NULL where the mesh is not a single line in shared memory; the other functions
 * accept that. */
int mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_table_t **table);
/* One round. */
void mc_tune_table_run(mc_tune_table_t *table);
/*
 * Of each collective: the strategy with the least mean over the sizes, and those that are faster
 * than it at some size by more than the error of the difference. Frees `table`.
 */
int mc_tune_table_close(mc_tune_table_t *table, mc_measured_t *measured);

#endif
