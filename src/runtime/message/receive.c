#include "runtime/message/transfer.h"

#include <stdlib.h>
#include <string.h>

typedef struct mc_messages messages_t;

/* Credits --------------------------------------------------------------------------------------- */

static int give_credits(meshcoll_t *h, mc_flow_t *flow, uint32_t n);

static int credit_done(meshcoll_t *h, void *owner)
{
    mc_flow_t *const flow = owner;
    const uint32_t behind = flow->behind;
    flow->crediting = false;
    flow->behind = 0;
    return behind > 0 ? give_credits(h, flow, behind) : MESHCOLL_OK;
}

/* Lets the peer announce n more messages. `left` was counted before. */
static int give_credits(meshcoll_t *h, mc_flow_t *flow, uint32_t n)
{
    if (flow->crediting) {
        flow->behind += n;
        return MESHCOLL_OK;
    }
    flow->header = (mc_header_t){.kind = MC_HEADER_CREDIT, .credits = n};
    flow->credit.done = credit_done;
    const int status = mc_header_send(h, flow, &flow->credit, &flow->header);
    flow->crediting = status == MESHCOLL_IN_PROGRESS;
    return status < 0 ? status : MESHCOLL_OK;
}

static int extend(meshcoll_t *h, mc_flow_t *flow, uint32_t n)
{
    flow->left += n;
    return give_credits(h, flow, n);
}

/* A message of the peer has been matched. Credits go back by the half window: one message for many. */
static int owe_credit(meshcoll_t *h, mc_flow_t *flow)
{
    if (flow->extra > 0) {
        flow->extra--;
        return MESHCOLL_OK;
    }
    if (++flow->owed < MC_MESSAGE_WINDOW / 2)
        return MESHCOLL_OK;
    const uint32_t n = flow->owed;
    flow->owed = 0;
    return extend(h, flow, n);
}

static bool may_come_from(const mc_transfer_t *receive, int32_t rank)
{
    return receive->peer == MESHCOLL_ANY_SOURCE || receive->peer == rank;
}

/* The peer may announce nothing more, and a receive waits for what it may send: lets it go on. */
static int relieve(meshcoll_t *h, mc_flow_t *flow)
{
    if (flow->left > 0 || flow->n_posted + h->messages->n_from_any == 0)
        return MESHCOLL_OK;
    const uint32_t owed = flow->owed, n = owed > 0 ? owed : MC_MESSAGE_WINDOW / 2;
    flow->owed = 0;
    flow->extra += owed > 0 ? 0 : n;
    return extend(h, flow, n);
}

/* Matching -------------------------------------------------------------------------------------- */

static uint64_t key_of(int32_t rank, bool is_note, int32_t tag)
{
    const int above = 32;
    return (uint64_t)is_note << 63 | (uint64_t)(uint32_t)rank << above | (uint32_t)tag;
}

static uint64_t key_of_arrival(const mc_arrival_t *a)
{
    return key_of(a->source, a->header.kind == MC_HEADER_NOTE, a->header.tag);
}

static bool is_of_any(const mc_transfer_t *receive)
{
    return receive->peer == MESHCOLL_ANY_SOURCE ||
           (receive->tag == MESHCOLL_ANY_TAG && !receive->is_note);
}

static bool fits(const mc_transfer_t *receive, const mc_arrival_t *a)
{
    const bool any_tag = receive->tag == MESHCOLL_ANY_TAG && !receive->is_note;
    return may_come_from(receive, a->source) &&
           receive->is_note == (a->header.kind == MC_HEADER_NOTE) &&
           (any_tag || receive->tag == a->header.tag);
}

static void watch_any(const meshcoll_t *h, bool begins)
{
    const mc_job_t *const job = h->job;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->connections.transport[d])
            job->connections.transport[d]->wanted += begins ? 1u : UINT32_MAX; /* less one */
}

/* Tells the receive what came. */
static void note(const meshcoll_t *h, mc_transfer_t *t, const mc_arrival_t *a)
{
    t->got = a->header;
    t->from = a->source;
    if (t->received)
        *t->received = (meshcoll_received_t){.source = mc_comm_rank_of(&h->order, a->source),
                                             .tag = a->header.tag,
                                             .count = a->header.bytes / t->element,
                                             .bytes = a->header.bytes};
}

static void take(mc_transfer_t *t, const void *data, uint64_t bytes)
{
    const size_t n = bytes < t->bytes ? bytes : t->bytes;
    if (n > 0)
        memcpy(t->at, data, n);
}

static void end(meshcoll_t *h, mc_transfer_t *t, mc_arrival_t *a)
{
    t->arrival = NULL;
    mc_transfer_complete(h, t);
    mc_arrival_free(h->messages, a);
}

/* Data that came before its receive, or is too long for it --------------------------------------- */

static int data_arrived(meshcoll_t *h, void *owner)
{
    mc_arrival_t *const a = owner;
    a->complete = true;
    if (a->consumer) {
        take(a->consumer, a->data, a->header.bytes);
        end(h, a->consumer, a);
    }
    return MESHCOLL_OK;
}

/* Receives the data into memory of its own. */
static int fetch(meshcoll_t *h, const mc_flow_t *flow, mc_arrival_t *a)
{
    a->data = malloc(a->header.bytes);
    if (!a->data)
        return mc_fail_memory("an unexpected message");
    a->part.done = data_arrived;
    const int status = mc_part_recv(h, flow, &a->part, mc_data_tag(h, a->source, a->header.id),
                                    a->data, a->header.bytes);
    a->complete = status == MESHCOLL_OK;
    return status < 0 ? status : MESHCOLL_OK;
}

static bool has_data_message(const mc_arrival_t *a)
{
    return a->header.kind == MC_HEADER_EAGER && a->header.bytes > MC_MESSAGE_INLINE;
}

/* Messages of other ranks ------------------------------------------------------------------------- */

/* A READY that asks for nothing is the last of its transfer, so it must not stay in a buffer. */
static int recv_done(meshcoll_t *h, void *owner)
{
    mc_transfer_t *const t = owner;
    if (--t->n_left > 0)
        return MESHCOLL_OK;
    if (t->got.kind == MC_HEADER_OFFER && t->bytes == 0)
        return mc_transfer_flush(h, t);
    mc_transfer_complete(h, t);
    return MESHCOLL_OK;
}

static int recv_data(meshcoll_t *h, mc_transfer_t *t, const mc_arrival_t *a, size_t bytes)
{
    t->data.done = recv_done;
    return mc_transfer_count(
        t,
        mc_part_recv(h, t->flow, &t->data, mc_data_tag(h, a->source, a->header.id), t->at, bytes));
}

/* Answers an offer; the receive for the data is posted first. */
static int answer(meshcoll_t *h, mc_transfer_t *t, mc_arrival_t *a)
{
    const size_t n = a->header.bytes < t->bytes ? a->header.bytes : t->bytes;
    t->header = (mc_header_t){
        .kind = MC_HEADER_READY, .tag = a->header.tag, .bytes = n, .id = a->header.id};
    t->announce.done = recv_done;
    t->n_left = 1; /* until all is posted */
    int status = n > 0 ? recv_data(h, t, a, n) : MESHCOLL_OK;
    if (!status)
        status = mc_transfer_count(t, mc_header_send(h, t->flow, &t->announce, &t->header));
    mc_arrival_free(h->messages, a);
    return status ? status : recv_done(h, t);
}

/* An eager message with its data in a message of its own. */
static int take_eager(meshcoll_t *h, mc_transfer_t *t, mc_arrival_t *a)
{
    int status = MESHCOLL_OK;
    if (!a->data && a->header.bytes <= t->bytes) {
        t->n_left = 1;
        status = recv_data(h, t, a, a->header.bytes);
        mc_arrival_free(h->messages, a);
        return status ? status : recv_done(h, t);
    }
    a->consumer = t;
    t->arrival = a;
    if (!a->data)
        status = fetch(h, t->flow, a);
    if (status)
        return status;
    return a->complete ? data_arrived(h, a) : MESHCOLL_OK;
}

/* Matches a receive, which is in no list, with a message, which is neither. */
static int bind(meshcoll_t *h, mc_transfer_t *t, mc_arrival_t *a)
{
    note(h, t, a);
    if (t->peer == MESHCOLL_ANY_SOURCE)
        watch_any(h, false);
    if (a->source == h->rank) {
        mc_transfer_t *const sender = a->sender;
        take(t, sender ? sender->at : a->data ? a->data : a->header.data, a->header.bytes);
        if (sender)
            mc_transfer_complete(h, sender);
        end(h, t, a);
        return MESHCOLL_OK;
    }
    mc_flow_t *const flow = h->messages->flow[a->source];
    if (!t->flow) {
        t->flow = flow;
        flow->link->wanted++;
    }
    const int status = owe_credit(h, flow);
    if (status) {
        mc_arrival_free(h->messages, a);
        return status;
    }
    if (a->header.kind == MC_HEADER_OFFER)
        return answer(h, t, a);
    if (has_data_message(a))
        return take_eager(h, t, a);
    take(t, a->header.data, a->header.bytes);
    end(h, t, a);
    return MESHCOLL_OK;
}

static void count_posted(messages_t *m, const mc_transfer_t *t, uint32_t by)
{
    if (t->flow)
        t->flow->n_posted += by;
    else if (t->peer == MESHCOLL_ANY_SOURCE)
        m->n_from_any += by;
}

/* Returns the first in the order of calls, which it removes; NULL: none fits. */
static mc_transfer_t *find_posted(messages_t *m, const mc_arrival_t *a)
{
    const uint64_t key = key_of_arrival(a);
    mc_transfer_t *t = mc_transfer_by_key(mc_hash_first(&m->posted, key));
    mc_transfer_t *any = mc_transfer_of(m->posted_any.first);
    while (any && !fits(any, a))
        any = mc_transfer_of(any->node.next);
    if (any && (!t || any->number < t->number)) {
        t = any;
        mc_list_remove(&t->node);
    } else if (t) {
        (void)mc_hash_take(&m->posted, key);
    }
    if (t)
        count_posted(m, t, UINT32_MAX); /* less one */
    return t;
}

static void keep(messages_t *m, mc_arrival_t *a)
{
    mc_list_append(&m->unexpected, &a->node);
    mc_hash_add(&m->unexpected_by_key, &a->by_key, key_of_arrival(a));
}

/* Returns the first that has come, which it removes; NULL: none fits. It is the first of its key, too. */
static mc_arrival_t *find_unexpected(messages_t *m, const mc_transfer_t *t)
{
    uint64_t key = key_of(t->peer, t->is_note, t->tag);
    if (is_of_any(t)) {
        const mc_arrival_t *a = mc_arrival_of(m->unexpected.first);
        while (a && !fits(t, a))
            a = mc_arrival_of(a->node.next);
        if (!a)
            return NULL;
        key = a->by_key.key;
    }
    mc_hashed_t *const e = mc_hash_take(&m->unexpected_by_key, key);
    if (!e)
        return NULL;
    mc_arrival_t *const a = (mc_arrival_t *)((char *)e - offsetof(mc_arrival_t, by_key));
    mc_list_remove(&a->node);
    return a;
}

int mc_receive_arrival(meshcoll_t *h, mc_flow_t *flow, mc_arrival_t *a)
{
    messages_t *const m = h->messages;
    int status = MESHCOLL_OK;
    if (flow->left == 0 ||
        (a->header.kind == MC_HEADER_EAGER && a->header.bytes > MC_MESSAGE_EAGER)) {
        mc_arrival_free(m, a);
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank %d announces more than it may",
                       mc_comm_rank_of(&h->order, flow->rank));
    }
    flow->left--;
    mc_transfer_t *const t = find_posted(m, a);
    if (t) {
        status = bind(h, t, a);
    } else {
        if (has_data_message(a))
            status = fetch(h, flow, a);
        keep(m, a);
    }
    return status ? status : relieve(h, flow);
}

static int post(meshcoll_t *h, mc_transfer_t *t)
{
    messages_t *const m = h->messages;
    int status = MESHCOLL_OK;
    t->number = m->n_posted++;
    if (is_of_any(t))
        mc_list_append(&m->posted_any, &t->node);
    else
        mc_hash_add(&m->posted, &t->by_key, key_of(t->peer, t->is_note, t->tag));
    count_posted(m, t, 1);
    if (t->flow)
        return relieve(h, t->flow);
    if (t->peer == MESHCOLL_ANY_SOURCE)
        watch_any(h, true);
    for (int32_t r = 0; r < h->mesh.size && t->peer == MESHCOLL_ANY_SOURCE && !status; r++)
        if (m->flow[r])
            status = relieve(h, m->flow[r]);
    return status;
}

/* Only a note is cancelled. */
void mc_receive_cancel(meshcoll_t *h, mc_transfer_t *t)
{
    mc_hash_t *const posted = &h->messages->posted;
    mc_hashed_list_t *const list = mc_hash_list(posted, key_of(t->peer, t->is_note, t->tag));
    mc_hashed_t *before = NULL, *e = list->first;
    for (; e && e != &t->by_key; e = e->next)
        before = e;
    if (!e)
        return;
    (void)mc_hash_remove(posted, list, before);
    count_posted(h->messages, t, UINT32_MAX);
    mc_transfer_complete(h, t);
}

int mc_receive_start(meshcoll_t *h, mc_transfer_t *t)
{
    mc_arrival_t *const a = find_unexpected(h->messages, t);
    if (!a)
        return post(h, t);
    if (t->peer == MESHCOLL_ANY_SOURCE)
        watch_any(h, true); /* until bind */
    return bind(h, t, a);
}

/* Messages of this rank to itself ----------------------------------------------------------------- */

/* Keeps a copy of a message of eager size, so that its send is complete. */
static int keep_copy(mc_arrival_t *a, const mc_transfer_t *send)
{
    if (send->bytes <= MC_MESSAGE_INLINE) {
        memcpy(a->header.data, send->bytes > 0 ? send->at : a->header.data, send->bytes);
        return MESHCOLL_OK;
    }
    a->data = malloc(send->bytes);
    if (!a->data)
        return mc_fail_memory("a message");
    memcpy(a->data, send->at, send->bytes);
    return MESHCOLL_OK;
}

int mc_receive_own(meshcoll_t *h, mc_transfer_t *send)
{
    messages_t *const m = h->messages;
    mc_arrival_t *const a = mc_arrival_take(m);
    if (!a)
        return mc_fail_memory("a message");
    a->source = h->rank;
    a->header = (mc_header_t){.kind = MC_HEADER_EAGER, .tag = send->tag, .bytes = send->bytes};
    a->sender = send;
    mc_transfer_t *const t = find_posted(m, a);
    if (t)
        return bind(h, t, a);
    if (send->bytes <= MC_MESSAGE_EAGER) {
        const int status = keep_copy(a, send);
        if (status) {
            mc_arrival_free(m, a);
            return status;
        }
        a->sender = NULL;
        mc_transfer_complete(h, send);
    }
    keep(m, a);
    return MESHCOLL_OK;
}
