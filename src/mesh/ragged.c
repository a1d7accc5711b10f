/*
 * Boxes of unequal sizes. With G ranks in the smallest box, a box of n = q G + r ranks has G lines
 * along fold, the first r of q + 1 ranks and the others of q. Adjacent ranks of a box share a line,
 * so that ranks follow the order of places, and the ranks of a line are consecutive.
 */
#include "mesh/mesh.h"

int32_t mc_mesh_places(const mc_mesh_t *mesh)
{
    int32_t places = 1;
    for (int32_t d = 0; d < mesh->ndims; d++)
        places *= mesh->dim[d].extent;
    return places;
}

typedef struct {
    int32_t box, gpu, fold;
} spot_t;

int32_t mc_boxes_find(const mc_boxes_t *boxes, int32_t rank)
{
    int32_t lo = 0, hi = boxes->n - 1;
    while (lo < hi) {
        const int32_t mid = (lo + hi + 1) / 2;
        if (boxes->first[mid] <= rank)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

int32_t mc_boxes_size(const mc_boxes_t *boxes, int32_t box)
{
    return boxes->first[box + 1] - boxes->first[box];
}

static spot_t spot_of(const mc_boxes_t *boxes, int32_t rank)
{
    const int32_t box = mc_boxes_find(boxes, rank), n = mc_boxes_size(boxes, box),
                  lines = boxes->fewest;
    const int32_t shorter = n / lines, longer = n % lines, in_box = rank - boxes->first[box];
    const int32_t in_shorter = in_box - longer * (shorter + 1);
    if (in_shorter < 0)
        return (spot_t){box, in_box / (shorter + 1), in_box % (shorter + 1)};
    return (spot_t){box, longer + in_shorter / shorter, in_shorter % shorter};
}

static int32_t fold_length(const mc_boxes_t *boxes, int32_t box, int32_t gpu)
{
    const int32_t n = mc_boxes_size(boxes, box), lines = boxes->fewest;
    return n / lines + (gpu < n % lines);
}

/* Returns the first rank of a fold line. */
static int32_t fold_first(const mc_boxes_t *boxes, int32_t box, int32_t gpu)
{
    const int32_t n = mc_boxes_size(boxes, box), lines = boxes->fewest, longer = n % lines;
    return boxes->first[box] + gpu * (n / lines) + (gpu < longer ? gpu : longer);
}

/* Returns the rank after the swap of the leader with the rank at fold 0 of its line. */
static int32_t traded(const mc_mesh_t *mesh, int32_t rank)
{
    const spot_t spot = spot_of(mesh->ragged, mesh->leader);
    const int32_t mate = mesh->leader - spot.fold;
    if (rank == mesh->leader)
        return mate;
    return rank == mate ? mesh->leader : rank;
}

bool mc_mesh_leader_moved(const mc_mesh_t *mesh)
{
    return mesh->ragged && spot_of(mesh->ragged, mesh->leader).fold > 0;
}

int32_t mc_mesh_place(const mc_mesh_t *mesh, int32_t rank)
{
    if (!mesh->ragged)
        return rank;
    const spot_t spot = spot_of(mesh->ragged, traded(mesh, rank));
    return (spot.box * mesh->dim[MC_RAGGED_GPU].extent + spot.gpu) *
               mesh->dim[MC_RAGGED_FOLD].extent +
           spot.fold;
}

int32_t mc_mesh_rank_at(const mc_mesh_t *mesh, int32_t place)
{
    if (!mesh->ragged)
        return place;
    const int32_t lines = mesh->dim[MC_RAGGED_GPU].extent, folds = mesh->dim[MC_RAGGED_FOLD].extent;
    const int32_t fold = place % folds, gpu = place / folds % lines, box = place / folds / lines;
    if (fold >= fold_length(mesh->ragged, box, gpu))
        return -1;
    return traded(mesh, fold_first(mesh->ragged, box, gpu) + fold);
}

int32_t mc_mesh_span(const mc_mesh_t *mesh, int32_t dim, int32_t rank, int32_t *first)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    if (!boxes || dim == MC_RAGGED_BOX) {
        const int32_t n = boxes ? mesh->size : mc_mesh_stride(mesh, dim) * mesh->dim[dim].extent;
        *first = rank - rank % n;
        return n;
    }
    const spot_t spot = spot_of(boxes, rank);
    if (dim == MC_RAGGED_GPU) {
        *first = boxes->first[spot.box];
        return mc_boxes_size(boxes, spot.box);
    }
    *first = rank - spot.fold;
    return fold_length(boxes, spot.box, spot.gpu);
}

/* A fold line with a lower number along gpu is never shorter: gpu 0 has the longest of its box. */
int32_t mc_mesh_fullest(const mc_mesh_t *mesh, unsigned held)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    int32_t n = mesh->size, across = 0;
    if (!boxes) {
        for (int32_t d = 0; d < mesh->ndims; d++)
            n /= held & 1u << d ? mesh->dim[d].extent : 1;
        return n;
    }
    const bool box = held & 1u << MC_RAGGED_BOX, gpu = held & 1u << MC_RAGGED_GPU;
    if (held & 1u << MC_RAGGED_FOLD)
        return (box ? 1 : mesh->dim[MC_RAGGED_BOX].extent) *
               (gpu ? 1 : mesh->dim[MC_RAGGED_GPU].extent);
    if (box)
        return gpu ? mesh->dim[MC_RAGGED_FOLD].extent : boxes->most;
    for (int32_t b = 0; gpu && b < boxes->n; b++)
        across += fold_length(boxes, b, 0);
    return gpu ? across : mesh->size;
}
