/*
 * The mesh: a grid of ranks with named dimensions, outermost first, ranks in row-major order (the
 * last dimension runs fastest). Text form: "box=4,gpu=8".
 *
 * A ragged mesh has boxes of unequal sizes, "box=8+8+4": a grid of places with dimensions box, gpu
 * and fold, some of whose places are absent. Its gpu lines are as long as the smallest box. The
 * further ranks of a larger box extend these places along fold, so that only fold lines differ in
 * length, and none has a hole. Ranks number the places that are taken, in order; on any other mesh
 * a rank and its place are the same number.
 */
#ifndef MC_MESH_MESH_H
#define MC_MESH_MESH_H

#include "base/base.h"

/* MC_MESH_TEXT: room for the text of a mesh that is not ragged (mc_mesh_text). */
enum { MC_MAX_DIMS = 6, MC_DIM_NAME = 16, MC_MESH_TEXT = 256 };

/* The most characters of a text that is parsed. */
enum { MC_MESH_MOST_READ = 65535 };

/* The most ranks of a mesh. Cost formulas and message tags are dimensioned for it. */
enum { MC_MESH_RANKS = 1 << 22 };

/* The dimensions of a ragged mesh. */
enum { MC_RAGGED_BOX, MC_RAGGED_GPU, MC_RAGGED_FOLD, MC_RAGGED_DIMS };

typedef struct {
    char name[MC_DIM_NAME];
    int32_t extent;
} mc_dim_t;

/* The ranks of the boxes of a ragged mesh. One object per name, list of sizes and process, never
 * freed. */
typedef struct mc_boxes {
    const struct mc_boxes *next;
    const char *text;        /* of the mesh: "box=8+8+4" */
    int32_t n, fewest, most; /* number of boxes; ranks of the smallest and of the largest */
    int32_t first[];         /* first rank of each box; n + 1 entries */
} mc_boxes_t;

/* The box of a rank, and the number of ranks of a box. */
int32_t mc_boxes_find(const mc_boxes_t *boxes, int32_t rank);
int32_t mc_boxes_size(const mc_boxes_t *boxes, int32_t box);

typedef struct {
    int32_t ndims, size; /* size: ranks, the product of the extents unless ragged */
    mc_dim_t dim[MC_MAX_DIMS];
    const mc_boxes_t *ragged; /* NULL: all places are taken */
    int32_t leader; /* of a ragged mesh: swaps places with the rank at fold 0 of its line */
} mc_mesh_t;

/* Adjacent dimensions [first, first + count) merged into one, "(box*gpu)"; count is 1 for a single
 * dimension. */
typedef struct {
    int32_t first, count;
} mc_dims_t;

/* A line: the ranks that differ only in `dims`. Index i of the line is place base + i * stride;
 * `me` is this rank's index, `root` that of the operation's root. */
typedef struct {
    mc_dims_t dims;
    int32_t base, stride, len, me, root;
} mc_line_t;

int mc_mesh_parse(const char *text, mc_mesh_t *mesh);
void mc_mesh_print(const mc_mesh_t *mesh, mc_text_t *text);
/* Returns the whole text: `buffer`, or that of the list of boxes, which is as long as they take and stays. */
const char *mc_mesh_text(const mc_mesh_t *mesh, char buffer[MC_MESH_TEXT]);
int mc_mesh_check(const mc_mesh_t *mesh);

/* Makes the mesh of boxes of `sizes` ranks along a dimension called `name`; where all sizes are
 * equal, "NAME=n,gpu=size". ERR_MESH, ERR_PARSE or ERR_NO_MEMORY. */
int mc_mesh_of_boxes(const char *name, const int32_t *sizes, int32_t n, mc_mesh_t *mesh);
/* Frees all lists of boxes, for tests that make many: no ragged mesh may be used afterwards. */
void mc_mesh_forget_boxes(void);
/* Returns the mesh with `rank` at fold 0 of its line, swapped with the rank there, which is in the
 * same box: a root must be where lines across boxes meet. All ranks must agree on `rank`. */
mc_mesh_t mc_mesh_led_by(const mc_mesh_t *mesh, int32_t rank);
/* Does the leader swap with another rank? */
bool mc_mesh_leader_moved(const mc_mesh_t *mesh);
/* Returns the same ranks as one line, "rank=N". */
mc_mesh_t mc_mesh_flat(const mc_mesh_t *mesh);

/* Returns the places of the grid, the product of the extents. */
int32_t mc_mesh_places(const mc_mesh_t *mesh);
int32_t mc_mesh_place(const mc_mesh_t *mesh, int32_t rank);
/* Returns the rank at a place, or -1 where the place is absent. */
int32_t mc_mesh_rank_at(const mc_mesh_t *mesh, int32_t place);
void mc_mesh_coords(const mc_mesh_t *mesh, int32_t rank, int32_t coord[MC_MAX_DIMS]);
int32_t mc_mesh_rank(const mc_mesh_t *mesh, const int32_t coord[MC_MAX_DIMS]);
/* Returns the number of ranks that agree in dimension `dim` and all outer ones, counting only those
 * at coordinate 0 along the dimensions in `single` (one bit each). */
static inline int32_t mc_mesh_sharers(const mc_mesh_t *mesh, int32_t dim, unsigned single)
{
    int32_t ranks = 1;
    for (int32_t d = dim + 1; d < mesh->ndims; d++)
        ranks *= single >> d & 1 ? 1 : mesh->dim[d].extent;
    return ranks;
}
/* Returns the places per step of dimension `dim`, the product of the extents inside it. */
static inline int32_t mc_mesh_stride(const mc_mesh_t *mesh, int32_t dim)
{
    return mc_mesh_sharers(mesh, dim, 0);
}
/* Ranks [*first, *first + n) are those that differ from `rank` only in dimension `dim` or inner
 * ones; returns n. The leader's swap does not change the set. */
int32_t mc_mesh_span(const mc_mesh_t *mesh, int32_t dim, int32_t rank, int32_t *first);
/* Returns the largest number of ranks that agree in the dimensions of `held` (one bit each). */
int32_t mc_mesh_fullest(const mc_mesh_t *mesh, unsigned held);
/* Returns the dimension of that name (the first `n` characters of it), or -1. "gpu" and "rank" each
 * find the other where the mesh does not have both: the mesh found is named by whether there are
 * GPUs, and what was written for one name holds for the other. */
int32_t mc_mesh_find(const mc_mesh_t *mesh, const char *name, size_t n);
/* Returns the dimensions longer than 1, a bit each. */
static inline unsigned mc_mesh_long(const mc_mesh_t *mesh)
{
    unsigned dims = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        dims |= (unsigned)(mesh->dim[d].extent > 1) << d;
    return dims;
}
/* Returns the innermost dimension longer than 1; the last one where there is a single rank. */
int32_t mc_mesh_inner(const mc_mesh_t *mesh);
/* Does its name place it inside a box: "domain", "socket", "numa", "island", "gpu", "rank" or
 * "fold"? */
bool mc_dim_is_inside(const mc_dim_t *dim);
/* Returns the outermost dimension in which two ranks differ, whose link joins them; -1 where a ==
 * b. */
int32_t mc_mesh_level(const mc_mesh_t *mesh, int32_t a, int32_t b);

/* Returns the length of a line along `dims`, the product of their extents. Along fold it is that of
 * the longest line, and along all dimensions of a ragged mesh the number of ranks. */
int32_t mc_dims_extent(const mc_mesh_t *mesh, mc_dims_t dims);
static inline bool mc_dims_has(mc_dims_t dims, int32_t d)
{
    return d >= dims.first && d < dims.first + dims.count;
}
/* Prints "box" or "box*gpu". */
void mc_dims_print(const mc_mesh_t *mesh, mc_dims_t dims, mc_text_t *text);

/* Returns the line along `dims` through `rank`, with the index of `root` on it. A line along fold
 * ends at its last rank. Other lines must have no absent places: lines that merge fold exist only
 * on mc_mesh_flat. */
mc_line_t mc_mesh_line(const mc_mesh_t *mesh, mc_dims_t dims, int32_t rank, int32_t root);

static inline int32_t mc_line_rank(mc_line_t l, int32_t index)
{
    return l.base + index * l.stride;
}
/* Returns `index` modulo the line's length, for negative indices too. */
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
