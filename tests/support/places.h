/* A mesh and its links, priced as one, for Criterion tests. */
#ifndef MC_TESTS_SUPPORT_PLACES_H
#define MC_TESTS_SUPPORT_PLACES_H

#include "mesh/link.h"

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

#endif
