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
    /* the interval [lo, lo + len), in indices of the line along `cut`; it may go on at the line's start */
    int32_t lo, len;
    int32_t every, times; /* 0, or the period in which the interval repeats, in indices; so often */
} mc_tile_t;

/* Returns the whole segment: free in every dimension. */
mc_tile_t mc_tile_whole(uint32_t segment);
/* Returns v with the line's dimensions cut to slices [lo, hi) of the line; those from its length on are
 * slices from its start on. */
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

/* The chunks first + i*stride … first + i*stride + run - 1, for i < nrun. With a ring each chunk that would be
 * past the end of a ring is one from its start on instead. Rings are as many chunks, and start at multiples of
 * that; if the stride is shorter all runs are on one ring, else each is on its own. */
typedef struct {
    uint32_t first, run, nrun, stride;
    uint32_t ring; /* chunks; 0: there is none */
} mc_range_t;
static inline uint32_t mc_range_chunks(mc_range_t r)
{
    return r.run * r.nrun;
}
/* Is there room for its runs on its rings? All other functions may expect that. */
static inline bool mc_range_fits(mc_range_t r)
{
    const bool shared = r.nrun > 1 && r.stride < r.ring;
    if (r.ring == 0 || !shared)
        return r.ring == 0 || r.run <= r.ring;
    return r.stride > 0 && r.ring % r.stride == 0 && r.nrun <= r.ring / r.stride &&
           r.first % r.stride + r.run <= r.stride;
}
/* The chunk that is the k-th of run i, and the k-th of all. */
static inline uint32_t mc_range_at(mc_range_t r, uint32_t i, uint32_t k)
{
    if (r.ring == 0)
        return r.first + i * r.stride + k;
    const uint32_t at = r.first % r.ring, start = r.first - at;
    return r.stride < r.ring ? start + (at + i * r.stride + k) % r.ring
                             : start + i * r.stride + (at + k) % r.ring;
}
static inline uint32_t mc_range_chunk(mc_range_t r, uint32_t k)
{
    return mc_range_at(r, k / r.run, k % r.run);
}

/* Chunks in a row: the i-th of mc_range_runs(). */
typedef struct {
    uint32_t first, n;
} mc_chunks_t;
/* How many chunks of each run are past the end of its ring; a run on a ring with others is not cut. */
static inline uint32_t mc_range_past(mc_range_t r)
{
    const bool alone = r.ring > 0 && (r.nrun == 1 || r.stride >= r.ring);
    const uint32_t end = alone ? r.first % r.ring + r.run : 0;
    return end > r.ring ? end - r.ring : 0;
}
static inline uint32_t mc_range_runs(mc_range_t r)
{
    return mc_range_past(r) > 0 ? 2 * r.nrun : r.nrun;
}
static inline mc_chunks_t mc_range_run(mc_range_t r, uint32_t i)
{
    const uint32_t past = mc_range_past(r), before = r.run - past;
    if (past == 0)
        return (mc_chunks_t){mc_range_at(r, i, 0), r.run};
    return (mc_chunks_t){mc_range_at(r, i / 2, i % 2 ? before : 0), i % 2 ? past : before};
}
static inline bool mc_range_has(mc_range_t r, uint32_t chunk)
{
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        if (chunk - run.first < run.n)
            return true;
    }
    return false;
}
/* All are from here on and, of a range that need not be right, before there; of rings both are those of whole
 * ones. */
static inline uint32_t mc_range_begin(mc_range_t r)
{
    return r.ring > 0 ? r.first - r.first % r.ring : r.first;
}
static inline uint64_t mc_range_end(mc_range_t r)
{
    const bool one = r.ring > 0 && r.stride < r.ring;
    return mc_range_begin(r) + (one ? 0 : (uint64_t)(r.nrun - 1) * r.stride) +
           (r.ring > 0 ? r.ring : r.run);
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
 * Calls `each` for the chunk ranges of a tile, in the order of its slices. A tile of a nested strategy is one
 * range; one with more than one stride is several.
 */
void mc_tile_ranges(const mc_layout_t *layout, const mc_tile_t *v,
                    void (*each)(void *context, mc_range_t range), void *context);

#endif
