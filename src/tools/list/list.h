/* meshcoll list: the names that other commands take. */
#ifndef MC_TOOLS_LIST_H
#define MC_TOOLS_LIST_H

#include "tools/common/tool.h"

extern const mc_command_t mc_list_command;

#endif
