/* A fake of NVML, for `meshcoll topo`: NVLinks of the box that fake.h describes. */
#include "fake.h"

#include "tools/gpu/nvml.h"

#include <stdio.h>

enum {
    LINKS_OF_A_PAIR = 4,
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3
};

#define DECLARE(member, symbol, parameters) FAKE_API unsigned symbol parameters;
MC_NVML_FUNCTIONS(DECLARE)

struct nvmlDevice_st {
    int number;
};
static struct nvmlDevice_st devices[FAKE_DEVICES];

unsigned nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

unsigned nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

unsigned nvmlSystemGetDriverVersion(char *version, unsigned capacity)
{
    snprintf(version, capacity, "580.0");
    return NVML_SUCCESS;
}

unsigned nvmlDeviceGetHandleByPciBusId_v2(const char *id, mc_nvml_device_t *device)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x:", &domain, &bus) != 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int d = 0; d < FAKE_DEVICES; d++)
        if (fake_bus(d) == bus) {
            devices[d].number = d;
            *device = &devices[d];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* The GPU at the other end; -1: a switch; -2: there is no such link. */
static int other_end(mc_nvml_device_t device, unsigned link)
{
    unsigned n = (unsigned)fake_setting("FAKE_SWITCH", 0);
    if (link < n)
        return -1;
    for (int d = 0; d < fake_setting("FAKE_GPUS", FAKE_DEVICES); d++)
        if (d != device->number && fake_paired(device->number, d) && link < (n += LINKS_OF_A_PAIR))
            return d;
    return -2;
}

unsigned nvmlDeviceGetNvLinkState(mc_nvml_device_t device, unsigned link, unsigned *state)
{
    const bool there = other_end(device, link) > -2;
    *state = there;
    return there ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

unsigned nvmlDeviceGetNvLinkRemoteDeviceType(mc_nvml_device_t device, unsigned link, unsigned *type)
{
    if (fake_setting("FAKE_HIDDEN", 0)) /* as a virtual machine does */
        return NVML_ERROR_NOT_SUPPORTED;
    *type = other_end(device, link) == -1 ? MC_NVML_SWITCH : MC_NVML_GPU;
    return NVML_SUCCESS;
}

unsigned nvmlDeviceGetNvLinkRemotePciInfo_v2(mc_nvml_device_t device, unsigned link,
                                             mc_nvml_pci_t *pci)
{
    const int end = other_end(device, link);
    if (end < 0 || fake_setting("FAKE_HIDDEN", 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    *pci = (mc_nvml_pci_t){.bus = fake_bus(end)};
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", fake_bus(end));
    return NVML_SUCCESS;
}
