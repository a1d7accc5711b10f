/* meshcoll tune: the links of this cluster measured, under load, through the library's own runtime. */
#ifndef MC_TOOLS_TUNE_H
#define MC_TOOLS_TUNE_H

#include "compose/algorithms/registry.h"
#include "runtime/create/tuned.h"
#include "tools/common/tool.h"
#include "tools/tune/tune_fit.h"

#include <mpi.h>

extern const mc_command_t mc_tune_command;

/* What was seen along one dimension; zeros where it is 1 long. */
typedef struct {
    int32_t ranks;          /* at work meanwhile */
    int32_t lines;          /* of this dimension through one box */
    double alpha, cpu;      /* seconds a round, and a message of any rank: of the whole mesh */
    double row;             /* seconds a message in a row, that waits for none; all ranks at once */
    double incast;          /* by how much of together bytes from all at once are slower */
    double together, alone; /* seconds a byte of one line: all at once, one a box */
    double window;          /* bytes of a wire that wanted more on the way than others do; else 0 */
    double pieces;          /* bytes; 0: not measured */
    bool own_wire;          /* seen to share none with others of the network */
    uint64_t bytes;         /* of the largest message */
    double piece;           /* bytes of the pieces in which it was sent */
    /* on wires, of one vector in large and in small pieces; one a box */
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
    int32_t n_points; /* of a single line in memory: its link at several sizes */
    mc_link_point_t point[MC_LINK_POINTS];
    /* seconds of algorithms there; 0: not timed */
    double single[MC_LINK_POINTS][MC_MAX_ALGORITHMS];
    int32_t n_pairs;
    mc_tuned_pair_t pair[MC_TUNE_PAIRS];
    double burst; /* seconds that the bytes of mc_tune_burst take, which follow on a pause */
    double gamma; /* seconds a byte reduced, all ranks at once */
    int32_t rounds;
    double seconds;
} mc_tuning_t;

/* Collective over `comm`, whose ranks form the cluster; takes about `seconds`. A failure ends all
 * ranks. */
void mc_tune_measure(const mc_cluster_t *cluster, MPI_Comm comm, double seconds,
                     mc_tuning_t *tuning);
/* The same of boxes of unequal sizes, over MPI_COMM_WORLD. */
void mc_tune_measure_ragged(const mc_cluster_t *cluster, double seconds, mc_tuning_t *tuning);
/* What is measured of boxes of unequal sizes for the network, the ranks at fold 0; another mesh is all
 * of it. */
mc_mesh_t mc_tune_grid(const mc_mesh_t *mesh);
/* The cluster's mesh, on its transports; `pieces` as in link.h, of the dimension that mc_tune_find_pieces() measures. */
meshcoll_t *mc_tune_open(const mc_cluster_t *cluster, MPI_Comm comm, double pieces);
/* Up to which size pieces are the faster way, of a mesh that is one line in memory whose ranks have cores of their own; 0: of
 * others, or not measured. `dim`: which one. Takes about `seconds`. */
double mc_tune_find_pieces(const mc_cluster_t *cluster, MPI_Comm comm, double seconds,
                           int32_t *dim);
/* One line on stderr, and the end of all ranks. */
_Noreturn void mc_tune_die(const char *what);

/* What was seen as the cost model's links; what was not measured is the default's. */
int mc_tune_links(const mc_cluster_t *cluster, const mc_tuning_t *tuning, mc_links_t *links);
/* Does this dimension stay in one machine's memory, where the receiver copies? */
bool mc_tune_is_pulled(const mc_cluster_t *cluster, int32_t dim);

#endif
