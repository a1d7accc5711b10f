#include "transport/shm/shm_link.h"

#include "transport/shm/bytes/shm_copy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Connections ---------------------------------------------------------------------------------- */

void mc_shm_hold(mc_transport_t *t, int32_t rank, const void *address)
{
    mc_shm_t *const shm = (mc_shm_t *)t;
    if (!shm->held)
        shm->held = calloc((size_t)shm->params.n, sizeof *shm->held);
    if (shm->held)
        (void)mc_shm_memory_open(address, shm->params.n, &shm->held[rank - shm->params.base]);
}

/* Maps the peer's segment, unless it is mapped already. */
static int take_segment(mc_shm_t *shm, int32_t rank, mc_shm_link_t *link)
{
    const mc_shm_params_t *const p = &shm->params;
    mc_shm_mapping_t *const held = shm->held ? &shm->held[rank - p->base] : NULL;
    if (!held || !held->segment)
        return mc_shm_memory_open(&link->address, p->n, &link->mapping);
    link->mapping = *held;
    *held = (mc_shm_mapping_t){0};
    return MESHCOLL_OK;
}

int mc_shm_connect(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer)
{
    mc_shm_t *const shm = (mc_shm_t *)t;
    mc_shm_link_t *const link = calloc(1, sizeof *link);
    if (!link)
        return mc_fail_memory("a connection");
    memcpy(&link->address, address, sizeof link->address);
    const int status = take_segment(shm, rank, link);
    if (status) {
        free(link);
        return mc_fail(status, "dimension %s: cannot connect to rank %d: %s", shm->dim,
                       mc_transport_known_as(t, rank), meshcoll_last_error());
    }
    link->peer = (mc_peer_t){.transport = t, .rank = rank};
    mc_shm_link_channels(link);
    link->next = shm->links;
    shm->links = link;
    *peer = &link->peer;
    return MESHCOLL_OK;
}

void mc_shm_close(mc_transport_t *t)
{
    mc_shm_t *const shm = (mc_shm_t *)t;
    while (shm->links) {
        mc_shm_link_t *const link = shm->links;
        shm->links = link->next;
        mc_shm_free_early(link);
        mc_shm_memory_close(&link->mapping);
        free(link);
    }
    for (int32_t i = 0; shm->held && i < shm->params.n; i++)
        mc_shm_memory_close(&shm->held[i]);
    free(shm->held);
    mc_shm_free_spare(shm);
    mc_shm_memory_close(&shm->mapping);
    if (shm->address.file.pid)
        close(shm->address.file.fd);
    if (t->fd >= 0)
        close(t->fd);
    free(shm);
}
