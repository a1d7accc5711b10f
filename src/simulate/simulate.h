/*
 * Simulation of a strategy: the sealed plans of all ranks, event by event, on the links of a mesh and a network between
 * its boxes. Times are whole picoseconds, and what happens at one instant does not depend on an order: results are
 * the same on every machine.
 *
 * A port sends one message at a time, for gap + bytes * beta, and starts the first one in program order of those that
 * are ready while fewer than MC_UNDER_WAY are on their way. Of a pulled link the receiver's port does so, alpha after
 * the sender was ready. Messages that start at one instant share the links on their way and leave them together; later
 * ones queue. A message arrives alpha after it has left the slowest of them, or at once if it is pulled. A rank adds up
 * one message at a time, for bytes * gamma; copies take no time. A send has ended when its message has arrived. The
 * links' corrections for shared cores do not count.
 *
 * Ranks that do the same are one: plans are shared by the ranks of an orbit under shifts of the mesh
 * (mc_algorithm_t.rotates), and colour refinement (Weisfeiler and Leman 1968) finds the ranks whose peers and links are
 * alike all the way. All of such a class do the same at the same time, and one of them is simulated. That is exact.
 */
#ifndef MC_SIMULATE_SIMULATE_H
#define MC_SIMULATE_SIMULATE_H

#include "compose/strategy/strategy.h"
#include "network/network.h"

enum { MC_UNDER_WAY = 4, MC_BUSIEST = 10 };

/* A message, as it is recorded. */
typedef struct {
    int32_t from, to, phase;
    double bytes;
    int64_t start, arrival; /* ps */
} mc_sent_t;

typedef struct {
    char name[MC_NETWORK_NAME];
    int64_t busy;   /* ps */
    uint32_t alike; /* links of its class */
} mc_busiest_t;

/* What is ready at a time, as the gradients of a few layers are: a call of its own. In ps; `ended` is set. */
typedef struct {
    double bytes;
    int64_t ready, ended;
} mc_bucket_t;

/* A link by its name, as in the list of the busiest, and how much longer messages take on it. */
typedef struct {
    const char *link;
    double factor;
} mc_slow_t;

typedef struct {
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    const mc_strategy_t *strategy;
    int32_t root;
    double bytes;          /* of the whole vector (alltoall: of what one rank sends) */
    mc_network_t *network; /* NULL: boxes are joined by as many links as their ports carry */
    /* by rank: the rank in whose place it is on the network and in a box; NULL: its own */
    const int32_t *order;
    bool whole;          /* every rank, not one of each class */
    const int64_t *late; /* by rank: ps by which it starts later; NULL: all start at 0 */
    /* factors of the time of links; all others have 1 */
    const mc_slow_t *slow;
    uint32_t n_slow;
    /* Buckets of together `bytes` bytes, each of as many segments of the strategy: calls in this order, which are under way
     * at the same time. No rank is late. NULL: one call, at 0. */
    mc_bucket_t *bucket;
    uint32_t n_buckets;
    void (*record)(void *context, const mc_sent_t *message); /* by start; NULL: not called */
    /* called at the end for each link that was used, or in a whole run is of the network; NULL: not called */
    void (*load)(void *context, const mc_busiest_t *link);
    void *context;
} mc_simulation_t;

typedef struct {
    int64_t ps; /* until the last rank has ended, with what a call takes besides (mc_links_call) */
    struct {
        int64_t first, last; /* first start and last end of its steps; first > last: it has none */
    } phase[MC_PLAN_PHASES];
    uint64_t messages, events; /* simulated */
    int32_t plans, classes;    /* that stand for all ranks */
    int32_t n_busiest;
    mc_busiest_t busiest[MC_BUSIEST]; /* links and shared ports, the busiest first */
} mc_simulated_t;

int mc_simulate(const mc_simulation_t *query, mc_simulated_t *result);

#endif
