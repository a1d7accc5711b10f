/*
 * The kernels: one per body (gpu/program/bodies.h). A launch for one rank has a grid of its blocks; one
 * for several ranks, of which only a test has need, as many for each of them. All blocks must run
 * at once, because they wait for each other's peers. Those of the stream executor, mc_sum_…, wait
 * for nothing.
 */
#include "gpu/kernel/on_cuda.h"

#include "gpu/program/bodies.h"
#include "gpu/kernel/block.h"
#include "gpu/kernel/sum.h"

#define KERNEL(body, reduction, division) \
    extern "C" __global__ void __launch_bounds__(MC_DEVICE_THREADS, 1) \
        mc_walk_##body(const __grid_constant__ mc_device_launch_t launch) \
    { \
        __shared__ mc_device_table_t table; \
        const uint32_t blocks = launch.one.blocks; \
        mc_thread_t thread; \
        thread.table = &table; \
        thread.index = threadIdx.x; \
        thread.count = blockDim.x; \
        mc_device_walk(thread, launch.many ? &launch.many[blockIdx.x / blocks] : &launch.one, \
                       blockIdx.x % blocks, mc_device_combine_##reduction, \
                       mc_device_divide_##division); \
    }

MC_DEVICE_BODIES(KERNEL)

#define SUM_KERNEL(body, reduction, division) \
    extern "C" __global__ void __launch_bounds__(MC_DEVICE_THREADS, 1) \
        mc_sum_##body(const __grid_constant__ mc_device_sum_t sum) \
    { \
        mc_thread_t thread; \
        thread.index = blockIdx.x * blockDim.x + threadIdx.x; \
        thread.count = gridDim.x * blockDim.x; \
        mc_device_sum(thread, &sum, mc_device_combine_##reduction, mc_device_divide_##division); \
    }

MC_DEVICE_SUM_BODIES(SUM_KERNEL)
