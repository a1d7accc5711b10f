#include "base/gather.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Up to this many ranks, statuses need no allocation. Beyond, a rank without memory cannot even
 * report that it failed. */
enum { FEW = 512 };

static int allgather(const meshcoll_oob_t *oob, const void *mine, void *all, size_t bytes)
{
    if (oob->allgather(oob->context, mine, all, bytes))
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "the out-of-band allgather failed");
    return MESHCOLL_OK;
}

/* The status of all ranks, whose records of `stride` bytes start with their own. */
static int agreed_of(const meshcoll_oob_t *oob, const char *all, size_t stride, int status)
{
    for (int32_t r = 0; r < oob->size; r++) {
        int32_t theirs;
        memcpy(&theirs, all + (size_t)r * stride, sizeof theirs);
        if (theirs != MESHCOLL_OK)
            /* A rank that failed itself keeps its own, more precise error. */
            return status
                       ? status
                       : mc_fail(theirs, "rank %d failed: %s", r, meshcoll_status_string(theirs));
    }
    return MESHCOLL_OK;
}

int mc_agree(const meshcoll_oob_t *oob, int status)
{
    const int32_t mine = status;
    int32_t few[FEW];
    int32_t *const all = oob->size <= FEW ? few : malloc((size_t)oob->size * sizeof *all);
    if (!all)
        return mc_fail_memory("statuses");
    int agreed = allgather(oob, &mine, all, sizeof mine);
    if (!agreed)
        agreed = agreed_of(oob, (const char *)all, sizeof mine, status);
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

/* Rounds --------------------------------------------------------------------------------------- */

static char *rounds_memory(const meshcoll_oob_t *oob, size_t room)
{
    return malloc(((size_t)oob->size + 1) * room);
}

static void use_memory(mc_rounds_t *r, char *memory, size_t room)
{
    r->memory = r->own = memory;
    r->all = memory + room;
    r->room = room;
}

/* What ranks of this process report from if they have no memory. */
struct mc_spare {
    atomic_flag taken;
    _Alignas(8) char few[MC_ROUND_FEW];
};
static struct mc_spare spares[MC_ROUND_SPARES];

static struct mc_spare *take_spare(void)
{
    size_t i = 0;
    while (i < MC_COUNT(spares) && atomic_flag_test_and_set(&spares[i].taken))
        i++;
    return i < MC_COUNT(spares) ? &spares[i] : NULL;
}

void mc_rounds_open(mc_rounds_t *rounds, const meshcoll_oob_t *oob)
{
    char *const memory = rounds_memory(oob, MC_ROUND_ROOM);
    *rounds = (mc_rounds_t){.oob = oob};
    if (memory)
        use_memory(rounds, memory, MC_ROUND_ROOM);
    else if ((rounds->spare = take_spare()))
        use_memory(rounds, rounds->spare->few, MC_ROUND_FIRST);
    rounds->memory = memory;
}

void mc_rounds_close(mc_rounds_t *rounds)
{
    free(rounds->memory);
    rounds->memory = NULL;
    if (rounds->spare)
        atomic_flag_clear(&rounds->spare->taken);
    rounds->spare = NULL;
}

int mc_rounds_reserve(mc_rounds_t *rounds, int status, size_t bytes)
{
    if (bytes <= rounds->room)
        return status;
    char *const memory = rounds_memory(rounds->oob, bytes);
    if (!memory && !status)
        status = mc_fail_memory("the data of all ranks");
    status = mc_agree(rounds->oob, status);
    if (status) {
        free(memory);
        return status;
    }
    mc_rounds_close(rounds);
    use_memory(rounds, memory, bytes);
    return MESHCOLL_OK;
}

int mc_round(mc_rounds_t *rounds, int status, size_t bytes)
{
    const meshcoll_oob_t *const oob = rounds->oob;
    if (!rounds->memory && !status)
        status = mc_fail_memory("the data of all ranks");
    if (!rounds->memory && (size_t)oob->size * bytes > MC_ROUND_FEW - MC_ROUND_FIRST)
        return status;
    const int32_t mine = status;
    memcpy(rounds->own, &mine, sizeof mine);
    const int failed = allgather(oob, rounds->own, rounds->all, bytes);
    return failed ? failed : agreed_of(oob, rounds->all, bytes, status);
}
