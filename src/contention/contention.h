/*
 * What the links of a network between boxes add to the price of a phase. The rounds of its algorithm (mc_line_rounds_t) are
 * routed with the messages of all its lines at once. A round lasts as long as its busiest link, where that is longer than
 * the ports that the closed form counts; and segments that follow each other share the links.
 *
 * Rounds in which all ranks send, as far and as much, are routed once for each line and distance. Tables are made when a
 * phase is first priced.
 */
#ifndef MC_CONTENTION_CONTENTION_H
#define MC_CONTENTION_CONTENTION_H

#include "compose/price/networked.h"
#include "network/network.h"

typedef struct mc_contention mc_contention_t;

/* `network` is fitted to the mesh (mc_network_ends_fit). `order`: by rank, the rank in whose place it is; NULL: its own.
 * All must outlive it. */
int mc_contention_create(const mc_mesh_t *mesh, const mc_links_t *links, mc_network_t *network,
                         const int32_t *order, mc_contention_t **contention);
void mc_contention_free(mc_contention_t *contention); /* NULL is allowed */
/* For mc_links_t.network. */
struct mc_networked *mc_contention_prices(mc_contention_t *contention);
/* ERR_NO_MEMORY, or what a route said, if a price since creation is wrong for that reason. */
int mc_contention_status(const mc_contention_t *contention);

#endif
