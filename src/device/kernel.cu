/*
 * The kernels: one per body (device/bodies.h). A grid is `blocks` blocks for each of `calls`, one
 * call per rank; a launch for one rank has one call. All blocks must run at once, because they
 * wait for each other's peers.
 */
#include "device/on_cuda.h"

#include "device/bodies.h"
#include "device/block.h"
#include "device/sum.h"

#define KERNEL(body, reduction, division) \
    extern "C" __global__ void __launch_bounds__(MC_DEVICE_THREADS, 1) \
        mc_walk_##body(const mc_device_call_t *calls, uint32_t blocks) \
    { \
        mc_seat_t seat; \
        seat.thread = threadIdx.x; \
        seat.threads = blockDim.x; \
        mc_device_walk(seat, &calls[blockIdx.x / blocks], blockIdx.x % blocks, \
                       mc_device_reduce_##reduction, mc_device_divide_##division); \
    }

MC_DEVICE_BODIES(KERNEL)
