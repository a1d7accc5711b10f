/*
 * The messages of a program by lane, in program order, with what each block has of them: from this
 * a proxy knows what will lie in the slots of a launch, and both ends know it alike. Immutable.
 * Programs, and routes that have still to move it, hold it (mc_schedule_hold).
 */
#ifndef MC_PROXY_SCHEDULE_H
#define MC_PROXY_SCHEDULE_H

#include "base/arena.h"
#include "gpu/program/program.h"

#include <stdatomic.h>

struct mc_route;

/* The runs of one message: [first, end). */
typedef struct {
    uint32_t first, end;
} mc_schedule_message_t;

typedef struct {
    mc_arena_t arena;
    _Atomic uint32_t holders;
    uint32_t n_lanes;
    mc_device_call_t
        call; /* as it is launched, but with runs of the host's, buffers and lanes unset */
    const mc_schedule_message_t *message;
    const uint32_t *first; /* by lane: its messages are those from first[lane] to first[lane + 1] */
    struct mc_route **route; /* by lane; NULL: not a proxy's. Set by who makes it. */
} mc_schedule_t;

/* Of a program whose call is complete but for addresses. ERR_NO_MEMORY. The caller holds it. */
int mc_schedule_make(const mc_device_program_t *program, const mc_device_call_t *call,
                     mc_schedule_t **schedule);
void mc_schedule_hold(mc_schedule_t *schedule);
/* The last one frees it; NULL is allowed. */
void mc_schedule_drop(mc_schedule_t *schedule);

static inline uint32_t mc_schedule_messages(const mc_schedule_t *t, uint32_t lane)
{
    return t->first[lane + 1] - t->first[lane];
}
/* The bytes of a block in a message of a lane, in a pass; 0: the block has no part in it, and its
 * lane does not count it. */
uint64_t mc_schedule_bytes(const mc_schedule_t *schedule, uint32_t lane, uint32_t message,
                           uint32_t block, uint32_t pass);

#endif
