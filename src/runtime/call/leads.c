#include "runtime/call/leads.h"

#include "compose/algorithms/placement.h"
#include "compose/planner/planner.h"
#include "runtime/call/numbers.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>

/* What a call counts ------------------------------------------------------------------------------- */

/* Of an alltoallv, and where only the root has the counts, ranks know different sizes. */
enum { UNKNOWN_PART = 4 };

int64_t mc_lead_bytes(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const mc_move_t *const move = &mc_moves[a->collective];
    const bool many = a->collective == MESHCOLL_GATHER || a->collective == MESHCOLL_REDUCE;
    const int64_t ranks = h->mesh.size;
    const int64_t least = MC_LEAD_LEAST * (many ? ranks : 1); /* one rank may receive from all */
    if (a->count == 0)
        return MC_LEAD_LEAST; /* it runs nothing, but takes a number */
    if (a->in_counts || a->counts_at_root)
        return MC_LEAD_EPOCH / UNKNOWN_PART;
    const bool blocks = mc_move_has_blocks(move) && !a->counts;
    const size_t bytes =
        a->count * meshcoll_datatype_size(a->datatype) * (blocks ? (size_t)ranks : 1);
    if (bytes > (size_t)MC_LEAD_MOST)
        return MC_LEAD_MOST;
    return (int64_t)bytes > least ? (int64_t)bytes : least;
}

/* Barriers ------------------------------------------------------------------------------------------ */

/* The strategy depends on nothing but the mesh and its links: it is the same on all ranks, whenever
 * they choose it. */
static int choose(const meshcoll_t *h, mc_ranked_t *best)
{
    const mc_pacing_t pacing = mc_handle_pacing(h);
    const mc_planner_query_t query = {
        .bytes = sizeof(int64_t[2]), .max_segments = 1, .pacing = &pacing};
    return mc_planner_best(MESHCOLL_ALLREDUCE, &h->mesh, &h->links, &query, best);
}

/* It returns to the handle, for the next epoch. */
static void release(meshcoll_request_t *x)
{
    x->released = false;
    if (!x->mesh) {
        mc_request_destroy(x);
        return;
    }
    x->barrier->next = x->mesh->spare_barrier;
    x->mesh->spare_barrier = x;
}

static void leave(mc_lead_t *l)
{
    if (--l->n_barriers == 0 && l->dropped)
        mc_lead_free(l);
}

static int compare_calls(meshcoll_request_t *x)
{
    if (mc_lead_differs(x->barrier->compared))
        return mc_failure_differs(x->mesh, x->barrier->lead);
    mc_refusals_settle(&x->barrier->lead->refused, x->barrier->settles);
    return MESHCOLL_OK;
}

/* A barrier is complete, or the mesh has failed or is closed. */
static void synced(meshcoll_request_t *x)
{
    mc_lead_t *const l = x->barrier->lead;
    if (x->status == MESHCOLL_OK) {
        mc_lead_reach(l, x->barrier->epoch);
        mc_busy_reached(&l->waiting);
    }
    x->barrier->lead = NULL;
    leave(l);
    if (!x->mesh) { /* its closing releases it */
        x->running = false;
        return;
    }
    x->mesh->n_barriers--;
    mc_request_finish(x);
}

static const mc_request_kind_t barrier_kind = {
    .end = compare_calls, .finish = synced, .release = release, .internal = true};

static int bind(meshcoll_request_t *x)
{
    int64_t *const compared = x->barrier->compared;
    const mc_operands_t operands = {.in = compared,
                                    .out = compared,
                                    .count = MC_COUNT(x->barrier->compared),
                                    .datatype = MESHCOLL_INT64,
                                    .op = MESHCOLL_MAX};
    return mc_request_bind(x, &operands);
}

/* It is no part of what MESHCOLL_EXPLAIN reports, and has memory of its own, so that the requests of
 * calls keep theirs. */
static int create(meshcoll_t *h, meshcoll_request_t **barrier)
{
    meshcoll_request_t *x;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .count = MC_COUNT(x->barrier->compared),
                                  .datatype = MESHCOLL_INT64,
                                  .op = MESHCOLL_MAX};
    mc_ranked_t best;
    int status = choose(h, &best);
    if (status)
        return status;
    const mc_hooks_t hooks = h->hooks;
    h->hooks.made = NULL;
    status = mc_request_create(h, &args, &best, &x);
    h->hooks = hooks;
    if (status)
        return status;
    x->workspace = &x->own;
    x->kind = &barrier_kind;
    x->barrier = calloc(1, sizeof *x->barrier);
    status = x->barrier ? bind(x) : mc_fail_memory("a barrier");
    if (status) {
        mc_request_destroy(x);
        return status;
    }
    *barrier = x;
    return MESHCOLL_OK;
}

static int take(meshcoll_t *h, meshcoll_request_t **barrier)
{
    if (!h->spare_barrier)
        return create(h, barrier);
    *barrier = h->spare_barrier;
    h->spare_barrier = (*barrier)->barrier->next;
    return MESHCOLL_OK;
}

/* Begins the barrier of an epoch, which waits as the runs of that epoch do. Those with the same number
 * wait for each other too. */
static int begin(meshcoll_t *h, mc_lead_t *l, uint32_t epoch)
{
    meshcoll_request_t *x;
    int status = take(h, &x);
    if (status)
        return status;
    x->barrier->lead = l;
    x->barrier->epoch = epoch;
    x->barrier->settles = mc_refusals_tell(&l->refused, mc_failure_made(h, l));
    mc_lead_compare(l, x->barrier->compared);
    x->operation = l->first_number + epoch % l->n_numbers;
    mc_executor_await(&x->executor, &l->synced, l->n_numbers > 1 ? epoch - 1 : epoch, &l->waiting);
    l->n_barriers++;
    h->n_barriers++;
    x->released = true; /* nobody waits for it */
    status = mc_request_start(x);
    if (!status && !x->running)
        synced(x);
    return status;
}

/* Counting ------------------------------------------------------------------------------------------ */

/* Does a call still run here whose number comes again soon? */
static bool is_old_running(const meshcoll_t *h)
{
    const uint32_t next = h->n_calls % MC_CALL_NUMBERS;
    bool found = false;
    for (const meshcoll_request_t *r = mc_request_in_flight(h->job->requests.running.first);
         r && !found; r = mc_request_next(r))
        found = r->mesh == h && r->plan && r->operation < MC_CALL_NUMBERS &&
                (next - 1 - r->operation) % MC_CALL_NUMBERS >= MC_CALL_NUMBERS / 2;
    return found;
}

/* Messages of a pair with one tag match in order, so that a number may be used again once its last run has ended on
 * this rank. All ranks have begun a run so old, unless as many calls wait here for others. */
static void await_old(meshcoll_t *h)
{
    mc_waiting_t waiting = {0};
    if (h->n_restricted > 0) /* a callback must not wait */
        return;
    while (is_old_running(h))
        mc_wait_turn(h, &waiting);
}

/* A failure ends the mesh, which the start of the run then reports. */
void mc_lead_throttle(meshcoll_t *h, mc_lead_t *l, int64_t bytes, meshcoll_request_t *r)
{
    const uint32_t before = l->epoch;
    const bool refused = mc_lead_is_refused(l);
    if (h->job->failure.status)
        return;
    if (mc_lead_count(l, bytes)) {
        const int status = begin(h, l, before);
        l->needed += refused;
        if (status)
            mc_failure_break(h, status);
        await_old(h);
    }
    if (!mc_lead_settle(l) && r && r->plan)
        mc_executor_await(&r->executor, &l->synced, l->needed, &l->waiting);
}

int mc_lead_agree(meshcoll_t *h)
{
    mc_lead_t *const l = &h->lead;
    mc_waiting_t waiting = {0};
    if (mc_lead_is_refused(l))
        mc_lead_throttle(h, l, 0, NULL);
    while (l->blocked && l->needed == l->epoch && !h->job->failure.status)
        mc_wait_turn(h, &waiting);
    return mc_failure_check(h);
}

int mc_lead_refused(meshcoll_t *h, uint32_t number, bool persistent, int status)
{
    char why[400];
    mc_text_t text = mc_text(why, sizeof why);
    status = mc_failure_refused(h, number, persistent, status);
    if (!h->gpu || !h->job->device->is_captured(h) || h->job->failure.status)
        return status;
    mc_text_add(&text, "%s", meshcoll_last_error());
    if (h->n_restricted > 0) /* a callback must not wait */
        mc_failure_break(h, status);
    else
        (void)mc_lead_agree(h);
    return mc_fail(status, "%s", why);
}

static mc_lead_t fresh(const meshcoll_t *h, uint32_t first_number, uint32_t n_numbers)
{
    return (mc_lead_t){.left = h->mesh.size > 1 ? MC_LEAD_EPOCH : INT64_MAX,
                       .first_number = first_number,
                       .n_numbers = n_numbers};
}

void mc_lead_open(meshcoll_t *h)
{
    h->lead = fresh(h, MC_FIRST_BARRIER, MC_BARRIER_NUMBERS);
}

int mc_lead_persistent(meshcoll_request_t *r, const meshcoll_args_t *a)
{
    r->own_lead = malloc(sizeof *r->own_lead);
    if (!r->own_lead)
        return mc_fail_memory("a persistent request");
    *r->own_lead = fresh(r->mesh, r->operation + MC_PERSISTENT_NUMBERS, 1);
    r->bytes = mc_lead_bytes(r->mesh, a);
    return MESHCOLL_OK;
}

void mc_lead_close(meshcoll_t *h)
{
    mc_refusals_free(&h->lead.refused);
    for (meshcoll_request_t *x; (x = h->spare_barrier);) {
        h->spare_barrier = x->barrier->next;
        mc_request_destroy(x);
    }
}
