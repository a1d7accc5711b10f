/*
 * How the ranks that a sum's brackets are put round lie on the mesh. Results are the same bits on every
 * mesh when all add up by the aligned tree (mesh/aligned.h) over one numbering of the ranks: the
 * communicator's. Along each dimension these numbers are equally far apart, or else they are in no
 * order that a mesh knows.
 */
#ifndef MC_COMPOSE_NUMBERING_H
#define MC_COMPOSE_NUMBERING_H

#include "mesh/mesh.h"

typedef struct {
    /* By dimension, from one rank to the next; of the mesh's own numbers mc_mesh_stride. */
    int32_t apart[MC_MAX_DIMS];
    /* Only a plan on one line of all ranks adds up in their order, when it is made for these numbers
     * instead of the mesh's: `apart` is the mesh's own. Always so of a ragged mesh, whose fold lines make
     * blocks of unequal sizes. */
    bool flat;
} mc_numbering_t;

/* The numbers by mesh rank; NULL: the mesh's own. */
mc_numbering_t mc_numbering(const mc_mesh_t *mesh, const int32_t *number);

/* May a reduction along `dims` come next, when the dimensions whose bits `reduced` has came before?
 * What is then added up must be a block of the aligned tree. */
typedef enum {
    MC_NUMBERED,
    MC_NUMBERED_FLAT,  /* no: only one line of all ranks will do */
    MC_NUMBERED_APART, /* no: the line's dimensions do not follow each other in the numbering */
    MC_NUMBERED_EARLY, /* no: a dimension whose ranks are closer comes first */
    MC_NUMBERED_BLOCK, /* no: blocks of no power of two ranks are none of the tree */
} mc_numbered_t;
mc_numbered_t mc_numbering_check(const mc_numbering_t *numbering, const mc_mesh_t *mesh,
                                 mc_dims_t dims, uint32_t reduced);
/* Ranks that are added up with each other after that. */
int32_t mc_numbering_block(const mc_numbering_t *numbering, const mc_mesh_t *mesh, mc_dims_t dims);

#endif
