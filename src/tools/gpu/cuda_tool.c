#include "tools/gpu/cuda_tool.h"

#include <string.h>

static int look_up(const char *name, void *function)
{
    void *const found = mc_cuda_symbol(name);
    memcpy(function, &found, sizeof found);
    return found ? MESHCOLL_OK
                 : mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                           "the CUDA driver is too old: libcuda has no %s; expected one of CUDA 11 "
                           "or later",
                           name);
}

int mc_cuda_init(const mc_cuda_tool_t **tool)
{
    static mc_cuda_tool_t found;
    mc_cuda_open();
    int status = mc_cuda_check();
#define LOOK_UP(member, symbol, parameters) \
    if (!status)                            \
        status = look_up(#symbol, &found.member);
    MC_CUDA_TOOL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (!status)
        status = mc_cuda_status(found.init(0), "be initialised");
    if (!status)
        *tool = &found;
    return status;
}
