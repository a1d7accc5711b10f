/* What prices phases on a network between boxes, and in which parts it names the links; mc_links_t.network. */
#ifndef MC_COMPOSE_NETWORKED_H
#define MC_COMPOSE_NETWORKED_H

#include "compose/cost/cost.h"

struct mc_networked {
    /* Adds the strain of an algorithm along `dims` for a tile as large as the vector. `mesh` is led by the root; along the
     * dimensions `rooted`, a bit each, only the root's lines send. */
    void (*strain)(struct mc_networked *self, int32_t algorithm, mc_dims_t dims,
                   const mc_mesh_t *mesh, int32_t root, unsigned rooted, mc_strain_t *strain);
};

#endif
