/* Queries of a mesh: rank, size, text, coordinates, bytes sent. */
#include "runtime/progress/threads.h"

static int no_mesh(const char *function)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", function);
}

int meshcoll_rank(const meshcoll_t *mesh)
{
    return mesh ? mc_comm_rank_of(&mesh->order, mesh->rank) : no_mesh("meshcoll_rank");
}

int meshcoll_size(const meshcoll_t *mesh)
{
    return mesh ? mesh->mesh.size : no_mesh("meshcoll_size");
}

const char *meshcoll_mesh_text(const meshcoll_t *mesh)
{
    if (!mesh)
        no_mesh("meshcoll_mesh_text");
    return mesh ? mesh->text : NULL;
}

int meshcoll_coord(const meshcoll_t *mesh, int rank, int dim)
{
    int32_t coord[MC_MAX_DIMS];
    if (!mesh)
        return no_mesh("meshcoll_coord");
    if (rank < 0 || rank >= mesh->mesh.size || dim < 0 || dim >= mesh->mesh.ndims)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_coord: expected a rank from 0 to %d and a dimension from 0 to %d, "
                       "got %d and %d",
                       mesh->mesh.size - 1, mesh->mesh.ndims - 1, rank, dim);
    mc_mesh_coords(&mesh->mesh, mc_mesh_rank_of(&mesh->order, rank), coord);
    return coord[dim];
}

uint64_t meshcoll_bytes_sent(const meshcoll_t *mesh, int dim)
{
    if (!mesh)
        no_mesh("meshcoll_bytes_sent");
    if (!mesh || dim < 0 || dim >= mesh->mesh.ndims)
        return 0;
    mc_lock(mesh);
    const uint64_t bytes = mesh->bytes_sent[dim];
    mc_unlock(mesh);
    return bytes;
}
