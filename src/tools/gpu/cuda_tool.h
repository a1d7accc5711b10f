/* The CUDA driver for commands, which may initialise it as the library may not. */
#ifndef MC_TOOLS_CUDA_TOOL_H
#define MC_TOOLS_CUDA_TOOL_H

#include "gpu/cuda/driver.h"

typedef struct {
#define MC_CUDA_TOOL_MEMBER(member, symbol, parameters) mc_cu_result_t(*member) parameters;
    MC_CUDA_TOOL_FUNCTIONS(MC_CUDA_TOOL_MEMBER)
#undef MC_CUDA_TOOL_MEMBER
} mc_cuda_tool_t;

/* Opens libcuda and initialises it, once in a process; not for several threads. ERR_UNSUPPORTED:
 * there is no driver, or one that is too old; ERR_DEVICE: it finds no GPU, or fails. */
int mc_cuda_init(const mc_cuda_tool_t **tool);

#endif
