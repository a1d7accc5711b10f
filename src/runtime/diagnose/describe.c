#include "runtime/diagnose/describe.h"

#include "compose/algorithms/placement.h"
#include "runtime/diagnose/blocked.h"

#include <stdio.h>

/* The machines of lower ranks, which are numbered by their lowest ranks. */
static int32_t machine_of(const mc_job_t *job, int32_t rank)
{
    int32_t n = 0;
    for (int32_t r = 0; r < job->machine[rank]; r++)
        n += job->machine[r] == r;
    return n;
}

static bool is_one_machine(const mc_job_t *job)
{
    for (int32_t r = 1; job->machine && r < job->mesh.size; r++)
        if (job->machine[r] != job->machine[0])
            return false;
    return true;
}

mc_wait_place_t mc_wait_place(const mc_job_t *job, int32_t rank)
{
    mc_wait_place_t place = {.at = 0};
    int32_t at[MC_MAX_DIMS];
    if (job->mesh.ndims > 1) {
        mc_mesh_coords(&job->mesh, rank, at);
        snprintf(place.name, sizeof place.name, "%s", job->mesh.dim[0].name);
        place.at = at[0];
    } else if (!is_one_machine(job)) {
        snprintf(place.name, sizeof place.name, "machine");
        place.at = machine_of(job, rank);
    }
    return place;
}

/* `rank` is one of the job, as is a connection's. */
void mc_wait_set_job_peer(const meshcoll_t *h, int32_t rank, mc_wait_t *wait)
{
    const mc_job_t *const job = h->job;
    const int32_t in_part = !h->job_rank || rank < 0 ? -1 : mc_rank_of_job_rank(h, rank);
    wait->in_part = in_part < 0 ? -1 : mc_comm_rank_of(&h->order, in_part);
    wait->peer = rank;
    wait->known_as = rank < 0 ? -1 : mc_comm_rank_of(&job->order, rank);
    if (rank >= 0)
        wait->place = mc_wait_place(job, rank);
}

static void set_phase(const meshcoll_request_t *r, uint32_t step, mc_wait_t *wait)
{
    const mc_strategy_t *const s = &r->choice.strategy;
    const int32_t phase = r->plan->step[step].phase;
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    if (phase >= s->n_phases)
        return;
    mc_strategy_t one = {.collective = s->collective, .segments = 1, .n_phases = 1};
    one.phase[0] = s->phase[phase];
    mc_strategy_print(&one, &r->mesh->mesh, &text);
    snprintf(wait->phase_text, sizeof wait->phase_text, "%.*s", MC_WAIT_PHASE - 1, buffer);
    wait->phase = phase;
    wait->phases = s->n_phases;
}

/* Which of the plan's steps it is at. */
static void set_step(const meshcoll_request_t *r, mc_wait_t *wait)
{
    const mc_executor_t *const x = &r->executor;
    const mc_blocked_t b = mc_blocked_find(x);
    wait->awaits = b.awaits;
    if (b.peer >= 0)
        mc_wait_set_job_peer(r->mesh, b.peer, wait);
    if (b.step >= r->plan->n_steps)
        return;
    wait->step = b.step;
    wait->steps = r->plan->n_steps;
    wait->message = x->task[b.step].is_message ? x->task[b.step].message.bytes : 0;
    set_phase(r, b.step, wait);
}

static mc_wait_kind_t kind_of(const meshcoll_request_t *r)
{
    const meshcoll_t *const h = r->mesh;
    const void *const in = r->operands.in;
    if (r->lead)
        return MC_WAIT_LEAD;
    if (in && in == &h->arrived)
        return MC_WAIT_BARRIER;
    /* an exchange of counts is bound; the call that waits for them is not */
    return r->exchange && r->executor.bound ? MC_WAIT_COUNTS : MC_WAIT_COLLECTIVE;
}

/* Every process numbers its own operations. */
static void set_asked(const meshcoll_request_t *r, mc_wait_t *wait)
{
    const mc_move_t *const move = &mc_moves[r->collective];
    wait->digest = r->executor.digest;
    if (move->reduces && r->executor.bound)
        wait->op = (uint32_t)r->operands.op < MESHCOLL_OPS ? (int32_t)r->operands.op : MESHCOLL_OPS;
    if (move->rooted)
        wait->root = mc_comm_rank_of(&r->mesh->order, r->root);
}

static void describe_run(const meshcoll_request_t *r, mc_wait_t *wait)
{
    wait->kind = kind_of(r);
    wait->collective = (int32_t)r->collective;
    wait->is_persistent = !r->lead && r->operation >= MC_TAG_CALLS;
    wait->number = r->operation % MC_TAG_CALLS;
    set_asked(r, wait);
    if (r->executor.bound) {
        wait->count = r->operands.count;
        wait->datatype = (int32_t)r->operands.datatype;
        wait->bytes = wait->count * meshcoll_datatype_size(r->operands.datatype);
    }
    snprintf(wait->strategy, sizeof wait->strategy, "%.*s", MC_WAIT_STRATEGY - 1,
             r->text ? r->text : "");
    set_step(r, wait);
}

void mc_wait_describe(const meshcoll_request_t *r, mc_wait_t *wait)
{
    *wait = (mc_wait_t){.peer = -1,
                        .known_as = -1,
                        .in_part = -1,
                        .op = -1,
                        .root = -1,
                        .mesh = mc_wait_part(r->mesh)};
    snprintf(wait->mesh_text, sizeof wait->mesh_text, "%.*s", MC_WAIT_MESH - 1, r->mesh->text);
    if (r->describe) {
        r->describe(r, wait);
        mc_wait_set_job_peer(r->mesh, wait->peer < 0 ? -1 : mc_job_rank(r->mesh, wait->peer), wait);
    } else {
        describe_run(r, wait);
    }
}

uint64_t mc_wait_mark(const meshcoll_request_t *r)
{
    const mc_executor_t *const x = &r->executor;
    /* an odd factor: different terms hardly cancel */
    const uint64_t steps = ((uint64_t)x->n_left << 8 | (uint64_t)x->state) * 0x9e3779b97f4a7c15;
    return r->plan ? steps + x->n_connected + mc_blocked_done(x) : steps;
}
