#include "runtime/place/places.h"

#include "base/gather.h"
#include "base/hash.h"
#include "base/system/file.h"
#include "runtime/place/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Binding -------------------------------------------------------------------------------------- */

/* Most processes are not bound, and skip loading the machine's topology. */
static bool may_be_bound(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return true; /* more processors than the set holds */
    return CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
}

/* The first object of a type that includes all of these processors; -1: none. */
static int32_t within(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        if (hwloc_bitmap_isincluded(set, o->cpuset))
            return (int32_t)o->os_index;
    return -1;
}

static mc_bound_to_t bound_to(hwloc_topology_t topology, hwloc_const_bitmap_t set)
{
    mc_bound_to_t bound = {.node = within(topology, HWLOC_OBJ_NUMANODE, set),
                           .package = within(topology, HWLOC_OBJ_PACKAGE, set)};
    hwloc_bitmap_list_snprintf(bound.cpus, sizeof bound.cpus, set);
    return bound;
}

static void find_in(hwloc_topology_t topology, hwloc_bitmap_t set, mc_bound_to_t *bound)
{
    const hwloc_obj_t all = hwloc_get_root_obj(topology);
    /* a topology given by HWLOC_XMLFILE, … tells nothing of this process */
    if (!hwloc_topology_is_thissystem(topology) ||
        hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS))
        return;
    hwloc_bitmap_and(set, set, all->cpuset);
    if (!hwloc_bitmap_iszero(set) && !hwloc_bitmap_isequal(set, all->cpuset))
        *bound = bound_to(topology, set);
}

void mc_bound_to_find(mc_bound_to_t *bound)
{
    mc_bound_to_t found = {.node = -1, .package = -1};
    hwloc_topology_t topology;
    if (may_be_bound() && mc_topology_load(false, &topology) == 0) {
        const hwloc_bitmap_t set = hwloc_bitmap_alloc();
        if (set)
            find_in(topology, set, &found);
        hwloc_bitmap_free(set);
        hwloc_topology_destroy(topology);
    }
    *bound = found;
}

int mc_bound_to_cores(const char *file, mc_bound_to_t **bound, int32_t *n)
{
    hwloc_topology_t topology;
    const int status = mc_topology_read(file, false, &topology);
    if (status)
        return status;
    const bool cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
    const hwloc_obj_type_t type = cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int32_t found = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        found++;
    mc_bound_to_t *const all = calloc((size_t)found, sizeof *all);
    for (int32_t i = 0; all && i < found; i++)
        all[i] = bound_to(topology, hwloc_get_obj_by_type(topology, type, (unsigned)i)->cpuset);
    hwloc_topology_destroy(topology);
    if (!all)
        return mc_fail_memory("the cores of a file");
    *bound = all;
    *n = found;
    return MESHCOLL_OK;
}

/* Locations ------------------------------------------------------------------------------------ */

static uint64_t hash_path(uint64_t h, const char *path)
{
    struct stat s;
    if (stat(path, &s) == 0) {
        h = mc_fnv(h, &s.st_dev, sizeof s.st_dev);
        h = mc_fnv(h, &s.st_ino, sizeof s.st_ino);
    }
    return h;
}

/* Equal for ranks of the same kernel, host name, /dev/shm, and IPC and PID namespaces. Segments are
 * opened through /proc/PID: across PID namespaces there is no shared memory. */
static uint64_t machine_id(uint64_t kernel)
{
    char host[256] = "";
    uint64_t h = kernel;
    if (gethostname(host, sizeof host - 1) == 0)
        h = mc_fnv(h, host, strlen(host));
    h = hash_path(h, "/proc/self/ns/ipc");
    h = hash_path(h, "/proc/self/ns/pid");
    return hash_path(h, "/dev/shm");
}

/* What shows without the driver, which takes a while to load. MESHCOLL_LIBCUDA names another one, or "off". */
static bool has_gpus(void)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA");
    if (given && *given)
        return strcmp(given, "off") != 0;
    return access("/dev/nvidiactl", F_OK) == 0;
}

void mc_location_find(mc_location_t *location)
{
    char boot[40]; /* the same in all containers on a kernel */
    mc_bound_to_t bound;
    mc_bound_to_find(&bound);
    mc_file_read_start("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    /* machines that were resumed from one snapshot are equal in all of this */
    const char *const given = getenv("MESHCOLL_HOST_ID"), *const host = given ? given : "";
    const uint64_t kernel = mc_fnv(mc_fnv(MC_FNV_START, boot, strlen(boot)), host, strlen(host)),
                   machine = machine_id(kernel);
    *location =
        (mc_location_t){.machine = machine,
                        .node = bound.node,
                        .package = bound.package,
                        .gpus = has_gpus(),
                        .network = hash_path(boot[0] ? kernel : machine, "/proc/self/ns/net"),
                        .cores = mc_cores_find(boot[0] ? kernel : machine)};
}

/* Places --------------------------------------------------------------------------------------- */

static const mc_location_t *location_at(const void *locations, size_t stride, int32_t rank)
{
    return (const void *)((const char *)locations + (size_t)rank * stride);
}

void mc_places_of(const void *locations, size_t stride, int32_t n, int32_t *seen, mc_place_t *place)
{
    int32_t n_seen = 0;
    for (int32_t r = 0; r < n; r++) {
        const mc_location_t *const l = location_at(locations, stride, r);
        int32_t i = n_seen - 1;
        while (i >= 0 && location_at(locations, stride, seen[i])->machine != l->machine)
            i--;
        if (i < 0)
            seen[i = n_seen++] = r;
        place[r] = (mc_place_t){
            .machine = seen[i], .node = l->node, .package = l->package, .gpus = l->gpus != 0};
    }
}

int mc_places_gather(const meshcoll_oob_t *oob, mc_place_t **place)
{
    const size_t n = (size_t)oob->size;
    mc_location_t mine;
    void *all = NULL;
    mc_place_t *const found = calloc(n, sizeof *found);
    int32_t *const seen = calloc(n, sizeof *seen);
    mc_location_find(&mine);
    const int status =
        mc_gather(oob, found && seen ? MESHCOLL_OK : mc_fail_memory("a table of places"), &mine,
                  sizeof mine, &all);
    if (!status) {
        mc_places_of(all, sizeof mine, oob->size, seen, found);
        mc_topology_warn(found[oob->rank].machine == oob->rank);
    }
    free(all);
    free(seen);
    if (status) {
        free(found);
        return status;
    }
    *place = found;
    return MESHCOLL_OK;
}
