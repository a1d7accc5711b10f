#include "runtime/create/close.h"

#include "runtime/call/group.h"
#include "runtime/connect/greet.h"
#include "runtime/explain/explain.h"
#include "runtime/gpu/open.h"
#include "runtime/launch/close.h"
#include "runtime/message/talk.h"
#include "runtime/monitor/monitor.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/proxy/proxy.h"
#include "runtime/request/leads.h"
#include "runtime/request/served.h"
#include "runtime/status/serve.h"
#include "runtime/waits/board.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define HEAR_SECONDS 0.25

/* Ends the library's own operations that still run, before the requests that wait for them. */
static void give_up_internal(meshcoll_request_t *list)
{
    for (meshcoll_request_t *r = list; r; r = r->next_of_all)
        if (r->running && r->internal) {
            r->mesh = NULL;
            r->status = MESHCOLL_ERR_INVALID_ARG;
            r->notify(r);
        }
}

/* Detaches the requests, which belong to the user and outlive the handle. Returns how many were
 * running; nothing writes to their buffers any more. */
static uint32_t give_up(meshcoll_request_t *list)
{
    uint32_t n = 0;
    give_up_internal(list);
    for (meshcoll_request_t *r = list, *next; r; r = next) {
        next = r->next_of_all;
        n += r->running;
        r->mesh = NULL;
        if (r->running)
            r->status = MESHCOLL_ERR_INVALID_ARG;
        if (r->running && r->notify)
            mc_callback_due(r); /* called when the mesh is gone */
        else
            mc_request_finish(r);
    }
    return n;
}

/* Frees what is its own; returns how many requests were running. */
static uint32_t free_own(meshcoll_t *h)
{
    mc_waits_close(h);
    mc_messages_free(h);
    mc_lead_close(h);
    const uint32_t n = give_up(h->all);
    mc_gpu_close(h);
    mc_explain_destroy(h->explain);
    free(h->own_counts);
    mc_calls_free_memory(h);
    mc_group_free(h);
    free(h->machine);
    free(h->root_rank);
    free(h->by_root);
    mc_order_free(&h->order);
    free(h);
    return n;
}

static uint32_t free_made(meshcoll_t *list)
{
    uint32_t n = 0;
    for (meshcoll_t *h = list, *next; h; h = next) {
        next = h->sibling;
        n += free_made(h->children);
        mc_calls_forget(h);
        n += free_own(h);
    }
    return n;
}

/* What the family shares, when nothing uses it any more. */
static uint32_t free_root(meshcoll_t *h)
{
    uint32_t n = 0;
    mc_busy_leave(h);
    mc_proxy_close(h);
    mc_serve_stop(h);
    mc_monitor_close(h->monitor);
    mc_serve_close(h);
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        if (h->transport[d])
            h->transport[d]->ops->close(h->transport[d]);
    mc_greet_free(h);
    n += free_made(h->children);
    n += free_made(h->lingering);
    mc_talk_free(h);
    free(h->family);
    free(h->addresses);
    free(h->peer);
    mc_settings_free(&h->settings);
    return n;
}

static void forget_threads(meshcoll_t *list)
{
    for (meshcoll_t *h = list; h; h = h->sibling) {
        h->threads = NULL;
        forget_threads(h->children);
    }
}

/* Its threads must have come to an end before what they use. */
static void close_threads(meshcoll_t *root)
{
    mc_threads_close(root);
    forget_threads(root->children);
    forget_threads(root->lingering);
}

void mc_handle_free(meshcoll_t *h)
{
    uint32_t n = 0;
    if (h->root == h) {
        close_threads(h);
        n = free_root(h);
    }
    n += free_own(h);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running and were cancelled; the contents "
                "of their buffers are undefined",
                n);
}

static void forget_group(const meshcoll_t *h)
{
    if (h->group_open)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: a group was open; its %u calls were not made", h->group->n);
}

static void close_root(meshcoll_t *h)
{
    close_threads(h);
    mc_calls_forget(h);
    forget_group(h);
    if (h->free_context)
        h->free_context(h->oob.context);
    mc_handle_free(h);
}

/* Sub-meshes and groups ------------------------------------------------------------------------ */

/* Requests that run, without those of the library's own. */
static uint32_t count_running(const meshcoll_t *h)
{
    uint32_t n = 0;
    for (const meshcoll_request_t *r = h->all; r; r = r->next_of_all)
        n += r->running && !r->internal;
    return n;
}

static bool any_runs(const meshcoll_t *h)
{
    const meshcoll_request_t *r = h->all;
    while (r && !r->running)
        r = r->next_of_all;
    return r;
}

/* May the transports of the root, which stay open, still use its memory? */
static bool is_in_flight(const meshcoll_t *h)
{
    return h->root->broken || h->n_special > 0 || any_runs(h) || !mc_messages_idle(h);
}

/* The context is free as soon as nothing is in flight in it on this rank. */
static void free_sub(meshcoll_t *h)
{
    mc_context_return(h->root->family, h->context, h->creation);
    mc_talk_leave(h);
    mc_calls_forget(h);
    (void)free_own(h);
}

void mc_handles_sweep(meshcoll_t *root)
{
    for (meshcoll_t **at = &root->lingering, *h; (h = *at);) {
        if (is_in_flight(h)) {
            at = &h->sibling;
            continue;
        }
        *at = h->sibling;
        free_sub(h);
    }
}

static void leave_parent(meshcoll_t *h)
{
    meshcoll_t **at = &h->parent->children;
    while (*at != h)
        at = &(*at)->sibling;
    *at = h->sibling;
}

/* What is in flight keeps the handle until it is complete, or the root is destroyed. Returns how many
 * requests run. */
static uint32_t close_sub(meshcoll_t *h)
{
    uint32_t n = count_running(h);
    while (h->children)
        n += close_sub(h->children);
    leave_parent(h);
    mc_waits_close(h);
    h->parent = NULL;
    h->sibling = h->root->lingering;
    h->root->lingering = h;
    return n;
}

static void destroy_sub(meshcoll_t *h)
{
    meshcoll_t *const root = h->root;
    const bool dropped = h->group_open;
    if (dropped) {
        h->group_open = false;
        h->n_special--;
    }
    if (!root->broken)
        (void)meshcoll_barrier(h);
    mc_lock(root);
    const uint32_t n = close_sub(h);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running: they go on, until the mesh that "
                "this one was made from is destroyed; wait for them first",
                n);
    if (dropped)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: a group was open; its %u calls were not made", h->group->n);
    mc_handles_sweep(root);
    (void)mc_leave(root, MESHCOLL_OK);
}

/* Destroying ----------------------------------------------------------------------------------- */

/* The result goes to memory that exists: a rank that cannot allocate would leave its peers
 * waiting. It lies behind the addresses, which a progress thread may need meanwhile: for the answer to
 * a message that nobody receives. */
static void oob_barrier(const meshcoll_t *h)
{
    const char one = 1;
    if (h->oob.allgather)
        h->oob.allgather(h->oob.context, &one,
                         h->addresses + (size_t)h->mesh.size * h->address_stride, sizeof one);
}

/* Other threads may be in callbacks of requests that are complete, also of sub-meshes, which are
 * closed with the mesh. */
static void await_callbacks(const meshcoll_t *h)
{
    for (const meshcoll_t *sub = h->children; sub; sub = sub->sibling)
        await_callbacks(sub);
    for (const meshcoll_t *sub = h->lingering; sub; sub = sub->sibling)
        await_callbacks(sub);
    mc_lock(h);
    while (h->n_special > (uint32_t)h->group_open) {
        (void)mc_leave(h, MESHCOLL_OK);
        sched_yield();
        mc_lock(h);
    }
    (void)mc_leave(h, MESHCOLL_OK);
}

static bool is_aborted(const meshcoll_t *h)
{
    mc_news_t news;
    return h->monitor && mc_news_fatal(mc_monitor_board(h->monitor), &news) &&
           news.status == MESHCOLL_ERR_ABORTED;
}

/* Waits for all ranks, unless the mesh has failed. The caller's allgather cannot be interrupted, and must be called by
 * all ranks alike, so that it serves only where the monitors cannot. */
static void meet(meshcoll_t *h)
{
    const int met = h->monitor ? mc_monitor_barrier(h->monitor) : MESHCOLL_ERR_UNSUPPORTED;
    if (met == MESHCOLL_ERR_UNSUPPORTED && !is_aborted(h))
        oob_barrier(h);
    mc_lock(h);
    mc_failure_hear(h);
    (void)mc_leave(h, MESHCOLL_OK);
}

/* Peers hear of a failure a moment later than others. UCX logs an error, and some of its versions assert, where a
 * connection that is used or being made closes: so it stays open until all that wait have heard. */
static void let_others_hear(const meshcoll_t *h)
{
    bool connects = false;
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        connects |= h->transport[d] && h->transport[d]->greets;
    const double left = h->broke_at + HEAR_SECONDS - mc_now();
    if (h->broken && connects && left > 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * left)}, NULL);
}

static void destroy_root(meshcoll_t *mesh)
{
    /* No rank closes a transport that a peer still sends through. Where the mesh has failed there are no
     * messages left to lose, and some rank may never come. */
    meet(mesh);
    mc_greet_finish(mesh);
    let_others_hear(mesh);
    mc_threads_close(mesh);
    if (mesh->explain)
        mc_explain_print(mesh);
    close_root(mesh);
}

/* No rank frees memory of a GPU that a peer's kernels still use, or has open. Of what was made from the
 * mesh and not destroyed, ranks know different parts. */
static void settle_gpu(meshcoll_t *mesh)
{
    mc_lock(mesh);
    mc_gpu_await_all(mesh);
    (void)mc_leave(mesh, MESHCOLL_OK);
    if (mesh->gpu && !mesh->root->broken && !mesh->group_open && !meshcoll_barrier(mesh))
        mc_gpu_unmap(mesh);
}

void meshcoll_destroy(meshcoll_t *mesh)
{
    if (!mesh || mc_callback_check("meshcoll_destroy"))
        return;
    await_callbacks(mesh);
    settle_gpu(mesh);
    if (mesh->root == mesh)
        destroy_root(mesh);
    else
        destroy_sub(mesh);
    mc_callbacks_run();
}
