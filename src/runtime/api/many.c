/* Waits for, and tests, several requests, of one mesh or several. */
#include "runtime/call/request.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/wait.h"

#include <time.h>

/* ns between polls while requests of several meshes run: a thread sleeps on the descriptors of one
 * mesh only. */
enum { BETWEEN_NS = 50 * 1000 };

/* Is there nothing to wait for: NULL, or a persistent request not started since its completion was
 * returned? */
static bool is_idle(const meshcoll_request_t *r)
{
    return !r || !r->active;
}

static bool runs(meshcoll_request_t *r)
{
    if (is_idle(r))
        return false;
    mc_lock(r->mesh);
    const bool running = mc_runs(r);
    mc_unlock(r->mesh);
    return running;
}

/* What requests do at present. */
typedef struct {
    int active, running; /* started, and its completion was not returned yet; of these run */
    int ended, failed;   /* the first of the others, and the first that failed; -1: none */
    meshcoll_t *mesh;    /* of all that run; NULL: there are several, or none runs */
} tally_t;

static tally_t count(int n, meshcoll_request_t *const *request)
{
    tally_t t = {.ended = -1, .failed = -1};
    bool several = false;
    for (int i = 0; i < n; i++) {
        if (is_idle(request[i]))
            continue;
        t.active++;
        if (runs(request[i])) {
            several = several || (t.mesh && request[i]->mesh != t.mesh);
            t.mesh = request[i]->mesh;
            t.running++;
            continue;
        }
        if (t.ended < 0)
            t.ended = i;
        if (t.failed < 0 && request[i]->status < 0)
            t.failed = i;
    }
    if (several)
        t.mesh = NULL;
    return t;
}

static void look(int n, meshcoll_request_t *const *request)
{
    const meshcoll_t *last = NULL;
    for (int i = 0; i < n; i++)
        if (runs(request[i]) && request[i]->mesh != last) {
            last = request[i]->mesh;
            mc_lock(last);
            mc_test_turn(request[i]->mesh);
            mc_unlock(last);
        }
    if (mc_callbacks_are_due())
        mc_callbacks_run();
}

/* The hooks of all meshes whose requests are waited for. */
static void run_hooks(int n, meshcoll_request_t *const *request)
{
    for (int i = 0; i < n; i++) {
        if (!runs(request[i]) || !request[i]->mesh->hook.function)
            continue;
        mc_lock(request[i]->mesh);
        (void)mc_hook_run(request[i]->mesh);
        mc_unlock(request[i]->mesh);
    }
}

/* Returns the status to the owner; the entry of a call becomes NULL. */
static int complete(meshcoll_request_t **request)
{
    const meshcoll_t *const h = (*request)->mesh;
    const bool goes = !(*request)->persistent;
    mc_lock(h);
    const int status = mc_request_complete(*request);
    (void)mc_leave(h, MESHCOLL_OK);
    if (goes)
        *request = NULL;
    return status;
}

/* Are `running` requests still running? The lock of their mesh is held. */
static bool still_run(int n, meshcoll_request_t *const *request, int running)
{
    for (int i = 0; i < n; i++)
        running -= !is_idle(request[i]) && request[i]->running;
    return running == 0;
}

/* Without an event nothing has ended, unless by another thread, a hook or a failure: so idle polls cost the
 * same for any number of requests. */
static void await_event(meshcoll_t *mesh, mc_waiting_t *waiting)
{
    const mc_job_t *const job = mesh->job;
    do
        mc_wait_turn(mesh, waiting);
    while (waiting->idle > 0 && !job->threads && !mesh->hook.function && !job->failure.status);
}

/* Waits until something may have happened to a request that ran when they were counted. Where fewer run now, one has
 * ended in between, its notification is over, and the caller must count again. */
static void turn(int n, meshcoll_request_t *const *request, const tally_t *t, mc_waiting_t *waiting)
{
    if (t->mesh) {
        mc_lock(t->mesh);
        if (still_run(n, request, t->running))
            await_event(t->mesh, waiting);
        mc_unlock(t->mesh);
    } else {
        look(n, request);
        run_hooks(n, request);
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
    }
}

static int check(int n, meshcoll_request_t *const *request, const char *function)
{
    if (n < 0 || (n > 0 && !request))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: n is negative, or requests is NULL",
                       function);
    return MESHCOLL_OK;
}

static int complete_all(int n, meshcoll_request_t **request)
{
    for (int i = 0; i < n; i++) {
        const int status = is_idle(request[i]) ? MESHCOLL_OK : complete(&request[i]);
        if (status)
            return status;
    }
    return MESHCOLL_OK;
}

/* Waits for a request of the mesh; ends early where one of its job has failed alone. Returns how many did so far. */
static uint64_t await(meshcoll_t *mesh, meshcoll_request_t *r, uint64_t n_failed)
{
    mc_waiting_t waiting = {0};
    mc_lock(mesh);
    while (mc_runs(r) && mesh->job->failure.n_runs == n_failed)
        mc_wait_turn(mesh, &waiting);
    n_failed = mesh->job->failure.n_runs;
    (void)mc_leave(mesh, MESHCOLL_OK);
    return n_failed;
}

/* Waits for one after the other, all of one mesh. Failed ones are reported at once: concurrent ones on the same mesh
 * may never end. */
static int waitall_of(meshcoll_t *mesh, int n, meshcoll_request_t **requests)
{
    uint64_t before = 0; /* if more have failed so far, these may be among them */
    for (int i = 0; i < n; i++)
        while (runs(requests[i])) {
            const uint64_t n_failed = await(mesh, requests[i], before);
            const int failed = n_failed == before ? -1 : count(n, requests).failed;
            if (failed >= 0)
                return complete(&requests[failed]);
            before = n_failed;
        }
    return complete_all(n, requests);
}

int meshcoll_waitall(int n, meshcoll_request_t **requests)
{
    mc_waiting_t waiting = {0};
    const int status = check(n, requests, "meshcoll_waitall");
    if (status)
        return status;
    tally_t t = count(n, requests);
    if (t.running > 0 && mc_callback_check("meshcoll_waitall"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (t.mesh)
        return waitall_of(t.mesh, n, requests);
    for (; t.running > 0; t = count(n, requests)) {
        if (t.failed >= 0)
            return complete(&requests[t.failed]);
        turn(n, requests, &t, &waiting);
    }
    return complete_all(n, requests);
}

int meshcoll_testall(int n, meshcoll_request_t **requests)
{
    const int status = check(n, requests, "meshcoll_testall");
    if (status)
        return status;
    look(n, requests);
    const tally_t t = count(n, requests);
    if (t.failed >= 0)
        return complete(&requests[t.failed]);
    return t.running > 0 ? MESHCOLL_IN_PROGRESS : complete_all(n, requests);
}

static int check_any(int n, meshcoll_request_t *const *request, const int *index,
                     const char *function)
{
    if (!index)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: index is NULL", function);
    return check(n, request, function);
}

int meshcoll_waitany(int n, meshcoll_request_t **requests, int *index)
{
    mc_waiting_t waiting = {0};
    const int status = check_any(n, requests, index, "meshcoll_waitany");
    if (status)
        return status;
    tally_t t = count(n, requests);
    if (t.ended < 0 && t.active > 0 && mc_callback_check("meshcoll_waitany"))
        return MESHCOLL_ERR_INVALID_ARG;
    for (; t.ended < 0 && t.active > 0; t = count(n, requests))
        turn(n, requests, &t, &waiting);
    *index = t.ended;
    return t.ended < 0 ? MESHCOLL_OK : complete(&requests[t.ended]);
}

int meshcoll_testany(int n, meshcoll_request_t **requests, int *index)
{
    const int status = check_any(n, requests, index, "meshcoll_testany");
    if (status)
        return status;
    look(n, requests);
    const tally_t t = count(n, requests);
    if (t.ended < 0 && t.active > 0)
        return MESHCOLL_IN_PROGRESS;
    *index = t.ended;
    return t.ended < 0 ? MESHCOLL_OK : complete(&requests[t.ended]);
}
