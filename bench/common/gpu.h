/*
 * A GPU for a benchmark: libcuda, opened at run time as the library opens it (gpu/cuda/driver.h), so that
 * nothing of CUDA is linked; a context, a stream, and two events that time what lies between them.
 */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "common/gpu_functions.h"
#include "gpu/cuda/driver.h"

enum { GPU_NAME = 96 };

typedef struct {
    const mc_cuda_t *cuda; /* what the library calls, too */
#define GPU_MEMBER(member, symbol, parameters) mc_cu_result_t(*member) parameters;
    GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
    char name[GPU_NAME];
    mc_cu_stream_t stream;
    mc_cu_event_t event[2];
} gpu_t;

/* Takes the GPU of the process that is number `seat` of `seats` on its machine, and makes its context current.
 * ERR_UNSUPPORTED or ERR_DEVICE with a sentence: no driver, no kernels, fewer GPUs than seats, a failure. */
int gpu_open(int seat, int seats, gpu_t *gpu);
void gpu_close(gpu_t *gpu);

/* Enqueues event 0 or 1. */
int gpu_mark(const gpu_t *gpu, int which);
/* Waits for all that the stream has. */
int gpu_wait(const gpu_t *gpu);
/* Seconds from event 0 to event 1, when both are done. */
int gpu_elapsed(const gpu_t *gpu, double *seconds);

#endif
