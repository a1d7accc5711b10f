/* One machine as hwloc finds it and as it reads it from a file. */
#include "runtime/place/places.h"
#include "runtime/place/topology.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HALVES = 2 };

/* Two NUMA nodes below a cache each, in one package, with half of the processors each; as synthetic text, and in the
 * file `path`. */
static void make(int cpus, char *text, size_t room, char *path)
{
    hwloc_topology_t t;
    snprintf(text, room, "pack:1 l3:2 [numa] core:%d pu:1", cpus / HALVES);
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    cr_assert(hwloc_topology_init(&t) == 0 && hwloc_topology_set_synthetic(t, text) == 0 &&
              hwloc_topology_load(t) == 0 && hwloc_topology_export_xml(t, path, 0) == 0);
    hwloc_topology_destroy(t);
}

/* All threads: Criterion has one of its own. */
static bool bind(int cpu)
{
    cpu_set_t set;
    bool all = true;
    DIR *const tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    for (const struct dirent *e; (e = readdir(tasks));)
        if (e->d_name[0] != '.')
            all = sched_setaffinity(atoi(e->d_name), sizeof set, &set) == 0 && all;
    closedir(tasks);
    return all;
}

static void expect_node(int32_t node, const char *what)
{
    mc_bound_to_t bound;
    mc_bound_to_find(&bound);
    cr_expect_eq(bound.node, node, "%s: node %d, not %d", what, bound.node, node);
    cr_expect_eq(bound.package, 0, "%s: socket %d", what, bound.package);
}

Test(topology, a_node_below_a_cache_is_the_same_one_from_a_file)
{
    char path[] = "/tmp/meshcoll-topology-XXXXXX", text[64];
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus < HALVES || cpus % HALVES)
        cr_skip_test("an odd number of processors");
    make(cpus, text, sizeof text, path);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    for (int half = 0; half < HALVES; half++) {
        if (!bind(half * cpus / HALVES)) {
            unlink(path);
            cr_skip_test("this process may not run on all processors");
        }
        unsetenv("HWLOC_XMLFILE");
        setenv("HWLOC_SYNTHETIC", text, 1);
        expect_node(half, "as found");
        unsetenv("HWLOC_SYNTHETIC");
        setenv("HWLOC_XMLFILE", path, 1);
        expect_node(half, "from a file");
    }
    mc_bound_to_t *core;
    int32_t n;
    cr_assert_eq(mc_bound_to_cores(path, &core, &n), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(n, cpus);
    for (int32_t i = 0; i < n; i++)
        cr_expect_eq(core[i].node, i / (cpus / HALVES));
    free(core);
    unlink(path);
}
