#include "gpu/proxy/state.h"

#include <stdlib.h>
#include <string.h>

/* What network cards have written to the GPU before is visible to its kernels then. */
static int flush(void)
{
    return mc_cuda_status(mc_cuda()->flush_writes(MC_CU_DIRECT_CONTEXT, MC_CU_DIRECT_TO_OWNER),
                          "wait for what network cards wrote");
}

static int read_setting(bool *on)
{
    const char *const text = getenv("MESHCOLL_GPU_DIRECT");
    *on = text && strcmp(text, "on") == 0;
    if (!text || !*text || *on || strcmp(text, "off") == 0)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_GPU_DIRECT: expected on or off, got '%s'", text);
}

/* 0, too, where the driver does not know it. */
static int ask(mc_cu_device_attribute_t what, mc_cu_device_t device)
{
    int value;
    return mc_cuda()->device_attribute(&value, what, device) ? 0 : value;
}

/* Where the GPU uses the host's page tables, there are two ways to it, PCIe and the link to the
 * processor. CUDA calls such writes ordered then, but not those of one way with flags that come by
 * the other one. */
static void find_order(mc_cu_device_t device, mc_gpudirect_t *d)
{
    if (!ask(MC_CU_DIRECT, device))
        d->why_not = "network cards cannot reach this GPU";
    else if (ask(MC_CU_HOST_TABLES, device))
        d->why_not = "flags and data take two ways to this GPU, which nothing orders";
    else if (ask(MC_CU_DIRECT_ORDER, device) >= MC_CU_DIRECT_OWNER)
        d->why_not = NULL;
    else if (mc_cuda()->flush_writes && ask(MC_CU_DIRECT_FLUSHES, device) & MC_CU_DIRECT_BY_HOST)
        d->flush = flush;
    else
        d->why_not = "nothing tells that this GPU sees what a network card wrote";
}

int mc_gpudirect_find(mc_gpudirect_t *direct)
{
    mc_gpudirect_t d = {.why_not = NULL};
    mc_cu_device_t device;
    bool on;
    int status = read_setting(&on);
    if (!on)
        d.why_not = "MESHCOLL_GPU_DIRECT is off";
    if (!status && on)
        status = mc_cuda_status(mc_cuda()->context_device(&device), "tell its number");
    if (!status && on)
        find_order(device, &d);
    if (!status && !d.why_not)
        status = mc_cuda_status(mc_cuda()->context_current(&d.context), "tell its context");
    if (!status)
        *direct = d;
    return status;
}
