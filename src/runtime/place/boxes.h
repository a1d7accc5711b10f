/*
 * Which ranks share a machine, what mesh that makes, which rank stands where in it, and which
 * transports a dimension uses.
 */
#ifndef MC_RUNTIME_BOXES_H
#define MC_RUNTIME_BOXES_H

#include "mesh/mesh.h"

/* Where a rank runs. Tables of these are by the communicator's ranks. */
typedef struct {
    int32_t machine; /* the lowest rank that shares memory with it */
    int32_t node,
        package; /* of that machine: what it is bound to; -1: to more than one, or unknown */
} mc_place_t;

/* From the communicator's ranks to the mesh's and back; both NULL: they are the same. */
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

/* A mesh with its ranks. */
typedef struct {
    mc_mesh_t mesh;
    mc_order_t order;
    int32_t *machine; /* by mesh rank: the lowest mesh rank that shares memory with it */
} mc_arranged_t;

/*
 * Without `text` the mesh found: "box=B,gpu=G", "gpu=N" in one box, "box=N" with one rank each, and
 * where each NUMA node (or else socket) of every box has as many ranks bound to it, "numa=N" (or
 * "socket=N") between box and gpu. Its ranks stand box by box and node by node, in the order of the
 * communicator where they are alike. Boxes of unequal sizes make "box=8+8+4", in the order of their
 * first ranks; ERR_MESH where that is too long a text.
 *
 * With `text` that mesh, if it has `size` ranks; ERR_MESH names meshes that would fit. Where its
 * dimension "box" (and "numa" or "socket") has the extent found, or its unequal boxes are those
 * found in their order, its ranks stand as above, else in
 * the order of the communicator.
 */
int mc_arrange(const char *text, const mc_place_t *place, int32_t size, mc_arranged_t *arranged);
void mc_arranged_free(mc_arranged_t *arranged);

/* The mesh a text gives, if it has `size` ranks. */
int mc_mesh_fit(const char *text, int32_t size, mc_mesh_t *mesh);

/* How many dimensions, from the outermost on, join ranks of different machines. */
int32_t mc_boxes_outside(const int32_t *machine, const mc_mesh_t *mesh);

/* The rank through which collectives without a root pass, where they pass through one: the first on the last machine.
 * Programs' roots are mostly rank 0, whose machine's NIC has enough to do. `machine` NULL: one machine. */
int32_t mc_boxes_middle(const int32_t *machine, const mc_mesh_t *mesh);

/*
 * The transports of each dimension. By rule: the outermost of several dimensions stands for the
 * network, so that it has network transports even where its "boxes" are one machine, unless its
 * name is numa, socket, gpu or fold; a dimension further in, and a mesh's only one, has shared memory if
 * all ranks it joins share a machine, else network transports. `text` ("box=tcp,self;gpu=sm,self",
 * NULL: none) overrides by dimension. `machine` as in mc_arranged_t.
 */
enum { MC_TLS_TEXT = 128 };
int mc_boxes_transports(const char *text, const int32_t *machine, const mc_mesh_t *mesh,
                        char tls[MC_MAX_DIMS][MC_TLS_TEXT]);

/* A list of UCX's transports that reach any rank. */
const char *mc_boxes_network(void);

#endif
