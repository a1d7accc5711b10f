#include "runtime/crowd.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t mc_crowd_set_bytes(void)
{
    return sizeof(cpu_set_t);
}

static double crowd_on(const cpu_set_t *set, const int32_t *machine, int32_t n, int32_t rank,
                       int core)
{
    double crowd = 0;
    for (int32_t r = 0; r < n; r++)
        if (machine[r] == machine[rank] && CPU_ISSET(core, &set[r]))
            crowd += 1.0 / CPU_COUNT(&set[r]);
    return crowd;
}

double mc_crowd_of(const void *sets, const int32_t *machine, int32_t n, int32_t rank)
{
    const cpu_set_t *const set = sets;
    double least = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &set[rank]))
            continue;
        const double crowd = crowd_on(set, machine, n, rank, core);
        least = least == 0 || crowd < least ? crowd : least;
    }
    return least;
}

enum { BOOT_TEXT = 40 };

/* What a rank tells the others. */
typedef struct {
    cpu_set_t set;
    /* the kernel's, which has the cores: boxes that are containers share it */
    char boot[BOOT_TEXT];
} told_t;

static told_t mine(void)
{
    told_t told = {.boot = ""};
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && !fgets(told.boot, sizeof told.boot, file))
        told.boot[0] = '\0';
    if (file)
        fclose(file);
    CPU_ZERO(&told.set);
    if (sched_getaffinity(0, sizeof told.set, &told.set) != 0)
        CPU_SET(0, &told.set); /* more cores than a set holds: nothing is known */
    return told;
}

/* Do both run on the same cores? By machine where kernels do not tell. */
static bool beside(const told_t *told, const int32_t *machine, int32_t a, int32_t b)
{
    return told[a].boot[0] ? strcmp(told[a].boot, told[b].boot) == 0 : machine[a] == machine[b];
}

static double crowd_of_told(const told_t *told, const int32_t *machine, int32_t n, int32_t rank,
                            cpu_set_t *set, int32_t *kernel)
{
    for (int32_t r = 0; r < n; r++) {
        set[r] = told[r].set;
        kernel[r] = beside(told, machine, rank, r);
    }
    return mc_crowd_of(set, kernel, n, rank);
}

int mc_crowd_find(const meshcoll_oob_t *oob, const int32_t *machine, double *crowd)
{
    const told_t own = mine();
    told_t *const all = calloc((size_t)oob->size, sizeof *all);
    cpu_set_t *const set = calloc((size_t)oob->size, sizeof *set);
    int32_t *const kernel = calloc((size_t)oob->size, sizeof *kernel);
    int status = MESHCOLL_OK;
    if (!all || !set || !kernel)
        status = mc_fail_memory("the cores of all ranks");
    else if (oob->allgather(oob->context, &own, all, sizeof own))
        status = mc_fail(MESHCOLL_ERR_TRANSPORT, "the out-of-band allgather failed");
    else
        *crowd = crowd_of_told(all, machine, oob->size, oob->rank, set, kernel);
    free(kernel);
    free(set);
    free(all);
    return status;
}
