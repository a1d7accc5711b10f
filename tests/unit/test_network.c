/* Which addresses ranks tell each other, and which interfaces they choose by those of others. */
#include "runtime/handshake/network.h"

#include <criterion/criterion.h>
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
    mc_network_devices(all, sizeof all[0], 3, 1, devices);
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
    mc_network_devices(all, sizeof all[0], 2, 0, devices);
    cr_expect_str_empty(devices);
    all[1] = peer_at(v4(127, 0, 0, 1), 1);
    mc_network_devices(all, sizeof all[0], 2, 0, devices);
    cr_expect_str_empty(devices);
}

Test(network, the_route_to_another_is_chosen)
{
    char devices[MC_NETWORK_DEVICES] = "?";
    mc_network_t all[3];
    struct sockaddr_storage to, from;
    const mc_endpoint_t outside = v4(203, 0, 113, 7);
    mc_network_find(1, NULL, &all[0]);
    all[1] = all[2] = peer_at(outside, 1);
    all[2].space = 3;
    if (mc_wire_address(&outside, &(struct sockaddr_storage){0}, &to) || mc_wire_source(&to, &from))
        cr_skip_test("this machine has no default route");
    mc_network_devices(all, sizeof all[0], 3, 0, devices);
    cr_expect_not(strchr(devices, ','), "%s", devices);
    cr_expect_gt(strlen(devices), 0);
}
