/* meshcoll trace: every chunk on every rank at the start and after each time step. */
#ifndef MC_TOOLS_TRACE_H
#define MC_TOOLS_TRACE_H

#include "base/arena.h"
#include "compose/planner/planner.h"
#include "tools/common/tool.h"

typedef struct {
    int32_t from, to, phase;
    mc_range_t chunks;
} mc_trace_message_t;

typedef struct {
    char **cell; /* [rank * n_chunks + chunk] */
    mc_trace_message_t *message;
    uint32_t n_messages;
} mc_trace_state_t;

typedef struct {
    mc_arena_t arena;
    int32_t n_ranks;
    uint32_t n_chunks, n_states; /* state 0: the start; state t + 1: after time step t */
    mc_trace_state_t *state;
} mc_trace_t;

/* The caller frees the trace's arena. */
int mc_trace_create(const mc_world_t *world, mc_trace_t *trace);

/* Input of a picture. `links`: for the costs in terms of α, β and γ. */
typedef struct {
    const mc_trace_t *trace;
    const mc_mesh_t *mesh;
    const mc_strategy_t *strategy;
    int32_t root;
    mc_links_t links;
    bool sums; /* cells are sums, a1a0 */
} mc_picture_t;

/* ERR_UNSUPPORTED: more than a page holds. ERR_IO with its reason. */
int mc_trace_draw(const mc_picture_t *picture, const char *path);

/* Draws what meshcoll-bench --timeline recorded in `path`. `ranks`: as of mc_read_ranks; `during`: as in 60ms-120ms, NULL: all. */
int mc_trace_timeline(const char *path, const char *ranks, const char *during, const char *svg);

enum { MC_CHUNK_TEXT = 8 };
/* "a" … "z", "aa", "ab", … */
const char *mc_chunk_name(uint32_t chunk, char buffer[MC_CHUNK_TEXT]);

#endif
