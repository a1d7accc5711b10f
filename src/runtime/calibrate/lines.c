#include "runtime/calibrate/lines.h"

#include "runtime/connect/connections.h"
#include "runtime/jobs/jobs.h"
#include "runtime/progress/threads.h"

#include <stdlib.h>

/* Which ranks ------------------------------------------------------------------------------------ */

int32_t mc_line_longest(const mc_mesh_t *mesh, int32_t dim)
{
    if (!mesh->ragged || dim == MC_RAGGED_BOX)
        return mesh->dim[dim].extent;
    return dim == MC_RAGGED_GPU ? mesh->ragged->most : 1;
}

int32_t mc_line_count(const mc_mesh_t *mesh, int32_t dim)
{
    if (!mesh->ragged)
        return mc_mesh_stride(mesh, dim);
    return dim == MC_RAGGED_BOX ? mesh->dim[MC_RAGGED_GPU].extent : 1;
}

/* A rank's place among those that differ from it in inner dimensions only. */
static int32_t place_inside(const mc_mesh_t *mesh, int32_t dim, int32_t rank)
{
    return mc_mesh_place(mesh, rank) % mc_mesh_stride(mesh, dim);
}

bool mc_line_is_first(const mc_mesh_t *mesh, int32_t dim, int32_t rank)
{
    return (mesh->ragged && dim != MC_RAGGED_BOX) || place_inside(mesh, dim, rank) == 0;
}

bool mc_line_is_alone(const mc_mesh_t *mesh, int32_t dim, int32_t rank)
{
    const mc_boxes_t *const boxes = mesh->ragged;
    int32_t box = 0;
    if (boxes && dim != MC_RAGGED_BOX) {
        while (boxes->first[box + 1] - boxes->first[box] < boxes->most)
            box++;
        return rank >= boxes->first[box] && rank < boxes->first[box + 1];
    }
    const int32_t outer = mc_mesh_stride(mesh, dim) * mesh->dim[dim].extent;
    return mc_line_is_first(mesh, dim, rank) && mc_mesh_place(mesh, rank) < outer;
}

/* Of a box of its own size, all ranks. */
static int32_t find_box(const mc_mesh_t *mesh, int32_t rank, int32_t *member)
{
    int32_t first;
    const int32_t n = mc_mesh_span(mesh, MC_RAGGED_GPU, rank, &first);
    for (int32_t i = 0; i < n; i++)
        member[i] = first + i;
    return n;
}

/* Returns how many there are; 0: the rank has no line along the dimension. */
static int32_t find_members(const mc_mesh_t *mesh, int32_t dim, int32_t rank, int32_t *member)
{
    const int32_t stride = mc_mesh_stride(mesh, dim), n = mesh->dim[dim].extent;
    if (mesh->ragged && dim != MC_RAGGED_BOX)
        return dim == MC_RAGGED_GPU ? find_box(mesh, rank, member) : 0;
    if (mesh->ragged && mc_mesh_place(mesh, rank) % mesh->dim[MC_RAGGED_FOLD].extent != 0)
        return 0;
    const int32_t inside = place_inside(mesh, dim, rank),
                  outside = mc_mesh_place(mesh, rank) / (stride * n) * (stride * n);
    for (int32_t i = 0; i < n; i++)
        member[i] = mc_mesh_rank_at(mesh, outside + i * stride + inside);
    return n;
}

/* Opening ---------------------------------------------------------------------------------------- */

/* A mesh of these ranks; `own` is this one's place among them. */
static int open_part(meshcoll_t *mesh, const mc_mesh_t *part, const int32_t *member, int32_t own,
                     uint32_t context, meshcoll_t **handle)
{
    const mc_settings_t settings = {.adapt = "off"}; /* what is timed is one strategy */
    meshcoll_t *h;
    const int status = mc_handle_open_part(mesh, part, own, member, &settings, &h);
    if (status)
        return status;
    h->context.number = context;
    h->timeout_ms = mesh->timeout_ms;
    mc_job_lock(mesh->job);
    mc_job_add(h);
    mc_job_unlock(mesh->job);
    *handle = h;
    return MESHCOLL_OK;
}

int mc_line_open_whole(meshcoll_t *mesh, meshcoll_t **whole)
{
    int32_t *const member = malloc((size_t)mesh->mesh.size * sizeof *member);
    for (int32_t r = 0; member && r < mesh->mesh.size; r++)
        member[r] = r;
    const int status =
        member ? open_part(mesh, &mesh->mesh, member, mesh->rank, MC_CONTEXTS - 1, whole)
               : mc_fail_memory("a mesh to measure on");
    free(member);
    return status;
}

static int open_line(meshcoll_t *mesh, int32_t dim, const int32_t *member, int32_t n,
                     meshcoll_t **line)
{
    mc_mesh_t part = {.ndims = 1, .size = n, .dim = {mesh->mesh.dim[dim]}};
    int32_t own = 0;
    part.dim[0].extent = n;
    while (member[own] != mesh->rank)
        own++;
    const int status = open_part(mesh, &part, member, own, MC_CONTEXTS - 2 - (uint32_t)dim, line);
    if (status)
        return status;
    (*line)->links.dim[0] = mesh->links.dim[dim];
    (*line)->links.dim[0].wire = 0;
    (*line)->links.correction[0] = mesh->links.correction[dim];
    /* they share the ports of a box */
    (*line)->share.concurrent = mc_line_count(&mesh->mesh, dim);
    (*line)->share.window = mc_handle_pacing(mesh).window;
    return MESHCOLL_OK;
}

int mc_line_open(meshcoll_t *mesh, int32_t dim, meshcoll_t **line)
{
    int status = MESHCOLL_OK;
    int32_t *const member = malloc((size_t)mc_line_longest(&mesh->mesh, dim) * sizeof *member);
    if (!member)
        return mc_fail_memory("a line to measure on");
    const int32_t n = find_members(&mesh->mesh, dim, mesh->rank, member);
    *line = NULL;
    if (n > 1)
        status = open_line(mesh, dim, member, n, line);
    free(member);
    return status;
}
