#include "runtime/progress/failure.h"

#include "runtime/handle/request.h"
#include "runtime/monitor/monitor.h"
#include "runtime/progress/busy.h"
#include "runtime/waits/board.h"

#include <stdio.h>
#include <time.h>

enum { CHECK_EVERY_MS = 100 };
#define CAUSE_SECONDS 0.5
/* Calls that a rank may have begun beyond one that it still runs. */
enum { MOST_AHEAD = 1 << 16 };

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

/* Breaks the mesh with the error of h->why. */
static void break_now(meshcoll_t *h, int status)
{
    h->broken = status;
    h->broke_at = mc_now();
    for (int32_t i = 0; i < h->n_polled; i++)
        if (h->polled[i]->ops->abandon)
            h->polled[i]->ops->abandon(h->polled[i], h->why);
    mc_waits_break(h);
    fail_running(h);
    h->n_polled = 0; /* last: until here, dropping flushes used them */
}

/* The error of those who are told of one: theirs is that a peer failed, if nothing says more. */
static int status_elsewhere(int status)
{
    const bool says_more = status == MESHCOLL_ERR_TIMEOUT || status == MESHCOLL_ERR_ABORTED ||
                           status == MESHCOLL_ERR_MISMATCH;
    return says_more ? status : MESHCOLL_ERR_PEER;
}

/* A connection breaks because a process has ended, or has heard of one that did: waits for the news of
 * it, which name it. */
static bool await_cause(const meshcoll_t *h, int status, mc_news_t *news)
{
    const bool breaks = status == MESHCOLL_ERR_TRANSPORT || status == MESHCOLL_ERR_PEER;
    return mc_news_await(mc_monitor_board(h->monitor), breaks ? CAUSE_SECONDS : 0, news);
}

/* Breaks the mesh with the first news of its failure: those that there are already, or else these, which
 * all ranks are told. */
static void break_with(meshcoll_t *h, mc_news_t *news)
{
    mc_news_t first;
    const bool known = mc_news_fatal(mc_monitor_board(h->monitor), &first);
    if (known)
        *news = first;
    news->kind = MC_NEWS_FATAL;
    mc_monitor_tell(h->monitor, news);
    snprintf(h->why, sizeof h->why, "%s", news->text);
    break_now(h, mc_fail(news->status, "%s", news->text));
}

/* Tells all ranks of a failure of this one. */
static void tell(const meshcoll_t *h, int status, const char *why)
{
    mc_news_t news = {.kind = MC_NEWS_FATAL, .status = status_elsewhere(status)};
    news.rank = mc_monitor_rank(h->monitor);
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d: %s", (int)news.rank, why);
    mc_monitor_tell(h->monitor, &news);
}

/* A failure of this rank, with meshcoll_last_error(). */
static void break_alone(meshcoll_t *h, int status)
{
    mc_news_t news;
    if (h->monitor && await_cause(h, status, &news)) {
        break_with(h, &news);
        return;
    }
    snprintf(h->why, sizeof h->why, "%s", meshcoll_last_error());
    if (h->monitor)
        tell(h, status, h->why);
    break_now(h, status);
}

void mc_failure_post(const meshcoll_t *root, int status)
{
    mc_news_t news;
    char why[MC_NEWS_TEXT];
    snprintf(why, sizeof why, "%s", meshcoll_last_error());
    if (!await_cause(root, status, &news))
        tell(root, status, why);
}

void mc_failure_break(meshcoll_t *h, int status)
{
    if (!h->root->broken)
        break_alone(h->root, status);
}

void mc_failure_hear(meshcoll_t *h)
{
    mc_news_t news;
    h = h->root;
    if (!h->broken && h->monitor && mc_news_fatal(mc_monitor_board(h->monitor), &news))
        break_with(h, &news);
}

int mc_failure_told(meshcoll_t *h)
{
    mc_failure_hear(h);
    return mc_fail(h->broken, "this mesh failed before: %s; destroy it", h->why);
}

const _Atomic bool mc_no_alarm;

/* The coarse clock costs less than polling the transports. */
static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Which mesh of the family: other ranks may use the same context for a group of theirs. */
static uint32_t context_of(const meshcoll_t *h)
{
    /* disjoint parts may have equal ones, but not the same lowest rank */
    const uint32_t lowest = h->by_root ? (uint32_t)h->root_rank[h->by_root[0]] : 0;
    return (h->creation << MC_TAG_CONTEXT_BITS | h->context) ^ lowest * UINT32_C(0x9e3779b1);
}

static bool is_member(const meshcoll_t *h, int32_t comm_rank)
{
    return mc_rank_of_root(h, mc_mesh_rank_of(&h->root->order, comm_rank)) >= 0;
}

/* Numbers wrap, so that an old refusal may look like one of this run. */
static bool is_of(const meshcoll_t *h, const mc_news_t *news)
{
    const uint32_t made = news->persistent ? h->n_persistent : h->n_calls;
    return made - news->made < MOST_AHEAD && context_of(h) == news->context &&
           news->rank != mc_monitor_rank(h->root->monitor) && is_member(h, news->rank);
}

static bool is_refused(const meshcoll_request_t *r, const mc_news_t *news)
{
    return r->plan && r->operation == news->number && r->persistent == (news->persistent != 0) &&
           is_of(r->mesh, news);
}

int mc_failure_refusal(const meshcoll_t *h, const uint32_t *number, uint32_t n)
{
    mc_news_t news;
    uint32_t next = 0;
    mc_news_board_t *const board = mc_monitor_board(h->root->monitor);
    if (!mc_news_any(board))
        return MESHCOLL_OK;
    while (mc_news_refusal(board, &next, &news))
        for (uint32_t i = 0; i < n; i++)
            if (news.number == number[i] && !news.persistent && is_of(h, &news))
                return mc_fail(news.status, "%s", news.text);
    return MESHCOLL_OK;
}

int mc_failure_refused(meshcoll_t *h, uint32_t number, bool persistent, int status)
{
    mc_news_t news = {.kind = MC_NEWS_REFUSED,
                      .status = MESHCOLL_ERR_PEER,
                      .number = number,
                      .persistent = persistent,
                      .made = persistent ? h->n_persistent : h->n_calls,
                      .context = context_of(h)};
    const meshcoll_t *const root = h->root;
    if (root->broken)
        return mc_fail(root->broken, "%s", root->why);
    if (!root->monitor)
        return status;
    if (status == MESHCOLL_ERR_TRANSPORT) { /* a connection: mostly to a rank that has ended */
        mc_failure_break(h->root, status);
        return mc_fail(root->broken, "%s", root->why);
    }
    news.rank = mc_monitor_rank(root->monitor);
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d was refused this call, and does not take part: %s", (int)news.rank,
                meshcoll_last_error());
    mc_monitor_tell(root->monitor, &news);
    return status;
}

/* Is there a refusal of a call that runs here? */
static bool find_refusal(const meshcoll_t *h, mc_news_t *news)
{
    uint32_t next = 0;
    while (mc_news_refusal(mc_monitor_board(h->monitor), &next, news))
        for (const meshcoll_request_t *r = h->running; r; r = r->next)
            if (is_refused(r, news))
                return true;
    return false;
}

/* Are there news that end what runs here? */
static bool find_news(const meshcoll_t *h, mc_news_t *news)
{
    if (!h->monitor || !mc_news_any(mc_monitor_board(h->monitor)))
        return false;
    return mc_news_fatal(mc_monitor_board(h->monitor), news) || find_refusal(h, news);
}

static int check_peers(meshcoll_t *h)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < h->n_polled && !status; i++)
        if (h->polled[i]->ops->check)
            status = h->polled[i]->ops->check(h->polled[i]);
    return status;
}

void mc_failure_look(meshcoll_t *h)
{
    mc_news_t news;
    if (!h->running)
        return;
    const bool told = find_news(h, &news), missed = h->misses_peer;
    const int64_t now = now_ms();
    if (!told && now < h->check_at)
        return;
    h->check_at = now + CHECK_EVERY_MS;
    int status = told ? news.status : check_peers(h);
    h->misses_peer = status != MESHCOLL_OK;
    /* What a peer wrote before it ended may have come since the last poll, so it fails at the second
     * look: there is a poll in between. */
    if (status && !missed) {
        h->check_at = now;
        return;
    }
    if (!status)
        status = mc_waits_look(h, now);
    if (told)
        break_with(h, &news);
    else if (status)
        mc_failure_break(h, status);
}
