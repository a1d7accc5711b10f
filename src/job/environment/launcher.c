#include "job/environment/launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 1 << 19 }; /* as tags name (transport/transport.h) */

/* The innermost launcher first: mpirun may run in a Slurm job, and torchrun in either. */
const mc_launcher_t mc_launchers[MC_LAUNCHERS] = {
    {"torchrun", "RANK", "WORLD_SIZE", {"TORCHELASTIC_RUN_ID", NULL}},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"PMIX_NAMESPACE", NULL}},
    {"pmi", "PMI_RANK", "PMI_SIZE", {"PMI_JOBID", NULL}},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

const char *mc_variable(const char *name)
{
    const char *const value = getenv(name);
    return value && *value ? value : NULL;
}

int mc_variable_number(const char *name, long least, long most, long *number)
{
    const char *const text = mc_variable(name);
    char *end = NULL;
    errno = 0;
    const long n = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || n < least || n > most)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s is a number from %ld to %ld; got '%s'", name,
                       least, most, text ? text : "nothing");
    *number = n;
    return MESHCOLL_OK;
}

/* What one launcher tells. */
typedef struct {
    bool told;
    long rank, size;
} claim_t;

/* A batch script and an interactive shell have the variables of their allocation, which only srun turns into ranks;
 * Slurm's own steps have numbers from 0xfffffff0 on (slurm.h). */
static bool in_step(void)
{
    const char *const step = mc_variable("SLURM_STEP_ID");
    return step && mc_variable("SLURM_PROCID") && strtoul(step, NULL, 10) < 0xfffffff0;
}

static int read_claim(mc_launcher_id_t which, claim_t *claim)
{
    const mc_launcher_t *const l = &mc_launchers[which];
    const bool has_rank = mc_variable(l->rank), has_size = mc_variable(l->size);
    claim->told = which == MC_SLURM ? in_step() : has_rank || has_size;
    if (!claim->told)
        return MESHCOLL_OK;
    if (!has_rank || !has_size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s is set, but %s is not: set both, or neither",
                       has_rank ? l->rank : l->size, has_rank ? l->size : l->rank);
    const int status = mc_variable_number(l->size, 1, MOST_RANKS, &claim->size);
    return status ? status : mc_variable_number(l->rank, 0, claim->size - 1, &claim->rank);
}

/* May `outer` have started the processes that started the ranks of `inner`, as srun starts torchrun's agents and the
 * daemons of mpirun? Nobody else gives more ranks than were started. */
static bool is_inside(mc_launcher_id_t inner, const claim_t *claims, mc_launcher_id_t outer)
{
    const bool has_agents = inner == MC_TORCHRUN
                                ? mc_variable("TORCHELASTIC_RUN_ID") || mc_variable("LOCAL_RANK")
                                : outer == MC_SLURM;
    return claims[inner].size >= claims[outer].size && (has_agents || claims[outer].size == 1);
}

static int check_others(mc_launcher_id_t inner, const claim_t *claims)
{
    const mc_launcher_t *const a = &mc_launchers[inner];
    const claim_t *const mine = &claims[inner];
    for (mc_launcher_id_t other = inner + 1; other < MC_LAUNCHERS; other++) {
        const mc_launcher_t *const b = &mc_launchers[other];
        const claim_t *const its = &claims[other];
        if (!its->told || (its->rank == mine->rank && its->size == mine->size) ||
            is_inside(inner, claims, other))
            continue;
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "two launchers disagree: rank %ld of %ld by %s and %s, "
            "rank %ld of %ld by %s and %s; set MESHCOLL_LAUNCHER=%s or %s, or unset what "
            "does not hold",
            mine->rank, mine->size, a->rank, a->size, its->rank, its->size, b->rank, b->size,
            a->name, b->name);
    }
    return MESHCOLL_OK;
}

/* MESHCOLL_LAUNCHER: the others are not looked at. */
static int find_named(const char *name, mc_launcher_id_t *found, claim_t *claims)
{
    mc_launcher_id_t i = 0;
    while (i < MC_LAUNCHERS && strcmp(name, mc_launchers[i].name) != 0)
        i++;
    if (i == MC_LAUNCHERS)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "MESHCOLL_LAUNCHER is torchrun, openmpi, pmi or slurm; "
                       "got '%s'",
                       name);
    const int status = read_claim(i, &claims[i]);
    if (!status && !claims[i].told)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG, "MESHCOLL_LAUNCHER is %s, but %s and %s%s are not set", name,
            mc_launchers[i].rank, mc_launchers[i].size, i == MC_SLURM ? " of a step" : "");
    *found = i;
    return status;
}

static int find_told(mc_launcher_id_t *found, claim_t *claims)
{
    int status = MESHCOLL_OK;
    for (mc_launcher_id_t i = 0; i < MC_LAUNCHERS && !status; i++) {
        status = read_claim(i, &claims[i]);
        if (claims[i].told && *found == MC_NO_LAUNCHER)
            *found = i;
    }
    return status || *found == MC_NO_LAUNCHER ? status : check_others(*found, claims);
}

int mc_launcher_find(mc_launcher_id_t *launcher, int32_t *rank, int32_t *size)
{
    mc_launcher_id_t found = MC_NO_LAUNCHER;
    claim_t claims[MC_LAUNCHERS] = {{.told = false}};
    const char *const name = mc_variable("MESHCOLL_LAUNCHER");
    const int status = name ? find_named(name, &found, claims) : find_told(&found, claims);
    if (status)
        return status;
    *launcher = found;
    *rank = found == MC_NO_LAUNCHER ? 0 : (int32_t)claims[found].rank;
    *size = found == MC_NO_LAUNCHER ? 1 : (int32_t)claims[found].size;
    return MESHCOLL_OK;
}
