/*
 * Which strategy an operation runs: forced by call, mesh or environment, else the planner's.
 *
 * A choice is a function of its key, the mesh, its links and what is forced for the mesh. These are equal on all ranks,
 * so that ranks choose alike without communication. Nothing else enters: no time, no buffers, no choices made before,
 * and not what the cache of calls holds (call/cache.h). So ranks may cache, forget and repeat choices in any order.
 * What calls learn is kept apart, equal on all ranks too (runtime/adapt/lessons.h), and goes before the planner's choice.
 */
#ifndef MC_RUNTIME_CHOICE_H
#define MC_RUNTIME_CHOICE_H

#include "compose/planner/planner.h"
#include "runtime/place/settings.h"

/* The strategies that are forced for a mesh. */
typedef struct {
    bool is_forced[MESHCOLL_COLLECTIVES], by_environment[MESHCOLL_COLLECTIVES];
    mc_strategy_t forced[MESHCOLL_COLLECTIVES];
} mc_choice_t;

/* How far the planner cuts a vector; it prices each power of two up to this. */
enum { MC_MAX_SEGMENTS = 256 };
/* Takes over the strategies of the environment. */
int mc_choice_init(mc_choice_t *choice, const mc_settings_t *settings, const mc_mesh_t *mesh);
int mc_choice_force(mc_choice_t *choice, meshcoll_collective_t collective, const char *strategy,
                    const mc_mesh_t *mesh);

typedef struct {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes;       /* of the whole vector */
    const char *strategy; /* for this operation only; NULL: none */
    bool unforced;        /* the planner's, whatever is forced */
    bool in_order;        /* reduced in the order of ranks */
    bool ordered; /* learns among strategies of one order of sums (compose/strategy/order.h) */
    bool learned; /* the choice is that of a learner (runtime/adapt/lessons.h) */
    /* Where its buffers are, for what calls learn: on a GPU, and there in registered memory; 0: of the host. */
    uint8_t memory;
    bool one_line;      /* by phases along all dimensions merged; of a mesh always with in_order */
    mc_pacing_t pacing; /* how the library will run it */
    /* by the aligned tree over these, the handle's; NULL: in any way */
    const mc_numbering_t *aligned;
} mc_choice_key_t;

/* Do two keys without a strategy of their own have the same choice on one mesh? */
static inline bool mc_choice_key_same(const mc_choice_key_t *a, const mc_choice_key_t *b)
{
    return a->bytes == b->bytes && a->collective == b->collective && a->root == b->root &&
           a->unforced == b->unforced && a->in_order == b->in_order && a->ordered == b->ordered &&
           a->aligned == b->aligned && a->memory == b->memory;
}

/* The query of the planner. */
static inline mc_planner_query_t mc_choice_query(const mc_choice_key_t *key, uint32_t most)
{
    return (mc_planner_query_t){.root = key->root,
                                .bytes = (double)key->bytes,
                                .max_segments = MC_MAX_SEGMENTS,
                                .most = most,
                                .in_order = key->in_order,
                                .aligned = key->aligned,
                                .pacing = &key->pacing};
}

/* ERR_NO_MEMORY, and what the planner returns. */
int mc_choose(const mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_choice_key_t *key, mc_ranked_t *best);

#endif
