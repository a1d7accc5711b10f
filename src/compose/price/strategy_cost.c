#include "compose/price/strategy_cost.h"

#include "compose/price/sides.h"

#include <math.h>

static mc_phase_cost_t all_phases(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                  const mc_links_t *links, int32_t root)
{
    mc_phase_cost_t sum = {mc_cost_zero(), mc_cost_zero()};
    for (int32_t i = 0; i < strategy->n_phases; i++) {
        const mc_phase_cost_t phase = mc_strategy_phase_cost(strategy, mesh, links, root, i);
        sum.once = mc_cost_add(&sum.once, &phase.once);
        sum.busy = mc_cost_add(&sum.busy, &phase.busy);
    }
    return sum;
}

mc_links_t mc_strategy_links(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links, int32_t root, double n)
{
    const mc_links_t at = mc_links_at(links, n);
    if (!mc_links_burst(links))
        return at;
    const mc_phase_cost_t sum = all_phases(strategy, mesh, &at, root);
    return mc_links_carrying(&at, &sum.busy, n / mc_strategy_sides(strategy));
}

double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n)
{
    if (mc_strategy_sides(strategy) > 1) {
        const mc_links_t left = mc_strategy_links(strategy, mesh, links, root, n);
        return mc_sides_seconds(strategy, mesh, &left, root, n);
    }
    const mc_links_t at = mc_links_at(links, n);
    const mc_phase_cost_t sum = all_phases(strategy, mesh, &at, root);
    const mc_links_t left = mc_links_carrying(&at, &sum.busy, n);
    return mc_phase_cost_seconds(&sum, &left, strategy->segments, n);
}

/* Do messages of several dimensions pass one shaped wire? They are then concurrent, and the one needed
 * first may arrive last, whereas the closed form has them one after another. Small pieces avoid this, so
 * such a strategy keeps its segments. */
static bool share_a_burst(const mc_cost_t *busy, const mc_links_t *links)
{
    unsigned seen = 0;
    for (int32_t d = 0; d < links->ndims; d++) {
        const int32_t wire = mc_links_wire(links, d);
        if (busy->dim[d].alpha.num == 0 || links->dim[wire].burst == 0)
            continue;
        if (seen & 1u << wire)
            return true;
        seen |= 1u << wire;
    }
    return false;
}

uint32_t mc_strategy_segments(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_links_t *links, int32_t root, double n, uint32_t needed)
{
    uint32_t found = strategy->segments;
    double least = INFINITY;
    if (mc_strategy_sides(strategy) > 1 || !mc_links_burst(links))
        return found;
    const mc_links_t at = mc_links_at(links, n);
    const mc_phase_cost_t sum = all_phases(strategy, mesh, &at, root);
    if (share_a_burst(&sum.busy, &at))
        return found;
    const mc_links_t left = mc_links_carrying(&at, &sum.busy, n);
    for (uint32_t k = needed; k <= strategy->segments; k *= 2) {
        const double seconds =
            mc_phase_cost_seconds(&sum, &left, k, n) - mc_phase_cost_saved(&sum, &at, &left, n / k);
        if (seconds < least) {
            least = seconds;
            found = k;
        }
    }
    return found;
}

uint32_t mc_strategy_needed(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n,
                            const mc_pacing_t *pacing)
{
    uint32_t most = 1;
    for (int32_t i = 0; i < strategy->n_phases; i++) {
        const mc_phase_t *const phase = &strategy->phase[i];
        const mc_phase_cost_t cost = mc_strategy_phase_cost(strategy, mesh, links, root, i);
        mc_placement_t state[MC_MAX_DIMS];
        mc_strategy_state(strategy, mesh, i, state);
        const uint32_t needed = mc_pacing_segments(pacing, mesh, phase->algorithm, phase->dims,
                                                   state, mc_pacing_mean(&cost, links) * n);
        most = needed > most ? needed : most;
    }
    return most;
}
