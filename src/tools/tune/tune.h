/* meshcoll tune: the links of this cluster measured, under load, through the library's own runtime. */
#ifndef MC_TOOLS_TUNE_H
#define MC_TOOLS_TUNE_H

#include "compose/algorithms/registry.h"
#include "runtime/create/tuned.h"
#include "tools/common/tool.h"
#include "tools/tune/tune_fit.h"

#include <mpi.h>

extern const mc_command_t mc_tune_command;

/* Measurements along one dimension; zeros where its extent is 1. */
typedef struct {
    int32_t ranks;     /* at work meanwhile */
    int32_t lines;     /* lines of this dimension that cross one box */
    double alpha, cpu; /* seconds per round, and per message of any rank of the mesh */
    double row;        /* seconds per message of a sequence without dependencies; all ranks send */
    double incast;     /* relative increase of `together` when several ranks send to one */
    double together,
        alone;      /* seconds per byte of one line: all lines active, one line per box active */
    double window;  /* bytes in flight that the wire needs where that exceeds the default; else 0 */
    double pieces;  /* bytes; 0: not measured */
    bool own_wire;  /* measured not to share a wire with another dimension of the network */
    uint64_t bytes; /* of the largest message */
    double piece;   /* bytes per piece of that message */
    /* on wires, the same vector in large and in small pieces; one line per box */
    mc_tune_pieces_t coarse, fine;
} mc_seen_t;

/* At each of the link's sizes. */
typedef struct {
    mc_tune_pair_t of;
    int32_t first[MC_LINK_POINTS]; /* algorithm */
    double seconds[MC_LINK_POINTS];
} mc_tuned_pair_t;

typedef struct {
    mc_seen_t dim[MC_MAX_DIMS];
    int32_t n_points; /* of a single line in memory: the link at several sizes */
    mc_link_point_t point[MC_LINK_POINTS];
    /* seconds of each algorithm at that size; 0: not timed */
    double single[MC_LINK_POINTS][MC_MAX_ALGORITHMS];
    int32_t n_pairs;
    mc_tuned_pair_t pair[MC_TUNE_PAIRS];
    double burst; /* seconds for the bytes of mc_tune_burst after a pause */
    double gamma; /* seconds per byte reduced, all ranks active */
    int32_t rounds;
    double seconds;
} mc_tuning_t;

/* Collective over `comm`, whose ranks form the cluster. Runs for about `seconds`. A failure
 * aborts all ranks. */
void mc_tune_measure(const mc_cluster_t *cluster, MPI_Comm comm, double seconds,
                     mc_tuning_t *tuning);
/* The same for boxes of unequal sizes, over MPI_COMM_WORLD. */
void mc_tune_measure_ragged(const mc_cluster_t *cluster, double seconds, mc_tuning_t *tuning);
/* The part of a ragged mesh that measures the network: the ranks at fold 0. Any other mesh is
 * returned as it is. */
mc_mesh_t mc_tune_grid(const mc_mesh_t *mesh);
/* Creates the cluster's mesh on its transports. `pieces` is the link's field (link.h) of the
 * dimension that mc_tune_find_pieces() measures. */
meshcoll_t *mc_tune_open(const mc_cluster_t *cluster, MPI_Comm comm, double pieces);
/* The largest message size at which pieces are faster than a direct copy, for a mesh that is one
 * line in shared memory without oversubscribed cores; 0 for other meshes. Sets `dim` to that
 * dimension. Runs for about `seconds`. */
double mc_tune_find_pieces(const mc_cluster_t *cluster, MPI_Comm comm, double seconds,
                           int32_t *dim);
/* Prints one line on stderr and aborts all ranks. */
_Noreturn void mc_tune_die(const char *what);

/* Derives the cost model's links from the measurements. Fields that were not measured have their
 * defaults. */
int mc_tune_links(const mc_cluster_t *cluster, const mc_tuning_t *tuning, mc_links_t *links);
/* Does this dimension use shared memory only, so that the receiver copies? */
bool mc_tune_is_pulled(const mc_cluster_t *cluster, int32_t dim);

#endif
