#include "runtime/message/transfer.h"

#include <string.h>

static int finish(meshcoll_t *h, mc_transfer_t *t)
{
    return t->n_left > 0 ? MESHCOLL_OK : mc_transfer_flush(h, t);
}

static int part_done(meshcoll_t *h, void *owner)
{
    mc_transfer_t *const t = owner;
    t->n_left--;
    return finish(h, t);
}

static int send_data(meshcoll_t *h, mc_transfer_t *t, const mc_flow_t *flow, size_t bytes)
{
    t->data.done = part_done;
    return mc_transfer_count(
        t, mc_part_send(h, flow, &t->data, mc_data_tag(h, h->rank, t->header.id), t->at, bytes));
}

static int announce(meshcoll_t *h, mc_flow_t *flow, mc_transfer_t *t)
{
    const bool eager = t->bytes <= MC_MESSAGE_EAGER, inside = t->bytes <= MC_MESSAGE_INLINE;
    flow->credits--;
    t->header = (mc_header_t){.kind = t->is_note ? MC_HEADER_NOTE
                                      : eager    ? MC_HEADER_EAGER
                                                 : MC_HEADER_OFFER,
                              .tag = t->tag,
                              .bytes = t->bytes,
                              .id = flow->link->next_id++};
    if (inside && t->bytes > 0) {
        memcpy(t->header.data, t->at, t->bytes);
        mc_flow_count(h, flow, t->bytes);
    }
    if (!eager) {
        t->n_left++; /* the READY */
        mc_hash_add(&flow->offered, &t->by_key, t->header.id);
    }
    t->announce.done = part_done;
    int status = mc_transfer_count(t, mc_header_send(h, flow, &t->announce, &t->header));
    if (!status && eager && !inside)
        status = send_data(h, t, flow, t->bytes);
    return status ? status : finish(h, t);
}

int mc_send_start(meshcoll_t *h, mc_transfer_t *t)
{
    mc_flow_t *const flow = t->flow;
    if (flow->credits > 0 && !flow->waiting.first)
        return announce(h, flow, t);
    mc_list_append(&flow->waiting, &t->node);
    return MESHCOLL_OK;
}

int mc_send_ready(meshcoll_t *h, mc_flow_t *flow, const mc_header_t *ready)
{
    mc_transfer_t *const t = mc_transfer_by_key(mc_hash_first(&flow->offered, ready->id));
    if (!t || ready->bytes > t->bytes)
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "rank %d asks for %zu bytes of message %u, which was not offered to it",
                       mc_comm_rank_of(&h->order, flow->rank), (size_t)ready->bytes, ready->id);
    (void)mc_hash_take(&flow->offered, ready->id);
    t->n_left--;
    const int status = ready->bytes > 0 ? send_data(h, t, flow, ready->bytes) : MESHCOLL_OK;
    return status ? status : finish(h, t);
}

int mc_send_credits(meshcoll_t *h, mc_flow_t *flow, uint32_t n)
{
    int status = MESHCOLL_OK;
    if (n > MC_MESSAGE_CREDITS - flow->credits)
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "rank %d lets this one announce %u more messages; expected %u at most",
                       mc_comm_rank_of(&h->order, flow->rank), n,
                       MC_MESSAGE_CREDITS - flow->credits);
    flow->credits += n;
    while (!status && flow->credits > 0 && flow->waiting.first) {
        mc_transfer_t *const t = mc_transfer_of(flow->waiting.first);
        mc_list_remove(&t->node);
        status = announce(h, flow, t);
    }
    return status;
}
