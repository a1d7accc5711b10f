#include "job/monitor/state.h"

#include "base/system/log.h"
#include "base/system/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Connections of a node of the tree, within a machine and between machines. */
enum { FANOUT_INSIDE = 8, FANOUT_OUTSIDE = 4 };
/* Seconds in which a monitor must be reached, or is off for the pair, and in which one that was reached must let this
 * one in; milliseconds between two attempts. */
enum { CONNECT_SECONDS = 2, GREET_SECONDS = 10, RETRY_MS = 100 };
/* Seconds after which a child that has not come will not: if the others wait for it in the barrier, and else; and of
 * sleep at most. */
enum { AWAIT_SECONDS = CONNECT_SECONDS + 1, MEET_SECONDS = 3 * GREET_SECONDS };
enum { SLEEP_SECONDS = 3600, LINGER_SECONDS = 1 };
/* Seconds from one look at processes that have not come to the next. */
#define CHECK_SECONDS 0.2

/* The tree ------------------------------------------------------------------------------------- */

int32_t mc_monitor_parent(const int32_t *machine, int32_t size, int32_t rank)
{
    const int32_t own = machine[rank];
    const bool leads = own == rank;
    const int fanout = leads ? FANOUT_OUTSIDE : FANOUT_INSIDE;
    int32_t before = 0, at = 0;
    /* those of its level: the leaders of all machines, or the ranks of its own */
    for (int32_t r = 0; r < rank; r++)
        before += leads ? machine[r] == r : machine[r] == own;
    if (before == 0)
        return -1;
    const int32_t wanted = (before - 1) / fanout;
    for (int32_t r = 0; r < size; r++)
        if ((leads ? machine[r] == r : machine[r] == own) && at++ == wanted)
            return r;
    return -1;
}

/* Connecting ----------------------------------------------------------------------------------- */

static bool is_child(const mc_monitor_t *m, int32_t rank)
{
    return rank >= 0 && rank < m->self.size &&
           mc_monitor_parent(m->machine, m->self.size, rank) == m->self.rank;
}

static bool is_welcome(const mc_monitor_t *m, const mc_hello_t *hello)
{
    if (hello->index != m->self.rank || hello->rank < 0 || hello->rank >= m->self.size ||
        hello->kind < MC_HELLO_CHILD || hello->kind > MC_HELLO_SURVIVE)
        return false;
    return hello->kind != MC_HELLO_CHILD || is_child(m, hello->rank);
}

/* A survivor's connection waits for mc_survivors_gather. A later one replaces an earlier one. */
static void park(mc_monitor_t *m, const mc_pending_t *v)
{
    pthread_mutex_lock(&m->lock);
    int *const at = &m->survivor[v->hello.rank];
    if (*at >= 0)
        close(*at);
    *at = m->gathered ? -1 : v->fd;
    if (m->gathered)
        close(v->fd);
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
}

static void let_in(mc_monitor_t *m, const mc_pending_t *v)
{
    const bool asks = v->hello.kind == MC_HELLO_ASK;
    if (v->hello.kind == MC_HELLO_SURVIVE) {
        park(m, v);
    } else if (mc_relay_add(m, v->fd, v->hello.rank, asks)) {
        close(v->fd);
    } else if (!asks) {
        m->n_met++;
        if (m->torn) /* it comes for news, and not for a barrier */
            (void)mc_branch_send(v->fd, MC_FRAME_TORN, NULL, 0);
    }
}

/* Another process of the mesh has come: a child in the tree, one that asks, or a survivor. */
void mc_reach_admit(mc_monitor_t *m, const mc_pending_t *v)
{
    mc_answer_t a = {.code = MC_ANSWER_OK, .size = m->self.size};
    if (!is_welcome(m, &v->hello)) {
        mc_acceptor_refuse(&m->acceptor, v, MC_ANSWER_RANK);
        return;
    }
    if (v->hello.kind == MC_HELLO_CHILD && mc_relay_has(m, v->hello.rank)) {
        mc_acceptor_refuse(&m->acceptor, v, MC_ANSWER_TWICE);
        return;
    }
    mc_branch_keep_alive(v->fd, m->silence);
    if (mc_handshake_answer(&m->self, v->fd, &v->challenge, &v->hello, &a))
        close(v->fd);
    else
        let_in(m, v);
}

/* The children of position `at` among `n`. */
static uint32_t children_of(int32_t at, int32_t n, int fanout)
{
    const int64_t first = (int64_t)at * fanout + 1, last = first + fanout;
    return first >= n ? 0 : (uint32_t)((last < n ? last : n) - first);
}

void mc_reach_place(mc_monitor_t *m)
{
    const int32_t rank = m->self.rank, own = m->machine[rank];
    int32_t inside = 0, n_inside = 0, outside = 0, n_outside = 0;
    for (int32_t r = 0; r < m->self.size; r++) {
        inside += r < rank && m->machine[r] == own;
        n_inside += m->machine[r] == own;
        outside += r < rank && m->machine[r] == r;
        n_outside += m->machine[r] == r;
    }
    m->parent = mc_monitor_parent(m->machine, m->self.size, rank);
    m->n_children = children_of(inside, n_inside, FANOUT_INSIDE);
    if (own == rank)
        m->n_children += children_of(outside, n_outside, FANOUT_OUTSIDE);
    m->began = mc_now();
}

int mc_reach_most(int32_t size)
{
    const int most = FANOUT_INSIDE + FANOUT_OUTSIDE + 1;
    return size - 1 < most ? size - 1 : most;
}

double mc_reach_until(const mc_monitor_t *m)
{
    if (atomic_load(&m->stop))
        return mc_now() + LINGER_SECONDS;
    return m->n_met < m->n_children && !m->torn ? m->check_at : mc_now() + SLEEP_SECONDS;
}

/* Has a process of this machine ended? */
static bool has_ended(const mc_monitor_t *m, int32_t rank)
{
    return m->machine[rank] == m->machine[m->self.rank] && m->contact[rank].pid > 0 &&
           mc_process_has_ended(m->contact[rank].pid);
}

/* Children of this machine that have not come may have ended before. */
static void check_children(mc_monitor_t *m)
{
    const double now = mc_now();
    if (m->n_met >= m->n_children || now < m->check_at)
        return;
    m->check_at = now + CHECK_SECONDS;
    for (int32_t r = 0; r < m->self.size; r++)
        if (has_ended(m, r) && is_child(m, r) && !mc_relay_has(m, r))
            mc_relay_miss(m, r);
}

bool mc_reach_is_missed(mc_monitor_t *m)
{
    mc_news_t news;
    if (m->lingers_until == 0)
        m->lingers_until = mc_now() + 2 * LINGER_SECONDS;
    return m->n_met < m->n_children && !m->torn && mc_now() < m->lingers_until &&
           mc_news_fatal(&m->board, &news);
}

static bool is_waiting(mc_monitor_t *m)
{
    pthread_mutex_lock(&m->lock);
    const bool waits = m->waits;
    pthread_mutex_unlock(&m->lock);
    return waits;
}

/* Children in the middle of their greeting were reached. */
static double meet_until(mc_monitor_t *m)
{
    return m->began + (is_waiting(m) && m->acceptor.n == 0 ? AWAIT_SECONDS : MEET_SECONDS);
}

void mc_reach_check(mc_monitor_t *m)
{
    check_children(m);
    if (m->n_met < m->n_children && mc_now() >= meet_until(m))
        mc_relay_tear(m);
    if (m->sent_ready || m->n_ready < m->n_children || (m->joined && !is_waiting(m)))
        return;
    m->sent_ready = true;
    if (m->parent < 0)
        mc_relay_release(m);
    else
        mc_relay_up(m, MC_FRAME_READY);
}

/* What greet() needs to know. */
typedef struct {
    const mc_self_t *self;
    int32_t rank;
    mc_hello_kind_t kind;
    double seconds;
} goal_t;

/* False: the monitor is being closed, and has not seen the connection. */
static bool set_greeting(mc_monitor_t *m, int fd)
{
    pthread_mutex_lock(&m->lock);
    const bool set = fd < 0 || !atomic_load(&m->stop);
    if (set)
        m->greeting = fd;
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
    return set;
}

static int greet(void *context, int fd)
{
    const goal_t *const goal = context;
    mc_hello_t hello = {.kind = goal->kind, .index = goal->rank};
    mc_answer_t a;
    /* a parent that has let a child in would take its leaving for its end */
    const double patience = goal->kind == MC_HELLO_CHILD ? GREET_SECONDS : 2 * goal->seconds;
    const int failed = mc_handshake(goal->self, fd, &hello, mc_now() + patience, &a);
    if (failed)
        return failed;
    return a.code == MC_ANSWER_OK ? 0 : ECONNREFUSED;
}

/* The parent may be stopped: a monitor that is closed meanwhile ends it. */
static int greet_parent(void *monitor, int fd)
{
    mc_monitor_t *const m = monitor;
    const goal_t goal = {&m->self, m->parent, MC_HELLO_CHILD, CONNECT_SECONDS};
    if (!set_greeting(m, fd))
        return ECANCELED;
    const int failed = greet((void *)&goal, fd);
    (void)set_greeting(m, -1);
    return failed;
}

int mc_reach_connect(const mc_monitor_t *m, int32_t rank, mc_hello_kind_t kind, double seconds,
                     int *fd)
{
    const goal_t goal = {.self = &m->self, .rank = rank, .kind = kind, .seconds = seconds};
    return mc_contact_connect(&m->own, &m->contact[rank], seconds, greet, (void *)&goal, fd);
}

void mc_reach_parent(mc_monitor_t *m)
{
    const int32_t parent = m->parent;
    const double end = mc_now() + CONNECT_SECONDS;
    char name[MC_WIRE_NAME];
    int fd, failed;
    if (parent < 0)
        return;
    mc_endpoint_t at = m->contact[parent].network.at[0];
    at.port = m->contact[parent].port;
    while ((failed = mc_contact_connect(&m->own, &m->contact[parent], CONNECT_SECONDS, greet_parent,
                                        m, &fd)) &&
           mc_now() < end && !atomic_load(&m->stop) && !has_ended(m, parent))
        if (failed != EMFILE || !mc_acceptor_spend(&m->acceptor))
            nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    if (!failed) {
        mc_branch_keep_alive(fd, m->silence);
        failed = mc_relay_add(m, fd, parent, false);
        if (failed)
            close(fd);
    }
    if (failed && has_ended(m, parent)) {
        mc_relay_miss(m, parent);
        return;
    }
    if (failed)
        mc_relay_tear(m);
    if (failed && !atomic_load(&m->stop))
        mc_log(MC_LOG_WARN,
               "the monitor of rank %d cannot reach that of rank %d on %.*s (%s: %s): if a "
               "process beyond ends, nobody may be told; MESHCOLL_MONITOR=off does without "
               "monitors",
               m->self.rank, (int)parent, MC_CONTACT_HOST, m->contact[parent].host,
               mc_wire_print(&at, name), mc_wire_error(failed));
}

/* Questions ------------------------------------------------------------------------------------ */

static int read_answer(int fd, double deadline, void *answer, size_t room, size_t *bytes)
{
    mc_frame_t frame;
    int failed = mc_wire_recv(fd, &frame, sizeof frame, deadline, -1);
    if (!failed && (frame.kind != MC_FRAME_ANSWER || frame.bytes > room))
        failed = EPROTO;
    if (!failed)
        failed = mc_wire_recv(fd, answer, frame.bytes, deadline, -1);
    if (!failed)
        *bytes = frame.bytes;
    return failed;
}

int mc_monitor_ask(const mc_monitor_t *m, int32_t rank, uint32_t question, double seconds,
                   void *answer, size_t room, size_t *bytes)
{
    const double deadline = mc_now() + seconds;
    int fd;
    if (rank < 0 || rank >= m->self.size)
        return EINVAL;
    int failed = mc_reach_connect(m, rank, MC_HELLO_ASK, seconds / 2, &fd);
    if (failed)
        return failed;
    failed = mc_branch_send(fd, MC_FRAME_QUESTION, &question, sizeof question);
    if (!failed)
        failed = read_answer(fd, deadline, answer, room, bytes);
    close(fd);
    return failed;
}
