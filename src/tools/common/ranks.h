/* The ranks of the job that this process belongs to, started by any launcher that meshcoll_create_env knows. */
#ifndef MC_TOOLS_RANKS_H
#define MC_TOOLS_RANKS_H

#include "job/bootstrap/bootstrap.h"

typedef struct {
    meshcoll_oob_t oob;
    mc_bootstrap_t *bootstrap;
} mc_ranks_t;

/* Is there a launcher? Where its variables contradict each other too: mc_ranks_open says what is wrong. */
bool mc_ranks_launched(void);
/* Is this rank 0, as far as the environment says? */
bool mc_ranks_first(void);
/* Joins the other ranks; without a launcher this process is the only one. The caller closes it. */
int mc_ranks_open(mc_ranks_t *ranks);
void mc_ranks_close(mc_ranks_t *ranks);
/* Gives all ranks what `data` has on rank 0. Collective. */
int mc_ranks_share(const meshcoll_oob_t *oob, void *data, size_t bytes);

#endif
