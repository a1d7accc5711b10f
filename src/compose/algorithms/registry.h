/*
 * The registry of 1D algorithms. Each has one entry: its collective, name, generator, cost in closed form
 * and properties. Verifier, tests, planner, command and benchmarks use every entry.
 */
#ifndef MC_COMPOSE_REGISTRY_H
#define MC_COMPOSE_REGISTRY_H

#include "compose/algorithms/placement.h"
#include "compose/cost/cost.h"
#include "compose/cost/line_rounds.h"
#include "plan/builder.h"

typedef mc_tile_t (*mc_generator_t)(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* The lengths of line on which an algorithm sums by the aligned tree (mesh/aligned.h) with any root. */
typedef enum {
    MC_ALIGNED_NEVER,
    MC_ALIGNED_TWO,    /* up to two ranks: one bracket, the lower rank first */
    MC_ALIGNED_THREE,  /* up to three ranks */
    MC_ALIGNED_POWERS, /* powers of two */
    MC_ALIGNED_ANY     /* all; such an algorithm is enumerated only for reproducible sums */
} mc_aligned_t;

/* How many ranks of a line send to a rank, or receive from one, without a message in the other direction.
 * Such traffic is paced by credits. */
typedef enum {
    MC_FAN_NONE,    /* none: what a rank receives paces what it sends */
    MC_FAN_CHAIN,   /* one to one, which forwards to the next */
    MC_FAN_IN_LOG,  /* one sender for each round of halving */
    MC_FAN_IN_ALL,  /* all others are senders */
    MC_FAN_OUT_LOG, /* one receiver for each round of halving */
    MC_FAN_OUT_ALL  /* all others are receivers */
} mc_fan_t;

/* The name of an algorithm that another one is made of. */
typedef struct {
    meshcoll_collective_t collective;
    const char *name;
} mc_part_name_t;

typedef struct {
    meshcoll_collective_t collective;
    const char *name;
    mc_generator_t generate; /* NULL: those of its parts */
    mc_line_cost_t cost;     /* NULL: those of its parts */
    mc_line_rounds_t rounds; /* NULL: those of its parts */
    bool slices; /* cuts the line's dimensions into slices, even if its result is uncut */
    /* of a composite one: the two others whose path it equals, so it is not enumerated; else NULL */
    const mc_part_name_t *parts;
    bool keeps_order; /* reduces in the order of the line with any root: x0 (+) x1 (+) x2 … */
    mc_aligned_t aligned;
    mc_fan_t fan;
    bool plane; /* for planes: enumerated only on lines of two merged dimensions */
    /* Do all ranks of a line do the same? Then rank i + k has the plan of rank i with all peers k further, and
     * messages as large, though of other slices. */
    bool rotates;
    bool
        turned; /* another one's rounds in the other order, for lines across a network: enumerated only there */
} mc_algorithm_t;

enum { MC_MAX_ALGORITHMS = 64 }; /* mc_choices_t has a bit for each */
extern const mc_algorithm_t mc_algorithms[];
extern const int32_t mc_n_algorithms;

/* Adds an algorithm's steps on a line, or those of its parts, one after the other; returns its cost on lines
 * of that shape, of which the caller leaves `reduces` to `aligned` open. */
mc_tile_t mc_algorithm_generate(int32_t algorithm, mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_phase_cost_t mc_algorithm_cost(int32_t algorithm, const mc_line_shape_t *shape);

/* Part `k` of a composite algorithm, 0 or 1. */
int32_t mc_algorithm_part(int32_t algorithm, int32_t k);

/* Does it sum on a line of `len` ranks by the aligned tree? */
bool mc_algorithm_aligned(int32_t algorithm, int32_t len);

/* Returns how many ranks of a line of `len` send to one rank, or receive from one, without a message in the
 * other direction; 1 if the algorithm's traffic is not of that kind (mc_fan_t). */
int32_t mc_algorithm_senders(int32_t algorithm, int32_t len);
int32_t mc_algorithm_receivers(int32_t algorithm, int32_t len);
/* Does a rank send to one that forwards to the next, so that the sender receives nothing in return? */
bool mc_algorithm_passes_on(int32_t algorithm, int32_t len);

/* The dimensions of its line, a bit each, along which one rank alone sends to other boxes (mc_mesh_sharers).
 * If a tree halves powers of two, its halves are whole boxes with one subtree root each. */
unsigned mc_algorithm_single(int32_t algorithm, const mc_mesh_t *mesh, mc_dims_t dims);

/* Is it an alltoall that moves blocks between ranks only? Bruck's also moves them within a rank, which a
 * layout by pairs of ranks does not allow (plan/pairs.h). */
bool mc_algorithm_exchanges_pairs(int32_t algorithm);

/* Index into mc_algorithms of the algorithm with that name (`n` characters), or -1. */
int32_t mc_algorithm_find(meshcoll_collective_t collective, const char *name, size_t n);

#endif
