#include "job/network/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Interfaces ----------------------------------------------------------------------------------- */

/* "eth0:1" is another address of eth0. */
static void name_of(const struct ifaddrs *a, char name[IF_NAMESIZE])
{
    snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(a->ifa_name, ":"), a->ifa_name);
}

static bool is_bridge(const struct ifaddrs *a)
{
    char name[IF_NAMESIZE], path[64];
    name_of(a, name);
    snprintf(path, sizeof path, "/sys/class/net/%s/bridge", name);
    return access(path, F_OK) == 0;
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

/* The address from which packets leave for hosts of no known network (RFC 5737, RFC 3849): that of the default
 * route. */
static void add_default(mc_network_t *w)
{
    static const mc_endpoint_t outside[] = {
        {.family = 4, .at = {192, 0, 2, 1}},
        {.family = 6, .at = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}}};
    mc_endpoint_t e;
    for (size_t i = 0; i < MC_COUNT(outside); i++)
        if (!mc_wire_source(&outside[i], &e) && !mc_wire_is_loopback(&e)) {
            add(w, &e);
            return;
        }
}

void mc_network_find(uint64_t space, const mc_endpoint_t *reached, mc_network_t *network)
{
    mc_network_t w = {.space = space};
    struct ifaddrs *all;
    if (reached && !mc_wire_is_loopback(reached)) {
        w.reached = w.n = 1;
        w.at[0] = *reached;
        w.at[0].port = 0;
        w.at[0].scope = 0;
    }
    add_default(&w);
    if (getifaddrs(&all) == 0) {
        for (int pass = 0; pass < 4; pass++) /* bridges last; of each, IPv4 first */
            for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
                if (!is_usable(a) || is_bridge(a) != pass / 2 ||
                    (a->ifa_addr->sa_family == AF_INET6) != pass % 2)
                    continue;
                const mc_endpoint_t e = mc_wire_endpoint(a->ifa_addr);
                add(&w, &e);
            }
        freeifaddrs(all);
    }
    *network = w;
}

/* Subnets -------------------------------------------------------------------------------------- */

enum { SUBNET = sizeof " /128" + INET6_ADDRSTRLEN };

/* "": where a third host has no address, it joins two ports, and says nothing of the network. */
static void print_subnet(const struct ifaddrs *a, char subnet[SUBNET])
{
    char printed[INET6_ADDRSTRLEN];
    const mc_endpoint_t mask = mc_wire_endpoint(a->ifa_netmask);
    mc_endpoint_t net = mc_wire_endpoint(a->ifa_addr);
    int bits = 0;
    for (size_t i = 0; i < sizeof net.at; i++) {
        net.at[i] &= mask.at[i];
        bits += __builtin_popcount(mask.at[i]);
    }
    *subnet = '\0';
    if (bits + 1 < (net.family == 6 ? 128 : 32) &&
        inet_ntop(net.family == 6 ? AF_INET6 : AF_INET, net.at, printed, sizeof printed))
        snprintf(subnet, SUBNET, " %s/%d", printed, (uint8_t)bits); /* at most 128 */
}

void mc_network_subnets(const char *device, mc_text_t *text)
{
    char name[IF_NAMESIZE], subnet[SUBNET], last[SUBNET], next[SUBNET] = "";
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    do {
        memcpy(last, next, sizeof last);
        *next = '\0';
        for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
            name_of(a, name);
            if (!is_usable(a) || !a->ifa_netmask || strcmp(name, device) != 0)
                continue;
            print_subnet(a, subnet);
            if (strcmp(subnet, last) > 0 && (!*next || strcmp(subnet, next) < 0))
                memcpy(next, subnet, sizeof next);
        }
        mc_text_add(text, "%s", next);
    } while (*next);
    freeifaddrs(all);
}

/* Choosing ------------------------------------------------------------------------------------- */

typedef struct {
    const char *networks;
    size_t stride;
    int32_t n;
    const mc_network_t *own;
    const struct ifaddrs *all;
    char *devices;
} choice_t;

static const mc_network_t *network_of(const choice_t *c, int32_t rank)
{
    return (const void *)(c->networks + (size_t)rank * c->stride);
}

/* The interface that has an address, of all or of those that others reach; NULL: none. */
static const struct ifaddrs *find_interface(const choice_t *c, const mc_endpoint_t *e, bool usable)
{
    for (const struct ifaddrs *a = c->all; a; a = a->ifa_next) {
        if (!a->ifa_addr || (usable && !is_usable(a)) ||
            (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
            continue;
        const mc_endpoint_t own = mc_wire_endpoint(a->ifa_addr);
        if (mc_network_is_same(&own, e))
            return a;
    }
    return NULL;
}

static void add_device(const choice_t *c, const struct ifaddrs *a)
{
    char name[IF_NAMESIZE];
    name_of(a, name);
    const size_t length = strlen(name), used = strlen(c->devices);
    for (const char *at = c->devices; (at = strstr(at, name)); at += length)
        if ((at == c->devices || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return;
    if (used + length + 2 <= MC_NETWORK_DEVICES)
        snprintf(c->devices + used, MC_NETWORK_DEVICES - used, "%s%s", used ? "," : "", name);
}

/* By the interface from which packets leave for it. An address that this machine has as well leads nowhere else. */
static void add_route(const choice_t *c, const mc_network_t *to)
{
    mc_endpoint_t source;
    for (uint32_t i = 0; i < to->n; i++) {
        const bool leads =
            !find_interface(c, &to->at[i], false) && !mc_wire_source(&to->at[i], &source);
        const struct ifaddrs *const a = leads ? find_interface(c, &source, true) : NULL;
        if (a) {
            add_device(c, a);
            return;
        }
    }
}

static bool is_in_subnet(const struct ifaddrs *a, const mc_endpoint_t *e)
{
    if (!a->ifa_netmask)
        return false;
    const mc_endpoint_t own = mc_wire_endpoint(a->ifa_addr);
    const mc_endpoint_t m = mc_wire_endpoint(a->ifa_netmask);
    if (own.family != e->family)
        return false;
    for (size_t i = 0; i < sizeof own.at; i++)
        if ((own.at[i] ^ e->at[i]) & m.at[i])
            return false;
    return true;
}

/* Has every other namespace another address in this subnet? */
static bool is_common(const choice_t *c, const struct ifaddrs *a)
{
    const mc_endpoint_t own = mc_wire_endpoint(a->ifa_addr);
    for (int32_t r = 0; r < c->n; r++) {
        const mc_network_t *const w = network_of(c, r);
        bool found = w->space == c->own->space;
        for (uint32_t i = 0; i < w->n && !found; i++)
            found = is_in_subnet(a, &w->at[i]) && !mc_network_is_same(&w->at[i], &own);
        if (!found)
            return false;
    }
    return true;
}

void mc_network_devices(const void *networks, size_t stride, int32_t n, int32_t rank,
                        char devices[MC_NETWORK_DEVICES])
{
    struct ifaddrs *all;
    choice_t c = {.networks = networks, .stride = stride, .n = n, .devices = devices};
    devices[0] = '\0';
    c.own = network_of(&c, rank);
    if (getifaddrs(&all))
        return;
    c.all = all;
    for (int32_t r = 0; r < n; r++)
        if (network_of(&c, r)->space != c.own->space &&
            (r == 0 || network_of(&c, r)->space != network_of(&c, r - 1)->space))
            add_route(&c, network_of(&c, r));
    for (const struct ifaddrs *a = all; a && devices[0]; a = a->ifa_next)
        if (is_usable(a) && !is_bridge(a) && is_common(&c, a))
            add_device(&c, a);
    freeifaddrs(all);
}
