/*
 * The memory whose vectors are measured: the host's, or that of a GPU for each rank, where requests
 * run in a stream. One choice for the process. And failures, which end all ranks.
 */
#ifndef MC_TOOLS_TUNE_MEMORY_H
#define MC_TOOLS_TUNE_MEMORY_H

#include "base/base.h"
#include "runtime/place/boxes.h"

#include <meshcoll/meshcoll.h>

/* Prints meshcoll_last_error() in one line on stderr and ends the process, of which the others hear. */
_Noreturn void mc_tune_die(const char *what);
/* The same for a status other than OK. */
void mc_tune_check(int status, const char *what);
/* Zeroed; never NULL. */
void *mc_tune_allocate(size_t bytes);

enum { MC_TUNE_GPU_TEXT = 128 };

/* From now on memory of a GPU: the rank's of its machine, in the order of ranks. *gpu: "NVIDIA H100,
 * driver 580.65.06, CUDA 13.0". */
int mc_tune_take_gpu(const mc_place_t *place, int32_t rank, char gpu[MC_TUNE_GPU_TEXT]);
bool mc_tune_on_device(void);

/* Zeroed; never NULL. */
void *mc_tune_vector(size_t bytes);
void mc_tune_vector_free(void *vector);

/* Runs a request so many times, one after the other, and waits. */
void mc_tune_run(meshcoll_request_t *request, int32_t times);

#endif
