#include "transport/shm/shm.h"

#include "base/system/log.h"
#include "transport/shm/bytes/shm_copy.h"
#include "transport/shm/shm_link.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes read for one message before progress turns to other work. Less would need more system
 * calls. */
enum { TURN_BYTES = 1 << 20 };

typedef mc_shm_early_t early_t;
typedef mc_shm_link_t link_t;
typedef mc_shm_t shm_t;

static shm_t *shm_of(const link_t *link)
{
    return (shm_t *)link->peer.transport;
}

static int32_t known_as(const link_t *link)
{
    return mc_transport_known_as(link->peer.transport, link->peer.rank);
}

/* Receiving ------------------------------------------------------------------------------------ */

static int check_length(const link_t *link, const mc_io_t *io, uint64_t bytes)
{
    if (bytes == io->message.bytes)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_MISMATCH,
                   "a message of %llu bytes arrived from rank %d where %zu were expected: do the "
                   "ranks agree about the count?",
                   (unsigned long long)bytes, known_as(link), io->message.bytes);
}

/* Confirms to the sender that its message was read, or requests the rest of it in pieces. false: no slot is
 * free. */
static bool reply(link_t *link, mc_shm_kind_t kind, const mc_io_t *io)
{
    mc_shm_slot_t *const slot = mc_shm_free_slot(link);
    if (!slot)
        return false;
    slot->kind = kind;
    slot->word[0] = io->offer[0];
    slot->word[1] = (uintptr_t)io;
    slot->word[2] = io->done;
    link->n_asked += kind == MC_SHM_GIVE;
    mc_shm_publish(link, slot);
    return true;
}

/* Requests the sender's help with a message of one span at both ends. A rank that offers
 * messages itself does not: where all send to all, the senders are busy reading. */
static bool share(link_t *link, mc_io_t *io)
{
    const mc_message_t *const m = &io->message;
    if (link->shared || link->helpless || shm_of(link)->n_offered > 0 || io->consumer.take ||
        io->offer[2] > 0 || m->n_spans > 1 ||
        !mc_shm_can_share(m->bytes, shm_of(link)->params.oversubscribed))
        return false;
    mc_shm_slot_t *const slot = mc_shm_free_slot(link);
    if (!slot)
        return false;
    link->shared = io;
    slot->kind = MC_SHM_SHARE;
    slot->word[0] = io->offer[0];
    slot->word[1] = (uintptr_t)m->span->at;
    slot->word[2] = mc_shm_share_begin(&link->out->share);
    mc_shm_publish(link, slot);
    return true;
}

/* The receive completes only once its sender has been notified. */
static void finish_read(link_t *link, mc_io_t *io)
{
    if (link->shared == io)
        link->shared = NULL;
    if (reply(link, MC_SHM_TAKEN, io))
        mc_io_finish(io, io->status);
    else
        mc_io_append(&link->replies, io);
}

/* Bytes that this rank reads next, at most `most`. 0: the sender writes what is left, or has
 * written it. */
static size_t next_bytes(link_t *link, mc_io_t *io, size_t most)
{
    if (io != link->shared)
        return most;
    const size_t bytes = mc_shm_share_front(&link->out->share, io->message.bytes, most);
    if (bytes > 0)
        return bytes;
    switch (mc_shm_share_rest(&link->out->share, io->message.bytes - io->done)) {
    case MC_SHM_SHARE_OPEN:
        return 0;
    case MC_SHM_SHARE_REFUSED:
        link->helpless = true;
        link->shared = NULL;
        return most;
    default:
        mc_shm_share_note(io);
        io->done = io->message.bytes;
        return 0;
    }
}

static int fail_gone(const link_t *link)
{
    return mc_fail(MESHCOLL_ERR_PEER,
                   "dimension %s: rank %d (process %d) is gone: it ended or was killed while its "
                   "memory was read",
                   shm_of(link)->dim, known_as(link), (int)link->address.file.pid);
}

/* From now on messages of the peer are copied through shared memory, as a filter of system calls, a change of user or
 * the kind of memory forbids reads. */
static void stop_reading(link_t *link, int error)
{
    const shm_t *const shm = shm_of(link);
    if (!link->copies)
        mc_log(MC_LOG_WARN,
               "dimension %s: rank %d can no longer read the memory of rank %d (process %d: %s): "
               "what that one sends to it is copied through shared memory from now on",
               shm->dim, mc_transport_known_as(&shm->transport, shm->params.rank), known_as(link),
               (int)link->address.file.pid, strerror(error));
    link->copies = true;
}

/* Requests the message, or the rest of it, in pieces. */
static void ask_for_pieces(link_t *link, mc_io_t *io)
{
    if (!reply(link, MC_SHM_GIVE, io))
        mc_io_append(&link->replies, io);
}

/* A receive whose sender's memory could not be read: `error` says why. */
static void end_read(link_t *link, mc_io_t *io, int error)
{
    if (error == ESRCH) {
        io->status = fail_gone(link);
        finish_read(link, io);
        return;
    }
    stop_reading(link, error);
    if (link->shared == io)
        mc_shm_stop_sharing(link);
    ask_for_pieces(link, io);
}

static bool is_posted(const mc_io_t *io)
{
    return io->offer[0] == 0;
}

/* Reads `bytes`, or what the message has left of them. Returns how many, or -1 with errno set. */
static ssize_t read_bytes(link_t *link, mc_io_t *io, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && io->done < io->message.bytes) {
        const ssize_t got =
            mc_shm_read(link->address.file.pid, io, bytes - n, &shm_of(link)->piece);
        if (got < 0)
            return got;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* Continues a receive. Returns whether it has left the queue: it is complete, has failed, or comes in pieces. */
static bool read_on(link_t *link, mc_io_t *io)
{
    if (is_posted(io)) {
        if (!mc_shm_post_read(mc_shm_board(link->mapping.segment), io))
            return false;
        mc_io_finish(io, MESHCOLL_OK);
        return true;
    }
    for (size_t turn = 0; turn < TURN_BYTES && io->done < io->message.bytes;) {
        const size_t most = next_bytes(link, io, TURN_BYTES - turn);
        const ssize_t n = most > 0 ? read_bytes(link, io, most) : 0;
        if (n < 0) {
            end_read(link, io, errno);
            return true;
        }
        if (most == 0)
            break;
        turn += (size_t)n;
    }
    if (io->done < io->message.bytes)
        return false;
    io->status = mc_shm_check_sender(link);
    finish_read(link, io);
    return true;
}

/* A message and its receive match. IN_PROGRESS: `io` completes later. */
static int meet(link_t *link, const mc_shm_slot_t *slot, const char *data, mc_io_t *io)
{
    const int status = check_length(link, io, slot->bytes);
    io->done = io->at = io->offer_at = 0;
    io->status = status;
    if (slot->kind == MC_SHM_MESSAGE) {
        if (!status)
            mc_shm_take(io, data, slot->bytes);
        return status;
    }
    memcpy(io->offer, slot->word, sizeof io->offer);
    if (is_posted(io)) {
        mc_shm_board_t *const board = mc_shm_board(link->mapping.segment);
        if (status)
            mc_shm_post_leave(board, io);
        if (status || mc_shm_post_read(board, io))
            return status;
        mc_io_append(&link->reading, io);
    } else if (status) {
        finish_read(link, io);
    } else if (link->copies || shm_of(link)->params.access == MC_SHM_COPY) {
        ask_for_pieces(link, io);
    } else if ((share(link, io)) || !read_on(link, io)) {
        mc_io_append(&link->reading, io); /* shared: read once all senders have been notified */
    }
    return MESHCOLL_IN_PROGRESS;
}

/* Releases a slot and its page. The sender sees this every quarter of the slots or pages only: a
 * sender that waits for room has filled them all. One that polls finds out by itself; one that
 * sleeps is woken. */
static void release(link_t *link, bool with_page)
{
    link->n_in++;
    link->pages_in += with_page;
    if (4 * (link->n_in - link->told_in) < link->shape.slots &&
        (!with_page || 4 * (link->pages_in - link->pages_told) < link->shape.pages))
        return;
    link->told_in = link->n_in;
    link->pages_told = link->pages_in;
    atomic_store_explicit(&link->in->taken, link->n_in, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&link->in->wanted, memory_order_relaxed)) {
        atomic_store_explicit(&link->in->wanted, 0, memory_order_relaxed);
        mc_shm_wake(link);
    }
}

/* The slot to read next, if it holds this message. */
static const mc_shm_slot_t *next_small(const link_t *link, uint64_t tag)
{
    const mc_shm_slot_t *const slot = link->awaited.n > 0 ? NULL : mc_shm_news(link);
    return slot && slot->kind == MC_SHM_MESSAGE && slot->tag == tag ? slot : NULL;
}

static int receive(link_t *link, mc_io_t *io)
{
    shm_t *const shm = shm_of(link);
    early_t *const e = link->early.n > 0 ? mc_shm_take_early(link, io->message.tag) : NULL;
    if (e) {
        const int status = meet(link, &e->slot, e->data, io);
        mc_shm_return_early(shm, e);
        return status;
    }
    const mc_shm_slot_t *const slot = next_small(link, io->message.tag);
    if (slot) {
        const bool with_page = mc_shm_has_page(slot);
        const int status = meet(link, slot, mc_shm_data(link, slot), io);
        release(link, with_page);
        return status;
    }
    mc_hash_add(&link->awaited, &io->awaited_by, io->message.tag);
    return MESHCOLL_IN_PROGRESS;
}

static int shm_recv(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io)
{
    io->message = *m;
    io->consumer.take = NULL;
    return receive((link_t *)peer, io);
}

static int shm_recv_reduce(mc_peer_t *peer, const mc_message_t *m, const mc_consumer_t *consumer,
                           mc_io_t *io)
{
    io->message = *m;
    io->consumer = *consumer;
    return receive((link_t *)peer, io);
}

/* Progress ------------------------------------------------------------------------------------- */

_Static_assert((int)MC_HEADER_BYTES <= (int)MC_SHM_SMALL, "a header lies in its slot");

static int shm_listen(mc_transport_t *t, const mc_listener_t *listener)
{
    shm_t *const shm = (shm_t *)t;
    shm->listener = *listener;
    for (link_t *link = shm->links; link; link = link->next)
        for (early_t *e; (e = mc_shm_take_early_header(link));) {
            const bool handled = listener->handle(listener->context, e->slot.tag, e->data);
            mc_shm_return_early(shm, e);
            if (!handled)
                return mc_fail_memory("a header");
        }
    return MESHCOLL_OK;
}

/* Without memory for an unexpected message it stays in its slot and blocks those behind it, so
 * a posted receive fails. */
static bool keep_early(link_t *link, const mc_shm_slot_t *slot, const char *data)
{
    const mc_listener_t *const listener = &shm_of(link)->listener;
    if (listener->handle && slot->kind == MC_SHM_MESSAGE && mc_tag_is_header(slot->tag))
        return listener->handle(listener->context, slot->tag, data);
    const int status = mc_shm_keep_early(link, slot, data);
    mc_io_t *const blocked = status ? (mc_io_t *)mc_hash_take_any(&link->awaited) : NULL;
    if (blocked)
        mc_io_finish(blocked, status);
    return !status;
}

static bool arrive(link_t *link, const mc_shm_slot_t *slot, const char *data)
{
    mc_io_t *const io = (mc_io_t *)mc_hash_take(&link->awaited, slot->tag);
    if (!io)
        return keep_early(link, slot, data);
    const int status = meet(link, slot, data, io);
    if (status != MESHCOLL_IN_PROGRESS)
        mc_io_finish(io, status);
    return true;
}

static mc_io_t *io_of(uint64_t word)
{
    return (mc_io_t *)(uintptr_t)word; /* NOLINT */
}

static void piece_arrives(link_t *link, mc_io_t *io, const char *data, uint64_t bytes)
{
    mc_shm_take(io, data, bytes);
    if (io->done < io->message.bytes)
        return;
    link->n_asked--;
    mc_io_finish(io, MESHCOLL_OK);
}

static void stop_helping(link_t *link, const mc_io_t *io)
{
    if (link->helped.io == io)
        link->helped.io = NULL;
}

/* Returns whether the slot was processed. */
static bool read_slot(link_t *link, const mc_shm_slot_t *slot)
{
    mc_io_t *const io = io_of(slot->word[0]);
    switch ((mc_shm_kind_t)slot->kind) {
    case MC_SHM_MESSAGE:
        return arrive(link, slot, mc_shm_data(link, slot));
    case MC_SHM_OFFER:
    case MC_SHM_POSTED:
        return arrive(link, slot, NULL);
    case MC_SHM_SHARE:
        link->helped = (mc_shm_helped_t){io, slot->word[1], slot->word[2]};
        return true;
    case MC_SHM_TAKEN:
        stop_helping(link, io);
        mc_shm_finish_offer(link, io);
        return true;
    case MC_SHM_GIVE:
        stop_helping(link, io);
        io->offer[0] = slot->word[1];
        mc_shm_skip(io, slot->word[2]);
        mc_io_append(&link->sending, io);
        return true;
    case MC_SHM_PIECE:
        piece_arrives(link, io_of(slot->tag), mc_shm_next_in(link), slot->bytes);
        return true;
    }
    return true;
}

/* Reads new slots. Stops behind the last message that is expected, as the operation may be
 * complete with it. */
static uint32_t read_channel(link_t *link, const mc_shm_slot_t *slot)
{
    uint32_t n = 0;
    do {
        const bool awaits = link->awaited.n > 0;
        const bool with_page = mc_shm_has_page(slot);
        if (!read_slot(link, slot))
            return n + awaits;
        release(link, with_page);
        n++;
    } while (n < link->shape.slots && link->awaited.n > 0 && (slot = mc_shm_news(link)));
    return n;
}

static uint32_t read_memory(link_t *link)
{
    uint32_t n = 0;
    mc_io_queue_t q = link->reading;
    link->reading = (mc_io_queue_t){0};
    for (mc_io_t *io; (io = mc_io_pop(&q));) {
        const size_t before = io->done;
        if (read_on(link, io)) {
            n++;
            continue;
        }
        n += io->done > before;
        mc_io_append(&link->reading, io);
    }
    return n;
}

static uint32_t write_replies(link_t *link)
{
    uint32_t n = 0;
    for (mc_io_t *io; (io = link->replies.first); n++) {
        const bool asks = io->done < io->message.bytes && !io->status;
        if (!reply(link, asks ? MC_SHM_GIVE : MC_SHM_TAKEN, io))
            break;
        mc_io_pop(&link->replies);
        if (!asks)
            mc_io_finish(io, io->status);
    }
    return n;
}

static uint32_t shm_progress(mc_transport_t *t)
{
    shm_t *const shm = (shm_t *)t;
    uint32_t n = 0;
    for (link_t *link = shm->links; link; link = link->next) {
        const mc_shm_slot_t *const slot = mc_shm_news(link);
        if (slot)
            n += read_channel(link, slot);
        if (link->replies.first)
            n += write_replies(link);
        if (link->sending.first)
            n += mc_shm_send_on(link);
    }
    if (shm->poster.readers > 0)
        n += mc_shm_post_write(&shm->poster, mc_shm_board(shm->mapping.segment));
    for (link_t *link = shm->links; link; link = link->next)
        if (link->reading.first)
            n += read_memory(link);
    for (link_t *link = shm->links; link && n == 0; link = link->next)
        if (link->helped.io)
            n += mc_shm_share_help(&link->in->share, link->address.file.pid, &link->helped,
                                   &shm->piece);
    return n;
}

static bool has_work(link_t *link)
{
    if (mc_shm_news(link) || link->reading.first || link->helped.io)
        return true;
    if (!link->sending.first && !link->replies.first)
        return false;
    atomic_store_explicit(&link->out->wanted, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return mc_shm_has_room(link);
}

static int shm_arm(mc_transport_t *t)
{
    shm_t *const shm = (shm_t *)t;
    _Atomic uint32_t *const asleep = &shm->mapping.segment->asleep;
    mc_shm_bell_quiet(t->fd);
    atomic_store_explicit(asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    for (link_t *link = shm->links; link; link = link->next)
        if (has_work(link)) {
            atomic_store_explicit(asleep, 0, memory_order_relaxed);
            return MESHCOLL_IN_PROGRESS;
        }
    return MESHCOLL_OK;
}

/* Creation ------------------------------------------------------------------------------------- */

static const mc_transport_ops_t shm_ops = {
    .connect = mc_shm_connect,
    .hold = mc_shm_hold,
    .send = mc_shm_send,
    .recv = shm_recv,
    .recv_reduce = shm_recv_reduce,
    .listen = shm_listen,
    .wake = mc_shm_wake_peers,
    .progress = shm_progress,
    .arm = shm_arm,
    .check = mc_shm_check,
    .differs = mc_shm_differs,
    .abandon = mc_shm_abandon,
    .writer = mc_shm_writer,
    .close = mc_shm_close,
};

int mc_shm_create(const mc_shm_params_t *params, mc_transport_t **transport)
{
    shm_t *const shm = aligned_alloc(_Alignof(shm_t), sizeof *shm);
    if (!shm)
        return mc_fail_memory("a transport");
    mc_shm_copy_init();
    memset(shm, 0, offsetof(shm_t, piece));
    shm->params = *params;
    mc_shm_poster_init(&shm->poster, mc_shm_shape(params->n).board, params->oversubscribed);
    shm->transport = (mc_transport_t){.ops = &shm_ops,
                                      .greets = true,
                                      .fd = -1,
                                      .pulls = params->access == MC_SHM_READ,
                                      .eager = MC_SHM_EAGER,
                                      .listens_connected = true};
    snprintf(shm->dim, sizeof shm->dim, "%s", params->dim);
    int status = mc_shm_memory_create(params->n, params->access == MC_SHM_READ, &shm->mapping,
                                      &shm->address);
    if (!status)
        status = mc_shm_bell_open(&shm->address, &shm->transport.fd);
    if (status) {
        mc_shm_close(&shm->transport);
        return status;
    }
    shm->transport.address = &shm->address;
    shm->transport.address_bytes = sizeof shm->address;
    *transport = &shm->transport;
    return MESHCOLL_OK;
}

void mc_shm_lower(mc_transport_t *transport)
{
    shm_t *const shm = (shm_t *)transport;
    if (shm->params.access != MC_SHM_READ)
        return;
    shm->params.access = MC_SHM_COPY;
    transport->pulls = false;
    mc_shm_memory_forbid(&shm->mapping);
}
