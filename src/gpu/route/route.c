#include "gpu/route/route.h"

#include "gpu/program/piece.h"

#include <stdatomic.h>
#include <stdlib.h>

/* An acknowledgement for each half of the slots: the sender goes on with the other half meanwhile. */
enum { ACKNOWLEDGED = MC_DEVICE_SLOTS / 2 };

/* Memory ------------------------------------------------------------------------------------------ */

static size_t slots_of_lane(const mc_route_params_t *p)
{
    return (size_t)MC_DEVICE_SLOTS * p->slot_bytes;
}

static size_t counter_at(uint32_t block, int which)
{
    return (size_t)block * MC_ROUTE_LANE + (size_t)which;
}

size_t mc_route_slots_bytes(uint32_t blocks, uint32_t slot_bytes)
{
    return (size_t)blocks * MC_DEVICE_SLOTS * slot_bytes;
}

size_t mc_route_host_bytes(uint32_t blocks, uint32_t slot_bytes, bool slots)
{
    return (size_t)blocks * MC_ROUTE_LANE + (slots ? mc_route_slots_bytes(blocks, slot_bytes) : 0);
}

/* The first slot of a block; `host`: of the memory of the host, as the proxy or as kernels see it. */
static uint64_t slots_at(const mc_route_params_t *p, uint64_t host, uint32_t block)
{
    const uint64_t first = p->slots ? p->slots : host + mc_route_host_bytes(p->blocks, 0, false);
    return first + block * slots_of_lane(p);
}

static uint64_t *counter(const mc_route_t *r, uint32_t block, int which)
{
    return (uint64_t *)(void *)((char *)r->params.host + counter_at(block, which));
}

static char *slot(const mc_route_t *r, uint32_t block, uint64_t number)
{
    const uint64_t first = slots_at(&r->params, (uintptr_t)r->params.host, block);
    return (char *)(uintptr_t)(first + number % MC_DEVICE_SLOTS * r->params.slot_bytes);
}

mc_device_lane_t mc_route_lane(const mc_route_t *r, uint32_t block, uint64_t *count)
{
    const mc_route_params_t *const p = &r->params;
    const uint64_t flag = p->device + counter_at(block, MC_ROUTE_FLAG);
    const uint64_t credit = p->device + counter_at(block, MC_ROUTE_CREDIT);
    return (mc_device_lane_t){.slots = (char *)(uintptr_t)slots_at(p, p->device, block),
                              .awaited = (uint64_t *)(uintptr_t)(p->receives ? flag : credit),
                              .raised = (uint64_t *)(uintptr_t)(p->receives ? credit : flag),
                              .count = count};
}

/* Launches ---------------------------------------------------------------------------------------- */

/* What an earlier launch had; NULL: nothing. */
static mc_route_launch_t *take_spare(mc_route_t *r)
{
    mc_route_launch_t *const l =
        r->spare ? r->spare : atomic_exchange_explicit(&r->spent, NULL, memory_order_acquire);
    r->spare = l ? l->next : NULL;
    return l;
}

int mc_route_launch(mc_route_t *route, mc_device_program_t *program, uint32_t lane,
                    const mc_device_call_t *call, uint32_t digest, mc_route_launch_t **launch)
{
    mc_route_launch_t *l = take_spare(route);
    if (!l && !(l = malloc(sizeof *l)))
        return mc_fail_memory("a call between machines");
    *l = (mc_route_launch_t){NULL, route, program, lane, call->piece, call->passes, digest};
    mc_device_program_hold(program);
    *launch = l;
    return MESHCOLL_OK;
}

void mc_route_launch_free(mc_route_launch_t *l)
{
    mc_device_program_free(l->program);
    free(l);
}

void mc_route_give(mc_route_launch_t *l)
{
    mc_route_t *const r = l->route;
    l->next = NULL;
    *(r->launch ? &r->last->next : &r->launch) = l;
    r->last = l;
}

static void end_launch(mc_route_t *r)
{
    mc_route_launch_t *const ended = r->launch;
    r->launch = ended->next;
    r->pass = r->at = 0;
    mc_device_program_free(ended->program);
    ended->next = atomic_load_explicit(&r->spent, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&r->spent, &ended->next, ended,
                                                  memory_order_release, memory_order_relaxed)) {}
}

/* Routes ------------------------------------------------------------------------------------------ */

int mc_route_make(const mc_route_params_t *params, mc_route_t **route)
{
    mc_route_t *const r = calloc(1, sizeof *r);
    if (!r)
        return mc_fail_memory("a route between machines");
    r->params = *params;
    r->next = mc_arena_take(&r->arena, params->blocks, sizeof *r->next);
    for (uint32_t i = 0; i < MC_DEVICE_SLOTS; i++) {
        mc_flight_t *const f = &r->flight[i];
        f->span = mc_arena_take(&r->arena, params->blocks, sizeof *f->span);
        f->block = mc_arena_take(&r->arena, params->blocks, sizeof *f->block);
        f->number = mc_arena_take(&r->arena, params->blocks, sizeof *f->number);
        f->io = mc_arena_take(&r->arena, params->blocks, sizeof *f->io);
    }
    if (r->arena.failed) {
        mc_route_free(r);
        return mc_fail_memory("a route between machines");
    }
    *route = r;
    return MESHCOLL_OK;
}

void mc_route_free(mc_route_t *r)
{
    while (r->launch)
        end_launch(r);
    for (mc_route_launch_t *l; (l = take_spare(r));)
        free(l);
    mc_arena_free(&r->arena);
    free(r);
}

void mc_route_connect(mc_route_t *r, mc_peer_t *peer, mc_io_queue_t *finished)
{
    r->peer = peer;
    r->finished = finished;
}

/* Messages ---------------------------------------------------------------------------------------- */

static mc_flight_t *flight_of(mc_route_t *r, uint64_t number)
{
    return &r->flight[number % MC_DEVICE_SLOTS];
}

/* The bytes of a block in a message of a launch, in a pass; 0: the block has no part in it, and its lane does not count
 * it. */
static uint64_t bytes_of(const mc_route_launch_t *l, uint32_t message, uint32_t block,
                         uint32_t pass)
{
    const mc_device_program_t *const p = l->program;
    const mc_device_message_t *const m = &p->message[p->first[l->lane] + message];
    uint64_t bytes = 0;
    if (mc_device_track(&p->run[m->first]) != block % p->tracks)
        return 0;
    for (uint32_t i = m->first; i < m->end; i++) {
        const mc_device_run_t *const run = &p->run[i];
        const uint64_t piece = mc_device_piece(l->piece, block / p->tracks, pass, run).bytes;
        bytes += run->n * mc_device_padded(piece);
    }
    return bytes;
}

/* The blocks' parts of message `at`; false: no block has one. */
static bool prepare(mc_route_t *r, const mc_route_launch_t *l)
{
    mc_flight_t *const f = flight_of(r, r->n_posted);
    f->n = 0;
    f->bytes = 0;
    f->digest = l->digest;
    for (uint32_t b = 0; b < r->params.blocks; b++) {
        const size_t bytes = bytes_of(l, r->at, b, r->pass);
        if (bytes == 0)
            continue;
        f->span[f->n] = (mc_span_t){slot(r, b, r->next[b]), bytes};
        f->block[f->n] = b;
        f->number[f->n++] = r->next[b];
        r->next[b] = mc_device_count(r->next[b], l->digest);
        f->bytes += bytes;
    }
    return f->n > 0;
}

/* false: there is none. */
static bool prepare_next(mc_route_t *r)
{
    for (const mc_route_launch_t *l; (l = r->launch);) {
        const uint32_t n = l->program->first[l->lane + 1] - l->program->first[l->lane];
        for (; r->pass < l->passes; r->pass++, r->at = 0)
            while (r->at < n) {
                const bool any = prepare(r, l);
                r->at++;
                if (any)
                    return true;
            }
        end_launch(r);
    }
    return false;
}

/* Has the kernel raised what it raises for each block: flags of a sender, credits of a receiver? */
static bool is_raised(const mc_route_t *r, const mc_flight_t *f)
{
    const int which = r->params.receives ? MC_ROUTE_CREDIT : MC_ROUTE_FLAG;
    for (uint32_t i = 0; i < f->n; i++)
        if (mc_device_beyond(__atomic_load_n(counter(r, f->block[i], which), __ATOMIC_ACQUIRE),
                             f->number[i]) <= 0)
            return false;
    return true;
}

/* Raises what the kernel waits for. */
static void raise_blocks(const mc_route_t *r, const mc_flight_t *f)
{
    const int which = r->params.receives ? MC_ROUTE_FLAG : MC_ROUTE_CREDIT;
    for (uint32_t i = 0; i < f->n; i++)
        __atomic_store_n(counter(r, f->block[i], which), mc_device_count(f->number[i], f->digest),
                         __ATOMIC_RELEASE);
}

/* More messages have numbers of their own than are ever in flight. */
_Static_assert(1 << MC_TAG_PHASE_BITS > 2 * MC_DEVICE_SLOTS, "numbers of messages in flight");
_Static_assert((int)MC_TAG_DIGEST_BITS == (int)MC_DEVICE_DIGEST_BITS &&
                   MC_DEVICE_COUNT_BITS + MC_DEVICE_SLOTS * MC_DEVICE_DIGEST_BITS == 64,
               "counts have room for digests");
static uint64_t numbered(uint64_t tag, uint64_t number, uint32_t digest)
{
    return tag | mc_tag_phase((uint32_t)number % (1 << MC_TAG_PHASE_BITS)) | digest;
}

/* Parts that are messages of their own have one tag, and so match in order. */
static int post(mc_route_t *r)
{
    mc_flight_t *const f = flight_of(r, r->n_posted);
    const bool parts = r->params.parts;
    const uint64_t tag = r->params.receives ? r->params.peers_tag : r->params.own_tag;
    const mc_transport_ops_t *const ops = r->peer->transport->ops;
    f->n_messages = parts ? f->n : 1;
    for (uint32_t i = 0; i < f->n_messages; i++) {
        const mc_message_t m = {.tag = numbered(tag, r->n_posted, f->digest),
                                .span = &f->span[i],
                                .n_spans = parts ? 1 : f->n,
                                .bytes = parts ? f->span[i].bytes : f->bytes,
                                .on_device = r->params.slots != 0};
        mc_route_io_t *const io = &f->io[i];
        *io = (mc_route_io_t){.io.finished = r->finished};
        const int status =
            r->params.receives ? ops->recv(r->peer, &m, &io->io) : ops->send(r->peer, &m, &io->io);
        if (status < 0)
            return status;
        io->complete = status == MESHCOLL_OK;
    }
    return MESHCOLL_OK;
}

static bool is_complete(const mc_flight_t *f)
{
    bool complete = true;
    for (uint32_t i = 0; i < f->n_messages && complete; i++)
        complete = f->io[i].complete;
    return complete;
}

/* Is the next flight free, and with it its slots: here where it receives, there where it sends? */
static bool has_room(const mc_route_t *r)
{
    const uint64_t left = r->params.receives ? r->n_taken : r->n_done;
    return r->n_posted - left < MC_DEVICE_SLOTS &&
           (r->params.receives || r->n_posted - r->n_acknowledged < MC_DEVICE_SLOTS);
}

static int post_all(mc_route_t *r, uint32_t *moved)
{
    while (has_room(r)) {
        r->prepared = r->prepared || prepare_next(r);
        if (!r->prepared || (!r->params.receives && !is_raised(r, flight_of(r, r->n_posted))))
            return MESHCOLL_OK;
        const int status = post(r);
        if (status)
            return status;
        r->prepared = false;
        r->n_posted++;
        ++*moved;
    }
    return MESHCOLL_OK;
}

static int settle(mc_route_t *r, uint32_t *moved)
{
    uint64_t done = r->n_done;
    while (done < r->n_posted && is_complete(flight_of(r, done)))
        done++;
    const int status = done > r->n_done && r->params.flush ? r->params.flush() : MESHCOLL_OK;
    if (status)
        return status;
    for (; r->n_done < done; r->n_done++, ++*moved)
        raise_blocks(r, flight_of(r, r->n_done));
    for (; r->params.receives && r->n_taken < r->n_done && is_raised(r, flight_of(r, r->n_taken));
         r->n_taken++)
        ++*moved;
    return MESHCOLL_OK;
}

/* Acknowledgements -------------------------------------------------------------------------------- */

/* Messages that are to be acknowledged, here or by the receiver. */
static uint64_t unacknowledged(const mc_route_t *r)
{
    return (r->params.receives ? r->n_taken : r->n_posted) - r->n_acknowledged;
}

static int post_acknowledgement(mc_route_t *r)
{
    static char nothing[1];
    static const mc_span_t empty = {nothing, 0};
    const bool receives = r->params.receives;
    const uint64_t tag = receives ? r->params.own_tag : r->params.peers_tag;
    const mc_message_t m = {
        .tag = numbered(tag, r->n_acknowledged, 0) | MC_TAG_CREDIT, .span = &empty, .n_spans = 1};
    const mc_transport_ops_t *const ops = r->peer->transport->ops;
    mc_route_io_t *const io = &r->acknowledgement;
    *io = (mc_route_io_t){.io.finished = r->finished};
    const int status = receives ? ops->send(r->peer, &m, &io->io) : ops->recv(r->peer, &m, &io->io);
    if (status < 0)
        return status;
    io->complete = status == MESHCOLL_OK;
    r->acknowledges = true;
    return MESHCOLL_OK;
}

static int acknowledge(mc_route_t *r, uint32_t *moved)
{
    if (r->acknowledges && r->acknowledgement.complete) {
        r->acknowledges = false;
        r->n_acknowledged += ACKNOWLEDGED;
        ++*moved;
    }
    return !r->acknowledges && unacknowledged(r) >= ACKNOWLEDGED ? post_acknowledgement(r)
                                                                 : MESHCOLL_OK;
}

/* ------------------------------------------------------------------------------------------------- */

int mc_route_finish(mc_io_queue_t *finished)
{
    for (mc_io_t *io; (io = mc_io_pop(finished));) {
        if (io->status < 0)
            return io->status;
        ((mc_route_io_t *)io)->complete = true;
    }
    return MESHCOLL_OK;
}

int mc_route_advance(mc_route_t *r, uint32_t *moved)
{
    int status = settle(r, moved);
    if (!status)
        status = acknowledge(r, moved);
    return status ? status : post_all(r, moved);
}

/* The message is not taken: the mesh will fail, and the receive stays posted. */
void mc_route_check(mc_route_t *r)
{
    uint64_t other;
    if (!r->params.receives || !r->peer || r->n_done == r->n_posted)
        return;
    mc_transport_t *const t = r->peer->transport;
    mc_flight_t *const f = flight_of(r, r->n_done);
    const uint64_t tag = numbered(r->params.peers_tag, r->n_done, f->digest);
    if (!t->ops->differs || !t->ops->differs(t, tag, &other))
        return;
    f->digest = mc_tag_digest(other);
    raise_blocks(r, f);
}

bool mc_route_is_quiet(const mc_route_t *r)
{
    return !r->launch && !r->prepared && r->n_done == r->n_posted &&
           (!r->params.receives || r->n_taken == r->n_posted) && !r->acknowledges &&
           unacknowledged(r) < ACKNOWLEDGED;
}
