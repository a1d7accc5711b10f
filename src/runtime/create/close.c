#include "runtime/create/close.h"

#include "runtime/call/group.h"
#include "runtime/connect/greet.h"
#include "runtime/explain/explain.h"
#include "runtime/message/transfer.h"
#include "runtime/monitor/monitor.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/request/leads.h"
#include "runtime/request/served.h"
#include "runtime/status/serve.h"
#include "runtime/waits/board.h"

#include <sched.h>
#include <stdlib.h>

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

void mc_handle_free(meshcoll_t *h)
{
    mc_busy_leave(h);
    mc_threads_close(h);
    mc_serve_stop(h);
    if (!h->parent)
        mc_monitor_close(h->monitor);
    mc_serve_close(h);
    mc_waits_close(h);
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        if (h->transport[d])
            h->transport[d]->ops->close(h->transport[d]);
    mc_greet_free(h);
    mc_messages_free(h);
    mc_lead_close(h);
    const uint32_t n = give_up(h->all);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running and were cancelled; the contents "
                "of their buffers are undefined",
                n);
    mc_explain_destroy(h->explain);
    free(h->addresses);
    free(h->peer);
    free(h->own_counts);
    mc_calls_free_memory(h);
    mc_group_free(h);
    free(h->machine);
    free(h->member);
    mc_order_free(&h->order);
    mc_settings_free(&h->settings);
    free(h);
}

static void leave_parent(meshcoll_t *h)
{
    if (!h->parent)
        return;
    meshcoll_t **at = &h->parent->children;
    while (*at != h)
        at = &(*at)->sibling;
    *at = h->sibling;
}

void mc_handle_close(meshcoll_t *h)
{
    if (!h)
        return;
    while (h->children)
        mc_handle_close(h->children);
    leave_parent(h);
    mc_threads_close(h);
    mc_calls_forget(h);
    if (h->group_open)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: a group was open; its %u calls were not made", h->group->n);
    if (h->free_context)
        h->free_context(h->oob.context);
    mc_handle_free(h);
}

static void finish_greetings(meshcoll_t *h)
{
    for (meshcoll_t *sub = h->children; sub; sub = sub->sibling)
        finish_greetings(sub);
    mc_greet_finish(h);
}

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

void meshcoll_destroy(meshcoll_t *mesh)
{
    if (!mesh || mc_callback_check("meshcoll_destroy"))
        return;
    await_callbacks(mesh);
    /* No rank closes a transport that a peer still sends through. Where the mesh has failed there are no
     * messages left to lose, and some rank may never come. */
    if (mesh->parent)
        (void)meshcoll_barrier(mesh->parent);
    else
        meet(mesh);
    finish_greetings(mesh);
    mc_threads_close(mesh);
    if (mesh->explain)
        mc_explain_print(mesh);
    mc_handle_close(mesh);
    mc_callbacks_run();
}
