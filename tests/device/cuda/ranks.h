/* What a rank does in tests that run within a machine, and also between several (test_far.c). */
#ifndef MC_TEST_RANKS_H
#define MC_TEST_RANKS_H

#include <meshcoll/meshcoll.h>

void rank_strategies(meshcoll_t *mesh);
void rank_types(meshcoll_t *mesh);
void rank_in_flight(meshcoll_t *mesh);
void rank_persistent(meshcoll_t *mesh);
void rank_blocking(meshcoll_t *mesh);
void rank_progress_thread(meshcoll_t *mesh);
void rank_unequal_blocks(meshcoll_t *mesh);
void rank_parts(meshcoll_t *mesh);

#endif
