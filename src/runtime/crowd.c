#include "runtime/crowd.h"

#include <sched.h>
#include <stdlib.h>

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

int mc_crowd_find(const meshcoll_oob_t *oob, const int32_t *machine, double *crowd)
{
    cpu_set_t mine;
    cpu_set_t *const all = calloc((size_t)oob->size, sizeof *all);
    if (!all)
        return mc_fail_memory("the cores of all ranks");
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        CPU_SET(0, &mine); /* more cores than a set holds: nothing is known */
    int status = MESHCOLL_OK;
    if (oob->allgather(oob->context, &mine, all, sizeof mine))
        status = mc_fail(MESHCOLL_ERR_TRANSPORT, "the out-of-band allgather failed");
    else
        *crowd = mc_crowd_of(all, machine, oob->size, oob->rank);
    free(all);
    return status;
}
