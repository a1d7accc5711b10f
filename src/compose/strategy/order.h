/*
 * A strategy adds up each element in one order: sums of floating-point numbers have the same bits in every strategy of
 * the same order.
 */
#ifndef MC_COMPOSE_ORDER_H
#define MC_COMPOSE_ORDER_H

#include "compose/strategy/strategy.h"

/*
 * Sets *order to a number of that order, 0 for a collective that reduces nothing. Strategies of one collective on one
 * mesh, with one root and the same counts, whose numbers are equal put the same brackets and operands round every
 * element's sum; of unequal numbers they may do so too. ERR_INVALID_ARG: the strategy has too many chunks.
 *
 * Three cases. A strategy that follows the aligned tree (mesh/aligned.h) adds up as any other that does. Where the
 * brackets of each reducing phase are the same for all elements, they and the phases' dimensions tell the order. Else
 * they depend on an element's place in the vector, and the cuts count too. tests/unit/test_sum_order.c compares what is
 * claimed with what the symbolic machine finds.
 */
int mc_strategy_sum_order(const mc_strategy_t *strategy, const mc_mesh_t *mesh, uint64_t *order);
/* Have both such a number, and the same? */
bool mc_strategy_sums_as(const mc_strategy_t *a, const mc_strategy_t *b, const mc_mesh_t *mesh);

#endif
