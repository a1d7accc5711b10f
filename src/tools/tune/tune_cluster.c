/*
 * Properties of a cluster that measuring needs: the mesh on its transports, the even part of a
 * ragged mesh, whether a dimension uses shared memory.
 */
#include "tools/tune/tune.h"

#include <meshcoll/mpi.h>

#include "tools/tune/tune_batch.h"

#include <string.h>

mc_mesh_t mc_tune_grid(const mc_mesh_t *mesh)
{
    mc_mesh_t grid = *mesh;
    if (mesh->ragged) {
        grid.ragged = NULL;
        grid.ndims = MC_RAGGED_FOLD;
        grid.size = mesh->dim[MC_RAGGED_BOX].extent * mesh->dim[MC_RAGGED_GPU].extent;
    }
    return grid;
}

/* Do all of these transports use the memory of one machine, so that the receiver copies? */
static bool is_shared_memory(const char *tls)
{
    static const char *const memory[] = {"self", "sm",   "shm",   "mm",     "posix",   "sysv",
                                         "cma",  "knem", "xpmem", "memory", "shm:copy"};
    for (const char *at = tls; *at;) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;
        while (i < MC_COUNT(memory) && (strlen(memory[i]) != n || strncmp(at, memory[i], n) != 0))
            i++;
        if (i == MC_COUNT(memory))
            return false;
        at += at[n] ? n + 1 : n;
    }
    return true;
}

bool mc_tune_is_pulled(const mc_cluster_t *cluster, int32_t dim)
{
    return is_shared_memory(cluster->tls[dim]);
}

meshcoll_t *mc_tune_open(const mc_cluster_t *c, MPI_Comm comm)
{
    char mesh[MC_MESH_TEXT], transports[MC_MAX_DIMS * (MC_DIM_NAME + MC_TLS_TEXT)];
    mc_text_t transports_text = mc_text(transports, sizeof transports);
    meshcoll_t *whole = NULL;
    mc_cluster_print_transports(c, &transports_text);
    /* links given by name: the file of tuned links, which is about to be written, is not read */
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = mc_mesh_text(&c->mesh, mesh),
                                      .links = mc_cluster_presets[0].name,
                                      .transports = transports};
    mc_tune_check(meshcoll_create(comm, &params, &whole), "the mesh");
    return whole;
}
