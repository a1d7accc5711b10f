#include "job/monitor/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Who comes late is told what the others know. */
static void send_known(mc_monitor_t *m, const mc_monitor_branch_t *b)
{
    mc_news_t news;
    uint32_t next = 0;
    if (mc_news_fatal(&m->board, &news))
        (void)mc_branch_send(b->fd, MC_FRAME_NEWS, &news, sizeof news);
    while (mc_news_refusal(&m->board, &next, &news))
        (void)mc_branch_send(b->fd, MC_FRAME_NEWS, &news, sizeof news);
}

int mc_relay_add(mc_monitor_t *m, int fd, int32_t rank, bool asks)
{
    mc_monitor_branch_t *const b = calloc(1, sizeof *b);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = b};
    if (!b)
        return ENOMEM;
    if (epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &event)) {
        free(b);
        return errno;
    }
    b->fd = fd;
    b->rank = rank;
    b->asks = asks;
    b->next = m->branches;
    m->branches = b;
    if (!asks)
        send_known(m, b);
    return 0;
}

void mc_relay_remove(mc_monitor_t *m, mc_monitor_branch_t *b)
{
    mc_monitor_branch_t **at = &m->branches;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, b->fd, NULL); /* a forked process may hold it, too */
    close(b->fd);
    free(b);
}

bool mc_relay_has(const mc_monitor_t *m, int32_t rank)
{
    for (const mc_monitor_branch_t *b = m->branches; b; b = b->next)
        if (b->rank == rank && !b->asks)
            return true;
    return false;
}

/* Passing on ----------------------------------------------------------------------------------- */

static void send_to_all(const mc_monitor_t *m, const mc_news_t *news,
                        const mc_monitor_branch_t *but)
{
    for (const mc_monitor_branch_t *b = m->branches; b; b = b->next)
        if (b != but && !b->asks && !b->left)
            (void)mc_branch_send(b->fd, MC_FRAME_NEWS, news, sizeof *news);
}

/* Passes on what is on the board and was not passed on. */
static void pass_on(mc_monitor_t *m, const mc_monitor_branch_t *but)
{
    mc_news_t news;
    const uint32_t n = atomic_load(&m->board.n);
    if (!m->fatal_told && mc_news_fatal(&m->board, &news)) {
        m->fatal_told = true;
        send_to_all(m, &news, but);
    }
    while (mc_news_refusal(&m->board, &m->next_refusal, &news))
        send_to_all(m, &news, but);
    pthread_mutex_lock(&m->lock);
    m->n_told = n;
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
}

/* News from another rank. What ends the mesh goes on before this process learns of it, as it may end
 * then. */
static void take_news(mc_monitor_t *m, const mc_monitor_branch_t *from, const mc_news_t *news)
{
    if (!mc_news_is_new(&m->board, news))
        return;
    if (news->kind == MC_NEWS_FATAL) {
        m->fatal_told = true;
        send_to_all(m, news, from);
    }
    (void)mc_news_post(&m->board, news);
    pass_on(m, from);
}

void mc_relay_pass_on(mc_monitor_t *m)
{
    pass_on(m, NULL);
}

/* A rank has ended, or its connection, without a farewell. */
static void take_end(mc_monitor_t *m, const mc_monitor_branch_t *b, int32_t rank, int error)
{
    const mc_contact_t *const c = &m->contact[rank];
    mc_news_t news = {.kind = MC_NEWS_FATAL, .status = MESHCOLL_ERR_PEER, .rank = rank};
    const bool cut = error == ECONNRESET && mc_contact_lives(&m->own, c);
    news.gone = !cut;
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d (process %d on %.*s) ", (int)rank, (int)c->pid, MC_CONTACT_HOST,
                c->host);
    if (cut)
        mc_text_add(&text,
                    "was cut off from rank %d on %s: it lives, but the network between them was "
                    "down for longer than MESHCOLL_MONITOR says",
                    m->self.rank, m->own.host);
    else if (error == ESHUTDOWN || error == ECONNRESET)
        mc_text_add(&text, "ended without meshcoll_destroy: it was killed, crashed or left");
    else
        mc_text_add(&text,
                    "cannot be reached from rank %d on %s: %s; its machine, or the network "
                    "between them, is down",
                    m->self.rank, m->own.host, strerror(error));
    take_news(m, b, &news);
}

void mc_relay_miss(mc_monitor_t *m, int32_t rank)
{
    take_end(m, NULL, rank, ESHUTDOWN);
}

/* The barrier ---------------------------------------------------------------------------------- */

static void send_frame(const mc_monitor_t *m, uint32_t kind, bool up, bool down)
{
    for (const mc_monitor_branch_t *b = m->branches; b; b = b->next)
        if (!b->asks && (b->rank == m->parent ? up : down))
            (void)mc_branch_send(b->fd, kind, NULL, 0);
}

void mc_relay_up(const mc_monitor_t *m, uint32_t kind)
{
    send_frame(m, kind, true, false);
}

static void set(mc_monitor_t *m, bool *flag)
{
    pthread_mutex_lock(&m->lock);
    *flag = true;
    pthread_cond_broadcast(&m->told);
    pthread_mutex_unlock(&m->lock);
}

/* A frame of the barrier from the tree. */
static void take_signal(mc_monitor_t *m, const mc_monitor_branch_t *b, uint32_t kind)
{
    if (kind == MC_FRAME_READY && b->rank != m->parent)
        m->n_ready++;
    else if (kind == MC_FRAME_GO && b->rank == m->parent)
        mc_relay_release(m);
    else if (kind == MC_FRAME_TORN)
        mc_relay_tear(m);
}

void mc_relay_release(mc_monitor_t *m)
{
    const bool first = !m->joined;
    if (first) {
        m->n_ready = 0;
        m->sent_ready = false;
    }
    send_frame(m, MC_FRAME_GO, false, true);
    set(m, first ? &m->joined : &m->released);
}

void mc_relay_tear(mc_monitor_t *m)
{
    if (m->torn)
        return;
    send_frame(m, MC_FRAME_TORN, true, true);
    set(m, &m->torn);
}

/* Reading -------------------------------------------------------------------------------------- */

MC_APART static void answer(const mc_monitor_t *m, const mc_monitor_branch_t *b,
                            const mc_frame_t *frame)
{
    _Alignas(8) unsigned char out[MC_FRAME_MOST];
    uint32_t question;
    if (frame->bytes != sizeof question || !m->answer)
        return;
    memcpy(&question, frame + 1, sizeof question);
    const size_t bytes = m->answer(m->answer_context, question, out, sizeof out);
    (void)mc_branch_send(b->fd, MC_FRAME_ANSWER, out, bytes);
}

static void read_branch(mc_monitor_t *m, mc_monitor_branch_t *b)
{
    const mc_frame_t *frame;
    mc_news_t news;
    int error;
    while (!(error = mc_branch_read(b, &frame))) {
        if (frame->kind == MC_FRAME_LEAVES)
            b->left = true;
        else if (frame->kind == MC_FRAME_NEWS && !b->asks &&
                 mc_news_read(&news, frame + 1, frame->bytes) && news.rank >= 0 &&
                 news.rank < m->self.size)
            take_news(m, b, &news);
        else if (frame->kind < MC_FRAME_NEWS && !b->asks)
            take_signal(m, b, frame->kind);
        else if (frame->kind == MC_FRAME_QUESTION)
            answer(m, b, frame);
    }
    if (error == EAGAIN)
        return;
    if (!b->asks && !b->left)
        take_end(m, b, b->rank, error);
    mc_relay_remove(m, b);
}

void mc_relay_read(mc_monitor_t *m)
{
    enum { EVENTS = 16 };
    struct epoll_event event[EVENTS];
    uint64_t n_wakes;
    const int n = epoll_wait(m->epoll, event, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        if (event[i].data.ptr == &m->wake)
            (void)!read(m->wake, &n_wakes, sizeof n_wakes);
        else
            read_branch(m, event[i].data.ptr);
    }
}

void mc_relay_leave(const mc_monitor_t *m)
{
    for (const mc_monitor_branch_t *b = m->branches; b; b = b->next)
        (void)mc_branch_send(b->fd, MC_FRAME_LEAVES, NULL, 0);
}
