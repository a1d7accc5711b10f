/*
 * Finds which ranks share a machine, which mesh that makes, each rank's place in it, and the
 * transports of each dimension.
 */
#ifndef MC_RUNTIME_BOXES_H
#define MC_RUNTIME_BOXES_H

#include "mesh/mesh.h"

/* Where a rank runs. Tables of places are by the communicator's ranks. */
typedef struct {
    int32_t machine;       /* the lowest rank that shares memory with it */
    int32_t node, package; /* what it is bound to there; -1: to more than one, or unknown */
    bool gpus;             /* there are GPUs */
} mc_place_t;

/* Maps between the communicator's ranks and the mesh's. Both NULL: they are the same. */
typedef struct {
    int32_t *mesh_rank, *comm_rank;
} mc_order_t;

static inline int32_t mc_mesh_rank_of(const mc_order_t *o, int32_t comm_rank)
{
    return o->mesh_rank ? o->mesh_rank[comm_rank] : comm_rank;
}
static inline int32_t mc_comm_rank_of(const mc_order_t *o, int32_t mesh_rank)
{
    return o->comm_rank ? o->comm_rank[mesh_rank] : mesh_rank;
}
void mc_order_free(mc_order_t *order);

/* A mesh and its ranks. */
typedef struct {
    mc_mesh_t mesh;
    mc_order_t order;
    int32_t *machine; /* by mesh rank: the lowest mesh rank that shares memory with it */
} mc_arranged_t;

/*
 * Without `text` the mesh found: "box=B,gpu=G", "gpu=N" in one box, "box=N" with one rank each;
 * "rank" in place of "gpu" where no machine has GPUs.
 * Where each NUMA node (or else socket) of every box has as many ranks bound to it, "numa=N" (or
 * "socket=N") stands between box and gpu. Mesh ranks are ordered by box, then by node, then by the
 * communicator. Boxes of unequal sizes make "box=8+8+4", in the order of their first ranks.
 *
 * With `text` that mesh, if it has `size` ranks; else ERR_MESH names meshes that would fit. Where
 * its dimension "box" (and "numa" or "socket") has the extent found, or its unequal boxes are those
 * found in their order, mesh ranks are ordered as above, else as in the communicator.
 *
 * With `order` (mesh/rank_order.h) the same as if the communicator had its ranks in that order. Either
 * text may be NULL.
 */
int mc_arrange(const char *text, const char *order, const mc_place_t *place, int32_t size,
               mc_arranged_t *arranged);
void mc_arranged_free(mc_arranged_t *arranged);

/* Parses a mesh that must have `size` ranks. */
int mc_mesh_fit(const char *text, int32_t size, mc_mesh_t *mesh);

/* Number of dimensions, from the outermost on, that join ranks of different machines. */
int32_t mc_boxes_outside(const int32_t *machine, const mc_mesh_t *mesh);

/* The rank through which collectives without a root go if their strategy goes through one: the
 * first on the last machine. A program's root is mostly rank 0, whose machine's NIC is busy enough.
 * Rank 0 of a ragged mesh and of one machine (`machine` may be NULL there). */
int32_t mc_boxes_middle(const int32_t *machine, const mc_mesh_t *mesh);

/*
 * The transports of each dimension. The outermost of several dimensions stands for the network, so
 * it has network transports even if its "boxes" are one machine, unless its name is numa, socket,
 * gpu, rank or fold. Any other dimension has shared memory if all ranks it joins share a machine, else
 * network transports. `text` ("box=tcp,self;gpu=sm,self"; NULL: none) overrides this by dimension.
 * `machine` as in mc_arranged_t.
 */
enum { MC_TLS_TEXT = 128, MC_DEVICES_TEXT = 112 };
int mc_boxes_transports(const char *text, const int32_t *machine, const mc_mesh_t *mesh,
                        char tls[MC_MAX_DIMS][MC_TLS_TEXT]);

/* Do all of these transports use the memory of one machine, so that the receiver copies? */
bool mc_tls_is_memory(const char *tls);
/* UCX transports that reach any rank. */
const char *mc_boxes_network(void);

#endif
