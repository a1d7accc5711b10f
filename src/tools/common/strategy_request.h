/* What commands are asked that follow one strategy; plan, which prices many, has a request of its own. */
#ifndef MC_TOOLS_REQUEST_H
#define MC_TOOLS_REQUEST_H

#include "compose/planner/planner.h"
#include "tools/common/tool.h"

/* The words of the command line; NULL: left out. */
typedef struct {
    const char *collective, *mesh, *links, *root, *strategy;
} mc_request_text_t;

typedef struct {
    meshcoll_collective_t collective;
    mc_mesh_t mesh;
    mc_links_t links;
    mc_strategy_t strategy;
    int32_t root;
    uint64_t bytes; /* of the whole vector (alltoall: of what one rank sends) */
} mc_request_t;

/* Reads all but strategy and bytes. Links left out become the default preset, in the text too. */
int mc_request_read(mc_request_text_t *text, mc_request_t *request);
/* Sets the strategy to that of the text or, where it is left out, to what `meshcoll plan` puts first. */
int mc_request_choose(const mc_request_text_t *text, mc_request_t *request);
/* Finds the first `most` of what `meshcoll plan` ranks. */
int mc_request_rank(const mc_request_t *request, uint32_t most, mc_ranking_t *ranking);

/* Returns the pacing that the library would use on a cluster with these links: that of the innermost wire. */
mc_pacing_t mc_request_pacing(const mc_mesh_t *mesh, const mc_links_t *links);

#endif
