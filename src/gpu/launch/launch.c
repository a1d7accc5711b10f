#include "gpu/launch/launch.h"

#include "gpu/launch/times.h"
#include "gpu/mesh/gpu.h"
#include "gpu/program/piece.h"
#include "gpu/stream/signals.h"
#include "runtime/diagnose/differ.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

/* Scratch ----------------------------------------------------------------------------------------- */

/* Twice what there was at least, so that all together are less than twice the largest. */
static int reserve_scratch(mc_gpu_t *gpu, size_t bytes)
{
    const size_t had = gpu->scratch ? gpu->scratch->bytes : 0;
    if (bytes <= had)
        return MESHCOLL_OK;
    mc_gpu_memory_t *larger;
    const int status =
        mc_gpu_memory_take(gpu, bytes > 2 * had ? bytes : 2 * had, "allocate scratch", &larger);
    if (!status) {
        larger->next = gpu->scratch;
        gpu->scratch = larger;
    }
    return status;
}

/* Launching --------------------------------------------------------------------------------------- */

/* Behind the last call, which may be in another stream. Equal handles need not be one stream: each thread has its own
 * CU_STREAM_PER_THREAD, and a new stream may have the handle of one that was destroyed. */
static int follow(const mc_gpu_t *gpu, mc_cu_stream_t stream)
{
    if (gpu->n_launches == gpu->n_done)
        return MESHCOLL_OK;
    return mc_cuda_status(mc_cuda()->stream_await(stream, gpu->done, 0),
                          "let a stream wait for another");
}

/* In what a launch's messages say of themselves. */
static uint32_t digest_of(const mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    return mc_digest_numbered(mc_digest_by(p->asked.digest, at->candidate), at->number);
}

static mc_device_call_t call_of(const meshcoll_t *h, const mc_gpu_program_t *p,
                                const mc_gpu_place_t *at)
{
    const mc_gpu_t *const gpu = h->gpu;
    mc_device_call_t call = p->call;
    call.buffer[MC_DEVICE_IN] = (char *)(uintptr_t)at->in;
    call.buffer[MC_DEVICE_OUT] = at->out;
    call.buffer[MC_DEVICE_SCRATCH] = gpu->scratch ? (char *)(uintptr_t)gpu->scratch->at : NULL;
    call.window_at = p->window ? (uint64_t)((const char *)at->out - p->window->buffer) : 0;
    call.number = at->number;
    call.digest = digest_of(p, at);
    call.limit = h->timeout_ms > 0 ? (uint64_t)h->timeout_ms * 1000000u : UINT64_MAX;
    return call;
}

static int enqueue_steps(const meshcoll_t *h, const mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    mc_stream_signals_t *const signals = h->gpu->signals;
    const mc_device_call_t call = call_of(h, p, at);
    const mc_stream_launch_t launch = {.call = &call,
                                       .lane = p->lane,
                                       .n_lanes = 2 * p->lowered->n_peers,
                                       .blocks = signals->blocks,
                                       .sum = p->kernel,
                                       .place = mc_stream_signals_place(signals),
                                       .flushes = signals->flushes};
    atomic_store_explicit(&signals->limit_ms, h->timeout_ms, memory_order_relaxed);
    return mc_stream_enqueue(&launch, at->stream);
}

static int launch_kernel(const meshcoll_t *h, const mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    mc_device_launch_t launch = {.one = call_of(h, p, at)};
    void *parameter[] = {&launch};
    return mc_cuda_status(mc_cuda()->launch(p->kernel, p->call.blocks, 1, 1, MC_DEVICE_THREADS, 1,
                                            1, 0, at->stream, parameter, NULL),
                          "launch a kernel");
}

static mc_waits_launch_t asked(const mc_gpu_program_t *p, uint32_t number)
{
    mc_waits_launch_t asked = p->asked;
    asked.number = number % MC_TAG_CALLS;
    asked.is_persistent = number >= MC_TAG_CALLS;
    return asked;
}

static int launch_program(const meshcoll_t *h, const mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    const mc_waits_launch_t launch = asked(p, at->number);
    mc_waits_launched(h->job, &launch);
    if (p->route) { /* first: with CUDA_LAUNCH_BLOCKING the kernel ends before its launch returns */
        const int status =
            mc_proxy_launch(h->gpu->end, p->lowered, p->route, &p->call, digest_of(p, at));
        if (status)
            return status;
    }
    return h->gpu->signals ? enqueue_steps(h, p, at) : launch_kernel(h, p, at);
}

/* A capture may not wait for what runs, nor be waited for. No proxy learns when a graph is launched: refused
 * on all ranks alike, whether this one's program sends to other machines or not. */
static int launch_captured(meshcoll_t *h, mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    if (h->gpu->end)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "a call on device memory between machines cannot be captured: its messages "
                       "go through a thread of the host, which a graph does not start; enqueue it "
                       "outside of the capture");
    const int status = launch_program(h, p, at);
    p->captured = p->captured || !status;
    h->gpu->captured = h->gpu->captured || !status;
    if (h->hooks->took && !status)
        h->hooks->took(h, at->record, -1);
    return status;
}

static void count_sent(meshcoll_t *h, const mc_gpu_program_t *p)
{
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        h->bytes_sent[d] += p->sent[d];
}

static int launch_now(meshcoll_t *h, mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    mc_gpu_t *const gpu = h->gpu;
    int status = follow(gpu, at->stream);
    if (status)
        return status;
    mc_gpu_timed_t *const timed = h->hooks->took || at->key ? mc_gpu_times_begin(h, at) : NULL;
    status = launch_program(h, p, at);
    if (!status) {
        if (timed)
            (void)mc_cuda()->event_record(timed->end, at->stream);
        count_sent(h, p);
        gpu->number[gpu->n_launches % MC_GPU_NUMBERS] = at->number;
        gpu->program[gpu->n_launches % MC_GPU_NUMBERS] = p->number;
        gpu->since = 0;
        p->last = ++gpu->n_launches;
        status = mc_cuda_status(mc_cuda()->event_record(gpu->done, at->stream), "record an event");
    }
    if (!status && gpu->n_passed == 0) {
        gpu->n_passed = gpu->n_launches;
        status =
            mc_cuda_status(mc_cuda()->event_record(gpu->passed, at->stream), "record an event");
    }
    if (status && gpu->signals) /* nobody knows how long what is in the stream waits */
        gpu->signals->lingers = true;
    return status;
}

static int tell_capture(const mc_cuda_t *cuda, mc_cu_stream_t stream, bool *captured)
{
    mc_cu_capture_status_t capture = MC_CU_CAPTURE_NONE;
    const int status = mc_cuda_status(cuda->stream_captures(stream, &capture),
                                      "tell whether the stream is captured");
    *captured = capture != MC_CU_CAPTURE_NONE;
    return status;
}

int mc_gpu_captures(const meshcoll_t *h, mc_cu_stream_t stream, bool *captured)
{
    mc_gpu_visit_t visit;
    int status = mc_gpu_visit(h->gpu->context, &visit);
    if (status)
        return status;
    status = tell_capture(visit.cuda, stream, captured);
    mc_gpu_leave(&visit);
    return status;
}

int mc_gpu_launch(meshcoll_t *h, mc_gpu_program_t *p, const mc_gpu_place_t *at)
{
    mc_gpu_visit_t visit;
    bool captured;
    int status = mc_gpu_visit(h->gpu->context, &visit);
    if (status)
        return status;
    status = tell_capture(visit.cuda, at->stream, &captured);
    if (!status)
        status = reserve_scratch(h->gpu, p->scratch);
    if (!status)
        status = captured ? launch_captured(h, p, at) : launch_now(h, p, at);
    mc_gpu_leave(&visit);
    return status;
}

/* How they fare ----------------------------------------------------------------------------------- */

static void describe_late(const meshcoll_t *h, uint32_t block, const mc_device_report_t *report,
                          mc_text_t *text)
{
    const mc_gpu_program_t *const p = mc_gpu_program_find(h->gpu, report->program);
    mc_text_add(text, "a call on device memory waited longer than %.3g s",
                (double)h->timeout_ms / 1e3);
    if (!p)
        return;
    mc_text_add(text, ": %s, ",
                meshcoll_collective_name((meshcoll_collective_t)p->asked.collective));
    if (!h->gpu->signals)
        mc_text_add(text, "block %u, ", block);
    mc_device_report_print(p->lowered, report, text);
}

static int32_t job_rank(const meshcoll_t *h, const mc_gpu_program_t *p, int32_t planned)
{
    return mc_job_rank(h, p->by_comm ? mc_mesh_rank_of(&h->order, planned) : planned);
}

/* The peer of the message that a block stands at has made another call, or may have. ERR_MISMATCH; OK: it is not known. */
static int check_peer(const meshcoll_t *h, const mc_device_report_t *report)
{
    const mc_gpu_program_t *const p = mc_gpu_program_find(h->gpu, report->program);
    const bool told = report->status == MC_DEVICE_DIFFERS;
    if (!p || report->run >= p->lowered->n_runs ||
        !mc_device_is_message(&p->lowered->run[report->run]))
        return told ? mc_fail(MESHCOLL_ERR_MISMATCH,
                              "ranks have made different calls on device memory; all ranks must "
                              "make the same calls in the same order")
                    : MESHCOLL_OK;
    const int32_t planned = p->lowered->peer[p->lowered->run[report->run].lane / 2];
    const mc_waits_launch_t launch = asked(p, report->number);
    return mc_differ_ask_launch(h, job_rank(h, p, planned), &launch, told);
}

/* Of a rank that gave up, the messages that follow are not what they should be. News of its failure say
 * more, if there are any. */
static void check_notice(meshcoll_t *h)
{
    const uint32_t notice = h->gpu->signals ? mc_stream_signals_notice(h->gpu->signals) : 0;
    if (!notice || h->job->failure.status)
        return;
    const int rank = (int)mc_comm_rank_of(&h->order, (int32_t)((notice - 1) / 2));
    const bool late = (notice - 1) % 2;
    if (!late)
        mc_differ_await(h->job);
    mc_failure_break(
        h, late ? mc_fail(MESHCOLL_ERR_TIMEOUT,
                          "rank %d waited longer than its limit in a call on device "
                          "memory, and gave up",
                          rank)
                : mc_fail(MESHCOLL_ERR_PEER, "rank %d gave up a call on device memory", rank));
}

/* A block that gave up ends the mesh. */
static int check_reports(meshcoll_t *h)
{
    char why[400];
    mc_text_t text = mc_text(why, sizeof why);
    const mc_gpu_t *const gpu = h->gpu;
    for (uint32_t b = 0; b < gpu->arena.layout.blocks; b++) {
        const mc_device_report_t *const report = &gpu->report[b];
        const uint32_t status = __atomic_load_n(&report->status, __ATOMIC_ACQUIRE);
        if (status == MC_DEVICE_LATE || status == MC_DEVICE_DIFFERS) {
            describe_late(h, b, report, &text);
            const int differs = h->job->failure.status ? MESHCOLL_OK : check_peer(h, report);
            mc_failure_break(h, differs ? differs : mc_fail(MESHCOLL_ERR_TIMEOUT, "%s", why));
            return mc_failure_check(h);
        }
        if (status == MC_DEVICE_ABORTED && !h->job->failure.status)
            mc_failure_break(h,
                             mc_fail(MESHCOLL_ERR_ABORTED, "a call on device memory was aborted"));
    }
    check_notice(h);
    return mc_failure_check(h);
}

/* Have the launches ended? */
static int has_ended(mc_gpu_t *gpu)
{
    mc_gpu_visit_t visit;
    if (gpu->n_done == gpu->n_launches)
        return MESHCOLL_OK;
    int status = mc_gpu_visit(gpu->context, &visit);
    if (status)
        return status;
    const mc_cu_result_t result = visit.cuda->event_query(gpu->done);
    mc_gpu_leave(&visit);
    if (result == MC_CU_ERROR_NOT_READY)
        return MESHCOLL_IN_PROGRESS;
    gpu->n_done = gpu->n_launches;
    return mc_cuda_status(result, "run a kernel");
}

/* What a rank does not launch its peers' kernels would wait for until their limit. */
static int check_refusals(const meshcoll_t *h)
{
    const mc_gpu_t *const gpu = h->gpu;
    const uint64_t n = gpu->n_launches - gpu->n_done;
    uint32_t number[MC_GPU_NUMBERS], i = 0;
    for (; i < n && i < MC_GPU_NUMBERS; i++)
        number[i] = gpu->number[(gpu->n_launches - 1 - i) % MC_GPU_NUMBERS];
    return mc_failure_refusal(h, number, i);
}

/* Asks all peers of a launch that may wait for one whether they make the same call. */
static int ask_peers(const meshcoll_t *h, const mc_gpu_program_t *p, uint32_t number)
{
    const mc_waits_launch_t launch = asked(p, number);
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < p->lowered->n_peers && !status; i++)
        status = mc_differ_ask_launch(h, job_rank(h, p, p->lowered->peer[i]), &launch, false);
    return status;
}

/* A kernel that waits for what never comes tells nobody before its limit: as with calls on host memory, peers are
 * asked after a second, and each time that the wait has doubled. */
static int ask_others(meshcoll_t *h)
{
    mc_gpu_t *const gpu = h->gpu;
    const int64_t now = mc_now_ms();
    const uint64_t n = gpu->n_launches - gpu->n_done;
    int status = MESHCOLL_OK;
    if (gpu->since == 0) {
        gpu->since = now;
        gpu->due = now + MC_WAITS_FRESH_MS;
    }
    if (now < gpu->due)
        return MESHCOLL_OK;
    gpu->due = now + (now - gpu->since);
    for (uint32_t i = 0; i < n && i < MC_GPU_NUMBERS && !status; i++) {
        const uint64_t at = (gpu->n_launches - 1 - i) % MC_GPU_NUMBERS;
        const mc_gpu_program_t *const p = mc_gpu_program_find(gpu, gpu->program[at]);
        status = p ? ask_peers(h, p, gpu->number[at]) : MESHCOLL_OK;
    }
    return status;
}

int mc_gpu_state(meshcoll_t *h)
{
    int running = has_ended(h->gpu);
    int failed = running == MESHCOLL_IN_PROGRESS ? check_refusals(h) : MESHCOLL_OK;
    if (running == MESHCOLL_IN_PROGRESS && !failed)
        failed = ask_others(h);
    running = failed ? failed : running;
    if (running < 0)
        mc_failure_break(h, running);
    const int status = check_reports(h);
    return status ? status : running;
}

/* Progresses what else this rank runs. No transport tells of a GPU, so that it never sleeps. */
static void turn(meshcoll_t *h)
{
    if (h->job->threads) {
        mc_unlock(h);
        sched_yield();
        mc_lock(h);
        return;
    }
    (void)mc_job_progress(h->job);
    sched_yield();
}

int mc_gpu_run(meshcoll_t *h, mc_gpu_program_t *p, mc_gpu_place_t place)
{
    place.stream = h->gpu->stream;
    int status = mc_gpu_launch(h, p, &place);
    if (status)
        return status;
    while ((status = mc_gpu_state(h)) == MESHCOLL_IN_PROGRESS)
        turn(h);
    if (status) /* the kernel may still use the buffers */
        mc_gpu_await(h);
    return status ? mc_failure_check(h) : MESHCOLL_OK;
}

void mc_gpu_await(meshcoll_t *h)
{
    while (h->gpu && has_ended(h->gpu) == MESHCOLL_IN_PROGRESS)
        turn(h);
}

void mc_gpu_settle(meshcoll_t *h)
{
    const double end = mc_now() + (double)h->timeout_ms / 1e3;
    while (h->gpu && h->gpu->end && !mc_proxy_is_settled(h->gpu->end) && !mc_failure_check(h)) {
        if (h->timeout_ms > 0 && mc_now() > end)
            mc_failure_break(h, mc_fail(MESHCOLL_ERR_TIMEOUT,
                                        "ranks of other machines did not take what calls on device "
                                        "memory had sent to them within %.3g s",
                                        (double)h->timeout_ms / 1e3));
        turn(h);
    }
}
