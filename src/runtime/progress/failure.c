#include "runtime/progress/failure.h"

#include "job/monitor/monitor.h"
#include "runtime/handle/run.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"

#include <stdio.h>

enum { CHECK_EVERY_MS = 100 };
#define CAUSE_SECONDS 0.5
/* Calls that a rank may have begun beyond one that it still runs. */
enum { MOST_AHEAD = 1 << 16 };

static void note_failure(meshcoll_request_t *r)
{
    r->mesh->job->failure.n_runs++;
    if (r->why)
        return;
    mc_failure_break(r->mesh, r->status);
    r->status = r->mesh->job->failure.status; /* the first cause is another one's */
}

void mc_request_end(meshcoll_request_t *r)
{
    if (r->watched.looked != 0)
        r->mesh->job->hooks->ended(r);
    if (r->kind->finish)
        r->status = r->kind->finish(r);
    if (r->status < 0)
        note_failure(r);
    if (r->callback.function)
        mc_callback_due(r);
    else
        mc_request_notify(r);
}

static void fail_running(mc_job_t *job)
{
    for (meshcoll_request_t *r; (r = mc_request_in_flight(job->requests.running.first));) {
        mc_busy_unlist(r);
        if (r->status == MESHCOLL_IN_PROGRESS) { /* else a message, complete since the last poll */
            r->status = job->failure.status;
            if (r->kind->cancel)
                r->kind->cancel(r, r->status);
        }
        mc_request_end(r);
    }
    if (!job->threads)
        mc_busy_leave(job);
}

/* Breaks the mesh with the error of job->failure.why. */
static void break_now(mc_job_t *job, int status)
{
    job->failure.status = status;
    job->failure.at = mc_now();
    for (int32_t i = 0; i < job->connections.n_polled; i++)
        if (job->connections.polled[i]->ops->abandon)
            job->connections.polled[i]->ops->abandon(job->connections.polled[i], job->failure.why);
    job->hooks->broke(job);
    fail_running(job);
    job->connections.n_polled = 0;
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
static bool await_cause(const mc_job_t *job, int status, mc_news_t *news)
{
    const bool breaks = status == MESHCOLL_ERR_TRANSPORT || status == MESHCOLL_ERR_PEER;
    return mc_news_await(mc_monitor_board(job->monitor), breaks ? CAUSE_SECONDS : 0, news);
}

/* Breaks the mesh with the first news of its failure: those that there are already, or else these, which
 * all ranks are told. */
static void break_with(mc_job_t *job, mc_news_t *news)
{
    mc_news_t first;
    const bool known = mc_news_fatal(mc_monitor_board(job->monitor), &first);
    if (known)
        *news = first;
    news->kind = MC_NEWS_FATAL;
    mc_monitor_broadcast(job->monitor, news);
    snprintf(job->failure.why, sizeof job->failure.why, "%s", news->text);
    break_now(job, mc_fail(news->status, "%s", news->text));
}

/* Tells all ranks of a failure of this one. */
static void broadcast(const mc_job_t *job, int status, const char *why)
{
    mc_news_t news = {.kind = MC_NEWS_FATAL, .status = status_elsewhere(status)};
    news.rank = mc_monitor_rank(job->monitor);
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d: %s", (int)news.rank, why);
    mc_monitor_broadcast(job->monitor, &news);
}

/* A failure of this rank, with meshcoll_last_error(). */
static void break_alone(mc_job_t *job, int status)
{
    mc_news_t news;
    if (job->monitor && await_cause(job, status, &news)) {
        break_with(job, &news);
        return;
    }
    snprintf(job->failure.why, sizeof job->failure.why, "%s", meshcoll_last_error());
    if (job->monitor)
        broadcast(job, status, job->failure.why);
    break_now(job, status);
}

void mc_failure_post(const mc_job_t *job, int status)
{
    mc_news_t news;
    char why[MC_NEWS_TEXT];
    snprintf(why, sizeof why, "%s", meshcoll_last_error());
    if (!await_cause(job, status, &news))
        broadcast(job, status, why);
}

void mc_failure_end(mc_job_t *job, int status)
{
    if (!job->failure.status)
        break_alone(job, status);
}

void mc_failure_break(meshcoll_t *h, int status)
{
    mc_failure_end(h->job, status);
}

void mc_failure_take_news(mc_job_t *job)
{
    mc_news_t news;
    if (!job->failure.status && job->monitor &&
        mc_news_fatal(mc_monitor_board(job->monitor), &news))
        break_with(job, &news);
}

int mc_failure_report(mc_job_t *job)
{
    mc_failure_take_news(job);
    if (job->unusable)
        return mc_fail(job->failure.status, "%s", job->failure.why);
    return mc_fail(job->failure.status, "this mesh failed before: %s; destroy it",
                   job->failure.why);
}

const _Atomic bool mc_no_alarm;

/* Which mesh of the family: other ranks may use the same context for a group of theirs. */
static uint32_t context_of(const meshcoll_t *h)
{
    /* disjoint parts may have equal ones, but not the same lowest rank */
    const uint32_t lowest =
        h->ranks.by_job_rank ? (uint32_t)h->ranks.job_rank[h->ranks.by_job_rank[0]] : 0;
    return (h->context.creation << MC_TAG_CONTEXT_BITS | h->context.number) ^
           lowest * UINT32_C(0x9e3779b1);
}

static bool is_member(const meshcoll_t *h, int32_t comm_rank)
{
    return mc_rank_of_job_rank(h, mc_mesh_rank_of(&h->job->order, comm_rank)) >= 0;
}

uint32_t mc_failure_made(const meshcoll_t *h, const mc_lead_t *lead)
{
    return lead == &h->leads.calls ? h->calls.n + h->calls.n_persistent : lead->n_starts;
}

static bool is_news_of(const meshcoll_t *h, const mc_news_t *news)
{
    return context_of(h) == news->context && news->rank != mc_monitor_rank(h->job->monitor) &&
           is_member(h, news->rank);
}

/* Numbers wrap, so that an old refusal may look like one of this run. */
static bool is_of(const meshcoll_t *h, const mc_news_t *news)
{
    return news->persistent != MC_NEWS_START &&
           mc_failure_made(h, &h->leads.calls) - news->made < MOST_AHEAD && is_news_of(h, news);
}

static bool is_refused(const meshcoll_request_t *r, const mc_news_t *news)
{
    const mc_run_t *const run = mc_run_of(r);
    return run && run->plan && r->number == news->number &&
           r->persistent == (news->persistent == MC_NEWS_PERSISTENT) && is_of(r->mesh, news);
}

static const mc_lead_t *find_lead(const meshcoll_t *h, const mc_news_t *news)
{
    const mc_lead_t *found = NULL;
    if (news->persistent != MC_NEWS_START)
        return &h->leads.calls;
    for (const mc_list_node_t *n = h->requests.first; n && !found; n = n->next) {
        const meshcoll_request_t *const r = mc_request_of_mesh(n);
        found = r->persistent && r->number == news->number ? mc_persistent_of(r)->lead : NULL;
    }
    return found;
}

/* Has this rank made the call, and was not refused it? Then messages of it may lie where nobody takes them. */
static bool is_one_sided(const meshcoll_t *h, const mc_news_t *news)
{
    const mc_lead_t *const lead = is_news_of(h, news) ? find_lead(h, news) : NULL;
    return lead && mc_failure_made(h, lead) - news->made < MOST_AHEAD &&
           !mc_refusals_know(&lead->refused, news->made);
}

static bool any_is_one_sided(const mc_job_t *job, const mc_news_t *news)
{
    bool any = false;
    for (const meshcoll_t *h = job->meshes; h && !any; h = h->entry.next)
        any = h->entry.state == MC_MESH_OPEN && is_one_sided(h, news);
    return any;
}

static bool find_one_sided(const mc_job_t *job, mc_news_t *news)
{
    uint32_t next = 0;
    bool found = false;
    if (!job->monitor || !mc_news_any(mc_monitor_board(job->monitor)))
        return false;
    while (!found && mc_news_refusal(mc_monitor_board(job->monitor), &next, news))
        found = any_is_one_sided(job, news);
    return found;
}

int mc_failure_differs(const meshcoll_t *h, const mc_lead_t *lead)
{
    mc_news_t news;
    uint32_t next = 0;
    const mc_refusals_t *const f = &lead->refused;
    const bool starts = lead != &h->leads.calls;
    while (h->job->monitor && mc_news_refusal(mc_monitor_board(h->job->monitor), &next, &news))
        if (news.context == context_of(h) && (news.persistent == MC_NEWS_START) == starts &&
            (int32_t)(news.made - f->settled) > 0)
            return mc_fail(news.status, "%s", news.text);
    return mc_fail(
        MESHCOLL_ERR_MISMATCH,
        "ranks have made different calls on %s, or were refused different ones: expected the same "
        "collectives, datatypes, operations and roots in the same order on all of them "
        "(MESHCOLL_CHECK=1 tells which differs)",
        h->text);
}

int mc_failure_refusal(const meshcoll_t *h, const uint32_t *number, uint32_t n)
{
    mc_news_t news;
    uint32_t next = 0;
    mc_news_board_t *const board = mc_monitor_board(h->job->monitor);
    if (!mc_news_any(board))
        return MESHCOLL_OK;
    while (mc_news_refusal(board, &next, &news))
        for (uint32_t i = 0; i < n; i++)
            if (news.number == number[i] && news.persistent == MC_NEWS_CALL && is_of(h, &news))
                return mc_fail(news.status, "%s", news.text);
    return find_one_sided(h->job, &news) ? mc_fail(news.status, "%s", news.text) : MESHCOLL_OK;
}

/* Nothing more that this lead counts starts until all ranks have told that they were refused the same. */
static void keep_refusal(meshcoll_t *h, mc_lead_t *lead)
{
    if (h->mesh.size == 1)
        return;
    const int status = mc_refusals_add(&lead->refused, mc_failure_made(h, lead));
    if (status)
        mc_failure_break(h, status);
    mc_lead_end(lead);
}

/* Tells others, with meshcoll_last_error(). */
static void broadcast_refusal(meshcoll_t *h, mc_lead_t *lead, uint32_t number, mc_news_call_t call)
{
    static const char *const what[] = {"call (call", "call (persistent operation",
                                       "start (of persistent operation"};
    mc_news_t news = {.kind = MC_NEWS_REFUSED,
                      .status = MESHCOLL_ERR_PEER,
                      .rank = mc_monitor_rank(h->job->monitor),
                      .number = number,
                      .persistent = call,
                      .made = mc_failure_made(h, lead),
                      .context = context_of(h)};
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d was refused this %s %u of %s), and does not take part: %s",
                (int)news.rank, what[call], number % MC_TAG_CALLS, h->text, meshcoll_last_error());
    mc_monitor_broadcast(h->job->monitor, &news);
    keep_refusal(h, lead);
}

int mc_failure_refused(meshcoll_t *h, uint32_t number, bool persistent, int status)
{
    const mc_job_t *const job = h->job;
    if (job->failure.status)
        return mc_fail(job->failure.status, "%s", job->failure.why);
    if (!job->monitor)
        return status;
    if (status == MESHCOLL_ERR_TRANSPORT) { /* a connection: mostly to a rank that has ended */
        mc_failure_break(h, status);
        return mc_fail(job->failure.status, "%s", job->failure.why);
    }
    broadcast_refusal(h, &h->leads.calls, number, persistent ? MC_NEWS_PERSISTENT : MC_NEWS_CALL);
    return status;
}

int mc_failure_refused_start(meshcoll_request_t *r, int status)
{
    const mc_job_t *const job = r->mesh->job;
    mc_lead_t *const lead = mc_persistent_of(r)->lead;
    if (!lead)
        return mc_failure_refused(r->mesh, r->number, true, status);
    if (job->monitor && !job->failure.status)
        broadcast_refusal(r->mesh, lead, r->number, MC_NEWS_START);
    return status;
}

/* Is there a refusal of a call that runs here? */
static bool find_refusal(const mc_job_t *job, mc_news_t *news)
{
    uint32_t next = 0;
    while (mc_news_refusal(mc_monitor_board(job->monitor), &next, news))
        for (const meshcoll_request_t *r = mc_request_in_flight(job->requests.running.first); r;
             r = mc_request_next(r))
            if (is_refused(r, news))
                return true;
    return false;
}

/* Are there news that end what runs here? */
static bool find_news(const mc_job_t *job, mc_news_t *news)
{
    if (!job->monitor || !mc_news_any(mc_monitor_board(job->monitor)))
        return false;
    return mc_news_fatal(mc_monitor_board(job->monitor), news) || find_refusal(job, news);
}

static int check_peers(mc_job_t *job)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < job->connections.n_polled && !status; i++)
        if (job->connections.polled[i]->ops->check)
            status = job->connections.polled[i]->ops->check(job->connections.polled[i]);
    return status;
}

void mc_failure_poll(mc_job_t *job)
{
    mc_news_t news;
    if (!job->requests.running.first)
        return;
    const bool told = find_news(job, &news), missed = job->failure.misses_peer;
    const int64_t now = mc_now_ms();
    if (!told && now < job->failure.check_at)
        return;
    job->failure.check_at = now + CHECK_EVERY_MS;
    const bool one_sided = !told && find_one_sided(job, &news);
    int status = told || one_sided ? news.status : check_peers(job);
    if (!status)
        status = job->hooks->differs(job);
    job->failure.misses_peer = status != MESHCOLL_OK;
    /* What a peer wrote before it ended may have come since the last poll, so it fails at the second
     * look: there is a poll in between. */
    if (status && !missed) {
        job->failure.check_at = now;
        return;
    }
    if (!status)
        status = job->hooks->watches(job, now);
    if (told || one_sided)
        break_with(job, &news);
    else if (status)
        mc_failure_end(job, status);
}
