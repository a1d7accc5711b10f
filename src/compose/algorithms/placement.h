/*
 * Placements: the state of the data along each dimension, and the 1D collectives that move it from
 * one to another. A collective on the mesh takes every dimension from its first state to its last.
 */
#ifndef MC_COMPOSE_PLACEMENT_H
#define MC_COMPOSE_PLACEMENT_H

#include "mesh/mesh.h"

typedef enum {
    MC_ROOT,        /* only the root's coordinate has it */
    MC_SHARD,       /* each coordinate has its slice */
    MC_REPLICA,     /* each has all of it */
    MC_PARTIAL,     /* each has an unreduced contribution */
    MC_SOURCE,      /* each has what comes from its coordinate: blocks by destination */
    MC_DESTINATION, /* each has what goes to its coordinate: blocks by source */
    MC_PLACEMENTS
} mc_placement_t;

typedef struct {
    const char *name;
    mc_placement_t from, to;
    bool rooted, reduces;
} mc_move_t;

/* By meshcoll_collective_t; the same table serves the collective on the mesh and the 1D move. */
extern const mc_move_t mc_moves[MESHCOLL_COLLECTIVES];

/* Does a buffer consist of a block per rank? */
static inline bool mc_move_has_blocks(const mc_move_t *move)
{
    return move->from == MC_SHARD || move->to == MC_SHARD || move->to == MC_DESTINATION;
}

/* Where a 1D move starts and ends in a collective: in an alltoall a line may gather at its root what its
 * ranks send, and scatter what has come for them. */
static inline mc_placement_t mc_move_starts(meshcoll_collective_t collective, const mc_move_t *move)
{
    const bool exchange = collective == MESHCOLL_ALLTOALL;
    return exchange && move->from == MC_SHARD ? MC_SOURCE : move->from;
}
static inline mc_placement_t mc_move_ends(meshcoll_collective_t collective, const mc_move_t *move)
{
    const bool exchange = collective == MESHCOLL_ALLTOALL;
    return exchange && move->to == MC_SHARD ? MC_DESTINATION : move->to;
}

/* Dimensions along which one rank alone has something to send, a bit each (mc_mesh_crowd). */
unsigned mc_placements_rooted(const mc_mesh_t *mesh, const mc_placement_t state[MC_MAX_DIMS]);

const char *mc_placement_name(mc_placement_t placement);
/* -1 if there is no such collective. */
int mc_collective_find(const char *name, size_t n);

#endif
