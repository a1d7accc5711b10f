#include "runtime/diagnose/waits/requests.h"

#include "compose/algorithms/placement.h"

#include <stdio.h>

/* Where a run stands ---------------------------------------------------------------------------- */

typedef struct {
    mc_awaited_t awaits;
    uint32_t step; /* n_steps of the plan: none */
    int32_t peer;  /* a mesh rank; -1: none */
} blocked_t;

/* The first message of a lane that is not complete; those of a lane complete in order. */
static uint32_t first_left(const mc_lane_t *lane)
{
    return lane->next - lane->n_in_flight;
}

static uint32_t step_at(const mc_executor_t *x, const mc_lane_t *lane, uint32_t message)
{
    return x->queue[lane->first + message];
}

static bool sends(const mc_lane_t *lane)
{
    return lane->bytes_sent;
}

/* Returns the lane with the first incomplete message in program order; NULL: all are complete. */
static const mc_lane_t *find_lane(const mc_executor_t *x)
{
    const mc_lane_t *first = NULL;
    for (const mc_lane_t *l = x->lane; l < x->lane + x->n_lanes; l++)
        if (first_left(l) < l->n &&
            (!first || step_at(x, l, first_left(l)) < step_at(x, first, first_left(first))))
            first = l;
    return first;
}

/* Returns the lane whose next credit belongs to the first message in program order; NULL: no credit
 * is awaited. */
static const mc_lane_t *find_credit(const mc_executor_t *x)
{
    const mc_lane_t *first = NULL;
    for (const mc_lane_t *l = x->lane; x->n_credits > 0 && l < x->lane + x->n_lanes; l++)
        if (l->credit_in_flight && l->n_credited < l->n &&
            (!first || step_at(x, l, l->n_credited) < step_at(x, first, first->n_credited)))
            first = l;
    return first;
}

/* Returns the lane of a message that keeps a port busy; NULL: none does. */
static const mc_lane_t *find_sending(const mc_executor_t *x, const mc_lane_t *waiting)
{
    for (const mc_lane_t *l = x->lane; l < x->lane + x->n_sending; l++)
        if (l->port == waiting->port && l->n_in_flight > 0)
            return l;
    return NULL;
}

static blocked_t at_message(const mc_executor_t *x, const mc_lane_t *lane, uint32_t message,
                            mc_awaited_t awaits)
{
    return (blocked_t){
        .awaits = awaits, .step = step_at(x, lane, message), .peer = lane->peer->rank};
}

/* A send that is first but has not started: flow control holds it back. */
static blocked_t held_back(const mc_executor_t *x, const mc_lane_t *lane)
{
    const uint32_t next = first_left(lane);
    const mc_lane_t *const other = find_sending(x, lane), *const credit = find_credit(x);
    if (lane->next == lane->n_allowed || (!other && !credit))
        return at_message(x, lane, next, MC_AWAITS_CREDIT);
    return other ? at_message(x, other, first_left(other), MC_AWAITS_SEND)
                 : at_message(x, credit, credit->n_credited, MC_AWAITS_CREDIT);
}

static blocked_t no_message(const mc_executor_t *x)
{
    const mc_lane_t *const credit = find_credit(x);
    if (credit)
        return at_message(x, credit, credit->n_credited, MC_AWAITS_CREDIT);
    return (blocked_t){.awaits = MC_AWAITS_WORK, .step = x->plan->n_steps, .peer = -1};
}

static blocked_t find_running(const mc_executor_t *x)
{
    const mc_lane_t *const lane = find_lane(x);
    const uint32_t message = lane ? step_at(x, lane, first_left(lane)) : x->plan->n_steps;
    if (x->n_heap > 0 && x->heap[0] < message)
        return (blocked_t){.awaits = MC_AWAITS_WORK, .step = x->heap[0], .peer = -1};
    if (!lane)
        return no_message(x);
    if (!sends(lane))
        return at_message(x, lane, first_left(lane), MC_AWAITS_RECEIVE);
    return lane->n_in_flight > 0 ? at_message(x, lane, first_left(lane), MC_AWAITS_SEND)
                                 : held_back(x, lane);
}

/* A pending run waits for the first connection that is not greeted. */
static blocked_t find_pending(const mc_executor_t *x)
{
    blocked_t b = {.awaits = x->held ? MC_AWAITS_AGREEMENT : MC_AWAITS_COUNTS,
                   .step = x->plan->n_steps,
                   .peer = -1};
    if (x->held || !x->bound || x->n_connected >= x->n_lanes)
        return b;
    b.awaits = MC_AWAITS_GREETING;
    b.peer = x->lane[x->n_connected].peer->rank;
    return b;
}

/* Finds the first step in program order that is not complete. All steps before it are, so it depends on no step of
 * this rank: it is at work, or its message waits for the peer. Plans complete where every rank takes its steps one
 * after another in program order (execute/pace.h), so these waits form no circle within a collective. */
static blocked_t find_blocked(const mc_executor_t *x)
{
    if (x->state == MC_RUNNING)
        return find_running(x);
    if (x->state == MC_PENDING)
        return find_pending(x);
    return (blocked_t){.awaits = x->state == MC_FLUSHING ? MC_AWAITS_FLUSH : MC_AWAITS_WORK,
                       .step = x->plan->n_steps,
                       .peer = -1};
}

/* Bytes of that step's message that have come or gone, as far as the transport tells. */
static uint64_t bytes_done(const mc_executor_t *x)
{
    const mc_lane_t *const lane = x->state == MC_RUNNING ? find_lane(x) : NULL;
    if (!lane || lane->n_in_flight == 0)
        return 0;
    const mc_task_t *const task = &x->task[step_at(x, lane, first_left(lane))];
    return task->io.done + task->reduced + task->span;
}

/* Peers ------------------------------------------------------------------------------------------ */

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
    const int32_t in_part = !h->ranks.job_rank || rank < 0 ? -1 : mc_rank_of_job_rank(h, rank);
    wait->in_part = in_part < 0 ? -1 : mc_comm_rank_of(&h->order, in_part);
    wait->peer = rank;
    wait->known_as = rank < 0 ? -1 : mc_comm_rank_of(&job->order, rank);
    if (rank >= 0)
        wait->place = mc_wait_place(job, rank);
}

/* Requests --------------------------------------------------------------------------------------- */

static void set_phase(const mc_run_t *r, uint32_t step, mc_wait_t *wait)
{
    const mc_strategy_t *const s = &r->choice.strategy;
    const int32_t phase = r->plan->step[step].phase;
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    if (phase >= s->n_phases)
        return;
    mc_strategy_print_phase(s, &r->head.mesh->mesh, phase, &text);
    snprintf(wait->phase_text, sizeof wait->phase_text, "%.*s", MC_WAIT_PHASE - 1, buffer);
    wait->phase = phase;
    wait->phases = s->n_phases;
}

/* Which of the plan's steps it is at. */
static void set_step(const mc_run_t *r, mc_wait_t *wait)
{
    const mc_executor_t *const x = &r->executor;
    const blocked_t b = find_blocked(x);
    wait->awaits = b.awaits;
    if (b.peer >= 0)
        mc_wait_set_job_peer(r->head.mesh, b.peer, wait);
    if (b.step >= r->plan->n_steps)
        return;
    wait->step = b.step;
    wait->steps = r->plan->n_steps;
    wait->message = x->task[b.step].is_message ? x->task[b.step].message.bytes : 0;
    set_phase(r, b.step, wait);
}

static mc_wait_kind_t kind_of(const mc_run_t *r)
{
    const meshcoll_t *const h = r->head.mesh;
    const void *const in = r->operands.in;
    return in && in == &h->calls.arrived ? MC_WAIT_BARRIER : r->head.kind->waits;
}

static void set_asked(const mc_run_t *r, mc_wait_t *wait)
{
    const mc_move_t *const move = &mc_moves[r->choice.strategy.collective];
    wait->digest = r->executor.digest;
    if (move->reduces && r->executor.bound)
        wait->op = mc_wait_op(r->operands.op);
    if (move->rooted)
        wait->root = mc_comm_rank_of(&r->head.mesh->order, r->root);
}

static void describe_run(const mc_run_t *r, mc_wait_t *wait)
{
    wait->kind = kind_of(r);
    wait->collective = (int32_t)r->choice.strategy.collective;
    wait->is_persistent = r->head.kind->waits != MC_WAIT_LEAD && r->head.number >= MC_TAG_CALLS;
    wait->number = r->head.number % MC_TAG_CALLS;
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

static mc_wait_t of_nobody(const meshcoll_t *h)
{
    mc_wait_t wait = {
        .peer = -1, .known_as = -1, .in_part = -1, .op = -1, .root = -1, .mesh = mc_wait_part(h)};
    snprintf(wait.mesh_text, sizeof wait.mesh_text, "%.*s", MC_WAIT_MESH - 1, h->text);
    return wait;
}

void mc_wait_describe_launch(const meshcoll_t *h, const mc_waits_launch_t *l, mc_wait_t *wait)
{
    *wait = of_nobody(h);
    wait->kind = MC_WAIT_COLLECTIVE;
    wait->number = l->number;
    wait->is_persistent = l->is_persistent;
    wait->on_device = true;
    wait->collective = l->collective;
    wait->datatype = l->datatype;
    wait->op = l->op;
    wait->root = l->root;
    wait->digest = l->digest;
    wait->count = l->count;
    wait->bytes = l->count * meshcoll_datatype_size((meshcoll_datatype_t)l->datatype);
}

void mc_wait_describe(const meshcoll_request_t *r, mc_wait_t *wait)
{
    *wait = of_nobody(r->mesh);
    if (r->kind->describe) {
        r->kind->describe(r, wait);
        mc_wait_set_job_peer(r->mesh, wait->peer < 0 ? -1 : mc_job_rank(r->mesh, wait->peer), wait);
    } else {
        describe_run(mc_run_of(r), wait);
    }
}

uint64_t mc_wait_mark(const meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    if (!run)
        return 0;
    const mc_executor_t *const x = &run->executor;
    /* an odd factor: different terms hardly cancel */
    const uint64_t steps = ((uint64_t)x->n_left << 8 | (uint64_t)x->state) * 0x9e3779b97f4a7c15;
    return run->plan ? steps + x->n_connected + bytes_done(x) : steps;
}
