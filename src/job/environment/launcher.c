#include "job/environment/launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 1 << 19 }; /* as tags name (transport/transport.h) */

/* The innermost launcher first: mpirun may run in a Slurm job, and torchrun in either. */
const mc_launcher_t mc_launchers[MC_LAUNCHERS] = {
    {.name = "torchrun", .rank = "RANK", .size = "WORLD_SIZE", .id = {"TORCHELASTIC_RUN_ID"}},
    {.name = "horovod",
     .rank = "HOROVOD_RANK",
     .size = "HOROVOD_SIZE",
     .id = {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"},
     .here = {"HOROVOD_LOCAL_SIZE"}},
    {.name = "openmpi",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .id = {"PMIX_NAMESPACE"},
     .here = {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {.name = "mvapich",
     .rank = "MV2_COMM_WORLD_RANK",
     .size = "MV2_COMM_WORLD_SIZE",
     .id = {"MPIRUN_ID"},
     .here = {"MV2_COMM_WORLD_LOCAL_SIZE"}},
    {.name = "jsrun",
     .rank = "JSM_NAMESPACE_RANK",
     .size = "JSM_NAMESPACE_SIZE",
     .id = {"PMIX_NAMESPACE"},
     .here = {"JSM_NAMESPACE_LOCAL_SIZE"}},
    {.name = "flux",
     .rank = "FLUX_TASK_RANK",
     .size = "FLUX_JOB_SIZE",
     .id = {"FLUX_JOB_ID"},
     .hosts = "FLUX_JOB_NNODES"},
    {.name = "pmi",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .id = {"PMI_JOBID", "I_MPI_HYDRA_UUID"},
     .here = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}},
    {.name = "slurm",
     .rank = "SLURM_PROCID",
     .size = "SLURM_NTASKS",
     .id = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .hosts = "SLURM_STEP_NUM_NODES"},
};

/* Variables of launchers that tell a rank, but no number of ranks; and where that is to be had. PMIx's is the first. */
static const struct {
    const char *rank, *advice;
} half_told[] = {
    {"PMIX_RANK", " (Open MPI's mpirun and srun tell it, prterun does not)"},
    {"PMI_ID", " (mpiexec without -pmi-port tells it)"},
    {"PALS_RANKID", " (mpiexec with its PMI tells it)"},
    {"ALPS_APP_PE", ""},
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

/* Slurm's own steps have numbers from 0xfffffff0 on (slurm.h). */
bool mc_launcher_in_step(void)
{
    const char *const step = mc_variable("SLURM_STEP_ID");
    return step && mc_variable("SLURM_PROCID") && strtoul(step, NULL, 10) < 0xfffffff0;
}

static bool says(const char *name, const char *value)
{
    const char *const has = name ? mc_variable(name) : NULL;
    return has && strcmp(has, value) == 0;
}

bool mc_launcher_is_local(mc_launcher_id_t launcher)
{
    const mc_launcher_t *const l = &mc_launchers[launcher];
    const char *const size = mc_variable(l->size);
    return says(l->hosts, "1") || (size && (says(l->here[0], size) || says(l->here[1], size)));
}

static int read_claim(mc_launcher_id_t which, claim_t *claim)
{
    const mc_launcher_t *const l = &mc_launchers[which];
    const bool has_rank = mc_variable(l->rank), has_size = mc_variable(l->size);
    claim->told = which == MC_SLURM ? mc_launcher_in_step() : has_rank || has_size;
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
static bool has_agents(void)
{
    return mc_variable("TORCHELASTIC_RUN_ID") || mc_variable("LOCAL_RANK");
}

static bool is_inside(mc_launcher_id_t inner, const claim_t *claims, mc_launcher_id_t outer)
{
    const bool may_start = inner == MC_TORCHRUN ? has_agents() : outer == MC_SLURM;
    return claims[inner].size >= claims[outer].size && (may_start || claims[outer].size == 1);
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

/* Open MPI 4's MPI_Init makes a server of its own for a process that no launcher has started, and sets its variables. */
static bool is_singleton(void)
{
    return mc_variable("OMPI_COMMAND") && !mc_variable("PRTE_LAUNCHED");
}

/* A rank of which no launcher's two variables tell; torchrun's agents have one of their own. */
static int check_half_told(mc_launcher_id_t found, const claim_t *claims)
{
    for (size_t i = 0; i < MC_COUNT(half_told); i++) {
        const char *const rank = mc_variable(half_told[i].rank);
        bool known = !rank || (found == MC_TORCHRUN && has_agents()) || (i == 0 && is_singleton());
        for (mc_launcher_id_t l = 0; l < MC_LAUNCHERS && !known; l++)
            known = claims[l].told && strtol(rank, NULL, 10) == claims[l].rank;
        if (!known)
            return mc_fail(
                MESHCOLL_ERR_INVALID_ARG,
                "%s is %s, so this is one of several processes, but no variable says of how "
                "many%s: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each, or unset %s "
                "for a job of one rank",
                half_told[i].rank, rank, half_told[i].advice, half_told[i].rank);
    }
    return MESHCOLL_OK;
}

/* "torchrun, openmpi or slurm" */
static void list_names(mc_text_t *text)
{
    for (mc_launcher_id_t i = 0; i < MC_LAUNCHERS; i++)
        mc_text_add(text, "%s%s",
                    i == 0                 ? ""
                    : i + 1 < MC_LAUNCHERS ? ", "
                                           : " or ",
                    mc_launchers[i].name);
}

/* MESHCOLL_LAUNCHER: the others are not looked at. */
static int find_named(const char *name, mc_launcher_id_t *found, claim_t *claims)
{
    mc_launcher_id_t i = 0;
    while (i < MC_LAUNCHERS && strcmp(name, mc_launchers[i].name) != 0)
        i++;
    if (i == MC_LAUNCHERS) {
        char names[128];
        mc_text_t text = mc_text(names, sizeof names);
        list_names(&text);
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "MESHCOLL_LAUNCHER is %s; got '%s'", names, name);
    }
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
    if (!status && *found != MC_NO_LAUNCHER)
        status = check_others(*found, claims);
    return status ? status : check_half_told(*found, claims);
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
