/* The public calls of tagged messages, and notes. */
#include "runtime/message/messages.h"

#include "runtime/connect/connections.h"
#include "runtime/message/transfer.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

#include <limits.h>

/* Connects to all ranks that cannot be heard otherwise. */
static int hear_all(meshcoll_t *h)
{
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < h->mesh.size && !h->messages->from_all && !status; r++) {
        mc_flow_t *flow;
        const mc_transport_t *const t = mc_handle_transport(h, r);
        if (t && t->listens_connected)
            status = mc_flow_find(h, r, &flow);
    }
    h->messages->from_all = status == MESHCOLL_OK;
    return status;
}

/* Calls ----------------------------------------------------------------------------------------- */

/* A call's arguments, as the caller gave them. A note's peer is a mesh rank. */
typedef struct {
    const char *name; /* NULL: a note */
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
    const bool as_given = !c->name || c->peer == MESHCOLL_ANY_SOURCE;
    t->sends = c->sends;
    t->is_note = !c->name;
    t->at = c->buffer;
    t->element = meshcoll_datatype_size(c->datatype);
    t->bytes = c->count * t->element;
    t->peer = as_given ? c->peer : mc_mesh_rank_of(&h->order, c->peer);
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

static int begin(meshcoll_t *h, const call_t *c, mc_transfer_t **transfer)
{
    int status = mc_failure_check(h);
    if (!status && c->name)
        status = check(h, c);
    if (!status)
        status = mc_talk_open(h);
    mc_transfer_t *const t = status ? NULL : mc_transfer_take(h);
    if (!t)
        return status ? status : MESHCOLL_ERR_NO_MEMORY;
    status = start_filled(h, c, t);
    if (status) {
        mc_request_drop(&t->request);
        return status;
    }
    mc_transfer_started(h, t);
    *transfer = t;
    return MESHCOLL_OK;
}

static int begin_locked(meshcoll_t *mesh, const call_t *c, meshcoll_request_t **request)
{
    if (!mesh || !request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: mesh or request is NULL", c->name);
    mc_transfer_t *t;
    mc_lock(mesh);
    const int status = begin(mesh, c, &t);
    if (!status)
        *request = &t->request;
    return mc_leave(mesh, status);
}

static int run(meshcoll_t *mesh, const call_t *c)
{
    mc_transfer_t *t;
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", c->name);
    mc_lock(mesh);
    int status = mesh->n_restricted > 0 ? mc_callback_check(c->name) : MESHCOLL_OK;
    if (!status)
        status = begin(mesh, c, &t);
    if (!status)
        status = mc_request_complete(&t->request);
    return mc_leave(mesh, status);
}

int meshcoll_send_begin(meshcoll_t *mesh, const void *buffer, size_t count,
                        meshcoll_datatype_t datatype, int peer, int tag,
                        meshcoll_request_t **request)
{
    const call_t c = {
        "meshcoll_send_begin", true, (void *)buffer, count, datatype, peer, tag, NULL};
    return begin_locked(mesh, &c, request);
}

int meshcoll_recv_begin(meshcoll_t *mesh, void *buffer, size_t count, meshcoll_datatype_t datatype,
                        int peer, int tag, meshcoll_received_t *received,
                        meshcoll_request_t **request)
{
    const call_t c = {"meshcoll_recv_begin", false, buffer, count, datatype, peer, tag, received};
    return begin_locked(mesh, &c, request);
}

int meshcoll_send(meshcoll_t *mesh, const void *buffer, size_t count, meshcoll_datatype_t datatype,
                  int peer, int tag)
{
    const call_t c = {"meshcoll_send", true, (void *)buffer, count, datatype, peer, tag, NULL};
    return run(mesh, &c);
}

int meshcoll_recv(meshcoll_t *mesh, void *buffer, size_t count, meshcoll_datatype_t datatype,
                  int peer, int tag, meshcoll_received_t *received)
{
    const call_t c = {"meshcoll_recv", false, buffer, count, datatype, peer, tag, received};
    return run(mesh, &c);
}

/* Notes ------------------------------------------------------------------------------------------ */

int mc_note_send(meshcoll_t *h, int32_t rank, int32_t tag, const void *note, size_t bytes,
                 mc_transfer_t **transfer)
{
    const call_t c = {NULL, true, (void *)note, bytes, MESHCOLL_UINT8, rank, tag, NULL};
    return begin(h, &c, transfer);
}

int mc_note_recv(meshcoll_t *h, int32_t rank, int32_t tag, void *note, size_t bytes,
                 mc_transfer_t **transfer)
{
    const call_t c = {NULL, false, note, bytes, MESHCOLL_UINT8, rank, tag, NULL};
    return begin(h, &c, transfer);
}

void mc_note_drop(meshcoll_t *h, mc_transfer_t *t)
{
    if (!t)
        return;
    if (t->request.running)
        mc_receive_cancel(h, t);
    mc_request_drop(&t->request);
}
