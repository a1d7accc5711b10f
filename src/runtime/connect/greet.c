#include "runtime/connect/greet.h"

#include "runtime/handle/request.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/flush.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

#include <stdlib.h>
#include <time.h>

/* In the first round each end sends what its job has to say of the call for which it connects (hooks.h), and receives
 * the other's. In the second one each sends a byte, which confirms that it has received the first. */
enum { ROUNDS = 2 };

/* mc_greet_finish waits for so long at most, and sleeps for so long between polls. If all ranks are
 * about to close, a peer answers after a round trip and a wake-up. */
enum { FINISH_MS = 500, FINISH_NAP_NS = 50 * 1000 };

typedef struct greeting greeting_t;
/* One direction of a greeting: its send, or its receive. */
typedef struct {
    mc_io_t io; /* first */
    greeting_t *greeting;
    mc_greeting_note_t note; /* of this end */
    char byte;
    mc_span_t span;
} end_t;

struct greeting {
    mc_peer_t *peer;
    uint32_t round;  /* rounds posted */
    uint32_t n_left; /* messages in flight */
    end_t send, recv;
    bool flushes; /* all rounds are complete */
    mc_flush_t flush;
    greeting_t *next;
};

/* The greetings of a handle. A request progresses them, and fails if one fails. */
struct mc_greeter {
    meshcoll_request_t request; /* first */
    mc_io_queue_t finished;
    greeting_t *first;
};

/* Rounds ----------------------------------------------------------------------------------------- */

static int post(const mc_job_t *job, greeting_t *g, bool sends)
{
    end_t *const end = sends ? &g->send : &g->recv;
    const mc_transport_ops_t *const ops = g->peer->transport->ops;
    const int32_t from = sends ? job->rank : g->peer->rank;
    end->span = g->round == 0 ? (mc_span_t){&end->note, sizeof end->note}
                              : (mc_span_t){&end->byte, sizeof end->byte};
    const mc_message_t m = {.tag = mc_tag(from, MC_TAG_GREETING, g->round),
                            .span = &end->span,
                            .n_spans = 1,
                            .bytes = end->span.bytes};
    const int status = sends ? ops->send(g->peer, &m, &end->io) : ops->recv(g->peer, &m, &end->io);
    g->n_left += status == MESHCOLL_IN_PROGRESS;
    return status < 0 ? status : MESHCOLL_OK;
}

/* Posts rounds until messages are in flight, or all rounds are complete. */
static int post_rounds(const mc_job_t *job, greeting_t *g)
{
    while (g->n_left == 0 && g->round < ROUNDS) {
        int status = post(job, g, false);
        if (!status)
            status = post(job, g, true);
        if (status)
            return status;
        g->round++;
    }
    return MESHCOLL_OK;
}

/* Processes messages that are complete, and posts the rounds that follow them. */
static int process_messages(const mc_job_t *job)
{
    for (mc_io_t *io; (io = mc_io_pop(&job->connections.greeter->finished));) {
        greeting_t *const g = ((end_t *)io)->greeting;
        if (io->status < 0)
            return io->status;
        g->n_left--;
        const int status = post_rounds(job, g);
        if (status)
            return status;
    }
    return MESHCOLL_OK;
}

/* Ending ----------------------------------------------------------------------------------------- */

/* Its last bytes may still be in the transport's buffer. If the next operation does not use that connection, nothing
 * else would send them, and the peer would wait. */
static int flush(const mc_job_t *job, greeting_t *g, uint32_t events)
{
    const meshcoll_request_t *const r = &job->connections.greeter->request;
    const mc_transport_t *const t = g->peer->transport;
    if (g->flushes)
        return mc_flush_check(r, &g->flush, events);
    if (g->n_left > 0)
        return MESHCOLL_IN_PROGRESS;
    g->flushes = true;
    return mc_flush_begin(r, t->ops->flush ? t->place : 0, &g->flush);
}

/* Frees the greetings that have ended. Only now, as the peer has what it needs to find the same disagreement. */
static int end(mc_job_t *job, uint32_t events)
{
    bool any = false;
    for (greeting_t **at = &job->connections.greeter->first, *g; (g = *at);) {
        int status = flush(job, g, events);
        if (status == MESHCOLL_IN_PROGRESS) {
            at = &g->next;
            continue;
        }
        if (!status)
            status = job->hooks->meets(job, g->peer->rank, &g->send.note, &g->recv.note);
        if (status)
            return status;
        any = g->peer->greeted = true;
        *at = g->next;
        free(g);
    }
    if (any)
        mc_busy_connected(job);
    return MESHCOLL_OK;
}

/* Greeting --------------------------------------------------------------------------------------- */

static int advance(meshcoll_request_t *r, uint32_t events)
{
    mc_job_t *const job = r->mesh->job;
    int status = process_messages(job);
    if (!status)
        status = end(job, events);
    if (status)
        return status;
    return job->connections.greeter->first ? MESHCOLL_IN_PROGRESS : MESHCOLL_OK;
}

static const mc_request_kind_t kind = {.advance = advance};

static int open_greeter(meshcoll_t *h)
{
    mc_job_t *const job = h->job;
    if (!job->connections.greeter &&
        !(job->connections.greeter = calloc(1, sizeof *job->connections.greeter)))
        return mc_fail_memory("greeting new connections");
    meshcoll_request_t *const r = &job->connections.greeter->request;
    r->mesh = h;
    r->kind = &kind;
    return MESHCOLL_OK;
}

static greeting_t *new_greeting(const meshcoll_t *h, mc_peer_t *peer)
{
    struct mc_greeter *const greeter = h->job->connections.greeter;
    greeting_t *const g = calloc(1, sizeof *g);
    if (!g) {
        mc_fail_memory("greeting a new connection");
        return NULL;
    }
    g->peer = peer;
    h->job->hooks->introduces(h, &g->send.note);
    g->send.greeting = g->recv.greeting = g;
    g->send.io.finished = g->recv.io.finished = &greeter->finished;
    g->next = greeter->first;
    greeter->first = g;
    return g;
}

int mc_greet(meshcoll_t *h, mc_peer_t *peer)
{
    mc_job_t *const job = h->job;
    const int status = open_greeter(h);
    if (status)
        return status;
    greeting_t *const g = new_greeting(h, peer);
    if (!g)
        return MESHCOLL_ERR_NO_MEMORY;
    meshcoll_request_t *const r = &job->connections.greeter->request;
    if (!r->running) {
        r->running = true;
        r->status = MESHCOLL_IN_PROGRESS;
        mc_busy_enlist(job, r);
        if (job->threads)
            mc_threads_wake(job->threads);
    }
    return post_rounds(job, g);
}

bool mc_greet_runs_for(const meshcoll_t *h)
{
    const struct mc_greeter *const greeter = h->job->connections.greeter;
    return greeter && greeter->request.running && greeter->request.mesh == h;
}

static bool is_unfinished(const mc_job_t *job)
{
    bool any = job->connections.greeter && job->connections.greeter->request.running;
    for (const meshcoll_t *h = job->meshes; h && !any; h = h->entry.next)
        any = h->leads.n_barriers > 0;
    return any;
}

void mc_greet_finish(mc_job_t *job)
{
    const int64_t end = mc_now_ms() + FINISH_MS;
    mc_job_lock(job);
    while (is_unfinished(job) && !job->failure.status && mc_now_ms() < end) {
        const uint32_t n = mc_job_progress(job);
        (void)mc_job_leave(job, MESHCOLL_OK);
        if (n == 0)
            nanosleep(&(struct timespec){.tv_nsec = FINISH_NAP_NS}, NULL);
        mc_job_lock(job);
    }
    (void)mc_job_leave(job, MESHCOLL_OK);
}

void mc_greet_free(mc_job_t *job)
{
    if (!job->connections.greeter)
        return;
    for (greeting_t *g; (g = job->connections.greeter->first);) {
        job->connections.greeter->first = g->next;
        free(g);
    }
    free(job->connections.greeter);
    job->connections.greeter = NULL;
}
