/* Which strategy an operation runs: forced by call or environment, else the planner's, remembered. */
#ifndef MC_RUNTIME_CHOICE_H
#define MC_RUNTIME_CHOICE_H

#include "compose/planner/planner.h"
#include "runtime/place/settings.h"

enum { MC_REMEMBERED = 128, MC_CHOICE_BUCKETS = 256 };

/* A choice made before. It depends on nothing but the calls made so far, which all ranks make alike. */
typedef struct {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes;
    bool unforced, in_order, aligned;
    mc_ranked_t best;
    uint64_t used;               /* when last, in choices */
    uint64_t made;               /* its number among all that were made; 0: forgotten */
    int32_t next;                /* in its bucket, as index + 1 */
    meshcoll_request_t *request; /* the runtime's that serves it, where there is one */
} mc_memory_t;

typedef struct {
    bool is_forced[MESHCOLL_COLLECTIVES], by_environment[MESHCOLL_COLLECTIVES];
    mc_strategy_t forced[MESHCOLL_COLLECTIVES];
    /* by exact size; the one that was not used for longest is forgotten first, on every rank */
    mc_memory_t *memory[MC_REMEMBERED]; /* NULL: not needed so far */
    int32_t bucket[MC_CHOICE_BUCKETS];  /* first of those that share a hash, as index + 1 */
    int32_t n_memory;
    mc_memory_t asked;                 /* for a strategy given with a call */
    uint64_t n_made, n_forgotten, now; /* choices made; how often some were forgotten; used */
} mc_choice_t;

/* How far the planner cuts a vector; it prices each power of two up to this. */
enum { MC_MAX_SEGMENTS = 256 };
/* Takes over the strategies of the environment. */
int mc_choice_init(mc_choice_t *choice, const mc_settings_t *settings, const mc_mesh_t *mesh);
void mc_choice_free(mc_choice_t *choice);
int mc_choice_force(mc_choice_t *choice, meshcoll_collective_t collective, const char *strategy,
                    const mc_mesh_t *mesh);

typedef struct {
    meshcoll_collective_t collective;
    int32_t root;
    uint64_t bytes;       /* of the whole vector */
    const char *strategy; /* for this operation only; NULL: none */
    bool unforced;        /* the planner's, whatever is forced */
    bool in_order;        /* reduced in the order of ranks */
    bool one_line;      /* by phases along all dimensions merged; of a mesh always with in_order */
    mc_pacing_t pacing; /* how the library will run it */
    /* by the aligned tree over these, the handle's; NULL: in any way */
    const mc_numbering_t *aligned;
} mc_wish_t;

/* *chosen is the choice's, until the next call. ERR_NO_MEMORY, and what the planner returns. */
int mc_choose(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_wish_t *wish, mc_memory_t **chosen);
/* One that was made before, and not forgotten since, is used again. */
static inline void mc_choice_touch(mc_choice_t *choice, mc_memory_t *m)
{
    m->used = ++choice->now;
}
/* Before a request is freed. */
void mc_choice_forget_request(mc_choice_t *choice, const meshcoll_request_t *request);

#endif
