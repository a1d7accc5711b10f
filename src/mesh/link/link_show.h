/* Links as tables, for the command and for reports. */
#ifndef MC_LINK_SHOW_H
#define MC_LINK_SHOW_H

#include "mesh/link/link.h"

#include <stdio.h>

/* Fills `buffer` and returns it. */
mc_printed_t mc_ports_print(int32_t ports);

/* A line a dimension. ERR_NO_MEMORY. */
int mc_links_show(const mc_mesh_t *mesh, const mc_links_t *links, FILE *out);
/* A line a strategy, a column a size. */
int mc_measured_show(const mc_measured_t *measured, FILE *out);

#endif
