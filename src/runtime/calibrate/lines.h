/*
 * The lines of a mesh as meshes of their own, of its job, for measuring: no agreement is needed, because no other mesh
 * of the job has their contexts, the last ones, while all ranks measure. So nothing that the mesh itself counts moves on.
 */
#ifndef MC_CALIBRATE_LINES_H
#define MC_CALIBRATE_LINES_H

#include "runtime/handle/handle.h"

/* All ranks of the mesh once more. */
int mc_line_open_whole(meshcoll_t *mesh, meshcoll_t **whole);
/* This rank's line along a dimension, on the links of `mesh`. *line is NULL where it has none, or is alone: of boxes of
 * unequal sizes the ranks at fold 0 have lines across boxes, and those of a box are one line. */
int mc_line_open(meshcoll_t *mesh, int32_t dim, meshcoll_t **line);
/* Both are destroyed by meshcoll_destroy. */

/* The ranks of the longest line along a dimension, and how many lines of a box run side by side. 1: none are measured. */
int32_t mc_line_longest(const mc_mesh_t *mesh, int32_t dim);
int32_t mc_line_count(const mc_mesh_t *mesh, int32_t dim);
/* Is this rank's line the one of its box that runs if one does? */
bool mc_line_is_first(const mc_mesh_t *mesh, int32_t dim, int32_t rank);
/* The one of the mesh? It is as long as any. */
bool mc_line_is_alone(const mc_mesh_t *mesh, int32_t dim, int32_t rank);

#endif
