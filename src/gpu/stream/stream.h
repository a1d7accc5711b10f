/*
 * The stream executor: a program as operations of a CUDA stream. A step that sends waits until its
 * slot is empty, copies there and says that it is full; one that receives waits until it is full,
 * takes it and says that it is empty. Copies are the driver's, sums are kernels that wait for
 * nothing. So ranks may share a GPU, whose kernels do not run at once, and no multiprocessor is
 * kept from the program while a rank waits.
 *
 * Programs are lowered for one block. Each slot has a state, a word in pinned memory that both ends
 * see: one of its two bits is set, and each end waits for one of them. A lane's first message of a
 * launch takes its first slot. So an operation depends on nothing but its place in the program, and
 * may be captured in a graph and launched many times.
 *
 * A lane's first message of a launch, and that it has begun, must be of the same call; further ones then are. What is of
 * another call ends no wait, and the watch finds it.
 *
 * A direct message (gpu/program/direct.h) is copied to the receiver's OUT instead of its slot, whose
 * state goes round as with any other. A lane with such has one more word: the receiver says there
 * that its launch has begun, and the sender takes that back when it has seen it. It is not said
 * again before the sender has done so: a launch ends when the direct messages to it have come.
 *
 * Order: a write of a stream comes after all that the stream did before, for all who see it (CUDA:
 * as after __threadfence_system). What follows a wait comes after the write that ended it; where
 * the GPU says that it can, remote writes that came before are flushed, too.
 */
#ifndef MC_STREAM_STREAM_H
#define MC_STREAM_STREAM_H

#include "gpu/cuda/driver.h"
#include "gpu/program/program.h"

/*
 * States of a slot: EMPTY, or full of a message; of a launch that began, and that the sender has seen. OPEN ends every
 * wait, and is written by the host when a mesh has failed. A full slot tells the digest of its call, three bits by
 * each of three bytes of which one bit is set: a wait of a stream knows no more than whether any of some bits is set,
 * and so takes three of them for one digest.
 */
enum { MC_STREAM_FULL = 0xff, MC_STREAM_EMPTY = 1 << 24, MC_STREAM_OPEN = (1 << 25) - 1 };
static inline uint32_t mc_stream_full(uint32_t digest)
{
    return 1u << (digest & 7) | 1u << (8 + (digest >> 3 & 7)) | 1u << (16 + (digest >> 6 & 7));
}
static inline uint32_t mc_stream_digest(uint32_t full)
{
    return (uint32_t)(__builtin_ctz(full & 0xff) | (__builtin_ctz(full >> 8 & 0xff) << 3) |
                      (__builtin_ctz(full >> 16 & 0xff) << 6));
}
/* Words that different processes or GPUs write are so many bytes apart: a cache line of the host. */
enum { MC_STREAM_APART = 64 };

/* This rank's end of a lane. */
typedef struct {
    mc_cu_address_t slots;  /* MC_DEVICE_SLOTS of them */
    mc_cu_address_t states; /* of each, MC_STREAM_APART bytes apart */
    mc_cu_address_t begun;  /* the word of a lane with direct messages; 0: it has none */
    mc_cu_address_t window; /* of a sender: the receiver's registered memory, of direct messages */
    uint32_t word; /* number of the first of `states`; behind the slots' there is `begun` */
    bool open;     /* of a sender: the receiver is known to have begun this launch */
    uint32_t next; /* messages of the launch so far */
} mc_stream_lane_t;

/* Where a stream stands, in pinned memory: the stream writes it, the watch reads it. */
typedef struct {
    _Atomic uint32_t program; /* 1 more than the number of that which runs; 0: none */
    _Atomic uint32_t pass;
    _Atomic uint32_t run;    /* of the last message that it began to wait for */
    _Atomic uint32_t moved;  /* 1: a pass began or a program ended; the watch makes it 0 */
    _Atomic uint32_t number; /* of its operation */
    _Atomic uint32_t whose;  /* what a full slot of its call says */
    _Atomic uint32_t
        word; /* while it waits for a lane's first message: 1 more than its state's number */
} mc_stream_place_t;

typedef struct {
    const mc_device_call_t *call; /* with runs in memory of the host */
    mc_stream_lane_t *lane;       /* by lane of the program */
    uint32_t n_lanes;
    uint32_t blocks;       /* that a sum's kernel has at most */
    mc_cu_function_t sum;  /* of the program's body; NULL: it has no sums */
    mc_cu_address_t place; /* of the mc_stream_place_t, as the GPU sees it */
    bool flushes;          /* can the GPU flush remote writes? */
} mc_stream_launch_t;

/* Enqueues a launch. The context is current. Where it fails, some operations may be in the stream.
 * Waits where the driver's queue of the stream is full. */
int mc_stream_enqueue(const mc_stream_launch_t *launch, mc_cu_stream_t stream);

#endif
