#include "support/inproc.h"

#include "runtime/jobs/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A send or receive without its match. */
typedef struct half {
    mc_hashed_t by_tag; /* first */
    mc_message_t message;
    mc_io_t *io;
    int32_t rank; /* the rank that posted it */
} half_t;

typedef struct {
    mc_transport_t transport;
    struct hub *hub;
    int32_t rank;
    mc_hash_t sent, awaited;  /* to this rank, unmatched */
    mc_hashed_list_t headers; /* to this rank, of tagged messages */
    mc_io_queue_t completed;  /* by peers; this rank's progress reports them */
    char why[160];            /* of a failed one */
    mc_peer_t **peers;
    mc_listener_t listener;
} rank_t;

typedef struct hub {
    int32_t n, n_open;
    mc_hashed_t *spare; /* halves */
    rank_t at[];        /* by rank */
} hub_t;

static rank_t *rank_of(mc_transport_t *t)
{
    return (rank_t *)t;
}

static int inproc_connect(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer)
{
    (void)address;
    rank_t *const me = rank_of(t);
    if (!me->peers[rank]) {
        mc_peer_t *const fresh = malloc(sizeof *fresh);
        if (!fresh)
            return mc_fail_memory("a connection");
        *fresh = (mc_peer_t){.transport = t, .rank = rank};
        me->peers[rank] = fresh;
    }
    *peer = me->peers[rank];
    return MESHCOLL_OK;
}

static void return_half(hub_t *hub, half_t *half)
{
    half->by_tag.next = hub->spare;
    hub->spare = &half->by_tag;
}

static half_t *take_spare(hub_t *hub)
{
    half_t *const half = (half_t *)hub->spare;
    if (half)
        hub->spare = half->by_tag.next;
    return half ? half : malloc(sizeof *half);
}

static int add_half(hub_t *hub, mc_hash_t *list, const mc_message_t *message, mc_io_t *io,
                    int32_t rank)
{
    half_t *const half = take_spare(hub);
    if (!half)
        return mc_fail_memory("a message");
    half->message = *message;
    half->io = io;
    half->rank = rank;
    mc_hash_add(list, &half->by_tag, message->tag);
    return MESHCOLL_IN_PROGRESS;
}

static int add_header(rank_t *to, const mc_message_t *message, mc_io_t *io, int32_t rank)
{
    half_t *const half = take_spare(to->hub);
    if (!half)
        return mc_fail_memory("a message");
    *half = (half_t){.by_tag.key = message->tag, .message = *message, .io = io, .rank = rank};
    mc_hash_append(&to->headers, &half->by_tag);
    return MESHCOLL_IN_PROGRESS;
}

static int move_bytes(const mc_message_t *to, const mc_message_t *from, int32_t from_rank)
{
    if (to->bytes != from->bytes)
        return mc_fail(
            MESHCOLL_ERR_MISMATCH,
            "a message of %zu bytes arrived from rank %d where %zu were expected: do the "
            "ranks agree about the count?",
            from->bytes, from_rank, to->bytes);
    uint32_t i = 0, k = 0;
    size_t at_i = 0, at_k = 0;
    while (i < from->n_spans && k < to->n_spans) {
        const mc_span_t *const s = &from->span[i], *const d = &to->span[k];
        const size_t left_i = s->bytes - at_i, left_k = d->bytes - at_k;
        const size_t n = left_i < left_k ? left_i : left_k;
        memcpy((char *)d->at + at_k, (const char *)s->at + at_i, n);
        at_i = n == left_i ? (i++, 0) : at_i + n;
        at_k = n == left_k ? (k++, 0) : at_k + n;
    }
    return MESHCOLL_OK;
}

/* Completes the matched entry, which its own rank reports in its progress. */
static int settle(hub_t *hub, half_t *other, int status)
{
    mc_io_t *const io = other->io;
    mc_io_queue_t *const q = io->finished;
    rank_t *const me = &hub->at[other->rank];
    if (status < 0)
        snprintf(me->why, sizeof me->why, "%s", meshcoll_last_error());
    io->finished = &me->completed;
    mc_io_finish(io, status);
    io->finished = q;
    return_half(hub, other);
    return status;
}

static int inproc_send(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    rank_t *const me = rank_of(peer->transport), *const to = &me->hub->at[peer->rank];
    if (mc_tag_is_header(message->tag))
        return add_header(to, message, io, me->rank);
    half_t *const half = (half_t *)mc_hash_take(&to->awaited, message->tag);
    if (!half)
        return add_half(me->hub, &to->sent, message, io, me->rank);
    return settle(me->hub, half, move_bytes(&half->message, message, me->rank));
}

static int inproc_recv(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    rank_t *const me = rank_of(peer->transport);
    half_t *const half = (half_t *)mc_hash_take(&me->sent, message->tag);
    if (!half)
        return add_half(me->hub, &me->awaited, message, io, me->rank);
    return settle(me->hub, half, move_bytes(message, &half->message, peer->rank));
}

static uint32_t handle_headers(rank_t *me)
{
    uint32_t n = 0;
    for (half_t *half; (half = (half_t *)me->headers.first); n++) {
        if (!me->listener.handle(me->listener.context, half->message.tag, half->message.span->at))
            break;
        me->headers.first = half->by_tag.next;
        settle(me->hub, half, MESHCOLL_OK);
    }
    return n;
}

static uint32_t inproc_progress(mc_transport_t *t)
{
    uint32_t n = rank_of(t)->listener.handle ? handle_headers(rank_of(t)) : 0;
    for (mc_io_t *io; (io = mc_io_pop(&rank_of(t)->completed)); n++)
        mc_io_finish(io, io->status < 0 ? mc_fail(io->status, "%s", rank_of(t)->why) : io->status);
    return n;
}

static int inproc_arm(mc_transport_t *t)
{
    (void)t;
    return MESHCOLL_IN_PROGRESS;
}

static void free_list(mc_hashed_t *half)
{
    while (half) {
        mc_hashed_t *const next = half->next;
        free(half);
        half = next;
    }
}

static void free_halves(mc_hash_t *halves)
{
    for (mc_hashed_t *half; (half = mc_hash_take_any(halves));)
        free(half);
    mc_hash_free(halves);
}

static void hub_free(hub_t *hub)
{
    for (int32_t i = 0; i < hub->n; i++) {
        free_halves(&hub->at[i].sent);
        free_halves(&hub->at[i].awaited);
        free_list(hub->at[i].headers.first);
        for (int32_t k = 0; hub->at[i].peers && k < hub->n; k++)
            free(hub->at[i].peers[k]);
        free(hub->at[i].peers);
    }
    free_list(hub->spare);
    free(hub);
}

static bool is_of(const mc_hashed_t *half, const void *rank)
{
    return ((const half_t *)half)->rank == *(const int32_t *)rank;
}

/* Removes what a rank has posted without a match. */
static void drop_halves(hub_t *hub, rank_t *at, int32_t rank)
{
    const mc_hashed_list_t headers = at->headers;
    mc_hashed_t *half;
    while ((half = mc_hash_find(&at->sent, is_of, &rank)))
        return_half(hub, (half_t *)mc_hash_take(&at->sent, half->key));
    while ((half = mc_hash_find(&at->awaited, is_of, &rank)))
        return_half(hub, (half_t *)mc_hash_take(&at->awaited, half->key));
    at->headers = (mc_hashed_list_t){0};
    for (mc_hashed_t *e = headers.first, *next; e; e = next) {
        next = e->next;
        if (is_of(e, &rank))
            return_half(hub, (half_t *)e);
        else
            mc_hash_append(&at->headers, e);
    }
}

static bool differs(const mc_hashed_t *e, const void *tag)
{
    return mc_tag_differs(e->key, *(const uint64_t *)tag);
}

static bool inproc_differs(mc_transport_t *t, uint64_t tag, uint64_t *other)
{
    const mc_hashed_t *const e = mc_hash_find(&rank_of(t)->sent, differs, &tag);
    if (e)
        *other = e->key;
    return e;
}

static void inproc_abandon(mc_transport_t *t, const char *why)
{
    hub_t *const hub = rank_of(t)->hub;
    (void)why;
    for (int32_t i = 0; i < hub->n; i++)
        drop_halves(hub, &hub->at[i], rank_of(t)->rank);
}

static void inproc_close(mc_transport_t *t)
{
    hub_t *const hub = rank_of(t)->hub;
    inproc_abandon(t, NULL);
    if (--hub->n_open == 0)
        hub_free(hub);
}

static int inproc_listen(mc_transport_t *t, const mc_listener_t *listener)
{
    rank_of(t)->listener = *listener;
    return MESHCOLL_OK;
}

static const mc_transport_ops_t inproc_ops = {.connect = inproc_connect,
                                              .send = inproc_send,
                                              .recv = inproc_recv,
                                              .listen = inproc_listen,
                                              .progress = inproc_progress,
                                              .arm = inproc_arm,
                                              .differs = inproc_differs,
                                              .abandon = inproc_abandon,
                                              .close = inproc_close};

int mc_inproc_hub(int32_t n, mc_transport_t **transports)
{
    hub_t *const hub = calloc(1, sizeof *hub + (size_t)n * sizeof hub->at[0]);
    if (!hub)
        return mc_fail_memory("an inproc hub");
    hub->n = hub->n_open = n;
    for (int32_t i = 0; i < n; i++) {
        rank_t *const me = &hub->at[i];
        me->transport = (mc_transport_t){.ops = &inproc_ops, .fd = -1};
        me->hub = hub;
        me->rank = i;
        me->peers = calloc((size_t)n, sizeof(mc_peer_t *));
        if (!me->peers) {
            hub_free(hub);
            return mc_fail_memory("an inproc hub");
        }
    }
    for (int32_t i = 0; i < n; i++)
        transports[i] = &hub->at[i].transport;
    return MESHCOLL_OK;
}

/* A mesh ------------------------------------------------------------------------------------------ */

static int add_hubs(const mc_mesh_t *mesh, meshcoll_t **ranks)
{
    mc_transport_t **const t = calloc((size_t)mesh->size, sizeof(mc_transport_t *));
    int status = t ? MESHCOLL_OK : mc_fail_memory("transports");
    for (int32_t d = 0; d < mesh->ndims && !status; d++) {
        status = mc_inproc_hub(mesh->size, t);
        for (int32_t r = 0; r < mesh->size && !status; r++)
            ranks[r]->transport[d] = ranks[r]->job->connections.transport[d] = t[r];
    }
    free(t);
    return status;
}

int mc_inproc_create(const char *mesh, const meshcoll_params_t *params, meshcoll_t **ranks)
{
    mc_settings_t settings;
    mc_mesh_t m;
    int32_t n = 0;
    int status = mc_mesh_parse(mesh, &m);
    if (!status)
        status = mc_settings_read(params, &settings);
    /* The ranks run in one thread, so they neither need a progress thread nor locks. */
    settings.progress = settings.threads = NULL;
    if (status)
        return status;
    while (n < m.size && !(status = mc_handle_open(&m, n, &settings, NULL, &ranks[n])))
        n++;
    mc_settings_free(&settings);
    if (!status)
        status = add_hubs(&m, ranks);
    while (status && n > 0)
        meshcoll_destroy(ranks[--n]);
    return status;
}
