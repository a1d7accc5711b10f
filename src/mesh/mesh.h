/*
 * The mesh: a grid of ranks with named dimensions, outermost first, ranks in row-major order
 * (the last dimension runs fastest). Text form: "box=4,gpu=8".
 *
 * A ragged mesh has boxes of unequal sizes, "box=8+8+4": a grid box, gpu, fold of places, of which
 * some are absent. Its gpu lines are as long as the smallest box, and what a box has beyond that
 * hangs on them along fold, so that only fold lines differ in length and none has a hole. Ranks are
 * the places taken, in their order; on any other mesh a rank and its place are the same number.
 */
#ifndef MC_MESH_MESH_H
#define MC_MESH_MESH_H

#include "base/base.h"

enum { MC_MAX_DIMS = 6, MC_DIM_NAME = 16, MC_MESH_TEXT = 256 };

/* The most ranks of a mesh. Sums and products in costs, and tags of messages, are made for as many. */
enum { MC_MESH_RANKS = 1 << 22 };

/* The dimensions of a ragged mesh. */
enum { MC_RAGGED_BOX, MC_RAGGED_GPU, MC_RAGGED_FOLD, MC_RAGGED_DIMS };

typedef struct {
    char name[MC_DIM_NAME];
    int32_t extent;
} mc_dim_t;

/* Ranks of the boxes of a ragged mesh; one for each list of sizes in a process, which lives as long. */
typedef struct mc_boxes {
    const struct mc_boxes *next;
    int32_t n, fewest, most; /* boxes; ranks of the smallest and of the largest */
    int32_t first[];         /* rank of each box, and the end */
} mc_boxes_t;

/* The box of a rank, and how many ranks a box has. */
int32_t mc_boxes_find(const mc_boxes_t *boxes, int32_t rank);
int32_t mc_boxes_size(const mc_boxes_t *boxes, int32_t box);

typedef struct {
    int32_t ndims, size; /* size: ranks, the product of the extents unless it is ragged */
    mc_dim_t dim[MC_MAX_DIMS];
    const mc_boxes_t *ragged; /* NULL: all places are taken */
    int32_t leader;           /* of a ragged mesh: trades places with fold 0 of its line */
} mc_mesh_t;

/* Adjacent dimensions [first, first + count) taken as one: (box*gpu). count is 1 for a plain one. */
typedef struct {
    int32_t first, count;
} mc_dims_t;

/* Ranks that differ only in `dims`: rank i of the line stands at place base + i * stride. The
 * sub-communicator of a dimension. `root` is the index of the operation's root on the line. */
typedef struct {
    mc_dims_t dims;
    int32_t base, stride, len, me, root;
} mc_line_t;

int mc_mesh_parse(const char *text, mc_mesh_t *mesh);
void mc_mesh_print(const mc_mesh_t *mesh, mc_text_t *text);
int mc_mesh_check(const mc_mesh_t *mesh);

/* Boxes of `sizes` ranks along a dimension of that name; where all are alike, "NAME=n,gpu=size". */
int mc_mesh_of_boxes(const char *name, const int32_t *sizes, int32_t n, mc_mesh_t *mesh);
/* The mesh with `rank` at fold 0 of its line, whose rank there takes its place: the root of an
 * operation, seen by all. Both are in one box. */
mc_mesh_t mc_mesh_led_by(const mc_mesh_t *mesh, int32_t rank);
/* Does its leader take another's place? */
bool mc_mesh_leader_moved(const mc_mesh_t *mesh);
/* The same ranks as one line, "rank=N". */
mc_mesh_t mc_mesh_flat(const mc_mesh_t *mesh);

/* Places of the grid, the product of the extents. */
int32_t mc_mesh_places(const mc_mesh_t *mesh);
int32_t mc_mesh_place(const mc_mesh_t *mesh, int32_t rank);
/* The rank at a place, or -1 where nobody is. */
int32_t mc_mesh_rank_at(const mc_mesh_t *mesh, int32_t place);
void mc_mesh_coords(const mc_mesh_t *mesh, int32_t rank, int32_t coord[MC_MAX_DIMS]);
int32_t mc_mesh_rank(const mc_mesh_t *mesh, const int32_t coord[MC_MAX_DIMS]);
/* Ranks that agree in dimension d and all outside of it, of those that stand first along each of `single` (a bit each). */
static inline int32_t mc_mesh_crowd(const mc_mesh_t *mesh, int32_t dim, unsigned single)
{
    int32_t ranks = 1;
    for (int32_t d = dim + 1; d < mesh->ndims; d++)
        ranks *= single >> d & 1 ? 1 : mesh->dim[d].extent;
    return ranks;
}
/* Places per step of dimension d, the product of the extents inside it. */
static inline int32_t mc_mesh_stride(const mc_mesh_t *mesh, int32_t dim)
{
    return mc_mesh_crowd(mesh, dim, 0);
}
/* Ranks [*first, *first + n) differ from `rank` in dimension d or further in only; returns n. Who
 * leads does not matter. */
int32_t mc_mesh_span(const mc_mesh_t *mesh, int32_t dim, int32_t rank, int32_t *first);
/* Largest number of ranks that agree in the dimensions of `held` (a bit each): the fullest slice. */
int32_t mc_mesh_fullest(const mc_mesh_t *mesh, unsigned held);
/* Dimension of that name (the first `n` characters of it), or -1. */
int32_t mc_mesh_find(const mc_mesh_t *mesh, const char *name, size_t n);
/* The innermost dimension longer than 1; of a single rank the last. */
int32_t mc_mesh_inner(const mc_mesh_t *mesh);
/* Is it named as part of one box: "numa", "socket", "gpu" or "fold"? */
bool mc_dim_is_inside(const mc_dim_t *dim);
/* Outermost dimension in which two ranks differ, whose link joins them; -1 for a rank and itself. */
int32_t mc_mesh_level(const mc_mesh_t *mesh, int32_t a, int32_t b);

/* Length of a line along `dims`, the product of their extents; along fold of the longest, and of all
 * dimensions of a ragged mesh its ranks. */
int32_t mc_dims_extent(const mc_mesh_t *mesh, mc_dims_t dims);
static inline bool mc_dims_has(mc_dims_t dims, int32_t d)
{
    return d >= dims.first && d < dims.first + dims.count;
}
/* "box" or "(box*gpu)" without the parentheses: "box*gpu". */
void mc_dims_print(const mc_mesh_t *mesh, mc_dims_t dims, mc_text_t *text);

/* The line along `dims` through `rank`, with `root`'s index on it. A line along fold is as long as it
 * is; others go through places that are all taken, unless they merge fold, which only mc_mesh_flat
 * has lines for. */
mc_line_t mc_mesh_line(const mc_mesh_t *mesh, mc_dims_t dims, int32_t rank, int32_t root);

static inline int32_t mc_line_rank(mc_line_t l, int32_t index)
{
    return l.base + index * l.stride;
}
/* Index modulo the line's length, also for indices in (-2*len, 0). */
static inline int32_t mc_wrap(mc_line_t l, int32_t index)
{
    return ((index % l.len) + l.len) % l.len;
}
static inline int32_t mc_right(mc_line_t l)
{
    return mc_line_rank(l, mc_wrap(l, l.me + 1));
}
static inline int32_t mc_left(mc_line_t l)
{
    return mc_line_rank(l, mc_wrap(l, l.me - 1));
}

#endif
