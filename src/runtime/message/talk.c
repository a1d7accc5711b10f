#include "runtime/message/messages.h"

#include "runtime/connect/connections.h"
#include "runtime/message/transfer.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mc_messages messages_t;
typedef struct mc_talk talk_t;

/* Arriving -------------------------------------------------------------------------------------- */

/* Is it of a handle that is gone? */
static bool is_late(const mc_job_t *job, const mc_arrival_t *a)
{
    const mc_family_t *const f = job->family;
    const uint32_t last = f ? f->last[a->context] : 0;
    const meshcoll_t *const h = job->talk->of_context[a->context];
    return h ? mc_creation_before(a->header.creation, h->context.creation)
             : last > 0 && !mc_creation_before(last, a->header.creation);
}

/* Passes it on, parks it, or drops it. */
static void pass_on(mc_job_t *job, mc_arrival_t *a)
{
    talk_t *const talk = job->talk;
    meshcoll_t *const h = talk->of_context[a->context];
    if (is_late(job, a)) {
        free(a);
    } else if (h && h->context.creation == a->header.creation) {
        a->source = mc_rank_of_job_rank(h, a->source);
        mc_list_append(&h->messages->arrived, &a->node);
    } else {
        mc_list_append(&talk->parked, &a->node);
    }
}

static bool handle_header(void *context, uint64_t tag, const void *header)
{
    mc_job_t *const job = context;
    talk_t *const talk = job->talk;
    const uint32_t number = mc_tag_context_of(tag);
    const meshcoll_t *const h = talk->of_context[number];
    mc_arrival_t *const a = header ? mc_arrival_take(h ? h->messages : NULL) : NULL;
    if (!a) {
        talk->failed = header ? mc_fail_memory("a header") : MESHCOLL_ERR_TRANSPORT;
        snprintf(talk->why, sizeof talk->why, "%s", meshcoll_last_error());
        return !header;
    }
    a->source = mc_tag_source(tag);
    a->context = number;
    memcpy(&a->header, header, sizeof a->header);
    pass_on(job, a);
    return true;
}

/* Each stays parked, at the end, or leaves. */
static void pass_on_parked(mc_job_t *job)
{
    mc_list_node_t *const last = job->talk->parked.last;
    for (mc_list_node_t *n = job->talk->parked.first, *next; n; n = next) {
        next = n == last ? NULL : n->next;
        mc_list_remove(n);
        pass_on(job, mc_arrival_of(n));
    }
}

/* Progress -------------------------------------------------------------------------------------- */

static bool makes_sense(const meshcoll_t *h, const mc_arrival_t *a)
{
    const mc_header_t *const e = &a->header;
    const bool is_note = e->kind == MC_HEADER_NOTE;
    return a->source >= 0 && a->source < h->mesh.size && a->source != h->rank &&
           e->kind <= MC_HEADER_CREDIT && (is_note || e->tag >= 0) && e->bytes <= SIZE_MAX / 2 &&
           (!is_note || e->bytes <= MC_MESSAGE_INLINE);
}

/* Every header is of another rank, and its text is checked before it is used. */
static int arrive(meshcoll_t *h, mc_arrival_t *a)
{
    mc_flow_t *flow;
    int status = MESHCOLL_OK;
    if (!makes_sense(h, a))
        status = mc_fail(MESHCOLL_ERR_TRANSPORT, "a header from rank %d makes no sense", a->source);
    if (!status)
        status = mc_flow_find(h, a->source, &flow);
    if (!status && a->header.kind <= MC_HEADER_OFFER)
        return mc_receive_arrival(h, flow, a);
    if (!status && a->header.kind == MC_HEADER_READY)
        status = mc_send_ready(h, flow, &a->header);
    if (!status)
        status = mc_send_credits(h, flow, a->header.credits);
    mc_arrival_free(h->messages, a);
    return status;
}

static int follow(meshcoll_t *h, mc_io_t *io)
{
    mc_part_t *const part = (mc_part_t *)io;
    return io->status < 0 ? io->status : part->done(h, part->owner);
}

/* Returns the number of events, or an error. */
static int move_of(meshcoll_t *h)
{
    messages_t *const m = h->messages;
    int n = 0, status = MESHCOLL_OK;
    for (mc_list_node_t *node; !status && (node = m->arrived.first); n++) {
        mc_list_remove(node);
        status = arrive(h, mc_arrival_of(node));
    }
    for (mc_io_t *io; !status && (io = mc_io_pop(&m->finished)); n++)
        status = follow(h, io);
    if (status)
        return status;
    return m->flushing.first ? n + mc_transfers_flushed(h, (uint32_t)n) : n;
}

static int move_all(const talk_t *talk)
{
    int n = 0;
    if (talk->failed)
        return mc_fail(talk->failed, "%s", talk->why);
    for (meshcoll_t *h = talk->first; h; h = h->messages->next_talk) {
        const int moved = move_of(h);
        if (moved < 0)
            return moved;
        n += moved;
    }
    return n;
}

static uint32_t move(mc_job_t *job)
{
    if (job->failure.status)
        return 0;
    const int n = move_all(job->talk);
    if (n < 0)
        mc_failure_end(job, n);
    else if (n > 0)
        mc_job_wake_peers(job);
    return n < 0 ? 1 : (uint32_t)n;
}

/* Opening and closing --------------------------------------------------------------------------- */

/* A job begins to listen once. */
static int listen_on(mc_job_t *job)
{
    int status = MESHCOLL_OK;
    if (job->talk)
        return MESHCOLL_OK;
    job->talk = calloc(1, sizeof *job->talk);
    if (!job->talk)
        return mc_fail_memory("tagged messages");
    const mc_listener_t listener = {.handle = handle_header, .context = job};
    for (int32_t d = 0; d < job->mesh.ndims && !status; d++) {
        mc_transport_t *const t = job->connections.transport[d];
        if (!t || !t->ops->listen)
            continue;
        mc_job_poll(job, t);
        status = t->ops->listen(t, &listener);
    }
    job->move_messages = move;
    if (status)
        mc_failure_end(job, status);
    return status;
}

int mc_talk_open(meshcoll_t *h)
{
    mc_job_t *const job = h->job;
    if (h->messages)
        return MESHCOLL_OK;
    int status = listen_on(job);
    if (!status)
        status = mc_messages_create(h);
    if (status)
        return status;
    h->messages->next_talk = job->talk->first;
    job->talk->first = h;
    job->talk->of_context[h->context.number] = h;
    pass_on_parked(job);
    return MESHCOLL_OK;
}

void mc_talk_leave(meshcoll_t *h)
{
    talk_t *const talk = h->job->talk;
    if (!talk)
        return;
    if (h->messages) {
        meshcoll_t **at = &talk->first;
        while (*at != h)
            at = &(*at)->messages->next_talk;
        *at = h->messages->next_talk;
        talk->of_context[h->context.number] = NULL;
    }
    pass_on_parked(h->job);
}

void mc_talk_free(mc_job_t *job)
{
    if (!job->talk)
        return;
    mc_arrivals_free(&job->talk->parked);
    free(job->talk);
    job->talk = NULL;
    job->move_messages = NULL;
}
