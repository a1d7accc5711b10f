/* This machine, or another one in a file, as hwloc knows it. */
#ifndef MC_RUNTIME_TOPOLOGY_H
#define MC_RUNTIME_TOPOLOGY_H

#include <hwloc.h>
#include <stdbool.h>

/* Loads the topology of `file`, an XML file of hwloc; with `devices`, the important ones of PCI too. ERR_IO, with the
 * reason. */
int mc_topology_read(const char *file, bool devices, hwloc_topology_t *topology);
/* The topology that hwloc's variables name, else this machine's. A file of HWLOC_XMLFILE that cannot be read is noted
 * for mc_topology_warn, and hwloc loads the machine itself, but fails for a file of a later version. -1: none. */
int mc_topology_load(bool devices, hwloc_topology_t *topology);
/* Says on stderr, once in a process, which file could not be read; `speaks`: of several ranks that found so, this is
 * the one that says it. */
void mc_topology_warn(bool speaks);

#endif
