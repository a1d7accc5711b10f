#include "runtime/place/topology.h"

#include "base/base.h"
#include "base/system/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Objects of all kinds are kept: a NUMA node whose parent, say a cache, is left out moves up to the next one, and gets
 * the processors of a whole package. `file`: NULL for what the environment says. */
static int load(const char *file, bool devices, hwloc_topology_t *topology)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t))
        return -1;
    if ((!devices ||
         hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0) &&
        (!file || hwloc_topology_set_xml(t, file) == 0) && hwloc_topology_load(t) == 0) {
        *topology = t;
        return 0;
    }
    hwloc_topology_destroy(t);
    return -1;
}

int mc_topology_read(const char *file, bool devices, hwloc_topology_t *topology)
{
    if (load(file, devices, topology) == 0)
        return MESHCOLL_OK;
    if (access(file, R_OK))
        return mc_fail(MESHCOLL_ERR_IO, "%s cannot be read: %s", file, strerror(errno));
    return mc_fail(
        MESHCOLL_ERR_IO,
        "%s is not a topology that hwloc reads here: expected an XML file of lstopo, of the "
        "version of libhwloc here or an older one",
        file);
}

/* Of the file that could not be read; the first thread that finds so takes `why`. */
enum { UNKNOWN, TAKEN, NOTED, TOLD };
static _Atomic int state = UNKNOWN;
static char why[512];

static void note(const char *instead)
{
    int before = UNKNOWN;
    if (!atomic_compare_exchange_strong(&state, &before, TAKEN))
        return;
    snprintf(why, sizeof why, "%s; %s", meshcoll_last_error(), instead);
    atomic_store(&state, NOTED);
}

int mc_topology_load(bool devices, hwloc_topology_t *topology)
{
    const char *const file = getenv("HWLOC_XMLFILE");
    if (!file || !*file)
        return load(NULL, devices, topology);
    if (mc_topology_read(file, devices, topology) == MESHCOLL_OK)
        return 0;
    /* hwloc itself passes over a file that it cannot open, and fails with one of a later version */
    const int status = load(NULL, devices, topology);
    note(status ? "where ranks are bound stays unknown" : "the machine itself is asked instead");
    return status;
}

void mc_topology_warn(bool speaks)
{
    int noted = NOTED;
    if (atomic_compare_exchange_strong(&state, &noted, TOLD) && speaks)
        mc_log(MC_LOG_WARN, "HWLOC_XMLFILE: %s", why);
}
