#include "mesh/tile.h"

#include <assert.h>

mc_tile_t mc_tile_whole(uint32_t segment)
{
    mc_tile_t v = {.segment = segment};
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        v.at[d] = MC_FREE;
    return v;
}

mc_tile_t mc_freed(mc_tile_t v, mc_line_t l)
{
    for (int32_t d = l.dims.first; d < l.dims.first + l.dims.count; d++)
        v.at[d] = MC_FREE;
    v.cut = (mc_dims_t){0};
    v.lo = v.len = v.every = v.times = 0;
    return v;
}

mc_tile_t mc_slices(mc_tile_t v, mc_line_t l, int32_t lo, int32_t hi)
{
    assert(v.cut.count == 0 || v.cut.first == l.dims.first);
    v = mc_freed(v, l);
    v.cut = l.dims;
    v.lo = lo;
    v.len = hi - lo;
    return v;
}

mc_tile_t mc_slice(mc_tile_t v, mc_line_t l, int32_t index)
{
    const int32_t i = mc_wrap(l, index);
    return mc_slices(v, l, i, i + 1);
}

mc_tile_t mc_digit(mc_tile_t v, mc_line_t l, int32_t unit, int32_t radix, int32_t digit)
{
    const int32_t period = unit * radix, whole = l.len / period;
    return mc_repeated(v, l, digit * unit, unit, period, whole > 0 ? whole * period : l.len);
}

mc_tile_t mc_repeated(mc_tile_t v, mc_line_t l, int32_t lo, int32_t len, int32_t every, int32_t hi)
{
    const int32_t times = (hi - lo - len) / every + 1;
    v = mc_slices(v, l, lo, lo + len);
    v.every = times > 1 ? every : 0;
    v.times = times > 1 ? times : 0;
    return v;
}

int mc_layout_init(const mc_mesh_t *mesh, const bool cut[MC_MAX_DIMS],
                   const int32_t order[MC_MAX_DIMS], uint32_t segments, mc_layout_t *layout)
{
    mc_layout_t l = {.mesh = *mesh, .segments = segments};
    uint64_t chunks = 1;
    for (int32_t d = 0; d < mesh->ndims; d++) {
        l.extent[d] = cut[d] ? mesh->dim[d].extent : 1;
        chunks *= (uint64_t)l.extent[d];
    }
    l.per_segment = (uint32_t)chunks;
    /* half the range: SCRATCH numbers its second half from n_chunks on */
    if (segments < 1 || chunks * segments > UINT32_MAX / 2)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a plan has 1 to 2^31 chunks; %u segments of %llu chunks do not fit",
                       segments, (unsigned long long)chunks);
    mc_layout_add_side(&l, order);
    *layout = l;
    return MESHCOLL_OK;
}

void mc_layout_add_side(mc_layout_t *layout, const int32_t order[MC_MAX_DIMS])
{
    const uint32_t side = layout->sides++;
    uint32_t stride = 1;
    assert(side < MC_MAX_SIDES);
    for (int32_t i = layout->mesh.ndims - 1; i >= 0; i--) {
        const int32_t d = order[i];
        layout->order[side][i] = d;
        layout->stride[side][d] = stride;
        stride *= (uint32_t)layout->extent[d];
    }
}

uint32_t mc_layout_home(const mc_layout_t *layout, int32_t rank, uint32_t segment)
{
    int32_t coord[MC_MAX_DIMS];
    const uint32_t *const stride = layout->stride[mc_layout_side(layout, segment)];
    uint32_t chunk = segment * layout->per_segment;
    mc_mesh_coords(&layout->mesh, rank, coord);
    for (int32_t d = 0; d < layout->mesh.ndims; d++)
        if (layout->extent[d] > 1)
            chunk += (uint32_t)coord[d] * stride[d];
    return chunk;
}

int32_t mc_layout_rank(const mc_layout_t *layout, uint32_t chunk)
{
    int32_t coord[MC_MAX_DIMS] = {0};
    const uint32_t segment = chunk / layout->per_segment, in_segment = chunk % layout->per_segment;
    const uint32_t *const stride = layout->stride[mc_layout_side(layout, segment)];
    for (int32_t d = 0; d < layout->mesh.ndims; d++)
        coord[d] = (int32_t)(in_segment / stride[d] % (uint32_t)layout->extent[d]);
    return mc_mesh_rank(&layout->mesh, coord);
}

/* Nested loops over chunks, innermost first; a loop that continues the one inside it is merged with
 * it. */
typedef struct {
    uint32_t first;
    int32_t n;
    struct {
        uint32_t len, stride;
    } level[MC_MAX_DIMS + 2];
    /* of an interval past its line's end: the chunks of the line, and the level; else 0 and -1 */
    uint32_t ring;
    int32_t turning;
} nest_t;

static void nest_add(nest_t *nest, uint32_t stride, uint32_t lo, uint32_t len)
{
    nest->first += lo * stride;
    if (len == 1)
        return;
    if (nest->n > 0) {
        const int32_t in = nest->n - 1;
        if (nest->level[in].stride * nest->level[in].len == stride) {
            nest->level[in].len *= len;
            return;
        }
    }
    nest->level[nest->n].len = len;
    nest->level[nest->n].stride = stride;
    nest->n++;
}

static void nest_add_cut(nest_t *nest, const mc_layout_t *layout, uint32_t stride,
                         const mc_tile_t *v)
{
    const int32_t line = mc_dims_extent(&layout->mesh, v->cut);
    const int32_t lo = v->len < line ? v->lo : 0; /* all are the line in its order */
    nest_add(nest, stride, (uint32_t)lo, (uint32_t)v->len);
    if (lo + v->len > line) {
        nest->ring = stride * (uint32_t)line;
        nest->turning = nest->n - 1;
    }
    if (v->every)
        nest_add(nest, stride * (uint32_t)v->every, 0, (uint32_t)v->times);
}

static nest_t nest_of(const mc_layout_t *layout, const mc_tile_t *v)
{
    nest_t nest = {.first = v->segment * layout->per_segment, .turning = -1};
    const uint32_t side = mc_layout_side(layout, v->segment);
    const uint32_t *const stride = layout->stride[side];
    bool cut_done = false;
    for (int32_t i = layout->mesh.ndims - 1; i >= 0; i--) {
        const int32_t d = layout->order[side][i];
        if (layout->extent[d] == 1)
            continue;
        if (mc_dims_has(v->cut, d)) {
            /* merged dimensions are adjacent in the layout: the innermost stands for all */
            if (!cut_done)
                nest_add_cut(&nest, layout, stride[d], v);
            cut_done = true;
        } else if (v->at[d] == MC_FREE) {
            nest_add(&nest, stride[d], 0, (uint32_t)layout->extent[d]);
        } else {
            nest_add(&nest, stride[d], (uint32_t)v->at[d], 1);
        }
    }
    return nest;
}

void mc_tile_ranges(const mc_layout_t *layout, const mc_tile_t *v,
                    void (*each)(void *context, mc_range_t range), void *context)
{
    const nest_t nest = nest_of(layout, v);
    mc_range_t range = {.first = nest.first, .run = 1, .nrun = 1};
    int32_t level = 0;
    if (level < nest.n && nest.level[level].stride == 1)
        range.run = nest.level[level++].len;
    if (level < nest.n) {
        range.nrun = nest.level[level].len;
        range.stride = nest.level[level++].stride;
    }
    range.ring = nest.turning < level ? nest.ring : 0;
    uint32_t index[MC_MAX_DIMS + 2] = {0};
    for (;;) {
        mc_range_t now = range;
        if (nest.turning >= level) {
            const uint32_t i = index[nest.turning], stride = nest.level[nest.turning].stride;
            now.first =
                mc_range_at((mc_range_t){range.first - i * stride, 1, 1, stride, nest.ring}, i, 0);
        }
        each(context, now);
        int32_t at = level;
        for (; at < nest.n; at++) {
            range.first += nest.level[at].stride;
            if (++index[at] < nest.level[at].len)
                break;
            range.first -= nest.level[at].stride * nest.level[at].len;
            index[at] = 0;
        }
        if (at >= nest.n)
            return;
    }
}
