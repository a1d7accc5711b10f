/* What commands are asked that follow one strategy; plan, which prices many, has a request of its own. */
#ifndef MC_TOOLS_REQUEST_H
#define MC_TOOLS_REQUEST_H

#include "compose/planner/planner.h"
#include "tools/common/tool.h"

/* As the command line has it; NULL: left out. */
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

/* All but strategy and bytes. Links left out are the default preset, in the text too. */
int mc_request_read(mc_request_text_t *text, mc_request_t *request);
/* The strategy: that of the text or, where it is left out, what `meshcoll plan` puts first. */
int mc_request_choose(const mc_request_text_t *text, mc_request_t *request);
/* The first `most` of what `meshcoll plan` ranks. */
int mc_request_rank(const mc_request_t *request, uint32_t most, mc_ranking_t *ranking);

/* As the library paces it on a cluster with these links: by the innermost wire. */
mc_pacing_t mc_request_pacing(const mc_mesh_t *mesh, const mc_links_t *links);

#endif
