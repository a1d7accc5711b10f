/*
 * A block of the device executor: walks a rank's runs in order, over its own slice of every chunk.
 * One text for nvcc and for the host's compiler.
 *
 * Before it the includer gives (device/on_cuda.h; tests/device/on_host.h): MC_DEVICE_FN, which
 * functions begin with; MC_UNROLL and MC_ROLLED, before loops to unroll, or not to; mc_seat_t with
 * this thread's number, `thread`, and their number, `threads`; mc_word_t with mc_load_word and
 * mc_store_word; mc_acquire and mc_release of a counter that other devices see; mc_look of a word
 * that the host writes, and mc_tell of one that it reads, after all before it; mc_clock in
 * nanoseconds; mc_pause; and mc_barrier and mc_barrier_any of the block's threads, the latter
 * telling whether any thread said so.
 *
 * Order: the threads of a sender write a slot and meet; then one releases the flag, at the scope
 * of the system. One thread of the receiver acquires the flag; then its threads meet and read the
 * slot. They meet again, and one releases the credit. So a slot is written after it was read, and
 * read after it was written.
 */
#ifndef MC_DEVICE_BLOCK_H
#define MC_DEVICE_BLOCK_H

#include "device/format.h"

#ifndef MC_DEVICE_FN
#error "include device/on_cuda.h before device/block.h, or what gives the same on a host"
#endif

#include "device/piece.h"

/* Words that a thread has in flight in a copy, and of each operand in a reduction, which needs more
 * registers for each; looks at a counter between two at the clock. */
enum { MC_DEVICE_BATCH = 4, MC_DEVICE_SUMS = 2, MC_DEVICE_LOOKS = 64 };

/* to = a (+) b, over `bytes` bytes; and to /= by. Of the threads each does its part. */
typedef void (*mc_device_reduce_t)(mc_seat_t seat, char *to, const char *a, const char *b,
                                   uint64_t bytes);
typedef void (*mc_device_divide_t)(mc_seat_t seat, char *to, uint64_t bytes, int32_t by);

typedef uint32_t mc_device_four_t __attribute__((__may_alias__));

MC_DEVICE_FN int mc_device_aligned(const char *a, const char *b, uint32_t to)
{
    return (((uintptr_t)a | (uintptr_t)b) & (to - 1)) == 0;
}

/* Copying -------------------------------------------------------------------------------------- */

MC_DEVICE_FN void mc_device_copy_words(mc_seat_t seat, char *to, const char *from, uint64_t words)
{
    const uint64_t step = seat.threads;
    uint64_t w = seat.thread;
    for (; w + (MC_DEVICE_BATCH - 1) * step < words; w += MC_DEVICE_BATCH * step) {
        mc_word_t batch[MC_DEVICE_BATCH];
        MC_UNROLL
        for (int k = 0; k < MC_DEVICE_BATCH; k++)
            batch[k] = mc_load_word(from + (w + k * step) * MC_DEVICE_WORD);
        MC_UNROLL
        for (int k = 0; k < MC_DEVICE_BATCH; k++)
            mc_store_word(to + (w + k * step) * MC_DEVICE_WORD, batch[k]);
    }
    for (; w < words; w += step)
        mc_store_word(to + w * MC_DEVICE_WORD, mc_load_word(from + w * MC_DEVICE_WORD));
}

MC_DEVICE_FN void mc_device_copy(mc_seat_t seat, char *to, const char *from, uint64_t bytes)
{
    uint64_t done = 0;
    if (mc_device_aligned(to, from, MC_DEVICE_WORD)) {
        done = bytes / MC_DEVICE_WORD * MC_DEVICE_WORD;
        mc_device_copy_words(seat, to, from, bytes / MC_DEVICE_WORD);
    } else if (mc_device_aligned(to, from, sizeof(mc_device_four_t))) {
        done = bytes / sizeof(mc_device_four_t) * sizeof(mc_device_four_t);
        for (uint64_t i = seat.thread; i < done / sizeof(mc_device_four_t); i += seat.threads)
            ((mc_device_four_t *)to)[i] = ((const mc_device_four_t *)from)[i];
    }
    for (uint64_t i = done + seat.thread; i < bytes; i += seat.threads)
        to[i] = from[i];
}

/* Waiting -------------------------------------------------------------------------------------- */

/* Until *word + slack >= least. Returns how it ended. */
MC_DEVICE_FN uint32_t mc_device_await(const mc_device_call_t *call, const uint64_t *word,
                                      uint64_t slack, uint64_t least)
{
    uint64_t begun = 0;
    for (;;) {
        MC_ROLLED
        for (int look = 0; look < MC_DEVICE_LOOKS; look++) {
            if (mc_acquire(word) + slack >= least)
                return MC_DEVICE_DONE;
            mc_pause();
        }
        const uint64_t now = mc_clock();
        begun = begun ? begun : now;
        if (mc_look(call->abort_word))
            return MC_DEVICE_ABORTED;
        if (now - begun > call->limit)
            return MC_DEVICE_LATE;
    }
}

/* Steps ---------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t block, pass;
    uint32_t at, end; /* the runs of this step: of a message all of its runs, else one */
} mc_device_spot_t;

MC_DEVICE_FN void mc_device_report(const mc_device_call_t *call, const mc_device_spot_t *spot,
                                   uint32_t status)
{
    mc_device_report_t *const report = &call->report[spot->block];
    report->run = spot->at;
    report->pass = spot->pass;
    report->program = call->program;
    mc_tell(&report->status, status);
}

/* Did this block of an earlier launch give up, so that its lanes are not what this one needs, or
 * was the mesh aborted? */
MC_DEVICE_FN int mc_device_is_over(mc_seat_t seat, const mc_device_call_t *call,
                                   const mc_device_spot_t *spot)
{
    int over = 0;
    if (seat.thread == 0) {
        over = call->report[spot->block].status > MC_DEVICE_DONE;
        if (!over && mc_look(call->abort_word) != 0) {
            mc_device_report(call, spot, MC_DEVICE_ABORTED);
            over = 1;
        }
    }
    return mc_barrier_any(seat, over);
}

/* Does this block have a part of the step in this pass? The peer's block of the same number then
 * has the same. */
MC_DEVICE_FN int mc_device_has_part(const mc_device_call_t *call, const mc_device_spot_t *spot)
{
    for (uint32_t i = spot->at; i < spot->end; i++)
        if (mc_device_piece(call, spot->block, spot->pass, &call->run[i]).bytes > 0)
            return 1;
    return 0;
}

/* One piece, of the message at `message`, which is NULL in local steps. */
MC_DEVICE_FN void mc_device_apply(mc_seat_t seat, const mc_device_call_t *call,
                                  const mc_device_run_t *run, char *to, char *from, char *message,
                                  uint64_t bytes, mc_device_reduce_t reduce,
                                  mc_device_divide_t divide)
{
    const char *a = from, *b = to;
    switch (run->op) {
    case MC_DEVICE_RECV_REDUCE:
        a = run->flags & MC_DEVICE_FIRST ? message : from;
        b = run->flags & MC_DEVICE_FIRST ? from : message;
        break;
    case MC_DEVICE_REDUCE_BEHIND:
        a = to;
        b = from;
        break;
    case MC_DEVICE_REDUCE:
        break;
    case MC_DEVICE_DIVIDE:
        divide(seat, to, bytes, call->ranks);
        return;
    default:
        if (to != from)
            mc_device_copy(seat, to, from, bytes);
        return;
    }
    reduce(seat, to, a, b, bytes);
}

/* The pieces of a run; `message` is where its part of the slot begins. Returns the bytes of that
 * part. */
MC_DEVICE_FN uint64_t mc_device_move(mc_seat_t seat, const mc_device_call_t *call,
                                     const mc_device_spot_t *spot, const mc_device_run_t *run,
                                     char *message, mc_device_reduce_t reduce,
                                     mc_device_divide_t divide)
{
    const mc_device_piece_t piece = mc_device_piece(call, spot->block, spot->pass, run);
    const uint64_t padded = mc_device_padded(piece.bytes);
    const int reads = run->from_buffer != MC_DEVICE_NONE, writes = run->to_buffer != MC_DEVICE_NONE;
    char *const from = reads ? call->buffer[run->from_buffer] + run->from + piece.at : message;
    char *const to = writes ? call->buffer[run->to_buffer] + run->to + piece.at : message;
    const int64_t from_stride = reads ? run->from_stride : (int64_t)padded;
    const int64_t to_stride = writes ? run->to_stride : (int64_t)padded;
    for (uint32_t k = 0; piece.bytes > 0 && k < run->n; k++)
        mc_device_apply(seat, call, run, to + k * to_stride, from ? from + k * from_stride : from,
                        message ? message + k * padded : message, piece.bytes, reduce, divide);
    return run->n * padded;
}

/* Returns whether the block must end, all of its threads the same. */
MC_DEVICE_FN int mc_device_step(mc_seat_t seat, const mc_device_call_t *call,
                                const mc_device_spot_t *spot, mc_device_reduce_t reduce,
                                mc_device_divide_t divide)
{
    const mc_device_run_t *const first = &call->run[spot->at];
    const int is_message = first->op <= MC_DEVICE_RECV_REDUCE, sends = first->op == MC_DEVICE_SEND;
    const mc_device_lane_t *lane = 0;
    char *message = 0;
    uint64_t number = 0;
    if (!mc_device_has_part(call, spot))
        return 0;
    if (is_message) {
        lane = &call->lane[first->lane * call->blocks + spot->block];
        number = *lane->count;
        uint32_t status = MC_DEVICE_DONE;
        if (seat.thread == 0)
            status = mc_device_await(call, lane->awaited, sends ? MC_DEVICE_SLOTS : 0, number + 1);
        if (seat.thread == 0 && status != MC_DEVICE_DONE)
            mc_device_report(call, spot, status);
        if (mc_barrier_any(seat, status != MC_DEVICE_DONE))
            return 1;
        if (seat.thread == 0)
            *lane->count = number + 1;
        message = lane->slots + number % MC_DEVICE_SLOTS * call->slot_bytes;
    }
    for (uint32_t i = spot->at; i < spot->end; i++) {
        const uint64_t part =
            mc_device_move(seat, call, spot, &call->run[i], message, reduce, divide);
        message = message ? message + part : message;
    }
    mc_barrier(seat);
    if (is_message && seat.thread == 0)
        mc_release(lane->raised, number + 1);
    return 0;
}

/* Runs a block to its end; `reduce` and `divide` are those of the call's datatype and operation. */
MC_DEVICE_FN void mc_device_walk(mc_seat_t seat, const mc_device_call_t *call, uint32_t block,
                                 mc_device_reduce_t reduce, mc_device_divide_t divide)
{
    mc_device_spot_t spot;
    spot.block = block;
    spot.at = spot.end = spot.pass = 0;
    if (mc_device_is_over(seat, call, &spot))
        return;
    for (spot.pass = 0; spot.pass < call->passes; spot.pass++)
        for (spot.at = 0; spot.at < call->n_runs; spot.at = spot.end) {
            spot.end = spot.at + 1;
            while (call->run[spot.end - 1].flags & MC_DEVICE_MORE)
                spot.end++;
            if (mc_device_step(seat, call, &spot, reduce, divide))
                return;
        }
    spot.at = call->n_runs;
    if (seat.thread == 0)
        mc_device_report(call, &spot, MC_DEVICE_DONE);
}

#endif
