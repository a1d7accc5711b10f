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

mc_shm_early_t *mc_shm_take_early(mc_shm_link_t *link, uint64_t tag)
{
    return (mc_shm_early_t *)mc_hash_take(&link->early, tag);
}

static bool is_header(const mc_hashed_t *e, const void *context)
{
    (void)context;
    return mc_tag_is_header(e->key);
}

mc_shm_early_t *mc_shm_take_early_header(mc_shm_link_t *link)
{
    const mc_hashed_t *const e = mc_hash_find(&link->early, is_header, NULL);
    return e ? mc_shm_take_early(link, e->key) : NULL;
}

void mc_shm_return_early(mc_shm_t *shm, mc_shm_early_t *e)
{
    e->by_tag.next = shm->spare;
    shm->spare = &e->by_tag;
}

static bool differs(const mc_hashed_t *e, const void *tag)
{
    return mc_tag_differs(e->key, *(const uint64_t *)tag);
}

bool mc_shm_differs(mc_transport_t *t, uint64_t tag, uint64_t *other)
{
    const mc_hashed_t *e = NULL;
    for (const mc_shm_link_t *link = ((const mc_shm_t *)t)->links; link && !e; link = link->next)
        e = mc_hash_find(&link->early, differs, &tag);
    if (e)
        *other = e->key;
    return e;
}

int mc_shm_keep_early(mc_shm_link_t *link, const mc_shm_slot_t *slot, const char *data)
{
    mc_shm_t *const shm = (mc_shm_t *)link->peer.transport;
    mc_shm_early_t *const e = shm->spare ? (mc_shm_early_t *)shm->spare
                                         : aligned_alloc(_Alignof(mc_shm_early_t), sizeof *e);
    if (!e)
        return mc_fail_memory("an unexpected message");
    if (&e->by_tag == shm->spare)
        shm->spare = e->by_tag.next;
    memcpy(&e->slot, slot, sizeof e->slot);
    if (slot->kind == MC_SHM_MESSAGE)
        mc_shm_copy(e->data, data, slot->bytes);
    mc_hash_add(&link->early, &e->by_tag, slot->tag);
    return MESHCOLL_OK;
}

void mc_shm_free_early(mc_shm_link_t *link)
{
    for (mc_hashed_t *e; (e = mc_hash_take_any(&link->early));)
        free(e);
    mc_hash_free(&link->early);
    mc_hash_free(&link->awaited);
}

void mc_shm_free_spare(mc_shm_t *shm)
{
    for (mc_hashed_t *e; (e = shm->spare);) {
        shm->spare = e->next;
        free(e);
    }
}
