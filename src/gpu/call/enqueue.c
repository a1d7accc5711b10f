#include "gpu/call/call.h"

#include "gpu/launch/launch.h"
#include "gpu/launch/times.h"
#include "gpu/mesh/gpu.h"
#include "runtime/call/adapt.h"
#include "runtime/call/args.h"
#include "runtime/call/cache.h"
#include "runtime/call/call.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>

/* Preparing --------------------------------------------------------------------------------------- */

static int check_gpu(const meshcoll_t *h, const mc_pointer_t *buffer)
{
    if (buffer->kind != MC_MEMORY_DEVICE || buffer->device == h->gpu->device)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "the buffers are memory of GPU %d, but this mesh's calls began on GPU %d: "
                   "expected one GPU for all calls of a mesh",
                   buffer->device, h->gpu->device);
}

static int find_program(meshcoll_t *h, const mc_call_t *call, const mc_forwarded_t *forwarded,
                        bool tries, mc_gpu_program_t **program)
{
    const int status = check_gpu(h, &call->buffer);
    return status ? status : mc_gpu_program(h, &call->args, &call->best, forwarded, tries, program);
}

bool mc_gpu_can_try(meshcoll_t *h, const mc_call_t *call)
{
    mc_gpu_program_t *program;
    return h->gpu && !find_program(h, call, NULL, true, &program);
}

/* With MESHCOLL_CHECK all ranks compare the call, and wait for that. Programs of calls with tables of counts are not
 * kept, nor tried. */
static int choose(meshcoll_t *h, mc_call_t *call)
{
    const meshcoll_args_t *const a = &call->args;
    const mc_gpu_window_t *const w = h->gpu ? mc_gpu_window(h, a) : NULL;
    const bool in_place = a->collective == MESHCOLL_ALLTOALL && a->in == a->out;
    call->on_device = true;
    if (w) {
        call->window = w->number + 1u;
        call->window_at = 2 * (uint64_t)((const char *)a->out - w->buffer) + in_place;
    }
    if (h->gpu)
        mc_gpu_times_collect(h);
    const int status = a->counts ? mc_cache_choose(h, call) : mc_adapt_choose(h, call);
    if (status)
        return mc_call_refused(h, call, status);
    return h->hooks->compare ? h->hooks->compare(h, call, NULL) : MESHCOLL_OK;
}

/* Do all ranks find the same? Then the call is refused, and the mesh goes on. */
static bool is_refusal(int status)
{
    return status == MESHCOLL_ERR_UNSUPPORTED || status == MESHCOLL_ERR_INVALID_ARG ||
           status == MESHCOLL_ERR_STRATEGY;
}

/* Counts it among the calls that the barriers of the lead compare. It counts no bytes: credits of its messages bound how
 * far it runs ahead. */
static void count(meshcoll_t *h, const mc_call_t *call, uint32_t digest)
{
    if (!h->hooks->compare)
        mc_lead_call(h, 0, call->number.own, digest, NULL);
}

/* Chooses the strategy of a checked call that has its numbers, and finds its program, for which the ranks may meet.
 * `waits`: it may wait for peers besides, for what an alltoallv must know of them. Where it fails on this rank alone,
 * the mesh fails. */
static int prepare(meshcoll_t *h, mc_call_t *call, bool waits, mc_gpu_program_t **program)
{
    bool agreed;
    mc_forwarded_t *forwarded = NULL;
    if (!call->is_persistent) /* before it waits, as callbacks may make calls then */
        count(h, call, mc_digest_on_device(h, &call->args));
    int status = choose(h, call);
    if (!status)
        status = mc_lead_agree(h);
    if (status)
        return status;
    status = mc_gpu_open(h, &call->buffer, call->number.own, &agreed);
    if (status)
        return agreed ? status : mc_gpu_fail_alone(h, status);
    if (waits && call->args.in_counts)
        status = mc_counts_learn(h, call, &forwarded);
    if (status == MESHCOLL_ERR_INVALID_ARG) /* another rank's counts are others */
        return mc_gpu_fail_alone(h, status);
    if (!status)
        status = find_program(h, call, forwarded, false, program);
    free(forwarded);
    if (is_refusal(status))
        return mc_lead_refused(h, call->number.own, call->is_persistent, status);
    return status ? mc_gpu_fail_alone(h, status) : MESHCOLL_OK;
}

/* Calls ------------------------------------------------------------------------------------------- */

static mc_gpu_place_t place_of(const mc_call_t *call, void *stream)
{
    return (mc_gpu_place_t){.in = call->args.in,
                            .out = call->args.out,
                            .stream = stream,
                            .number = call->number.own,
                            .candidate = call->candidate,
                            .key = call->is_timed ? &call->key : NULL};
}

int mc_gpu_call_run(meshcoll_t *h, mc_call_t *call)
{
    const meshcoll_args_t *const a = &call->args;
    mc_gpu_program_t *program;
    int status = prepare(h, call, true, &program);
    if (status)
        return status;
    mc_gpu_place_t place = place_of(call, NULL);
    status = mc_gpu_record(h, a, &call->best, program, &place.record);
    if (!status)
        status = mc_gpu_run(h, program, place);
    return status ? mc_gpu_fail_alone(h, status) : MESHCOLL_OK;
}

static int launch(meshcoll_t *h, mc_gpu_program_t *program, const mc_gpu_place_t *place,
                  bool persistent)
{
    int status = mc_lead_agree(h);
    if (!status)
        status = mc_gpu_launch(h, program, place);
    /* in a capture; others may wait in this call outside of one */
    if (status == MESHCOLL_ERR_UNSUPPORTED)
        return mc_lead_refused(h, place->number, persistent, status);
    return status ? mc_gpu_fail_alone(h, status) : MESHCOLL_OK;
}

static int check_place(const meshcoll_t *h, const char *function)
{
    if (mc_group_is_open(h))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: a group is open on this mesh, and collects calls on host memory only: "
                       "end it first",
                       function);
    return h->n_restricted > 0 ? mc_callback_check(function) : MESHCOLL_OK;
}

int mc_gpu_enqueue(meshcoll_t *h, const meshcoll_args_t *given, void *stream)
{
    mc_call_t call = {.number = mc_take_numbers(h, false, mc_call_exchanges(given)), .waits = true};
    const meshcoll_args_t *const a = &call.args;
    mc_gpu_program_t *program;
    int status = mc_failure_check(h);
    if (status)
        return status;
    status = check_place(h, "meshcoll_enqueue");
    if (!status)
        status = mc_args_check(h, given, &call.args);
    if (!status && a->count > 0)
        status = mc_call_memory_need(h, &call);
    if (!status && a->count > 0 && !mc_gpu_has_kernel(a))
        status = mc_staged_refuse(a);
    if (status)
        return mc_call_refused(h, &call, status);
    if (a->count == 0) {
        count(h, &call, mc_digest_of(h, a, false));
        return h->hooks->compare ? choose(h, &call) : MESHCOLL_OK;
    }
    status = h->gpu && h->calls.adapt ? mc_gpu_captures(h, stream, &call.is_aside) : MESHCOLL_OK;
    if (status)
        return mc_gpu_fail_alone(h, status);
    status = prepare(h, &call, false, &program);
    if (status)
        return status;
    mc_gpu_place_t place = place_of(&call, stream);
    status = mc_gpu_record(h, a, &call.best, program, &place.record);
    return status ? mc_gpu_fail_alone(h, status) : launch(h, program, &place, false);
}

/* Persistent requests ----------------------------------------------------------------------------- */

/* What is enqueued in streams. It has no plan for the host. */
typedef struct {
    mc_persistent_t own; /* first */
    mc_gpu_program_t *program;
    struct mc_record *record;
    int32_t candidate; /* as of what calls had learned when it was made */
} request_t;

static int refuse_start(meshcoll_request_t *r)
{
    (void)r;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "meshcoll_start: the request's buffers are device memory: start it by "
                   "meshcoll_enqueue_request, in a stream");
}

/* The mesh may be gone, and its programs with it. */
static void release(meshcoll_request_t *r)
{
    mc_gpu_program_t *const program = ((request_t *)r)->program;
    if (r->mesh && program)
        program->held--;
    mc_run_destroy(r);
}

static const mc_request_kind_t kind = {
    .bytes = sizeof(request_t), .is_run = true, .start = refuse_start, .release = release};

int mc_gpu_request(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &call->args;
    mc_gpu_program_t *program;
    mc_run_t *run;
    call->waits = true; /* also where it is refused: other ranks wait in its comparison */
    call->is_aside = true;
    int status = prepare(h, call, true, &program);
    if (status)
        return status;
    status = mc_run_make(h, &kind, call, &run);
    if (status)
        return mc_gpu_fail_alone(h, status);
    request_t *const r = (request_t *)run;
    status = mc_gpu_record(h, a, &call->best, program, &r->record);
    if (status) {
        mc_request_drop(&run->head);
        return mc_gpu_fail_alone(h, status);
    }
    program->held++;
    r->program = program;
    r->candidate = call->candidate;
    run->operands = (mc_operands_t){.in = a->in, .out = a->out};
    run->head.persistent = true;
    *request = &run->head;
    return MESHCOLL_OK;
}

int mc_gpu_enqueue_request(meshcoll_request_t *request, void *stream)
{
    const request_t *const r = (const request_t *)request;
    const mc_operands_t *const operands = &r->own.run.operands;
    const mc_gpu_place_t place = {.in = operands->in,
                                  .out = operands->out,
                                  .stream = stream,
                                  .number = request->number,
                                  .candidate = r->candidate,
                                  .record = r->record};
    const int status = check_place(request->mesh, "meshcoll_enqueue_request");
    return status ? mc_lead_refused(request->mesh, request->number, true, status)
                  : launch(request->mesh, r->program, &place, true);
}
