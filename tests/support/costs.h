/* Costs of the registry's algorithms by name, for tests. */
#ifndef MC_TESTS_SUPPORT_COSTS_H
#define MC_TESTS_SUPPORT_COSTS_H

#include "compose/algorithms/registry.h"

#include <string.h>

static inline mc_phase_cost_t cost_of(meshcoll_collective_t collective, const char *name,
                                      const mc_line_shape_t *shape)
{
    return mc_algorithm_cost(mc_algorithm_find(collective, name, strlen(name)), shape);
}

#endif
