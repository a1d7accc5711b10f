#include "runtime/place/crowd.h"

#include "base/gather.h"
#include "runtime/place/places.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const int WORD = 64; /* cores in a word of a set */

static bool has(const uint64_t *set, size_t core)
{
    return set[core / WORD] >> core % WORD & 1;
}

static int count(const uint64_t *set, size_t words)
{
    int n = 0;
    for (size_t w = 0; w < words; w++)
        n += __builtin_popcountll(set[w]);
    return n;
}

static double crowd_on(const uint64_t *sets, size_t words, const int32_t *machine, int32_t n,
                       int32_t rank, size_t core)
{
    double crowd = 0;
    for (int32_t r = 0; r < n; r++) {
        const uint64_t *const set = sets + (size_t)r * words;
        if (machine[r] == machine[rank] && has(set, core))
            crowd += 1.0 / count(set, words);
    }
    return crowd;
}

double mc_crowd_of(const uint64_t *sets, size_t words, const int32_t *machine, int32_t n,
                   int32_t rank)
{
    double least = 0;
    for (size_t core = 0; core < words * WORD; core++) {
        if (!has(sets + (size_t)rank * words, core))
            continue;
        const double crowd = crowd_on(sets, words, machine, n, rank, core);
        least = least == 0 || crowd < least ? crowd : least;
    }
    return least;
}

/* The cores that this process may run on, in as many words as the kernel needs. The caller frees
 * it. */
static uint64_t *own_cores(size_t *words)
{
    enum { FIRST = 16, MOST = 1 << 16 };
    for (*words = FIRST;; *words *= 2) {
        uint64_t *const set = calloc(*words, sizeof *set);
        if (!set || sched_getaffinity(0, *words * sizeof *set, (cpu_set_t *)set) == 0)
            return set;
        if (errno != EINVAL || *words == MOST) {
            set[0] = 1; /* unknown: as though all ranks shared one core */
            return set;
        }
        free(set);
    }
}

/* What each rank publishes before its set. */
typedef struct {
    uint64_t words;          /* up to the last with a core */
    char boot[MC_BOOT_TEXT]; /* of the kernel that schedules these cores */
} told_t;

static told_t told_of(const uint64_t *set, size_t words)
{
    told_t told = {.words = words};
    while (told.words > 1 && set[told.words - 1] == 0)
        told.words--;
    mc_boot_id(told.boot);
    return told;
}

/* Do both run on the same cores? Where the kernel has no boot id: on the same machine? */
static bool beside(const told_t *told, const int32_t *machine, int32_t a, int32_t b)
{
    return told[a].boot[0] ? strcmp(told[a].boot, told[b].boot) == 0 : machine[a] == machine[b];
}

/* Gathers the sets of all ranks, in as many words as the widest needs. */
static int find_of_told(const meshcoll_oob_t *oob, const told_t *told, const int32_t *machine,
                        const uint64_t *own, double *crowd)
{
    uint64_t words = 1;
    for (int32_t r = 0; r < oob->size; r++)
        words = told[r].words > words ? told[r].words : words;
    uint64_t *const mine = calloc(words, sizeof *mine);
    int32_t *const kernel = calloc((size_t)oob->size, sizeof *kernel);
    void *sets = NULL;
    if (mine)
        memcpy(mine, own, told[oob->rank].words * sizeof *mine);
    const int status =
        mc_gather(oob, mine && kernel ? MESHCOLL_OK : mc_fail_memory("the cores of all ranks"),
                  mine, words * sizeof *mine, &sets);
    for (int32_t r = 0; !status && r < oob->size; r++)
        kernel[r] = beside(told, machine, oob->rank, r);
    if (!status)
        *crowd = mc_crowd_of(sets, words, kernel, oob->size, oob->rank);
    free(sets);
    free(kernel);
    free(mine);
    return status;
}

int mc_crowd_find(const meshcoll_oob_t *oob, const int32_t *machine, double *crowd)
{
    size_t words;
    void *told = NULL;
    uint64_t *const own = own_cores(&words);
    const told_t mine = own ? told_of(own, words) : (told_t){0};
    int status = mc_gather(oob, own ? MESHCOLL_OK : mc_fail_memory("a set of cores"), &mine,
                           sizeof mine, &told);
    if (!status)
        status = find_of_told(oob, told, machine, own, crowd);
    free(told);
    free(own);
    return status;
}
