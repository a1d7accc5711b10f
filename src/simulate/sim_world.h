/* The plans of all ranks and the links between them, as they are simulated; internal to src/simulate. */
#ifndef MC_SIM_WORLD_H
#define MC_SIM_WORLD_H

#include "simulate/simulate.h"

enum { MC_SENDS, MC_RECEIVES };

/* A step, as far as it takes time. */
typedef struct {
    double chunks; /* that are not empty; of buckets, in chunks of the mean size */
    uint32_t slot, seq;
    uint16_t bucket;
    uint8_t op, phase;
} mc_sim_step_t;

/* A plan, shared by the ranks of an orbit. A slot is the index of a peer in plan->peer. */
typedef struct {
    mc_plan_t *plan;
    mc_sim_step_t *step;
    uint32_t *pred_off, *pred;     /* as mc_plan_predecessors */
    uint32_t *off[2], *message[2]; /* by slot: the steps that send to it, or receive from it */
    uint32_t *root_off, *root;     /* by bucket: the steps that wait for none */
} mc_program_t;

/* Digits of a rank's number by which all ranks may be shifted: rank / stride % extent. The first rank of an orbit
 * has zeros there. */
typedef struct {
    int32_t n;
    struct {
        int32_t stride, extent;
    } digit[MC_MAX_DIMS];
    uint32_t n_programs;
    mc_program_t *program;
    int32_t *of; /* by rank: its program */
} mc_orbits_t;

int mc_orbits_create(const mc_simulation_t *q, mc_orbits_t *orbits);
void mc_orbits_free(mc_orbits_t *orbits);
/* The rank that is to `rank` as `other` is to the first rank of its orbit; and back. */
int32_t mc_orbits_shift(const mc_orbits_t *o, int32_t other, int32_t rank, int32_t sign);

typedef struct {
    uint32_t link;
    uint32_t weight; /* messages that share it in the same way, this one included */
} mc_sim_hop_t;

/* What an actor sends to one of its peers, and receives from it. */
typedef struct {
    uint32_t peer, back; /* the actor, and this actor's slot there */
    uint32_t hop;        /* first of its hops */
    uint16_t n_hops;
    uint8_t dim; /* whose link joins them */
} mc_sim_pair_t;

typedef struct {
    double beta;   /* 0: that of the message's dimension */
    double slow;   /* a factor of that */
    bool receiver; /* a rank: each message takes a gap more until the next */
    uint32_t id;   /* number of the first such link */
    uint32_t alike;
} mc_world_link_t;

/* An actor is a rank, or a class of ranks that all do the same. */
typedef struct {
    uint32_t n_actors, n_links;
    int32_t *rank, *program; /* by actor: its first rank */
    size_t *pair_off;        /* by actor */
    mc_sim_pair_t *pair;
    mc_sim_hop_t *hop;
    mc_world_link_t *link;
    uint32_t n_network; /* links of the network come first; then receivers and ports by dimension */
} mc_sim_world_t;

int mc_sim_world_create(const mc_simulation_t *q, const mc_orbits_t *orbits, mc_sim_world_t *world);
void mc_sim_world_free(mc_sim_world_t *world);
void mc_sim_world_name(const mc_simulation_t *q, const mc_sim_world_t *world, uint32_t link,
                       mc_text_t *text);
/* Leaves one actor of each class. */
int mc_sim_world_fold(const mc_simulation_t *q, mc_sim_world_t *world);

#endif
