/* Alpha and cpu of all dimensions from the times of small collectives over the whole mesh, and all numbers
 * of a line from those of collectives of one size. */
#ifndef MC_TOOLS_TUNE_FIT_H
#define MC_TOOLS_TUNE_FIT_H

#include "compose/strategy/paths.h"

enum { MC_TUNE_EACH = 3, MC_TUNE_SHAPES = MC_TUNE_EACH * MC_MAX_DIMS, MC_TUNE_SHAPE = 512 };

/* Strategy `i` of those to be timed, an allreduce; false where there are no more. */
bool mc_tune_shape(const mc_mesh_t *mesh, int32_t i, char text[MC_TUNE_SHAPE]);

/* Collectives on a single line, of every kind. Among them are all ways to be slow: rounds, messages in a row, bytes along
 * the longest path or of all ranks, sums. False where there are no more, or the mesh has not one dimension longer
 * than 1. */
typedef struct {
    meshcoll_collective_t collective;
    int32_t dim;
    char strategy[MC_TUNE_SHAPE];
} mc_tune_probe_t;
enum { MC_TUNE_PROBES = 32 };
bool mc_tune_probe(const mc_mesh_t *mesh, int32_t i, mc_tune_probe_t *probe);

/* The strategy of one algorithm of the registry alone; false where planning does not take it, or as above. */
bool mc_tune_single(const mc_mesh_t *mesh, int32_t algorithm, mc_tune_probe_t *probe);

/* Two phases on a single line, the second after the first as a strategy of `asked` has them. */
enum { MC_TUNE_PAIRS = 24 };
typedef struct {
    meshcoll_collective_t asked;
    mc_choices_t first; /* any of these */
    int32_t second;     /* algorithm */
} mc_tune_pair_t;
/* All that planning takes on this mesh; how many. None where it has not one dimension longer than 1. */
int32_t mc_tune_pairs(const mc_mesh_t *mesh, mc_tune_pair_t pair[MC_TUNE_PAIRS]);
/* With algorithm `first` before it. */
void mc_tune_pair_probe(const mc_mesh_t *mesh, const mc_tune_pair_t *pair, int32_t first,
                        mc_tune_probe_t *probe);
/* The second phase's factor at a vector of `bytes`, where the pair takes `seconds`, and `links` has the algorithms' own. No
 * less than half of its own: what it takes is a difference, that other times may make too small. */
int mc_tune_pair_factor(const mc_mesh_t *mesh, const mc_links_t *links, const mc_tune_probe_t *pair,
                        double bytes, double seconds, double *factor);

/* Bytes that every rank sends in pieces, one after the other all the time: of a piece, and seconds for each. */
typedef struct {
    double bytes, seconds;
} mc_tune_pieces_t;
/* Bytes by which every piece keeps the wire busy besides its own, where ranks are at it for `own` seconds. */
double mc_tune_header(const mc_tune_pieces_t *coarse, const mc_tune_pieces_t *fine, double own);

/* A link's alpha of a fitted one, a rank's own time for a message, and seconds a message in a row that waits for none. */
double mc_tune_alpha(double fitted, double cpu, double row);

/* An allreduce by rings along all dimensions, for MC_TUNE_BURST bytes; false on one rank. */
enum { MC_TUNE_BURST = 32 << 10 };
bool mc_tune_burst(const mc_mesh_t *mesh, char text[MC_TUNE_SHAPE]);
/* `seconds` is what these bytes take after a pause. What they should take beyond that the network's port has let
 * pass: the outermost link's, or that of the inner one whose wire it shares. */
int mc_tune_keep_burst(const mc_mesh_t *mesh, double seconds, mc_links_t *links);

/* `seconds[i]` of strategy i, in one segment and with next to no bytes. Least squares of what they are
 * off by, relative to each; no number is negative, and those of dimensions 1 long are 0. */
int mc_tune_fit(const mc_mesh_t *mesh, const double seconds[MC_TUNE_SHAPES],
                double alpha[MC_MAX_DIMS], double cpu[MC_MAX_DIMS]);

/* `seconds[i]` of probe i with a vector of `bytes`: the link's numbers at that size, in the same
 * way. `smaller`: those of `n_smaller` sizes, ascending, as a message's own time hardly depends on its bytes.
 * `alone`: so few bytes that they take no time of their own, or they would be missing where there are fewer. */
int mc_tune_fit_at(const mc_mesh_t *mesh, const double seconds[MC_TUNE_PROBES], double bytes,
                   const mc_link_point_t *smaller, int32_t n_smaller, bool alone,
                   mc_link_point_t *point);

#endif
