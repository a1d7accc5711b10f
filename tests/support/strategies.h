/* A sample of a collective's strategies on a mesh, as texts: the named ones, and some of all. */
#ifndef MC_TEST_STRATEGIES_H
#define MC_TEST_STRATEGIES_H

#include "mesh/mesh.h"

typedef struct {
    char **text;
    int n;
} mc_sample_t;

/* At most `most` besides the named ones, evenly from MC_PATHS_COVER. 0, or -1 without memory. */
int mc_sample_open(meshcoll_collective_t collective, const mc_mesh_t *mesh, int most,
                   mc_sample_t *sample);
void mc_sample_close(mc_sample_t *sample);

#endif
