#include "gpu/mesh/meeting.h"

#include "gpu/mesh/gpu.h"
#include "runtime/call/request.h"
#include "runtime/diagnose/check.h"

#include <string.h>

/* They are gathered as such. */
static size_t in_words(size_t bytes)
{
    const size_t word = sizeof(int64_t);
    return (bytes + word - 1) / word * word;
}

int mc_gpu_meeting_open(meshcoll_t *h, uint32_t number, mc_gpu_meeting_t *meeting)
{
    const size_t plain = in_words(sizeof *meeting->own + (size_t)h->mesh.size);
    *meeting = (mc_gpu_meeting_t){.mesh = h, .number = number, .plain = plain};
    const int status = mc_gpu_meeting_widen(meeting, 0);
    if (status)
        mc_arena_free(&meeting->arena);
    return status;
}

int mc_gpu_meeting_widen(mc_gpu_meeting_t *m, size_t more)
{
    const size_t stride = m->plain + in_words(more);
    mc_gpu_note_t *const own = mc_arena_take(&m->arena, 1, stride);
    char *const all = mc_arena_take(&m->arena, (size_t)m->mesh->mesh.size, stride);
    if (!own || !all)
        return mc_fail_memory("a meeting of ranks");
    if (m->own)
        memcpy(own, m->own, m->plain);
    m->own = own;
    m->all = all;
    m->stride = stride;
    return MESHCOLL_OK;
}

static int gather(mc_gpu_meeting_t *m)
{
    mc_run_t *r;
    const mc_gathered_t what = {m->own, m->all, m->stride, "a meeting of GPUs", m->number};
    int status = mc_check_gather(m->mesh, &what, &mc_call_kind, NULL, &r);
    if (status)
        return status;
    status = mc_request_start(&r->head);
    if (status) {
        mc_request_drop(&r->head);
        return status;
    }
    return mc_request_complete(&r->head);
}

static int verdict(const mc_gpu_meeting_t *m)
{
    for (int32_t r = 0; r < m->mesh->mesh.size; r++) {
        const mc_gpu_note_t *const note = mc_gpu_note(m, r);
        if (note->status)
            return mc_fail(note->status, "rank %d: %.*s", (int)mc_comm_rank_of(&m->mesh->order, r),
                           MC_GPU_WHY, note->why);
    }
    return MESHCOLL_OK;
}

int mc_gpu_meet(mc_gpu_meeting_t *m, int status)
{
    mc_text_t why = mc_text(m->own->why, sizeof m->own->why);
    m->own->status = status;
    mc_text_add(&why, "%s", status ? meshcoll_last_error() : "");
    status = gather(m);
    return status ? mc_gpu_fail_alone(m->mesh, status) : verdict(m);
}
