/*
 * Boxes of unequal sizes. With G ranks in the smallest box, a box of n = q G + r ranks has G lines
 * along fold, the first r of q + 1 ranks and the others of q: neighbours in the box share a line, so
 * that ranks are places in order, and what a line holds is a run of ranks.
 */
#include "mesh/mesh.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Meshes are copied freely, so lists of sizes are never freed; equal ones are kept once. */
static _Atomic(const mc_boxes_t *) known;

static bool has_sizes(const mc_boxes_t *boxes, const int32_t *sizes, int32_t n)
{
    bool same = boxes->n == n;
    for (int32_t b = 0; same && b < n; b++)
        same = boxes->first[b + 1] - boxes->first[b] == sizes[b];
    return same;
}

static const mc_boxes_t *find_known(const mc_boxes_t *boxes, const int32_t *sizes, int32_t n)
{
    while (boxes && !has_sizes(boxes, sizes, n))
        boxes = boxes->next;
    return boxes;
}

static mc_boxes_t *make_boxes(const int32_t *sizes, int32_t n)
{
    mc_boxes_t *const boxes = malloc(sizeof *boxes + ((size_t)n + 1) * sizeof boxes->first[0]);
    if (!boxes)
        return NULL;
    boxes->n = n;
    boxes->fewest = boxes->most = sizes[0];
    boxes->first[0] = 0;
    for (int32_t b = 0; b < n; b++) {
        boxes->fewest = sizes[b] < boxes->fewest ? sizes[b] : boxes->fewest;
        boxes->most = sizes[b] > boxes->most ? sizes[b] : boxes->most;
        boxes->first[b + 1] = boxes->first[b] + sizes[b];
    }
    return boxes;
}

/* NULL: out of memory. Of two threads that add the same, the second finds the first one's. */
static const mc_boxes_t *keep_boxes(const int32_t *sizes, int32_t n)
{
    const mc_boxes_t *latest = atomic_load(&known);
    const mc_boxes_t *found = find_known(latest, sizes, n);
    mc_boxes_t *const made = found ? NULL : make_boxes(sizes, n);
    while (made && !found) {
        made->next = latest;
        if (atomic_compare_exchange_weak(&known, &latest, made))
            return made;
        found = find_known(latest, sizes, n);
    }
    free(made);
    return found;
}

static void add_dim(mc_mesh_t *mesh, const char *name, int32_t extent)
{
    mc_dim_t *const dim = &mesh->dim[mesh->ndims++];
    mc_text_t text = mc_text(dim->name, sizeof dim->name);
    mc_text_add(&text, "%s", name);
    dim->extent = extent;
}

static int check_text(const mc_mesh_t *mesh)
{
    char buffer[MC_MESH_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_mesh_print(mesh, &text);
    if (text.length < sizeof buffer)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_MESH,
                   "the %d boxes have too many sizes by turns: a mesh's text has at most %d "
                   "characters; let boxes of one size follow each other",
                   mesh->ragged->n, MC_MESH_TEXT - 1);
}

/* Places that nobody takes are numbered too. */
static int check_places(const mc_mesh_t *mesh)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    int64_t places = 1; /* of 2^22 ranks less than 2^22 x 2^23 */
    for (int32_t d = 0; d < mesh->ndims; d++)
        places *= mesh->dim[d].extent;
    if (places <= INT32_MAX)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_MESH,
                   "the %d boxes are too unequal, %d to %d ranks: the grid that they are a part of "
                   "has %lld places, and at most 2^31 - 1 are numbered; leave the small boxes out",
                   boxes->n, boxes->fewest, boxes->most, (long long)places);
}

static int check_ranks(const int32_t *sizes, int32_t n)
{
    int64_t ranks = 0;
    for (int32_t b = 0; b < n; b++)
        ranks += sizes[b];
    return ranks <= MC_MESH_RANKS
               ? MESHCOLL_OK
               : mc_fail(MESHCOLL_ERR_MESH,
                         "a mesh has at most 2^22 = %d ranks; %d boxes have %lld", MC_MESH_RANKS, n,
                         (long long)ranks);
}

int mc_mesh_of_boxes(const char *name, const int32_t *sizes, int32_t n, mc_mesh_t *mesh)
{
    mc_mesh_t m = {0};
    if (check_ranks(sizes, n))
        return MESHCOLL_ERR_MESH;
    const mc_boxes_t *const boxes = keep_boxes(sizes, n);
    if (!boxes)
        return mc_fail_memory("a mesh");
    const int32_t least = boxes->fewest;
    if (strcmp(name, "gpu") == 0 || strcmp(name, "fold") == 0)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "boxes of unequal sizes have dimensions gpu and fold inside, so they are "
                       "called otherwise, as in box=8+8+4; got %s",
                       name);
    m.size = boxes->first[n];
    add_dim(&m, name, n);
    add_dim(&m, "gpu", least);
    if (boxes->most > least) {
        m.ragged = boxes;
        add_dim(&m, "fold", (boxes->most + least - 1) / least);
    }
    int status = m.ragged ? check_text(&m) : MESHCOLL_OK;
    if (!status && m.ragged)
        status = check_places(&m);
    if (!status)
        *mesh = m;
    return status;
}

mc_mesh_t mc_mesh_led_by(const mc_mesh_t *mesh, int32_t rank)
{
    mc_mesh_t led = *mesh;
    led.leader = mesh->ragged ? rank : 0;
    return led;
}

mc_mesh_t mc_mesh_flat(const mc_mesh_t *mesh)
{
    mc_mesh_t flat = {.size = mesh->size};
    add_dim(&flat, "rank", mesh->size);
    return flat;
}

/* Places ---------------------------------------------------------------------------------------- */

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

/* First rank of a fold line. */
static int32_t fold_first(const mc_boxes_t *boxes, int32_t box, int32_t gpu)
{
    const int32_t n = mc_boxes_size(boxes, box), lines = boxes->fewest, longer = n % lines;
    return boxes->first[box] + gpu * (n / lines) + (gpu < longer ? gpu : longer);
}

/* The leader and the rank at fold 0 of its line stand for each other. */
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

/* Lines with a low number along gpu are no shorter than others. */
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
