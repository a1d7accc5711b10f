/* The cores that the calling thread may run on. */
#ifndef MC_RUNTIME_CORES_H
#define MC_RUNTIME_CORES_H

#include <hwloc.h>

/* Returns 0, or -1 if the kernel does not say. */
int mc_cores_find(hwloc_bitmap_t cores);

#endif
