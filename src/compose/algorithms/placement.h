/*
 * Placements: the state of the data along each dimension, and the 1D collectives (moves) that lead from
 * one to another. A collective on the mesh takes every dimension from its first placement to its last.
 */
#ifndef MC_COMPOSE_PLACEMENT_H
#define MC_COMPOSE_PLACEMENT_H

#include "mesh/mesh.h"

typedef enum {
    MC_ROOT,        /* the root's coordinate has all data */
    MC_SHARD,       /* each coordinate has its slice */
    MC_REPLICA,     /* each coordinate has all data */
    MC_PARTIAL,     /* each coordinate has an unreduced contribution */
    MC_SOURCE,      /* each coordinate has the blocks that it sends, by destination */
    MC_DESTINATION, /* each coordinate has the blocks that it receives, by source */
    MC_PLACEMENTS
} mc_placement_t;

typedef struct {
    const char *name;
    mc_placement_t from, to;
    bool rooted, reduces;
} mc_move_t;

/* The table, by meshcoll_collective_t, describes both the collective on the mesh and the 1D move. */
extern const mc_move_t mc_moves[MESHCOLL_COLLECTIVES];

/* Does one of the caller's buffers consist of a block per rank? */
static inline bool mc_move_has_blocks(const mc_move_t *move)
{
    return move->from == MC_SHARD || move->to == MC_SHARD || move->to == MC_DESTINATION;
}

/* The placement in which a 1D move starts, and ends, within a collective. In an alltoall a line may gather
 * at its root what its ranks send, and scatter what they receive; shard then means source, and
 * destination. */
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

/* The dimensions in placement root, a bit each: along them one rank alone sends (mc_mesh_sharers). */
unsigned mc_placements_rooted(const mc_mesh_t *mesh, const mc_placement_t state[MC_MAX_DIMS]);

const char *mc_placement_name(mc_placement_t placement);
/* -1 if there is no such collective. */
int mc_collective_find(const char *name, size_t n);

#endif
