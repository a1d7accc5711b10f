/*
 * A strategy: phases in order, each `collective:algorithm(dimension)`, and the number of segments, as in
 * "scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8". All programs read and print this text.
 * A strategy "A | B" has two sides. Each carries half of the vector, every other segment, by phases of its
 * own, so that the sides use the links of different dimensions concurrently.
 */
#ifndef MC_COMPOSE_STRATEGY_H
#define MC_COMPOSE_STRATEGY_H

#include "compose/algorithms/registry.h"
#include "compose/strategy/numbering.h"

/* The longest simple path of one dimension has 3 moves: partial, shard, root, replica. */
enum {
    MC_MAX_PHASES = 3 * MC_MAX_DIMS, /* of a side */
    MC_STRATEGY_TEXT = 64 * MC_MAX_SIDES * MC_MAX_PHASES,
    MC_STRATEGY_MOST_READ = 8191 /* characters of a text that is parsed */
};

typedef struct {
    int32_t algorithm; /* index into mc_algorithms */
    mc_dims_t dims;
} mc_phase_t;

typedef struct {
    meshcoll_collective_t collective;
    uint32_t segments; /* even if there are two sides, which alternate */
    int32_t n_phases;  /* of both sides */
    int32_t second;    /* index of the second side's first phase; 0: there is one side */
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

/* Parses and checks the text of a strategy or of a named one ("option2", "flat-ring segments=4"). */
int mc_strategy_parse(const char *text, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy);
/* Text that parses back to the same strategy. "segments=" is left out if it equals the number of sides. */
void mc_strategy_print(const mc_strategy_t *strategy, const mc_mesh_t *mesh, mc_text_t *text);
/* One of its phases, as a strategy. */
void mc_strategy_print_phase(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t phase,
                             mc_text_t *text);
/* Does each side take every dimension from the collective's first placement to its last, with each phase
 * starting from the placement it finds? Dimensions of extent 1 may be left out. */
int mc_strategy_check(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Does it reduce in the order of ranks, as operations that do not commute need? It does if its algorithms
 * keep the order of their lines and inner dimensions are reduced before outer ones, since each reduction
 * then combines adjacent runs of ranks. Otherwise MESHCOLL_ERR_STRATEGY, with a message that names the
 * phase. Call mc_strategy_check first. A ragged mesh is led by the operation's root (mc_mesh_led_by). */
int mc_strategy_check_order(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Does it sum by the aligned tree over that numbering? Otherwise MESHCOLL_ERR_STRATEGY, with a message that
 * names the phase. Call mc_strategy_check first. */
int mc_strategy_check_aligned(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_numbering_t *numbering);
/* Does every phase merge all dimensions? On a ragged mesh such a strategy runs on mc_mesh_flat; other
 * strategies there never merge fold. */
bool mc_strategy_is_flat(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
/* Is it an alltoall that gathers what the ranks of a line send, and scatters what they receive? */
bool mc_strategy_gathers(const mc_strategy_t *strategy);
/* Makes two strategies the sides of one, in two segments. */
mc_strategy_t mc_strategy_pair(const mc_strategy_t *a, const mc_strategy_t *b);
/* Returns the strategy with its phases on mc_mesh_flat. */
mc_strategy_t mc_strategy_flat(const mc_strategy_t *strategy);
/* Have they the same path of placements along the same dimensions; and, if so asked, by the same algorithms? */
bool mc_strategy_alike(const mc_strategy_t *a, const mc_strategy_t *b, bool algorithms);
bool mc_strategy_equal(const mc_strategy_t *a, const mc_strategy_t *b);

/* Named strategies: "option1", "flat-mst", "flat-ring", … Each is a pattern whose dimensions are those of
 * the mesh. */
typedef struct {
    const char *name, *help;
    meshcoll_collective_t collective;
} mc_named_t;
int32_t mc_named_count(void);
const mc_named_t *mc_named_at(int32_t index);
/* The named strategy of two sides of that collective; NULL: it has none. */
const mc_named_t *mc_named_two_sided(meshcoll_collective_t collective);
/* The named strategy on this mesh; MESHCOLL_ERR_STRATEGY if the collective has none of that name. */
int mc_strategy_named(const char *name, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      mc_strategy_t *strategy);

/* The placements before phase `i`, on its side; those at the end if i is n_phases. */
void mc_strategy_state(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t i,
                       mc_placement_t state[MC_MAX_DIMS]);
/* The dimensions that the strategy cuts, and an order of chunks in which its tiles are contiguous. */
int mc_strategy_layout(const mc_strategy_t *strategy, const mc_mesh_t *mesh, mc_layout_t *layout);

/* One rank's sealed plan; the caller frees it. A collective without a root passes through `root` wherever
 * its strategy passes through one rank. */
int mc_strategy_plan(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t rank,
                     int32_t root, mc_plan_t **plan);

/*
 * Calls `each` for every strategy of a collective on a mesh: every simple path of placements (no dimension
 * is in a placement twice), along plain and merged dimensions, with phases of different dimensions in
 * every order, and with every algorithm that is neither composite nor made for the aligned tree. `each`
 * returns false to stop. The strategies have one segment.
 * MC_PATHS_COVER gives for each path only as many strategies as it takes for every algorithm to appear in
 * every phase; MC_PATHS_ALL gives all combinations, without the algorithms that only a network calls for (`turned`).
 */
typedef enum { MC_PATHS_COVER, MC_PATHS_ALL } mc_paths_t;
int mc_strategy_each(meshcoll_collective_t collective, const mc_mesh_t *mesh, mc_paths_t which,
                     bool (*each)(void *context, const mc_strategy_t *strategy), void *context);

#endif
