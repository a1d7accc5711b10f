#include "runtime/request/request.h"

#include "runtime/handle/run.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"
#include "runtime/progress/wait.h"

void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    r->mesh = h;
    r->ready.list = &h->job->requests.ready;
    mc_list_append(&h->requests, &r->of_mesh);
}

/* May transports not write to what it uses, any more? What a failed run left in flight they may, until they are
 * closed. */
static bool is_idle(const meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    if (!run)
        return r->status >= 0 || r->why;
    const mc_run_state_t state = run->executor.state;
    return state == MC_IDLE || (state == MC_NEW && !run->exchange && !run->executor.held) ||
           (state == MC_FAILED && r->why && !run->exchange);
}

void mc_request_drop(meshcoll_request_t *r)
{
    if (r->running || (r->mesh && !is_idle(r)))
        r->released = true;
    else
        r->kind->release(r);
}

/* A request that serves calls is its caller's only until the call is complete. */
static int check_owned(const meshcoll_request_t *r, const char *function)
{
    if (r->persistent || r->taken)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s: this call is complete, and its request no longer the caller's", function);
}

void meshcoll_free(meshcoll_request_t *request)
{
    if (!request || (request->mesh && request->mesh->job->unusable))
        return;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    if (mc_runs(request))
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_free: the request is still running; it is released when it is "
                "complete, and its buffers must stay valid until then");
    if (!check_owned(request, "meshcoll_free"))
        mc_request_drop(request);
    (void)mc_leave(h, MESHCOLL_OK);
}

/* The run could not start, or has failed at once. */
static int fail_start(meshcoll_request_t *r)
{
    if (r->why) {
        r->active = false;
        return mc_fail(r->status, "%s", r->why);
    }
    mc_failure_break(r->mesh, r->status);
    return r->status = r->mesh->job->failure.status;
}

int mc_request_start(meshcoll_request_t *r)
{
    mc_job_t *const job = r->mesh->job;
    const int broken = mc_failure_check(r->mesh);
    if (broken)
        return broken;
    r->active = true;
    if (job->threads)
        mc_threads_wake(job->threads);
    r->status = r->kind->start(r);
    mc_job_wake_peers(job);
    if (r->status == MESHCOLL_IN_PROGRESS) {
        r->running = true;
        mc_busy_enlist(job, r);
        return MESHCOLL_OK;
    }
    if (r->status == MESHCOLL_OK && r->kind->finish)
        r->status = r->kind->finish(r);
    if (r->status < 0)
        return fail_start(r);
    if (r->released)
        r->kind->release(r);
    return MESHCOLL_OK;
}

static int check_callback(const meshcoll_request_t *r)
{
    if (!r)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_callback: the request is NULL; a call of a group has none");
    if (!r->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_callback: the request's mesh is destroyed");
    return MESHCOLL_OK;
}

int meshcoll_set_callback(meshcoll_request_t *request, meshcoll_callback_t callback, void *context)
{
    int status = check_callback(request);
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    status = check_owned(request, "meshcoll_set_callback");
    if (!status) {
        request->callback.function = callback;
        request->callback.context = context;
        if (callback && !request->running && !request->persistent)
            mc_callback_due(request);
    }
    return mc_leave(h, status);
}

int mc_request_await(meshcoll_request_t *r)
{
    mc_waiting_t waiting = {0};
    while (r->running)
        mc_wait_turn(r->mesh, &waiting);
    return r->status;
}

/* Its text: it may have failed in another thread, or long ago. */
__attribute__((noinline)) static void restore_error(const meshcoll_request_t *r, int status)
{
    if (r->why)
        mc_fail(status, "%s", r->why);
    else if (r->mesh && r->mesh->job->failure.status)
        mc_fail(status, "%s", r->mesh->job->failure.why);
}

static inline int complete(meshcoll_request_t *r)
{
    const int status = r->status;
    r->active = false;
    if (status < 0)
        restore_error(r, status);
    if (r->persistent)
        return status;
    if (status == MESHCOLL_OK) /* nothing is in flight */
        r->kind->release(r);
    else
        mc_request_drop(r);
    return status;
}

int mc_request_complete(meshcoll_request_t *r)
{
    if (r->running)
        (void)mc_request_await(r);
    return complete(r);
}

int meshcoll_test(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = check_owned(request, "meshcoll_test");
    if (mc_runs(request))
        mc_test_turn(request->mesh);
    if (!status)
        status = request->running ? MESHCOLL_IN_PROGRESS : complete(request);
    return mc_leave(h, status);
}

int meshcoll_wait(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = check_owned(request, "meshcoll_wait");
    if (!status && mc_runs(request) && request->mesh->n_restricted > 0)
        status = mc_callback_check("meshcoll_wait");
    if (!status && request->running && request->kind->awaited)
        request->kind->awaited(request);
    if (!status)
        status = mc_request_complete(request);
    return mc_leave(h, status);
}

const char *meshcoll_request_strategy(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_strategy: request is NULL");
    return request && mc_run_of(request) ? mc_run_of(request)->text : NULL;
}

double meshcoll_request_predicted(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_predicted: request is NULL");
    return request && mc_run_of(request) ? mc_run_of(request)->choice.seconds : 0;
}
