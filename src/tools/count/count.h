/* meshcoll count: what ways to allreduce ask of the network. */
#ifndef MC_TOOLS_COUNT_H
#define MC_TOOLS_COUNT_H

#include "tools/common/tool.h"

extern const mc_command_t mc_count_command;

#endif
