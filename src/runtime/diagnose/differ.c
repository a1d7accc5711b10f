#include "runtime/diagnose/differ.h"

#include "job/monitor/monitor.h"
#include "runtime/adapt/learner.h"
#include "runtime/diagnose/fingerprint.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/digest.h"
#include "runtime/handle/run.h"

#include <string.h>

/* Of the runs in flight: a search goes through all messages that have come early, and a look at each run costs. */
enum { OLDEST = 8 };
/* A run that has waited for so long asks. */
enum { ASK_MS = MC_WAITS_FRESH_MS };
/* Of a rank that has made another call, so many looks wait for a record that tells which. It publishes one at each look
 * of its own; where its threads get no core, it does not, or does not answer. */
enum { LOOKS = 10 };
#define LOOK_SECONDS 0.1

/* `theirs`: the other rank's call; NULL: it is not known. */
static int fail_differs(const mc_job_t *job, int32_t other, const mc_wait_t *own,
                        const mc_wait_t *theirs)
{
    char ours[MC_WAIT_SHORT_TEXT], what[MC_WAIT_SHORT_TEXT];
    const int self = mc_comm_rank_of(&job->order, job->rank);
    const int peer = mc_comm_rank_of(&job->order, other);
    mc_text_t text = mc_text(ours, sizeof ours), more = mc_text(what, sizeof what);
    mc_wait_print_asked(own, &text);
    if (theirs) {
        mc_text_add(&more, "rank %d's is ", peer);
        mc_wait_print_asked(theirs, &more);
    } else {
        mc_text_add(&more, "its collective, datatype, operation, root, count or memory differs, "
                           "or that of an earlier call (MESHCOLL_CHECK=1 tells both)");
    }
    return mc_fail(MESHCOLL_ERR_MISMATCH,
                   "rank %d has made another call than rank %d, whose is %s: %s; all ranks must "
                   "make the same calls in the same order",
                   peer, self, ours, what);
}

/* Ranks that were given the same calls learn the same, so their strategies are the same too. */
static int fail_strategy(const mc_job_t *job, int32_t other, const mc_wait_t *own)
{
    char what[MC_WAIT_SHORT_TEXT];
    mc_text_t text = mc_text(what, sizeof what);
    mc_wait_print_asked(own, &text);
    return mc_fail(MESHCOLL_ERR_MISMATCH,
                   "rank %d runs %s by another strategy than rank %d: an earlier call differed "
                   "between ranks (MESHCOLL_CHECK=1 tells which), or meshcoll is at fault: then "
                   "MESHCOLL_ADAPT=off avoids it; please report it",
                   mc_comm_rank_of(&job->order, other), what,
                   mc_comm_rank_of(&job->order, job->rank));
}

/* Asking the other rank -------------------------------------------------------------------------- */

/* Ranks that cannot be reached would be waited for. */
static bool may_ask(const mc_job_t *job)
{
    return job->can_ask && mc_monitor_is_joined(job->monitor);
}

/* Has the job failed meanwhile? */
static bool awaits_news(const mc_job_t *job, double seconds)
{
    mc_news_t news;
    return mc_news_await(mc_monitor_board(job->monitor), seconds, &news);
}

static bool is_another(const mc_wait_t *theirs, const mc_wait_t *own)
{
    return mc_wait_same_call(theirs, own) && theirs->digest != own->digest;
}

/* The call of that number that a rank is in, on the host or in a launch, where it is another one; else NULL. */
static const mc_wait_t *find_another(const meshcoll_t *h, const mc_waits_t *at,
                                     const mc_wait_t *own, mc_wait_t *launched)
{
    for (int32_t i = 0; i < at->n && i < MC_WAITS_REQUESTS; i++)
        if (is_another(&at->wait[i], own))
            return &at->wait[i];
    mc_wait_describe_launch(h, &at->launch, launched);
    launched->mesh = at->launch.mesh;
    return at->launch.digest != 0 && is_another(launched, own) ? launched : NULL;
}

/* Was the wait doubled since the last look? What has moved since then waits anew. */
static bool is_due(const meshcoll_request_t *r, int64_t now)
{
    const mc_watched_t *const w = &r->watched;
    int64_t due = ASK_MS;
    while (due <= w->looked - w->moved && w->n_differs == 0)
        due *= 2;
    return w->looked != 0 && now - w->moved >= due && mc_wait_mark(r) == w->mark;
}

/* A rank that is stopped takes as long to ask; at the limit it is asked anyway. */
static bool is_near_limit(const meshcoll_request_t *r, int64_t now)
{
    const int64_t limit = mc_limits_of(r);
    return limit > 0 && now - r->watched.moved >= limit - ASK_MS;
}

/* Is that rank through with another call of that number? */
static bool has_made_another(const mc_waits_t *at, const mc_wait_t *own)
{
    uint32_t digest = 0;
    for (int32_t i = 0; i < at->n_meshes; i++)
        if (at->mesh[i].id == own->mesh && !own->is_persistent)
            digest = at->mesh[i].digest;
    return digest != 0 && own->digest != 0 && digest != (uint16_t)own->digest;
}

/* The other rank has made another call. `theirs`: NULL: which one is not known, and told so after some looks, and before
 * the time limit. `learned`: or it has chosen another candidate of the same call. */
static int fail_or_look(meshcoll_request_t *r, int32_t rank, const mc_wait_t *own,
                        const mc_wait_t *theirs, bool learned, int64_t now)
{
    const int32_t looks = is_near_limit(r, now + ASK_MS) ? 2 : LOOKS;
    if (++r->watched.n_differs < looks && !theirs)
        return MESHCOLL_OK;
    return learned && !theirs ? fail_strategy(r->mesh->job, rank, own)
                              : fail_differs(r->mesh->job, rank, own, theirs);
}

/* Numbers wrap: a record that is older than this wait may be of an earlier call. */
static int compare(meshcoll_request_t *r, const mc_waits_t *at, const mc_wait_t *own, int64_t now)
{
    mc_wait_t launched;
    const mc_wait_t *const theirs = find_another(r->mesh, at, own, &launched);
    const bool is_in_it = theirs && theirs->age_ms < own->still_ms;
    return is_in_it || has_made_another(at, own)
               ? fail_or_look(r, at->rank, own, is_in_it ? theirs : NULL, false, now)
               : MESHCOLL_OK;
}

static bool runs(const meshcoll_request_t *r)
{
    return r->kind->is_run && mc_run_of(r)->executor.state == MC_RUNNING;
}

int mc_differ_ask(const mc_job_t *job, int64_t now)
{
    mc_waits_t at;
    mc_wait_t own;
    int status = MESHCOLL_OK;
    uint32_t n = 0;
    for (meshcoll_request_t *r = mc_request_in_flight(job->requests.running.first);
         r && n < OLDEST && !status; r = mc_request_next(r)) {
        if (!runs(r))
            continue;
        n++;
        if (!is_due(r, now) || is_near_limit(r, now) || !may_ask(job))
            continue;
        mc_wait_describe(r, &own);
        own.still_ms = now - r->watched.moved;
        if (own.peer < 0)
            continue;
        if (mc_waits_ask(job, own.peer, own.number, &at))
            break; /* it took its time; others are asked later */
        status = compare(r, &at, &own, now);
    }
    return status;
}

int mc_differ_ask_launch(const meshcoll_t *h, int32_t rank, const mc_waits_launch_t *launch,
                         bool told)
{
    mc_waits_t at;
    mc_wait_t own, launched;
    const mc_wait_t *other = NULL;
    bool differs = told;
    mc_wait_describe_launch(h, launch, &own);
    for (int i = 0; i < LOOKS && may_ask(h->job); i++) {
        if (!mc_waits_ask(h->job, rank, own.number, &at)) {
            other = find_another(h, &at, &own, &launched);
            differs = differs || other || has_made_another(&at, &own);
        }
        if (other || !differs || awaits_news(h->job, LOOK_SECONDS))
            break;
    }
    return differs ? fail_differs(h->job, rank, &own, other) : MESHCOLL_OK;
}

void mc_differ_await(const mc_job_t *job)
{
    if (may_ask(job))
        (void)awaits_news(job, LOOKS * (MC_WAITS_ASK_SECONDS + LOOK_SECONDS));
}

/* Messages that have come ------------------------------------------------------------------------ */

static bool finds_other(const mc_job_t *job, const meshcoll_request_t *r, uint64_t *other)
{
    const uint64_t tag = mc_tag(0, r->number, mc_run_of(r)->executor.tag_digest) |
                         mc_tag_context(r->mesh->context.number);
    bool found = false;
    for (int32_t i = 0; i < job->connections.n_polled && !found; i++)
        found = job->connections.polled[i]->ops->differs &&
                job->connections.polled[i]->ops->differs(job->connections.polled[i], tag, other);
    return found;
}

/* Is it that of the same call, by another of the candidates from which calls learn? */
static bool is_learned(const mc_run_t *r, uint64_t other)
{
    bool same = false;
    for (int32_t c = 0; c < MC_CANDIDATES; c++)
        same = same || mc_tag_digest(mc_digest_by(r->executor.digest, c)) == mc_tag_digest(other);
    return same;
}

static int fail_with_other(const mc_job_t *job, meshcoll_request_t *r, uint64_t other)
{
    const int32_t rank = mc_tag_source(other);
    const mc_wait_t *theirs = NULL;
    mc_waits_t at;
    mc_wait_t own, launched;
    mc_wait_describe(r, &own);
    if (may_ask(job) && !mc_waits_ask(job, rank, 0, &at))
        theirs = find_another(r->mesh, &at, &own, &launched);
    if (theirs && mc_tag_digest(theirs->digest) != mc_tag_digest(other))
        theirs = NULL;
    return fail_or_look(r, rank, &own, theirs, is_learned(mc_run_of(r), other), mc_now_ms());
}

int mc_differ_check(mc_job_t *job)
{
    uint64_t other;
    uint32_t n = 0;
    for (meshcoll_request_t *r = mc_request_in_flight(job->requests.running.first); r && n < OLDEST;
         r = mc_request_next(r)) {
        if (!runs(r) || r->watched.looked == 0)
            continue;
        if (finds_other(job, r, &other))
            return fail_with_other(job, r, other);
        n++;
    }
    return MESHCOLL_OK;
}

/* Greetings -------------------------------------------------------------------------------------- */

_Static_assert(sizeof(mc_fingerprint_t) == sizeof(mc_greeting_note_t), "a note is a fingerprint");

void mc_differ_introduce(const meshcoll_t *h, mc_greeting_note_t *note)
{
    /* compared calls are compared by all ranks */
    const mc_fingerprint_t f = mc_fingerprint_of(h, h->hooks->compare ? NULL : h->calls.making);
    memcpy(note, &f, sizeof f);
}

/* The ends may connect at different calls. Each of two calls with one number must be the same. */
int mc_differ_meet(const mc_job_t *job, int32_t peer, const mc_greeting_note_t *own,
                   const mc_greeting_note_t *theirs)
{
    enum { ROOM = 400 };
    char buffer[ROOM];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const int32_t self = mc_comm_rank_of(&job->order, job->rank);
    const int32_t other = mc_comm_rank_of(&job->order, peer);
    const bool first = self < other; /* so that both ends say the same */
    const int32_t rank[] = {first ? self : other, first ? other : self};
    mc_fingerprint_t f[2];
    memcpy(&f[0], first ? own : theirs, sizeof f[0]);
    memcpy(&f[1], first ? theirs : own, sizeof f[1]);
    if (mc_fingerprint_agree(&f[0], &f[1]))
        return MESHCOLL_OK;
    mc_fingerprint_print(f, rank, 2, &text);
    return mc_fail(MESHCOLL_ERR_MISMATCH, "%s", buffer);
}
