/*
 * Which ranks share a machine, what mesh that makes, and which UCX transports a dimension uses.
 */
#ifndef MC_RUNTIME_BOXES_H
#define MC_RUNTIME_BOXES_H

#include "mesh/mesh.h"

/* `machine[r]`: the lowest rank that shares memory with rank r. */

/*
 * The mesh of ranks that stand box by box in boxes of one size: "box=B,gpu=G", "gpu=N" in one box,
 * "box=N" with one rank each. ERR_MESH says what was found otherwise, and what would do.
 */
int mc_boxes_mesh(const int32_t *machine, int32_t size, mc_mesh_t *mesh);

/* The mesh a text gives, if it has `size` ranks; ERR_MESH names meshes that would fit. */
int mc_mesh_fit(const char *text, int32_t size, mc_mesh_t *mesh);

/*
 * The transports of each dimension. By rule: the outermost of several dimensions stands for the
 * network, so that it has network transports even where its "boxes" are one machine; a dimension
 * further in, and a mesh's only one, has shared memory if all ranks it joins share a machine, else
 * network transports. `text` ("box=tcp,self;gpu=sm,self", NULL: none) overrides by dimension.
 */
enum { MC_TLS_TEXT = 128 };
int mc_boxes_transports(const char *text, const int32_t *machine, const mc_mesh_t *mesh,
                        char tls[MC_MAX_DIMS][MC_TLS_TEXT]);

#endif
