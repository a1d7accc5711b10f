/*
 * Tiles: coordinate ranges of the grid of chunks. The vector is cut into chunks laid out on the
 * mesh; the home of chunk k is rank k (place k on a ragged mesh). In each dimension a tile is fixed
 * to a coordinate or free; one line of it may instead be cut to an interval (the slices that MST
 * scatter passes on).
 */
#ifndef MC_MESH_TILE_H
#define MC_MESH_TILE_H

#include "mesh/mesh.h"

enum { MC_FREE = -1 };

typedef struct {
    uint32_t segment;
    int32_t at[MC_MAX_DIMS]; /* the coordinate, or MC_FREE */
    mc_dims_t cut;           /* dimensions cut to an interval; cut.count is 0 without one */
    int32_t lo, len;         /* the interval [lo, lo + len), in indices of the line along `cut` */
    int32_t every, times; /* 0, or the period in which the interval repeats, in indices; so often */
} mc_tile_t;

/* Returns the whole segment: free in every dimension. */
mc_tile_t mc_tile_whole(uint32_t segment);
/* Returns v with the line's dimensions cut to slices [lo, hi) of the line. */
mc_tile_t mc_slices(mc_tile_t v, mc_line_t l, int32_t lo, int32_t hi);
/* Returns v with the line's dimensions cut to slice `index`, taken modulo the line's length. */
mc_tile_t mc_slice(mc_tile_t v, mc_line_t l, int32_t index);
/* Returns v with the slices of the line whose index has this digit: index / unit % radix == digit.
 * Where unit * radix does not divide the line's length, only whole periods count. */
mc_tile_t mc_digit(mc_tile_t v, mc_line_t l, int32_t unit, int32_t radix, int32_t digit);
/* Returns v with the line's dimensions cut to every `every`-th run of `len` slices: those of [lo, hi) that are whole,
 * the first of them at lo. There is at least one. */
mc_tile_t mc_repeated(mc_tile_t v, mc_line_t l, int32_t lo, int32_t len, int32_t every, int32_t hi);
/* Returns v with the line's dimensions free. */
mc_tile_t mc_freed(mc_tile_t v, mc_line_t l);

enum { MC_MAX_SIDES = 2 };

/*
 * How chunks are numbered: segments slowest, then the cut dimensions in `order`, outermost first.
 * Dimensions that no phase cuts have extent 1 here, so that a broadcast by MST alone has one chunk.
 * With two sides, segments alternate between them, and each side nests the dimensions in its own
 * order.
 */
typedef struct {
    mc_mesh_t mesh;
    uint32_t sides; /* 1 or 2; segment s belongs to side s % sides */
    /* by side: the dimensions, outermost first, a permutation; and chunks per step of each
     * dimension */
    int32_t order[MC_MAX_SIDES][MC_MAX_DIMS];
    uint32_t stride[MC_MAX_SIDES][MC_MAX_DIMS];
    int32_t extent[MC_MAX_DIMS];    /* by dimension: the mesh's extent where cut, else 1 */
    uint32_t segments, per_segment; /* n_chunks = segments * per_segment */
} mc_layout_t;

/* The chunks first + i*stride … first + i*stride + run - 1, for i < nrun. */
typedef struct {
    uint32_t first, run, nrun, stride;
} mc_range_t;
static inline uint32_t mc_range_chunks(mc_range_t r)
{
    return r.run * r.nrun;
}
/* The k-th of them. */
static inline uint32_t mc_range_chunk(mc_range_t r, uint32_t k)
{
    return r.first + k / r.run * r.stride + k % r.run;
}

/* `cut[d]`: dimension d is cut into slices; `order` lists the dimensions as they are nested, the outermost first.
 * ERR_INVALID_ARG: too many chunks. */
int mc_layout_init(const mc_mesh_t *mesh, const bool cut[MC_MAX_DIMS],
                   const int32_t order[MC_MAX_DIMS], uint32_t segments, mc_layout_t *layout);
/* Adds a side to the layout, which nests the dimensions in `order`. */
void mc_layout_add_side(mc_layout_t *layout, const int32_t order[MC_MAX_DIMS]);
static inline uint32_t mc_layout_chunks(const mc_layout_t *layout)
{
    return layout->segments * layout->per_segment;
}
static inline uint32_t mc_layout_side(const mc_layout_t *layout, uint32_t segment)
{
    return segment % layout->sides;
}
/* Returns the chunk of `segment` whose home is `rank`; along dimensions that are not cut, ranks
 * share it. */
uint32_t mc_layout_home(const mc_layout_t *layout, int32_t rank, uint32_t segment);
/* Returns the home of `chunk` (coordinate 0 along dimensions that are not cut); -1 where that place
 * is absent, and the chunk of a block collective is empty. */
int32_t mc_layout_rank(const mc_layout_t *layout, uint32_t chunk);
static inline bool mc_layout_absent(const mc_layout_t *layout, uint32_t chunk)
{
    return layout->mesh.ragged && mc_layout_rank(layout, chunk) < 0;
}

/*
 * Calls `each` for the chunk ranges of a tile, in chunk order. A tile of a nested strategy is one
 * range; one with more than one stride is several.
 */
void mc_tile_ranges(const mc_layout_t *layout, const mc_tile_t *v,
                    void (*each)(void *context, mc_range_t range), void *context);

#endif
