/* Lower bounds on the time of a collective in the cost model. */
#ifndef MC_COMPOSE_BOUND_H
#define MC_COMPOSE_BOUND_H

#include "compose/algorithms/registry.h"

/*
 * Seconds that no strategy can beat for n bytes of the whole vector (alltoall: of what one rank sends): the
 * largest of
 *   bandwidth    of the outermost dimension longer than 1: what must pass a box's ports, with
 *                beta / min(ports, ranks of a box). Of dimensions that share its wire the least beta
 *                counts
 *   inflow       what some rank must receive, or send, over all its links at once (broadcast: all n)
 *   latency      until data of one rank can be on p, if no link is pulled: a message takes the smallest
 *                alpha, and a rank starts one each smallest gap; ceil(log2 p) alpha if that is alpha. And
 *                between B boxes of G ranks the same with the network's alpha and gap and G senders a
 *                box (one message if receivers pull). The sum of ceil(log2 extent) alpha over the
 *                dimensions is no bound: a merged MST on 5 x 3 takes 4 rounds, not 3 + 2
 *   computation  (p-1)/p n gamma of the dimension with the least gamma, if it reduces; where sums occupy
 *                the wires (mc_busy_t), divided by the wires, on which they overlap
 * and what every call takes besides (mc_links_call), which is all where a single box's ranks share cores: no
 * number of those links is a bound. The links are those of a vector of n bytes (mc_links_at).
 */
double mc_lower_bound(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      const mc_links_t *links, double n);

#endif
