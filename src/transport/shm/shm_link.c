#include "transport/shm/shm_link.h"

#include "transport/shm/bytes/shm_copy.h"

#include <stdlib.h>
#include <string.h>

static void touch(const void *memory, size_t bytes)
{
    const volatile char *const at = memory;
    for (size_t i = 0; i < bytes; i += MC_SHM_PAGE)
        (void)at[i];
    (void)at[bytes - 1];
}

void mc_shm_link_channels(mc_shm_link_t *link)
{
    const mc_shm_t *const shm = (const mc_shm_t *)link->peer.transport;
    const int32_t n = shm->params.n, base = shm->params.base;
    const int32_t peer = link->peer.rank - base, self = shm->params.rank - base;
    link->shape = mc_shm_shape(n);
    link->in = mc_shm_channel(shm->mapping.segment, n, peer);
    link->in_pages = mc_shm_pages(shm->mapping.segment, n, peer);
    link->out = mc_shm_channel(link->mapping.segment, n, self);
    link->out_pages = mc_shm_pages(link->mapping.segment, n, self);
    link->room = link->shape.slots;
    touch(link->in, sizeof *link->in + link->shape.slots * sizeof(mc_shm_slot_t));
    touch(link->in_pages, (size_t)link->shape.pages * MC_SHM_PAGE);
}

/* `*at` may be the list's end. */
static mc_shm_early_t *remove_early(mc_shm_link_t *link, mc_shm_early_t **at)
{
    mc_shm_early_t *const e = *at;
    if (!e)
        return NULL;
    *at = e->next;
    if (!e->next)
        link->early_end = at;
    return e;
}

mc_shm_early_t *mc_shm_take_early(mc_shm_link_t *link, uint64_t tag)
{
    mc_shm_early_t **at = &link->early;
    while (*at && (*at)->slot.tag != tag)
        at = &(*at)->next;
    return remove_early(link, at);
}

mc_shm_early_t *mc_shm_take_early_header(mc_shm_link_t *link)
{
    mc_shm_early_t **at = &link->early;
    while (*at && !mc_tag_is_header((*at)->slot.tag))
        at = &(*at)->next;
    return remove_early(link, at);
}

bool mc_shm_differs(mc_transport_t *t, uint64_t tag, uint64_t *other)
{
    for (const mc_shm_link_t *link = ((const mc_shm_t *)t)->links; link; link = link->next)
        for (const mc_shm_early_t *e = link->early; e; e = e->next)
            if (mc_tag_differs(e->slot.tag, tag)) {
                *other = e->slot.tag;
                return true;
            }
    return false;
}

int mc_shm_keep_early(mc_shm_link_t *link, const mc_shm_slot_t *slot, const char *data)
{
    mc_shm_t *const shm = (mc_shm_t *)link->peer.transport;
    mc_shm_early_t *const e =
        shm->spare ? shm->spare : aligned_alloc(_Alignof(mc_shm_early_t), sizeof *e);
    if (!e)
        return mc_fail_memory("an unexpected message");
    if (e == shm->spare)
        shm->spare = e->next;
    memcpy(&e->slot, slot, sizeof e->slot);
    if (slot->kind == MC_SHM_MESSAGE) {
        e->come = mc_shm_first(slot);
        mc_shm_copy(e->data, data, e->come);
        if (e->come < slot->bytes)
            link->coming = (mc_shm_coming_t){.early = e};
    }
    e->next = NULL;
    *link->early_end = e;
    link->early_end = &e->next;
    return MESHCOLL_OK;
}

void mc_shm_free_early(mc_shm_early_t *e)
{
    while (e) {
        mc_shm_early_t *const next = e->next;
        free(e);
        e = next;
    }
}

mc_io_t *mc_shm_take_awaited(mc_io_queue_t *q, uint64_t tag)
{
    mc_io_t *before = NULL;
    for (mc_io_t *io = q->first; io; before = io, io = io->next) {
        if (io->message.tag != tag)
            continue;
        if (before)
            before->next = io->next;
        else
            q->first = io->next;
        if (q->last == io)
            q->last = before;
        return io;
    }
    return NULL;
}
