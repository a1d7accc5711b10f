/*
 * Fits alpha and cpu of all dimensions to the times of small collectives over the whole mesh, and
 * all parameters of a line to the times of collectives of one size.
 */
#ifndef MC_TOOLS_TUNE_FIT_H
#define MC_TOOLS_TUNE_FIT_H

#include "compose/strategy/paths.h"

enum { MC_TUNE_EACH = 3, MC_TUNE_SHAPES = MC_TUNE_EACH * MC_MAX_DIMS, MC_TUNE_SHAPE = 512 };

/* Strategy `i` to be timed, an allreduce; false past the last one. */
bool mc_tune_shape(const mc_mesh_t *mesh, int32_t i, char text[MC_TUNE_SHAPE]);

/* Collectives of every kind on a single line. Together they expose every cost: rounds, messages
 * in sequence, bytes along the longest path or of all ranks, reductions. False past the last
 * one, and where the mesh has not exactly one dimension longer than 1. */
typedef struct {
    meshcoll_collective_t collective;
    int32_t dim;
    char strategy[MC_TUNE_SHAPE];
} mc_tune_probe_t;
enum { MC_TUNE_PROBES = 32 };
bool mc_tune_probe(const mc_mesh_t *mesh, int32_t i, mc_tune_probe_t *probe);

/* The strategy of a single algorithm of the registry; false where the planner does not use it,
 * and as above. */
bool mc_tune_single(const mc_mesh_t *mesh, int32_t algorithm, mc_tune_probe_t *probe);

/* Two phases on a single line, in the order in which a strategy of `asked` runs them. */
enum { MC_TUNE_PAIRS = 24 };
typedef struct {
    meshcoll_collective_t asked;
    mc_choices_t first; /* any of these */
    int32_t second;     /* algorithm */
} mc_tune_pair_t;
/* All pairs that the planner uses on this mesh; returns their number. None where not exactly one
 * dimension is longer than 1. */
int32_t mc_tune_pairs(const mc_mesh_t *mesh, mc_tune_pair_t pair[MC_TUNE_PAIRS]);
/* The strategy of the pair with `first` as its first algorithm. */
void mc_tune_pair_probe(const mc_mesh_t *mesh, const mc_tune_pair_t *pair, int32_t first,
                        mc_tune_probe_t *probe);
/* The factor of the second phase at a vector of `bytes`, where the pair takes `seconds` and
 * `links` has the factors of single algorithms. At least half of the algorithm's own factor: the
 * time of the phase is a difference, which noise may make too small. */
int mc_tune_pair_factor(const mc_mesh_t *mesh, const mc_links_t *links, const mc_tune_probe_t *pair,
                        double bytes, double seconds, double *factor);

/* Bytes that every rank sends in pieces without a pause: bytes and seconds per piece. */
typedef struct {
    double bytes, seconds;
} mc_tune_pieces_t;
/* Bytes of overhead per piece on the wire, where each piece costs the ranks `own` seconds. */
double mc_tune_header(const mc_tune_pieces_t *coarse, const mc_tune_pieces_t *fine, double own);

/* The alpha of a link from the fitted alpha, the cost of a message on its rank, and the seconds
 * per message of a sequence. */
double mc_tune_alpha(double fitted, double cpu, double row);

/* An allreduce by rings along all dimensions, for MC_TUNE_BURST bytes; false on one rank. */
enum { MC_TUNE_BURST = 32 << 10 };
bool mc_tune_burst(const mc_mesh_t *mesh, char text[MC_TUNE_SHAPE]);
/* Sets the burst of the network's port from the `seconds` that these bytes take after a pause:
 * the port of the outermost link, or of the inner link whose wire that link shares. */
int mc_tune_keep_burst(const mc_mesh_t *mesh, double seconds, mc_links_t *links);

/* `seconds[i]`: the time of strategy i in one segment and with negligible bytes. Least squares
 * of the relative residuals. No result is negative; dimensions of extent 1 have 0. */
int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS]);

/* `seconds[i]`: the time of probe i with a vector of `bytes`. Fits the parameters of the link at
 * that size in the same way. `smaller`: the points of `n_smaller` smaller sizes, ascending; they
 * bound the cost per message. `alone`: so few bytes that they cost no time of their own. */
int mc_tune_fit_at(const mc_mesh_t *mesh, const double seconds[MC_TUNE_PROBES], double bytes,
                   const mc_link_point_t *smaller, int32_t n_smaller, bool alone,
                   mc_link_point_t *point);

#endif
