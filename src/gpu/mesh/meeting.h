/*
 * What ranks tell each other while they make a mesh's GPU state: rounds of an allgather over the
 * mesh itself, each with every rank's status.
 */
#ifndef MC_GPU_MEETING_H
#define MC_GPU_MEETING_H

#include "base/arena.h"
#include "gpu/mesh/arena.h"
#include "runtime/handle/handle.h"

enum { MC_GPU_WHY = 256 };

/* What runs programs, as a rank is told by its environment. */
typedef enum { MC_GPU_ANY, MC_GPU_KERNEL, MC_GPU_STREAM } mc_gpu_executor_t;

/* Plain memory. What a round does not need is as in the one before it. */
typedef struct {
    int32_t status;
    uint32_t blocks, slot_bytes, ll_bytes; /* that the rank can have */
    uint32_t executor;
    uint32_t direct;        /* slots of its proxy may lie in memory of its GPU */
    uint32_t address_bytes; /* of its proxy; 0: none */
    mc_cu_uuid_t uuid;
    mc_cu_ipc_t handle;
    uint8_t shared; /* whether the driver gave the handle */
    mc_sealed_t file;
    mc_sealed_t signals; /* of the stream executor */
    uint64_t bytes, at;  /* of a registration: its bytes, and where it begins in its allocation */
    char why[MC_GPU_WHY];
    _Alignas(8) unsigned char reach[]; /* by mesh rank: can this rank's GPU use its memory? */
} mc_gpu_note_t;

typedef struct {
    mc_arena_t arena;
    meshcoll_t *mesh;
    uint32_t number; /* of the call; its messages are these rounds' */
    size_t stride;   /* bytes of a note, and of what is behind it */
    size_t plain;    /* of the note alone */
    mc_gpu_note_t *own;
    char *all;
} mc_gpu_meeting_t;

/* ERR_NO_MEMORY. The caller frees its arena. */
int mc_gpu_meeting_open(meshcoll_t *h, uint32_t number, mc_gpu_meeting_t *meeting);
/* From now on there are `more` bytes behind each note, the same on all ranks. What others noted is lost. ERR_NO_MEMORY. */
int mc_gpu_meeting_widen(mc_gpu_meeting_t *meeting, size_t more);
/* A round. `status` is this rank's, with meshcoll_last_error(). Returns that of all: OK, or that of
 * the first that failed, whose sentence names its rank. Where the round itself fails, so does the
 * mesh. */
int mc_gpu_meet(mc_gpu_meeting_t *meeting, int status);

/* Of a mesh rank; they are gathered in the caller's order. */
static inline const mc_gpu_note_t *mc_gpu_note(const mc_gpu_meeting_t *m, int32_t rank)
{
    const size_t at = (size_t)mc_comm_rank_of(&m->mesh->order, rank);
    return (const mc_gpu_note_t *)(const void *)(m->all + at * m->stride);
}
/* What is behind a note, of this rank and of one. */
static inline char *mc_gpu_own_more(const mc_gpu_meeting_t *m)
{
    return (char *)m->own + m->plain;
}
static inline const char *mc_gpu_more(const mc_gpu_meeting_t *m, int32_t rank)
{
    return (const char *)mc_gpu_note(m, rank) + m->plain;
}

#endif
