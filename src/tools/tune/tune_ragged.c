/*
 * Boxes of unequal sizes. Collectives over all ranks end with phases along fold, so that they do
 * not show the cost of the other dimensions. Two parts with lines of equal length are measured
 * instead, one after the other: the ranks at fold 0 of all boxes, for the network, and all ranks
 * of the largest box. The other ranks block meanwhile.
 */
#include "tools/tune/tune.h"

#include <meshcoll/mpi.h>

#include "runtime/handle/handle.h"

#include <string.h>

typedef struct {
    mc_cluster_t cluster;
    bool mine; /* is this rank one of them? */
} part_t;

static part_t network_of(const mc_cluster_t *all, int32_t rank)
{
    part_t part = {.cluster = *all};
    part.cluster.mesh = mc_tune_grid(&all->mesh);
    part.mine = mc_mesh_place(&all->mesh, rank) % all->mesh.dim[MC_RAGGED_FOLD].extent == 0;
    return part;
}

static part_t fullest_box(const mc_cluster_t *all, int32_t rank)
{
    const mc_boxes_t *const boxes = all->mesh.ragged;
    part_t part = {.cluster = *all};
    int32_t box = 0;
    while (boxes->first[box + 1] - boxes->first[box] < boxes->most)
        box++;
    part.mine = rank >= boxes->first[box] && rank < boxes->first[box + 1];
    part.cluster.machines = 1;
    part.cluster.mesh =
        (mc_mesh_t){.ndims = 1, .size = boxes->most, .dim = {all->mesh.dim[MC_RAGGED_GPU]}};
    part.cluster.mesh.dim[0].extent = boxes->most;
    /* gpu has no transport where the smallest box has one rank */
    memcpy(part.cluster.tls[0], all->tls[MC_RAGGED_FOLD], sizeof part.cluster.tls[0]);
    return part;
}

/* The result is the same on all ranks. */
static void measure(meshcoll_t *whole, const part_t *part, double seconds, mc_tuning_t *tuning)
{
    int32_t rank, speaker;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, part->mine ? 0 : MPI_UNDEFINED, whole->rank, &comm);
    if (part->mine) {
        mc_tune_measure(&part->cluster, comm, seconds, tuning);
        MPI_Comm_free(&comm);
    }
    /* a waiting rank blocks here; in MPI it would poll */
    if (meshcoll_barrier(whole))
        mc_tune_die("a barrier");
    speaker = part->mine ? rank : INT32_MAX;
    MPI_Allreduce(MPI_IN_PLACE, &speaker, 1, MPI_INT32_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Bcast(tuning, (int)sizeof *tuning, MPI_BYTE, speaker, MPI_COMM_WORLD);
}

void mc_tune_measure_ragged(const mc_cluster_t *cluster, double seconds, mc_tuning_t *tuning)
{
    meshcoll_t *const whole = mc_tune_open(cluster, MPI_COMM_WORLD);
    static part_t part;
    static mc_tuning_t inside;
    part = network_of(cluster, whole->rank);
    measure(whole, &part, seconds / 2, tuning);
    part = fullest_box(cluster, whole->rank);
    measure(whole, &part, seconds / 2, &inside);
    tuning->dim[MC_RAGGED_GPU] = tuning->dim[MC_RAGGED_FOLD] = inside.dim[0];
    tuning->gamma = inside.gamma;
    tuning->rounds = inside.rounds < tuning->rounds ? inside.rounds : tuning->rounds;
    tuning->seconds += inside.seconds;
    meshcoll_destroy(whole);
}
