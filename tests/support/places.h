/* A mesh and its links, priced as one, for Criterion tests. */
#ifndef MC_TESTS_SUPPORT_PLACES_H
#define MC_TESTS_SUPPORT_PLACES_H

#include "compose/planner/planner.h"
#include "mesh/link/link.h"

#include <criterion/criterion.h>

typedef struct {
    mc_mesh_t mesh;
    mc_links_t links;
} place_t;

static inline place_t place_of(const char *mesh, const char *links)
{
    place_t at;
    cr_assert_eq(mc_mesh_parse(mesh, &at.mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(mc_links_parse(links, &at.mesh, &at.links), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return at;
}

static inline mc_strategy_t strategy_of(const place_t *at, meshcoll_collective_t collective,
                                        const char *text)
{
    mc_strategy_t strategy;
    cr_assert_eq(mc_strategy_parse(text, collective, &at->mesh, &strategy), MESHCOLL_OK, "%s: %s",
                 text, meshcoll_last_error());
    return strategy;
}

/* For n bytes from root 0. */
static inline double seconds_of(const place_t *at, meshcoll_collective_t collective,
                                const char *text, double n)
{
    const mc_strategy_t strategy = strategy_of(at, collective, text);
    return mc_strategy_seconds(&strategy, &at->mesh, &at->links, 0, n);
}

#endif
