#include "runtime/diagnose/waits/requests.h"

#include "base/system/log.h"
#include "runtime/call/adapt.h"
#include "runtime/call/leads.h"
#include "runtime/connect/connections.h"
#include "runtime/diagnose/waits/verdict.h"

/* Between two looks at most this share of a limit counts as waiting: a rank that was elsewhere for
 * long, or stopped, looks several times for what has come meanwhile before its limit is over. */
enum { LIMIT_LOOKS = 4 };

/* Longer limits are none: they would overflow. */
enum { MOST_SECONDS = 1 << 30 };

int mc_timeout_ms(double seconds, int64_t *ms)
{
    if (!(seconds >= 0))
        return MESHCOLL_ERR_INVALID_ARG;
    *ms = seconds > MOST_SECONDS ? 0 : (int64_t)(seconds * 1000 + 0.999);
    return MESHCOLL_OK;
}

int64_t mc_limits_of(const meshcoll_request_t *r)
{
    const int64_t own = r->watched.limit;
    return own == 0 ? r->mesh->timeout_ms : own < 0 ? 0 : own;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Counts the time since the last look at a running request. */
static void watch(meshcoll_request_t *r, int64_t now)
{
    mc_watched_t *const w = &r->watched;
    const uint64_t mark = mc_wait_mark(r);
    const int64_t limit = mc_limits_of(r);
    if (w->looked == 0)
        *w = (mc_watched_t){.limit = w->limit, .looked = now, .moved = now, .mark = mark};
    int64_t passed = smaller(now - w->looked, MC_WAITS_FRESH_MS);
    if (limit > 0)
        passed = smaller(passed, limit / LIMIT_LOOKS + 1);
    /* nobody waits for the barrier of a lead but runs that its lead holds back */
    w->waited = mc_lead_is_unawaited(r) || mc_adapt_is_unawaited(r) ? 0 : w->waited + passed;
    w->moved = mark == w->mark ? w->moved : now;
    w->mark = mark;
    w->looked = now;
}

/* What this rank knows: the peer that it waits for itself. */
static void print_peer(const mc_wait_t *wait, mc_text_t *text)
{
    if (wait->peer >= 0)
        mc_wait_print_rank(wait->known_as, &wait->place, text);
    else
        mc_text_add(text, "%s", wait->awaits == MC_AWAITS_RECEIVE ? "a message" : "this rank");
    mc_text_add(text, " was waited for too long");
}

/* Ranks that are asked at most, and for how long, when a limit is over. */
enum { MOST_ASKED = 16 };
#define ASK_SECONDS 1.5

MC_APART static int ask(const void *job, int32_t rank, mc_waits_t *record)
{
    return mc_waits_ask(job, rank, 0, record);
}

static void print_waited_for(const mc_job_t *job, const mc_wait_t *wait, mc_text_t *text)
{
    if (!job->can_ask || wait->peer < 0) {
        print_peer(wait, text);
        return;
    }
    const mc_verdict_t v =
        mc_verdict_find(&(mc_peer_query_t){ask, job}, wait, MOST_ASKED, ASK_SECONDS);
    mc_verdict_print(&v, text);
}

MC_APART static bool is_destroying(const mc_job_t *job, int32_t rank)
{
    mc_waits_t at;
    return !mc_waits_ask(job, rank, 0, &at) && mc_waits_to_destroy(&at);
}

/* The first rank that has not come to the end; -1: all have. */
static int32_t find_absent(const mc_job_t *job)
{
    int32_t r = 0;
    while (r < job->mesh.size && (r == job->rank || is_destroying(job, r)))
        r++;
    return r < job->mesh.size ? r : -1;
}

/* Of a wait for a new connection. */
static void print_where(const mc_job_t *job, const mc_wait_t *wait, mc_text_t *text)
{
    char where[MC_TRANSPORT_WHERE] = "";
    if (wait->awaits == MC_AWAITS_GREETING && wait->peer >= 0)
        mc_rank_where(job, wait->peer, where);
    if (*where)
        mc_text_add(text, ", at %s", where);
}

static void say_calibrating(const mc_job_t *job, const meshcoll_request_t *r, const mc_wait_t *wait)
{
    char what[MC_WAIT_TEXT];
    mc_text_t text = mc_text(what, sizeof what);
    print_waited_for(job, wait, &text);
    print_where(job, wait, &text);
    mc_log(MC_LOG_WARN,
           "rank %d has waited %.0f s while links are calibrated, for which MESHCOLL_TIMEOUT sets "
           "the limit (MESHCOLL_CALIBRATE=off does without): %s",
           mc_comm_rank_of(&job->order, job->rank), (double)r->watched.waited / 1000, what);
}

/* Both ends of a connection are in one call, and nothing arrives: it is the network. */
MC_APART static void say_unconnected(const mc_job_t *job, const meshcoll_request_t *r,
                                     const mc_wait_t *wait)
{
    char what[MC_WAIT_TEXT];
    mc_text_t text = mc_text(what, sizeof what);
    mc_waits_t at;
    if (!job->can_ask || wait->peer < 0 || mc_waits_ask(job, wait->peer, 0, &at) ||
        mc_verdict_of(wait, &at).made != MC_CALL_MADE)
        return;
    mc_wait_print_rank(wait->known_as, &wait->place, &text);
    print_where(job, wait, &text);
    mc_log(MC_LOG_WARN,
           "rank %d has waited %.0f s to connect to %s, which is in the same call: packets seem to "
           "be lost between "
           "them (network interfaces: MESHCOLL_NET_DEVICES; ports that a firewall opens: "
           "MESHCOLL_PORTS); "
           "MESHCOLL_TIMEOUT sets the limit",
           mc_comm_rank_of(&job->order, job->rank), (double)r->watched.waited / 1000, what);
}

/* Once for all requests, and not again for a while. What a program's own calls wait for is its own affair. */
static void say_waiting(mc_job_t *job, const meshcoll_request_t *r)
{
    double since_begin;
    mc_wait_t wait;
    if (!mc_notice_due(&job->notice, &since_begin))
        return;
    mc_wait_describe(r, &wait);
    wait.still_ms = r->watched.looked - r->watched.moved;
    if (job->is_calibrating)
        say_calibrating(job, r, &wait);
    else if (wait.awaits == MC_AWAITS_GREETING)
        say_unconnected(job, r, &wait);
}

/* The rank that is waited for comes first: texts that pass on this one may cut its end. */
static int fail_late(const mc_job_t *job, const meshcoll_request_t *r)
{
    char what[MC_WAIT_TEXT];
    mc_text_t text = mc_text(what, sizeof what);
    mc_wait_t wait;
    mc_wait_describe(r, &wait);
    wait.still_ms = r->watched.looked - r->watched.moved;
    if (job->can_ask && wait.kind == MC_WAIT_DESTROY)
        mc_wait_set_job_peer(r->mesh, find_absent(job), &wait);
    print_waited_for(job, &wait, &text);
    mc_text_add(&text, "; time limit of %.3g s: ", (double)mc_limits_of(r) / 1000);
    mc_wait_print(&wait, MC_WAIT_SHORT, &text);
    print_where(job, &wait, &text);
    return mc_fail(MESHCOLL_ERR_TIMEOUT, "%s", what);
}

int mc_limits_poll(mc_job_t *job, int64_t now)
{
    const meshcoll_request_t *late = NULL;
    int32_t n = 0;
    for (meshcoll_request_t *r = mc_request_in_flight(job->requests.running.first); r;
         r = mc_request_next(r)) {
        if (!mc_waits_are_of(r))
            continue;
        watch(r, now);
        n++;
        if (!late && mc_limits_of(r) > 0 && r->watched.waited >= mc_limits_of(r))
            late = r;
        else if (r->watched.waited >= 1000 * MC_NOTICE_FIRST)
            say_waiting(job, r);
    }
    mc_waits_publish(job, n, now);
    return late ? fail_late(job, late) : MESHCOLL_OK;
}
