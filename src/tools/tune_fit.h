/* Alpha and cpu of all dimensions from the times of small collectives over the whole mesh. */
#ifndef MC_TOOLS_TUNE_FIT_H
#define MC_TOOLS_TUNE_FIT_H

#include "mesh/mesh.h"

enum { MC_TUNE_EACH = 3, MC_TUNE_SHAPES = MC_TUNE_EACH * MC_MAX_DIMS, MC_TUNE_SHAPE = 512 };

/* Strategy `i` of those to be timed, an allreduce; false where there are no more. */
bool mc_tune_shape(const mc_mesh_t *mesh, int32_t i, char text[MC_TUNE_SHAPE]);

/* An allreduce by rings along all dimensions, for MC_TUNE_BURST bytes; false on one rank. */
enum { MC_TUNE_BURST = 32 << 10 };
bool mc_tune_burst(const mc_mesh_t *mesh, char text[MC_TUNE_SHAPE]);

/* `seconds[i]` of strategy i, in one segment and with next to no bytes. Least squares of what they are
 * off by, relative to each; no number is negative, and those of dimensions 1 long are 0. */
int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS]);

#endif
