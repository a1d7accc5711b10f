#include "runtime/monitor/contact.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 128 };

/* Listening ------------------------------------------------------------------------------------ */

static bool is_usable(const struct ifaddrs *a, int family, bool local)
{
    const unsigned up = IFF_UP | IFF_RUNNING; /* idle bridges lead nowhere */
    if (!a->ifa_addr || a->ifa_addr->sa_family != family || (a->ifa_flags & up) != up)
        return false;
    if (local != ((a->ifa_flags & IFF_LOOPBACK) != 0))
        return false;
    const struct sockaddr_in6 *const six = (const void *)a->ifa_addr;
    return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static void list_addresses(const struct ifaddrs *all, int family, bool local, mc_contact_t *own)
{
    for (const struct ifaddrs *a = all; a && own->n < MC_CONTACT_ENDPOINTS; a = a->ifa_next) {
        struct sockaddr_storage address = {0};
        if (!is_usable(a, family, local))
            continue;
        memcpy(&address, a->ifa_addr,
               family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        own->at[own->n++] = mc_wire_endpoint(&address);
    }
}

/* All of this process's addresses of one family: that of IPv4 where it has any. */
static int find_addresses(bool local, mc_contact_t *own)
{
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return errno;
    list_addresses(all, AF_INET, local, own);
    if (own->n == 0)
        list_addresses(all, AF_INET6, local, own);
    freeifaddrs(all);
    return own->n > 0 ? 0 : EADDRNOTAVAIL;
}

/* Listens on the only address, or on any. */
static int listen_on(const mc_contact_t *own, int *listener)
{
    static const struct sockaddr_storage none;
    struct sockaddr_storage address;
    mc_endpoint_t at = own->at[0];
    if (own->n > 1)
        memset(at.at, 0, sizeof at.at);
    const int failed = mc_wire_address(&at, &none, &address);
    return failed ? failed : mc_wire_listen_free(&address, listener);
}

int mc_contact_open(bool local, int *listener, mc_contact_t *own)
{
    mc_contact_t c = {.pid = (int32_t)getpid()};
    mc_endpoint_t bound;
    gethostname(c.host, sizeof c.host - 1);
    int fd = -1, failed = find_addresses(local, &c);
    if (!failed)
        failed = listen_on(&c, &fd);
    if (!failed)
        failed = mc_wire_listening(fd, &bound);
    if (failed) {
        if (fd >= 0)
            close(fd);
        c.n = 0;
        *own = c;
        return failed;
    }
    for (uint32_t i = 0; i < c.n; i++)
        c.at[i].port = bound.port;
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

/* How likely an address leads there: the longer the prefix that it shares with one of this process's,
 * the better. This process's own address seldom leads to another machine (but machines that share no memory
 * may be containers that share a network). */
static int likelihood(const mc_contact_t *own, const mc_endpoint_t *to, bool same_machine)
{
    int most = -1;
    for (uint32_t i = 0; i < own->n; i++) {
        const int n = common_bits(&own->at[i], to);
        if (n == BITS && !same_machine)
            return 0;
        most = n > most ? n : most;
    }
    return most;
}

static int try_endpoint(const mc_endpoint_t *to, double seconds, mc_contact_accept_t accept,
                        void *context, int *fd)
{
    static const struct sockaddr_storage none;
    struct sockaddr_storage address;
    int made, failed = mc_wire_address(to, &none, &address);
    if (!failed)
        failed = mc_wire_connect(&address, mc_now() + seconds, &made);
    if (failed)
        return failed;
    failed = accept(context, made);
    if (failed) {
        close(made);
        return failed;
    }
    *fd = made;
    return 0;
}

static mc_endpoint_t loopback(const mc_endpoint_t *like)
{
    mc_endpoint_t e = {.family = like->family, .port = like->port};
    if (e.family == 6)
        e.at[15] = 1;
    else
        memcpy(e.at, (const unsigned char[]){127, 0, 0, 1}, 4);
    return e;
}

int mc_contact_connect(const mc_contact_t *own, const mc_contact_t *to, bool same_machine,
                       double seconds, mc_contact_accept_t accept, void *context, int *fd)
{
    const uint32_t n = to->n < MC_CONTACT_ENDPOINTS ? to->n : MC_CONTACT_ENDPOINTS;
    int failed = EHOSTUNREACH;
    bool tried[MC_CONTACT_ENDPOINTS] = {false};
    if (n > 0 && same_machine) {
        const mc_endpoint_t e = loopback(&to->at[0]);
        failed = try_endpoint(&e, seconds, accept, context, fd);
    }
    for (uint32_t k = 0; k < n && failed; k++) {
        int best = -1, most = -2;
        for (uint32_t i = 0; i < n; i++) {
            const int l = tried[i] ? -2 : likelihood(own, &to->at[i], same_machine);
            if (l > most) {
                most = l;
                best = (int)i;
            }
        }
        if (best < 0)
            break;
        tried[best] = true;
        failed = try_endpoint(&to->at[best], seconds, accept, context, fd);
    }
    return failed;
}
