/*
 * NVIDIA's management library, opened at run time by prototypes of our own: what it knows of
 * NVLinks, and the driver's version. libnvidia-ml.so.1, or what MESHCOLL_LIBNVML names; "off": none.
 */
#ifndef MC_TOOLS_NVML_H
#define MC_TOOLS_NVML_H

typedef struct nvmlDevice_st *mc_nvml_device_t;
/* The nvmlPciInfo_t of nvml.h from version 11 on. */
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} mc_nvml_pci_t;
/* MOST_LINKS: nvml.h's NVML_NVLINK_MAX_LINKS. */
enum {
    MC_NVML_ENABLED = 1,
    MC_NVML_GPU = 0,
    MC_NVML_SWITCH = 2,
    MC_NVML_UNKNOWN = 255,
    MC_NVML_MOST_LINKS = 18
};

/* X(member, exported name, parameters); all return an nvmlReturn_t, 0 on success. */
#define MC_NVML_FUNCTIONS(X)                                                          \
    X(init, nvmlInit_v2, (void))                                                      \
    X(shutdown, nvmlShutdown, (void))                                                 \
    X(driver, nvmlSystemGetDriverVersion, (char *, unsigned))                         \
    X(device, nvmlDeviceGetHandleByPciBusId_v2, (const char *, mc_nvml_device_t *))   \
    X(link_state, nvmlDeviceGetNvLinkState, (mc_nvml_device_t, unsigned, unsigned *)) \
    X(link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2,                                  \
      (mc_nvml_device_t, unsigned, mc_nvml_pci_t *))                                  \
    X(link_type, nvmlDeviceGetNvLinkRemoteDeviceType, (mc_nvml_device_t, unsigned, unsigned *))

typedef struct {
#define MC_NVML_MEMBER(member, symbol, parameters) unsigned(*member) parameters;
    MC_NVML_FUNCTIONS(MC_NVML_MEMBER)
#undef MC_NVML_MEMBER
    void *library;
} mc_nvml_t;

#endif
