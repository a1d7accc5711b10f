/*
 * What a block of the device executor reads: a rank's steps as runs of chunks, its ends of lanes,
 * where its buffers lie, and where it says how it ended. C and C++: nvcc compiles this text too.
 *
 * A lane carries the messages of one rank to another, of one block: a ring of slots that the
 * sender fills and the receiver empties.
 *
 * A program has tracks: phases that run one after the other belong to one track, and phases that are
 * to overlap to several. Each slice of the chunks has a block for each track, which does the track's
 * runs in program order. Blocks of one slice wait for each other where a step needs what another
 * track did; blocks of different slices never do.
 */
#ifndef MC_DEVICE_FORMAT_H
#define MC_DEVICE_FORMAT_H

#include <stdint.h>

/* SLOTS: messages in flight per lane, two more than plans need in program order, which is what
 * joined messages take (gpu/program/join.h). WORD: bytes of the widest access. Slices, pieces and places
 * in a slot are multiples of it, and the sizes of all elements that are reduced divide it, so that
 * none is cut. JOINED: the most messages that are moved together: what a rank of a box of eight
 * receives from its peers and sends to them, and two more. */
enum { MC_DEVICE_SLOTS = 4, MC_DEVICE_WORD = 16, MC_DEVICE_JOINED = 16 };

/* What a launch takes where nothing speaks against it: threads of a block, bytes of a slot. */
enum { MC_DEVICE_THREADS = 384, MC_DEVICE_SLOT_BYTES = 1 << 19 };

/* The most tracks of a program: inwards, outwards, and back, and one more. */
enum { MC_DEVICE_TRACKS = 4 };

/* Operands may change places: every operation that a device has is commutative, to the bit but for payloads of NaNs. */
enum {
    MC_DEVICE_SEND,        /* message = from */
    MC_DEVICE_RECV,        /* to = message */
    MC_DEVICE_RECV_REDUCE, /* to = from (+) message */
    MC_DEVICE_COPY,        /* to = from; nothing where both are the same memory */
    MC_DEVICE_REDUCE,      /* to = from (+) to */
    MC_DEVICE_DIVIDE,      /* to /= ranks, of an average */
    MC_DEVICE_SCALE,       /* to = from * scalar, of a scaled sum */
    MC_DEVICE_MARK,        /* what this track did so far is done: its mark number n of the list */
    MC_DEVICE_AFTER,       /* goes on after mark n of track `lane`, in the same pass */
    MC_DEVICE_OPS
};

/* As mc_buffer_t; NONE: the run reads, or writes, only its message. */
enum { MC_DEVICE_IN, MC_DEVICE_OUT, MC_DEVICE_SCRATCH, MC_DEVICE_BUFFERS, MC_DEVICE_NONE = 3 };

/*
 * MORE: the message goes on in the next run. JOIN, of a message's last run: the next message is moved with this one, in one pass over
 * the data. DROP: what a receive writes is not kept, as only joined messages read it. DIRECT: the
 * sender writes the message straight to the receiver's OUT (gpu/program/direct.h), at `to` there.
 *
 * Of joined messages all receives come first; each adds to what the one before it yields. The
 * result is kept, where the last receive says so, and is what all joined sends send. Without
 * receives, sends are of the same bytes.
 */
enum { MC_DEVICE_MORE = 1, MC_DEVICE_JOIN = 2, MC_DEVICE_DROP = 4, MC_DEVICE_DIRECT = 8 };
/* The highest bits of the flags are the track. */
enum { MC_DEVICE_TRACK_SHIFT = 6, MC_DEVICE_NO_TRACK = (1 << MC_DEVICE_TRACK_SHIFT) - 1 };

/* Chunks of equal length at equal distances: chunk k is at from + k * from_stride; so is `to`. */
typedef struct {
    uint8_t op, from_buffer, to_buffer, flags;
    uint32_t step;  /* of the plan that it comes from; of a division the plan's number of steps */
    uint32_t lane;  /* of a message: 2 * the peer's index, and 1 more where this rank receives */
    uint32_t n;     /* chunks */
    uint64_t bytes; /* of each chunk */
    uint64_t
        slice; /* bytes that a block owns of a chunk, the last blocks less; a multiple of a word */
    uint64_t from, to;
    int64_t from_stride, to_stride;
} mc_device_run_t;

/*
 * A count of messages tells of which calls they are: its low bits count, and wrap; above them are the digests of the
 * calls (runtime/handle/digest.h) of the last four, the newest lowest. A sender is no further ahead of its receiver, but
 * with direct messages. So ranks that make different calls are told by what they read anyway (gpu/program/piece.h).
 */
enum { MC_DEVICE_COUNT_BITS = 28, MC_DEVICE_DIGEST_BITS = 9 };

/* This block's end of a lane. A sender awaits credit and raises the flag; a receiver awaits the
 * flag and raises the credit. Both count messages, and so do the ends, from launch to launch.
 *
 * A lane with direct messages has `begun`, a count of launches with such, above the digest of its call: the receiver
 * raises it when its launch begins, the sender awaits it. Direct messages are counted with the others, and
 * their slots stay unused; they wait for no credit. */
typedef struct {
    char *slots;        /* MC_DEVICE_SLOTS of them, aligned to a word */
    uint64_t *awaited;  /* the peer raises it */
    uint64_t *raised;   /* the peer awaits it */
    uint64_t *count;    /* messages of this end so far; nobody else touches it */
    uint64_t *begun;    /* NULL: no message is direct */
    uint64_t *launches; /* of this end so far, that count in `begun` */
    char *window;       /* of a sender: the receiver's registered memory, of direct messages */
} mc_device_lane_t;

/* What a block tells the others of its slice. Both begin as 0. */
typedef struct {
    uint64_t done; /* its last mark: launch << 32 | marks in this launch */
    uint64_t apart[3];
    uint64_t launch; /* launches of programs with several tracks so far; nobody else touches it */
    uint64_t more[3];
} mc_device_track_t;

/* In memory that the threads of a block share: what is the block's, and the messages of a step. */
typedef struct {
    uint32_t block, slice, track;
    uint32_t direct;                   /* a bit per message: it goes to the receiver's OUT */
    char *message[MC_DEVICE_JOINED];   /* their slots */
    uint64_t number[MC_DEVICE_JOINED]; /* counts of messages before them */
    uint32_t status[MC_DEVICE_JOINED]; /* how the wait for each ended */
    uint32_t digest[MC_DEVICE_JOINED]; /* DIFFERS: of the peer's call */
    uint32_t flag[MC_DEVICE_JOINED];   /* in the data (gpu/kernel/ll.h) */
} mc_device_table_t;

/* How a block ended. LATE: a wait took longer than its limit. DIFFERS: what came is of another call. A report that a
 * block gave up stays: later launches of this block then end at once. */
enum { MC_DEVICE_RUNNING, MC_DEVICE_DONE, MC_DEVICE_ABORTED, MC_DEVICE_LATE, MC_DEVICE_DIFFERS };
typedef struct {
    uint32_t status;
    uint32_t run, pass; /* where it stands, unless it is done */
    uint32_t program;   /* whose: that of the launch */
    uint32_t number;    /* of the launch's operation */
    uint32_t digest;    /* DIFFERS: of the peer's call */
} mc_device_report_t;

/*
 * A rank's launch. Each block owns a slice of every chunk, and its list is walked once per pass:
 * in pass i over piece i of each slice, of `piece` bytes at most. So no message is longer than
 * a slot, however long the vector is, and what is in flight between two ranks is what the plan
 * says.
 */
typedef struct {
    const mc_device_run_t *run;
    uint32_t n_runs, passes;
    uint32_t blocks; /* that the program was lowered for; the same on all ranks */
    uint32_t
        tracks; /* of the program, at least 1: block b does track b % tracks of slice b / tracks */
    uint32_t marks[MC_DEVICE_TRACKS]; /* of each track, in the list */
    uint32_t piece; /* bytes of a slice per pass, a multiple of a word; the same on all ranks */
    uint32_t slot_bytes; /* a multiple of a word; the same on all ranks */
    uint32_t ll;   /* 1: the messages have flags in their data (gpu/kernel/ll.h); 0: beside it */
    int32_t ranks; /* that an average divides by */
    uint64_t scalar[2]; /* an element, of a scaled sum */
    char *buffer[MC_DEVICE_BUFFERS];
    const mc_device_lane_t *lane; /* lane * blocks + block */
    mc_device_track_t *track;     /* by block; of several tracks only */
    uint32_t lanes;               /* among which are some with direct messages; 0: there are none */
    uint64_t window_at; /* where OUT begins in the registered memory, the same on all ranks */
    const uint32_t *abort_word; /* not 0: waiting blocks end */
    uint64_t limit;             /* nanoseconds of one wait */
    mc_device_report_t *report; /* by block */
    uint32_t program, number;   /* for the report: the program's, and the operation's */
    uint32_t digest;            /* of the call, and of that number */
} mc_device_call_t;

/* What a kernel is launched with: `one` call, or with `many` one per rank of a grid that has
 * one.blocks blocks for each of them. */
typedef struct {
    mc_device_call_t one;
    const mc_device_call_t *many; /* NULL: `one` */
} mc_device_launch_t;

/* What a kernel of the stream executor is launched with: chunk k of `to` becomes a (+) b, or is
 * divided, or a times the scalar. */
typedef struct {
    char *to;
    const char *a, *b; /* b: of a sum only */
    int64_t to_stride, a_stride, b_stride;
    uint64_t bytes; /* of each chunk */
    uint32_t n;     /* chunks */
    int32_t by;     /* 0: a sum; else what to divide by */
    uint64_t scalar[2];
} mc_device_sum_t;

#endif
