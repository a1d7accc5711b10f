/* The ranks of the job that this process belongs to, for commands that run on all of them. */
#ifndef MC_TOOLS_RANKS_H
#define MC_TOOLS_RANKS_H

#include "base/base.h"

typedef struct mc_ranks {
    meshcoll_oob_t oob;
    void (*close)(struct mc_ranks *ranks);
} mc_ranks_t;

/* Is there a launcher that this command can talk to? */
bool mc_ranks_launched(void);
/* Joins the other ranks; without a launcher this process is the only one. The caller closes it. */
int mc_ranks_open(mc_ranks_t *ranks);

#endif
