/* Fits alpha and cpu of all dimensions to the times of small collectives over the whole mesh, and
 * derives bursts. */
#ifndef MC_TOOLS_TUNE_FIT_H
#define MC_TOOLS_TUNE_FIT_H

#include "mesh/link/link.h"
#include "runtime/calibrate/series.h"

enum { MC_TUNE_EACH = 3, MC_TUNE_SHAPES = MC_TUNE_EACH * MC_MAX_DIMS, MC_TUNE_SHAPE = 512 };

/* Strategy `i` to be timed, an allreduce; false past the last one. */
bool mc_tune_shape(const mc_mesh_t *mesh, int32_t i, char text[MC_TUNE_SHAPE]);

/* The alpha of a link from the fitted alpha, the cost of a message on its rank, and the seconds
 * per message of a sequence. */
double mc_tune_alpha(double fitted, double cpu, double row);

/* An allreduce by rings along all dimensions, for MC_TUNE_BURST bytes; false on one rank. */
enum { MC_TUNE_BURST = 32 << 10 };
bool mc_tune_burst(const mc_mesh_t *mesh, char text[MC_TUNE_SHAPE]);
/* Sets the burst of the network's port (that of the outermost link, or of the inner link whose wire
 * that link shares) from the seconds that these bytes take after a pause; none where twice their
 * error is more than what it saves. */
int mc_tune_keep_burst(const mc_mesh_t *mesh, const mc_estimate_t *shot, mc_links_t *links);

/* `seconds[i]`: the time of strategy i in one segment and with negligible bytes. Least squares
 * of the relative residuals. No result is negative; dimensions of extent 1 have 0. */
int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS]);

#endif
