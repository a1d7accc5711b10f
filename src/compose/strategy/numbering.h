/*
 * The communicator's numbering of ranks on the mesh, for reproducible sums. A sum has the same bits on
 * every mesh if it follows the aligned tree (mesh/aligned.h) over the communicator's numbers. A strategy
 * along the mesh's dimensions can do so if these numbers have a constant distance along each dimension.
 */
#ifndef MC_COMPOSE_NUMBERING_H
#define MC_COMPOSE_NUMBERING_H

#include "mesh/mesh.h"

typedef struct {
    /* Distance of the numbers of adjacent ranks, by dimension; of mesh ranks mc_mesh_stride. */
    int32_t apart[MC_MAX_DIMS];
    /* The numbers have no constant distances: only a plan on one line of all ranks, made for these
     * numbers, sums in their order, and `apart` is that of mesh ranks. Always set on a ragged mesh, whose
     * fold lines make blocks of unequal sizes. */
    bool flat;
} mc_numbering_t;

/* `number`: the communicator's numbers by mesh rank; NULL: the mesh ranks themselves. */
mc_numbering_t mc_numbering(const mc_mesh_t *mesh, const int32_t *number);

/* May a reduction along `dims` come next, after those along the dimensions in `reduced` (a bit each)? The
 * ranks then summed must form a block of the aligned tree. */
typedef enum {
    MC_NUMBERED,       /* yes */
    MC_NUMBERED_FLAT,  /* no: only one line of all ranks sums in that order */
    MC_NUMBERED_APART, /* no: the line's dimensions are not adjacent in the numbering */
    MC_NUMBERED_EARLY, /* no: a dimension whose numbers are closer must come first */
    MC_NUMBERED_BLOCK, /* no: the tree has no block of that many ranks, which is no power of two */
} mc_numbered_t;
mc_numbered_t mc_numbering_check(const mc_numbering_t *numbering, const mc_mesh_t *mesh,
                                 mc_dims_t dims, uint32_t reduced);
/* Size of the blocks of ranks whose data is summed after a reduction along `dims`. */
int32_t mc_numbering_block(const mc_numbering_t *numbering, const mc_mesh_t *mesh, mc_dims_t dims);

#endif
