/* meshcoll tune: the links of this cluster measured, under load, through the library's own runtime. */
#ifndef MC_TOOLS_TUNE_H
#define MC_TOOLS_TUNE_H

#include "compose/algorithms/registry.h"
#include "runtime/create/tuned.h"
#include "runtime/handle/handle.h"
#include "tools/common/ranks.h"
#include "tools/common/tool.h"
#include "tools/tune/tune_batch.h"
#include "tools/tune/tune_fit.h"
#include "tools/tune/tune_memory.h"

/* Measurements along one dimension; zeros where its extent is 1. */
typedef struct {
    int32_t ranks; /* at work meanwhile */
    int32_t lines; /* lines of this dimension that cross one box */
    double alpha;  /* seconds per round */
    double row;    /* seconds per message of a sequence without dependencies; all ranks send */
    double together,
        alone;         /* seconds per byte of one line: all lines active, one line per box active */
    double window;     /* bytes in flight through all ports of a box, where sends stream; else 0 */
    bool own_wire;     /* measured not to share a wire with another dimension of the network */
    uint64_t bytes;    /* of the largest message */
    mc_estimate_t cpu; /* seconds per message of any rank of the mesh, from every round */
} mc_seen_t;

typedef struct {
    mc_seen_t dim[MC_MAX_DIMS];
    mc_measured_t measured; /* empty unless the mesh is a single line in memory */
    mc_estimate_t burst;    /* seconds for the bytes of mc_tune_burst after a pause */
    double gamma;           /* seconds per byte reduced, all ranks active */
    int32_t rounds;
    double seconds;
} mc_tuning_t;

/* Collective over `ranks`, which form the cluster, or without a bootstrap a part of one. Runs for about `seconds`. A
 * failure ends this process, and with it the job. */
void mc_tune_measure(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                     mc_tuning_t *tuning);
/* The same for boxes of unequal sizes. */
void mc_tune_measure_ragged(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                            mc_tuning_t *tuning);
/* The part of a ragged mesh that measures the network: the ranks at fold 0. Any other mesh is
 * returned as it is. */
mc_mesh_t mc_tune_grid(const mc_mesh_t *mesh);
/* Creates the cluster's mesh on its transports. */
meshcoll_t *mc_tune_open(const mc_cluster_t *cluster, const mc_ranks_t *ranks);

/* Derives the cost model's links from the measurements. Fields that were not measured have their
 * defaults. */
int mc_tune_links(const mc_cluster_t *cluster, const mc_tuning_t *tuning, mc_links_t *links);
/* Rounds to three digits, the precision of a measurement, in the unit in which the value is
 * printed. */
double mc_tune_rounded(double seconds);
/* One clause for each correction that was measured: its value, its standard error, and whether it is
 * written. */
void mc_tune_print_corrections(const mc_mesh_t *mesh, const mc_tuning_t *tuning, mc_text_t *text);
/* Does this dimension use shared memory only, so that the receiver copies? */
bool mc_tune_is_pulled(const mc_cluster_t *cluster, int32_t dim);

#endif
