#include "runtime/message/transfer.h"

#include "runtime/connect/connections.h"
#include "runtime/handle/wait.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/flush.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mc_messages messages_t;

/* State ----------------------------------------------------------------------------------------- */

int mc_messages_create(meshcoll_t *h)
{
    messages_t *const m = calloc(1, sizeof *m);
    if (m)
        m->flow = calloc((size_t)h->mesh.size, sizeof(mc_flow_t *));
    if (!m || !m->flow) {
        free(m);
        return mc_fail_memory("tagged messages");
    }
    h->messages = m;
    return MESHCOLL_OK;
}

bool mc_messages_idle(const meshcoll_t *h)
{
    const messages_t *const m = h->messages;
    bool idle = !m || (!m->arrived.first && !m->flushing.first);
    for (mc_list_node_t *n = m ? m->unexpected.first : NULL; n; n = n->next)
        idle = idle && (!mc_arrival_of(n)->data || mc_arrival_of(n)->complete);
    for (int32_t r = 0; m && r < h->mesh.size; r++)
        idle = idle && !(m->flow[r] && m->flow[r]->crediting);
    return idle;
}

static void free_arrival(mc_arrival_t *a)
{
    if (!a)
        return;
    free(a->data);
    free(a);
}

void mc_arrivals_free(const mc_list_t *list)
{
    for (mc_list_node_t *n = list->first, *next; n; n = next) {
        next = n->next;
        free_arrival(mc_arrival_of(n));
    }
}

void mc_messages_free(meshcoll_t *h)
{
    messages_t *const m = h->messages;
    if (!m)
        return;
    h->messages = NULL;
    mc_arrivals_free(&m->arrived);
    mc_arrivals_free(&m->unexpected);
    mc_arrivals_free(&m->spare_arrivals);
    mc_hash_free(&m->unexpected_by_key);
    mc_hash_free(&m->posted);
    for (mc_transfer_t *t; (t = mc_transfer_of(m->spare.first));) {
        mc_list_remove(&t->node);
        free(t);
    }
    for (int32_t r = 0; r < h->mesh.size; r++) {
        if (m->flow[r])
            mc_hash_free(&m->flow[r]->offered);
        free(m->flow[r]);
    }
    free(m->flow);
    free(m);
}

/* Transfers ------------------------------------------------------------------------------------- */

/* Frees a transfer, or returns it to the list of spare ones while the handle exists. */
static void release(meshcoll_request_t *r)
{
    mc_transfer_t *const t = (mc_transfer_t *)r;
    meshcoll_t *const h = r->mesh;
    free_arrival(t->arrival); /* not NULL only if the mesh has failed or is being destroyed */
    if (h)
        mc_list_remove(&r->of_mesh);
    if (!h || !h->messages) {
        free(t);
        return;
    }
    r->taken = r->released = false;
    mc_list_remove(&t->node); /* not in one unless the mesh has failed */
    mc_list_append(&h->messages->spare, &t->node);
}

static void describe(const meshcoll_request_t *r, mc_wait_t *wait)
{
    const mc_transfer_t *const t = (const mc_transfer_t *)r;
    const bool matched = t->got.bytes > 0 || t->arrival;
    wait->kind = t->sends ? MC_WAIT_SEND : MC_WAIT_RECV;
    wait->awaits = t->flush.transports ? MC_AWAITS_FLUSH
                   : t->sends          ? MC_AWAITS_SEND
                                       : MC_AWAITS_RECEIVE;
    wait->tag = t->tag;
    wait->bytes = t->bytes;
    wait->message = t->got.bytes;
    wait->peer = matched ? t->from : t->peer;
}

static const mc_request_kind_t kind = {.describe = describe, .release = release};

mc_transfer_t *mc_transfer_take(meshcoll_t *h)
{
    messages_t *const m = h->messages;
    mc_transfer_t *const spare = mc_transfer_of(m->spare.last);
    mc_transfer_t *const t = spare ? spare : malloc(sizeof *t);
    if (!t) {
        mc_fail_memory("a message");
        return NULL;
    }
    if (spare)
        mc_list_remove(&t->node);
    memset(t, 0, sizeof *t);
    t->request.kind = &kind;
    t->request.taken = t->request.active = true;
    t->request.status = MESHCOLL_IN_PROGRESS;
    t->announce.owner = t->data.owner = t;
    mc_request_enlist(h, &t->request);
    return t;
}

void mc_transfer_started(meshcoll_t *h, mc_transfer_t *t)
{
    mc_job_wake_peers(h->job);
    if (h->job->threads)
        mc_threads_wake(h->job->threads);
    t->request.running = t->request.status == MESHCOLL_IN_PROGRESS;
    if (t->request.running)
        mc_busy_enlist(h->job, &t->request);
}

/* Returns ERR_TRUNCATED if the message is longer than the buffer of its receive. */
static int status_of(const meshcoll_t *h, const mc_transfer_t *t)
{
    if (t->got.bytes <= t->bytes)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_TRUNCATED,
        "meshcoll_recv: a message of %zu bytes from rank %d with tag %d is longer than its "
        "buffer of %zu: receive it with room for all",
        (size_t)t->got.bytes, mc_comm_rank_of(&h->order, t->from), t->got.tag, t->bytes);
}

void mc_transfer_complete(const meshcoll_t *h, mc_transfer_t *t)
{
    if (t->flow)
        t->flow->link->wanted--;
    t->flow = NULL;
    t->request.status = status_of(h, t);
    if (t->request.running)
        mc_ready_mark(&t->request.ready);
    if (t->request.status) {
        snprintf(t->why, sizeof t->why, "%s", meshcoll_last_error());
        t->request.why = t->why;
    }
}

/* Flushing -------------------------------------------------------------------------------------- */

int mc_transfer_flush(meshcoll_t *h, mc_transfer_t *t)
{
    const mc_transport_t *const transport = t->flow->link->transport;
    const int status =
        mc_flush_begin(&t->request, transport->ops->flush ? transport->place : 0, &t->flush);
    if (status == MESHCOLL_IN_PROGRESS)
        mc_list_append(&h->messages->flushing, &t->node);
    else if (status == MESHCOLL_OK)
        mc_transfer_complete(h, t);
    return status < 0 ? status : MESHCOLL_OK;
}

int mc_transfers_flushed(meshcoll_t *h, uint32_t events)
{
    int n = 0;
    for (mc_list_node_t *node = h->messages->flushing.first, *next; node; node = next) {
        mc_transfer_t *const t = mc_transfer_of(node);
        next = node->next;
        if (mc_flush_check(&t->request, &t->flush, events) == MESHCOLL_IN_PROGRESS)
            continue;
        mc_list_remove(node);
        mc_transfer_complete(h, t);
        n++;
    }
    return n;
}

/* Arrivals -------------------------------------------------------------------------------------- */

mc_arrival_t *mc_arrival_take(messages_t *m)
{
    mc_arrival_t *const spare = m ? mc_arrival_of(m->spare_arrivals.last) : NULL;
    mc_arrival_t *const a = spare ? spare : malloc(sizeof *a);
    if (!a)
        return NULL;
    if (spare)
        mc_list_remove(&a->node);
    memset(a, 0, sizeof *a);
    a->part.owner = a;
    return a;
}

void mc_arrival_free(messages_t *m, mc_arrival_t *a)
{
    free(a->data);
    a->data = NULL;
    mc_list_move(&m->spare_arrivals, &a->node);
}

/* Connections ----------------------------------------------------------------------------------- */

/* Connects to a rank without a greeting (connect/greet.h). A greeting ensures that both ends make progress until
 * the connection works. Here the requests ensure it: a send completes only after its transport has sent the
 * message, which needs a working connection, and a receive completes after the message has arrived. */
static int create_flow(meshcoll_t *h, int32_t rank, mc_flow_t **flow)
{
    mc_peer_t *link;
    const int status = mc_handle_link(h, rank, &link);
    if (status)
        return status;
    if (!link->transport->ops->listen)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "the transport to rank %d has no tagged messages",
                       mc_comm_rank_of(&h->order, rank));
    mc_flow_t *const f = calloc(1, sizeof *f);
    if (!f)
        return mc_fail_memory("tagged messages");
    *f = (mc_flow_t){.link = link,
                     .rank = rank,
                     .credits = MC_MESSAGE_WINDOW,
                     .left = MC_MESSAGE_WINDOW,
                     .credit = {.owner = f}};
    *flow = h->messages->flow[rank] = f;
    return MESHCOLL_OK;
}

int mc_flow_find(meshcoll_t *h, int32_t rank, mc_flow_t **flow)
{
    mc_flow_t *const known = h->messages->flow[rank];
    if (!known)
        return create_flow(h, rank, flow);
    *flow = known;
    return MESHCOLL_OK;
}

/* Messages of the transport --------------------------------------------------------------------- */

/* Prepares a message of one span, whose completion goes to the queue of the handle. */
static mc_message_t message_of(meshcoll_t *h, mc_part_t *part, uint64_t tag, void *at, size_t bytes)
{
    part->span = (mc_span_t){at, bytes};
    part->io.finished = &h->messages->finished;
    return (mc_message_t){.tag = tag, .span = &part->span, .n_spans = 1, .bytes = bytes};
}

int mc_part_send(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, uint64_t tag, void *at,
                 size_t bytes)
{
    const mc_message_t m = message_of(h, part, tag, at, bytes);
    mc_flow_count(h, flow, bytes);
    return flow->link->transport->ops->send(flow->link, &m, &part->io);
}

int mc_part_recv(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, uint64_t tag, void *at,
                 size_t bytes)
{
    const mc_message_t m = message_of(h, part, tag, at, bytes);
    return flow->link->transport->ops->recv(flow->link, &m, &part->io);
}

int mc_header_send(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, mc_header_t *header)
{
    const uint64_t tag =
        mc_tag(mc_job_rank(h, h->rank), MC_TAG_MESSAGE, 0) | mc_tag_context(h->context.number);
    header->creation = h->context.creation;
    const mc_message_t m = message_of(h, part, tag, header, sizeof *header);
    return flow->link->transport->ops->send(flow->link, &m, &part->io);
}
