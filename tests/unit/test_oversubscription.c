#include "runtime/place/places.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Ranks that were bound differently, as each would find it on this machine. */
static mc_cores_t bound_to(uint64_t kernel, int first, int n)
{
    cpu_set_t before, set;
    CPU_ZERO(&set);
    cr_assert_eq(sched_getaffinity(0, sizeof before, &before), 0);
    for (int core = 0; core < CPU_SETSIZE && n > 0; core++)
        if (CPU_ISSET(core, &before) && first-- <= 0) {
            CPU_SET(core, &set);
            n--;
        }
    cr_assert_eq(sched_setaffinity(0, sizeof set, &set), 0);
    const mc_cores_t cores = mc_cores_find(kernel);
    cr_assert_eq(sched_setaffinity(0, sizeof before, &before), 0);
    return cores;
}

static bool are_shared(const mc_cores_t *cores, int n, int rank)
{
    return mc_cores_crowd(cores, sizeof *cores, n, rank) > 1;
}

Test(cores, are_shared_by_more_ranks_than_there_are)
{
    const mc_cores_t two = {.pool = 5, .n = 2}, other = {.pool = 6, .n = 2};
    const mc_cores_t all[] = {two, two, two, other, other};
    cr_expect(are_shared(all, 5, 0));
    cr_expect_eq(mc_cores_crowd(all, sizeof *all, 5, 0), 1.5);
    cr_expect(!are_shared(all, 5, 4), "other cores, or another machine's");
    cr_expect(!are_shared(all, 2, 0), "as many ranks as cores");
}

Test(cores, are_those_that_a_rank_may_run_on)
{
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    const mc_cores_t all = mc_cores_find(1), one = bound_to(1, 0, 1);
    cr_expect_leq(all.n, CPU_COUNT(&set));
    cr_expect_eq(one.n, 1);
    cr_expect_eq(one.pool, bound_to(1, 0, 1).pool);
    cr_expect_neq(one.pool, mc_cores_find(2).pool, "of another kernel");
    if (CPU_COUNT(&set) < 2)
        return;
    const mc_cores_t each[] = {one, bound_to(1, 1, 1)}, both[] = {one, one};
    cr_expect(!are_shared(each, 2, 1), "each rank has its own");
    cr_expect(are_shared(both, 2, 1));
}

/* Boxes may be containers, whose ranks have the cores of one kernel. */
Test(cores, of_a_kernel_are_in_one_pool_whatever_the_machine)
{
    mc_location_t here, there;
    mc_location_find(&here);
    mc_location_find(&there);
    cr_expect_eq(here.cores.pool, there.cores.pool);
    cr_expect_eq(here.cores.n, there.cores.n);
}

static int32_t quota(const char *directory, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    FILE *const file = fopen(path, "we");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    const int32_t n = mc_cores_quota(directory);
    remove(path);
    return n;
}

Test(cores, count_as_a_quota_allows)
{
    char directory[] = "/tmp/meshcoll-quota-XXXXXX";
    cr_assert(mkdtemp(directory));
    cr_expect_eq(mc_cores_quota(directory), 0, "no cgroup");
    cr_expect_eq(quota(directory, "max 100000\n"), 0);
    cr_expect_eq(quota(directory, "200000 100000\n"), 2);
    cr_expect_eq(quota(directory, "150000 100000\n"), 2, "a part of a core is one");
    cr_expect_eq(quota(directory, "x"), 0);
    rmdir(directory);
}
