#include "runtime/handshake/network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Interfaces ----------------------------------------------------------------------------------- */

/* CARD: with hardware behind it. */
typedef enum { CARD, OTHER, BRIDGE, KINDS } kind_t;

static bool has_file(const char *name, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, file);
    return access(path, F_OK) == 0;
}

static kind_t kind_of(const struct ifaddrs *a)
{
    const char *const name = a->ifa_name;
    return has_file(name, "bridge") ? BRIDGE : has_file(name, "device") ? CARD : OTHER;
}

/* An address of IPv4 or IPv6 by which others may reach this process. */
static bool is_usable(const struct ifaddrs *a)
{
    const unsigned up = IFF_UP | IFF_RUNNING; /* idle bridges lead nowhere */
    if (!a->ifa_addr || (a->ifa_flags & up) != up || (a->ifa_flags & IFF_LOOPBACK))
        return false;
    const struct sockaddr_in6 *const six = (const void *)a->ifa_addr;
    return a->ifa_addr->sa_family == AF_INET ||
           (a->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

static mc_endpoint_t endpoint_of(const struct sockaddr *a)
{
    struct sockaddr_storage address = {0};
    memcpy(&address, a,
           a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    mc_endpoint_t e = mc_wire_endpoint(&address);
    e.port = 0;
    return e;
}

bool mc_network_is_same(const mc_endpoint_t *a, const mc_endpoint_t *b)
{
    return a->family == b->family && memcmp(a->at, b->at, sizeof a->at) == 0;
}

/* Telling -------------------------------------------------------------------------------------- */

static bool has(const mc_network_t *w, const mc_endpoint_t *e)
{
    uint32_t i = 0;
    while (i < w->n && !mc_network_is_same(&w->at[i], e))
        i++;
    return i < w->n;
}

static void add(mc_network_t *w, const mc_endpoint_t *e)
{
    if (w->n < MC_NETWORK_ADDRESSES && !has(w, e))
        w->at[w->n++] = *e;
}

/* The address from which packets leave for hosts of no known network (RFC 5737): that of the default route. */
static void add_default(mc_network_t *w)
{
    struct sockaddr_storage to, from;
    static const struct sockaddr_storage none;
    const mc_endpoint_t outside = {.family = 4, .at = {192, 0, 2, 1}};
    if (mc_wire_address(&outside, &none, &to) || mc_wire_source(&to, &from))
        return;
    mc_endpoint_t e = mc_wire_endpoint(&from);
    e.port = 0;
    if (!mc_wire_is_loopback(&e))
        add(w, &e);
}

void mc_network_find(uint64_t space, const mc_endpoint_t *reached, mc_network_t *network)
{
    mc_network_t w = {.space = space};
    struct ifaddrs *all;
    if (reached && !mc_wire_is_loopback(reached)) {
        w.reached = w.n = 1;
        w.at[0] = *reached;
        w.at[0].port = 0;
    }
    add_default(&w);
    if (getifaddrs(&all) == 0) {
        for (int pass = 0; pass < 2 * KINDS; pass++) /* IPv4 first */
            for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
                if (!is_usable(a) || (int)kind_of(a) != pass % KINDS ||
                    (a->ifa_addr->sa_family == AF_INET) != (pass < KINDS))
                    continue;
                const mc_endpoint_t e = endpoint_of(a->ifa_addr);
                add(&w, &e);
            }
        freeifaddrs(all);
    }
    *network = w;
}
