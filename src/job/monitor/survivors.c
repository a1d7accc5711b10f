#include "job/monitor/monitor.h"

#include "job/monitor/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds until a rank that does not answer counts as gone, for an exchange, and by which the others outlast the one
 * that gathers them; milliseconds between two looks. */
enum { ANSWER_SECONDS = 2, EXCHANGE_SECONDS = 600, GRACE_SECONDS = 20, LOOK_MS = 200 };

struct mc_survivors {
    int32_t rank, n;
    int up;    /* the connection to number 0; -1: this is it */
    int *down; /* of number 0: to the others, by number */
};

/* What number 0 tells the others. */
typedef struct {
    int32_t rank, n;
} welcome_t;

/* Gathering ------------------------------------------------------------------------------------ */

/* Has it closed its end? */
static bool has_left(int fd)
{
    char byte;
    errno = 0;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static bool has_joined(mc_monitor_t *m, int32_t rank)
{
    pthread_mutex_lock(&m->lock);
    int *const at = &m->survivor[rank];
    if (*at >= 0 && has_left(*at)) {
        close(*at);
        *at = -1;
    }
    const bool joined = *at >= 0;
    pthread_mutex_unlock(&m->lock);
    return joined;
}

static bool answers(const mc_monitor_t *m, int32_t rank)
{
    int fd;
    if (mc_reach_connect(m, rank, MC_HELLO_ASK, ANSWER_SECONDS, &fd))
        return false;
    close(fd);
    return true;
}

/* Is every rank from `first` on here, or gone? Ranks that are gone stay so. */
static bool is_complete(mc_monitor_t *m, int32_t first, double deadline, bool *gone)
{
    bool complete = true;
    for (int32_t r = first; r < m->self.size; r++) {
        if (gone[r] || has_joined(m, r))
            continue;
        if (mc_now() >= deadline)
            return false;
        gone[r] = !answers(m, r);
        complete &= gone[r];
    }
    return complete;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

/* Takes over the connections of those that have joined. */
static int take_joined(mc_monitor_t *m, const bool *member, mc_survivors_t *s)
{
    s->down = malloc((size_t)m->self.size * sizeof *s->down);
    if (!s->down)
        return mc_fail_memory("the survivors of a mesh");
    s->n = 1;
    pthread_mutex_lock(&m->lock);
    m->gathered = true;
    for (int32_t r = m->self.rank + 1; r < m->self.size; r++)
        if (member[r] && m->survivor[r] >= 0) {
            s->down[s->n++] = m->survivor[r];
            m->survivor[r] = -1;
        }
    pthread_mutex_unlock(&m->lock);
    return MESHCOLL_OK;
}

/* Number 0. */
static int gather(mc_monitor_t *m, const bool *member, double deadline, mc_survivors_t *s)
{
    bool *const gone = calloc((size_t)m->self.size, sizeof *gone);
    if (!gone)
        return mc_fail_memory("the survivors of a mesh");
    for (int32_t r = 0; r < m->self.size; r++)
        gone[r] = !member[r];
    pthread_mutex_lock(&m->lock);
    m->gathered = false; /* this may be another attempt */
    pthread_mutex_unlock(&m->lock);
    while (!is_complete(m, m->self.rank + 1, deadline, gone) && mc_now() < deadline)
        nap();
    free(gone);
    int status = take_joined(m, member, s);
    for (int32_t i = 1; i < s->n && !status; i++) {
        const welcome_t w = {.rank = i, .n = s->n};
        if (mc_wire_send(s->down[i], &w, sizeof w, mc_now() + ANSWER_SECONDS))
            status = mc_fail(MESHCOLL_ERR_PEER, "a survivor ended while the others gathered");
    }
    return status;
}

/* Joins `host`. Returns 0, or an errno: it is gone, or gathers nobody. */
static int join(const mc_monitor_t *m, int32_t host, double deadline, mc_survivors_t *s)
{
    welcome_t w;
    int fd;
    int failed = mc_reach_connect(m, host, MC_HELLO_SURVIVE, ANSWER_SECONDS, &fd);
    if (failed)
        return failed;
    failed = mc_wire_recv(fd, &w, sizeof w, deadline, -1);
    if (!failed && (w.n < 2 || w.n > m->self.size || w.rank < 1 || w.rank >= w.n))
        failed = EPROTO;
    if (failed) {
        close(fd);
        return failed;
    }
    s->rank = w.rank;
    s->n = w.n;
    s->up = fd;
    return 0;
}

/* Joins `host` while it lives: it may be late, or begin another attempt. Returns 0, or an errno: it is gone; *status is
 * an error where it lives, but does not take this rank in. */
static int join_patiently(const mc_monitor_t *m, int32_t host, double seconds, mc_survivors_t *s,
                          int *status)
{
    const double patience = mc_now() + seconds + GRACE_SECONDS;
    int failed;
    while ((failed = join(m, host, patience, s)) && answers(m, host) && mc_now() < patience)
        nap();
    if (failed && mc_now() >= patience)
        *status = mc_fail(MESHCOLL_ERR_TIMEOUT,
                          "meshcoll_shrink: rank %d is alive, but did not admit this rank within "
                          "%g s",
                          (int)host, seconds);
    return failed;
}

int mc_survivors_gather(mc_monitor_t *m, const bool *member, double seconds,
                        mc_survivors_t **survivors)
{
    int failed = EHOSTDOWN, status = MESHCOLL_OK;
    if (!m->started)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_shrink: the survivors find each other by their monitors, which "
                       "this mesh does not have (MESHCOLL_MONITOR)");
    mc_survivors_t *const s = calloc(1, sizeof *s);
    if (!s)
        return mc_fail_memory("the survivors of a mesh");
    s->up = -1;
    for (int32_t host = 0; host < m->self.rank && failed && !status; host++)
        if (member[host])
            failed = join_patiently(m, host, seconds, s, &status);
    if (failed && !status)
        status = gather(m, member, mc_now() + seconds, s);
    if (status) {
        mc_survivors_free(s);
        return status;
    }
    *survivors = s;
    return MESHCOLL_OK;
}

/* Exchanging ----------------------------------------------------------------------------------- */

static int exchange_up(const mc_survivors_t *s, const void *in, void *out, size_t bytes,
                       double deadline)
{
    const int failed = mc_wire_send(s->up, in, bytes, deadline);
    return failed ? failed : mc_wire_recv(s->up, out, (size_t)s->n * bytes, deadline, -1);
}

static int exchange_down(const mc_survivors_t *s, const void *in, char *out, size_t bytes,
                         double deadline)
{
    int failed = 0;
    memcpy(out, in, bytes);
    for (int32_t i = 1; i < s->n && !failed; i++)
        failed = mc_wire_recv(s->down[i], out + (size_t)i * bytes, bytes, deadline, -1);
    for (int32_t i = 1; i < s->n && !failed; i++)
        failed = mc_wire_send(s->down[i], out, (size_t)s->n * bytes, deadline);
    return failed;
}

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    const mc_survivors_t *const s = context;
    const double deadline = mc_now() + EXCHANGE_SECONDS;
    return s->rank > 0 ? exchange_up(s, in, out, bytes, deadline)
                       : exchange_down(s, in, out, bytes, deadline);
}

meshcoll_oob_t mc_survivors_oob(mc_survivors_t *s)
{
    return (meshcoll_oob_t){.rank = s->rank, .size = s->n, .context = s, .allgather = allgather};
}

void mc_survivors_free(void *survivors)
{
    mc_survivors_t *const s = survivors;
    for (int32_t i = 1; s->down && i < s->n; i++)
        close(s->down[i]);
    if (s->up >= 0)
        close(s->up);
    free(s->down);
    free(s);
}
