#include "compose/strategy/numbering.h"

#include "mesh/aligned.h"

static mc_numbering_t own(const mc_mesh_t *mesh)
{
    mc_numbering_t n = {.flat = false};
    for (int32_t d = 0; d < mesh->ndims; d++)
        n.apart[d] = mc_mesh_stride(mesh, d);
    return n;
}

/* Takes the distances from the first rank's neighbours, and checks that all other ranks agree. */
static bool find_apart(const mc_mesh_t *mesh, const int32_t *number, mc_numbering_t *n)
{
    for (int32_t d = 0; d < mesh->ndims; d++) {
        n->apart[d] = mesh->dim[d].extent > 1 ? number[mc_mesh_stride(mesh, d)] - number[0] : 0;
        if (n->apart[d] < 0)
            return false;
    }
    for (int32_t r = 0; r < mesh->size; r++) {
        int32_t coord[MC_MAX_DIMS], expected = 0;
        mc_mesh_coords(mesh, r, coord);
        for (int32_t d = 0; d < mesh->ndims; d++)
            expected += coord[d] * n->apart[d];
        if (number[r] != expected)
            return false;
    }
    return true;
}

/* Does a reduction of one dimension after another, the closest first, sum blocks of the tree? */
static bool can_nest(const mc_numbering_t *n, const mc_mesh_t *mesh)
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1 && !mc_is_power(n->apart[d]))
            return false;
    return true;
}

mc_numbering_t mc_numbering(const mc_mesh_t *mesh, const int32_t *number)
{
    mc_numbering_t n = {.flat = false};
    if (!mesh->ragged && number && find_apart(mesh, number, &n) && can_nest(&n, mesh))
        return n;
    n = own(mesh);
    n.flat = number || mesh->ragged;
    return n;
}

/* The innermost dimension of `dims` that is longer than 1, or -1. */
static int32_t innermost(const mc_mesh_t *mesh, mc_dims_t dims)
{
    int32_t d = dims.first + dims.count - 1;
    while (d >= dims.first && mesh->dim[d].extent == 1)
        d--;
    return d >= dims.first ? d : -1;
}

int32_t mc_numbering_block(const mc_numbering_t *n, const mc_mesh_t *mesh, mc_dims_t dims)
{
    const int32_t d = innermost(mesh, dims);
    return d < 0 ? 1 : n->apart[d] * mc_dims_extent(mesh, dims);
}

static bool follow_each_other(const mc_numbering_t *n, const mc_mesh_t *mesh, mc_dims_t dims)
{
    int32_t in = innermost(mesh, dims);
    for (int32_t d = in - 1; d >= dims.first; d--) {
        if (mesh->dim[d].extent == 1)
            continue;
        if (n->apart[d] != n->apart[in] * mesh->dim[in].extent)
            return false;
        in = d;
    }
    return true;
}

mc_numbered_t mc_numbering_check(const mc_numbering_t *n, const mc_mesh_t *mesh, mc_dims_t dims,
                                 uint32_t reduced)
{
    const int32_t in = innermost(mesh, dims);
    if (in < 0)
        return MC_NUMBERED;
    if (n->flat && mc_dims_extent(mesh, dims) != mesh->size)
        return MC_NUMBERED_FLAT;
    if (!follow_each_other(n, mesh, dims))
        return MC_NUMBERED_APART;
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1 && !mc_dims_has(dims, d) && !(reduced >> d & 1) &&
            n->apart[d] < n->apart[in])
            return MC_NUMBERED_EARLY;
    const int32_t block = mc_numbering_block(n, mesh, dims);
    return block == mesh->size || mc_is_power(block) ? MC_NUMBERED : MC_NUMBERED_BLOCK;
}
