#include "support/mpi/shuffled.h"

#include "mpi/mpi_oob.h"
#include "runtime/create/create.h"

#include <stdlib.h>

MPI_Comm mc_shuffled_world(const mc_shuffle_t *shuffle)
{
    int rank, size;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank * shuffle->step % size, &comm);
    return comm;
}

static int create(const mc_shuffle_t *s, mc_creation_t *c, int *world, mc_place_t *place,
                  meshcoll_t **mesh)
{
    const int box = c->oob.size / s->boxes, node = box / s->nodes;
    int self;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    if (c->oob.allgather(c->oob.context, &self, world, sizeof self))
        return MESHCOLL_ERR_TRANSPORT;
    for (int r = 0; r < c->oob.size; r++) {
        int first = 0;
        while (world[first] / box != world[r] / box)
            first++;
        place[r] = (mc_place_t){
            .machine = first, .node = world[r] % box / node, .package = -1, .gpus = true};
    }
    c->place = place;
    return mc_handle_create(c, mesh);
}

int mc_shuffled_create(MPI_Comm comm, const mc_shuffle_t *shuffle, const meshcoll_params_t *params,
                       meshcoll_t **mesh)
{
    mc_creation_t c = {.oob = mc_mpi_oob(comm), .params = params};
    int *const world = calloc((size_t)c.oob.size, sizeof *world);
    mc_place_t *const place = calloc((size_t)c.oob.size, sizeof *place);
    const int status =
        world && place ? create(shuffle, &c, world, place, mesh) : mc_fail_memory("places");
    free(place);
    free(world);
    return status;
}
