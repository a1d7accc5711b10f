/* Which ports of a mesh's boxes are the ends of a network between them. */
#ifndef MC_NETWORK_ENDS_H
#define MC_NETWORK_ENDS_H

#include "mesh/link/link.h"
#include "network/network.h"

/* Does dimension d join boxes? "box" and all outside of it do; without a "box", all whose name is not of the inside of one. */
bool mc_network_joins(const mc_mesh_t *mesh, int32_t d);
/* The innermost dimension that joins boxes, or -1. */
int32_t mc_network_outer(const mc_mesh_t *mesh);
/* The port of a rank on the wire of dimension `wire`: that of the rank with this number. *ports: in its group, of *n ranks. */
int32_t mc_network_port(const mc_mesh_t *mesh, const mc_links_t *links, int32_t wire, int32_t rank,
                        int32_t *ports, int32_t *n);
/* The number of each rank's port among those that lead out of boxes; ranks of a port follow each other. Returns how many
 * there are; *per_box: in the first box. `end` may be NULL. */
int32_t mc_network_ends(const mc_mesh_t *mesh, const mc_links_t *links, int32_t *end,
                        int32_t *per_box);
/* Fits the network to the ports of the mesh's boxes. */
int mc_network_fit_to(const mc_mesh_t *mesh, const mc_links_t *links, mc_network_t *network);

#endif
