/*
 * The plans and bindings of the ranks on this machine, which each of them makes for a call whose OUT
 * is registered: they say which messages go straight there, and where to.
 */
#ifndef MC_GPU_NEAR_H
#define MC_GPU_NEAR_H

#include "gpu/mesh/gpu.h"
#include "gpu/program/direct.h"

typedef struct {
    const meshcoll_t *mesh;
    const meshcoll_args_t *args; /* without tables of counts */
    const mc_strategy_t *strategy;
    bool by_comm; /* plans are over the communicator's ranks */
} mc_gpu_planned_t;

typedef struct {
    mc_plan_t **plan;
    mc_binding_t *binding;
    unsigned char *linked;
    mc_direct_t direct;
} mc_gpu_near_t;

int mc_gpu_near_open(const mc_gpu_planned_t *planned, mc_gpu_near_t *near);
void mc_gpu_near_close(mc_gpu_near_t *near);

#endif
