/* The GPUs of the machines that ranks run on, and the mesh that they suggest. */
#ifndef MC_TOOLS_TOPO_GPUS_H
#define MC_TOOLS_TOPO_GPUS_H

#include "runtime/place/places.h"
#include "tools/gpu/gpus.h"

#include <jansson.h>

/* What each machine's lowest rank says of its GPUs; plain memory. `n` 0: none, and `why`. */
typedef struct {
    int32_t n;
    mc_gpu_mesh_t mesh;
    char why[MC_GPUS_WHY];
} mc_gpu_shape_t;

typedef struct {
    mc_gpus_t own;         /* of this rank's machine; n 0: none */
    mc_gpu_shape_t *shape; /* by rank */
    const mc_place_t *place;
    int32_t ranks;
} mc_topo_gpus_t;

/* Asks on one rank of each machine. Collective; the caller closes it where it succeeds. `place` must
 * stay. */
int mc_topo_gpus_open(const meshcoll_oob_t *oob, const mc_place_t *place, mc_topo_gpus_t **gpus);
void mc_topo_gpus_close(mc_topo_gpus_t *gpus); /* NULL is allowed */

/* On rank 0. */
int mc_topo_gpus_print(const mc_topo_gpus_t *gpus);
json_t *mc_topo_gpus_json(const mc_topo_gpus_t *gpus);

#endif
