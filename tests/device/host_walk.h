/* The text of the kernels, compiled for the host: what blocks of any body do. */
#ifndef MC_TEST_HOST_WALK_H
#define MC_TEST_HOST_WALK_H

#include "gpu/program/bodies.h"
#include "gpu/program/format.h"
#include "on_host.h"

/* One thread of a block: mc_device_walk with a body's reduction and division. */
void mc_host_walk(mc_thread_t thread, const mc_device_call_t *call, uint32_t block,
                  mc_device_body_t body);

/* One thread of a grid: mc_device_sum with them. */
void mc_host_sum(mc_thread_t thread, const mc_device_sum_t *sum, mc_device_body_t body);

/* These alone, by one thread. */
void mc_host_reduce(mc_device_body_t body, void *to, const void *a, const void *b, uint64_t bytes);
void mc_host_divide(mc_device_body_t body, void *to, const void *from, uint64_t bytes, int32_t by,
                    const void *scalar);

#endif
