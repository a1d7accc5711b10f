/* meshcoll status: what a running job waits for. */
#ifndef MC_TOOLS_STATUS_H
#define MC_TOOLS_STATUS_H

#include "tools/common/tool.h"

extern const mc_command_t mc_status_command;

#endif
