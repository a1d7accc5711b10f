#include "host_walk.h"

#include "gpu/kernel/block.h"
#include "gpu/kernel/sum.h"

uint32_t mc_host_yields;
_Thread_local uint32_t mc_host_naps, mc_host_stores;

#define REDUCTION(body, reduction, division) mc_device_combine_##reduction,
#define DIVISION(body, reduction, division)  mc_device_divide_##division,
static const mc_device_combine_t combine[] = {MC_DEVICE_BODIES(REDUCTION)};
static const mc_device_divide_t divide[] = {MC_DEVICE_BODIES(DIVISION)};

void mc_host_walk(mc_seat_t seat, const mc_device_call_t *call, uint32_t block,
                  mc_device_body_t body)
{
    mc_device_walk(seat, call, block, combine[body], divide[body]);
}

void mc_host_sum(mc_seat_t seat, const mc_device_sum_t *sum, mc_device_body_t body)
{
    mc_device_sum(seat, sum, combine[body], divide[body]);
}

void mc_host_reduce(mc_device_body_t body, void *to, const void *a, const void *b, uint64_t bytes)
{
    const mc_seat_t seat = {.thread = 0, .threads = 1};
    mc_device_reduce(seat, to, a, b, bytes, combine[body]);
}

void mc_host_divide(mc_device_body_t body, void *to, const void *from, uint64_t bytes, int32_t by,
                    const void *scalar)
{
    const mc_seat_t seat = {.thread = 0, .threads = 1};
    divide[body](seat, to, from, bytes, by, scalar);
}
