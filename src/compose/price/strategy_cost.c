#include "compose/price/strategy_cost.h"

#include "compose/price/bound.h"
#include "compose/price/sides.h"

#include <string.h>

mc_phase_cost_t mc_strategy_side_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                      const mc_links_t *links, int32_t root, int32_t side)
{
    mc_phase_cost_t sum = {.once = mc_cost_zero(), .busy = mc_cost_zero()};
    for (int32_t i = mc_side_first(strategy, side); i < mc_side_end(strategy, side); i++) {
        const mc_phase_cost_t phase = mc_strategy_phase_cost(strategy, mesh, links, root, i);
        sum = mc_phase_cost_add(&sum, &phase);
    }
    return sum;
}

/* The strategy's row in the table of measured ones, or NULL. */
static const mc_measured_row_t *find_row(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                         const mc_measured_t *table)
{
    char buffer[MC_STRATEGY_TEXT];
    if (!mc_measured_has(table, strategy->collective))
        return NULL;
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(strategy, mesh, &text);
    for (int32_t i = 0; i < table->n_rows; i++)
        if (table->row[i].collective == strategy->collective &&
            strcmp(table->row[i].strategy, buffer) == 0)
            return &table->row[i];
    return NULL;
}

bool mc_strategy_is_measured(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links)
{
    return find_row(strategy, mesh, mc_links_measured(links)) != NULL;
}

double mc_strategy_with_call(double seconds, const mc_links_t *links)
{
    return mc_cost_rounded(seconds + mc_links_call(links));
}

double mc_strategy_modelled(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n)
{
    const mc_links_t at = mc_links_at(links, n);
    if (mc_strategy_sides(strategy) > 1) {
        const mc_side_flow_t a = mc_flow_of(strategy, 0, mesh, &at, root);
        const mc_side_flow_t b = mc_flow_of(strategy, 1, mesh, &at, root);
        return mc_strategy_with_call(mc_flows_seconds(&a, &b, strategy->segments, n), links);
    }
    const mc_phase_cost_t sum = mc_strategy_side_cost(strategy, mesh, &at, root, 0);
    return mc_strategy_with_call(mc_phase_cost_seconds(&sum, &at, strategy->segments, n), links);
}

double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n)
{
    const mc_measured_row_t *const row = find_row(strategy, mesh, mc_links_measured(links));
    return row ? mc_measured_seconds(links->measured, row, n)
               : mc_strategy_modelled(strategy, mesh, links, root, n);
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
