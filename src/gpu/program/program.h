/*
 * A rank's program for the device executor: its sealed plan and a measured binding, lowered to
 * runs of chunks (gpu/program/format.h). Without addresses: a launch names the buffers and lanes. Runs
 * are in the plan's program order; dependencies are used between tracks only (gpu/program/tracks.h). Some
 * messages are moved together (gpu/program/join.h).
 */
#ifndef MC_DEVICE_PROGRAM_H
#define MC_DEVICE_PROGRAM_H

#include "base/base.h"
#include "gpu/program/bodies.h"
#include "gpu/program/direct.h"
#include "gpu/program/tracks.h"
#include "runtime/bind/binding.h"

/* The runs of one message: [first, end). */
typedef struct {
    uint32_t first, end;
} mc_device_message_t;

/* Immutable, and one allocation. Who launches it and what still moves its messages hold it. */
typedef struct {
    _Atomic uint32_t holders;
    int32_t rank, ranks;
    mc_device_body_t body;
    uint32_t element; /* bytes */
    uint32_t widest;  /* the most chunks of a message, in the plans of all ranks */
    uint32_t blocks;  /* of a rank; a slice has one of each track */
    uint32_t tracks, marks[MC_DEVICE_TRACKS];
    uint32_t n_steps; /* of the plan */
    uint32_t n_runs, n_peers;
    uint64_t longest;   /* bytes of the longest slice of a run */
    uint64_t scalar[2]; /* an element, of a scaled sum */
    const mc_device_run_t *run;
    const int32_t *peer;                /* lanes 2 i and 2 i + 1 are those to and from peer[i] */
    const mc_device_message_t *message; /* lane by lane, in program order */
    const uint32_t *first;              /* by lane: its messages; those of lane l end at l + 1's */
} mc_device_program_t;

/* The most chunks of a message in this rank's plan; at least 1. Ranks must know the most of them
 * all. */
uint32_t mc_device_widest(const mc_plan_t *plan);

/* Lowers a binding that was measured; its addresses only tell whether it is in place. `widest` is
 * the most of mc_device_widest over all ranks, which also have the same number of blocks and the same
 * tracks; NULL: one track. `direct` says which messages go straight to OUT, in one track only; NULL: none
 * does. ERR_UNSUPPORTED: a user's operation; ERR_INVALID_ARG: a message is wider than `widest`, or there are
 * fewer blocks than tracks; ERR_NO_MEMORY. The caller frees the program. */
int mc_device_lower(const mc_binding_t *binding, uint32_t widest, uint32_t blocks,
                    const mc_device_tracks_t *tracks, const mc_direct_t *direct,
                    mc_device_program_t **program);
void mc_device_program_hold(mc_device_program_t *program);
/* The last holder frees it; NULL is allowed. */
void mc_device_program_free(mc_device_program_t *program);

/* The messages of a lane, or only the direct ones. */
uint32_t mc_device_messages(const mc_device_program_t *program, uint32_t lane, bool direct);
const char *mc_device_op_name(uint8_t op);
/* One line: how a block ended, and of a wait for whom. */
void mc_device_report_print(const mc_device_program_t *program, const mc_device_report_t *report,
                            mc_text_t *text);

/* What a launch with slots of `slot_bytes` is as far as the program says, with its runs in memory of
 * the host. Ranks need not agree on the passes: there is nothing to do in further ones. `ll`: messages
 * have flags in their data, and take twice their bytes. ERR_UNSUPPORTED: the slot is too small for the
 * widest message. */
int mc_device_call(const mc_device_program_t *program, uint32_t slot_bytes, bool ll,
                   mc_device_call_t *call);
/* Bytes of a chunk per pass, of messages of at most `widest` chunks. false: the slot is too small. */
bool mc_device_piece_bytes(uint32_t widest, uint32_t slot_bytes, bool ll, uint32_t *piece);

/* The body for a datatype and an operation: MC_DEVICE_BODY_move, which does not reduce, where the operation does not
 * support the datatype, or is a user's. */
mc_device_body_t mc_device_body(meshcoll_datatype_t datatype, meshcoll_op_t op);
/* That of a scaled sum; MC_DEVICE_BODY_move where there is none. */
mc_device_body_t mc_device_premul_body(meshcoll_datatype_t datatype);
/* "uint32_sum": its kernel is mc_walk_uint32_sum. "?" when out of range. */
const char *mc_device_body_name(mc_device_body_t body);

#endif
