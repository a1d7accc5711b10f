/* How a rank reaches rank 0, and then its parent. All ports are tried at once, each at all addresses in turns: so a
 * stranger on one of them delays nobody, and never are there two connections to one rank 0. */
#include "job/bootstrap/seek.h"

#include "base/notice.h"
#include "base/system/descriptor.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds for one attempt to connect, where packets are lost without a word, and between questions for addresses;
 * pauses between attempts. */
enum { ATTEMPT = 3, FIRST_MS = 10, MOST_MS = 500, RESOLVE = 1, RESOLVE_SLURM = 10 };

/* Seconds between two calls of the environment's check. */
#define CHECK_SECONDS 0.2

typedef enum { PAUSED, CONNECTING, SILENT, CHALLENGED, GREETED } stage_t;

/* One port. */
typedef struct {
    stage_t stage;
    int fd, turn;     /* -1: none; which address is next */
    double until, ms; /* the end of the stage; how long the next pause is */
    mc_endpoint_t to;
    mc_challenge_t challenge;
    mc_hello_t hello;
    mc_answer_t answer;
    size_t got; /* bytes of the challenge, then of the answer */
} attempt_t;

typedef struct {
    const mc_environment_t *env;
    const mc_self_t *self;
    double deadline, resolve_at;
    mc_notice_t notice;
    mc_lookup_t *lookup; /* NULL: none is under way */
    mc_addresses_t addresses;
    uint64_t next_host; /* of the environment's list, to be looked up */
    int listener;       /* -1: none yet */
    attempt_t attempt[MC_ENVIRONMENT_PORTS];
    char why[MC_WIRE_NAME + 160]; /* the last failure that tells something */
    double told_at;               /* when it did */
    bool final;
} search_t;

/* Will no later attempt do better? Another job's rank 0 may be on a port where this one's will be. */
static bool is_final(uint32_t code)
{
    return code != MC_ANSWER_OK && code != MC_ANSWER_LATER && code != MC_ANSWER_OTHER_JOB &&
           code != MC_ANSWER_USER;
}

static const char *text_of(int error)
{
    return error == EPROTO       ? "no rank of meshcoll listens there"
           : error == ECONNRESET ? "the connection was closed"
           : error == EUSERS     ? "a process of another user listens there"
                                 : mc_wire_error(error);
}

/* Attempts ------------------------------------------------------------------------------------- */

/* Most ports refuse, as nobody listens there: that does not hide what came of another one just now, nor that this host
 * has no port left. */
static void note(search_t *s, const attempt_t *a, int error, const char *why)
{
    char name[MC_WIRE_NAME];
    const bool telling = (a->stage != PAUSED && a->stage != CONNECTING) || error == EADDRINUSE;
    if (!telling && mc_now() < s->told_at + MC_HANDSHAKE_SECONDS)
        return;
    snprintf(s->why, sizeof s->why, "%s: %s", mc_wire_print(&a->to, name), why);
    s->told_at = telling ? mc_now() : s->told_at;
}

/* The next address, or after the last one a pause. */
static void give_up(search_t *s, attempt_t *a, int error, const char *why)
{
    note(s, a, error, why);
    mc_descriptor_close(&a->fd);
    a->stage = PAUSED;
    a->until = mc_now();
    if (++a->turn % s->addresses.n != 0)
        return;
    a->until += a->ms / 1e3;
    a->ms = a->ms < MOST_MS ? 1.5 * a->ms : a->ms;
}

static void begin(search_t *s, attempt_t *a)
{
    a->to = s->addresses.at[a->turn % s->addresses.n];
    a->to.port = (uint16_t)(s->env->port + (a - s->attempt));
    const int failed = mc_wire_begin_connect(&a->to, &a->fd);
    if (failed) {
        give_up(s, a, failed, text_of(failed));
        return;
    }
    a->stage = CONNECTING;
    a->until = mc_now() + ATTEMPT;
    a->got = 0;
}

/* Listens where rank 0 reaches this rank, or anywhere. */
static int listen_beside(search_t *s, int fd)
{
    mc_endpoint_t own;
    if (s->listener >= 0)
        return 0;
    if (!s->env->only_there)
        return mc_wire_listen_free(NULL, &s->listener);
    const int failed = mc_wire_own(fd, &own);
    return failed ? failed : mc_wire_listen_free(&own, &s->listener);
}

/* Where others may reach this rank: the address from which it reaches rank 0, and that of the other family, which some
 * ranks may lack. */
static int find_endpoints(const search_t *s, const attempt_t *a, mc_endpoint_t at[MC_ENDPOINTS])
{
    mc_endpoint_t bound = {.port = 0};
    int failed = mc_wire_own(s->listener, &bound);
    if (!failed)
        failed = mc_wire_own(a->fd, &at[0]);
    for (int i = 0; i < s->addresses.n && at[1].family == 0 && !s->env->only_there; i++)
        if (s->addresses.at[i].family != a->to.family)
            (void)mc_wire_source(&s->addresses.at[i], &at[1]);
    for (int i = 0; i < MC_ENDPOINTS; i++) {
        at[i].port = at[i].family ? bound.port : 0;
        at[i].scope = 0;
    }
    return failed;
}

static int greet(search_t *s, attempt_t *a)
{
    if (mc_handshake_is_stranger(s->self, a->fd))
        return EUSERS;
    a->hello = (mc_hello_t){.kind = MC_HELLO_JOIN};
    int failed = listen_beside(s, a->fd);
    if (!failed)
        failed = find_endpoints(s, a, a->hello.listens);
    if (!failed)
        failed = mc_handshake_hello(s->self, &a->challenge, &a->hello);
    if (!failed)
        failed = mc_wire_send(a->fd, &a->hello, sizeof a->hello, 0);
    a->stage = GREETED;
    a->until = s->deadline; /* what sent a challenge is slow, not silent */
    a->got = 0;
    return failed;
}

/* Only one is greeted at a time: rank 0 must not take this process for two. */
static bool may_greet(const search_t *s)
{
    for (int32_t i = 0; i < s->env->n_ports; i++)
        if (s->attempt[i].stage == GREETED)
            return false;
    return true;
}

static int read_part(attempt_t *a, void *part, size_t bytes)
{
    const int failed = mc_wire_recv_on(a->fd, part, bytes, &a->got, 0, -1);
    return failed == ETIMEDOUT ? EAGAIN : failed;
}

/* Something has happened on the connection. 0: rank 0 has answered; EAGAIN: wait on; or why it is of no use. */
static int advance(search_t *s, attempt_t *a)
{
    int failed = EAGAIN;
    if (a->stage == CONNECTING) {
        failed = mc_wire_connected(a->fd);
        a->stage = failed ? CONNECTING : SILENT;
        a->until = mc_now() + MC_HANDSHAKE_SECONDS;
    } else if (a->stage == SILENT) {
        failed = read_part(a, &a->challenge, sizeof a->challenge);
        if (!failed)
            a->stage = CHALLENGED;
    } else if (a->stage == GREETED) {
        failed = read_part(a, &a->answer, sizeof a->answer);
        return failed ? failed
                      : mc_handshake_accepted(s->self, &a->challenge, &a->hello, &a->answer);
    }
    return failed ? failed : EAGAIN;
}

/* True: rank 0 has accepted this rank. */
static bool step(search_t *s, attempt_t *a, bool ready)
{
    int failed = ready ? advance(s, a) : EAGAIN;
    if (a->stage == CHALLENGED && may_greet(s)) {
        failed = greet(s, a);
        failed = failed ? failed : EAGAIN;
    }
    if (failed == EAGAIN && mc_now() >= a->until)
        failed = ETIMEDOUT;
    if (!failed && a->answer.code == MC_ANSWER_OK)
        return true;
    if (failed == EAGAIN)
        return false;
    const uint32_t code = failed == ENOEXEC ? MC_ANSWER_VERSION : a->answer.code;
    const bool refused = !failed || failed == ENOEXEC;
    give_up(s, a, failed, refused ? mc_answer_text(code) : text_of(failed));
    s->final |= refused && is_final(code);
    return false;
}

/* All of them ---------------------------------------------------------------------------------- */

static bool is_idle(const search_t *s)
{
    for (int32_t i = 0; i < s->env->n_ports; i++)
        if (s->attempt[i].stage != PAUSED)
            return false;
    return true;
}

/* The first host of a list, where rank 0 mostly is, and those whose turn it is: a long list costs no more at a time. */
static mc_lookup_t *look_up(search_t *s)
{
    const mc_environment_t *const env = s->env;
    mc_names_t names = {.n = 1, .of_slurm = env->hosts};
    strcpy(names.host[0], env->host);
    while (env->hosts && names.n < MC_NAMES &&
           mc_hosts_get(env->hosts, s->next_host, names.host[names.n])) {
        names.n++;
        s->next_host++;
    }
    if (names.n < MC_NAMES)
        s->next_host = 1;
    return mc_lookup_begin(&names);
}

static void take_addresses(search_t *s, int failed, const mc_addresses_t *found)
{
    if (!failed)
        s->addresses = *found;
    else
        snprintf(s->why, sizeof s->why, "its address: %s", gai_strerror(failed));
}

/* A resolver that does not answer keeps no rank from a rank 0 of its own host. */
static bool is_slow(const search_t *s)
{
    return s->lookup && s->env->hosts && s->addresses.n == 0 && mc_now() >= s->resolve_at;
}

/* Again and again, as names of containers and interfaces appear late. Only between attempts, which have a place in the
 * list. */
static void resolve(search_t *s)
{
    mc_addresses_t found;
    int failed = EAI_MEMORY;
    const bool due = !s->lookup && mc_now() >= s->resolve_at;
    if (due && s->env->is_address) {
        failed = mc_resolve(s->env->host, &found);
        s->resolve_at = failed ? mc_now() + RESOLVE : s->deadline;
        take_addresses(s, failed, &found);
    } else if (due) {
        s->resolve_at = mc_now() + RESOLVE;
        s->lookup = look_up(s);
        if (!s->lookup)
            take_addresses(s, failed, &found);
    }
    if (s->lookup && is_idle(s) && mc_lookup_done(s->lookup, &failed, &found)) {
        s->lookup = NULL;
        take_addresses(s, failed, &found);
        if (s->env->hosts)
            s->resolve_at = mc_now() + (!failed && found.asked_slurm ? RESOLVE_SLURM : RESOLVE);
    } else if (is_slow(s)) {
        mc_resolve_known(&s->addresses);
        s->resolve_at = s->deadline; /* until the resolver has answered */
    }
}

static void begin_all(search_t *s)
{
    resolve(s);
    for (int32_t i = 0; i < s->env->n_ports && s->addresses.n > 0; i++)
        if (s->attempt[i].stage == PAUSED && mc_now() >= s->attempt[i].until)
            begin(s, &s->attempt[i]);
}

static int milliseconds(const search_t *s)
{
    double until = mc_notice_until(&s->notice, s->deadline);
    for (int32_t i = 0; i < s->env->n_ports && s->addresses.n > 0; i++)
        until = s->attempt[i].until < until ? s->attempt[i].until : until;
    if ((!s->lookup || s->env->hosts) && s->addresses.n == 0 && s->resolve_at < until)
        until = s->resolve_at;
    const double left = until - mc_now();
    const double most = s->env->check && left > CHECK_SECONDS ? CHECK_SECONDS : left;
    return left <= 0 ? 0 : (int)(1e3 * most) + 1;
}

/* The attempt that has come through; NULL: none yet. */
static attempt_t *try_all(search_t *s)
{
    const int32_t n = s->env->n_ports;
    struct pollfd p[MC_ENVIRONMENT_PORTS + 1];
    begin_all(s);
    p[n] = (struct pollfd){.fd = s->lookup && is_idle(s) ? mc_lookup_event(s->lookup) : -1,
                           .events = POLLIN};
    for (int32_t i = 0; i < n; i++) {
        const stage_t stage = s->attempt[i].stage;
        p[i] = (struct pollfd){.fd = s->attempt[i].fd,
                               .events = stage == CONNECTING   ? POLLOUT
                                         : stage == CHALLENGED ? 0
                                                               : POLLIN};
    }
    (void)poll(p, (nfds_t)n + 1, milliseconds(s));
    for (int32_t i = 0; i < n && !s->final; i++)
        if (s->attempt[i].stage != PAUSED && step(s, &s->attempt[i], p[i].revents))
            return &s->attempt[i];
    return NULL;
}

enum { WHERE = MC_ENVIRONMENT_HOST + 16 };

/* "node0", or "on one of node[0-3]" */
static const char *print_where(const mc_environment_t *env, char where[WHERE])
{
    mc_text_t text = mc_text(where, WHERE);
    mc_text_add(&text, env->hosts ? "on one of %s" : "%s", env->hosts ? env->hosts : env->host);
    if (text.length >= WHERE)
        strcpy(where + WHERE - sizeof "…", "…");
    return where;
}

static void say_seeking(search_t *s)
{
    double waited;
    char where[WHERE];
    const mc_environment_t *const env = s->env;
    if (mc_notice_due(&s->notice, &waited))
        fprintf(
            stderr,
            "meshcoll: rank %d has tried for %.0f s to reach rank 0 (%s, %s %u) and goes on for "
            "%.0f s (MESHCOLL_BOOTSTRAP_TIMEOUT); the last attempt at %s\n",
            s->self->rank, waited, print_where(env, where), env->n_ports > 1 ? "from port" : "port",
            (unsigned)env->port, s->deadline - mc_now(), s->why);
}

static int fail_seek(const search_t *s)
{
    char where[WHERE];
    const mc_environment_t *const env = s->env;
    if (s->final)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 refused rank %d at %s", s->self->rank,
                       s->why);
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank %d did not reach rank 0 (%s, from port %u on) within %g s "
                   "(MESHCOLL_BOOTSTRAP_TIMEOUT); the last attempt at %s",
                   s->self->rank, print_where(env, where), (unsigned)env->port, env->timeout,
                   s->why);
}

static void end_search(search_t *s, bool found)
{
    mc_lookup_drop(s->lookup);
    for (int32_t i = 0; i < s->env->n_ports; i++)
        mc_descriptor_close(&s->attempt[i].fd);
    if (!found)
        mc_descriptor_close(&s->listener);
    free(s);
}

int mc_seek_rank0(const mc_environment_t *env, const mc_self_t *self, double deadline,
                  mc_seek_t *seek)
{
    search_t *const s = calloc(1, sizeof *s);
    attempt_t *found = NULL;
    int status = MESHCOLL_OK;
    if (!s)
        return mc_fail_memory("the search for rank 0");
    *s = (search_t){.env = env,
                    .self = self,
                    .deadline = deadline,
                    .next_host = 1,
                    .listener = -1,
                    .notice = mc_notice_begin(),
                    .told_at = -MC_HANDSHAKE_SECONDS};
    snprintf(s->why, sizeof s->why, "its address: not tried");
    /* ranks that start together do not try together */
    for (int32_t i = 0; i < MC_ENVIRONMENT_PORTS; i++)
        s->attempt[i] = (attempt_t){.fd = -1, .ms = FIRST_MS + self->rank % 16};
    while (!found && !status && !s->final && mc_now() < deadline) {
        found = try_all(s);
        say_seeking(s);
        status = !found && env->check ? env->check() : MESHCOLL_OK;
    }
    if (found) {
        *seek = (mc_seek_t){
            .fd = found->fd, .listener = s->listener, .answer = found->answer, .to = found->to};
        found->fd = -1;
    } else if (!status) {
        status = fail_seek(s);
    }
    end_search(s, found);
    return status;
}

/* The parent ----------------------------------------------------------------------------------- */

/* A rank beside rank 0 may know it, and so itself, by a loopback address only: others reach it where they reach
 * rank 0. */
static mc_endpoint_t seen_from_here(const mc_seek_t *seek, const mc_endpoint_t *at)
{
    mc_endpoint_t e = mc_wire_is_loopback(at) ? seek->to : *at;
    e.port = at->port;
    e.scope = seek->to.scope;
    return e;
}

/* 0, EACCES with a refusal, or another errno. */
static int try_parent(const mc_self_t *self, const mc_seek_t *seek, const mc_endpoint_t *at,
                      double deadline, int *fd, uint32_t *refusal)
{
    mc_hello_t hello = {.kind = MC_HELLO_CHILD, .index = seek->answer.index};
    mc_answer_t answer;
    const double limit = mc_now() + ATTEMPT;
    int made = -1, failed = mc_wire_connect(at, limit < deadline ? limit : deadline, &made);
    if (failed)
        return failed;
    failed = mc_handshake(self, made, &hello, deadline, &answer);
    if (!failed && answer.code == MC_ANSWER_OK) {
        *fd = made;
        return 0;
    }
    close(made);
    if (!failed)
        *refusal = answer.code;
    return failed ? failed : EACCES;
}

static void say_parent(const mc_self_t *self, const mc_seek_t *seek, mc_notice_t *notice,
                       const char *at, const char *why)
{
    double waited;
    if (mc_notice_due(notice, &waited))
        fprintf(
            stderr,
            "meshcoll: rank %d has tried for %.0f s to reach rank %d, its parent, at %s and "
            "goes on (MESHCOLL_BOOTSTRAP_TIMEOUT); the last attempt: %s; where a firewall opens "
            "some ports only, MESHCOLL_PORTS says which\n",
            self->rank, waited, seek->answer.parent_rank, at, why);
}

/* A parent that is slow, or has dropped this connection among many, is tried again; gone, it refuses at all its
 * addresses. */
int mc_seek_parent(const mc_self_t *self, mc_seek_t *seek, double deadline, int *fd)
{
    const mc_endpoint_t *const at = seek->answer.parent;
    const struct timespec pause = {.tv_nsec = 20000000};
    mc_notice_t notice = mc_notice_begin();
    uint32_t refusal = MC_ANSWER_OK;
    const char *why = "";
    char name[MC_WIRE_NAME] = "no address";
    if (at[0].family == 0 && at[1].family == 0) {
        *fd = seek->fd;
        return MESHCOLL_OK;
    }
    close(seek->fd);
    for (bool again = true; again && mc_now() < deadline; nanosleep(&pause, NULL)) {
        again = false;
        for (int i = 0; i < MC_ENDPOINTS; i++) {
            if (at[i].family == 0)
                continue;
            const mc_endpoint_t there = seen_from_here(seek, &at[i]);
            const int failed = try_parent(self, seek, &there, deadline, fd, &refusal);
            if (!failed)
                return MESHCOLL_OK;
            again |= failed == ETIMEDOUT || failed == ECONNRESET;
            why = failed == EACCES ? mc_answer_text(refusal) : text_of(failed);
            mc_wire_print(&there, name);
            say_parent(self, seek, &notice, name, why);
        }
    }
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank %d did not reach rank %d, its parent, at %s: %s; where a firewall opens "
                   "some ports only, MESHCOLL_PORTS says which",
                   self->rank, seek->answer.parent_rank, name, why);
}
