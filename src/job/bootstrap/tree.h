/* A node of the bootstrap's tree: its connections, and messages over them. Node 0 is rank 0; the children of node i are
 * the nodes MC_FANOUT * i + 1 and following. */
#ifndef MC_BOOTSTRAP_TREE_H
#define MC_BOOTSTRAP_TREE_H

#include "job/environment/environment.h"
#include "job/handshake/handshake.h"
#include "job/network/wire.h"

enum { MC_FANOUT = 4, MC_TREE_WHY = 480 };

/* Seconds beyond the time limit, so that who knows most fails first: rank 0, which knows who has not joined; then who
 * waits for its children to connect; then the first exchange, which waits for all of them. */
enum { MC_TREE_GRACE = 2, MC_TREE_FIRST = 4 };

/* Seconds between two calls of `check`. */
#define MC_TREE_CHECK 0.2

typedef struct {
    int fd;              /* -1: none */
    int32_t rank;        /* at the other end */
    int32_t node, below; /* of a child: its number; nodes in its subtree, itself included */
    bool ready;          /* of a child: it has sent its part of the first exchange */
} mc_branch_t;

typedef struct mc_bootstrap {
    mc_self_t self;     /* its key is wiped when it has joined */
    double timeout;     /* seconds */
    int (*check)(void); /* see mc_environment_t */
    int32_t node;
    mc_branch_t parent, child[MC_FANOUT];
    int32_t n_children; /* that it has in the end */
    bool complete;      /* all ranks have joined, as an exchange has shown */
    bool made;          /* so is the mesh */
    bool broken;
    char why[MC_TREE_WHY];
    mc_endpoint_t reached; /* of this process; family 0: not known yet */
} mc_tree_t;

void mc_tree_init(mc_tree_t *tree, const mc_environment_t *env);
/* Sets its children's numbers and sizes. */
void mc_tree_place(mc_tree_t *tree, int32_t node);
void mc_tree_close(mc_tree_t *tree);

/* Tells all neighbours the sentence and closes the connections; returns ERR_TRANSPORT, the sentence
 * being the last error. The first sentence stays. */
int mc_tree_fail(mc_tree_t *tree, const char *format, ...) MC_PRINTF(2, 3);
/* A neighbour has something to say before this rank takes part in an exchange: it is ready, which is
 * noted, or it failed or left, which is passed on. */
int mc_tree_take_early(mc_tree_t *tree, mc_branch_t *from);

/* `bytes` of each rank into `out`, by rank. `deadline`: of the wait for a rank that waits for no other; who waits for one
 * that may itself be waiting does so a little longer, so that the error names the rank that is waited for in the end. */
int mc_tree_allgather(mc_tree_t *tree, const void *in, void *out, size_t bytes, double deadline);

/* How the ranks of a job find each other (join.c): all register with rank 0, then connect to their parents in the
 * tree. */

/* On return all of this rank's branches are connected. ERR_TRANSPORT otherwise. */
int mc_join(const mc_environment_t *env, mc_tree_t *tree);

/* Ranks [0, n) without a bit, as "3, 5-7", and how many. */
int32_t mc_join_missing(const mc_bitmap_t *joined, int32_t n, mc_text_t *text);

#endif
