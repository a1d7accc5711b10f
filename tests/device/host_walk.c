#include "host_walk.h"

#include "gpu/kernel/block.h"
#include "gpu/kernel/sum.h"

uint32_t mc_host_yields;
_Thread_local uint32_t mc_host_naps, mc_host_stores;

#define REDUCTION(body, reduction, division) mc_device_combine_##reduction,
#define DIVISION(body, reduction, division)  mc_device_divide_##division,
static const mc_device_combine_t combine[] = {MC_DEVICE_BODIES(REDUCTION)};
static const mc_device_divide_t divide[] = {MC_DEVICE_BODIES(DIVISION)};

void mc_host_walk(mc_thread_t thread, const mc_device_call_t *call, uint32_t block,
                  mc_device_body_t body)
{
    mc_device_walk(thread, call, block, combine[body], divide[body]);
}

void mc_host_sum(mc_thread_t thread, const mc_device_sum_t *sum, mc_device_body_t body)
{
    mc_device_sum(thread, sum, combine[body], divide[body]);
}

void mc_host_reduce(mc_device_body_t body, void *to, const void *a, const void *b, uint64_t bytes)
{
    const mc_thread_t thread = {.index = 0, .count = 1};
    mc_device_reduce(thread, to, a, b, bytes, combine[body]);
}

void mc_host_divide(mc_device_body_t body, void *to, const void *from, uint64_t bytes, int32_t by,
                    const void *scalar)
{
    const mc_thread_t thread = {.index = 0, .count = 1};
    divide[body](thread, to, from, bytes, by, scalar);
}
