#include "runtime/progress/busy.h"

#include "runtime/handle/request.h"
#include "runtime/progress/threads.h"

_Thread_local meshcoll_t *mc_busy;

void mc_busy_leave(meshcoll_t *h)
{
    meshcoll_t **at = &mc_busy;
    while (*at && *at != h)
        at = &(*at)->next_busy;
    if (*at)
        *at = h->next_busy;
}

static void enlist_handle(meshcoll_t *h)
{
    if (!h->running && !h->threads) {
        h->next_busy = mc_busy;
        mc_busy = h;
    }
}

void mc_busy_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    h = h->root;
    meshcoll_request_t **at = &h->running;
    if (r->plan)
        h->pipelined = r->plan->layout.segments > r->plan->layout.sides;
    enlist_handle(h);
    while (*at)
        at = &(*at)->next;
    r->next = NULL;
    r->watched.looked = 0;
    *at = r;
}

void mc_busy_enlist_first(meshcoll_t *h, meshcoll_request_t *r)
{
    h = h->root;
    enlist_handle(h);
    r->next = h->running;
    h->running = r;
    if (h->threads)
        mc_threads_wake(h->threads);
}
