#include "gpu/stream/stream.h"

#include "gpu/program/piece.h"

#include <stddef.h>

/* Waits and writes that go to the driver together: the end of a step, and the beginning of a pass
 * and of the next step. */
enum { TOGETHER = 16 };

typedef struct {
    const mc_stream_launch_t *launch;
    const mc_device_call_t *call; /* its */
    mc_cu_stream_t stream;
    mc_cu_memory_op_t op[TOGETHER]; /* not in the stream yet */
    uint32_t n;
    int status;
} queue_t;

/* A step in a pass: the runs [at, end). */
typedef struct {
    uint32_t pass, at, end;
} cursor_t;

/* Waits and writes ------------------------------------------------------------------------------ */

static void flush(queue_t *q)
{
    if (q->n > 0 && !q->status)
        q->status = mc_cuda_status(mc_cuda()->memory_ops(q->stream, q->n, q->op, 0),
                                   "enqueue waits and writes of words in a stream");
    q->n = 0;
}

static void add(queue_t *q, unsigned operation, mc_cu_address_t at, uint32_t value, unsigned flags)
{
    if (q->n == TOGETHER)
        flush(q);
    q->op[q->n++] = (mc_cu_memory_op_t){
        .word = {.operation = operation, .address = at, .value = value, .flags = flags}};
}

static void write_word(queue_t *q, mc_cu_address_t at, uint32_t value)
{
    add(q, MC_CU_MEMORY_WRITE, at, value, 0);
}

/* Until the state has one of the bits. */
static void await_state(queue_t *q, mc_cu_address_t state, uint32_t bits)
{
    add(q, MC_CU_MEMORY_WAIT, state, bits,
        MC_CU_WAIT_AND | (q->launch->flushes ? MC_CU_WAIT_FLUSH : 0));
}

#define PLACE(q, word) ((q)->launch->place + offsetof(mc_stream_place_t, word))

/* Until the state says FULL of this call. */
static void await_call(queue_t *q, mc_cu_address_t state, uint32_t word)
{
    const uint32_t full = mc_stream_full(q->call->digest);
    write_word(q, PLACE(q, word), word + 1);
    for (uint32_t part = MC_STREAM_FULL; part < MC_STREAM_EMPTY; part <<= 8)
        await_state(q, state, full & part);
    write_word(q, PLACE(q, word), 0);
}

/* Moving ---------------------------------------------------------------------------------------- */

/* Chunks at equal distances. */
typedef struct {
    char *at;
    int64_t stride;
} side_t;

static void copy_one(queue_t *q, const char *to, const char *from, uint64_t bytes)
{
    if (to != from && !q->status)
        q->status =
            mc_cuda_status(mc_cuda()->copy((mc_cu_address_t)(uintptr_t)to,
                                           (mc_cu_address_t)(uintptr_t)from, bytes, q->stream),
                           "enqueue a copy in a stream");
}

static void copy(queue_t *q, side_t to, side_t from, uint32_t n, uint64_t bytes)
{
    if (to.stride == (int64_t)bytes && from.stride == (int64_t)bytes) {
        copy_one(q, to.at, from.at, n * bytes);
        return;
    }
    for (uint32_t k = 0; k < n; k++)
        copy_one(q, to.at + k * to.stride, from.at + k * from.stride, bytes);
}

/* Blocks of a sum: a word for each thread is the least that they can share. */
static uint32_t blocks_of(const mc_stream_launch_t *launch, uint64_t bytes)
{
    const uint64_t share = (uint64_t)MC_DEVICE_THREADS * MC_DEVICE_WORD;
    const uint64_t most = (bytes + share - 1) / share;
    return most < launch->blocks ? (uint32_t)most : launch->blocks;
}

static void launch(queue_t *q, mc_device_sum_t *sum)
{
    void *parameter[] = {sum};
    if (!q->status)
        q->status = mc_cuda_status(
            mc_cuda()->launch(q->launch->sum, blocks_of(q->launch, sum->bytes), 1, 1,
                              MC_DEVICE_THREADS, 1, 1, 0, q->stream, parameter, NULL),
            "launch a kernel");
}

/* to = a (+) b */
static void reduce(queue_t *q, side_t to, side_t a, side_t b, uint32_t n, uint64_t bytes)
{
    launch(q,
           &(mc_device_sum_t){to.at, a.at, b.at, to.stride, a.stride, b.stride, bytes, n, 0, {0}});
}

/* to = from / ranks, or from * scalar, as the body has it. */
static void divide(queue_t *q, side_t to, side_t from, uint32_t n, uint64_t bytes)
{
    const mc_device_call_t *const call = q->call;
    launch(q, &(mc_device_sum_t){.to = to.at,
                                 .a = from.at,
                                 .to_stride = to.stride,
                                 .a_stride = from.stride,
                                 .bytes = bytes,
                                 .n = n,
                                 .by = call->ranks,
                                 .scalar = {call->scalar[0], call->scalar[1]}});
}

/* Steps ----------------------------------------------------------------------------------------- */

/* Programs have one block, whose slice is the whole chunk. A peer has the same part of a message. */
static mc_device_piece_t piece_of(const queue_t *q, uint32_t pass, const mc_device_run_t *run)
{
    return mc_device_piece(q->call->piece, 0, pass, run);
}

static bool has_part(const queue_t *q, const cursor_t *cursor)
{
    bool has = false;
    for (uint32_t i = cursor->at; i < cursor->end; i++)
        has = has || piece_of(q, cursor->pass, &q->call->run[i]).bytes > 0;
    return has;
}

/* Where a direct message that this rank sends goes. */
static char *peers_out(const queue_t *q, const mc_device_run_t *run)
{
    return (char *)(uintptr_t)(q->launch->lane[run->lane].window + q->call->window_at + run->to);
}

/* A run's piece; `message` is where its part of the slot begins. Returns the bytes of that part. */
static uint64_t move(queue_t *q, uint32_t pass, const mc_device_run_t *run, char *message)
{
    const mc_device_piece_t piece = piece_of(q, pass, run);
    const uint64_t at = piece.at, bytes = piece.bytes;
    char *const *const buffer = q->call->buffer;
    const side_t slot = {message, (int64_t)mc_device_padded(bytes)};
    const bool reads = run->from_buffer != MC_DEVICE_NONE,
               writes = run->to_buffer != MC_DEVICE_NONE, direct = run->flags & MC_DEVICE_DIRECT;
    const side_t from =
        reads ? (side_t){buffer[run->from_buffer] + run->from + at, run->from_stride} : slot;
    const side_t to = writes   ? (side_t){buffer[run->to_buffer] + run->to + at, run->to_stride}
                      : direct ? (side_t){peers_out(q, run) + at, run->to_stride}
                               : slot;
    if (bytes == 0 || (direct && !reads)) /* it lies there */
        return 0;
    switch (run->op) {
    case MC_DEVICE_RECV_REDUCE:
        reduce(q, to, from, slot, run->n, bytes);
        break;
    case MC_DEVICE_REDUCE:
        reduce(q, to, from, to, run->n, bytes);
        break;
    case MC_DEVICE_DIVIDE:
        divide(q, to, to, run->n, bytes);
        break;
    case MC_DEVICE_SCALE:
        divide(q, to, from, run->n, bytes);
        break;
    default:
        copy(q, to, from, run->n, bytes);
    }
    return run->n * mc_device_padded(bytes);
}

/* Before the first direct message of a lane: until the receiver has begun. */
static void await_begun(queue_t *q, mc_stream_lane_t *lane)
{
    if (lane->open)
        return;
    await_call(q, lane->begun, lane->word + MC_DEVICE_SLOTS);
    write_word(q, lane->begun, MC_STREAM_EMPTY);
    lane->open = true;
}

/* Of all lanes: this launch begins. */
static void begin(queue_t *q)
{
    for (uint32_t i = 0; i < q->launch->n_lanes; i++) {
        mc_stream_lane_t *const lane = &q->launch->lane[i];
        lane->next = 0;
        lane->open = false;
        if (i % 2 && lane->begun)
            write_word(q, lane->begun, mc_stream_full(q->call->digest));
    }
}

static void enqueue_step(queue_t *q, const cursor_t *cursor)
{
    const mc_device_call_t *const call = q->call;
    const mc_device_run_t *const first = &call->run[cursor->at];
    const bool is_message = mc_device_is_message(first), sends = first->op == MC_DEVICE_SEND;
    mc_cu_address_t state = 0;
    char *message = NULL;
    if (!has_part(q, cursor))
        return;
    if (is_message) {
        mc_stream_lane_t *const lane = &q->launch->lane[first->lane];
        const uint32_t slot = lane->next++ % MC_DEVICE_SLOTS;
        message = (char *)(uintptr_t)(lane->slots + (uint64_t)slot * call->slot_bytes);
        state = lane->states + slot * MC_STREAM_APART;
        write_word(q, PLACE(q, run), cursor->at);
        if (sends && first->flags & MC_DEVICE_DIRECT)
            await_begun(q, lane);
        if (!sends && lane->next == 1)
            await_call(q, state, lane->word);
        else
            await_state(q, state, sends ? MC_STREAM_EMPTY : MC_STREAM_FULL);
    }
    flush(q);
    for (uint32_t i = cursor->at; i < cursor->end; i++) {
        const uint64_t part = move(q, cursor->pass, &call->run[i], message);
        message = message ? message + part : message;
    }
    if (is_message)
        write_word(q, state, sends ? mc_stream_full(call->digest) : MC_STREAM_EMPTY);
}

int mc_stream_enqueue(const mc_stream_launch_t *launch, mc_cu_stream_t stream)
{
    const mc_device_call_t *const call = launch->call;
    queue_t q = {.launch = launch, .call = call, .stream = stream};
    cursor_t cursor;
    if (call->n_runs == 0)
        return MESHCOLL_OK;
    begin(&q);
    write_word(&q, PLACE(&q, number), call->number);
    write_word(&q, PLACE(&q, whose), mc_stream_full(call->digest));
    write_word(&q, PLACE(&q, program), call->program + 1);
    for (cursor.pass = 0; cursor.pass < call->passes && !q.status; cursor.pass++) {
        write_word(&q, PLACE(&q, pass), cursor.pass);
        write_word(&q, PLACE(&q, moved), 1);
        for (cursor.at = 0; cursor.at < call->n_runs && !q.status; cursor.at = cursor.end) {
            cursor.end = mc_device_step_end(call->run, cursor.at);
            enqueue_step(&q, &cursor);
        }
    }
    write_word(&q, PLACE(&q, program), 0);
    write_word(&q, PLACE(&q, moved), 1);
    flush(&q);
    return q.status;
}
