/* The ranks of `meshcoll run` while they run: their output, their end, and signals for them. */
#include "tools/run/run_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Output --------------------------------------------------------------------------------------- */

/* A line in one write, so that the ranks' lines do not mix. */
static void write_line(const mc_tagged_t *s, char *line, size_t bytes)
{
    char tag[32], end[] = "\n";
    struct iovec part[] = {
        {tag, (size_t)snprintf(tag, sizeof tag, "[%d] ", s->rank)}, {line, bytes}, {end, 1}};
    for (int at = 0; at < (int)MC_COUNT(part);) {
        const ssize_t n = writev(s->to, part + at, (int)MC_COUNT(part) - at);
        if (n < 0 && errno != EINTR)
            return;
        size_t written = n > 0 ? (size_t)n : 0;
        for (; at < (int)MC_COUNT(part) && written >= part[at].iov_len; at++)
            written -= part[at].iov_len;
        if (written > 0) {
            part[at].iov_base = (char *)part[at].iov_base + written;
            part[at].iov_len -= written;
        }
    }
}

static void write_lines(mc_tagged_t *s, bool all)
{
    char *at = s->line;
    size_t left = s->n;
    for (char *end; (end = memchr(at, '\n', left)); at = end + 1) {
        write_line(s, at, (size_t)(end - at));
        left -= (size_t)(end + 1 - at);
    }
    if (left > 0 && (all || left == sizeof s->line)) {
        write_line(s, at, left);
        left = 0;
    }
    memmove(s->line, at, left);
    s->n = left;
}

/* Reads what there is and writes whole lines; at the end of the stream also the last one. */
static void read_stream(mc_tagged_t *stream)
{
    const ssize_t n = read(stream->from, stream->line + stream->n, sizeof stream->line - stream->n);
    if (n < 0 && errno == EINTR)
        return;
    stream->n += n > 0 ? (size_t)n : 0;
    write_lines(stream, n <= 0);
    if (n <= 0) {
        close(stream->from);
        stream->from = -1;
    }
}

/* Ranks ---------------------------------------------------------------------------------------- */

typedef struct {
    const mc_launch_t *run;
    mc_child_t *child;
    int32_t n, alive;
    int exit;       /* 0: no rank has failed */
    double kill_at; /* 0: no rank is being stopped */
    bool killed;
} watch_t;

static void signal_all(const watch_t *w, int signal)
{
    for (int32_t i = 0; i < w->n; i++)
        if (w->child[i].pid)
            kill(-w->child[i].pid, signal);
}

static void stop_others(watch_t *w)
{
    if (w->kill_at > 0)
        return;
    signal_all(w, SIGTERM);
    signal_all(w, SIGCONT);
    w->kill_at = mc_now() + w->run->grace;
}

/* The first failure is told; the others follow from it, or from being stopped. */
static void note_end(watch_t *w, int32_t rank, int how)
{
    const bool by_signal = WIFSIGNALED(how);
    const int status = by_signal ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    if (status == 0 || w->exit)
        return;
    w->exit = status;
    char others[48] = "";
    if (w->alive > 0)
        snprintf(others, sizeof others, "; stopping %d other%s", w->alive,
                 w->alive == 1 ? "" : "s");
    if (by_signal)
        fprintf(stderr, "meshcoll run: rank %d (process %d) was ended by signal %d, %s%s\n", rank,
                (int)w->child[rank].pid, WTERMSIG(how), strsignal(WTERMSIG(how)), others);
    else
        fprintf(stderr, "meshcoll run: rank %d (process %d) exited with status %d%s\n", rank,
                (int)w->child[rank].pid, status, others);
}

static void reap(watch_t *w)
{
    int how;
    for (int32_t i = 0; i < w->n; i++) {
        mc_child_t *const c = &w->child[i];
        if (!c->pid || waitpid(c->pid, &how, WNOHANG) != c->pid)
            continue;
        w->alive--;
        note_end(w, i, how);
        /* what a job that failed started and left behind */
        if (w->exit)
            kill(-c->pid, SIGKILL);
        c->pid = 0;
        if (w->exit)
            stop_others(w);
    }
}

static void read_signals(watch_t *w, int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(w);
        else
            signal_all(w, (int)info.ssi_signo);
    }
}

static int32_t poll_streams(const watch_t *w, struct pollfd *p, mc_tagged_t **stream)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n; i++)
        for (int k = 0; k < 2 && w->child[i].stream; k++)
            if (w->child[i].stream[k].from >= 0) {
                stream[n] = &w->child[i].stream[k];
                p[n] = (struct pollfd){.fd = stream[n]->from, .events = POLLIN};
                n++;
            }
    return n;
}

static int milliseconds_left(const watch_t *w)
{
    const double left = w->kill_at - mc_now();
    return w->kill_at == 0 || w->killed ? -1 : left > 0 ? (int)(1e3 * left) + 1 : 0;
}

static void step(watch_t *w, int signals, struct pollfd *p, mc_tagged_t **stream)
{
    const int32_t n = poll_streams(w, p + 1, stream);
    p[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    const int ready = poll(p, (nfds_t)n + 1, milliseconds_left(w));
    for (int32_t i = 0; ready > 0 && i < n; i++)
        if (p[1 + i].revents)
            read_stream(stream[i]);
    if (ready > 0 && p[0].revents)
        read_signals(w, signals);
    if (w->kill_at > 0 && !w->killed && mc_now() >= w->kill_at) {
        signal_all(w, SIGKILL);
        w->killed = true;
    }
}

/* What the ranks wrote last. A process that they left behind may hold a stream open: no wait. */
static void drain(const watch_t *w, struct pollfd *p, mc_tagged_t **stream)
{
    for (int32_t n; (n = poll_streams(w, p, stream)) > 0 && poll(p, (nfds_t)n, 0) > 0;)
        for (int32_t i = 0; i < n; i++)
            if (p[i].revents)
                read_stream(stream[i]);
}

int mc_run_watch(const mc_launch_t *run, mc_child_t *children, int signals)
{
    watch_t w = {.run = run, .child = children, .n = run->ranks, .alive = run->ranks};
    const size_t most = 2 * (size_t)run->ranks + 1;
    struct pollfd *const p = calloc(most, sizeof *p);
    mc_tagged_t **const stream = calloc(most, sizeof(mc_tagged_t *));
    if (!p || !stream) {
        signal_all(&w, SIGKILL);
        w.exit = mc_fail_memory("the output of ranks");
    } else {
        while (w.alive > 0)
            step(&w, signals, p, stream);
        drain(&w, p, stream);
    }
    free(stream);
    free(p);
    return w.exit;
}
