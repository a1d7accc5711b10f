#include "transport/shm/shm_link.h"

#include "transport/shm/bytes/shm_copy.h"

#include <string.h>

typedef mc_shm_link_t link_t;

static mc_shm_t *shm_of(const link_t *link)
{
    return (mc_shm_t *)link->peer.transport;
}

static void wake_sleeper(link_t *link)
{
    _Atomic uint32_t *const asleep = &link->mapping.segment->asleep;
    if (atomic_load_explicit(asleep, memory_order_relaxed) && atomic_exchange(asleep, 0))
        mc_shm_bell_ring(shm_of(link)->transport.fd, &link->address);
}

/* Pairs with shm_arm: the receiver sets `asleep` and then polls once more; the sender writes its
 * slot and then reads `asleep`. The fence keeps either from missing the other. */
void mc_shm_wake(link_t *link)
{
    atomic_thread_fence(memory_order_seq_cst);
    wake_sleeper(link);
}

/* One fence for all sends: a fence waits until the last line written has arrived from the core
 * that polls it. */
void mc_shm_wake_peers(mc_transport_t *t)
{
    mc_shm_t *const shm = (mc_shm_t *)t;
    if (!shm->untold)
        return;
    shm->untold = false;
    atomic_thread_fence(memory_order_seq_cst);
    for (link_t *link = shm->links; link; link = link->next)
        if (link->untold) {
            link->untold = false;
            wake_sleeper(link);
        }
}

static void publish_only(link_t *link, mc_shm_slot_t *slot)
{
    atomic_store_explicit(&slot->turn, mc_shm_turn(link->n_out), memory_order_release);
    link->n_out++;
}

void mc_shm_publish(link_t *link, mc_shm_slot_t *slot)
{
    publish_only(link, slot);
    mc_shm_wake(link);
}

/* The first write to a page misses the cache and faults. The first message that needs a page
 * pays that for all pages of the link at once. Usually the receiver has touched them by then
 * (shm_connect), so they lie on its NUMA node. */
static void warm_pages(link_t *link)
{
    memset(link->out_pages, 0, (size_t)link->shape.pages * MC_SHM_PAGE);
    link->warm = true;
}

/* Takes the next page, of the slot that is written next. */
static char *page_to_fill(link_t *link)
{
    if (!link->warm)
        warm_pages(link);
    const uint64_t page = link->pages_out++ & (link->shape.pages - 1);
    link->filled_at[page] = link->n_out + 1;
    return link->out_pages + page * MC_SHM_PAGE;
}

static void gather_spans(char *to, const mc_message_t *m)
{
    for (uint32_t i = 0; i < m->n_spans; to += m->span[i++].bytes)
        mc_shm_copy(to, m->span[i].at, m->span[i].bytes);
}

static void write_head(mc_shm_slot_t *slot, mc_shm_kind_t kind, const mc_message_t *m)
{
    slot->kind = kind;
    slot->tag = m->tag;
    slot->bytes = m->bytes;
}

/* A message of at most a page; mc_shm_wake_peers wakes its receiver later. The head is written last:
 * the receiver polls that cache line, and each poll moves it to its core. */
static void write_message(link_t *link, mc_shm_slot_t *slot, const mc_message_t *m)
{
    gather_spans(m->bytes <= MC_SHM_SMALL ? slot->data : page_to_fill(link), m);
    write_head(slot, MC_SHM_MESSAGE, m);
    publish_only(link, slot);
    link->untold = shm_of(link)->untold = true;
}

static void write_offer(link_t *link, mc_shm_slot_t *slot, mc_io_t *io)
{
    const mc_message_t *const m = &io->message;
    write_head(slot, MC_SHM_OFFER, m);
    slot->word[0] = (uintptr_t)io;
    slot->word[1] = (uintptr_t)(m->n_spans == 1 ? m->span->at : (const void *)m->span);
    slot->word[2] = m->n_spans == 1 ? 0 : m->n_spans;
    shm_of(link)->n_offered++;
    link->n_offered++;
    mc_shm_publish(link, slot);
}

void mc_shm_finish_offer(link_t *link, mc_io_t *io)
{
    shm_of(link)->n_offered--;
    link->n_offered--;
    mc_io_finish(io, MESHCOLL_OK);
}

/* Writes as many pieces of a requested message as there is room for. */
static void give_pieces(link_t *link, mc_io_t *io)
{
    for (mc_shm_slot_t *slot;
         io->done < io->message.bytes && (slot = mc_shm_free_slot_and_page(link));) {
        const size_t left = io->message.bytes - io->done;
        const size_t part = left < MC_SHM_PAGE ? left : MC_SHM_PAGE;
        mc_shm_move(io, page_to_fill(link), part, false);
        slot->kind = MC_SHM_PIECE;
        slot->tag = io->offer[0];
        slot->bytes = part;
        io->done += part;
        publish_only(link, slot);
    }
    mc_shm_wake(link);
}

/* Does what comes next of the send need a page? */
static bool needs_page(const mc_io_t *io)
{
    const size_t bytes = io->message.bytes;
    return io->offer[0] || (bytes > MC_SHM_SMALL && bytes <= MC_SHM_PAGE);
}

static mc_shm_slot_t *room_for(link_t *link, bool with_page)
{
    return with_page ? mc_shm_free_slot_and_page(link) : mc_shm_free_slot(link);
}

bool mc_shm_has_room(link_t *link)
{
    const mc_io_t *const io = link->sending.first;
    return (link->replies.first && mc_shm_free_slot(link)) ||
           (io && room_for(link, needs_page(io)));
}

/* WAITS: for room; OFFERED: complete once its receiver tells so. */
typedef enum { WAITS, OFFERED, WRITTEN } sent_t;

/* Begins a send, or goes on with its pieces. */
static sent_t go_on(link_t *link, mc_io_t *io)
{
    const mc_message_t *const m = &io->message;
    if (io->offer[0]) {
        give_pieces(link, io);
        return io->done == m->bytes ? WRITTEN : WAITS;
    }
    mc_shm_slot_t *const slot = room_for(link, needs_page(io));
    if (!slot)
        return WAITS;
    if (m->bytes <= MC_SHM_PAGE) {
        write_message(link, slot, m);
        return WRITTEN;
    }
    write_offer(link, slot, io);
    return OFFERED;
}

uint32_t mc_shm_send_on(link_t *link)
{
    const uint64_t before = link->n_out;
    sent_t sent;
    for (mc_io_t *io; (io = link->sending.first) && (sent = go_on(link, io)) != WAITS;) {
        mc_io_pop(&link->sending);
        if (sent == WRITTEN && io->offer[0])
            mc_shm_finish_offer(link, io);
        else if (sent == WRITTEN)
            mc_io_finish(io, MESHCOLL_OK);
    }
    mc_shm_wake_peers(&shm_of(link)->transport);
    return (uint32_t)(link->n_out - before);
}

/* Announces a message on the board, which is written there once its last send has started. */
static int write_posted(link_t *link, mc_shm_slot_t *slot, const mc_message_t *m, mc_io_t *io)
{
    mc_shm_t *const shm = shm_of(link);
    write_head(slot, MC_SHM_POSTED, m);
    mc_shm_post_told(&shm->poster, slot->word);
    mc_shm_publish(link, slot);
    if (m->more == 0) {
        mc_shm_post_write(&shm->poster, mc_shm_board(shm->mapping.segment));
        return MESHCOLL_OK;
    }
    mc_io_append(&shm->poster.waiting, io);
    return MESHCOLL_IN_PROGRESS;
}

/* Does it go on the board, and is there room? */
static bool is_for_board(const link_t *link, const mc_message_t *m)
{
    mc_shm_t *const shm = shm_of(link);
    const bool pushed = m->more > 0 || m->pushed || m->bytes <= shm->transport.eager;
    return (pushed || shm->poster.readers > 0) &&
           mc_shm_post(&shm->poster, mc_shm_board(shm->mapping.segment), m, pushed);
}

int mc_shm_send(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io)
{
    link_t *const link = (link_t *)peer;
    mc_shm_slot_t *const slot = link->sending.first ? NULL : mc_shm_free_slot(link);
    const bool with_page = m->bytes > MC_SHM_SMALL;
    const bool has_room = slot && (!with_page || mc_shm_page_is_free(link));
    if (has_room && m->bytes <= MC_SHM_PAGE) {
        write_message(link, slot, m);
        return MESHCOLL_OK;
    }
    if (slot && m->bytes > MC_SHM_PAGE && is_for_board(link, m))
        return write_posted(link, slot, m, io);
    io->message = *m;
    io->done = io->at = 0;
    io->offer[0] = 0;
    const sent_t sent = link->sending.first ? WAITS : go_on(link, io);
    if (sent == WAITS)
        mc_io_append(&link->sending, io);
    return sent == WRITTEN ? MESHCOLL_OK : MESHCOLL_IN_PROGRESS;
}
