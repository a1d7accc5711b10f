/* How the ranks of a job find each other: all register with rank 0, then connect to their parents in the tree. */
#ifndef MC_BOOTSTRAP_JOIN_H
#define MC_BOOTSTRAP_JOIN_H

#include "job/bootstrap/tree.h"
#include "job/handshake/handshake.h"

/* On return all of this rank's branches are connected. ERR_TRANSPORT otherwise. */
int mc_join(const mc_environment_t *env, mc_tree_t *tree);

/* Ranks [0, n) without a bit, as "3, 5-7", and how many. */
int32_t mc_join_missing(const mc_bitmap_t *joined, int32_t n, mc_text_t *text);

#endif
