#include "runtime/message/note.h"

#include "runtime/message/receive.h"
#include "runtime/message/send.h"
#include "runtime/message/talk.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

/* A transfer of which the rest is to be filled in. */
static int open_note(meshcoll_t *h, int32_t rank, mc_transfer_t **transfer)
{
    mc_flow_t *flow;
    int status = mc_failure_check(h);
    if (!status)
        status = mc_talk_open(h);
    if (!status)
        status = mc_flow_find(h, rank, &flow);
    mc_transfer_t *const t = status ? NULL : mc_transfer_take(h);
    if (!t)
        return status ? status : MESHCOLL_ERR_NO_MEMORY;
    t->flow = flow;
    t->peer = rank;
    t->is_note = true;
    t->element = 1;
    flow->link->wanted++;
    *transfer = t;
    return MESHCOLL_OK;
}

static int start(meshcoll_t *h, mc_transfer_t *t, int (*begin)(meshcoll_t *h, mc_transfer_t *t))
{
    const int status = begin(h, t);
    if (status) {
        mc_failure_break(h, status);
        mc_request_drop(&t->request);
        return status;
    }
    mc_transfer_started(h, t);
    return MESHCOLL_OK;
}

int mc_note_send(meshcoll_t *h, int32_t rank, int32_t tag, const void *note, size_t bytes,
                 mc_transfer_t **transfer)
{
    mc_transfer_t *t;
    int status = open_note(h, rank, &t);
    if (status)
        return status;
    t->at = (char *)note;
    t->bytes = bytes;
    t->tag = tag;
    status = start(h, t, mc_send_start);
    if (!status)
        *transfer = t;
    return status;
}

int mc_note_recv(meshcoll_t *h, int32_t rank, int32_t tag, void *note, size_t bytes,
                 mc_transfer_t **transfer)
{
    mc_transfer_t *t;
    int status = open_note(h, rank, &t);
    if (status)
        return status;
    t->at = note;
    t->bytes = bytes;
    t->tag = tag;
    status = start(h, t, mc_receive_start);
    if (!status)
        *transfer = t;
    return status;
}

void mc_note_drop(meshcoll_t *h, mc_transfer_t *t)
{
    if (!t)
        return;
    if (t->request.running)
        mc_receive_cancel(h, t);
    mc_request_drop(&t->request);
}
