#include "runtime/place/places.h"

#include "base/gather.h"

#include <fcntl.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
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

/* Loads only packages and NUMA nodes. Groups that NUMA nodes are attached to are kept: a node
 * without its parent would get the processors of the whole package. */
static int load(hwloc_topology_t *topology)
{
    if (hwloc_topology_init(topology))
        return -1;
    hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    if (hwloc_topology_load(*topology) == 0)
        return 0;
    hwloc_topology_destroy(*topology);
    return -1;
}

/* The first object of a type that includes all of these processors; -1: none. */
static int32_t within(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        if (hwloc_bitmap_isincluded(set, o->cpuset))
            return (int32_t)o->os_index;
    return -1;
}

static void find_in(hwloc_topology_t topology, hwloc_bitmap_t set, mc_bound_to_t *bound)
{
    const hwloc_obj_t all = hwloc_get_root_obj(topology);
    /* a topology given by HWLOC_XMLFILE, … tells nothing of this process */
    if (!hwloc_topology_is_thissystem(topology) ||
        hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS))
        return;
    hwloc_bitmap_and(set, set, all->cpuset);
    if (hwloc_bitmap_iszero(set) || hwloc_bitmap_isequal(set, all->cpuset))
        return;
    hwloc_bitmap_list_snprintf(bound->cpus, sizeof bound->cpus, set);
    bound->node = within(topology, HWLOC_OBJ_NUMANODE, set);
    bound->package = within(topology, HWLOC_OBJ_PACKAGE, set);
}

void mc_bound_to_find(mc_bound_to_t *bound)
{
    mc_bound_to_t found = {.node = -1, .package = -1};
    hwloc_topology_t topology;
    if (may_be_bound() && load(&topology) == 0) {
        const hwloc_bitmap_t set = hwloc_bitmap_alloc();
        if (set)
            find_in(topology, set, &found);
        hwloc_bitmap_free(set);
        hwloc_topology_destroy(topology);
    }
    *bound = found;
}

void mc_boot_id(char id[MC_BOOT_TEXT])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, id, MC_BOOT_TEXT - 1);
    id[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Places --------------------------------------------------------------------------------------- */

int mc_places_find(const meshcoll_oob_t *oob, const int32_t *machine, mc_place_t **place)
{
    mc_bound_to_t bound;
    mc_bound_to_find(&bound);
    const mc_place_t mine = {
        .machine = machine[oob->rank], .node = bound.node, .package = bound.package};
    void *all = NULL;
    const int status = mc_gather(oob, MESHCOLL_OK, &mine, sizeof mine, &all);
    if (!status)
        *place = all;
    return status;
}
