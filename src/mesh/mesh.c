#include "mesh/mesh.h"

#include <string.h>

void mc_mesh_print(const mc_mesh_t *mesh, mc_text_t *text)
{
    if (mesh->ragged)
        mc_text_add(text, "%s", mesh->ragged->text);
    for (int32_t d = 0; d < mesh->ndims && !mesh->ragged; d++)
        mc_text_add(text, "%s%s=%d", d ? "," : "", mesh->dim[d].name, mesh->dim[d].extent);
}

const char *mc_mesh_text(const mc_mesh_t *mesh, char buffer[MC_MESH_TEXT])
{
    mc_text_t text = mc_text(buffer, MC_MESH_TEXT);
    if (mesh->ragged)
        return mesh->ragged->text;
    mc_mesh_print(mesh, &text);
    return buffer;
}

void mc_mesh_coords(const mc_mesh_t *mesh, int32_t rank, int32_t coord[MC_MAX_DIMS])
{
    int32_t place = mc_mesh_place(mesh, rank);
    for (int32_t d = mesh->ndims - 1; d >= 0; d--) {
        coord[d] = place % mesh->dim[d].extent;
        place /= mesh->dim[d].extent;
    }
}

int32_t mc_mesh_rank(const mc_mesh_t *mesh, const int32_t coord[MC_MAX_DIMS])
{
    int32_t place = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        place = place * mesh->dim[d].extent + coord[d];
    return mc_mesh_rank_at(mesh, place);
}

static bool is_name(const char *known, const char *name, size_t n)
{
    return strlen(known) == n && memcmp(known, name, n) == 0;
}

static int32_t find_exact(const mc_mesh_t *mesh, const char *name, size_t n)
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (is_name(mesh->dim[d].name, name, n))
            return d;
    return -1;
}

int32_t mc_mesh_find(const mc_mesh_t *mesh, const char *name, size_t n)
{
    const int32_t found = find_exact(mesh, name, n);
    if (found < 0 && is_name("gpu", name, n))
        return find_exact(mesh, "rank", 4);
    if (found < 0 && is_name("rank", name, n))
        return find_exact(mesh, "gpu", 3);
    return found;
}

int32_t mc_mesh_inner(const mc_mesh_t *mesh)
{
    for (int32_t d = mesh->ndims - 1; d >= 0; d--)
        if (mesh->dim[d].extent > 1)
            return d;
    return mesh->ndims - 1;
}

bool mc_dim_is_inside(const mc_dim_t *dim)
{
    static const char *const inside[] = {"domain", "socket", "numa", "island",
                                         "gpu",    "rank",   "fold"};
    for (size_t i = 0; i < MC_COUNT(inside); i++)
        if (strcmp(dim->name, inside[i]) == 0)
            return true;
    return false;
}

int32_t mc_mesh_level(const mc_mesh_t *mesh, int32_t a, int32_t b)
{
    int32_t at_a[MC_MAX_DIMS], at_b[MC_MAX_DIMS];
    mc_mesh_coords(mesh, a, at_a);
    mc_mesh_coords(mesh, b, at_b);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (at_a[d] != at_b[d])
            return d;
    return -1;
}

int32_t mc_dims_extent(const mc_mesh_t *mesh, mc_dims_t dims)
{
    int32_t extent = 1;
    if (mesh->ragged && dims.count == mesh->ndims)
        return mesh->size;
    for (int32_t d = dims.first; d < dims.first + dims.count; d++)
        extent *= mesh->dim[d].extent;
    return extent;
}

void mc_dims_print(const mc_mesh_t *mesh, mc_dims_t dims, mc_text_t *text)
{
    for (int32_t d = dims.first; d < dims.first + dims.count; d++)
        mc_text_add(text, "%s%s", d > dims.first ? "*" : "", mesh->dim[d].name);
}

mc_line_t mc_mesh_line(const mc_mesh_t *mesh, mc_dims_t dims, int32_t rank, int32_t root)
{
    const int32_t stride = mc_mesh_stride(mesh, dims.first + dims.count - 1);
    const int32_t extent = mc_dims_extent(mesh, dims), place = mc_mesh_place(mesh, rank);
    const int32_t me = place / stride % extent, base = place - me * stride;
    int32_t len = extent;
    if (mesh->ragged && dims.first == MC_RAGGED_FOLD)
        while (mc_mesh_rank_at(mesh, base + len - 1) < 0)
            len--;
    return (mc_line_t){.dims = dims,
                       .base = base,
                       .stride = stride,
                       .len = len,
                       .me = me,
                       .root = mc_mesh_place(mesh, root) / stride % extent};
}
