/*
 * Which launcher started this process: whose variables hold its rank and the number of ranks.
 */
#ifndef MC_BOOTSTRAP_LAUNCHER_H
#define MC_BOOTSTRAP_LAUNCHER_H

#include "base/base.h"

typedef enum {
    MC_TORCHRUN,
    MC_HOROVOD,
    MC_OPEN_MPI,
    MC_MVAPICH,
    MC_JSRUN,
    MC_FLUX,
    MC_PMI,
    MC_SLURM,
    MC_LAUNCHERS,
    MC_NO_LAUNCHER
} mc_launcher_id_t;

typedef struct {
    const char *name, *rank,
        *size;           /* `name` as MESHCOLL_LAUNCHER has it; the others are variables */
    const char *id[2];   /* variables that tell a job from another; one of them suffices */
    const char *here[2]; /* with the number of ranks on this host; NULL: none */
    const char *hosts;   /* with the number of hosts */
} mc_launcher_t;

extern const mc_launcher_t mc_launchers[MC_LAUNCHERS];

/* The value of a variable; NULL where it is not set, or empty. */
const char *mc_variable(const char *name);
/* ERR_INVALID_ARG names the variable, its range and what it holds. */
int mc_variable_number(const char *name, long least, long most, long *number);

/* Is this process in a step that srun made? A batch script and an interactive shell have the variables of their
 * allocation, too. */
bool mc_launcher_in_step(void);
/* Do the launcher's variables say that all ranks are on this host? */
bool mc_launcher_is_local(mc_launcher_id_t launcher);

/* MC_NO_LAUNCHER: rank 0 of 1. ERR_INVALID_ARG: one of a launcher's two variables is missing or wrong, two launchers
 * tell different things, or one tells a rank without the number of ranks. */
int mc_launcher_find(mc_launcher_id_t *launcher, int32_t *rank, int32_t *size);

#endif
