#include "base/gather.h"

#include <stdlib.h>

/* Up to this many ranks, statuses need no allocation. Beyond, a rank without memory cannot even
 * report that it failed. */
enum { FEW = 1024 };

static int allgather(const meshcoll_oob_t *oob, const void *mine, void *all, size_t bytes)
{
    if (oob->allgather(oob->context, mine, all, bytes))
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "the out-of-band allgather failed");
    return MESHCOLL_OK;
}

int mc_agree(const meshcoll_oob_t *oob, int status)
{
    const int32_t mine = status;
    int32_t few[FEW], failed = 0;
    int32_t *const all = oob->size <= FEW ? few : malloc((size_t)oob->size * sizeof *all);
    if (!all)
        return mc_fail_memory("statuses");
    int agreed = allgather(oob, &mine, all, sizeof mine);
    while (!agreed && failed < oob->size && all[failed] == MESHCOLL_OK)
        failed++;
    if (!agreed && failed < oob->size)
        /* A rank that failed itself keeps its own, more precise error. */
        agreed = status ? status
                        : mc_fail(all[failed], "rank %d failed: %s", failed,
                                  meshcoll_status_string(all[failed]));
    if (all != few)
        free(all);
    return agreed;
}

int mc_gather(const meshcoll_oob_t *oob, int status, const void *mine, size_t bytes, void **all)
{
    void *const room = status ? NULL : calloc((size_t)oob->size, bytes);
    if (!status && !room)
        status = mc_fail_memory("the data of all ranks");
    status = mc_agree(oob, status);
    if (!status)
        status = allgather(oob, mine, room, bytes);
    if (status) {
        free(room);
        return status;
    }
    *all = room;
    return MESHCOLL_OK;
}
