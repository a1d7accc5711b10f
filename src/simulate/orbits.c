/* Plans of all ranks, of which those of an orbit are one. */
#include "simulate/sim_world.h"

#include <stdlib.h>

/* Do all phases that touch dimension d rotate? `alone`: and are along [d, end) as a whole? */
static bool turns(const mc_strategy_t *s, int32_t d, int32_t end, bool alone)
{
    for (int32_t i = 0; i < s->n_phases; i++) {
        const mc_phase_t *const p = &s->phase[i];
        const int32_t last = p->dims.first + p->dims.count;
        if (last <= d || p->dims.first >= (alone ? end : d + 1))
            continue;
        if (!mc_algorithms[p->algorithm].rotates || p->dims.first != d || (alone && last != end))
            return false;
    }
    return true;
}

/* Dimensions that a phase merges turn as one line, if no phase is along a part of them. Otherwise the outermost of them
 * may turn by itself: the others would carry into it. */
static void find_digits(const mc_strategy_t *s, const mc_mesh_t *mesh, mc_orbits_t *o)
{
    for (int32_t d = 0, end; d < mesh->ndims; d = end) {
        end = d + 1;
        for (int32_t i = 0; i < s->n_phases; i++) {
            const int32_t last = s->phase[i].dims.first + s->phase[i].dims.count;
            if (s->phase[i].dims.first < end && last > end)
                end = last, i = -1;
        }
        const bool all = turns(s, d, end, true);
        if (!all && !turns(s, d, end, false))
            continue;
        o->digit[o->n].stride = mc_mesh_stride(mesh, all ? end - 1 : d);
        o->digit[o->n++].extent =
            all ? mc_dims_extent(mesh, (mc_dims_t){d, end - d}) : mesh->dim[d].extent;
    }
}

int32_t mc_orbits_shift(const mc_orbits_t *o, int32_t other, int32_t rank, int32_t sign)
{
    for (int32_t i = 0; i < o->n; i++) {
        const int32_t stride = o->digit[i].stride, extent = o->digit[i].extent;
        const int32_t a = other / stride % extent, b = rank / stride % extent;
        int32_t c = sign > 0 ? a + b : a - b;
        c += c < 0 ? extent : c >= extent ? -extent : 0;
        other += (c - a) * stride;
    }
    return other;
}

static uint32_t count_chunks(const mc_plan_t *plan, const mc_step_t *s)
{
    const bool sends = mc_op_sends((mc_op_t)s->op);
    const mc_range_t range = sends ? mc_step_from(s) : mc_step_to(s);
    const uint32_t all = mc_range_chunks(range);
    uint32_t n = all;
    if (!plan->layout.mesh.ragged || (plan->in != MC_HOLDS_HOME && plan->out != MC_HOLDS_HOME))
        return n;
    for (uint32_t k = 0; k < all; k++)
        n -= mc_plan_absent(plan, sends ? s->src : s->dst, mc_range_chunk(range, k));
    return n;
}

/* Segments are calls one after the other. */
static uint16_t bucket_of(const mc_simulation_t *q, const mc_plan_t *plan, const mc_step_t *s)
{
    const bool reads = mc_op_sends((mc_op_t)s->op) || s->peer < 0;
    const uint32_t chunk = (reads ? s->first : s->to) % plan->n_chunks;
    return (uint16_t)(chunk / plan->layout.per_segment / (plan->layout.segments / q->n_buckets));
}

static int index_program(const mc_simulation_t *q, mc_program_t *p)
{
    const mc_plan_t *const plan = p->plan;
    const size_t n = (size_t)plan->n_steps + 2, peers = (size_t)plan->n_peers + 2;
    uint32_t *at = calloc(4 * n + plan->n_edges + 2 * peers + q->n_buckets + 3, sizeof *at);
    p->pred_off = at;
    p->step = malloc(n * sizeof *p->step);
    if (!at || !p->step)
        return mc_fail_memory("the plans of all ranks");
    at += n;
    for (int way = 0; way < 2; way++, at += peers) {
        p->message[way] = at;
        p->off[way] = at += n;
    }
    p->root = at;
    p->root_off = at += n;
    p->pred = at += q->n_buckets + 3;
    mc_plan_predecessors(plan, p->pred_off, p->pred);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const uint32_t slot = s->peer < 0 ? 0 : mc_plan_peer(plan, s->peer);
        p->step[i] = (mc_sim_step_t){count_chunks(plan, s), slot, s->seq, 0, s->op, s->phase};
        if (q->bucket) {
            p->step[i].bucket = bucket_of(q, plan, s);
            p->step[i].chunks *= q->bucket[p->step[i].bucket].bytes * q->n_buckets / q->bytes;
        }
        p->root_off[p->step[i].bucket + 2] += plan->n_pred[i] == 0;
        if (s->peer >= 0)
            p->off[mc_op_receives((mc_op_t)s->op)][slot + 2]++;
    }
    for (int way = 0; way < 2; way++)
        for (uint32_t k = 0; k < plan->n_peers; k++)
            p->off[way][k + 2] += p->off[way][k + 1];
    for (uint32_t k = 0; k < q->n_buckets; k++)
        p->root_off[k + 2] += p->root_off[k + 1];
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->n_pred[i] == 0)
            p->root[p->root_off[p->step[i].bucket + 1]++] = i;
        const int way = mc_op_receives((mc_op_t)plan->step[i].op);
        if (plan->step[i].peer >= 0)
            p->message[way][p->off[way][p->step[i].slot + 1]++] = i;
    }
    return MESHCOLL_OK;
}

int mc_orbits_create(const mc_simulation_t *q, mc_orbits_t *orbits)
{
    const int32_t size = q->mesh->size;
    mc_orbits_t o = {.of = malloc((size_t)size * sizeof *o.of)};
    uint32_t capacity = 0;
    int status = o.of ? MESHCOLL_OK : mc_fail_memory("the plans of all ranks");
    if (!q->mesh->ragged &&
        !mc_strategy_gathers(q->strategy)) /* copies are in order of chunks there */
        find_digits(q->strategy, q->mesh, &o);
    for (int32_t r = 0; r < size && !status; r++) {
        const int32_t first = mc_orbits_shift(&o, r, r, -1);
        if (first < r) {
            o.of[r] = o.of[first];
            continue;
        }
        status = mc_array_add(&o.program, &o.n_programs, &capacity, &(mc_program_t){0},
                              sizeof *o.program, "the plans of all ranks");
        if (status)
            break;
        mc_program_t *const p = &o.program[o.n_programs - 1];
        status = mc_strategy_plan(q->strategy, q->mesh, r, q->root, &p->plan);
        if (!status)
            status = index_program(q, p);
        o.of[r] = (int32_t)o.n_programs - 1;
    }
    if (status)
        mc_orbits_free(&o);
    else
        *orbits = o;
    return status;
}

void mc_orbits_free(mc_orbits_t *o)
{
    for (uint32_t i = 0; i < o->n_programs; i++) {
        mc_plan_free(o->program[i].plan);
        free(o->program[i].step);
        free(o->program[i].pred_off);
    }
    free(o->program);
    free(o->of);
    *o = (mc_orbits_t){0};
}
