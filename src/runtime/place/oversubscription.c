#include "runtime/place/places.h"

#include "base/hash.h"
#include "base/system/file.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Affinity --------------------------------------------------------------------------------------- */

/* The set of cores that this process may run on, in as many words as the kernel needs; NULL: unknown. */
static uint64_t *find_affinity(size_t *words)
{
    enum { FIRST = 16, MOST = 1 << 16 };
    for (*words = FIRST; *words <= MOST; *words *= 2) {
        uint64_t *const set = calloc(*words, sizeof *set);
        if (!set || sched_getaffinity(0, *words * sizeof *set, (cpu_set_t *)set) == 0)
            return set;
        free(set);
        if (errno != EINVAL)
            break;
    }
    return NULL;
}

/* Where it is unknown, as though all ranks shared one core. */
static mc_cores_t find_by_affinity(uint64_t kernel)
{
    size_t words;
    uint64_t *const set = find_affinity(&words);
    mc_cores_t cores = {.pool = kernel, .n = set ? 0 : 1};
    for (size_t w = 0; set && w < words; w++)
        cores.n += __builtin_popcountll(set[w]);
    if (set)
        cores.pool = mc_fnv(kernel, set, words * sizeof *set);
    free(set);
    return cores;
}

/* Quotas ----------------------------------------------------------------------------------------- */

enum { PATH = 1024 };
#define CGROUPS "/sys/fs/cgroup"

int32_t mc_cores_quota(const char *directory)
{
    char path[PATH + 16], text[64];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    mc_file_read_start(path, text, sizeof text); /* "max 100000" or "150000 100000" */
    if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    const long long n = (quota + period - 1) / period;
    return n < INT32_MAX ? (int32_t)n : 0;
}

/* The folder of this process's cgroup (version 2). */
static void find_cgroup(char directory[PATH])
{
    char text[2 * PATH] = "\n";
    mc_file_read_start("/proc/self/cgroup", text + 1, sizeof text - 1);
    const char *const line = strstr(text, "\n0::"), *const path = line ? line + 4 : "";
    const size_t n = strcspn(path, "\n");
    snprintf(directory, PATH, CGROUPS "%.*s", n > 1 ? (int)n : 0, path);
}

/* The tightest limit of the cgroup and those around it. Containers have a cgroup namespace each, in which their own
 * cgroup is the outermost. */
static mc_cores_t find_by_quota(uint64_t kernel)
{
    char at[PATH];
    struct stat space = {0};
    mc_cores_t cores = {.n = INT32_MAX};
    find_cgroup(at);
    (void)stat("/proc/self/ns/cgroup", &space);
    for (size_t n = strlen(at); n >= sizeof CGROUPS - 1; n = (size_t)(strrchr(at, '/') - at)) {
        at[n] = '\0';
        const int32_t quota = mc_cores_quota(at);
        if (quota > 0 && quota < cores.n)
            cores = (mc_cores_t){.pool = mc_fnv(kernel ^ space.st_ino, at, n), .n = quota};
    }
    return cores;
}

/* Pools ------------------------------------------------------------------------------------------ */

mc_cores_t mc_cores_find(uint64_t kernel)
{
    const mc_cores_t by_affinity = find_by_affinity(kernel), by_quota = find_by_quota(kernel);
    return by_quota.n < by_affinity.n ? by_quota : by_affinity;
}

static const mc_cores_t *cores_at(const void *cores, size_t stride, int32_t rank)
{
    return (const void *)((const char *)cores + (size_t)rank * stride);
}

double mc_cores_crowd(const void *cores, size_t stride, int32_t n, int32_t rank)
{
    const mc_cores_t *const own = cores_at(cores, stride, rank);
    int32_t ranks = 0;
    for (int32_t r = 0; r < n; r++)
        ranks += cores_at(cores, stride, r)->pool == own->pool;
    return (double)ranks / (own->n > 0 ? own->n : 1);
}
