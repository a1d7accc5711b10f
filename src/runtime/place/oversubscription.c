#include "runtime/place/oversubscription.h"

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

static double ranks_on(const uint64_t *sets, size_t words, size_t stride, const int32_t *kernel,
                       int32_t n, int32_t rank, size_t core)
{
    double per_core = 0;
    for (int32_t r = 0; r < n; r++) {
        const uint64_t *const set = sets + (size_t)r * stride;
        if (kernel[r] == kernel[rank] && has(set, core))
            per_core += 1.0 / count(set, words);
    }
    return per_core;
}

double mc_oversubscription_of(const uint64_t *sets, size_t words, size_t stride,
                              const int32_t *kernel, int32_t n, int32_t rank)
{
    double least = 0;
    for (size_t core = 0; core < words * WORD; core++) {
        if (!has(sets + (size_t)rank * stride, core))
            continue;
        const double per_core = ranks_on(sets, words, stride, kernel, n, rank, core);
        least = least == 0 || per_core < least ? per_core : least;
    }
    return least;
}

/* In as many words as the kernel needs. */
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

uint64_t *mc_cores_find(size_t *words)
{
    uint64_t *const set = own_cores(words);
    while (set && *words > 1 && set[*words - 1] == 0)
        --*words;
    return set;
}

void mc_kernels_find(const void *locations, size_t location_stride, const int32_t *machine,
                     int32_t n, int32_t rank, int32_t *kernel)
{
    const char *const at = locations;
    const mc_location_t *const own = (const void *)(at + (size_t)rank * location_stride);
    for (int32_t r = 0; r < n; r++) {
        const mc_location_t *const l = (const void *)(at + (size_t)r * location_stride);
        kernel[r] = own->boot[0] ? strcmp(l->boot, own->boot) == 0 : machine[r] == machine[rank];
    }
}
