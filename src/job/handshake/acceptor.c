#include "job/handshake/acceptor.h"

#include "base/system/descriptor.h"
#include "base/system/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Lines on stderr; a port scan in a loop must not fill a log. */
enum { MOST_LINES = 16 };

/* Sleeps at most. */
#define LATE_SECONDS 0.2
#define IDLE_SECONDS 60.0

void mc_acceptor_open(mc_acceptor_t *acceptor, const mc_self_t *self, int listener)
{
    acceptor->self = self;
    acceptor->listener = listener;
    acceptor->n = acceptor->n_lines = 0;
    acceptor->n_spares = 0;
    acceptor->said = 0;
    acceptor->forgives = false;
}

int mc_acceptor_reserve(mc_acceptor_t *acceptor, int n)
{
    while (acceptor->n_spares < n && acceptor->n_spares < MC_ACCEPTOR_SPARES) {
        const int fd = mc_descriptor(fcntl(acceptor->listener, F_DUPFD_CLOEXEC, 0));
        if (fd < 0)
            return errno;
        acceptor->spare[acceptor->n_spares++] = fd;
    }
    return 0;
}

bool mc_acceptor_spend(mc_acceptor_t *acceptor)
{
    if (acceptor->n_spares == 0)
        return false;
    close(acceptor->spare[--acceptor->n_spares]);
    return true;
}

void mc_acceptor_close(mc_acceptor_t *acceptor)
{
    while (mc_acceptor_spend(acceptor)) {}
    for (int i = 0; i < acceptor->n; i++)
        close(acceptor->pending[i].fd);
    acceptor->n = 0;
    if (acceptor->listener >= 0)
        close(acceptor->listener);
    acceptor->listener = -1;
}

static void remove_pending(mc_acceptor_t *acceptor, int i)
{
    memmove(&acceptor->pending[i], &acceptor->pending[i + 1],
            (size_t)(--acceptor->n - i) * sizeof acceptor->pending[0]);
}

static void say_refused(mc_acceptor_t *acceptor, const char *name, const char *why)
{
    if (acceptor->n_lines++ < MOST_LINES)
        mc_log(MC_LOG_WARN, "rank %d refused a connection from %s: %s%s", acceptor->self->rank,
               name, why, acceptor->n_lines == MOST_LINES ? "; further ones are not reported" : "");
}

/* In the middle of a greeting. */
static void drop(mc_acceptor_t *acceptor, int i, const char *why)
{
    say_refused(acceptor, acceptor->pending[i].name, why);
    close(acceptor->pending[i].fd);
    remove_pending(acceptor, i);
}

void mc_acceptor_refuse(mc_acceptor_t *acceptor, const mc_pending_t *pending, mc_answer_code_t code)
{
    char why[160];
    mc_answer_t answer = {.code = code};
    (void)mc_handshake_answer(acceptor->self, pending->fd, &pending->challenge, &pending->hello,
                              &answer);
    if (code == MC_ANSWER_OTHER_JOB || code == MC_ANSWER_VERSION)
        snprintf(why, sizeof why, "%s", mc_answer_text(code));
    else
        snprintf(why, sizeof why, "as rank %d: %s", (int)pending->hello.rank, mc_answer_text(code));
    if (code != MC_ANSWER_LATER && !(acceptor->said >> code & 1))
        say_refused(acceptor, pending->name, why);
    if (code == MC_ANSWER_OTHER_JOB || code == MC_ANSWER_USER)
        acceptor->said |= 1U << code;
    close(pending->fd);
}

static void admit(mc_acceptor_t *acceptor)
{
    const int fd = mc_wire_accept(acceptor->listener);
    if (fd < 0) {
        if ((errno == EMFILE || errno == ENFILE) && !mc_acceptor_spend(acceptor))
            (void)poll(NULL, 0, 20); /* until a greeting ends */
        return;
    }
    if (acceptor->n == MC_ACCEPTOR_PENDING) {
        close(acceptor->pending[0].fd);
        remove_pending(acceptor, 0);
    }
    mc_pending_t *const v = &acceptor->pending[acceptor->n];
    *v = (mc_pending_t){.fd = fd, .deadline = mc_now() + MC_HANDSHAKE_SECONDS};
    mc_wire_print_other(fd, v->name);
    if (mc_handshake_challenge(fd, &v->challenge))
        close(fd);
    else
        acceptor->n++;
}

/* Reads on; true: *pending is a rank of this job. Without one, the connection may be gone. */
static bool read_hello(mc_acceptor_t *acceptor, int i, mc_pending_t *pending)
{
    mc_pending_t *const v = &acceptor->pending[i];
    const int failed = mc_wire_recv_on(v->fd, &v->hello, sizeof v->hello, &v->got, 0, -1);
    if (failed && failed != ETIMEDOUT && v->got == 0 && acceptor->forgives) {
        close(v->fd);
        remove_pending(acceptor, i);
        return false;
    }
    /* whoever does not start with the magic will not send the rest either */
    if (v->got >= sizeof v->hello.magic && !mc_handshake_greets(&v->hello)) {
        drop(acceptor, i, "it sent no greeting of meshcoll");
        return false;
    }
    if (failed && failed != ETIMEDOUT)
        drop(acceptor, i, "it closed without a greeting");
    if (failed)
        return false;
    const mc_pending_t complete = *v;
    remove_pending(acceptor, i);
    mc_answer_code_t code =
        mc_handshake_judge(acceptor->self, &complete.challenge, &complete.hello);
    if (code == MC_ANSWER_OK && mc_handshake_is_stranger(acceptor->self, complete.fd))
        code = MC_ANSWER_USER;
    if (code != MC_ANSWER_OK) {
        mc_acceptor_refuse(acceptor, &complete, code);
        return false;
    }
    *pending = complete;
    return true;
}

static void drop_late(mc_acceptor_t *acceptor)
{
    const double now = mc_now();
    for (int i = acceptor->n - 1; i >= 0; i--)
        if (now >= acceptor->pending[i].deadline)
            drop(acceptor, i, "it sent no whole greeting in time");
}

/* All that can happen, as poll(2) wants it. */
static int poll_all(const mc_acceptor_t *acceptor, double deadline, const struct pollfd *watched,
                    int n_watched, struct pollfd *p)
{
    int n = 0;
    p[n++] = (struct pollfd){.fd = acceptor->listener, .events = POLLIN};
    for (int i = 0; i < n_watched; i++)
        p[n++] = watched[i];
    for (int i = 0; i < acceptor->n; i++)
        p[n++] = (struct pollfd){.fd = acceptor->pending[i].fd, .events = POLLIN};
    /* who is greeting may be late */
    const double left = deadline - mc_now(), most = acceptor->n > 0 ? LATE_SECONDS : IDLE_SECONDS;
    const int ready =
        poll(p, (nfds_t)n, left <= 0 ? 0 : (int)(1e3 * (left < most ? left : most)) + 1);
    return ready < 0 && errno != EINTR ? errno : 0;
}

int mc_acceptor_wait(mc_acceptor_t *acceptor, double deadline, const struct pollfd *watched,
                     int n_watched, int *which, mc_pending_t *pending)
{
    struct pollfd p[1 + MC_ACCEPTOR_WATCHED + MC_ACCEPTOR_PENDING];
    for (;;) {
        const int n = acceptor->n, failed = poll_all(acceptor, deadline, watched, n_watched, p);
        if (failed)
            return failed;
        for (int i = 0; i < n_watched; i++)
            if (p[1 + i].revents) {
                *which = i;
                return ECANCELED;
            }
        /* from the last on, as those that are done are removed */
        for (int i = n - 1; i >= 0; i--)
            if (p[1 + n_watched + i].revents && read_hello(acceptor, i, pending))
                return 0;
        drop_late(acceptor);
        if (p[0].revents)
            admit(acceptor);
        if (mc_now() >= deadline)
            return ETIMEDOUT;
    }
}
