#include "runtime/message/talk.h"

#include "runtime/connect/connections.h"
#include "runtime/message/receive.h"
#include "runtime/message/send.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mc_messages messages_t;
typedef struct mc_talk talk_t;

/* Arriving -------------------------------------------------------------------------------------- */

/* Is it of a handle that is gone? */
static bool is_late(const meshcoll_t *root, const mc_arrival_t *a)
{
    const mc_family_t *const f = root->family;
    const uint32_t last = f ? f->last[a->context] : 0;
    const meshcoll_t *const h = root->talk->of_context[a->context];
    return h ? mc_creation_before(a->header.creation, h->creation)
             : last > 0 && !mc_creation_before(last, a->header.creation);
}

/* Passes it on, parks it, or drops it. */
static void pass_on(meshcoll_t *root, mc_arrival_t *a)
{
    talk_t *const talk = root->talk;
    meshcoll_t *const h = talk->of_context[a->context];
    if (is_late(root, a)) {
        free(a);
    } else if (h && h->creation == a->header.creation) {
        a->source = mc_rank_of_root(h, a->source);
        mc_arrivals_append(&h->messages->arrived, a);
    } else {
        mc_arrivals_append(&talk->parked, a);
    }
}

static bool hear(void *context, uint64_t tag, const void *header)
{
    meshcoll_t *const root = context;
    talk_t *const talk = root->talk;
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
    pass_on(root, a);
    return true;
}

static void look_at_parked(meshcoll_t *root)
{
    mc_arrival_t *a = root->talk->parked.first;
    mc_arrivals_init(&root->talk->parked);
    for (mc_arrival_t *next; a; a = next) {
        next = a->next;
        pass_on(root, a);
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
    for (; m->arrived.first && !status; n++)
        status = arrive(h, mc_arrivals_remove(&m->arrived, &m->arrived.first));
    for (mc_io_t *io; !status && (io = mc_io_pop(&m->finished)); n++)
        status = follow(h, io);
    if (status || !m->flushing.first)
        return status ? status : n;
    status = mc_transfers_flushed(h, (uint32_t)n);
    return status < 0 ? status : n + status;
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

static uint32_t move(meshcoll_t *root)
{
    if (root->broken)
        return 0;
    const int n = move_all(root->talk);
    if (n < 0)
        mc_failure_break(root, n);
    else if (n > 0)
        mc_handle_tell(root);
    return n < 0 ? 1 : (uint32_t)n;
}

/* Opening and closing --------------------------------------------------------------------------- */

/* A root begins to listen once. */
static int listen_on(meshcoll_t *root)
{
    int status = MESHCOLL_OK;
    if (root->talk)
        return MESHCOLL_OK;
    root->talk = calloc(1, sizeof *root->talk);
    if (!root->talk)
        return mc_fail_memory("tagged messages");
    mc_arrivals_init(&root->talk->parked);
    const mc_listener_t listener = {.hear = hear, .context = root};
    for (int32_t d = 0; d < root->mesh.ndims && !status; d++) {
        mc_transport_t *const t = root->transport[d];
        if (!t || !t->ops->listen)
            continue;
        mc_handle_poll(root, t);
        status = t->ops->listen(t, &listener);
    }
    root->move_messages = move;
    if (status)
        mc_failure_break(root, status);
    return status;
}

int mc_talk_open(meshcoll_t *h)
{
    meshcoll_t *const root = h->root;
    if (h->messages)
        return MESHCOLL_OK;
    int status = listen_on(root);
    if (!status)
        status = mc_messages_create(h);
    if (status)
        return status;
    h->messages->next_talk = root->talk->first;
    root->talk->first = h;
    root->talk->of_context[h->context] = h;
    look_at_parked(root);
    return MESHCOLL_OK;
}

void mc_talk_leave(meshcoll_t *h)
{
    talk_t *const talk = h->root->talk;
    if (!talk)
        return;
    if (h->messages) {
        meshcoll_t **at = &talk->first;
        while (*at != h)
            at = &(*at)->messages->next_talk;
        *at = h->messages->next_talk;
        talk->of_context[h->context] = NULL;
    }
    look_at_parked(h->root);
}

void mc_talk_free(meshcoll_t *root)
{
    if (!root->talk)
        return;
    for (mc_arrival_t *a = root->talk->parked.first, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    free(root->talk);
    root->talk = NULL;
    root->move_messages = NULL;
}
