/* meshcoll topo: a mesh with its boxes, ranks and links, as text and as a picture. */
#ifndef MC_TOOLS_TOPO_H
#define MC_TOOLS_TOPO_H

#include "mesh/link/link.h"
#include "runtime/place/places.h"
#include "tools/common/tool.h"

extern const mc_command_t mc_topo_command;

enum { MC_HOST_TEXT = 64 };

/* A rank that runs; plain memory, which may be sent. */
typedef struct {
    char host[MC_HOST_TEXT];
    mc_bound_to_t bound;
} mc_spot_t;

typedef struct {
    mc_mesh_t mesh;
    mc_order_t order;
    const int32_t *machine; /* as in mc_arranged_t; NULL: a mesh without ranks */
    const mc_spot_t *spot;  /* by the communicator's ranks; NULL likewise */
    mc_links_t links;
    const char *source; /* of the links: "lab, as given", "tuned, from …", … */
    const char *origin; /* of the mesh: "found", "given" */
} mc_topo_t;

static inline const mc_spot_t *mc_topo_spot(const mc_topo_t *t, int32_t mesh_rank)
{
    return t->spot ? &t->spot[mc_comm_rank_of(&t->order, mesh_rank)] : NULL;
}
/* Do mesh ranks [first, first + n) share a machine? */
bool mc_topo_one_machine(const mc_topo_t *t, int32_t first, int32_t n);
int32_t mc_topo_machines(const mc_topo_t *t);

/* ERR_IO with its reason. */
int mc_topo_draw(const mc_topo_t *t, const char *path);

#endif
