/* Which addresses ranks tell each other, and which interfaces they choose by those of others. */
#include "job/network/network.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mc_endpoint_t v4(int a, int b, int c, int d)
{
    return (mc_endpoint_t){
        .family = 4,
        .at = {(unsigned char)a, (unsigned char)b, (unsigned char)c, (unsigned char)d}};
}

static mc_network_t peer_at(mc_endpoint_t at, uint32_t reached)
{
    return (mc_network_t){.space = 2, .n = 1, .reached = reached, .at = {at}};
}

Test(network, what_was_reached_comes_first)
{
    mc_network_t w, without;
    mc_endpoint_t at = v4(203, 0, 113, 7);
    at.port = 30000;
    mc_network_find(1, NULL, &without);
    mc_network_find(1, &at, &w);
    cr_expect_eq(without.reached, 0);
    cr_expect_eq(w.reached, 1);
    cr_expect_eq(w.space, 1);
    cr_expect(w.n >= 1 && w.n <= MC_NETWORK_ADDRESSES);
    cr_expect(mc_network_is_same(&w.at[0], &at));
    for (uint32_t i = 0; i < w.n; i++) {
        cr_expect_eq(w.at[i].port, 0);
        cr_expect_not(mc_wire_is_loopback(&w.at[i]));
        for (uint32_t k = 0; k < i; k++)
            cr_expect_not(mc_network_is_same(&w.at[i], &w.at[k]));
    }
}

Test(network, a_loopback_address_tells_nothing)
{
    mc_network_t w;
    const mc_endpoint_t local = v4(127, 0, 0, 1);
    mc_network_find(1, &local, &w);
    cr_expect_eq(w.reached, 0);
}

Test(network, one_namespace_leaves_the_choice_to_ucx)
{
    char devices[MC_NETWORK_DEVICES] = "?";
    mc_network_t all[3];
    for (int r = 0; r < 3; r++)
        mc_network_find(1, NULL, &all[r]);
    mc_network_devices(&(mc_networks_t){all, sizeof all[0], 3}, 1, NULL, 0, devices);
    cr_expect_str_empty(devices);
}

/* As of a bridge that every machine has: the others' address is this machine's own. */
Test(network, an_address_of_ones_own_leads_nowhere)
{
    char devices[MC_NETWORK_DEVICES] = "?";
    mc_network_t all[2];
    mc_network_find(1, NULL, &all[0]);
    all[1] = all[0];
    all[1].space = 2;
    mc_network_devices(&(mc_networks_t){all, sizeof all[0], 2}, 0, NULL, 0, devices);
    cr_expect_str_empty(devices);
    all[1] = peer_at(v4(127, 0, 0, 1), 1);
    mc_network_devices(&(mc_networks_t){all, sizeof all[0], 2}, 0, NULL, 0, devices);
    cr_expect_str_empty(devices);
}

Test(network, the_route_to_another_is_chosen)
{
    char devices[MC_NETWORK_DEVICES] = "?";
    mc_network_t all[3];
    mc_endpoint_t from;
    const mc_endpoint_t outside = v4(203, 0, 113, 7);
    mc_network_find(1, NULL, &all[0]);
    all[1] = all[2] = peer_at(outside, 1);
    all[2].space = 3;
    if (mc_wire_source(&outside, &from))
        cr_skip_test("this machine has no default route");
    mc_network_devices(&(mc_networks_t){all, sizeof all[0], 3}, 0, NULL, 0, devices);
    cr_expect_not(strchr(devices, ','), "%s", devices);
    cr_expect_gt(strlen(devices), 0);
}

/* A namespace with IPv6 towards the others, and IPv4 on Docker's bridges only; /sys shows it. */
static bool enter_sixes(void)
{
    static const char *const commands =
        "mount --make-rprivate / && mount -t sysfs sysfs /sys && ip link set lo up && "
        "for i in 0 1 2 3 4 5 6 7 8; do ip link add docker$i type bridge && "
        "ip link add guest$i type veth peer name inside$i && ip link set guest$i master docker$i "
        "up && "
        "ip link set inside$i up && ip addr add 172.$((17 + i)).0.1/16 dev docker$i && "
        "ip link set docker$i up; done && "
        "ip link add eth0 type veth peer name far && ip link set far up && ip link set eth0 up && "
        "ip -6 addr add fd77::1/64 dev eth0 nodad && "
        "until [ $(ip -br link | grep -cE '^(docker|eth0).* UP ') = 10 ]; do sleep 0.05; done";
    char command[1024];
    snprintf(command, sizeof command, "( %s ) >/dev/null 2>&1", commands);
    return unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 && system(command) == 0; /* NOLINT */
}

static mc_network_t find_in_sixes(const char *more)
{
    mc_network_t w;
    cr_assert_eq(system(more), 0); /* NOLINT */
    mc_network_find(1, NULL, &w);
    return w;
}

Test(network, bridges_come_last_whatever_the_family, .timeout = 30)
{
    char devices[MC_NETWORK_DEVICES] = "?";
    mc_endpoint_t own = {.family = 6, .at = {0xfd, 0x77, [15] = 1}};
    if (!enter_sixes())
        cr_skip_test("needs root, namespaces and ip");
    const mc_network_t one_link = find_in_sixes("true");
    cr_expect_eq(one_link.n, MC_NETWORK_ADDRESSES);
    cr_expect(mc_network_is_same(&one_link.at[0], &own));
    /* of two networks that have no bridges, the default route's comes first; the other may lead to all who have both */
    mc_network_t all[2] = {find_in_sixes(
        "ip link add net1 type veth peer name net2 && ip link set net2 up && ip link set "
        "net1 up && ip -6 addr add fd78::1/64 dev net1 nodad && "
        "until ip -br link show net1 | grep -q ' UP '; do sleep 0.05; done && "
        "ip -6 route add default via fd78::9")};
    own.at[1] = 0x78;
    cr_expect(mc_network_is_same(&all[0].at[0], &own));
    all[1] = all[0];
    all[1].space = 2;
    all[1].at[0].at[15] = all[1].at[1].at[15] = 2;
    const mc_networks_t both = {all, sizeof all[0], 2};
    mc_subnet_t also[MC_NETWORK_ADDRESSES];
    mc_network_devices(&both, 0, NULL, 0, devices);
    cr_expect_str_eq(devices, "net1");
    cr_assert_eq(mc_network_common(&both, also), 1);
    cr_expect_eq(also[0].bits, 64);
    cr_expect_eq(all[0].bits[0], 0, "all have met there");
    cr_expect(mc_network_is_same(mc_network_in(&all[0], &also[0]), &all[0].at[1]));
    mc_network_devices(&both, 0, also, 1, devices);
    cr_expect_str_eq(devices, "net1,eth0");
    all[1].at[1].at[15] = 1; /* the same address on both */
    cr_expect_eq(mc_network_common(&both, also), 0);
}

/* Of addresses that join two ports, and of a loopback, there are none. */
Test(network, subnets_are_those_in_which_others_have_an_address, .timeout = 30)
{
    char subnets[128];
    mc_text_t text = mc_text(subnets, sizeof subnets);
    if (!enter_sixes() ||
        system("ip addr add 10.7.6.5/22 dev eth0 && ip addr add 10.9.0.1/31 dev eth0 && "
               "for a in fd77::2 fd76::1 fd77::3 fd78::1; do "
               "ip -6 addr add $a/64 dev eth0 nodad; done") != 0) /* NOLINT */
        cr_skip_test("needs root, namespaces and ip");
    mc_network_subnets("eth0", &text);
    cr_expect_str_eq(subnets, " 10.7.4.0/22 fd76::/64 fd77::/64 fd78::/64");
    mc_network_subnets("eth", &text);
    mc_network_subnets("lo", &text);
    cr_expect_str_eq(subnets, " 10.7.4.0/22 fd76::/64 fd77::/64 fd78::/64");
}
