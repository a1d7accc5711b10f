/* Lower bounds: what no strategy of the model can go below. */
#ifndef MC_COMPOSE_BOUND_H
#define MC_COMPOSE_BOUND_H

#include "compose/algorithms/registry.h"

/*
 * Lower bound of REFERENCE §5 in seconds for n bytes of the whole vector (alltoall: of what one
 * rank sends): the largest of
 *   bandwidth    of the outermost dimension longer than 1: on one line the line's, between boxes
 *                the NIC's, beta / min(ports, ranks of a box); those that share its wire have the same
 *                NICs, and the least beta counts
 *   inflow       what some rank must receive (of a broadcast all n), over all its links at once
 *   latency      ceil(log2 p) messages of the smallest alpha on wires; and between B boxes of G
 *                ranks ceil(log(B) / log(1 + G)) of the network's, as G ranks can send at once (1
 *                where receivers pull). The sum of ceil(log2 extent) alpha over dimensions is no
 *                bound: a merged MST on 5 x 3 takes 4 rounds, not 3 + 2
 *   computation  (p-1)/p n gamma of the fastest dimension, where it reduces
 */
double mc_lower_bound(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      const mc_links_t *links, double n);

#endif
