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

/* Of IPv4: where a host has found no other, or a cable leads to its own management controller. */
static bool is_link_local(const struct ifaddrs *a)
{
    const mc_endpoint_t e = mc_wire_endpoint(a->ifa_addr);
    return e.family == 4 && e.at[0] == 169 && e.at[1] == 254;
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

static uint32_t bits_of(const struct ifaddrs *a)
{
    const mc_endpoint_t mask = mc_wire_endpoint(a->ifa_netmask);
    uint32_t bits = 0;
    for (size_t i = 0; i < sizeof mask.at; i++)
        bits += (uint32_t)__builtin_popcount(mask.at[i]);
    return bits;
}

/* Two hosts have no third address where the mask leaves one bit. */
static bool is_shared(uint32_t bits, uint16_t family)
{
    return bits + 1 < (family == 6 ? 128U : 32U);
}

/* The interface of the first address is the one by which ranks meet, which is used anyway. */
static void find_met(const mc_network_t *w, const struct ifaddrs *all, char met[IF_NAMESIZE])
{
    *met = '\0';
    for (const struct ifaddrs *a = all; a && w->n > 0; a = a->ifa_next) {
        if (!is_usable(a))
            continue;
        const mc_endpoint_t e = mc_wire_endpoint(a->ifa_addr);
        if (mc_network_is_same(&w->at[0], &e))
            name_of(a, met);
    }
}

static void set_bits(mc_network_t *w, const struct ifaddrs *a, const char *met)
{
    char name[IF_NAMESIZE];
    if (!is_usable(a) || !a->ifa_netmask || is_link_local(a) || is_bridge(a))
        return;
    name_of(a, name);
    if (strcmp(name, met) == 0)
        return;
    const mc_endpoint_t e = mc_wire_endpoint(a->ifa_addr);
    const uint32_t bits = bits_of(a);
    for (uint32_t i = 0; i < w->n; i++)
        if (mc_network_is_same(&w->at[i], &e) && is_shared(bits, e.family))
            w->bits[i] = (unsigned char)bits;
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
                if (!is_usable(a) || is_link_local(a) || is_bridge(a) != pass / 2 ||
                    (a->ifa_addr->sa_family == AF_INET6) != pass % 2)
                    continue;
                const mc_endpoint_t e = mc_wire_endpoint(a->ifa_addr);
                add(&w, &e);
            }
        char met[IF_NAMESIZE];
        find_met(&w, all, met);
        for (const struct ifaddrs *a = all; a; a = a->ifa_next)
            set_bits(&w, a, met);
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
    const uint32_t bits = bits_of(a);
    for (size_t i = 0; i < sizeof net.at; i++)
        net.at[i] &= mask.at[i];
    *subnet = '\0';
    if (is_shared(bits, net.family) &&
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

/* Common subnets ------------------------------------------------------------------------------- */

static bool is_in(const mc_subnet_t *s, const mc_endpoint_t *e)
{
    if (s->at.family != e->family)
        return false;
    for (uint32_t bit = 0; bit < s->bits; bit++)
        if ((s->at.at[bit / 8] ^ e->at[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

const mc_endpoint_t *mc_network_in(const mc_network_t *w, const mc_subnet_t *subnet)
{
    for (uint32_t i = 0; i < w->n && i < MC_NETWORK_ADDRESSES; i++)
        if (w->bits[i] == subnet->bits && is_in(subnet, &w->at[i]))
            return &w->at[i];
    return NULL;
}

/* Neighbours of other namespaces have other addresses, the last and the first rank too. Docker's 172.17.0.1 is on every
 * host. */
static bool is_common(const mc_networks_t *all, const mc_subnet_t *s)
{
    bool several = false;
    for (int32_t r = 0; r < all->n; r++) {
        const mc_network_t *const w = mc_network_of(all, r), *const next = mc_network_of(
                                                                 all, (r + 1) % all->n);
        const mc_endpoint_t *const a = mc_network_in(w, s), *const b = mc_network_in(next, s);
        if (!a || !b || (w->space != next->space && mc_network_is_same(a, b)))
            return false;
        several |= w->space != next->space;
    }
    return several;
}

int32_t mc_network_common(const mc_networks_t *all, mc_subnet_t found[MC_NETWORK_ADDRESSES])
{
    const mc_network_t *const w = mc_network_of(all, 0);
    int32_t n = 0;
    for (uint32_t i = 0; i < w->n && i < MC_NETWORK_ADDRESSES; i++) {
        const mc_subnet_t s = {w->at[i], w->bits[i]};
        bool is_new = s.bits > 0 && s.bits <= 128 && is_common(all, &s);
        for (int32_t k = 0; k < n && is_new; k++)
            is_new = !is_in(&found[k], &s.at);
        if (is_new)
            found[n++] = s;
    }
    return n;
}

/* Choosing ------------------------------------------------------------------------------------- */

typedef struct {
    const struct ifaddrs *all;
    char *devices;
} choice_t;

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

/* The rank before may be of the same namespace: it is looked at once. */
static bool is_next(const mc_networks_t *networks, int32_t r)
{
    return r == 0 || mc_network_of(networks, r)->space != mc_network_of(networks, r - 1)->space;
}

void mc_network_devices(const mc_networks_t *networks, int32_t rank, const mc_subnet_t *subnet,
                        int32_t n, char devices[MC_NETWORK_DEVICES])
{
    struct ifaddrs *all;
    const mc_network_t *const own = mc_network_of(networks, rank);
    devices[0] = '\0';
    if (getifaddrs(&all))
        return;
    const choice_t c = {.all = all, .devices = devices};
    for (int32_t r = 0; r < networks->n; r++)
        if (mc_network_of(networks, r)->space != own->space && is_next(networks, r))
            add_route(&c, mc_network_of(networks, r));
    for (int32_t i = 0; i < n && devices[0]; i++) {
        const mc_endpoint_t *const e = mc_network_in(own, &subnet[i]);
        const struct ifaddrs *const a = e ? find_interface(&c, e, true) : NULL;
        if (a)
            add_device(&c, a);
    }
    freeifaddrs(all);
}

void mc_network_where(const mc_network_t *own, mc_text_t *text)
{
    char name[IF_NAMESIZE], printed[INET6_ADDRSTRLEN];
    struct ifaddrs *all;
    if (own->n == 0 || getifaddrs(&all))
        return;
    const choice_t c = {.all = all};
    const mc_endpoint_t *const e = &own->at[0];
    const struct ifaddrs *const a = find_interface(&c, e, false);
    if (a && inet_ntop(e->family == 6 ? AF_INET6 : AF_INET, e->at, printed, sizeof printed)) {
        name_of(a, name);
        mc_text_add(text, "%s, %s", printed, name);
    }
    freeifaddrs(all);
}
