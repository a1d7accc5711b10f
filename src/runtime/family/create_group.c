/* Groups: any ranks of a mesh, listed by their members. */
#include "runtime/family/sub.h"
#include "runtime/progress/callback.h"

#include <stdlib.h>
#include <string.h>

static const char function[] = "meshcoll_create_group";

typedef struct {
    const int *rank; /* of the parent, as the caller gave them */
    int32_t n, tag;
} list_t;

/* Checks ------------------------------------------------------------------------------------------ */

static int check_list(const meshcoll_t *h, const list_t *l)
{
    const int own = mc_comm_rank_of(&h->order, h->rank);
    bool has_own = false;
    if (l->n < 1 || l->n > h->mesh.size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: expected 1 to %d ranks, as many as the parent has; got %d", function,
                       h->mesh.size, l->n);
    if (l->tag < 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected a tag from 0 on, got %d", function,
                       l->tag);
    for (int32_t i = 0; i < l->n; i++) {
        if (l->rank[i] < 0 || l->rank[i] >= h->mesh.size)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s: expected ranks from 0 to %d, but ranks[%d] is %d", function,
                           h->mesh.size - 1, i, l->rank[i]);
        has_own = has_own || l->rank[i] == own;
    }
    return has_own
               ? MESHCOLL_OK
               : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "%s: rank %d calls it, but is not in its list: only the members call it",
                         function, own);
}

/* `sorted`: the parent's mesh ranks. */
static int check_distinct(const meshcoll_t *h, const int32_t *sorted, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1])
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "%s: rank %d is in the list twice: list each member once", function,
                           mc_comm_rank_of(&h->order, sorted[i]));
    return MESHCOLL_OK;
}

static uint64_t hash_of(const list_t *l)
{
    uint64_t hash = mc_members_hash(0, (uint64_t)l->n);
    for (int32_t i = 0; i < l->n; i++)
        hash = mc_members_hash(hash, (uint64_t)l->rank[i]);
    return hash;
}

/* A part of the parent's grid ----------------------------------------------------------------------- */

/* Counts, by dimension of the parent, the different coordinates of the members. */
static int count_coordinates(const mc_mesh_t *mesh, const int32_t *member, int32_t n,
                             int32_t count[MC_MAX_DIMS])
{
    int32_t most = 0, at[MC_MAX_DIMS];
    for (int32_t d = 0; d < mesh->ndims; d++)
        most = mesh->dim[d].extent > most ? mesh->dim[d].extent : most;
    char *const seen = calloc(MC_MAX_DIMS, (size_t)most);
    if (!seen)
        return mc_fail_memory("a group");
    memset(count, 0, MC_MAX_DIMS * sizeof *count);
    for (int32_t r = 0; r < n; r++) {
        mc_mesh_coords(mesh, member[r], at);
        for (int32_t d = 0; d < mesh->ndims; d++) {
            char *const one = &seen[(size_t)d * (size_t)most + (size_t)at[d]];
            count[d] += !*one;
            *one = 1;
        }
    }
    free(seen);
    return MESHCOLL_OK;
}

/* All members that are at one of these coordinates in each dimension are there if there are as many. */
static bool is_grid(const mc_mesh_t *mesh, const int32_t count[MC_MAX_DIMS], int32_t n)
{
    int64_t places = mesh->ragged ? 0 : 1;
    for (int32_t d = 0; d < mesh->ndims && places <= n; d++)
        places *= count[d];
    return places == n;
}

static void add_dim(mc_members_t *p, int32_t d, int32_t extent)
{
    const mc_mesh_t *const mesh = &p->parent->mesh;
    p->dim[p->mesh.ndims] = d;
    p->mesh.dim[p->mesh.ndims] = mesh->dim[d];
    p->mesh.dim[p->mesh.ndims++].extent = extent;
}

static void make_grid(mc_members_t *p, const int32_t count[MC_MAX_DIMS], int32_t n)
{
    const mc_mesh_t *const mesh = &p->parent->mesh;
    p->mesh = (mc_mesh_t){.size = n};
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (count[d] > 1)
            add_dim(p, d, count[d]);
    if (n == 1)
        add_dim(p, mc_mesh_inner(mesh), 1);
}

/* Any other ranks ---------------------------------------------------------------------------------- */

/* The parent's links by the group's dimensions: of each the outermost that joins neighbours along it. */
static void find_dims(mc_members_t *p)
{
    const mc_mesh_t *const mesh = &p->parent->mesh;
    for (int32_t k = 0; k < p->mesh.ndims; k++)
        p->dim[k] = MC_MAX_DIMS;
    for (int32_t r = 1; r < p->mesh.size; r++) {
        const int32_t k = mc_mesh_level(&p->mesh, r - 1, r);
        const int32_t d = mc_mesh_level(mesh, p->member[r - 1], p->member[r]);
        p->dim[k] = d < p->dim[k] ? d : p->dim[k];
    }
    for (int32_t k = 0; k < p->mesh.ndims; k++)
        if (p->dim[k] == MC_MAX_DIMS)
            p->dim[k] = mc_mesh_inner(mesh);
}

/* Where the sizes of boxes make no mesh. */
static int one_line(mc_members_t *p, int32_t n)
{
    const mc_mesh_t all = {.size = n, .ndims = 1, .dim = {{.name = "line", .extent = n}}};
    p->mesh = all;
    return MESHCOLL_OK;
}

static int arrange(mc_members_t *p, const list_t *l, const mc_place_t *place)
{
    const meshcoll_t *const h = p->parent;
    mc_arranged_t a;
    int status = mc_arrange(NULL, NULL, place, l->n, &a);
    if (status == MESHCOLL_ERR_MESH)
        status = one_line(p, l->n);
    else if (!status) {
        p->mesh = a.mesh;
        p->order = a.order;
        a.order = (mc_order_t){0};
        mc_arranged_free(&a);
    }
    for (int32_t r = 0; r < l->n && !status; r++)
        p->member[r] = mc_mesh_rank_of(&h->order, l->rank[mc_comm_rank_of(&p->order, r)]);
    return status;
}

static int make_arranged(mc_members_t *p, const list_t *l)
{
    const meshcoll_t *const h = p->parent;
    mc_place_t *const place = calloc((size_t)l->n, sizeof *place);
    int32_t *const first = malloc((size_t)h->mesh.size * sizeof *first);
    int status = place && first ? MESHCOLL_OK : mc_fail_memory("a table of places");
    for (int32_t i = l->n - 1; i >= 0 && !status; i--)
        first[h->machine[mc_mesh_rank_of(&h->order, l->rank[i])]] = i;
    /* named as in the parent's mesh */
    const bool gpus = strcmp(h->mesh.dim[h->mesh.ndims - 1].name, "rank") != 0;
    for (int32_t i = 0; i < l->n && !status; i++)
        place[i] =
            (mc_place_t){first[h->machine[mc_mesh_rank_of(&h->order, l->rank[i])]], -1, -1, gpus};
    if (!status)
        status = arrange(p, l, place);
    free(first);
    free(place);
    if (!status)
        find_dims(p);
    return status;
}

/* Order ---------------------------------------------------------------------------------------------- */

/* The caller's order of the members of a grid. */
static int set_order(mc_members_t *p, const list_t *l)
{
    bool same = true;
    for (int32_t r = 0; r < l->n; r++)
        same = same && mc_mesh_rank_of(&p->parent->order, l->rank[r]) == p->member[r];
    if (same)
        return MESHCOLL_OK;
    p->order.mesh_rank = calloc((size_t)l->n, sizeof *p->order.mesh_rank);
    p->order.comm_rank = calloc((size_t)l->n, sizeof *p->order.comm_rank);
    if (!p->order.mesh_rank || !p->order.comm_rank)
        return mc_fail_memory("the order of the ranks");
    for (int32_t i = 0; i < l->n; i++) {
        const int32_t rank = mc_mesh_rank_of(&p->parent->order, l->rank[i]);
        const int32_t *const at =
            bsearch(&rank, p->member, (size_t)l->n, sizeof *p->member, mc_compare_ranks);
        p->order.mesh_rank[i] = (int32_t)(at - p->member);
        p->order.comm_rank[at - p->member] = i;
    }
    return MESHCOLL_OK;
}

static int find_mesh(mc_members_t *p, const list_t *l)
{
    int32_t count[MC_MAX_DIMS];
    int status = count_coordinates(&p->parent->mesh, p->member, l->n, count);
    if (status)
        return status;
    if (is_grid(&p->parent->mesh, count, l->n)) {
        make_grid(p, count, l->n);
        status = set_order(p, l);
    } else {
        status = make_arranged(p, l);
    }
    for (int32_t r = 0; r < l->n; r++)
        if (p->member[r] == p->parent->rank)
            p->rank = r;
    return status;
}

/* Creating ------------------------------------------------------------------------------------------- */

/* The members by their ranks in the parent; then by those in the group. */
static int create(mc_members_t *p, const list_t *l, meshcoll_t **group)
{
    p->member = malloc((size_t)l->n * sizeof *p->member);
    if (!p->member)
        return mc_fail_memory("a list of ranks");
    for (int32_t i = 0; i < l->n; i++)
        p->member[i] = mc_mesh_rank_of(&p->parent->order, l->rank[i]);
    qsort(p->member, (size_t)l->n, sizeof *p->member, mc_compare_ranks);
    int status = check_distinct(p->parent, p->member, l->n);
    if (status)
        return status;
    p->list = hash_of(l);
    p->mesh.size = l->n;
    return mc_sub_create(p, find_mesh(p, l), group);
}

static int create_locked(meshcoll_t *parent, const list_t *l, meshcoll_t **group)
{
    mc_members_t p = {.function = function, .parent = parent, .tag = l->tag};
    int status = mc_sub_check(function, parent);
    if (!status)
        status = check_list(parent, l);
    if (!status)
        status = create(&p, l, group);
    mc_members_free(&p);
    return status;
}

int meshcoll_create_group(meshcoll_t *parent, const int *ranks, int n, int tag, meshcoll_t **group)
{
    const list_t l = {ranks, n, tag};
    if (mc_callback_check(function))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!parent || !ranks || !group)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: parent, ranks or group is NULL", function);
    mc_lock(parent);
    const int status = create_locked(parent, &l, group);
    return mc_leave(parent, status);
}
