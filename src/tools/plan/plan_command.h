/* meshcoll plan: what it was asked, the ranking at one size, the sweep over sizes. */
#ifndef MC_TOOLS_PLAN_H
#define MC_TOOLS_PLAN_H

#include "tools/common/show.h"
#include "tools/common/strategy_request.h"

typedef struct {
    meshcoll_collective_t collective;
    mc_mesh_t mesh;
    mc_links_t links;
    const char *links_text; /* as given, or the default preset's name */
    int32_t root, top, max_segments;
    int32_t simulate;    /* so many of the cheapest are simulated too */
    const char *network; /* between boxes; NULL: none */
    mc_between_t between;
    int32_t *order; /* the places of ranks on it; NULL: their own */
    uint64_t bytes;
    const mc_strategy_t *strategy; /* only this one is priced; NULL: all */
    bool in_order;                 /* only strategies that reduce in the order of ranks */
    bool phases, json;
    mc_pacing_t pacing; /* as mc_request_pacing says */
    bool all;           /* every strategy, not only the cheapest of each shape */
    bool reproducible;  /* only what adds up by the aligned tree over `numbering` */
    mc_numbering_t numbering;
} mc_plan_request_t;

static inline mc_planner_query_t mc_plan_query(const mc_plan_request_t *r, double bytes,
                                               uint32_t most)
{
    return (mc_planner_query_t){.root = r->root,
                                .bytes = bytes,
                                .max_segments = (uint32_t)r->max_segments,
                                .most = most,
                                .in_order = r->in_order,
                                .pacing = &r->pacing,
                                .aligned = r->reproducible ? &r->numbering : NULL};
}

/* Sets the links and what follows from them and the mesh. NULL or "": the default preset. */
int mc_plan_set_links(mc_plan_request_t *request, const char *text);

/* Does it reduce as is asked for? ERR_STRATEGY says which phase does not. */
int mc_plan_check(const mc_plan_request_t *request, const mc_strategy_t *strategy);

/* Strategies with the same phases in the same order, whatever their algorithms, have one shape. The indices of the
 * cheapest of each shape, but one for shapes whose times print alike, `most` at most, and how many more are tied with
 * each; both arrays have room for `n`. Returns how many. `ranked` is ascending. */
uint32_t mc_plan_shapes(const mc_ranked_t *ranked, uint32_t n, uint32_t most, uint32_t *at,
                        uint32_t *tied);

/* The i-th named strategy, with the number of segments in which it takes least; false: it is another collective's, the
 * mesh has it not, or the request does not allow it. */
bool mc_plan_named(const mc_plan_request_t *request, int32_t i, mc_ranked_t *named);

/* Prints collective, mesh, root and links, the first lines of an answer. */
void mc_plan_print_head(const mc_plan_request_t *request, const char *what);
/* Returns collective, mesh, root and links as an object, which the rest is added to. */
json_t *mc_plan_json_head(const mc_plan_request_t *request);

/* Shows the ranking for one size, or what one strategy costs. */
int mc_plan_rank(const mc_plan_request_t *request);
/* Shows from size to size where the best strategy changes, and where options 1, 2 and 3 cross. */
int mc_plan_sweep(const mc_plan_request_t *request, uint64_t from, uint64_t to);

/* Simulates the first of a ranking, and prints them, the fastest first; or adds them to `json`, if that is not NULL. */
int mc_plan_simulate(const mc_plan_request_t *request, const mc_ranking_t *ranking, json_t *json);

/* Lists as given: "64,1024", "1M,256M", "dgx-h100 | generic"; no collective: all. */
typedef struct {
    const char *extents, *sizes, *links, *collective;
} mc_plan_scale_t;
/* Shows the best strategy beside flat rings and trees, from the request's mesh to larger ones, as Markdown. */
int mc_plan_scale(const mc_plan_request_t *request, const mc_plan_scale_t *scale);

#endif
