#include "job/monitor/monitor.h"

#include "base/system/descriptor.h"
#include "base/system/log.h"
#include "base/system/ports.h"
#include "base/system/process.h"
#include "job/monitor/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BROADCAST_SECONDS = 1, JOIN_SECONDS = 2, GREETING_MS = 1000, SILENCE_MOST = 3600 };
#define SILENCE       4.0
#define SILENCE_LEAST 2.0

/* Forks: a child that lives on must not hold the connections of a parent that died ----------------- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static mc_monitor_t *open_monitors;

/* All but the branches. */
static void close_descriptors(mc_monitor_t *m)
{
    mc_acceptor_close(&m->acceptor);
    mc_descriptor_close(&m->epoll);
    mc_descriptor_close(&m->wake);
    for (int32_t r = 0; m->survivor && r < m->self.size; r++)
        mc_descriptor_close(&m->survivor[r]);
}

static void close_in_child(void)
{
    for (mc_monitor_t *m = open_monitors; m; m = m->next_open) {
        for (mc_monitor_branch_t *b = m->branches; b; b = b->next)
            mc_descriptor_close(&b->fd);
        close_descriptors(m);
        m->has_thread = false;
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, close_in_child);
}

static void enlist(mc_monitor_t *m)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&open_lock);
    m->next_open = open_monitors;
    open_monitors = m;
    pthread_mutex_unlock(&open_lock);
}

static void unlist(const mc_monitor_t *m)
{
    pthread_mutex_lock(&open_lock);
    mc_monitor_t **at = &open_monitors;
    while (*at && *at != m)
        at = &(*at)->next_open;
    if (*at)
        *at = m->next_open;
    pthread_mutex_unlock(&open_lock);
}

/* The thread ----------------------------------------------------------------------------------- */

/* Waits until it may begin; false: it is to stop. */
static bool await_start(mc_monitor_t *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->started && !atomic_load(&m->stop))
        pthread_cond_wait(&m->told, &m->lock);
    const bool started = m->started;
    pthread_mutex_unlock(&m->lock);
    return started;
}

static void *run(void *context)
{
    mc_monitor_t *const m = context;
    const struct pollfd watched = {.fd = m->epoll, .events = POLLIN};
    mc_pending_t pending;
    int which;
    if (!await_start(m))
        return NULL;
    mc_reach_parent(m);
    mc_reach_check(m);
    while (!atomic_load(&m->stop) || mc_reach_is_missed(m)) {
        const int met =
            mc_acceptor_wait(&m->acceptor, mc_reach_until(m), &watched, 1, &which, &pending);
        if (met == 0)
            mc_reach_admit(m, &pending);
        else if (met == ECANCELED)
            mc_relay_read(m);
        mc_relay_pass_on(m);
        mc_reach_check(m);
    }
    mc_relay_leave(m);
    return NULL;
}

/* Opening -------------------------------------------------------------------------------------- */

int mc_monitor_parse(const char *text, double *seconds)
{
    char *end;
    if (!text || strcmp(text, "off") == 0) {
        *seconds = text ? 0 : SILENCE;
        return MESHCOLL_OK;
    }
    const double value = mc_number_read(text, &end);
    if (end == text || *end || !(value >= SILENCE_LEAST && value <= SILENCE_MOST))
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "MESHCOLL_MONITOR: expected off, or the seconds from %g to %d after which a "
                       "silent machine counts as down; got '%s'",
                       SILENCE_LEAST, SILENCE_MOST, text);
    *seconds = value;
    return MESHCOLL_OK;
}

int mc_monitor_draw(mc_monitor_secret_t *secret)
{
    return getrandom(secret, sizeof *secret, 0) == (ssize_t)sizeof *secret
               ? MESHCOLL_OK
               : mc_fail(MESHCOLL_ERR_IO, "the system has no random numbers: %s", strerror(errno));
}

static int allocate(mc_monitor_t *m, int32_t size)
{
    m->self.size = size;
    m->contact = calloc((size_t)size, sizeof *m->contact);
    m->machine = calloc((size_t)size, sizeof *m->machine);
    m->survivor = malloc((size_t)size * sizeof *m->survivor);
    for (int32_t r = 0; m->survivor && r < size; r++)
        m->survivor[r] = -1;
    return m->contact && m->machine && m->survivor ? MESHCOLL_OK : mc_fail_memory("a monitor");
}

/* All that may fail for a lack of something. */
static int begin(mc_monitor_t *m, const mc_network_t *network)
{
    int listener, failed = mc_contact_open(network, &listener, &m->own);
    if (failed)
        return failed;
    mc_acceptor_open(&m->acceptor, &m->self, listener);
    m->acceptor.forgives = true;
    m->epoll = mc_descriptor(epoll_create1(EPOLL_CLOEXEC));
    m->wake = mc_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct epoll_event woken = {.events = EPOLLIN, .data.ptr = &m->wake};
    if (m->epoll < 0 || m->wake < 0 || epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->wake, &woken))
        failed = errno;
    if (!failed)
        failed = mc_acceptor_reserve(&m->acceptor, mc_reach_most(m->self.size));
    if (!failed)
        failed = mc_thread_start(&m->thread, run, m);
    m->has_thread = !failed;
    return failed;
}

int mc_monitor_open(int32_t size, const mc_network_t *network, double silence,
                    mc_monitor_t **monitor, mc_contact_t *contact)
{
    mc_monitor_t *const m = calloc(1, sizeof *m);
    if (!m)
        return mc_fail_memory("a monitor");
    m->acceptor.listener = m->epoll = m->wake = m->greeting = -1;
    m->silence = silence;
    mc_news_open(&m->board);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->told, NULL);
    enlist(m);
    mc_ports_t ports;
    int status = mc_ports_read(&ports);
    if (!status)
        status = allocate(m, size);
    if (status) {
        mc_monitor_close(m);
        return status;
    }
    const int failed = silence > 0 && size > 1 ? begin(m, network) : 0;
    if (failed == EMFILE || failed == ENFILE) {
        mc_monitor_close(m);
        return mc_fail(MESHCOLL_ERR_TRANSPORT,
                       "a mesh needs more file descriptors than this process may have: %s; "
                       "raise the limit (ulimit -n)",
                       strerror(failed));
    }
    if (failed)
        mc_log(MC_LOG_WARN,
               "this process cannot have a monitor (%s): ranks are not told when others "
               "end; MESHCOLL_MONITOR=off says that this is meant",
               mc_wire_error(failed));
    if (failed)
        m->own.network.n = 0;
    *contact = m->own;
    *monitor = m;
    return MESHCOLL_OK;
}

static void take(mc_monitor_t *m, const mc_monitor_params_t *p)
{
    for (size_t r = 0; r < (size_t)m->self.size; r++)
        memcpy(&m->contact[r], (const char *)p->contact + r * p->stride, sizeof *m->contact);
    memcpy(m->machine, p->machine, (size_t)m->self.size * sizeof *m->machine);
    m->self.rank = p->rank;
    memcpy(m->self.key, p->secret.at, sizeof m->self.key);
    m->self.has_secret = true;
}

static bool all_have(const mc_monitor_t *m)
{
    for (int32_t r = 0; r < m->self.size; r++)
        if (m->contact[r].network.n == 0)
            return false;
    return true;
}

bool mc_monitor_start(mc_monitor_t *m, const mc_monitor_params_t *params)
{
    take(m, params);
    mc_reach_place(m);
    const bool works = all_have(m);
    pthread_mutex_lock(&m->lock);
    m->started = works;
    m->torn = !works;
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
    return works;
}

static void wake(const mc_monitor_t *m)
{
    const uint64_t one = 1;
    if (m->wake >= 0)
        (void)!write(m->wake, &one, sizeof one);
}

static struct timespec in_ms(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

/* A parent that lives lets this one in within a moment, and would else take its leaving for its end. */
static void end_greeting(mc_monitor_t *m)
{
    const struct timespec end = in_ms(GREETING_MS);
    pthread_mutex_lock(&m->lock);
    while (m->greeting >= 0 && pthread_cond_timedwait(&m->told, &m->lock, &end) != ETIMEDOUT) {}
    if (m->greeting >= 0)
        (void)shutdown(m->greeting, SHUT_RDWR);
    pthread_mutex_unlock(&m->lock);
}

void mc_monitor_close(mc_monitor_t *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->stop, true);
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
    if (m->has_thread) {
        wake(m);
        end_greeting(m);
        pthread_join(m->thread, NULL);
    }
    unlist(m);
    while (m->branches)
        mc_relay_remove(m, m->branches);
    close_descriptors(m);
    pthread_cond_destroy(&m->told);
    pthread_mutex_destroy(&m->lock);
    mc_news_close(&m->board);
    explicit_bzero(m->self.key, sizeof m->self.key);
    free(m->survivor);
    free(m->machine);
    free(m->contact);
    free(m);
}

/* For other threads ---------------------------------------------------------------------------- */

mc_news_board_t *mc_monitor_board(mc_monitor_t *m)
{
    return &m->board;
}

void mc_monitor_broadcast(mc_monitor_t *m, const mc_news_t *news)
{
    if (!mc_news_post(&m->board, news) || !m->has_thread || !m->started)
        return;
    const uint32_t n = atomic_load(&m->board.n);
    wake(m);
    if (news->kind != MC_NEWS_FATAL)
        return;
    const struct timespec end = in_ms(1000 * BROADCAST_SECONDS);
    pthread_mutex_lock(&m->lock);
    while ((int32_t)(m->n_told - n) < 0 &&
           pthread_cond_timedwait(&m->told, &m->lock, &end) != ETIMEDOUT) {}
    pthread_mutex_unlock(&m->lock);
}

void mc_monitor_join(mc_monitor_t *m)
{
    const struct timespec end = in_ms(1000 * JOIN_SECONDS);
    pthread_mutex_lock(&m->lock);
    while (m->started && !m->joined && !m->torn && !atomic_load(&m->board.has_fatal) &&
           pthread_cond_timedwait(&m->told, &m->lock, &end) != ETIMEDOUT) {}
    pthread_mutex_unlock(&m->lock);
}

int mc_monitor_barrier(mc_monitor_t *m, int ms)
{
    mc_news_t news;
    const struct timespec end = in_ms(ms);
    pthread_mutex_lock(&m->lock);
    if (!m->waits) {
        m->waits = true;
        wake(m);
    }
    while (m->started && m->has_thread && !m->released && !m->torn &&
           !atomic_load(&m->board.has_fatal) &&
           pthread_cond_timedwait(&m->told, &m->lock, &end) != ETIMEDOUT) {}
    const bool released = m->released, torn = m->torn, none = !m->started;
    const bool ended = !m->has_thread;
    pthread_mutex_unlock(&m->lock);
    if (none) /* on all ranks, whatever has failed on some: they meet otherwise, together */
        return MESHCOLL_ERR_UNSUPPORTED;
    if (!released && mc_news_fatal(&m->board, &news))
        return mc_fail(news.status, "%s", news.text);
    if (released)
        return MESHCOLL_OK;
    return torn ? MESHCOLL_ERR_UNSUPPORTED : ended ? MESHCOLL_ERR_PEER : MESHCOLL_IN_PROGRESS;
}

bool mc_monitor_is_joined(mc_monitor_t *m)
{
    pthread_mutex_lock(&m->lock);
    const bool joined = m->started && m->joined && !m->torn;
    pthread_mutex_unlock(&m->lock);
    return joined;
}

void mc_monitor_answers(mc_monitor_t *m, mc_monitor_answer_t answer_, void *context)
{
    m->answer = answer_;
    m->answer_context = context;
}

const mc_contact_t *mc_monitor_contact(const mc_monitor_t *m, int32_t rank)
{
    return rank >= 0 && rank < m->self.size ? &m->contact[rank] : NULL;
}

int32_t mc_monitor_rank(const mc_monitor_t *m)
{
    return m->self.rank;
}
