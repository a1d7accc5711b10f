/*
 * Times of strategies, measured by `meshcoll tune` on a mesh that is one line in memory. Caches,
 * pages and protocols decide there, which no closed form knows. A collective with rows in the table
 * takes the fastest of them; one without rows is priced by the model.
 */
#ifndef MC_MESH_MEASURED_H
#define MC_MESH_MEASURED_H

#include "base/base.h"

#include <meshcoll/meshcoll.h>

enum { MC_MEASURED_SIZES = 8, MC_MEASURED_ROWS = 64, MC_MEASURED_TEXT = 112 };

typedef struct {
    meshcoll_collective_t collective;
    char strategy[MC_MEASURED_TEXT];   /* as strategies are written, without segments */
    double seconds[MC_MEASURED_SIZES]; /* at each of the table's sizes */
} mc_measured_row_t;

typedef struct {
    int32_t n_sizes, n_rows;         /* both 0: nothing was measured */
    double bytes[MC_MEASURED_SIZES]; /* of the whole vector, ascending */
    mc_measured_row_t row[MC_MEASURED_ROWS];
} mc_measured_t;

/* Are there rows of this collective? */
bool mc_measured_has(const mc_measured_t *table, meshcoll_collective_t collective);
/* Seconds of a row for a vector of `bytes` bytes: interpolated between two sizes; as long as at the
 * least size below it, and at the rate of the greatest size beyond that. */
double mc_measured_seconds(const mc_measured_t *table, const mc_measured_row_t *row, double bytes);
/* Appends a row of n_sizes times. ERR_INVALID_ARG without room for it. */
int mc_measured_add(mc_measured_t *table, meshcoll_collective_t collective, const char *strategy,
                    const double *seconds);
/* Do the sizes ascend, and has every row a collective, a strategy and positive times? */
int mc_measured_check(const mc_measured_t *table);

#endif
