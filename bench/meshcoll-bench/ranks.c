/* What the ranks tell each other between measurements, over the mesh that is measured. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static void need(int status)
{
    if (status != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
}

uint64_t ranks_sum(const bench_t *bench, uint64_t mine)
{
    uint64_t all;
    need(meshcoll_allreduce(bench->handle, &mine, &all, 1, MESHCOLL_UINT64, MESHCOLL_SUM));
    return all;
}

double ranks_most(const bench_t *bench, double mine)
{
    double all;
    need(meshcoll_allreduce(bench->handle, &mine, &all, 1, MESHCOLL_FLOAT64, MESHCOLL_MAX));
    return all;
}

void ranks_gather(const bench_t *bench, const void *mine, void *all, size_t bytes)
{
    need(meshcoll_allgather(bench->handle, mine, all, bytes, MESHCOLL_INT8));
}

void ranks_tell(const bench_t *bench, void *data, size_t bytes)
{
    need(meshcoll_bcast(bench->handle, data, data, bytes, MESHCOLL_INT8, 0));
}

int ranks_agree(const bench_t *bench, int status)
{
    enum { ROOM = 512 };
    char mine[ROOM] = "";
    char *const all = malloc((size_t)bench->size * ROOM);
    int first = 0;
    if (!all)
        die("out of memory for %d sentences", bench->size);
    if (status)
        snprintf(mine, sizeof mine, "%s", meshcoll_last_error());
    ranks_gather(bench, mine, all, ROOM);
    while (first < bench->size && !all[(size_t)first * ROOM])
        first++;
    if (first < bench->size)
        status =
            mc_fail(MESHCOLL_ERR_UNSUPPORTED, "rank %d: %s", first, all + (size_t)first * ROOM);
    free(all);
    return first < bench->size ? status : MESHCOLL_OK;
}
