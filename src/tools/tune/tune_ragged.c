/*
 * Boxes of unequal sizes. Collectives over all ranks end with phases along fold, so that they do
 * not show the cost of the other dimensions. Two parts with lines of equal length are measured
 * instead, one after the other: the ranks at fold 0 of all boxes, for the network, and all ranks
 * of the largest box. The other ranks block meanwhile.
 */
#include "tools/tune/tune.h"

#include "runtime/handle/handle.h"

#include <stdlib.h>
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

/* The ranks of a part, by their places in the mesh. */
typedef struct {
    meshcoll_t *whole;
    int *rank;
} members_t;

/* Its out-of-band allgather, by messages on the whole mesh: the first member collects and sends back. */
static int gather_part(void *context, const void *in, void *out, size_t bytes)
{
    const members_t *const m = context;
    const int me = meshcoll_rank(m->whole);
    int status = MESHCOLL_OK, n = 0;
    while (m->rank[n] >= 0)
        n++;
    if (me != m->rank[0]) {
        status = meshcoll_send(m->whole, in, bytes, MESHCOLL_INT8, m->rank[0], 0);
        return status ? status
                      : meshcoll_recv(m->whole, out, bytes * (size_t)n, MESHCOLL_INT8, m->rank[0],
                                      0, NULL);
    }
    memcpy(out, in, bytes);
    for (int i = 1; i < n && !status; i++)
        status = meshcoll_recv(m->whole, (char *)out + (size_t)i * bytes, bytes, MESHCOLL_INT8,
                               m->rank[i], 0, NULL);
    for (int i = 1; i < n && !status; i++)
        status = meshcoll_send(m->whole, out, bytes * (size_t)n, MESHCOLL_INT8, m->rank[i], 0);
    return status;
}

/* By mesh rank, the users' number of each that is in the part, then -1; sets this rank's place in it. */
static int find_members(meshcoll_t *whole, const part_t *part, members_t *members, int *place)
{
    const int size = meshcoll_size(whole);
    const int mine[] = {part->mine ? whole->rank : -1, meshcoll_rank(whole)};
    int(*const all)[2] = mc_tune_allocate((size_t)size * sizeof *all);
    int n = 0;
    *members = (members_t){whole, mc_tune_allocate(((size_t)size + 1) * sizeof(int))};
    mc_tune_check(meshcoll_allgather(whole, mine, all, 2, MESHCOLL_INT32), "the ranks of a part");
    for (int at = 0; at < size; at++) /* few ranks: a part of a cluster that is measured */
        for (int r = 0; r < size; r++)
            if (all[r][0] == at) {
                *place = at == whole->rank ? n : *place;
                members->rank[n++] = all[r][1];
            }
    members->rank[n] = -1;
    free(all);
    return n;
}

/* The result is the same on all ranks. */
static void measure(meshcoll_t *whole, const part_t *part, double seconds, mc_tuning_t *tuning)
{
    members_t members;
    int place = 0;
    const int n = find_members(whole, part, &members, &place);
    if (part->mine) {
        const mc_ranks_t ranks = {
            .oob = {.rank = place, .size = n, .context = &members, .allgather = gather_part}};
        mc_tune_measure(&part->cluster, &ranks, seconds, tuning);
    }
    mc_tune_check(meshcoll_barrier(whole), "a barrier"); /* the others block here */
    mc_tune_check(
        meshcoll_bcast(whole, tuning, tuning, sizeof *tuning, MESHCOLL_INT8, members.rank[0]),
        "what a part measured");
    free(members.rank);
}

void mc_tune_measure_ragged(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                            mc_tuning_t *tuning)
{
    meshcoll_t *const whole = mc_tune_open(cluster, ranks);
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
