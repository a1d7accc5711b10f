#include "runtime/bootstrap/seek.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds for one attempt to connect, where packets are lost without a word. */
enum { ATTEMPT = 3, MOST_ADDRESSES = 16 };

typedef struct {
    struct sockaddr_storage at[MOST_ADDRESSES];
    int n;
} addresses_t;

/* 0, or an error of gai_strerror. */
static int resolve(const char *host, addresses_t *found)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    const struct addrinfo any = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed) /* ::1 where only the loopback has IPv6 */
        failed = getaddrinfo(host, NULL, &any, &list);
    if (failed)
        return failed;
    *found = (addresses_t){.n = 0};
    for (const struct addrinfo *a = list; a && found->n < MOST_ADDRESSES; a = a->ai_next)
        if (a->ai_addrlen <= sizeof found->at[0])
            memcpy(&found->at[found->n++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
    return found->n > 0 ? 0 : EAI_NONAME;
}

/* Rank 0 --------------------------------------------------------------------------------------- */

static int fail_listen(const mc_job_t *job, int error)
{
    const char *const why = error == EADDRNOTAVAIL
                                ? "it is no address of the host on which rank 0 runs"
                                : strerror(error);
    if (job->n_ports == 1)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 cannot listen on %s, port %u: %s", job->host,
                       (unsigned)job->port, why);
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank 0 cannot listen on %s, ports %u to %u: %s; MESHCOLL_MASTER_ADDR and "
                   "MESHCOLL_MASTER_PORT choose others",
                   job->host, (unsigned)job->port, (unsigned)(job->port + job->n_ports - 1), why);
}

int mc_seek_listen(const mc_job_t *job, int *listener)
{
    addresses_t a;
    int failed = resolve(job->host, &a);
    if (failed)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0's address '%s' is not known: %s", job->host,
                       gai_strerror(failed));
    failed = EADDRNOTAVAIL;
    for (int i = 0; i < a.n; i++)
        for (int32_t p = 0; p < job->n_ports; p++) {
            mc_wire_set_port(&a.at[i], (uint16_t)(job->port + p));
            const int error = mc_wire_listen(&a.at[i], listener);
            if (!error)
                return MESHCOLL_OK;
            if (error != EADDRNOTAVAIL)
                failed = error;
        }
    return fail_listen(job, failed);
}

/* The others ----------------------------------------------------------------------------------- */

static void pause_for(double seconds)
{
    const struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* Will no later attempt do better? Another job's rank 0 may be on a port where this one's will be. */
static bool is_final(uint32_t code)
{
    return code != MC_ANSWER_OK && code != MC_ANSWER_LATER && code != MC_ANSWER_OTHER_JOB;
}

typedef struct {
    const mc_self_t *self;
    double deadline;
    char why[MC_WIRE_NAME + 160]; /* the last failure */
    bool final;
} attempt_t;

static void note(attempt_t *a, const struct sockaddr_storage *to, const char *why)
{
    char name[MC_WIRE_NAME];
    snprintf(a->why, sizeof a->why, "%s: %s", mc_wire_print(to, name), why);
}

static const char *text_of(int error)
{
    return error == EPROTO       ? "no rank of meshcoll listens there"
           : error == ECONNRESET ? "the connection was closed"
                                 : strerror(error);
}

/* Listens where rank 0 reaches this rank, and so may the others. */
static int listen_beside(mc_seek_t *seek, mc_hello_t *hello)
{
    int failed = mc_wire_own_address(seek->fd, &seek->own);
    if (!failed)
        failed = mc_wire_listen(&seek->own, &seek->listener);
    if (failed)
        return failed;
    failed = mc_wire_listening(seek->listener, &hello->listens);
    if (failed)
        close(seek->listener);
    return failed;
}

static bool try_address(attempt_t *a, const struct sockaddr_storage *to, mc_seek_t *seek)
{
    mc_hello_t hello = {.kind = MC_HELLO_JOIN};
    const double limit = mc_now() + ATTEMPT, end = a->deadline < limit ? a->deadline : limit;
    int failed = mc_wire_connect(to, end, &seek->fd);
    if (failed) {
        note(a, to, text_of(failed));
        return false;
    }
    failed = listen_beside(seek, &hello);
    if (failed) {
        note(a, to, strerror(failed));
        close(seek->fd);
        return false;
    }
    failed = mc_handshake(a->self, seek->fd, &hello, a->deadline, &seek->answer);
    if (!failed && seek->answer.code == MC_ANSWER_OK)
        return true;
    note(a, to, failed ? text_of(failed) : mc_answer_text(seek->answer.code));
    a->final = !failed && is_final(seek->answer.code);
    close(seek->listener);
    close(seek->fd);
    return false;
}

static bool try_all(attempt_t *a, addresses_t *to, mc_seek_t *seek)
{
    const mc_job_t *const job = a->self->job;
    for (int i = 0; i < to->n; i++)
        for (int32_t p = 0; p < job->n_ports; p++) {
            mc_wire_set_port(&to->at[i], (uint16_t)(job->port + p));
            if (mc_now() >= a->deadline || a->final)
                return false;
            if (try_address(a, &to->at[i], seek))
                return true;
        }
    return false;
}

static int fail_seek(const attempt_t *a, const mc_job_t *job)
{
    if (a->final)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank 0 refused rank %d at %s", job->rank, a->why);
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "rank %d did not reach rank 0 (%s, from port %u on) within %g s "
                   "(MESHCOLL_BOOTSTRAP_TIMEOUT); the last attempt at %s",
                   job->rank, job->host, (unsigned)job->port, job->timeout, a->why);
}

int mc_seek_rank0(const mc_self_t *self, double deadline, mc_seek_t *seek)
{
    enum { FIRST_MS = 10, MOST_MS = 500 };
    const mc_job_t *const job = self->job;
    attempt_t a = {.self = self, .deadline = deadline, .why = "its address: not tried"};
    /* ranks that start together do not try together */
    for (double ms = FIRST_MS + job->rank % 16;; ms = ms < MOST_MS ? 1.5 * ms : ms) {
        addresses_t to;
        const int failed = resolve(job->host, &to);
        if (failed)
            snprintf(a.why, sizeof a.why, "its address: %s", gai_strerror(failed));
        else if (try_all(&a, &to, seek))
            return MESHCOLL_OK;
        if (a.final || mc_now() >= deadline)
            return fail_seek(&a, job);
        pause_for(ms / 1e3);
    }
}

int mc_seek_parent(const mc_self_t *self, mc_seek_t *seek, double deadline, int *fd)
{
    struct sockaddr_storage to;
    mc_hello_t hello = {.kind = MC_HELLO_CHILD, .index = seek->answer.index};
    mc_answer_t answer;
    const char *refusal = NULL;
    if (seek->answer.parent.family == 0) {
        *fd = seek->fd;
        return MESHCOLL_OK;
    }
    close(seek->fd);
    int failed = mc_wire_address(&seek->answer.parent, &seek->own, &to), connected = -1;
    if (!failed)
        failed = mc_wire_connect(&to, deadline, &connected);
    while (!failed) {
        failed = mc_handshake(self, connected, &hello, deadline, &answer);
        if (!failed && answer.code == MC_ANSWER_OK)
            break;
        close(connected);
        if (!failed) {
            refusal = mc_answer_text(answer.code);
            failed = EACCES;
        }
        /* a parent that is slow, or has dropped this connection among many; gone, it refuses */
        if ((failed == ETIMEDOUT || failed == ECONNRESET) && mc_now() < deadline) {
            pause_for(0.02);
            failed = mc_wire_connect(&to, deadline, &connected);
        }
    }
    if (failed)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "rank %d did not reach rank %d, its parent: %s",
                       self->job->rank, seek->answer.parent_rank,
                       refusal ? refusal : text_of(failed));
    *fd = connected;
    return MESHCOLL_OK;
}
