/* Ranks of this machine that take themselves for ranks of several, in an order that does not go box
 * by box. */
#ifndef MC_TEST_SHUFFLED_H
#define MC_TEST_SHUFFLED_H

#include <meshcoll/meshcoll.h>

#include <mpi.h>

typedef struct {
    /* as the world's ranks stand, of equal size, and what is left a smaller one; nodes of each box */
    int boxes, nodes;
    int step; /* neighbours of the world stand so far apart: no divisor of its size */
} mc_shuffle_t;

/* The world in another order, to be freed. */
MPI_Comm mc_shuffled_world(const mc_shuffle_t *shuffle);
/* meshcoll_create over that communicator, with the boxes faked. */
int mc_shuffled_create(MPI_Comm comm, const mc_shuffle_t *shuffle, const meshcoll_params_t *params,
                       meshcoll_t **mesh);

#endif
