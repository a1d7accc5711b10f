/* meshcoll topo: a mesh with its boxes, ranks and links, as text and as a picture. */
#ifndef MC_TOOLS_TOPO_H
#define MC_TOOLS_TOPO_H

#include "mesh/link/link.h"
#include "runtime/place/places.h"
#include "runtime/place/settings.h"
#include "tools/common/ranks.h"
#include "tools/common/tool.h"
#include "tools/gpu/gpus.h"

enum { MC_HOST_TEXT = 64 };

/* A rank that runs; plain memory, which may be sent. */
typedef struct {
    char host[MC_HOST_TEXT];
    mc_bound_to_t bound;
} mc_topo_rank_t;

typedef struct {
    mc_mesh_t mesh;
    mc_order_t order;
    const int32_t *machine;     /* as in mc_arranged_t; NULL: a mesh without ranks */
    const mc_topo_rank_t *rank; /* by the communicator's ranks; NULL likewise */
    mc_links_t links;
    const char *source;              /* of the links: "lab, as given", … */
    const char *origin;              /* of the mesh: "found", "given" */
    const struct mc_topo_gpus *gpus; /* NULL: no rank runs */
} mc_topo_t;

static inline const mc_topo_rank_t *mc_topo_rank(const mc_topo_t *t, int32_t mesh_rank)
{
    return t->rank ? &t->rank[mc_comm_rank_of(&t->order, mesh_rank)] : NULL;
}
/* Do mesh ranks [first, first + n) share a machine? */
bool mc_topo_one_machine(const mc_topo_t *t, int32_t first, int32_t n);
int32_t mc_topo_machines(const mc_topo_t *t);

/* ERR_IO with its reason. */
int mc_topo_draw(const mc_topo_t *t, const char *path);

/* topo_found.c: what the creation of a mesh finds. */

#define MC_TOPO_GIVEN "%s, as given"

typedef struct {
    mc_settings_t settings; /* with the links */
    mc_place_t *place;      /* by rank */
    char source[1024];      /* of the links */
} mc_topo_found_t;

/* Runs the first rounds of a creation, which look for links where a program's would: in the settings, in tune's file,
 * and among those kept of this cluster. Collective. The caller frees what is found. */
int mc_topo_find(const mc_ranks_t *ranks, const meshcoll_params_t *params, mc_topo_found_t *found);
void mc_topo_found_free(mc_topo_found_t *found); /* all zero is allowed */

/* topo_gpus.c: the GPUs of the machines that ranks run on, and the mesh that they suggest. */

/* What each machine's lowest rank says of its GPUs; plain memory. `n` 0: none, and `why`. */
typedef struct {
    int32_t n;
    mc_gpu_mesh_t mesh;
    char why[MC_GPUS_WHY];
} mc_gpu_shape_t;

typedef struct mc_topo_gpus {
    mc_gpus_t own;         /* of this rank's machine; n 0: none */
    mc_gpu_shape_t *shape; /* by rank */
    const mc_place_t *place;
    int32_t ranks;
} mc_topo_gpus_t;

/* Asks on one rank of each machine. Collective; the caller closes it where it succeeds. `place` must
 * stay. */
int mc_topo_gpus_open(const meshcoll_oob_t *oob, const mc_place_t *place, mc_topo_gpus_t **gpus);
void mc_topo_gpus_close(mc_topo_gpus_t *gpus); /* NULL is allowed */

/* Rank 0 alone shows what was found. */
int mc_topo_gpus_print(const mc_topo_gpus_t *gpus);
json_t *mc_topo_gpus_json(const mc_topo_gpus_t *gpus);

#endif
