/* Sub-meshes: lines of a mesh, along some of its dimensions. */
#include "runtime/family/agree.h"
#include "runtime/family/sub.h"
#include "runtime/progress/callback.h"

#include <stdlib.h>
#include <string.h>

/* Members -------------------------------------------------------------------------------------- */

static int fail_dims(const meshcoll_t *h, const char *dims)
{
    return mc_fail(
        MESHCOLL_ERR_INVALID_ARG,
        "meshcoll_split: expected some of the dimensions of %s, once each, as in \"%s\"; "
        "got \"%s\"",
        h->text, h->mesh.dim[h->mesh.ndims - 1].name, dims);
}

/* For example "box,gpu". */
static int parse_dims(const meshcoll_t *h, const char *dims, bool chosen[MC_MAX_DIMS])
{
    for (const char *at = dims;;) {
        const size_t n = strcspn(at, ",");
        const int32_t d = mc_mesh_find(&h->mesh, at, n);
        if (d < 0 || chosen[d])
            return fail_dims(h, dims);
        chosen[d] = true;
        if (!at[n])
            return MESHCOLL_OK;
        at += n + 1;
    }
}

/* A part of a mesh with boxes of unequal sizes is all of it, or one box: the ranks of other
 * parts would disagree about their dimensions. */
static int choose_ragged(mc_members_t *p, const bool chosen[MC_MAX_DIMS])
{
    const meshcoll_t *const h = p->parent;
    const bool inside = chosen[MC_RAGGED_GPU] && chosen[MC_RAGGED_FOLD];
    int32_t first;
    if (!inside)
        return mc_fail(
            MESHCOLL_ERR_UNSUPPORTED,
            "meshcoll_split: %s has boxes of unequal sizes, which split into boxes only, "
            "as in \"gpu,fold\"",
            h->text);
    for (int32_t d = 0; d < MC_RAGGED_DIMS; d++)
        p->dim[d] = chosen[MC_RAGGED_BOX] ? d : MC_RAGGED_GPU;
    p->mesh = h->mesh;
    if (chosen[MC_RAGGED_BOX])
        return MESHCOLL_OK;
    p->mesh = (mc_mesh_t){.ndims = 1, .dim = {h->mesh.dim[MC_RAGGED_GPU]}};
    p->mesh.size = p->mesh.dim[0].extent = mc_mesh_span(&h->mesh, MC_RAGGED_GPU, h->rank, &first);
    return MESHCOLL_OK;
}

static int choose_dims(mc_members_t *p, const bool chosen[MC_MAX_DIMS])
{
    if (p->parent->mesh.ragged)
        return choose_ragged(p, chosen);
    p->mesh = (mc_mesh_t){.size = 1};
    for (int32_t d = 0; d < p->parent->mesh.ndims; d++) {
        if (!chosen[d])
            continue;
        p->dim[p->mesh.ndims] = d;
        p->mesh.dim[p->mesh.ndims++] = p->parent->mesh.dim[d];
        p->mesh.size *= p->parent->mesh.dim[d].extent;
    }
    return MESHCOLL_OK;
}

/* Members of a part with boxes of unequal sizes: consecutive ranks. */
static int find_row(mc_members_t *p)
{
    const mc_mesh_t *const mesh = &p->parent->mesh;
    int32_t first;
    (void)mc_mesh_span(mesh, p->mesh.ragged ? MC_RAGGED_BOX : MC_RAGGED_GPU, p->parent->rank,
                       &first);
    for (int32_t r = 0; r < p->mesh.size; r++)
        p->member[r] = first + r;
    p->rank = p->parent->rank - first;
    return MESHCOLL_OK;
}

static int find_members(mc_members_t *p)
{
    int32_t at[MC_MAX_DIMS], own[MC_MAX_DIMS];
    p->member = calloc((size_t)p->mesh.size, sizeof *p->member);
    if (!p->member)
        return mc_fail_memory("a sub-mesh");
    if (p->parent->mesh.ragged)
        return find_row(p);
    mc_mesh_coords(&p->parent->mesh, p->parent->rank, at);
    for (int32_t r = 0; r < p->mesh.size; r++) {
        mc_mesh_coords(&p->mesh, r, own);
        for (int32_t k = 0; k < p->mesh.ndims; k++)
            at[p->dim[k]] = own[k];
        p->member[r] = mc_mesh_rank(&p->parent->mesh, at);
        if (p->member[r] == p->parent->rank)
            p->rank = r;
    }
    return MESHCOLL_OK;
}

/* Splitting ------------------------------------------------------------------------------------ */

/* Lines of one mesh are told apart by their ranks. */
static uint64_t hash_of(const mc_members_t *p)
{
    uint64_t hash = 0;
    for (int32_t k = 0; k < p->mesh.ndims; k++)
        hash = mc_members_hash(hash, (uint64_t)p->dim[k]);
    return mc_members_hash(hash, (uint64_t)p->mesh.size);
}

static int split(meshcoll_t *mesh, const char *dims, meshcoll_t **sub)
{
    mc_members_t p = {
        .function = "meshcoll_split", .parent = mesh, .at_once = true, .tag = MC_TAG_OF_SPLITS};
    bool chosen[MC_MAX_DIMS] = {false};
    int status = mc_sub_check(p.function, mesh);
    if (!status)
        status = parse_dims(mesh, dims, chosen);
    if (!status)
        status = choose_dims(&p, chosen);
    if (status)
        return status;
    p.list = hash_of(&p);
    status = find_members(&p);
    if (!status)
        status = mc_sub_create(&p, MESHCOLL_OK, sub);
    mc_members_free(&p);
    return status;
}

int meshcoll_split(meshcoll_t *mesh, const char *dims, meshcoll_t **sub)
{
    if (mc_callback_check("meshcoll_split"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!mesh || !dims || !sub)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_split: mesh, dims or sub is NULL");
    mc_lock(mesh);
    const int status = split(mesh, dims, sub);
    return mc_leave(mesh, status);
}
