#include "runtime/call/leads.h"

#include "runtime/call/args.h"
#include "runtime/call/request.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

/* What a call counts ------------------------------------------------------------------------------- */

/* Of an alltoallv, and where only the root has the counts, ranks know different sizes. */
enum { UNKNOWN_PART = 4 };

int64_t mc_lead_bytes(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const bool many = a->collective == MESHCOLL_GATHER || a->collective == MESHCOLL_REDUCE;
    const int64_t ranks = h->mesh.size;
    const int64_t least = MC_LEAD_LEAST * (many ? ranks : 1); /* one rank may receive from all */
    if (a->count == 0)
        return MC_LEAD_LEAST; /* it runs nothing, but takes a number */
    if (a->in_counts || a->counts_at_root)
        return MC_LEAD_EPOCH / UNKNOWN_PART;
    const uint64_t bytes = mc_args_bytes(h, a);
    if (bytes > (uint64_t)MC_LEAD_MOST)
        return MC_LEAD_MOST;
    return (int64_t)bytes > least ? (int64_t)bytes : least;
}

/* Barriers ------------------------------------------------------------------------------------------ */

static int conclude(const mc_maxima_t *x)
{
    mc_lead_t *const l = x->lead;
    if (mc_lead_differs(x->words))
        return mc_failure_differs(x->run.head.mesh, l);
    mc_refusals_settle(&l->refused, x->settles);
    if (l->words && x->which == l->told)
        memcpy(l->words, x->words + MC_LEAD_WORDS, MC_TOLD_BYTES);
    mc_lead_reach(l, x->which);
    mc_busy_reached(&l->waiting);
    return MESHCOLL_OK;
}

/* A barrier is complete, or the mesh has failed or is closed. */
static int finish(meshcoll_request_t *r)
{
    mc_maxima_t *const x = (mc_maxima_t *)r;
    mc_lead_t *const l = x->lead;
    const int status = r->status ? r->status : conclude(x);
    x->lead = NULL;
    if (--l->n_barriers == 0 && l->dropped)
        mc_lead_free(l);
    if (r->mesh)
        r->mesh->leads.n_barriers--;
    return status;
}

static const mc_request_kind_t barrier_kind = {MC_OF_MAXIMA, .finish = finish};

bool mc_lead_is_unawaited(const meshcoll_request_t *r)
{
    return r->kind == &barrier_kind && !((const mc_maxima_t *)r)->lead->blocked &&
           !((const mc_maxima_t *)r)->lead->awaited;
}

/* Begins the barrier of an epoch, which waits as the runs of that epoch do. Those with the same number
 * wait for each other too. */
static int begin(meshcoll_t *h, mc_lead_t *l, uint32_t epoch)
{
    mc_maxima_t *x;
    const int status = mc_maxima_take(h, &barrier_kind, &x);
    if (status)
        return status;
    x->lead = l;
    x->which = epoch;
    x->settles = mc_refusals_begin(&l->refused, mc_failure_made(h, l));
    memset(x->words, 0, sizeof x->words);
    mc_lead_compare(l, x->words); /* a hash of the calls made and refused, and its complement */
    if (l->tells) {
        memcpy(x->words + MC_LEAD_WORDS, l->words, MC_TOLD_BYTES);
        l->tells = false;
        l->told = epoch;
    }
    l->n_barriers++;
    return mc_maxima_start(x, l->first_number + epoch % l->n_numbers, &l->synced,
                           l->n_numbers > 1 ? epoch - 1 : epoch, &l->waiting);
}

/* Counting ------------------------------------------------------------------------------------------ */

/* Does a call still run here whose number comes again soon? Those that run are in the order of their numbers. */
static bool is_old_running(const meshcoll_t *h)
{
    const uint32_t next = h->calls.n % MC_CALL_NUMBERS;
    const meshcoll_request_t *r = mc_request_in_flight(h->job->requests.running.first);
    while (r && (r->mesh != h || !r->kind->is_run || r->number >= MC_CALL_NUMBERS))
        r = mc_request_next(r);
    return r && (next - 1 - r->number) % MC_CALL_NUMBERS >= MC_CALL_NUMBERS / 2;
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
void mc_lead_throttle(meshcoll_t *h, mc_lead_t *l, int64_t bytes, mc_run_t *r)
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
    mc_lead_t *const l = &h->leads.calls;
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
    h->leads.calls = fresh(h, MC_FIRST_BARRIER, MC_BARRIER_NUMBERS);
}

int mc_lead_persistent(mc_persistent_t *r, const meshcoll_args_t *a)
{
    const meshcoll_t *const h = r->run.head.mesh;
    r->lead = malloc(sizeof *r->lead);
    if (!r->lead)
        return mc_fail_memory("a persistent request");
    *r->lead = fresh(h, r->run.head.number + MC_PERSISTENT_NUMBERS, 1);
    r->bytes = mc_lead_bytes(h, a);
    return MESHCOLL_OK;
}

void mc_lead_drop(mc_persistent_t *r)
{
    mc_lead_t *const l = r->lead;
    if (l && l->refused.n > 0 && r->run.head.mesh)
        r->run.head.mesh->context.kept = true;
    if (l && l->n_barriers > 0)
        l->dropped = true; /* the last of them frees it */
    else
        mc_lead_free(l);
}
