/* What commands are asked that follow one strategy; plan, which prices many, has a request of its own. */
#ifndef MC_TOOLS_REQUEST_H
#define MC_TOOLS_REQUEST_H

#include "compose/planner/planner.h"
#include "contention/contention.h"
#include "tools/common/tool.h"

/* A network between boxes, which the links price. */
typedef struct {
    mc_network_t *fitted; /* NULL: none */
    mc_network_t network;
    mc_contention_t *contention;
} mc_between_t;

/* Reads and fits the network, and has `links` price it with ranks in these places (NULL: their own). `text` NULL: none. Mesh
 * and order must outlive it. */
int mc_between_open(const char *text, const mc_mesh_t *mesh, const int32_t *order,
                    mc_links_t *links, mc_between_t *between);
/* Returns `status`, or if it is 0 what failed as prices were made. */
int mc_between_close(mc_between_t *between, int status);

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
