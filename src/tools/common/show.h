/* Output that several commands share: meshes, links, strategies and their terms, as text and
 * JSON. */
#ifndef MC_TOOLS_SHOW_H
#define MC_TOOLS_SHOW_H

#include "base/table.h"
#include "compose/planner/planner.h"
#include "network/network.h"
#include "tools/common/tool.h"

/* A sentence, its words on lines of MC_PAGE columns that begin at column `indent`. */
void mc_show_sentence(int indent, const char *format, ...) MC_PRINTF(2, 3);

/* The text of a strategy, or of one of its phases: until the next of these calls. */
const char *mc_show_strategy(const mc_strategy_t *strategy, const mc_mesh_t *mesh);
const char *mc_show_phase(const mc_strategy_t *strategy, const mc_mesh_t *mesh, int32_t phase);

/* The text of a mesh, of a call as in "bcast on box=4,gpu=4, root 0", or of a network ("": there is none), until the
 * function is called again. */
const char *mc_show_mesh(const mc_mesh_t *mesh);
const char *mc_show_call(meshcoll_collective_t collective, const mc_mesh_t *mesh, int32_t root);
const char *mc_show_network(const mc_network_t *network);

/* Each of these may be used up to the end of the expression. */
typedef struct {
    char text[128];
} mc_term_text_t;
/* "7/8", "3" */
mc_term_text_t mc_show_ratio(mc_ratio_t ratio);
/* "3α + 7/8 nβ"; "-" where there is nothing. */
mc_term_text_t mc_show_term(const mc_term_t *term);

/* The links of a mesh, a line a dimension, and below it one for each size it was measured at. */
int mc_show_links(const mc_mesh_t *mesh, const mc_links_t *links);

json_t *mc_json_mesh(const mc_mesh_t *mesh);
/* What a command answers on a collective: its name, the collective, the mesh, and the root if there is one. */
json_t *mc_json_call(const char *command, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                     int32_t root);
json_t *mc_json_ports(int32_t ports);
json_t *mc_json_links(const mc_mesh_t *mesh, const mc_links_t *links);
json_t *mc_json_measured(const mc_measured_t *measured);
/* [{"dim": "box", "alpha": "3", "beta": "7/8", "gamma": "0"}, …] */
json_t *mc_json_cost(const mc_mesh_t *mesh, const mc_cost_t *cost);
/* Prints and releases. */
/* A string of a text from outside: bytes that are no UTF-8 become U+FFFD. */
json_t *mc_json_text(const char *text);
int mc_json_print(json_t *json);

#endif
