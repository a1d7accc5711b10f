/* Streams of the fake: a thread each, which runs operations in order; events; captures. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef enum { KERNEL, COPY, FILL, RECORD, AWAIT, CALL, WORD } sort_t;

typedef struct op {
    struct op *next;
    sort_t sort;
    union {
        fake_kernel_t kernel;
        struct {
            void *to;
            const void *from;
            size_t bytes;
        } copy;
        struct {
            void *to;
            size_t bytes;
            unsigned char value;
        } fill;
        struct {
            struct CUevent_st *event;
            uint64_t number;
        } event;
        struct {
            void (*function)(void *context);
            void *context;
        } call;
        mc_cu_memory_op_t word;
    };
} op_t;

/* Never freed: an operation may still name it. */
struct CUevent_st {
    uint64_t asked, done;
    bool captured, timed;
    double at; /* seconds, when it was done last */
};

struct CUgraph_st {
    op_t *first, **end;
};

struct CUstream_st {
    op_t *first, **end;
    uint64_t asked, done;
    bool stops;
    pthread_t thread;
    fake_graph_t graph; /* it is being captured into; NULL: none */
    bool spoilt;        /* the capture */
    double clock;       /* fake_clock; its thread's */
};

_Atomic int fake_captures;
_Thread_local mc_cu_capture_mode_t fake_capture_mode;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *default_stream;
static _Atomic unsigned copy_sleep, most_queued;
static double (*_Atomic kernel_took)(const mc_device_call_t *call);

void fake_clock(double (*took)(const mc_device_call_t *call))
{
    kernel_took = took;
}

void fake_copies(unsigned sleep)
{
    copy_sleep = sleep;
}

void fake_queue(unsigned most)
{
    most_queued = most;
}

mc_cu_result_t fake_unsafe(const char *function)
{
    (void)function;
    return fake_captures > 0 && fake_capture_mode != MC_CU_CAPTURE_RELAXED
               ? FAKE_ERROR_CAPTURE_UNSUPPORTED
               : FAKE_SUCCESS;
}

/* Running ----------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void do_event(const struct CUstream_st *s, const op_t *op)
{
    pthread_mutex_lock(&lock);
    if (op->sort == RECORD) {
        op->event.event->done = op->event.number;
        op->event.event->at = kernel_took ? s->clock : now();
    }
    while (op->sort == AWAIT && op->event.event->done < op->event.number)
        pthread_cond_wait(&changed, &lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static bool is_met(const mc_cu_memory_op_t *op)
{
    const uint32_t *const at = (const uint32_t *)(uintptr_t)op->word.address;
    const uint32_t now = __atomic_load_n(at, __ATOMIC_ACQUIRE), value = op->word.value;
    switch (op->word.flags & ~(unsigned)MC_CU_WAIT_FLUSH) {
    case FAKE_WAIT_GEQ:
        return (int32_t)(now - value) >= 0;
    case FAKE_WAIT_EQ:
        return now == value;
    default:
        return (now & value) != 0;
    }
}

static void do_word(const mc_cu_memory_op_t *op)
{
    fake_open_memory(true);
    if (op->operation == MC_CU_MEMORY_WRITE)
        __atomic_store_n((uint32_t *)(uintptr_t)op->word.address, op->word.value, __ATOMIC_RELEASE);
    while (op->operation == MC_CU_MEMORY_WAIT && !is_met(op))
        usleep(20);
    fake_open_memory(false);
}

static void run(struct CUstream_st *s, const op_t *op)
{
    switch (op->sort) {
    case KERNEL:
        fake_run(&op->kernel);
        if (kernel_took && fake_parameter(op->kernel.function) == sizeof op->kernel.launch)
            s->clock += kernel_took(&op->kernel.launch.one);
        break;
    case COPY:
        if (copy_sleep > 0)
            usleep(copy_sleep);
        fake_open_memory(true);
        memcpy(op->copy.to, op->copy.from, op->copy.bytes);
        fake_open_memory(false);
        break;
    case FILL:
        fake_open_memory(true);
        memset(op->fill.to, op->fill.value, op->fill.bytes);
        fake_open_memory(false);
        break;
    case CALL:
        op->call.function(op->call.context);
        break;
    case WORD:
        do_word(&op->word);
        break;
    default:
        do_event(s, op);
    }
}

static void *serve(void *argument)
{
    struct CUstream_st *const s = argument;
    fake_open_memory(false);
    pthread_mutex_lock(&lock);
    for (;;) {
        op_t *const op = s->first;
        if (!op && s->stops)
            break;
        if (!op) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        s->first = op->next;
        if (!s->first)
            s->end = &s->first;
        pthread_mutex_unlock(&lock);
        run(s, op);
        free(op);
        pthread_mutex_lock(&lock);
        s->done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct CUstream_st *open_stream(void)
{
    struct CUstream_st *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->end = &s->first;
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        abort();
    return s;
}

static struct CUstream_st *stream_of(mc_cu_stream_t stream)
{
    if (stream)
        return stream;
    pthread_mutex_lock(&lock);
    if (!default_stream)
        default_stream = open_stream();
    struct CUstream_st *const s = default_stream;
    pthread_mutex_unlock(&lock);
    return s;
}

/* Appends a copy to what the stream runs, or to what it captures. The lock is held. */
static void append(struct CUstream_st *s, const op_t *op)
{
    op_t *const copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *op;
    copy->next = NULL;
    op_t ***const end = s->graph ? &s->graph->end : &s->end;
    **end = copy;
    *end = &copy->next;
    s->asked += !s->graph;
    pthread_cond_broadcast(&changed);
}

static mc_cu_result_t submit(mc_cu_stream_t stream, const op_t *op)
{
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    while (!s->graph && most_queued > 0 && s->asked - s->done >= most_queued)
        pthread_cond_wait(&changed, &lock);
    append(s, op);
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

/* Streams ----------------------------------------------------------------------------------------- */

mc_cu_result_t cuStreamCreate(mc_cu_stream_t *stream, unsigned flags)
{
    FAKE_BEGIN;
    if (!fake_context() || flags > MC_CU_STREAM_NON_BLOCKING)
        return MC_CU_ERROR_INVALID_CONTEXT;
    *stream = open_stream();
    return FAKE_SUCCESS;
}

mc_cu_result_t cuStreamDestroy_v2(mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    pthread_mutex_lock(&lock);
    stream->stops = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return FAKE_SUCCESS;
}

/* Until all is done that was asked of it. The lock is held. */
static void drain(const struct CUstream_st *s)
{
    const uint64_t until = s->asked;
    while (s->done < until)
        pthread_cond_wait(&changed, &lock);
}

mc_cu_result_t cuStreamSynchronize(mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    if (s->graph) {
        s->spoilt = true;
        pthread_mutex_unlock(&lock);
        return FAKE_ERROR_CAPTURE_UNSUPPORTED;
    }
    drain(s);
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuStreamQuery(mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    const struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    const bool done = s->done == s->asked;
    pthread_mutex_unlock(&lock);
    return done ? FAKE_SUCCESS : MC_CU_ERROR_NOT_READY;
}

static mc_cu_result_t copy(void *to, const void *from, size_t bytes, mc_cu_stream_t stream)
{
    const op_t op = {.sort = COPY, .copy = {to, from, bytes}};
    return submit(stream, &op);
}

mc_cu_result_t cuMemcpyAsync(mc_cu_address_t to, mc_cu_address_t from, size_t bytes,
                             mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, stream);
}

mc_cu_result_t cuMemcpyHtoDAsync_v2(mc_cu_address_t to, const void *from, size_t bytes,
                                    mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    return copy((void *)(uintptr_t)to, from, bytes, stream);
}

mc_cu_result_t cuMemcpyDtoHAsync_v2(void *to, mc_cu_address_t from, size_t bytes,
                                    mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    return copy(to, (const void *)(uintptr_t)from, bytes, stream);
}

mc_cu_result_t cuMemcpyDtoDAsync_v2(mc_cu_address_t to, mc_cu_address_t from, size_t bytes,
                                    mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, stream);
}

mc_cu_result_t cuMemcpyHtoD_v2(mc_cu_address_t to, const void *from, size_t bytes)
{
    const mc_cu_result_t result = cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
    return result ? result : cuStreamSynchronize(NULL);
}

mc_cu_result_t cuMemcpyDtoH_v2(void *to, mc_cu_address_t from, size_t bytes)
{
    const mc_cu_result_t result = cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
    return result ? result : cuStreamSynchronize(NULL);
}

mc_cu_result_t cuMemsetD8Async(mc_cu_address_t at, unsigned char value, size_t bytes,
                               mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    const op_t op = {.sort = FILL, .fill = {(void *)(uintptr_t)at, bytes, value}};
    return submit(stream, &op);
}

static mc_cu_result_t check_word(const mc_cu_memory_op_t *op)
{
    const unsigned kind = op->word.flags & ~(unsigned)MC_CU_WAIT_FLUSH;
    const bool waits = op->operation == MC_CU_MEMORY_WAIT;
    if ((!waits && op->operation != MC_CU_MEMORY_WRITE) || !fake_is_word(op->word.address))
        return MC_CU_ERROR_INVALID_VALUE;
    return (waits ? kind <= MC_CU_WAIT_AND : op->word.flags == 0) ? FAKE_SUCCESS
                                                                  : MC_CU_ERROR_INVALID_VALUE;
}

/* Nothing of a batch with an error in it is enqueued. */
mc_cu_result_t cuStreamBatchMemOp_v2(mc_cu_stream_t stream, unsigned n, mc_cu_memory_op_t *ops,
                                     unsigned flags)
{
    FAKE_BEGIN;
    mc_cu_result_t result = n == 0 || n > FAKE_MOST_MEMORY_OPS || flags != 0 || !fake_context()
                                ? MC_CU_ERROR_INVALID_VALUE
                                : FAKE_SUCCESS;
    for (unsigned i = 0; i < n && !result; i++)
        result = check_word(&ops[i]);
    for (unsigned i = 0; i < n && !result; i++) {
        const op_t op = {.sort = WORD, .word = ops[i]};
        result = submit(stream, &op);
    }
    return result;
}

mc_cu_result_t cuLaunchHostFunc(mc_cu_stream_t stream, void (*function)(void *context),
                                void *context)
{
    FAKE_BEGIN;
    const op_t op = {.sort = CALL, .call = {function, context}};
    return submit(stream, &op);
}

mc_cu_result_t cuLaunchKernel(mc_cu_function_t function, unsigned x, unsigned y, unsigned z,
                              unsigned threads_x, unsigned threads_y, unsigned threads_z,
                              unsigned shared, mc_cu_stream_t stream, void **parameter,
                              void **extra)
{
    FAKE_BEGIN;
    const bool flat = y == 1 && z == 1 && threads_y == 1 && threads_z == 1 && shared == 0;
    if (!flat || x == 0 || threads_x != MC_DEVICE_THREADS || extra || !fake_context())
        return MC_CU_ERROR_INVALID_VALUE;
    op_t op = {.sort = KERNEL,
               .kernel = {.function = function, .device = fake_context()->device, .blocks = x}};
    memcpy(&op.kernel.launch, parameter[0], fake_parameter(function));
    const mc_cu_result_t result = submit(stream, &op);
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    if (fake_setting("CUDA_LAUNCH_BLOCKING", 0) && !s->graph)
        drain(s);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Events ------------------------------------------------------------------------------------------ */

mc_cu_result_t cuEventCreate(mc_cu_event_t *event, unsigned flags)
{
    FAKE_BEGIN;
    *event = calloc(1, sizeof **event);
    if (!*event)
        return MC_CU_ERROR_OUT_OF_MEMORY;
    (*event)->timed = !(flags & MC_CU_EVENT_NO_TIMING);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuEventDestroy_v2(mc_cu_event_t event)
{
    (void)event;
    FAKE_BEGIN;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuEventRecord(mc_cu_event_t event, mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    event->captured = s->graph != NULL;
    if (!s->graph) {
        const op_t op = {.sort = RECORD, .event = {event, ++event->asked}};
        append(s, &op);
    }
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuEventQuery(mc_cu_event_t event)
{
    FAKE_BEGIN;
    FAKE_UNSAFE;
    pthread_mutex_lock(&lock);
    const bool done = event->done == event->asked, captured = event->captured;
    pthread_mutex_unlock(&lock);
    if (captured)
        return FAKE_ERROR_CAPTURED_EVENT;
    return done ? FAKE_SUCCESS : MC_CU_ERROR_NOT_READY;
}

mc_cu_result_t cuEventElapsedTime(float *milliseconds, mc_cu_event_t begin, mc_cu_event_t end)
{
    FAKE_BEGIN;
    pthread_mutex_lock(&lock);
    const bool done = begin->done == begin->asked && end->done == end->asked;
    const bool timed = begin->timed && end->timed && begin->asked > 0 && end->asked > 0;
    const double seconds = end->at - begin->at;
    pthread_mutex_unlock(&lock);
    if (!timed)
        return FAKE_ERROR_INVALID_HANDLE;
    *milliseconds = (float)(seconds * 1e3);
    return done ? FAKE_SUCCESS : MC_CU_ERROR_NOT_READY;
}

/* A capture may not depend on what was recorded outside. */
mc_cu_result_t cuStreamWaitEvent(mc_cu_stream_t stream, mc_cu_event_t event, unsigned flags)
{
    (void)flags;
    FAKE_BEGIN;
    mc_cu_result_t result = FAKE_SUCCESS;
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    if (s->graph && !event->captured) {
        s->spoilt = true;
        result = FAKE_ERROR_CAPTURE_ISOLATION;
    } else if (!s->graph) {
        const op_t op = {.sort = AWAIT, .event = {event, event->asked}};
        append(s, &op);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Captures ---------------------------------------------------------------------------------------- */

mc_cu_result_t cuThreadExchangeStreamCaptureMode(mc_cu_capture_mode_t *mode)
{
    FAKE_BEGIN;
    const mc_cu_capture_mode_t was = fake_capture_mode;
    fake_capture_mode = *mode;
    *mode = was;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuStreamIsCapturing(mc_cu_stream_t stream, mc_cu_capture_status_t *status)
{
    FAKE_BEGIN;
    const struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    *status = !s->graph ? MC_CU_CAPTURE_NONE : s->spoilt ? 2 : MC_CU_CAPTURE_ACTIVE;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuStreamBeginCapture_v2(mc_cu_stream_t stream, mc_cu_capture_mode_t mode)
{
    (void)mode;
    FAKE_BEGIN;
    fake_graph_t const graph = calloc(1, sizeof *graph);
    if (!graph || !stream)
        abort();
    graph->end = &graph->first;
    pthread_mutex_lock(&lock);
    stream->graph = graph;
    stream->spoilt = false;
    pthread_mutex_unlock(&lock);
    fake_captures++;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuStreamEndCapture(mc_cu_stream_t stream, fake_graph_t *graph)
{
    FAKE_BEGIN;
    pthread_mutex_lock(&lock);
    *graph = stream->graph;
    stream->graph = NULL;
    const bool spoilt = stream->spoilt;
    pthread_mutex_unlock(&lock);
    fake_captures--;
    return spoilt ? FAKE_ERROR_CAPTURE_UNSUPPORTED : FAKE_SUCCESS;
}

/* As of a graph that was instantiated. */
mc_cu_result_t cuGraphLaunch(fake_graph_t graph, mc_cu_stream_t stream)
{
    FAKE_BEGIN;
    struct CUstream_st *const s = stream_of(stream);
    pthread_mutex_lock(&lock);
    for (const op_t *op = graph->first; op; op = op->next)
        append(s, op);
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

mc_cu_result_t cuGraphDestroy(fake_graph_t graph)
{
    FAKE_BEGIN;
    for (op_t *op = graph->first, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    free(graph);
    return FAKE_SUCCESS;
}
