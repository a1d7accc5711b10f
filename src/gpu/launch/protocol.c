#include "gpu/launch/protocol.h"

#include "gpu/program/program.h"

#include <math.h>

/* Seconds of a message besides its bytes, and bytes on the wire for each of its bytes, without flags in the
 * data and with them. Seconds: steps of a ring over NVLink, of the protocols Simple and LL, in NCCL 2.30's own
 * table for sm_90 (docs/gpu.md); no card was measured here. */
static const struct {
    double step, wire;
} prices[2] = {{3.4e-6, 1}, {0.6e-6, 2}};

void mc_gpu_volume_add(mc_gpu_volume_t *v, const mc_plan_t *plan)
{
    const uint32_t widest = mc_device_widest(plan);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (!mc_op_sends((mc_op_t)s->op))
            continue;
        v->messages++;
        v->chunks += (uint64_t)s->run * s->nrun;
    }
    v->widest = widest > v->widest ? widest : v->widest;
}

double mc_gpu_protocol_seconds(const mc_gpu_volume_t *v, const mc_gpu_layout_t *l, double chunk,
                               double beta, bool ll)
{
    uint32_t piece;
    if (v->widest == 0 ||
        !mc_device_piece_bytes(v->widest, ll ? l->ll_bytes : l->slot_bytes, ll, &piece))
        return INFINITY;
    const double ranks = l->ranks, words = ceil(chunk / MC_DEVICE_WORD);
    const double passes = ceil(ceil(words / l->blocks) * MC_DEVICE_WORD / piece);
    return (double)v->messages / ranks * passes * prices[ll].step +
           (double)v->chunks / ranks * chunk * prices[ll].wire * beta;
}

double mc_gpu_slowest(const mc_links_t *links, const mc_mesh_t *mesh)
{
    double beta = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1 && links->dim[d].beta > beta)
            beta = links->dim[d].beta;
    return beta;
}
