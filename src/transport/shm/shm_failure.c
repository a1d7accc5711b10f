#include "transport/shm/shm_link.h"

#include <stdio.h>

typedef mc_shm_link_t link_t;

static bool has_failed(const link_t *link)
{
    return atomic_load_explicit(&link->mapping.segment->failed, memory_order_acquire);
}

static int fail_peer(const link_t *link)
{
    return mc_fail(MESHCOLL_ERR_PEER, "dimension %s: rank %d failed: %.*s",
                   ((const mc_shm_t *)link->peer.transport)->dim,
                   mc_transport_known_as(link->peer.transport, link->peer.rank), MC_SHM_WHY - 1,
                   link->mapping.segment->why);
}

int mc_shm_check_sender(const link_t *link)
{
    atomic_thread_fence(memory_order_acquire);
    return has_failed(link) ? fail_peer(link) : MESHCOLL_OK;
}

static bool waits(const link_t *link)
{
    return link->awaited.n > 0 || link->reading.first || link->replies.first ||
           link->sending.first || link->n_offered > 0 || link->n_asked > 0 ||
           link->peer.wanted > 0 || link->peer.transport->wanted > 0;
}

int mc_shm_check(mc_transport_t *t)
{
    const mc_shm_t *const shm = (const mc_shm_t *)t;
    for (const link_t *link = shm->links; link; link = link->next) {
        if (!waits(link))
            continue;
        if (has_failed(link))
            return fail_peer(link);
        if (!mc_shm_memory_is_there(&link->address))
            return mc_fail(
                MESHCOLL_ERR_PEER,
                "dimension %s: rank %d (process %d) is gone: it ended or was killed while this "
                "rank waited for it",
                shm->dim, mc_transport_known_as(t, link->peer.rank), (int)link->address.file.pid);
    }
    return MESHCOLL_OK;
}

void mc_shm_stop_sharing(link_t *link)
{
    link->unsure = mc_shm_share_stop(&link->out->share, link->shared->message.bytes);
    link->shared = NULL;
}

void mc_shm_abandon(mc_transport_t *t, const char *why)
{
    mc_shm_t *const shm = (mc_shm_t *)t;
    mc_shm_segment_t *const segment = shm->mapping.segment;
    snprintf(segment->why, sizeof segment->why, "%s", why);
    atomic_store_explicit(&segment->failed, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* before the caller changes its buffers */
    for (link_t *link = shm->links; link; link = link->next)
        if (link->shared)
            mc_shm_stop_sharing(link);
}

int32_t mc_shm_writer(mc_transport_t *t)
{
    const link_t *link = ((const mc_shm_t *)t)->links;
    while (link && (mc_shm_share_rest(&link->out->share, link->unsure) != MC_SHM_SHARE_OPEN ||
                    link->unsure == 0 || !mc_shm_memory_is_there(&link->address)))
        link = link->next;
    return link ? link->peer.rank : -1;
}
