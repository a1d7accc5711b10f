/* Which addresses ranks tell each other. */
#include "runtime/handshake/network.h"

#include <criterion/criterion.h>

static mc_endpoint_t v4(int a, int b, int c, int d)
{
    return (mc_endpoint_t){
        .family = 4,
        .at = {(unsigned char)a, (unsigned char)b, (unsigned char)c, (unsigned char)d}};
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
