/*
 * A strategy: phases in order, each `collective:algorithm(dimension)`, and the number of segments.
 * "scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8". The same text everywhere.
 * It may have two sides, "A | B": each takes half of the vector, every other segment, by phases of
 * its own, so that one is on the links of one dimension while the other is on another's.
 */
#ifndef MC_COMPOSE_STRATEGY_H
#define MC_COMPOSE_STRATEGY_H

#include "compose/algorithms/registry.h"
#include "compose/strategy/numbering.h"

/* the longest simple path of one dimension has 3 moves (partial, shard, root, replica) */
enum {
    MC_MAX_PHASES = 3 * MC_MAX_DIMS, /* of a side */
    MC_STRATEGY_TEXT = 64 * MC_MAX_SIDES * MC_MAX_PHASES
};

typedef struct {
    int32_t algorithm; /* index into mc_algorithms */
    mc_dims_t dims;
} mc_phase_t;

typedef struct {
    meshcoll_collective_t collective;
    uint32_t segments; /* even where there are two sides: they take turns */
    int32_t n_phases;  /* of both sides */
    int32_t second;    /* where the second side's phases start; 0: there is one side */
    mc_phase_t phase[MC_MAX_SIDES * MC_MAX_PHASES];
} mc_strategy_t;

static inline int32_t mc_strategy_sides(const mc_strategy_t *s)
{
    return s->second > 0 ? 2 : 1;
}
/* A side's phases are [first, end). */
static inline int32_t mc_side_first(const mc_strategy_t *s, int32_t side)
{
    return side > 0 ? s->second : 0;
}
static inline int32_t mc_side_end(const mc_strategy_t *s, int32_t side)
{
    return side == 0 && s->second > 0 ? s->second : s->n_phases;
}

/* Takes a strategy text or a named entry ("option2", "flat-ring segments=4"), checked. */
int mc_strategy_parse(const char *text, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy);
/* Text that parses back to the same; without "segments=" where it is as many as there are sides. */
void mc_strategy_print(const mc_strategy_t *strategy, const mc_mesh_t *mesh, mc_text_t *text);
/* Does every dimension go from its first state to its last, on each side, each phase from the state
 * it is in? Dimensions of extent 1 may be left out. */
int mc_strategy_check(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Does it reduce in the order of ranks, as operations that do not commute need? ERR_STRATEGY says
 * which phase does not. True of algorithms that keep the order of their line, when inner dimensions
 * are reduced before outer ones: then what is added up are neighbouring runs of ranks. The
 * strategy was checked. A ragged mesh is led by the operation's root (mc_mesh_led_by). */
int mc_strategy_check_order(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Does it add up by the aligned tree over that numbering? ERR_STRATEGY says which phase does not. The
 * strategy was checked. */
int mc_strategy_check_aligned(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_numbering_t *numbering);
/* Does every phase go along all dimensions at once? On a ragged mesh, whose lines else never merge
 * fold with others, the whole strategy is then one of mc_mesh_flat. */
bool mc_strategy_is_flat(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Is it an alltoall that gathers what the ranks of a line send, and scatters what has come for them? */
bool mc_strategy_gathers(const mc_strategy_t *strategy);
/* The same phases on mc_mesh_flat. */
mc_strategy_t mc_strategy_flat(const mc_strategy_t *strategy);
bool mc_strategy_equal(const mc_strategy_t *a, const mc_strategy_t *b);

/* Named entries: "option1" …, "flat-mst", "flat-ring", …; the pattern's dimensions are filled in for
 * the mesh. */
typedef struct {
    const char *name, *help;
    meshcoll_collective_t collective;
} mc_named_t;
int32_t mc_named_count(void);
const mc_named_t *mc_named_at(int32_t index);
/* The named entry on this mesh, or ERR_STRATEGY with the reason why it has none. */
int mc_strategy_named(const char *name, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy);

/* The placements before phase `i` of its side (i == n_phases: at the end). */
void mc_strategy_state(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t i,
                       mc_placement_t state[MC_MAX_DIMS]);
/* Which dimensions the strategy cuts, and the chunk order that keeps its tiles in one piece. */
int mc_strategy_layout(const mc_strategy_t *strategy, const mc_mesh_t *mesh, mc_layout_t *layout);

/* One rank's sealed plan. What has no root of its own passes through `root`, where it passes through one rank. */
int mc_strategy_plan(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t rank,
                     int32_t root, mc_plan_t **plan);

/*
 * Every strategy of a collective on a mesh: every simple path of placements (no dimension is twice
 * in one state), dimensions plain and merged, phases of different dimensions in every order; each
 * algorithm that is no composite. `each` returns false to stop. Segments are 1.
 * MC_PATHS_COVER gives each path with just enough strategies that every algorithm stands in every
 * phase once; MC_PATHS_ALL gives the full product.
 */
typedef enum { MC_PATHS_COVER, MC_PATHS_ALL } mc_paths_t;
int mc_strategy_each(meshcoll_collective_t collective, const mc_mesh_t *mesh, mc_paths_t which,
                     bool (*each)(void *context, const mc_strategy_t *strategy), void *context);

#endif
