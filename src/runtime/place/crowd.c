#include "runtime/place/crowd.h"

#include "base/gather.h"
#include "runtime/place/cores.h"
#include "runtime/place/places.h"

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

/* The cores that this process may run on, in words up to the last core. The caller frees it. */
static uint64_t *own_cores(size_t *words)
{
    const hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    if (!cores)
        return NULL;
    if (mc_cores_find(cores) || hwloc_bitmap_last(cores) < 0)
        hwloc_bitmap_only(cores, 0); /* unknown: as though all ranks shared one core */
    *words = (size_t)(hwloc_bitmap_last(cores) / WORD + 1);
    uint64_t *const set = calloc(*words, sizeof *set);
    for (int c = hwloc_bitmap_first(cores); set && c >= 0; c = hwloc_bitmap_next(cores, c))
        set[c / WORD] |= UINT64_C(1) << c % WORD;
    hwloc_bitmap_free(cores);
    return set;
}

/* What each rank publishes before its set. */
typedef struct {
    uint64_t words;          /* up to the last with a core */
    char boot[MC_BOOT_TEXT]; /* of the kernel that schedules these cores */
} published_t;

static published_t publish(size_t words)
{
    published_t published = {.words = words};
    mc_boot_id(published.boot);
    return published;
}

/* Do both run on the same cores? Where the kernel has no boot id: on the same machine? */
static bool share_cores(const published_t *published, const int32_t *machine, int32_t a, int32_t b)
{
    return published[a].boot[0] ? strcmp(published[a].boot, published[b].boot) == 0
                                : machine[a] == machine[b];
}

/* Gathers the sets of all ranks, in as many words as the widest needs. */
static int find_among(const meshcoll_oob_t *oob, const published_t *published,
                      const int32_t *machine, const uint64_t *own, double *crowd)
{
    uint64_t words = 1;
    for (int32_t r = 0; r < oob->size; r++)
        words = published[r].words > words ? published[r].words : words;
    uint64_t *const mine = calloc(words, sizeof *mine);
    int32_t *const kernel = calloc((size_t)oob->size, sizeof *kernel);
    void *sets = NULL;
    if (mine)
        memcpy(mine, own, published[oob->rank].words * sizeof *mine);
    const int status =
        mc_gather(oob, mine && kernel ? MESHCOLL_OK : mc_fail_memory("the cores of all ranks"),
                  mine, words * sizeof *mine, &sets);
    for (int32_t r = 0; !status && r < oob->size; r++)
        kernel[r] = share_cores(published, machine, oob->rank, r);
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
    void *published = NULL;
    uint64_t *const own = own_cores(&words);
    const published_t mine = own ? publish(words) : (published_t){0};
    int status = mc_gather(oob, own ? MESHCOLL_OK : mc_fail_memory("a set of cores"), &mine,
                           sizeof mine, &published);
    if (!status)
        status = find_among(oob, published, machine, own, crowd);
    free(published);
    free(own);
    return status;
}
