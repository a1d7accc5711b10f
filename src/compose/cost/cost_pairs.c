/* Shares and corrections for an alltoall that gathers along the innermost dimension (cost_pairs.h). */
#include "compose/cost/cost_pairs.h"

/* Blocks that leave a box for others, one for each pair of ranks: of all boxes together, and of the box
 * with the most. */
typedef struct {
    int64_t all, most;
} leaving_t;

static leaving_t leaving(const mc_boxes_t *boxes)
{
    const int64_t ranks = boxes->first[boxes->n];
    leaving_t found = {0, 0};
    for (int32_t b = 0; b < boxes->n; b++) {
        const int64_t inside = boxes->first[b + 1] - boxes->first[b];
        const int64_t blocks = inside * (ranks - inside);
        found.all += blocks;
        found.most = blocks > found.most ? blocks : found.most;
    }
    return found;
}

static int32_t lines_of(const mc_mesh_t *mesh)
{
    return mc_mesh_places(mesh) / mesh->dim[mc_mesh_inner(mesh)].extent;
}

/* Between B boxes an exchange sends (B-1)/B of the share. The share is chosen so that this is what leaves
 * the busiest box, divided by its lines. */
mc_ratio_t mc_pairs_share(const mc_mesh_t *mesh, mc_dims_t dims)
{
    const int32_t longest = mesh->dim[mc_mesh_inner(mesh)].extent;
    if (!mesh->ragged || dims.first != MC_RAGGED_BOX)
        return mc_ratio(longest, 1);
    const int32_t boxes = mesh->dim[MC_RAGGED_BOX].extent, lines = mesh->dim[MC_RAGGED_GPU].extent;
    return mc_ratio(leaving(mesh->ragged).most * boxes, (int64_t)mesh->size * lines * (boxes - 1));
}

static void scale_volume(mc_cost_t *cost, mc_ratio_t by)
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        cost->dim[d].volume = mc_ratio_mul(cost->dim[d].volume, by);
}

/* On shorter lines fewer ranks gather and scatter, with one message each, and less goes between lines. */
static void correct(mc_cost_t *cost, const mc_mesh_t *mesh, mc_dims_t dims)
{
    const int32_t longest = mesh->dim[MC_RAGGED_FOLD].extent, lines = lines_of(mesh);
    if (dims.first == MC_RAGGED_FOLD) {
        cost->dim[MC_RAGGED_FOLD].messages = mesh->size - lines;
        scale_volume(cost, mc_ratio(mesh->size - lines, (int64_t)lines * (longest - 1)));
    } else if (dims.first == MC_RAGGED_GPU) {
        scale_volume(cost, mc_ratio(mesh->size, (int64_t)lines * longest));
    } else {
        const leaving_t blocks = leaving(mesh->ragged);
        scale_volume(cost, mc_ratio(blocks.all, blocks.most * mesh->dim[MC_RAGGED_BOX].extent));
    }
}

void mc_pairs_correct(mc_phase_cost_t *cost, const mc_mesh_t *mesh, mc_dims_t dims)
{
    if (!mesh->ragged || mc_dims_extent(mesh, dims) == 1)
        return;
    correct(&cost->once, mesh, dims);
    correct(&cost->busy, mesh, dims);
}
