#include "gpu/mesh/near.h"

#include "compose/strategy/strategy.h"
#include "runtime/request/request.h"

#include <stdlib.h>

static int32_t planned_rank(const mc_gpu_planned_t *p, int32_t mesh_rank)
{
    return p->by_comm ? mc_comm_rank_of(&p->mesh->order, mesh_rank) : mesh_rank;
}

static int bind_rank(const mc_gpu_planned_t *p, int32_t rank, mc_plan_t **plan,
                     mc_binding_t *binding)
{
    const meshcoll_t *const h = p->mesh;
    const mc_operands_t operands = mc_operands_of(p->args);
    int status = mc_strategy_plan(p->strategy, &h->mesh, planned_rank(p, rank),
                                  planned_rank(p, p->args->root), plan);
    if (!status)
        status = mc_binding_init(binding, *plan);
    binding->block_of = p->by_comm ? NULL : h->order.comm_rank;
    return status ? status : mc_binding_measure(binding, &operands);
}

int mc_gpu_near_open(const mc_gpu_planned_t *p, mc_gpu_near_t *near)
{
    const mc_gpu_arena_t *const arena = &p->mesh->gpu->arena;
    const int32_t size = p->mesh->mesh.size, own = p->mesh->rank;
    const size_t room = (size_t)size;
    mc_gpu_near_t k = {.plan = calloc(room, sizeof *k.plan),
                       .binding = calloc(room, sizeof *k.binding),
                       .linked = calloc(room, room)};
    int32_t *const rank = calloc(room, sizeof *rank);
    int status = k.plan && k.binding && k.linked && rank ? MESHCOLL_OK
                                                         : mc_fail_memory("plans of other ranks");
    int32_t n = 0;
    for (int32_t r = 0; r < size && !status; r++)
        if (!mc_gpu_layout_is_far(&arena->layout, own, r)) {
            rank[n] = r;
            status = bind_rank(p, r, &k.plan[n], &k.binding[n]);
            n++;
        }
    for (int32_t i = 0; i < n && !status; i++)
        for (int32_t j = 0; j < n; j++)
            k.linked[i * n + j] = i != j && !mc_gpu_arena_by_host(arena, rank[i], rank[j]);
    const mc_direct_world_t world = {.n = n,
                                     .binding = k.binding,
                                     .linked = k.linked,
                                     .apart = p->args->collective == MESHCOLL_ALLTOALL &&
                                              p->args->in != p->args->out,
                                     .blocks = arena->layout.blocks};
    if (!status)
        status = mc_direct_find(&world, &k.direct);
    free(rank);
    if (status) {
        k.direct = (mc_direct_t){.world = {.n = size}};
        mc_gpu_near_close(&k);
        return status;
    }
    *near = k;
    return MESHCOLL_OK;
}

void mc_gpu_near_close(mc_gpu_near_t *k)
{
    const int32_t n = k->direct.world.n;
    mc_direct_free(&k->direct);
    for (int32_t i = 0; i < n && k->plan && k->binding; i++) {
        if (k->plan[i])
            mc_binding_free(&k->binding[i]);
        mc_plan_free(k->plan[i]);
    }
    free(k->linked);
    free(k->binding);
    free(k->plan);
    *k = (mc_gpu_near_t){.plan = NULL};
}
