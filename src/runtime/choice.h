/* Which strategy an operation runs: forced by call or environment, else the planner's, remembered. */
#ifndef MC_RUNTIME_CHOICE_H
#define MC_RUNTIME_CHOICE_H

#include "compose/planner.h"
#include "runtime/settings.h"

enum { MC_REMEMBERED = 64 };

typedef struct {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes;
    bool in_order;
    bool set;
    mc_ranked_t best;
} mc_memory_t;

typedef struct {
    bool is_forced[MESHCOLL_COLLECTIVES];
    mc_strategy_t forced[MESHCOLL_COLLECTIVES];
    /* by exact size, the latest first: every rank forgets the same ones */
    mc_memory_t memory[MC_REMEMBERED];
} mc_choice_t;

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
} mc_wish_t;

int mc_choose(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_wish_t *wish, mc_ranked_t *chosen);

#endif
