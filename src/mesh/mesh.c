#include "mesh/mesh.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail_mesh_text(const char *text, const char *why)
{
    return mc_fail(MESHCOLL_ERR_PARSE,
                   "a mesh is written NAME=EXTENT,… outermost first, as in box=4,gpu=8; in '%s' %s",
                   text, why);
}

/* Reads NAME=EXTENT at *at and moves behind it. */
static int parse_dim(const char *text, const char **at, mc_dim_t *dim)
{
    const char *p = *at;
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-')
        n++;
    if (n == 0 || !isalpha((unsigned char)p[0]))
        return fail_mesh_text(text, "a dimension has no name that starts with a letter");
    if (n >= MC_DIM_NAME)
        return fail_mesh_text(text, "a name is longer than 15 characters");
    if (p[n] != '=')
        return fail_mesh_text(text, "a name has no '=' behind it");
    char *end;
    const long extent = strtol(p + n + 1, &end, 10);
    if (!isdigit((unsigned char)p[n + 1]) || extent < 1 || extent > INT32_MAX)
        return fail_mesh_text(text, "an extent is not a number from 1 on");
    memcpy(dim->name, p, n);
    dim->name[n] = '\0';
    dim->extent = (int32_t)extent;
    *at = end;
    return MESHCOLL_OK;
}

int mc_mesh_parse(const char *text, mc_mesh_t *mesh)
{
    mc_mesh_t m = {.size = 1};
    int64_t size = 1;
    const char *at = text;
    for (;;) {
        if (m.ndims == MC_MAX_DIMS)
            return fail_mesh_text(text, "there are more than 6 dimensions");
        mc_dim_t *const dim = &m.dim[m.ndims];
        const int status = parse_dim(text, &at, dim);
        if (status)
            return status;
        if (mc_mesh_find(&m, dim->name, strlen(dim->name)) >= 0)
            return fail_mesh_text(text, "a name stands twice");
        m.ndims++;
        size *= dim->extent;
        if (size > INT32_MAX)
            return fail_mesh_text(text, "there are more than 2^31 - 1 ranks");
        if (*at == '\0')
            break;
        if (*at != ',')
            return fail_mesh_text(text, "something other than ',' follows an extent");
        at++;
    }
    m.size = (int32_t)size;
    *mesh = m;
    return MESHCOLL_OK;
}

void mc_mesh_print(const mc_mesh_t *mesh, mc_text_t *text)
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        mc_text_add(text, "%s%s=%d", d ? "," : "", mesh->dim[d].name, mesh->dim[d].extent);
}

int mc_mesh_check(const mc_mesh_t *mesh)
{
    char buffer[MC_MAX_DIMS * (MC_DIM_NAME + 12)];
    mc_mesh_t again;
    if (mesh->ndims < 1 || mesh->ndims > MC_MAX_DIMS)
        return mc_fail(MESHCOLL_ERR_MESH, "a mesh has 1 to %d dimensions, not %d", MC_MAX_DIMS,
                       mesh->ndims);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (!memchr(mesh->dim[d].name, '\0', MC_DIM_NAME))
            return mc_fail(MESHCOLL_ERR_MESH, "the name of dimension %d does not end", d);
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_mesh_print(mesh, &text);
    const int status = mc_mesh_parse(buffer, &again);
    if (status)
        return status;
    if (again.size != mesh->size)
        return mc_fail(MESHCOLL_ERR_MESH, "mesh %s has %d ranks, but says %d", buffer, again.size,
                       mesh->size);
    return MESHCOLL_OK;
}

int32_t mc_mesh_stride(const mc_mesh_t *mesh, int32_t dim)
{
    int32_t stride = 1;
    for (int32_t d = dim + 1; d < mesh->ndims; d++)
        stride *= mesh->dim[d].extent;
    return stride;
}

void mc_mesh_coords(const mc_mesh_t *mesh, int32_t rank, int32_t coord[MC_MAX_DIMS])
{
    for (int32_t d = mesh->ndims - 1; d >= 0; d--) {
        coord[d] = rank % mesh->dim[d].extent;
        rank /= mesh->dim[d].extent;
    }
}

int32_t mc_mesh_rank(const mc_mesh_t *mesh, const int32_t coord[MC_MAX_DIMS])
{
    int32_t rank = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        rank = rank * mesh->dim[d].extent + coord[d];
    return rank;
}

int32_t mc_mesh_find(const mc_mesh_t *mesh, const char *name, size_t n)
{
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (strlen(mesh->dim[d].name) == n && memcmp(mesh->dim[d].name, name, n) == 0)
            return d;
    return -1;
}

bool mc_dim_is_inside(const mc_dim_t *dim)
{
    return strcmp(dim->name, "numa") == 0 || strcmp(dim->name, "socket") == 0 ||
           strcmp(dim->name, "gpu") == 0;
}

int32_t mc_mesh_level(const mc_mesh_t *mesh, int32_t a, int32_t b)
{
    int32_t level = -1;
    for (int32_t d = mesh->ndims - 1; d >= 0; d--) {
        const int32_t extent = mesh->dim[d].extent;
        if (a % extent != b % extent)
            level = d;
        a /= extent;
        b /= extent;
    }
    return level;
}

int32_t mc_dims_extent(const mc_mesh_t *mesh, mc_dims_t dims)
{
    int32_t extent = 1;
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
    const int32_t len = mc_dims_extent(mesh, dims);
    const int32_t me = rank / stride % len;
    return (mc_line_t){.dims = dims,
                       .base = rank - me * stride,
                       .stride = stride,
                       .len = len,
                       .me = me,
                       .root = root / stride % len};
}
