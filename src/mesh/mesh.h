/*
 * The mesh: a grid of ranks with named dimensions, outermost first, ranks in row-major order
 * (the last dimension runs fastest). Text form: "box=4,gpu=8".
 */
#ifndef MC_MESH_MESH_H
#define MC_MESH_MESH_H

#include "base/base.h"

enum { MC_MAX_DIMS = 6, MC_DIM_NAME = 16 };

typedef struct {
    char name[MC_DIM_NAME];
    int32_t extent;
} mc_dim_t;

typedef struct {
    int32_t ndims, size; /* size: product of the extents */
    mc_dim_t dim[MC_MAX_DIMS];
} mc_mesh_t;

/* Adjacent dimensions [first, first + count) taken as one: (box*gpu). count is 1 for a plain one. */
typedef struct {
    int32_t first, count;
} mc_dims_t;

/* Ranks that differ only in `dims`: rank i of the line is base + i * stride. The
 * sub-communicator of a dimension. `root` is the index of the operation's root on the line. */
typedef struct {
    mc_dims_t dims;
    int32_t base, stride, len, me, root;
} mc_line_t;

int mc_mesh_parse(const char *text, mc_mesh_t *mesh);
void mc_mesh_print(const mc_mesh_t *mesh, mc_text_t *text);
int mc_mesh_check(const mc_mesh_t *mesh);

void mc_mesh_coords(const mc_mesh_t *mesh, int32_t rank, int32_t coord[MC_MAX_DIMS]);
int32_t mc_mesh_rank(const mc_mesh_t *mesh, const int32_t coord[MC_MAX_DIMS]);
/* Ranks per step of dimension d, the product of the extents inside it. */
int32_t mc_mesh_stride(const mc_mesh_t *mesh, int32_t dim);
/* Dimension of that name (the first `n` characters of it), or -1. */
int32_t mc_mesh_find(const mc_mesh_t *mesh, const char *name, size_t n);
/* Is it named as part of one box: "numa", "socket" or "gpu"? */
bool mc_dim_is_inside(const mc_dim_t *dim);
/* Outermost dimension in which two ranks differ, whose link joins them; -1 for a rank and itself. */
int32_t mc_mesh_level(const mc_mesh_t *mesh, int32_t a, int32_t b);

/* Length of a line along `dims`, the product of their extents. */
int32_t mc_dims_extent(const mc_mesh_t *mesh, mc_dims_t dims);
static inline bool mc_dims_has(mc_dims_t dims, int32_t d)
{
    return d >= dims.first && d < dims.first + dims.count;
}
/* "box" or "(box*gpu)" without the parentheses: "box*gpu". */
void mc_dims_print(const mc_mesh_t *mesh, mc_dims_t dims, mc_text_t *text);

/* The line along `dims` through `rank`, with `root`'s index on it. */
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
