#include "runtime/progress/failure.h"

#include "runtime/handle/request.h"
#include "runtime/progress/busy.h"

#include <stdio.h>
#include <time.h>

enum { CHECK_EVERY_MS = 100 };

static void fail_running(meshcoll_t *h)
{
    for (meshcoll_request_t *r; (r = h->running);) {
        h->running = r->next;
        if (r->status == MESHCOLL_IN_PROGRESS) { /* else a message, complete since the last poll */
            mc_executor_fail(&r->executor, h->broken);
            r->status = mc_executor_advance(&r->executor);
        }
        h->ended(r);
    }
    if (!h->threads)
        mc_busy_leave(h);
}

void mc_failure_break(meshcoll_t *h, int status)
{
    if (h->broken)
        return;
    h->broken = status;
    snprintf(h->why, sizeof h->why, "%s", meshcoll_last_error());
    for (int32_t i = 0; i < h->n_polled; i++)
        if (h->polled[i]->ops->abandon)
            h->polled[i]->ops->abandon(h->polled[i], h->why);
    fail_running(h);
    h->n_polled = 0; /* last: until here, dropping flushes used them */
}

int mc_failure_check(const meshcoll_t *h)
{
    return h->broken ? mc_fail(h->broken, "this mesh failed before: %s; destroy it", h->why)
                     : MESHCOLL_OK;
}

/* The coarse clock costs less than polling the transports. */
static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void mc_failure_look(meshcoll_t *h)
{
    int status = MESHCOLL_OK;
    const int64_t now = h->running ? now_ms() : 0;
    if (!h->running || now < h->check_at)
        return;
    h->check_at = now + CHECK_EVERY_MS;
    for (int32_t i = 0; i < h->n_polled && !status; i++)
        if (h->polled[i]->ops->check)
            status = h->polled[i]->ops->check(h->polled[i]);
    /* What a peer wrote before it ended may have come since the last poll, so it fails at the second
     * look: there is a poll in between. */
    if (status && !h->misses_peer)
        h->check_at = now;
    else if (status)
        mc_failure_break(h, status);
    h->misses_peer = status != MESHCOLL_OK;
}
