/*
 * A block of the device executor: walks a rank's runs in order, over its own slice of every chunk.
 * One text for nvcc and for the host's compiler.
 *
 * Before it the includer gives (gpu/kernel/on_cuda.h; tests/device/on_host.h): MC_DEVICE_FN, which
 * functions begin with; MC_UNROLL and MC_ROLLED, before loops to unroll, or not to; mc_thread_t with
 * this thread's number, `index`, and their number, `count`; mc_word_t with mc_load_word and
 * mc_store_word; mc_acquire and mc_release of a counter that other devices see; mc_poll of a word
 * that the host writes, and mc_notify of one that it reads, after all before it; mc_clock in
 * nanoseconds; mc_pause; mc_barrier and mc_barrier_any of the block's threads, the latter telling
 * whether any thread said so; mc_table, what these threads share, and mc_mark of a word there that
 * several may write; and mc_pair_t with what gpu/kernel/ll.h needs.
 *
 * A block does the runs of its track, and passes over the others.
 *
 * Order: the threads of a sender write a slot and meet; then one releases the flag, at the scope
 * of the system. One thread of the receiver acquires the flag; then its threads meet and read the
 * slot. They meet again, and one releases the credit. So a slot is written after it was read, and
 * read after it was written. Joined messages each have such a thread; all of them are awaited
 * before any is moved, and released when all were moved (gpu/program/join.h: why that cannot hang).
 * Messages with flags in their data have no other flag; their credits are awaited and raised alike.
 *
 * A direct message is written to the receiver's OUT instead of a slot, in the same order. Its sender
 * awaits that the receiver's launch has begun, and no credit; gpu/program/direct.h says why that is enough.
 */
#ifndef MC_KERNEL_BLOCK_H
#define MC_KERNEL_BLOCK_H

#include "gpu/kernel/move.h"
#include "gpu/program/piece.h"

/* Steps ---------------------------------------------------------------------------------------- */

/* A step: a local run, or joined messages of so many runs each. */
typedef struct {
    uint32_t pass;
    uint32_t at, end; /* its runs */
    uint32_t runs;    /* of each message */
    uint32_t receives, messages;
    uint32_t direct; /* a bit per send */
    uint32_t beside; /* runs from the first message's to those of the first direct send */
} mc_device_cursor_t;

/* The step that begins at cursor->at. */
MC_DEVICE_FN void mc_device_find(const mc_device_call_t *call, mc_device_cursor_t *cursor)
{
    const mc_device_run_t *next = &call->run[cursor->at];
    cursor->end = mc_device_step_end(call->run, cursor->at);
    cursor->runs = cursor->end - cursor->at;
    cursor->receives = cursor->messages = cursor->direct = cursor->beside = 0;
    if (!mc_device_is_message(next))
        return;
    for (;;) {
        const int sends = next->op == MC_DEVICE_SEND;
        if (sends && next->flags & MC_DEVICE_DIRECT) {
            cursor->beside = cursor->direct ? cursor->beside : cursor->messages * cursor->runs;
            cursor->direct |= 1u << cursor->messages;
        }
        cursor->receives += !sends;
        cursor->messages++;
        if (!(call->run[cursor->end - 1].flags & MC_DEVICE_JOIN))
            return;
        next = &call->run[cursor->end];
        cursor->end += cursor->runs;
    }
}

MC_DEVICE_FN void mc_device_report(mc_thread_t thread, const mc_device_call_t *call,
                                   const mc_device_cursor_t *cursor, uint32_t run, uint32_t status)
{
    mc_device_report_t *const report = &call->report[mc_table(thread)->block];
    report->run = run;
    report->pass = cursor->pass;
    report->program = call->program;
    report->number = call->number;
    mc_notify(&report->status, status);
}

/* Did this block of an earlier launch give up, so that its lanes are not what this one needs, or
 * was the mesh aborted? */
MC_DEVICE_FN int mc_device_is_over(mc_thread_t thread, const mc_device_call_t *call,
                                   const mc_device_cursor_t *cursor)
{
    int over = 0;
    if (thread.index == 0) {
        /* both lie in memory of the host: one way there for both */
        const uint32_t aborted = mc_poll(call->abort_word);
        over = call->report[mc_table(thread)->block].status > MC_DEVICE_DONE;
        if (!over && aborted) {
            mc_device_report(thread, call, cursor, cursor->at, MC_DEVICE_ABORTED);
            over = 1;
        }
    }
    return mc_barrier_any(thread, over);
}

/* Counts this launch on lanes with direct messages, and tells their senders that it has begun. */
MC_DEVICE_FN void mc_device_open(mc_thread_t thread, const mc_device_call_t *call, uint32_t block)
{
    if (call->lanes == 0)
        return;
    for (uint32_t i = thread.index; i < call->lanes; i += thread.count) {
        const mc_device_lane_t *const lane = &call->lane[i * call->blocks + block];
        if (!lane->begun)
            continue;
        const uint64_t launch = *lane->launches + 1;
        *lane->launches = launch;
        if (i % 2)
            mc_release(lane->begun, launch << MC_DEVICE_DIGEST_BITS | call->digest);
    }
    mc_barrier(thread);
}

/* Does this block have a part of the step in this pass? The peer's block of the same number then
 * has the same; and all joined messages have. */
MC_DEVICE_FN int mc_device_has_part(const mc_device_call_t *call, const mc_device_cursor_t *cursor,
                                    const mc_device_table_t *table)
{
    for (uint32_t i = 0; i < cursor->runs; i++)
        if (mc_device_piece(call->piece, table->slice, cursor->pass, &call->run[cursor->at + i])
                .bytes > 0)
            return 1;
    return 0;
}

MC_DEVICE_FN const mc_device_lane_t *mc_device_lane(mc_thread_t thread,
                                                    const mc_device_call_t *call,
                                                    const mc_device_cursor_t *cursor, uint32_t m)
{
    const uint32_t lane = call->run[cursor->at + m * cursor->runs].lane;
    return &call->lane[lane * call->blocks + mc_table(thread)->block];
}

/* Reports the first message that was waited for too long; those behind it may not have been. */
MC_DEVICE_FN void mc_device_report_wait(mc_thread_t thread, const mc_device_call_t *call,
                                        const mc_device_cursor_t *cursor,
                                        const mc_device_table_t *table)
{
    uint32_t m = 0;
    if (thread.index != 0)
        return;
    while (table->status[m] == MC_DEVICE_DONE)
        m++;
    call->report[table->block].digest = table->digest[m];
    mc_device_report(thread, call, cursor, cursor->at + m * cursor->runs, table->status[m]);
}

/* Waits for message m, numbered by its lane's count; of those with flags in their data only for the credit of what is
 * sent. What came, or began, must be of the same call. Returns how that ended. */
MC_DEVICE_FN uint32_t mc_device_await_message(const mc_device_call_t *call,
                                              const mc_device_lane_t *lane, uint32_t m, int sends,
                                              int direct, mc_device_table_t *table)
{
    const uint64_t number = table->number[m];
    uint64_t value = 0;
    uint32_t status = MC_DEVICE_DONE;
    table->digest[m] = call->digest;
    if (direct)
        status = mc_device_await(call, lane->begun, *lane->launches << MC_DEVICE_DIGEST_BITS, 64,
                                 &value);
    else if (sends || !call->ll)
        status = mc_device_await(call, lane->awaited, number + 1 - (sends ? MC_DEVICE_SLOTS : 0),
                                 MC_DEVICE_COUNT_BITS, &value);
    if (status != MC_DEVICE_DONE || (!direct && (sends || call->ll)))
        return status;
    table->digest[m] = direct ? (uint32_t)value & ((1u << MC_DEVICE_DIGEST_BITS) - 1)
                              : mc_device_digest(value, number, call->digest);
    return table->digest[m] == call->digest ? MC_DEVICE_DONE : MC_DEVICE_DIFFERS;
}

/* Waits for the messages of a step, a thread for each. Returns whether the block must end, all of its threads the
 * same. */
MC_DEVICE_FN int mc_device_begin(mc_thread_t thread, const mc_device_call_t *call,
                                 const mc_device_cursor_t *cursor, mc_device_table_t *table)
{
    uint32_t status = MC_DEVICE_DONE;
    if (thread.index == 0)
        table->direct = cursor->direct;
    for (uint32_t m = thread.index; m < cursor->messages && status == MC_DEVICE_DONE;
         m += thread.count) {
        const mc_device_lane_t *const lane = mc_device_lane(thread, call, cursor, m);
        const int sends = m >= cursor->receives, direct = (int)(cursor->direct >> m & 1);
        const uint64_t number = *lane->count;
        table->number[m] = number;
        status = mc_device_await_message(call, lane, m, sends, direct, table);
        table->status[m] = status;
        table->flag[m] = mc_device_ll_flag(number, call->digest);
        table->message[m] = direct ? lane->window + call->window_at
                                   : lane->slots + number % MC_DEVICE_SLOTS * call->slot_bytes;
        *lane->count = mc_device_count(number, call->digest);
    }
    if (!mc_barrier_any(thread, status != MC_DEVICE_DONE))
        return 0;
    mc_device_report_wait(thread, call, cursor, table);
    return 1;
}

/* Ends a step whose messages have flags in their data, of `bytes` bytes: their receives may have
 * failed in any thread. Returns whether the block must end. */
MC_DEVICE_FN int mc_device_end_ll(mc_thread_t thread, const mc_device_call_t *call,
                                  const mc_device_cursor_t *cursor, const mc_device_table_t *table,
                                  uint64_t bytes, uint32_t status)
{
    for (uint32_t m = cursor->receives; m < cursor->messages; m++)
        if (mc_device_ll_cleans(table->number[m]))
            mc_device_ll_clean(thread, table, m, bytes, call->slot_bytes);
    if (mc_barrier_any(thread, status != MC_DEVICE_DONE)) {
        mc_device_report_wait(thread, call, cursor, table);
        return 1;
    }
    for (uint32_t m = thread.index; m < cursor->receives; m += thread.count)
        mc_post(mc_device_lane(thread, call, cursor, m)->raised,
                mc_device_count(table->number[m], call->digest));
    return 0;
}

/* The pieces of run i of each message, or of a local run; they begin *at bytes from the beginning
 * of each message, which is moved behind them. Returns how waiting for flags in their data ended. */
MC_DEVICE_FN uint32_t mc_device_move_run(mc_thread_t thread, const mc_device_call_t *call,
                                         const mc_device_cursor_t *cursor, uint32_t i, uint64_t *at,
                                         mc_device_table_t *table, mc_device_combine_t combine,
                                         mc_device_divide_t divide)
{
    uint32_t status = MC_DEVICE_DONE;
    const mc_device_run_t *const run = &call->run[cursor->at + i];
    const uint32_t last = cursor->receives > 0 ? cursor->receives - 1 : 0;
    const int drops = (call->run[cursor->at + last * cursor->runs + i].flags & MC_DEVICE_DROP) != 0;
    /* a direct message lies where its receive would store it */
    const int lies = run->op == MC_DEVICE_RECV && run->flags & MC_DEVICE_DIRECT;
    const int reads = run->from_buffer != MC_DEVICE_NONE || lies;
    const int writes =
        run->to_buffer != MC_DEVICE_NONE && !drops && !(lies && cursor->receives == 1);
    const mc_device_piece_t piece = mc_device_piece(call->piece, table->slice, cursor->pass, run);
    const uint64_t padded = mc_device_padded(piece.bytes);
    const uint64_t from_at = lies ? run->to : run->from;
    const int64_t from_stride = lies ? run->to_stride : run->from_stride;
    const mc_device_run_t *const sent = run + cursor->beside;
    const char *const from =
        reads ? call->buffer[lies ? run->to_buffer : run->from_buffer] + from_at + piece.at
              : (const char *)0;
    char *const to = writes ? call->buffer[run->to_buffer] + run->to + piece.at : (char *)0;
    mc_device_pass_t p;
    p.table = table;
    p.receives = cursor->receives;
    p.messages = cursor->messages;
    p.begin = (uint32_t)lies;
    p.call = call;
    if (lies && cursor->messages == 1)
        return status;
    for (uint32_t k = 0; piece.bytes > 0 && k < run->n && status == MC_DEVICE_DONE; k++) {
        p.a = reads ? from + k * from_stride : from;
        p.b = 0;
        p.to = writes ? to + k * run->to_stride : to;
        p.at = *at + k * padded;
        p.direct_at = sent->to + piece.at + k * sent->to_stride;
        if (run->op == MC_DEVICE_DIVIDE || run->op == MC_DEVICE_SCALE) {
            divide(thread, p.to, reads ? p.a : p.to, piece.bytes, call->ranks, call->scalar);
            continue;
        }
        if (run->op == MC_DEVICE_COPY && p.to == p.a)
            continue;
        if (run->op == MC_DEVICE_REDUCE)
            p.b = p.to;
        status = mc_device_move(thread, &p, piece.bytes, combine);
    }
    *at += run->n * padded;
    return status;
}

/* Returns whether the block must end, all of its threads the same. */
MC_DEVICE_FN int mc_device_step(mc_thread_t thread, const mc_device_call_t *call,
                                const mc_device_cursor_t *cursor, mc_device_combine_t combine,
                                mc_device_divide_t divide)
{
    mc_device_table_t *const table = mc_table(thread);
    uint32_t status = MC_DEVICE_DONE;
    uint64_t at = 0;
    if (!mc_device_has_part(call, cursor, table))
        return 0;
    if (cursor->messages > 0 && mc_device_begin(thread, call, cursor, table))
        return 1;
    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)
        status = mc_device_move_run(thread, call, cursor, i, &at, table, combine, divide);
    if (call->ll && cursor->messages > 0)
        return mc_device_end_ll(thread, call, cursor, table, at, status);
    mc_barrier(thread);
    for (uint32_t m = thread.index; m < cursor->messages; m += thread.count)
        mc_release(mc_device_lane(thread, call, cursor, m)->raised,
                   mc_device_count(table->number[m], call->digest));
    return 0;
}

/* Tracks --------------------------------------------------------------------------------------- */

/* What mark n of a track is in this pass, as the blocks of a slice tell each other. All blocks have had the
 * same launches. */
MC_DEVICE_FN uint64_t mc_device_mark(mc_thread_t thread, const mc_device_call_t *call,
                                     const mc_device_cursor_t *cursor, uint32_t track, uint32_t n)
{
    const uint64_t before = (uint64_t)cursor->pass * call->marks[track];
    return call->track[mc_table(thread)->block].launch << 32 | (before + n);
}

/* A mark of this block's track, or a wait for another one's. Returns whether the block must end. */
MC_DEVICE_FN int mc_device_keep_order(mc_thread_t thread, const mc_device_call_t *call,
                                      const mc_device_cursor_t *cursor, const mc_device_run_t *run)
{
    const uint32_t own = mc_device_track(run);
    mc_device_track_t *const track = &call->track[mc_table(thread)->block];
    uint64_t value;
    uint32_t status = MC_DEVICE_DONE;
    if (run->op == MC_DEVICE_MARK) { /* the threads have met at the end of the step */
        if (thread.index == 0)
            mc_release(&track->done, mc_device_mark(thread, call, cursor, own, run->n));
        return 0;
    }
    if (thread.index == 0) {
        status =
            mc_device_await(call, &(track - own + run->lane)->done,
                            mc_device_mark(thread, call, cursor, run->lane, run->n), 64, &value);
        if (status != MC_DEVICE_DONE)
            mc_device_report(thread, call, cursor, cursor->at, status);
    }
    return mc_barrier_any(thread, status != MC_DEVICE_DONE);
}

/* Tells the threads which block they are, its slice and track, and counts the launch. The last blocks may have no slice. */
MC_DEVICE_FN void mc_device_take_place(mc_thread_t thread, const mc_device_call_t *call,
                                       uint32_t block)
{
    mc_device_table_t *const table = mc_table(thread);
    if (thread.index == 0) {
        table->block = block;
        table->slice = block / call->tracks;
        table->track = block % call->tracks;
        if (call->tracks > 1)
            call->track[block].launch++;
    }
    mc_barrier(thread);
}

/* Runs a block to its end; `combine` and `divide` are those of the call's datatype and operation, which
 * may be a product instead of a quotient. */
MC_DEVICE_FN void mc_device_walk(mc_thread_t thread, const mc_device_call_t *call, uint32_t block,
                                 mc_device_combine_t combine, mc_device_divide_t divide)
{
    mc_device_cursor_t cursor;
    cursor.at = cursor.pass = 0;
    mc_device_take_place(thread, call, block);
    if (mc_device_is_over(thread, call, &cursor))
        return;
    mc_device_open(thread, call, block);
    const mc_device_table_t *const table = mc_table(thread);
    if (table->slice < call->blocks / call->tracks)
        for (cursor.pass = 0; cursor.pass < call->passes; cursor.pass++)
            for (cursor.at = 0; cursor.at < call->n_runs; cursor.at = cursor.end) {
                const mc_device_run_t *const run = &call->run[cursor.at];
                cursor.end = cursor.at + 1;
                if (mc_device_track(run) != table->track)
                    continue;
                mc_device_find(call, &cursor);
                if (run->op >= MC_DEVICE_MARK
                        ? mc_device_keep_order(thread, call, &cursor, run)
                        : mc_device_step(thread, call, &cursor, combine, divide))
                    return;
            }
    if (thread.index == 0)
        mc_device_report(thread, call, &cursor, call->n_runs, MC_DEVICE_DONE);
}

#endif
