#include "runtime/place/cores.h"

#include <hwloc/linux.h>

int mc_cores_find(hwloc_bitmap_t cores)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        return -1;
    /* this one needs no topology loaded, which would take milliseconds */
    const int status = hwloc_linux_get_tid_cpubind(topology, 0, cores);
    hwloc_topology_destroy(topology);
    return status;
}
