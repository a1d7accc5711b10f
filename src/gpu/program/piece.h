/*
 * Which bytes of a chunk a block moves in a pass, and what they take in a slot; and counts of messages. One text for
 * the kernels and for the host, whose proxy moves the same messages (gpu/route).
 */
#ifndef MC_DEVICE_PIECE_H
#define MC_DEVICE_PIECE_H

#include "gpu/program/format.h"

#ifndef MC_DEVICE_FN
#define MC_DEVICE_FN static inline
#endif

typedef struct {
    uint64_t at, bytes;
} mc_device_piece_t;

MC_DEVICE_FN int mc_device_is_message(const mc_device_run_t *run)
{
    return run->op <= MC_DEVICE_RECV_REDUCE;
}

/* Behind the last run of the message, or the local step, that begins with run `at`. */
MC_DEVICE_FN uint32_t mc_device_step_end(const mc_device_run_t *run, uint32_t at)
{
    while (run[at].flags & MC_DEVICE_MORE)
        at++;
    return at + 1;
}

MC_DEVICE_FN uint32_t mc_device_track(const mc_device_run_t *run)
{
    return (uint32_t)run->flags >> MC_DEVICE_TRACK_SHIFT;
}

/* The bytes of a chunk's slice that are moved in a pass, at most `most`. */
MC_DEVICE_FN mc_device_piece_t mc_device_piece(uint32_t most, uint32_t slice, uint32_t pass,
                                               const mc_device_run_t *run)
{
    const uint64_t end = run->slice * (slice + 1);
    const uint64_t stop = end < run->bytes ? end : run->bytes;
    mc_device_piece_t piece;
    piece.at = run->slice * slice + (uint64_t)pass * most;
    piece.bytes = piece.at < stop ? stop - piece.at : 0;
    piece.bytes = piece.bytes < most ? piece.bytes : most;
    return piece;
}

/* One more message, of a call with that digest. */
MC_DEVICE_FN uint64_t mc_device_count(uint64_t count, uint32_t digest)
{
    const uint64_t ones = ((uint64_t)1 << MC_DEVICE_COUNT_BITS) - 1;
    return ((count & ~ones) << MC_DEVICE_DIGEST_BITS) | (uint64_t)digest << MC_DEVICE_COUNT_BITS |
           ((count + 1) & ones);
}

/* The messages of `count` beyond those of `least`; negative: there are less. */
MC_DEVICE_FN int64_t mc_device_beyond(uint64_t count, uint64_t least)
{
    const int above = 64 - MC_DEVICE_COUNT_BITS;
    return (int64_t)((count - least) << above) >> above;
}

/* The digest of the call of message `number`, of those that are counted; `own` where it is not told any more. */
MC_DEVICE_FN uint32_t mc_device_digest(uint64_t count, uint64_t number, uint32_t own)
{
    const int64_t behind = mc_device_beyond(count, number + 1);
    if (behind >= MC_DEVICE_SLOTS)
        return own;
    return (uint32_t)(count >> (MC_DEVICE_COUNT_BITS + behind * MC_DEVICE_DIGEST_BITS)) &
           ((1u << MC_DEVICE_DIGEST_BITS) - 1);
}

/* Its bytes in a slot. */
MC_DEVICE_FN uint64_t mc_device_padded(uint64_t bytes)
{
    return (bytes + MC_DEVICE_WORD - 1) / MC_DEVICE_WORD * MC_DEVICE_WORD;
}

#endif
