/* Tells who asks on this machine (meshcoll status) what the job waits for. */
#ifndef MC_STATUS_SERVE_H
#define MC_STATUS_SERVE_H

#include "runtime/handle/handle.h"

/* Opens the socket of a job (name.h), which its monitor watches; to call before that starts. Without
 * a socket nobody is told: that is no error of the mesh. */
void mc_serve_open(mc_job_t *job);
/* Nobody is told from here on; to call before the monitor is closed. */
void mc_serve_stop(mc_job_t *job);
/* To call when the monitor is closed. */
void mc_serve_close(mc_job_t *job);

#endif
