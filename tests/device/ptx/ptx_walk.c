/* The kernels that nvcc compiled, translated by translate.py, in place of host_walk.c. */
#include "../host_walk.h"

#include "kernels.h"
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t mc_host_yields;
_Thread_local uint32_t mc_host_naps, mc_host_stores;

/* Nanoseconds, by what tests say of cores that are given away: 4 ms in those that look for one race, below 1 ms in
 * sweeps, which give cores away more rarely. */
enum { STAY = 100000000 };

typedef void (*kernel_t)(const void *param, ptx_thread_t *self);

#define DECLARE(name) void name(const void *param, ptx_thread_t *self);
PTX_KERNELS(DECLARE)
#define ROW(name) {#name, name},
static const struct {
    const char *name;
    kernel_t kernel;
} kernels[] = {PTX_KERNELS(ROW)};

#define NAME(body, reduction, division) #body,
static const char *const bodies[] = {MC_DEVICE_BODIES(NAME)};

static kernel_t find(const char *prefix, mc_device_body_t body)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", prefix, bodies[body]);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].kernel;
    fprintf(stderr, "the PTX has no %s\n", name);
    exit(2);
}

static void run(kernel_t kernel, const void *param, mc_thread_t thread, uint32_t block)
{
    mc_meet_t alone = {.any = 0};
    mc_meet_t *const meet = thread.meet ? thread.meet : &alone;
    const uint64_t stay = mc_host_yields ? STAY / (mc_host_yields * mc_host_yields) : 0;
    ptx_thread_t self = {
        .tid = thread.index, .ntid = thread.count, .ctaid = block, .nctaid = block + 1};
    self.block = ptx_join(&meet->ptx, thread.count, stay);
    kernel(param, &self);
    ptx_leave(&meet->ptx);
}

void mc_host_walk(mc_thread_t thread, const mc_device_call_t *call, uint32_t block,
                  mc_device_body_t body)
{
    const mc_device_launch_t launch = {.one = *call};
    run(find("mc_walk_", body), &launch, thread, block);
}

void mc_host_sum(mc_thread_t thread, const mc_device_sum_t *sum, mc_device_body_t body)
{
    run(find("mc_sum_", body), sum, thread, 0);
}

void mc_host_reduce(mc_device_body_t body, void *to, const void *a, const void *b, uint64_t bytes)
{
    const mc_device_sum_t sum = {.to = to, .a = a, .b = b, .bytes = bytes, .n = 1};
    mc_host_sum((mc_thread_t){.count = 1}, &sum, body);
}

void mc_host_divide(mc_device_body_t body, void *to, const void *from, uint64_t bytes, int32_t by,
                    const void *scalar)
{
    mc_device_sum_t sum = {.to = to, .a = from, .bytes = bytes, .n = 1, .by = by ? by : 1};
    if (scalar)
        memcpy(sum.scalar, scalar, sizeof sum.scalar);
    mc_host_sum((mc_thread_t){.count = 1}, &sum, body);
}
