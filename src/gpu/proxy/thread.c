#include "gpu/proxy/state.h"

#include "base/system/process.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* While launches are in flight nothing tells when a kernel raises a flag. A sleep takes an eighth of the time
 * since the last event, so that it makes a wait longer by that at most. LONGEST: 1000 looks per second, which take
 * about a hundredth of a core, while a kernel waits for long behind others. SHORTEST: what the kernel's timers
 * resolve. CHECK: without an event for so long, it is looked whether messages of other calls have come. */
enum {
    SLEEP_PART = 8,
    LONGEST_NS = 1000 * 1000,
    SHORTEST_NS = 50 * 1000,
    CHECK_NS = 100 * 1000000
};

/* Failure ----------------------------------------------------------------------------------------- */

static void fail(mc_proxy_t *p, int status)
{
    mc_failure_post(p->job, status);
    p->over = true;
}

/* Connections ------------------------------------------------------------------------------------- */

static void poll_transport(mc_proxy_t *p, mc_transport_t *t)
{
    for (int32_t i = 0; i < p->n_polled; i++)
        if (p->polled[i] == t)
            return;
    p->polled[p->n_polled++] = t; /* at most one per dimension */
}

static int find_address(mc_proxy_t *p, int32_t job_rank, int32_t dim, mc_transport_t **transport,
                        const void **address)
{
    pthread_mutex_lock(&p->lock);
    *transport = p->transport[dim];
    *address = mc_transports_find(p->address[job_rank], p->address_bytes[job_rank], dim);
    pthread_mutex_unlock(&p->lock);
    if (*transport && *address)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "calls on device memory: rank %d has sent no address along dimension %s",
                   (int)mc_comm_rank_of(&p->job->order, job_rank), p->job->mesh.dim[dim].name);
}

static int connect_route(mc_proxy_t *p, mc_route_t *r)
{
    const int32_t rank = mc_job_rank(r->end->mesh, r->rank);
    mc_transport_t *t;
    const void *address;
    if (r->peer)
        return MESHCOLL_OK;
    if (!p->peer[rank]) {
        const int32_t dim = mc_mesh_level(&p->job->mesh, p->job->rank, rank);
        int status = find_address(p, rank, dim, &t, &address);
        if (!status)
            status = t->ops->connect(t, rank, address, &p->peer[rank]);
        if (status)
            return status;
        poll_transport(p, t);
    }
    mc_route_connect(r, p->peer[rank], &p->finished);
    return MESHCOLL_OK;
}

/* Orders ------------------------------------------------------------------------------------------ */

static void take_launch(mc_proxy_t *p, mc_route_launch_t *l)
{
    mc_route_t *const r = l->route;
    mc_proxy_end_t *const end = r->end;
    const int status = p->over ? MESHCOLL_OK : connect_route(p, r);
    if (status)
        fail(p, status);
    if (p->over) {
        mc_route_launch_free(l);
        return;
    }
    mc_route_give(l);
    end->taken++;
    if (!end->listed) {
        end->listed = true;
        end->next = p->ends;
        p->ends = end;
    }
    if (!r->active) {
        r->active = true;
        r->next_active = end->active;
        end->active = r;
    }
}

static void forget(mc_proxy_t *p, const mc_proxy_end_t *end)
{
    mc_proxy_end_t **at = &p->ends;
    while (*at && *at != end)
        at = &(*at)->next;
    if (*at)
        *at = end->next;
    pthread_mutex_lock(&p->lock);
    p->leaving = NULL;
    pthread_cond_broadcast(&p->left);
    pthread_mutex_unlock(&p->lock);
}

/* Returns whether there were any. */
static bool take_orders(mc_proxy_t *p)
{
    if (!atomic_load_explicit(&p->has_orders, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&p->lock);
    mc_route_launch_t *const first = p->first;
    const mc_proxy_end_t *const leaving = p->leaving;
    p->first = p->last = NULL;
    atomic_store_explicit(&p->has_orders, false, memory_order_relaxed);
    pthread_mutex_unlock(&p->lock);
    for (mc_route_launch_t *l = first, *next; l; l = next) {
        next = l->next;
        take_launch(p, l);
    }
    if (leaving)
        forget(p, leaving);
    return true;
}

/* Moving ------------------------------------------------------------------------------------------ */

static int advance(mc_proxy_end_t *end, uint32_t *moved)
{
    for (mc_route_t **at = &end->active, *r; (r = *at);) {
        const int status = mc_route_advance(r, moved);
        if (status)
            return status;
        if (mc_route_is_quiet(r)) {
            *at = r->next_active;
            r->active = false;
        } else {
            at = &r->next_active;
        }
    }
    return MESHCOLL_OK;
}

static bool is_settled(const mc_proxy_end_t *end)
{
    return atomic_load_explicit(&end->settled, memory_order_relaxed) == end->taken;
}

/* What was sent may still be in a transport's buffer: no end has settled before a flush. */
static int begin_flushes(mc_proxy_t *p)
{
    bool any = false;
    for (mc_proxy_end_t *end = p->ends; end; end = end->next)
        if (!end->active && !is_settled(end)) {
            end->flushed = end->taken;
            any = true;
        }
    for (int32_t i = 0; any && i < p->n_polled; i++) {
        mc_transport_t *const t = p->polled[i];
        const int status = t->ops->flush ? t->ops->flush(t) : MESHCOLL_OK;
        if (status < 0)
            return status;
        p->flushing[i] = status == MESHCOLL_IN_PROGRESS;
        p->n_flushes += p->flushing[i];
    }
    return MESHCOLL_OK;
}

static int poll_flushes(mc_proxy_t *p)
{
    for (int32_t i = 0; i < p->n_polled; i++) {
        if (!p->flushing[i])
            continue;
        const int status = p->polled[i]->ops->flushed(p->polled[i]);
        if (status == MESHCOLL_IN_PROGRESS)
            continue;
        p->flushing[i] = false;
        p->n_flushes--;
        if (status)
            return status;
    }
    return MESHCOLL_OK;
}

static int flush(mc_proxy_t *p)
{
    const int status = p->n_flushes > 0 ? poll_flushes(p) : begin_flushes(p);
    if (status || p->n_flushes > 0)
        return status;
    for (mc_proxy_end_t *end = p->ends; end; end = end->next)
        atomic_store_explicit(&end->settled, end->flushed, memory_order_release);
    return MESHCOLL_OK;
}

/* Returns the number of events. */
static uint32_t move(mc_proxy_t *p)
{
    uint32_t n = 0;
    for (int32_t i = 0; i < p->n_polled; i++)
        n += p->polled[i]->ops->progress(p->polled[i]);
    int status = mc_route_finish(&p->finished);
    for (mc_proxy_end_t *end = p->ends; end && !status; end = end->next)
        status = advance(end, &n);
    for (int32_t i = 0; i < p->n_polled && !status; i++)
        if (p->polled[i]->ops->wake)
            p->polled[i]->ops->wake(p->polled[i]);
    if (!status)
        status = flush(p);
    if (status)
        fail(p, status);
    return n;
}

static bool is_idle(const mc_proxy_t *p)
{
    bool idle = true;
    for (const mc_proxy_end_t *end = p->ends; end && !p->over; end = end->next)
        idle = idle && is_settled(end);
    return idle;
}

/* Sleeping ---------------------------------------------------------------------------------------- */

void mc_proxy_wake(mc_proxy_t *p)
{
    const uint64_t one = 1;
    if (!p->asleep)
        return;
    p->asleep = false;
    /* it fails only when the counter is full, and then the sleeper wakes anyway */
    if (write(p->wake, &one, sizeof one) < 0)
        return;
}

/* Orders that come from now on wake it; false: there are some already. */
static bool fall_asleep(mc_proxy_t *p)
{
    pthread_mutex_lock(&p->lock);
    p->asleep = !p->first && !p->leaving && !atomic_load(&p->stop);
    const bool asleep = p->asleep;
    pthread_mutex_unlock(&p->lock);
    return asleep;
}

static void wake_up(mc_proxy_t *p)
{
    uint64_t n;
    pthread_mutex_lock(&p->lock);
    p->asleep = false;
    pthread_mutex_unlock(&p->lock);
    while (read(p->wake, &n, sizeof n) > 0) {}
}

/* Until an order, an event of a transport, or for `most` nanoseconds; 0: without limit. Without `watch`
 * transports do not wake it. Returns whether one did. */
static bool sleep_on(mc_proxy_t *p, bool watch, int64_t most)
{
    struct pollfd fd[MC_MAX_DIMS + 1] = {{.fd = p->wake, .events = POLLIN}};
    const struct timespec limit = {most / 1000000000, most % 1000000000};
    nfds_t n = 1;
    for (int32_t i = 0; watch && i < p->n_polled; i++) {
        mc_transport_t *const t = p->polled[i];
        if (t->fd < 0)
            continue;
        fd[n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
        if (t->ops->arm(t) != MESHCOLL_OK)
            return true;
    }
    if (!fall_asleep(p))
        return false;
    const int ready = ppoll(fd, n, most > 0 ? &limit : NULL, NULL);
    const bool ordered = fd[0].revents != 0;
    wake_up(p);
    return ready > (int)ordered;
}

static int64_t now_ns(void)
{
    return (int64_t)(mc_now() * 1e9);
}

static int64_t nap_of(int64_t waited)
{
    const int64_t nap = waited / SLEEP_PART;
    return nap < SHORTEST_NS ? SHORTEST_NS : nap > LONGEST_NS ? LONGEST_NS : nap;
}

static void check_routes(mc_proxy_t *p, int64_t now)
{
    p->checked = now;
    for (const mc_proxy_end_t *end = p->ends; end; end = end->next)
        for (mc_route_t *r = end->active; r; r = r->next_active)
            mc_route_check(r);
}

/* After a turn without an event. The thread may share its rank's core. A transport may signal events without having
 * any: after a sleep that such a one has ended, the next one lasts. */
static void rest(mc_proxy_t *p, uint32_t turns, int64_t since, bool *in_vain)
{
    const uint32_t polls = mc_wait_polls(p->job);
    const bool idle = is_idle(p);
    if (!idle && turns <= polls)
        return;
    if (!idle && turns <= polls + MC_WAIT_YIELDS_SHARED) {
        sched_yield();
        return;
    }
    const int64_t now = now_ns(), last = p->checked > since ? p->checked : since;
    const int64_t nap = idle ? (int64_t)MC_SLEEP_MS * 1000000 : nap_of(now - since);
    if (!idle && !p->over && now - last >= CHECK_NS)
        check_routes(p, now);
    *in_vain = sleep_on(p, !*in_vain && !p->over, idle && !*in_vain ? 0 : nap) && !*in_vain;
}

/* The thread -------------------------------------------------------------------------------------- */

/* For memory of the GPU UCX calls the driver, also while a thread of the program captures a stream. */
static void take_context(mc_proxy_t *p)
{
    const mc_cu_context_t context = p->direct.context;
    mc_cu_capture_mode_t mode = MC_CU_CAPTURE_RELAXED;
    if (!context)
        return;
    int status = mc_cuda_status(mc_cuda()->context_push(context), "use its context");
    if (!status)
        status = mc_cuda_status(mc_cuda()->capture_mode(&mode), "set the capture mode");
    if (status)
        fail(p, status);
}

static void *run(void *proxy)
{
    mc_proxy_t *const p = proxy;
    take_context(p);
    uint32_t turns = 0; /* since the last event */
    int64_t since = 0;
    bool in_vain = false;
    while (!atomic_load_explicit(&p->stop, memory_order_acquire)) {
        uint32_t n = take_orders(p);
        /* behind the orders: an end that is closed after a failure has gone, and its routes with it */
        p->over = p->over || atomic_load_explicit(p->job->failure.alarm, memory_order_relaxed);
        n += p->over ? 0 : move(p);
        turns = n > 0 ? 0 : turns + 1;
        since = turns == 1 ? now_ns() : since;
        in_vain = in_vain && n == 0;
        if (turns > 0)
            rest(p, turns, since, &in_vain);
    }
    return NULL;
}

int mc_proxy_thread_start(mc_proxy_t *p)
{
    const int error = mc_thread_start(&p->thread, run, p);
    p->has_thread = error == 0;
    return error ? mc_fail(MESHCOLL_ERR_SYSTEM, "the proxy's thread could not be started: %s",
                           strerror(error))
                 : MESHCOLL_OK;
}

void mc_proxy_thread_stop(mc_proxy_t *p)
{
    if (!p->has_thread)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    mc_proxy_wake(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}
