#include "runtime/jobs/jobs.h"

#include "base/notice.h"
#include "base/system/log.h"
#include "job/monitor/monitor.h"
#include "runtime/call/adapt.h"
#include "runtime/call/cache.h"
#include "runtime/call/call.h"
#include "runtime/connect/greet.h"
#include "runtime/diagnose/diagnose.h"
#include "runtime/diagnose/status/status.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/calibrated.h"
#include "runtime/handle/run.h"
#include "runtime/message/messages.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define HEAR_SECONDS 0.25
enum { WRITER_NAP_NS = 50 * 1000 };

/* Nothing writes to its buffers any more. */
static void detach(meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    mc_busy_unlist(r); /* it may free the lead that it waits in */
    if (run && run->watch)
        r->mesh->hooks->freed((mc_run_t *)r);
    r->mesh = NULL;
    if (r->running)
        r->status = MESHCOLL_ERR_INVALID_ARG;
}

/* Ends the library's own operations that still run, before the requests that wait for them. */
static void give_up_internal(const mc_list_t *list)
{
    for (mc_list_node_t *n = list->first; n; n = n->next) {
        meshcoll_request_t *const r = mc_request_of_mesh(n);
        if (!r->running || !r->kind->is_internal)
            continue;
        detach(r);
        if (r->kind->finish)
            (void)r->kind->finish(r);
        r->running = false;
    }
}

/* Detaches the requests, which belong to the user and outlive the handle. Returns how many were running. */
static uint32_t give_up(mc_list_t *list)
{
    uint32_t n = 0;
    give_up_internal(list);
    while (list->first) {
        meshcoll_request_t *const r = mc_request_of_mesh(list->first);
        n += r->running;
        if (r->mesh)
            detach(r);
        mc_list_remove(&r->of_mesh);
        if (r->running && r->callback.function)
            mc_callback_due(r); /* called when the mesh is gone */
        else
            mc_request_notify(r);
    }
    return n;
}

/* What calls of the job's first mesh have learned, for the next job: on the rank that knows where. */
static void keep_learned(const meshcoll_t *h)
{
    const mc_calibrated_t *const c = h->job->calibrated;
    if (!c || !c->key || h->ranks.job_rank || h->job->failure.status || h->job->unusable)
        return;
    if (mc_adapt_is_slow(h))
        mc_calibrated_drop(h->job);
    char *const text = c->key ? malloc(MC_KEPT_BYTES) : NULL;
    if (!text)
        return;
    mc_text_t printed = mc_text(text, MC_KEPT_BYTES);
    mc_text_add(&printed, MC_KEPT_ON, c->hash);
    mc_adapt_save(h, &printed);
    if (printed.length > MC_KEPT_ON_BYTES)
        (void)mc_kept_write(MC_KEPT_LEARNED, c->key, text);
    free(text);
}

/* Frees what is its own; returns how many requests were running. */
static uint32_t free_own(meshcoll_t *h)
{
    mc_waits_leave(h);
    mc_messages_free(h);
    mc_refusals_free(&h->leads.calls.refused);
    const uint32_t n = give_up(&h->requests);
    if (h->gpu)
        h->job->device->close(h);
    mc_diagnose_close(h);
    mc_links_free(&h->links);
    free(h->calls.own_counts);
    free(h->calls.persistent.census);
    mc_free_memory(h);
    keep_learned(h);
    mc_adapt_free(h);
    mc_group_free(h);
    if (h->machine != h->job->machine)
        free(h->machine);
    free(h->ranks.job_rank);
    free(h->ranks.by_job_rank);
    if (h->order.comm_rank != h->job->order.comm_rank)
        mc_order_free(&h->order);
    if (h->entry.state == MC_MESH_TAKEN)
        mc_handle_bury(h);
    else
        free(h);
    return n;
}

void mc_handle_free(meshcoll_t *h)
{
    (void)free_own(h);
}

/* Threads must have come to an end before what they use. */
static void close_shared(mc_job_t *job)
{
    mc_threads_close(job);
    mc_busy_leave(job);
    if (job->gpu)
        job->device->stop(job);
    mc_status_close(job);
    mc_monitor_close(job->monitor);
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->connections.transport[d])
            job->connections.transport[d]->ops->close(job->connections.transport[d]);
    mc_greet_free(job);
}

void mc_job_free(mc_job_t *job)
{
    mc_jobs_leave(job);
    close_shared(job);
    uint32_t n = 0;
    for (meshcoll_t *h; (h = job->meshes);) {
        job->meshes = h->entry.next;
        mc_cache_drop(h, -1);
        n += free_own(h);
    }
    if (job->gpu)
        job->device->free(job);
    mc_talk_free(job);
    mc_diagnose_close_job(job);
    free(job->family);
    if (job->calibrated)
        free(job->calibrated->key);
    free(job->calibrated);
    free(job->home);
    free(job->connections.addresses);
    free(job->connections.peer);
    free(job->machine);
    mc_order_free(&job->order);
    mc_settings_free(&job->settings);
    free(job);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running and were cancelled; the contents "
                "of their buffers are undefined",
                n);
}

static void forget_group(const meshcoll_t *h, bool dropped)
{
    if (dropped)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: a group was open; its %u calls were not made",
                mc_group_waiting(h));
}

/* One of several meshes -------------------------------------------------------------------------- */

/* Requests that run, without those of the library's own. */
static uint32_t count_running(const meshcoll_t *h)
{
    uint32_t n = 0;
    for (const mc_list_node_t *at = h->requests.first; at; at = at->next)
        n += mc_request_of_mesh(at)->running && !mc_request_of_mesh(at)->kind->is_internal;
    return n;
}

static bool any_runs(const meshcoll_t *h)
{
    const mc_list_node_t *n = h->requests.first;
    while (n && !mc_request_of_mesh(n)->running)
        n = n->next;
    return n;
}

/* May the transports of the job, which stay open, still use its memory? */
static bool is_in_flight(const meshcoll_t *h)
{
    return h->job->failure.status || h->n_restricted > 0 || any_runs(h) || !mc_messages_idle(h) ||
           mc_greet_runs_for(h);
}

/* The context is free as soon as nothing is in flight in it on this rank. It stays used where the rank was refused a
 * call, and not all have agreed that they were: messages for that call may lie here. */
static void free_one(meshcoll_t *h)
{
    if (h->context.creation && h->leads.calls.refused.n == 0 && !h->context.kept)
        mc_context_return(h->job->family, h->context.number, h->context.creation);
    mc_talk_leave(h);
    mc_cache_drop(h, -1);
    (void)free_own(h);
}

void mc_handles_sweep(mc_job_t *job)
{
    if (mc_callback_is_inside()) /* what has called the callback may still use them */
        return;
    for (meshcoll_t **at = &job->meshes, *h; (h = *at);) {
        if (h->entry.state == MC_MESH_OPEN || is_in_flight(h)) {
            at = &h->entry.next;
            continue;
        }
        *at = h->entry.next;
        free_one(h);
    }
}

/* With what was made from it. What is in flight keeps a mesh until it is complete, or the job's last one is destroyed.
 * Returns how many requests run. */
static uint32_t close_all(meshcoll_t *from)
{
    uint32_t n = 0;
    for (meshcoll_t *h = from->job->meshes; h; h = h->entry.next)
        if (h->entry.state == MC_MESH_OPEN && mc_mesh_is_of(h, from)) {
            n += count_running(h);
            mc_waits_leave(h);
            h->entry.state = h == from ? MC_MESH_CLOSED : MC_MESH_TAKEN;
        }
    for (meshcoll_t *h = from->job->meshes; h; h = h->entry.next)
        if (h->entry.state != MC_MESH_OPEN)
            h->entry.from = NULL;
    return n;
}

/* The caller's allgather lives as long as the mesh that was made with it. */
static void forget_oob(mc_job_t *job)
{
    if (!job->free_context)
        job->oob.allgather = NULL;
}

/* Is there another that was not destroyed and was not made from it? */
static bool has_others(const meshcoll_t *h)
{
    const meshcoll_t *other = h->job->meshes;
    while (other && (other->entry.state != MC_MESH_OPEN || mc_mesh_is_of(other, h)))
        other = other->entry.next;
    return other;
}

/* Waits for no other rank: transports stay open, and others give back what is theirs when they destroy it. Returns
 * false where it is the last, which stays: of several that are destroyed at once one is. */
static bool destroy_one(meshcoll_t *h, bool dropped)
{
    mc_job_t *const job = h->job;
    mc_job_lock(job);
    if (dropped)
        mc_group_drop(h);
    if (!has_others(h)) {
        mc_job_unlock(job);
        return false;
    }
    mc_diagnose_report(h);
    if (!h->ranks.job_rank)
        forget_oob(job);
    mc_jobs_reopen(job);
    const uint32_t n = close_all(h);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running: they go on, until the last mesh "
                "that shares its connections is destroyed; wait for them first",
                n);
    forget_group(h, dropped);
    mc_handles_sweep(job);
    (void)mc_job_leave(job, MESHCOLL_OK);
    return true;
}

/* The last of them ------------------------------------------------------------------------------- */

/* The result goes to memory that exists: a rank that cannot allocate would leave its peers
 * waiting. It lies behind the addresses, which a progress thread may need meanwhile: for the answer to
 * a message that nobody receives. */
static void oob_barrier(const mc_job_t *job)
{
    const char one = 1;
    if (job->oob.allgather)
        job->oob.allgather(job->oob.context, &one,
                           job->connections.addresses +
                               (size_t)job->mesh.size * job->connections.address_stride,
                           sizeof one);
}

static bool any_in_callbacks(const mc_job_t *job, const meshcoll_t *from)
{
    const meshcoll_t *h = job->meshes;
    while (h &&
           ((from && !mc_mesh_is_of(h, from)) || h->n_restricted <= (uint32_t)mc_group_is_open(h)))
        h = h->entry.next;
    return h;
}

/* Other threads may be in callbacks of requests that are complete, also of what was made from `from`, which is closed
 * with it; NULL: of all meshes of the job. */
static void await_callbacks(mc_job_t *job, const meshcoll_t *from)
{
    mc_job_lock(job);
    while (any_in_callbacks(job, from)) {
        (void)mc_job_leave(job, MESHCOLL_OK);
        sched_yield();
        mc_job_lock(job);
    }
    (void)mc_job_leave(job, MESHCOLL_OK);
}

static bool is_aborted(const mc_job_t *job)
{
    mc_news_t news;
    return job->monitor && mc_news_fatal(mc_monitor_board(job->monitor), &news) &&
           news.status == MESHCOLL_ERR_ABORTED;
}

/* The wait for all ranks, among what runs on the job: so it has a row in status, and the time limit of its mesh. */
typedef struct {
    meshcoll_request_t request; /* first */
    bool over;
} farewell_t;

static int look(meshcoll_request_t *r, uint32_t events)
{
    (void)events;
    return ((const farewell_t *)r)->over ? MESHCOLL_OK : MESHCOLL_IN_PROGRESS;
}

static void describe(const meshcoll_request_t *r, mc_wait_t *wait)
{
    (void)r;
    wait->kind = MC_WAIT_DESTROY;
    wait->awaits = MC_AWAITS_ALL;
}

static const mc_request_kind_t farewell_kind = {
    .is_internal = true, .advance = look, .describe = describe};

/* Between two looks at the monitor: peers may still need this rank to progress. */
static void serve_others(mc_job_t *job)
{
    mc_job_lock(job);
    (void)mc_job_progress(job);
    mc_job_check_peers(job);
    (void)mc_job_leave(job, MESHCOLL_OK);
}

static int await_monitors(meshcoll_t *mesh)
{
    mc_job_t *const job = mesh->job;
    farewell_t f = {
        .request = {
            .mesh = mesh, .kind = &farewell_kind, .running = true, .status = MESHCOLL_IN_PROGRESS}};
    int met = mc_monitor_barrier(job->monitor, 0);
    if (met != MESHCOLL_IN_PROGRESS)
        return met;
    mc_job_lock(job);
    if (job->failure.status)
        f.request.running = false;
    else
        mc_busy_enlist(job, &f.request);
    mc_job_unlock(job);
    while ((met = mc_monitor_barrier(job->monitor, MC_SLEEP_MS)) == MESHCOLL_IN_PROGRESS)
        serve_others(job);
    mc_job_lock(job); /* until it has ended: other threads progress it, too */
    for (f.over = true; f.request.running;)
        (void)mc_job_progress(job);
    (void)mc_job_leave(job, MESHCOLL_OK);
    return met;
}

/* Waits for all ranks, unless the job has failed. The caller's allgather cannot be interrupted, and must be called by
 * all ranks alike, so that it serves only where the monitors cannot. */
static void meet(meshcoll_t *mesh)
{
    mc_job_t *const job = mesh->job;
    const int met = job->monitor ? await_monitors(mesh) : MESHCOLL_ERR_UNSUPPORTED;
    if (met == MESHCOLL_ERR_UNSUPPORTED && !is_aborted(job))
        oob_barrier(job);
    mc_job_lock(job);
    mc_failure_take_news(job);
    (void)mc_job_leave(job, MESHCOLL_OK);
}

/* Peers hear of a failure a moment later than others. UCX logs an error, and some of its versions assert, where a
 * connection that is used or being made closes: so it stays open until all that wait have heard. */
static void let_others_hear(const mc_job_t *job)
{
    bool connects = false;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        connects |= job->connections.transport[d] && job->connections.transport[d]->greets;
    const double left = job->failure.at + HEAR_SECONDS - mc_now();
    if (job->failure.status && connects && left > 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * left)}, NULL);
}

/* A rank that may still be writing to buffers of calls that failed; -1: none is. */
static int32_t find_writer(const mc_job_t *job)
{
    int32_t rank = -1;
    for (int32_t d = 0; d < job->mesh.ndims && job->failure.status && rank < 0; d++) {
        mc_transport_t *const t = job->connections.transport[d];
        rank = t && t->ops->writer ? t->ops->writer(t) : -1;
        rank = rank < 0 ? -1 : mc_transport_known_as(t, rank);
    }
    return rank;
}

/* The buffers are the caller's when the mesh is gone: waits for ranks that write to them, which take microseconds
 * unless they are stopped, and no longer than calls may take. */
static void await_writers(const meshcoll_t *mesh)
{
    mc_notice_t notice = mc_notice_begin();
    const double limit = mesh->timeout_ms > 0 ? (double)mesh->timeout_ms / 1e3 : INFINITY;
    const int32_t own = mc_comm_rank_of(&mesh->job->order, mesh->job->rank);
    int32_t rank;
    double waited = 0;
    while ((rank = find_writer(mesh->job)) >= 0 && waited < limit) {
        if (mc_notice_due(&notice, &waited))
            mc_log(MC_LOG_WARN,
                   "rank %d has waited %.0f s in meshcoll_destroy for rank %d, which is stopped in "
                   "the middle of a write to this rank's memory: let it go on, or end it",
                   own, waited, rank);
        nanosleep(&(struct timespec){.tv_nsec = WRITER_NAP_NS}, NULL);
    }
    if (rank >= 0)
        mc_log(MC_LOG_WARN,
               "rank %d has destroyed its mesh, though rank %d is stopped in the middle of a write "
               "to this rank's memory, for longer than the time limit of %g s: when it goes on, it "
               "may still write to the output of the call that failed",
               own, rank, limit);
}

static void destroy_last(meshcoll_t *mesh, bool dropped)
{
    mc_job_t *const job = mesh->job;
    /* No rank closes a transport that a peer still sends through. Where the job has failed there are no
     * messages left to lose, and some rank may never come. */
    meet(mesh);
    await_callbacks(job, NULL);
    mc_greet_finish(job);
    await_writers(mesh);
    let_others_hear(job);
    mc_threads_close(job);
    mc_diagnose_report(mesh);
    if (job->free_context)
        job->free_context(job->oob.context);
    forget_group(mesh, dropped);
    for (meshcoll_t *h = job->meshes; h; h = h->entry.next)
        if (h != mesh && h->entry.state == MC_MESH_OPEN)
            h->entry.state = MC_MESH_TAKEN;
    mc_job_free(job);
}

static const mc_request_kind_t parting_kind = {MC_CACHED_RUN, .is_internal = true};

/* Begins a barrier that nobody waits for, however long it takes. It keeps the mesh. */
static void tell_others(meshcoll_t *mesh)
{
    meshcoll_request_t *r;
    if (meshcoll_ibarrier(mesh, &r))
        return;
    mc_lock(mesh);
    if (r->running) {
        r->kind = &parting_kind;
        r->watched.limit = -1;
    }
    (void)mc_leave(mesh, MESHCOLL_OK);
    meshcoll_free(r);
}

/* No rank frees memory of a GPU that a peer's kernels still use, or has open: peers' memory is closed when this rank's
 * kernels are complete, and its own is freed with the mesh, when all ranks have destroyed it. With the last mesh all
 * is closed before the ranks meet: of what was made from others and not destroyed, ranks know different parts. */
static void settle_gpu(meshcoll_t *mesh)
{
    const mc_device_ops_t *const device = mesh->job->device;
    mc_lock(mesh);
    const bool last = !has_others(mesh), dropped = mc_group_is_open(mesh);
    for (meshcoll_t *h = mesh->job->meshes; h; h = h->entry.next)
        if (h->gpu && mc_mesh_is_of(h, mesh))
            device->await(h);
    for (meshcoll_t *h = mesh->job->meshes; h; h = h->entry.next)
        if (h->gpu && !mesh->job->failure.status && !dropped && (last || h == mesh))
            device->unmap(h);
    (void)mc_leave(mesh, MESHCOLL_OK);
    if (mesh->gpu && !mesh->job->failure.status && !dropped && !last)
        tell_others(mesh);
}

/* It was destroyed with the mesh that it was made from, if only from the caller's view; or it is the parent's of this
 * process. */
static void destroy_gone(meshcoll_t *h)
{
    mc_job_t *const job = h->job;
    if (mc_handle_is_buried(h)) {
        mc_handle_unbury(h);
        return;
    }
    if (job->unusable)
        return; /* the parent's */
    mc_job_lock(job);
    h->entry.state = MC_MESH_CLOSED;
    mc_handles_sweep(job);
    (void)mc_job_leave(job, MESHCOLL_OK);
}

/* In a callback or a hook, which must not wait: for kernels, or with the last mesh for all ranks. */
static bool must_wait(const meshcoll_t *mesh)
{
    mc_lock(mesh);
    const bool waits = mesh->gpu || !has_others(mesh);
    mc_unlock(mesh);
    if (waits) {
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy in a callback or a progress hook: %s, so it stays: destroy it "
                "when the callback has returned",
                mesh->gpu ? "kernels of the mesh may still run"
                          : "the end of the last mesh waits for all ranks");
        mc_log(MC_LOG_WARN, "%s", meshcoll_last_error());
    }
    return waits;
}

void meshcoll_destroy(meshcoll_t *mesh)
{
    const bool inside = mc_callback_is_inside();
    if (!mesh)
        return;
    if (mesh->entry.state == MC_MESH_TAKEN || mesh->job->unusable) {
        destroy_gone(mesh);
        return;
    }
    if (inside && must_wait(mesh))
        return;
    if (!inside) {
        await_callbacks(mesh->job, mesh);
        settle_gpu(mesh);
    }
    mc_jobs_close(mesh->job);
    const bool dropped = mc_group_is_open(mesh);
    if (!destroy_one(mesh, dropped))
        destroy_last(mesh, dropped);
    mc_callbacks_run();
}
