#include "job/monitor/monitor.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An address that does not answer holds up the next one for so long, as in RFC 8305. */
#define STAGGER_SECONDS 0.2
/* To see whether a process lives. */
enum { ENDING_MS = 50 };
#define LIVES_SECONDS 0.5

enum { BITS = 128 };

static mc_endpoint_t loopback(uint16_t family)
{
    mc_endpoint_t e = {.family = family};
    if (family == 6)
        e.at[15] = 1;
    else
        memcpy(e.at, (const unsigned char[]){127, 0, 0, 1}, 4);
    return e;
}

/* Listening ------------------------------------------------------------------------------------ */

int mc_contact_open(const mc_network_t *network, int *listener, mc_contact_t *own)
{
    mc_contact_t c = {.pid = (int32_t)getpid()};
    const mc_endpoint_t four = loopback(4), six = loopback(6);
    mc_endpoint_t bound;
    int fd = -1, failed = EADDRNOTAVAIL;
    gethostname(c.host, sizeof c.host - 1);
    if (network)
        failed = network->n > 0 ? mc_wire_listen_free(NULL, &fd) : failed;
    else if ((failed = mc_wire_listen_free(&four, &fd)))
        failed = mc_wire_listen_free(&six, &fd);
    if (!failed)
        failed = mc_wire_own(fd, &bound);
    if (failed) {
        if (fd >= 0)
            close(fd);
        *own = c;
        return failed;
    }
    c.port = bound.port;
    c.network = network ? *network : (mc_network_t){.n = 1, .at = {loopback(bound.family)}};
    *listener = fd;
    *own = c;
    return 0;
}

/* Connecting ----------------------------------------------------------------------------------- */

static int common_bits(const mc_endpoint_t *a, const mc_endpoint_t *b)
{
    int n = 0;
    if (a->family != b->family)
        return -1;
    while (n < BITS && !((a->at[n / 8] ^ b->at[n / 8]) >> (7 - n % 8) & 1))
        n++;
    return n;
}

/* How likely an address leads there: at which the bootstrap reached it, best; else the longer the prefix that it shares
 * with one of this process's, the better. This process's own address leads to no other network namespace. */
static int likelihood(const mc_network_t *own, const mc_network_t *to, uint32_t i)
{
    int most = -1;
    for (uint32_t k = 0; k < own->n; k++) {
        const int n = common_bits(&own->at[k], &to->at[i]);
        if (n == BITS)
            return -2;
        most = n > most ? n : most;
    }
    return to->reached && i == 0 ? BITS : most;
}

/* Addresses in the order of their likelihood, without those that lead elsewhere. */
typedef struct {
    mc_endpoint_t at[MC_NETWORK_ADDRESSES + 1];
    int n;
} goals_t;

static goals_t order(const mc_contact_t *own, const mc_contact_t *to)
{
    goals_t g = {.n = 0};
    int rank[MC_NETWORK_ADDRESSES + 1] = {0};
    const mc_network_t *const w = &to->network;
    const uint32_t n = w->n < MC_NETWORK_ADDRESSES ? w->n : MC_NETWORK_ADDRESSES;
    if (w->space == own->network.space && n > 0) {
        g.at[g.n++] = loopback(w->at[0].family);
        return g;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int l = likelihood(&own->network, w, i);
        int at = l == -2 ? -1 : g.n++;
        if (at < 0)
            continue;
        for (; at > 0 && rank[at - 1] < l; at--) {
            rank[at] = rank[at - 1];
            g.at[at] = g.at[at - 1];
        }
        rank[at] = l;
        g.at[at] = w->at[i];
    }
    return g;
}

/* Attempts under way, in the order of their beginning. */
typedef struct {
    struct pollfd poll[MC_NETWORK_ADDRESSES + 1];
    int n, failed; /* `failed`: of the last that did */
} attempts_t;

static void begin(attempts_t *a, mc_endpoint_t to, uint16_t port)
{
    int fd;
    to.port = port;
    const int failed = mc_wire_begin_connect(&to, &fd);
    if (failed)
        a->failed = failed;
    else
        a->poll[a->n++] = (struct pollfd){.fd = fd, .events = POLLOUT};
}

/* Looks after attempts that have ended, one way or the other; returns a connection, or -1. */
static int settle(attempts_t *a, mc_contact_accept_t accept, void *context)
{
    for (int i = 0; i < a->n;) {
        const int fd = a->poll[i].fd;
        if (!a->poll[i].revents) {
            i++;
            continue;
        }
        a->poll[i] = a->poll[--a->n];
        int failed = mc_wire_connected(fd);
        if (!failed)
            failed = accept(context, fd);
        if (!failed)
            return fd;
        a->failed = failed;
        close(fd);
    }
    return -1;
}

int mc_contact_connect(const mc_contact_t *own, const mc_contact_t *to, double seconds,
                       mc_contact_accept_t accept, void *context, int *fd)
{
    const goals_t goals = order(own, to);
    attempts_t a = {.failed = EHOSTUNREACH};
    const double end = mc_now() + seconds;
    double next = 0;
    int begun = 0, made = -1;
    while (made < 0 && (a.n > 0 || begun < goals.n) && mc_now() < end) {
        if (begun < goals.n && (a.n == 0 || mc_now() >= next)) {
            begin(&a, goals.at[begun++], to->port);
            next = mc_now() + STAGGER_SECONDS;
        }
        const double until = begun < goals.n && next < end ? next : end, left = until - mc_now();
        if (a.n > 0 && poll(a.poll, (nfds_t)a.n, left > 0 ? (int)(1e3 * left) + 1 : 0) > 0)
            made = settle(&a, accept, context);
    }
    if (a.n > 0)
        a.failed = ETIMEDOUT;
    while (a.n > 0)
        close(a.poll[--a.n].fd);
    if (made < 0)
        return a.failed;
    *fd = made;
    return 0;
}

static int accept_any(void *context, int fd)
{
    (void)context, (void)fd;
    return 0;
}

bool mc_contact_lives(const mc_contact_t *own, const mc_contact_t *of)
{
    int fd;
    /* until a process that ends has closed its listener, too */
    nanosleep(&(struct timespec){.tv_nsec = ENDING_MS * 1000000L}, NULL);
    if (mc_contact_connect(own, of, LIVES_SECONDS, accept_any, NULL, &fd))
        return false;
    close(fd);
    return true;
}
