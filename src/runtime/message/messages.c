/* The public calls of tagged messages, and their progress. */
#include "runtime/connect/connections.h"
#include "runtime/message/receive.h"
#include "runtime/message/send.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct mc_messages messages_t;

/* Progress -------------------------------------------------------------------------------------- */

static bool hear(void *context, uint64_t tag, const void *header)
{
    const meshcoll_t *const h = context;
    messages_t *const m = h->messages;
    mc_arrival_t *const a = header ? mc_arrival_take(m) : NULL;
    if (!a) {
        m->failed = header ? mc_fail_memory("a header") : MESHCOLL_ERR_TRANSPORT;
        snprintf(m->why, sizeof m->why, "%s", meshcoll_last_error());
        return !header;
    }
    a->source = mc_tag_source(tag);
    memcpy(&a->header, header, sizeof a->header);
    mc_arrivals_append(&m->arrived, a);
    return true;
}

/* Every header is of another rank, and its text is checked before it is used. */
static int arrive(meshcoll_t *h, mc_arrival_t *a)
{
    mc_flow_t *flow;
    int status = MESHCOLL_OK;
    if (a->source < 0 || a->source >= h->mesh.size || a->source == h->rank ||
        a->header.kind > MC_HEADER_CREDIT || a->header.tag < 0 || a->header.bytes > SIZE_MAX / 2)
        status = mc_fail(MESHCOLL_ERR_TRANSPORT, "a header from rank %d makes no sense", a->source);
    if (!status)
        status = mc_flow_find(h, a->source, &flow);
    if (!status && a->header.kind <= MC_HEADER_OFFER)
        return mc_receive_arrival(h, flow, a);
    if (!status && a->header.kind == MC_HEADER_READY)
        status = mc_send_ready(h, flow, &a->header);
    if (!status)
        status = mc_send_credits(h, flow, a->header.credits);
    mc_arrival_free(h->messages, a);
    return status;
}

static int follow(meshcoll_t *h, mc_io_t *io)
{
    mc_part_t *const part = (mc_part_t *)io;
    return io->status < 0 ? io->status : part->done(h, part->owner);
}

/* Returns the number of events, or an error. */
static int move_all(meshcoll_t *h)
{
    messages_t *const m = h->messages;
    int n = 0, status = MESHCOLL_OK;
    if (m->failed)
        return mc_fail(m->failed, "%s", m->why);
    for (; m->arrived.first && !status; n++)
        status = arrive(h, mc_arrivals_remove(&m->arrived, &m->arrived.first));
    for (mc_io_t *io; !status && (io = mc_io_pop(&m->finished)); n++)
        status = follow(h, io);
    if (status || !m->flushing.first)
        return status ? status : n;
    status = mc_transfers_flushed(h, (uint32_t)n);
    return status < 0 ? status : n + status;
}

static uint32_t move(meshcoll_t *h)
{
    if (h->broken)
        return 0;
    const int n = move_all(h);
    if (n < 0)
        mc_failure_break(h, n);
    else if (n > 0)
        mc_handle_tell(h);
    return n < 0 ? 1 : (uint32_t)n;
}

/* Listening ------------------------------------------------------------------------------------- */

static int open_messages(meshcoll_t *h)
{
    if (h->messages)
        return MESHCOLL_OK;
    int status = mc_messages_create(h);
    if (status)
        return status;
    const mc_listener_t listener = {.hear = hear, .context = h};
    for (int32_t d = 0; d < h->mesh.ndims && !status; d++) {
        mc_transport_t *const t = h->transport[d];
        if (!t || !t->ops->listen)
            continue;
        mc_handle_poll(h, t);
        status = t->ops->listen(t, &listener);
    }
    h->move_messages = move;
    if (status)
        mc_failure_break(h, status);
    return status;
}

/* Connects to all ranks that cannot be heard otherwise. */
static int hear_all(meshcoll_t *h)
{
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < h->mesh.size && !h->messages->from_all && !status; r++) {
        mc_flow_t *flow;
        const mc_transport_t *const t =
            r == h->rank ? NULL : h->transport[mc_mesh_level(&h->mesh, h->rank, r)];
        if (t && t->hears_connected)
            status = mc_flow_find(h, r, &flow);
    }
    h->messages->from_all = status == MESHCOLL_OK;
    return status;
}

/* Calls ----------------------------------------------------------------------------------------- */

/* A call's arguments, as the caller gave them. */
typedef struct {
    const char *name;
    bool sends;
    void *buffer;
    size_t count;
    meshcoll_datatype_t datatype;
    int peer, tag;
    meshcoll_received_t *received;
} call_t;

static int check(const meshcoll_t *h, const call_t *c)
{
    const size_t element = meshcoll_datatype_size(c->datatype);
    if (element == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: there is no datatype %d", c->name,
                       (int)c->datatype);
    if (c->count > SIZE_MAX / 2 / element)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: a count of %zu elements overflows; at most %zu", c->name, c->count,
                       SIZE_MAX / 2 / element);
    if (c->count > 0 && !c->buffer)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the buffer is NULL, but count is %zu",
                       c->name, c->count);
    const bool any_peer = !c->sends && c->peer == MESHCOLL_ANY_SOURCE;
    const bool any_tag = !c->sends && c->tag == MESHCOLL_ANY_TAG;
    if (!any_peer && (c->peer < 0 || c->peer >= h->mesh.size))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a rank from 0 to %d%s, got %d",
                       c->name, h->mesh.size - 1, c->sends ? "" : " or MESHCOLL_ANY_SOURCE",
                       c->peer);
    if (!any_tag && c->tag < 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a tag from 0 to %d%s, got %d",
                       c->name, INT_MAX, c->sends ? "" : " or MESHCOLL_ANY_TAG", c->tag);
    return MESHCOLL_OK;
}

/* Connects to the peer; to all ranks, for a receive from any. */
static int reach(meshcoll_t *h, mc_transfer_t *t)
{
    mc_flow_t *flow;
    if (t->peer == h->rank)
        return MESHCOLL_OK;
    if (t->peer == MESHCOLL_ANY_SOURCE)
        return hear_all(h);
    const int status = mc_flow_find(h, t->peer, &flow);
    if (status)
        return status;
    t->flow = flow;
    flow->link->wanted++;
    return MESHCOLL_OK;
}

static void fill(const meshcoll_t *h, const call_t *c, mc_transfer_t *t)
{
    const bool any = c->peer == MESHCOLL_ANY_SOURCE;
    t->sends = c->sends;
    t->at = c->buffer;
    t->element = meshcoll_datatype_size(c->datatype);
    t->bytes = c->count * t->element;
    t->peer = any ? MESHCOLL_ANY_SOURCE : mc_mesh_rank_of(&h->order, c->peer);
    t->tag = c->tag;
    t->received = c->received;
}

static int start(meshcoll_t *h, const call_t *c, mc_transfer_t *t)
{
    if (!c->sends)
        return mc_receive_start(h, t);
    return t->flow ? mc_send_start(h, t) : mc_receive_own(h, t);
}

/* A transfer that fails when it is started may be half done: the mesh fails with it. */
static int start_filled(meshcoll_t *h, const call_t *c, mc_transfer_t *t)
{
    fill(h, c, t);
    int status = reach(h, t);
    if (status)
        return status;
    status = start(h, c, t);
    if (status)
        mc_failure_break(h, status);
    return status;
}

static int begin(meshcoll_t *h, const call_t *c, meshcoll_request_t **request)
{
    int status = mc_failure_check(h);
    if (!status)
        status = check(h, c);
    if (!status)
        status = open_messages(h);
    mc_transfer_t *const t = status ? NULL : mc_transfer_take(h);
    if (!t)
        return status ? status : MESHCOLL_ERR_NO_MEMORY;
    status = start_filled(h, c, t);
    if (status) {
        mc_request_drop(&t->request);
        return status;
    }
    mc_handle_tell(h);
    if (h->threads)
        mc_threads_wake(h->threads);
    t->request.running = t->request.status == MESHCOLL_IN_PROGRESS;
    if (t->request.running)
        mc_busy_enlist(h, &t->request);
    *request = &t->request;
    return MESHCOLL_OK;
}

static int begin_locked(meshcoll_t *mesh, const call_t *c, meshcoll_request_t **request)
{
    if (!mesh || !request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: mesh or request is NULL", c->name);
    mc_lock(mesh);
    return mc_leave(mesh, begin(mesh, c, request));
}

static int run(meshcoll_t *mesh, const call_t *c)
{
    meshcoll_request_t *r;
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", c->name);
    mc_lock(mesh);
    int status = mesh->n_special > 0 ? mc_callback_check(c->name) : MESHCOLL_OK;
    if (!status)
        status = begin(mesh, c, &r);
    if (!status) {
        mc_request_await(r);
        status = mc_request_tell(r);
    }
    return mc_leave(mesh, status);
}

static call_t send_of(const char *name, const void *buffer, size_t count,
                      meshcoll_datatype_t datatype, int peer, int tag)
{
    return (call_t){.name = name,
                    .sends = true,
                    .buffer = (void *)buffer,
                    .count = count,
                    .datatype = datatype,
                    .peer = peer,
                    .tag = tag};
}

static call_t receive_of(const char *name, void *buffer, size_t count, meshcoll_datatype_t datatype,
                         int peer, int tag, meshcoll_received_t *received)
{
    return (call_t){.name = name,
                    .buffer = buffer,
                    .count = count,
                    .datatype = datatype,
                    .peer = peer,
                    .tag = tag,
                    .received = received};
}

int meshcoll_send_begin(meshcoll_t *mesh, const void *buffer, size_t count,
                        meshcoll_datatype_t datatype, int peer, int tag,
                        meshcoll_request_t **request)
{
    const call_t c = send_of("meshcoll_send_begin", buffer, count, datatype, peer, tag);
    return begin_locked(mesh, &c, request);
}

int meshcoll_recv_begin(meshcoll_t *mesh, void *buffer, size_t count, meshcoll_datatype_t datatype,
                        int peer, int tag, meshcoll_received_t *received,
                        meshcoll_request_t **request)
{
    const call_t c =
        receive_of("meshcoll_recv_begin", buffer, count, datatype, peer, tag, received);
    return begin_locked(mesh, &c, request);
}

int meshcoll_send(meshcoll_t *mesh, const void *buffer, size_t count, meshcoll_datatype_t datatype,
                  int peer, int tag)
{
    const call_t c = send_of("meshcoll_send", buffer, count, datatype, peer, tag);
    return run(mesh, &c);
}

int meshcoll_recv(meshcoll_t *mesh, void *buffer, size_t count, meshcoll_datatype_t datatype,
                  int peer, int tag, meshcoll_received_t *received)
{
    const call_t c = receive_of("meshcoll_recv", buffer, count, datatype, peer, tag, received);
    return run(mesh, &c);
}
