/*
 * The 1D algorithms, one line each: what it does, its generator, its cost in closed form. Tests,
 * benchmarks and the command pick up whatever stands here.
 */
#ifndef MC_COMPOSE_REGISTRY_H
#define MC_COMPOSE_REGISTRY_H

#include "compose/algorithms/placement.h"
#include "compose/cost/cost.h"
#include "plan/builder.h"

typedef mc_tile_t (*mc_generator_t)(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* On lines of which lengths it adds up by the aligned tree (mesh/aligned.h), whatever its root. */
typedef enum {
    MC_ALIGNED_NEVER,
    MC_ALIGNED_TWO,    /* two ranks: there is one bracket, and the lower rank comes first */
    MC_ALIGNED_THREE,  /* two and three */
    MC_ALIGNED_POWERS, /* powers of two */
    MC_ALIGNED_ANY     /* it is made for that, and enumerated only where that is asked for */
} mc_aligned_t;

/* Do several ranks of a line send to one that they do not hear from, or one to several? */
typedef enum {
    MC_FAN_NONE,    /* what comes tells a rank how far its line is, or two ranks do */
    MC_FAN_CHAIN,   /* one to one, which passes it on */
    MC_FAN_IN_LOG,  /* one for each round of halving */
    MC_FAN_IN_ALL,  /* all the others */
    MC_FAN_OUT_LOG, /* to as many */
    MC_FAN_OUT_ALL
} mc_fan_t;

typedef struct {
    meshcoll_collective_t collective;
    const char *name;
    mc_generator_t generate;
    mc_line_cost_t cost;
    bool slices;      /* cuts the line's dimensions into slices, also where v ends uncut */
    bool composite;   /* the same as a path of others (named in docs); not enumerated again */
    bool keeps_order; /* reduces in the order of the line, whatever its root: x0 (+) x1 (+) x2 … */
    mc_aligned_t aligned;
    mc_fan_t fan;
    bool plane; /* made of two dimensions, and enumerated on lines through two only */
} mc_algorithm_t;

enum { MC_MAX_ALGORITHMS = 64 }; /* a bit each where the search keeps them */
extern const mc_algorithm_t mc_algorithms[];
extern const int32_t mc_n_algorithms;

/* Does it add up a line of `len` ranks by the aligned tree? */
bool mc_algorithm_aligned(int32_t algorithm, int32_t len);

/* How many of a line of `len` ranks send to one and the same, or get from it, without hearing of it. */
int32_t mc_algorithm_senders(int32_t algorithm, int32_t len);
int32_t mc_algorithm_receivers(int32_t algorithm, int32_t len);
/* Does a rank send to one that passes it on to others, so that nothing comes back? */
bool mc_algorithm_passes_on(int32_t algorithm, int32_t len);

/* Dimensions of its line, a bit each, along which one rank alone sends to other boxes: where a tree halves powers of
 * two, its halves are whole boxes, each with a root (mc_mesh_crowd). */
unsigned mc_algorithm_single(int32_t algorithm, const mc_mesh_t *mesh, mc_dims_t dims);

/* Is it an alltoall whose blocks change ranks only? Bruck's turns them inside of a rank too, which pairs
 * of ranks do not allow (plan/pairs.h). */
bool mc_algorithm_exchanges_pairs(int32_t algorithm);

/* Index into mc_algorithms, or -1. */
int32_t mc_algorithm_find(meshcoll_collective_t collective, const char *name, size_t n);

#endif
