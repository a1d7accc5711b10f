/* Costs on meshes of up to MC_MESH_RANKS ranks: they take no time that grows with these, and do not overflow. */
#include "compose/planner/planner.h"

#include "support/large_meshes.h"
#include "support/places.h"

#include <math.h>

/* Nothing that is priced goes through ranks, or through pairs of them. */
Test(cost_large, meshes_of_all_sizes_are_planned_in_time, .timeout = 30)
{
    for (size_t i = 0; i < MC_COUNT(meshes); i++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            const place_t at = place_of(meshes[i], "generic");
            const mc_planner_query_t query = {.bytes = 1 << 20, .max_segments = 64};
            mc_ranked_t best = {.seconds = NAN};
            cr_assert_eq(
                mc_planner_best((meshcoll_collective_t)c, &at.mesh, &at.links, &query, &best),
                MESHCOLL_OK, "%s: %s", meshes[i], meshcoll_last_error());
            cr_expect(isfinite(best.seconds) && best.seconds > 0, "%s: %g", meshes[i],
                      best.seconds);
        }
}

/* Too large for 64 bits: rounded, not wrapped. */
Test(cost_large, fractions_do_not_overflow)
{
    const mc_ratio_t a = {2147483647, 2147483629}, b = {2147483563, 2147483587},
                     c = {2147483549, 2147483579};
    const mc_ratio_t product = mc_ratio_mul(mc_ratio_mul(a, b), c);
    const mc_ratio_t sum = mc_ratio_add(mc_ratio_add(a, b), c);
    const double x = mc_ratio_value(a), y = mc_ratio_value(b), z = mc_ratio_value(c);
    cr_expect_float_eq(mc_ratio_value(product), x * y * z, 1e-14);
    cr_expect_float_eq(mc_ratio_value(sum), x + y + z, 1e-14);
    cr_expect(product.den > 0 && sum.den > 0);
}
