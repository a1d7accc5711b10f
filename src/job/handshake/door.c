#include "job/handshake/door.h"

#include "base/system/descriptor.h"

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

void mc_door_open(mc_door_t *door, const mc_self_t *self, int listener)
{
    door->self = self;
    door->listener = listener;
    door->n = door->n_lines = 0;
    door->n_spares = 0;
    door->said = 0;
    door->forgives = false;
}

int mc_door_reserve(mc_door_t *door, int n)
{
    while (door->n_spares < n && door->n_spares < MC_DOOR_SPARES) {
        const int fd = mc_descriptor(fcntl(door->listener, F_DUPFD_CLOEXEC, 0));
        if (fd < 0)
            return errno;
        door->spare[door->n_spares++] = fd;
    }
    return 0;
}

bool mc_door_spend(mc_door_t *door)
{
    if (door->n_spares == 0)
        return false;
    close(door->spare[--door->n_spares]);
    return true;
}

void mc_door_close(mc_door_t *door)
{
    while (mc_door_spend(door)) {}
    for (int i = 0; i < door->n; i++)
        close(door->visitor[i].fd);
    door->n = 0;
    if (door->listener >= 0)
        close(door->listener);
    door->listener = -1;
}

static void remove_visitor(mc_door_t *door, int i)
{
    memmove(&door->visitor[i], &door->visitor[i + 1],
            (size_t)(--door->n - i) * sizeof door->visitor[0]);
}

static void say_refused(mc_door_t *door, const char *name, const char *why)
{
    if (door->n_lines++ < MOST_LINES)
        fprintf(stderr, "meshcoll: rank %d refused a connection from %s: %s%s\n", door->self->rank,
                name, why, door->n_lines == MOST_LINES ? "; further ones are not reported" : "");
}

/* In the middle of a greeting. */
static void drop(mc_door_t *door, int i, const char *why)
{
    say_refused(door, door->visitor[i].name, why);
    close(door->visitor[i].fd);
    remove_visitor(door, i);
}

void mc_door_refuse(mc_door_t *door, const mc_visitor_t *visitor, mc_answer_code_t code)
{
    char why[160];
    mc_answer_t answer = {.code = code};
    (void)mc_handshake_answer(door->self, visitor->fd, &visitor->challenge, &visitor->hello,
                              &answer);
    if (code == MC_ANSWER_OTHER_JOB || code == MC_ANSWER_VERSION)
        snprintf(why, sizeof why, "%s", mc_answer_text(code));
    else
        snprintf(why, sizeof why, "as rank %d: %s", (int)visitor->hello.rank, mc_answer_text(code));
    if (code != MC_ANSWER_LATER && !(door->said >> code & 1))
        say_refused(door, visitor->name, why);
    if (code == MC_ANSWER_OTHER_JOB || code == MC_ANSWER_USER)
        door->said |= 1U << code;
    close(visitor->fd);
}

static void admit(mc_door_t *door)
{
    const int fd = mc_wire_accept(door->listener);
    if (fd < 0) {
        if ((errno == EMFILE || errno == ENFILE) && !mc_door_spend(door))
            (void)poll(NULL, 0, 20); /* until a greeting ends */
        return;
    }
    if (door->n == MC_VISITORS) {
        close(door->visitor[0].fd);
        remove_visitor(door, 0);
    }
    mc_visitor_t *const v = &door->visitor[door->n];
    *v = (mc_visitor_t){.fd = fd, .deadline = mc_now() + MC_HANDSHAKE_SECONDS};
    mc_wire_print_peer(fd, v->name);
    if (mc_handshake_challenge(fd, &v->challenge))
        close(fd);
    else
        door->n++;
}

/* Reads on; true: *visitor is a rank of this job. Without one, the visitor may be gone. */
static bool listen_to(mc_door_t *door, int i, mc_visitor_t *visitor)
{
    mc_visitor_t *const v = &door->visitor[i];
    const ssize_t n =
        recv(v->fd, (char *)&v->hello + v->got, sizeof v->hello - v->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 && v->got == 0 && door->forgives) {
        close(v->fd);
        remove_visitor(door, i);
        return false;
    }
    if (n <= 0) {
        drop(door, i, "it closed without a greeting");
        return false;
    }
    v->got += (size_t)n;
    /* whoever does not start with the magic will not send the rest either */
    if (v->got >= sizeof v->hello.magic && !mc_handshake_greets(&v->hello)) {
        drop(door, i, "it sent no greeting of meshcoll");
        return false;
    }
    if (v->got < sizeof v->hello)
        return false;
    const mc_visitor_t complete = *v;
    remove_visitor(door, i);
    mc_answer_code_t code = mc_handshake_judge(door->self, &complete.challenge, &complete.hello);
    if (code == MC_ANSWER_OK && mc_handshake_is_stranger(door->self, complete.fd))
        code = MC_ANSWER_USER;
    if (code != MC_ANSWER_OK) {
        mc_door_refuse(door, &complete, code);
        return false;
    }
    *visitor = complete;
    return true;
}

static void drop_late(mc_door_t *door)
{
    const double now = mc_now();
    for (int i = door->n - 1; i >= 0; i--)
        if (now >= door->visitor[i].deadline)
            drop(door, i, "it sent no whole greeting in time");
}

/* All that can happen, as poll(2) wants it. */
static int poll_all(const mc_door_t *door, double deadline, const struct pollfd *watched,
                    int n_watched, struct pollfd *p)
{
    int n = 0;
    p[n++] = (struct pollfd){.fd = door->listener, .events = POLLIN};
    for (int i = 0; i < n_watched; i++)
        p[n++] = watched[i];
    for (int i = 0; i < door->n; i++)
        p[n++] = (struct pollfd){.fd = door->visitor[i].fd, .events = POLLIN};
    /* who is greeting may be late */
    const double left = deadline - mc_now(), most = door->n > 0 ? LATE_SECONDS : IDLE_SECONDS;
    const int ready =
        poll(p, (nfds_t)n, left <= 0 ? 0 : (int)(1e3 * (left < most ? left : most)) + 1);
    return ready < 0 && errno != EINTR ? errno : 0;
}

int mc_door_wait(mc_door_t *door, double deadline, const struct pollfd *watched, int n_watched,
                 int *which, mc_visitor_t *visitor)
{
    struct pollfd p[1 + MC_DOOR_WATCHED + MC_VISITORS];
    for (;;) {
        const int n = door->n, failed = poll_all(door, deadline, watched, n_watched, p);
        if (failed)
            return failed;
        for (int i = 0; i < n_watched; i++)
            if (p[1 + i].revents) {
                *which = i;
                return ECANCELED;
            }
        /* from the last on, as those that are done are removed */
        for (int i = n - 1; i >= 0; i--)
            if (p[1 + n_watched + i].revents && listen_to(door, i, visitor))
                return 0;
        drop_late(door);
        if (p[0].revents)
            admit(door);
        if (mc_now() >= deadline)
            return ETIMEDOUT;
    }
}
