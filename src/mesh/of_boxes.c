/* Makes meshes of boxes of given sizes; ragged.c reads them. */
#include "mesh/mesh.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Meshes are copied freely, so lists of sizes are shared: equal lists are stored once, and never
 * freed. */
static _Atomic(const mc_boxes_t *) known;

static bool has_sizes(const mc_boxes_t *boxes, const char *name, const int32_t *sizes, int32_t n)
{
    const size_t length = strlen(name);
    bool same =
        boxes->n == n && strncmp(boxes->text, name, length) == 0 && boxes->text[length] == '=';
    for (int32_t b = 0; same && b < n; b++)
        same = boxes->first[b + 1] - boxes->first[b] == sizes[b];
    return same;
}

static const mc_boxes_t *find_known(const mc_boxes_t *boxes, const char *name, const int32_t *sizes,
                                    int32_t n)
{
    while (boxes && !has_sizes(boxes, name, sizes, n))
        boxes = boxes->next;
    return boxes;
}

/* Runs of more than three boxes of one size are abbreviated: "4x8". */
static void print_boxes(const char *name, const int32_t *sizes, int32_t n, mc_text_t *text)
{
    mc_text_add(text, "%s=", name);
    for (int32_t b = 0, run; b < n; b += run) {
        const char *const plus = b ? "+" : "";
        run = 1;
        while (b + run < n && sizes[b + run] == sizes[b])
            run++;
        if (run > 3)
            mc_text_add(text, "%s%dx%d", plus, run, sizes[b]);
        for (int32_t i = 0; i < run && run <= 3; i++)
            mc_text_add(text, "%s%d", i ? "+" : plus, sizes[b]);
    }
}

static mc_boxes_t *make_boxes(const char *name, const int32_t *sizes, int32_t n)
{
    mc_text_t length = mc_text(NULL, 0);
    print_boxes(name, sizes, n, &length);
    const size_t firsts = ((size_t)n + 1) * sizeof(int32_t), room = length.length + 1;
    mc_boxes_t *const boxes = malloc(sizeof *boxes + firsts + room);
    if (!boxes)
        return NULL;
    char *const behind = (char *)boxes->first + firsts;
    mc_text_t text = mc_text(behind, room);
    print_boxes(name, sizes, n, &text);
    boxes->text = behind;
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

/* Returns NULL when out of memory. Of two threads that add equal lists, the second finds the first
 * one's. */
static const mc_boxes_t *keep_boxes(const char *name, const int32_t *sizes, int32_t n)
{
    const mc_boxes_t *latest = atomic_load(&known);
    const mc_boxes_t *found = find_known(latest, name, sizes, n);
    mc_boxes_t *const made = found ? NULL : make_boxes(name, sizes, n);
    while (made && !found) {
        made->next = latest;
        if (atomic_compare_exchange_weak(&known, &latest, made))
            return made;
        found = find_known(latest, name, sizes, n);
    }
    free(made);
    return found;
}

void mc_mesh_forget_boxes(void)
{
    const mc_boxes_t *boxes = atomic_exchange(&known, NULL);
    while (boxes) {
        const mc_boxes_t *const next = boxes->next;
        free((void *)boxes);
        boxes = next;
    }
}

static void add_dim(mc_mesh_t *mesh, const char *name, int32_t extent)
{
    mc_dim_t *const dim = &mesh->dim[mesh->ndims++];
    mc_text_t text = mc_text(dim->name, sizeof dim->name);
    mc_text_add(&text, "%s", name);
    dim->extent = extent;
}

/* Absent places are numbered too, and their numbers must fit. */
static int check_places(const mc_mesh_t *mesh)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    int64_t places = 1; /* no overflow: 2^22 ranks have less than 2^22 x 2^23 places */
    for (int32_t d = 0; d < mesh->ndims; d++)
        places *= mesh->dim[d].extent;
    if (places <= INT32_MAX)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_MESH,
                   "the %d boxes are too unequal, %d to %d ranks: the grid that contains them "
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
    const mc_boxes_t *const boxes = keep_boxes(name, sizes, n);
    if (!boxes)
        return mc_fail_memory("a mesh");
    const int32_t least = boxes->fewest;
    if (strcmp(name, "gpu") == 0 || strcmp(name, "fold") == 0)
        return mc_fail(MESHCOLL_ERR_PARSE,
                       "boxes of unequal sizes have inner dimensions gpu and fold, so they need "
                       "another name, as in box=8+8+4; got %s",
                       name);
    m.size = boxes->first[n];
    add_dim(&m, name, n);
    add_dim(&m, "gpu", least);
    if (boxes->most > least) {
        m.ragged = boxes;
        add_dim(&m, "fold", (boxes->most + least - 1) / least);
    }
    const int status = m.ragged ? check_places(&m) : MESHCOLL_OK;
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
