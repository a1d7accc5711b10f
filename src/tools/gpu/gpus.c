#include "tools/gpu/gpus.h"

#include "gpu/cuda/driver.h"
#include "tools/gpu/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver -------------------------------------------------------------------------------------- */

/* "00000000:1B:00.0", as NVML writes it, or "0000:1B:00.0" become "0000:1b:00.0". */
static void tidy_pci(const char *given, char pci[MC_PCI_TEXT])
{
    unsigned domain, bus, device;
    if (sscanf(given, "%x:%x:%x", &domain, &bus, &device) != 3)
        domain = bus = device = 0;
    snprintf(pci, MC_PCI_TEXT, "%04x:%02x:%02x.0", domain & 0xffffffu, bus & 0xffu, device & 0x1fu);
}

static int find_gpu(int32_t i, mc_gpu_seen_t *gpu)
{
    mc_cu_device_t device;
    char pci[32];
    int status = mc_cuda_status(mc_cuda()->device_get(&device, i), "tell of a GPU");
    if (!status)
        status = mc_cuda_status(mc_cuda()->device_name(gpu->name, sizeof gpu->name, device),
                                "tell a GPU's name");
    if (!status)
        status = mc_cuda_status(mc_cuda()->device_pci(pci, sizeof pci, device),
                                "tell a GPU's place on PCI");
    if (!status)
        tidy_pci(pci, gpu->pci);
    gpu->node = -1;
    return status;
}

static void find_pair(int32_t from, int32_t to, mc_gpu_pair_t *pair)
{
    mc_cu_device_t a, b;
    int can = 0, rank = -1, atomics = 0;
    *pair = (mc_gpu_pair_t){.rank = -1};
    if (from == to || mc_cuda()->device_get(&a, from) || mc_cuda()->device_get(&b, to) ||
        mc_cuda()->device_can_access(&can, a, b) || !can)
        return;
    if (mc_cuda()->device_p2p(&rank, MC_CU_P2P_RANK, a, b))
        rank = -1;
    if (mc_cuda()->device_p2p(&atomics, MC_CU_P2P_ATOMICS, a, b))
        atomics = 0;
    *pair = (mc_gpu_pair_t){.reach = MC_BY_PCIE, .rank = rank, .atomics = atomics};
}

static int find_all(mc_gpus_t *g)
{
    int n = 0;
    int status = mc_cuda_status(mc_cuda()->device_count(&n), "count its GPUs");
    if (status)
        return status;
    g->found = n;
    g->n = n < MC_MOST_GPUS ? n : MC_MOST_GPUS;
    for (int32_t i = 0; i < g->n && !status; i++)
        status = find_gpu(i, &g->gpu[i]);
    for (int32_t a = 0; a < g->n && !status; a++)
        for (int32_t b = 0; b < g->n; b++)
            find_pair(a, b, &g->pair[a][b]);
    return status;
}

/* NVLinks ----------------------------------------------------------------------------------------- */

static bool find_functions(mc_nvml_t *nvml)
{
    bool all = true;
    void *found;
#define LOOK_UP(member, symbol, parameters)      \
    found = dlsym(nvml->library, #symbol);       \
    memcpy(&nvml->member, &found, sizeof found); \
    all = all && found;
    MC_NVML_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return all;
}

/* Opens NVML, without which nothing is known of NVLinks. false: `why` says why. The caller shuts it down and closes it. */
static bool open_nvml(mc_nvml_t *nvml, char why[MC_GPUS_WHY])
{
    const char *const given = getenv("MESHCOLL_LIBNVML");
    const char *const name = given && *given ? given : "libnvidia-ml.so.1";
    mc_nvml_t found = {0};
    if (strcmp(name, "off") == 0) {
        snprintf(why, MC_GPUS_WHY, "MESHCOLL_LIBNVML is \"off\"");
        return false;
    }
    found.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!found.library) {
        snprintf(why, MC_GPUS_WHY, "%s", dlerror());
        return false;
    }
    const bool all = find_functions(&found);
    const unsigned result = all ? found.init() : 0;
    if (all && result == 0) {
        *nvml = found;
        return true;
    }
    snprintf(why, MC_GPUS_WHY,
             all ? "%s could not be initialised (%u)" : "%s lacks functions: it is too old", name,
             result);
    dlclose(found.library);
    return false;
}

static int32_t gpu_at(const mc_gpus_t *g, const char *bus_id)
{
    char pci[MC_PCI_TEXT];
    int32_t i = 0;
    tidy_pci(bus_id, pci);
    while (i < g->n && strcmp(g->gpu[i].pci, pci) != 0)
        i++;
    return i < g->n ? i : -1;
}

/* Counts a link that is enabled. Where NVML names no other end, as in virtual machines that hide the switches, it is
 * taken as a switch's. */
static void find_end(const mc_nvml_t *nvml, mc_nvml_device_t device, unsigned link, mc_gpus_t *g,
                     int32_t i)
{
    unsigned type = MC_NVML_GPU;
    mc_nvml_pci_t remote = {0};
    const bool typed = nvml->link_type(device, link, &type) == 0 && type != MC_NVML_UNKNOWN;
    const bool named = nvml->link_pci(device, link, &remote) == 0;
    remote.bus_id[sizeof remote.bus_id - 1] = '\0';
    const int32_t to = named ? gpu_at(g, remote.bus_id) : -1;
    const bool assumed = to < 0 && (!typed || (type == MC_NVML_GPU && !named));
    if (assumed || (typed && type == MC_NVML_SWITCH))
        g->gpu[i].switched++;
    else if (to >= 0)
        g->pair[i][to].links++;
    g->gpu[i].assumed += assumed;
}

static void find_links(const mc_nvml_t *nvml, mc_gpus_t *g, int32_t i)
{
    mc_nvml_device_t device;
    if (nvml->device(g->gpu[i].pci, &device))
        return;
    for (unsigned link = 0; link < MC_NVML_MOST_LINKS; link++) {
        unsigned state = 0;
        if (nvml->link_state(device, link, &state) == 0 && state == MC_NVML_ENABLED)
            find_end(nvml, device, link, g, i);
    }
}

/* GPUs that have NVLinks to switches reach each other through these. */
static void mark_linked(mc_gpus_t *g)
{
    for (int32_t a = 0; a < g->n; a++)
        for (int32_t b = 0; b < g->n; b++) {
            const bool linked =
                g->pair[a][b].links > 0 || (g->gpu[a].switched > 0 && g->gpu[b].switched > 0);
            if (g->pair[a][b].reach != MC_BY_HOST && linked)
                g->pair[a][b].reach = MC_BY_NVLINK;
        }
}

bool mc_gpus_is_faster(const mc_gpus_t *g, int32_t from, int32_t to)
{
    int32_t worst = -1;
    for (int32_t a = 0; a < g->n; a++)
        for (int32_t b = 0; b < g->n; b++)
            worst = g->pair[a][b].rank > worst ? g->pair[a][b].rank : worst;
    return g->pair[from][to].rank >= 0 && g->pair[from][to].rank < worst;
}

/* Tells NVLinks from other ways where there is no NVML. */
static void mark_faster(mc_gpus_t *g)
{
    for (int32_t a = 0; a < g->n; a++)
        for (int32_t b = 0; b < g->n; b++)
            if (mc_gpus_is_faster(g, a, b))
                g->pair[a][b].reach = MC_BY_NVLINK;
}

static void find_nvlinks(mc_gpus_t *g)
{
    mc_nvml_t nvml;
    int version = 0;
    char driver[24] = "";
    g->has_nvml = open_nvml(&nvml, g->why_no_nvml);
    if (g->has_nvml) {
        for (int32_t i = 0; i < g->n; i++)
            find_links(&nvml, g, i);
        mark_linked(g);
        if (nvml.driver(driver, sizeof driver))
            driver[0] = '\0';
        (void)nvml.shutdown();
        dlclose(nvml.library);
    } else {
        mark_faster(g);
    }
    if (mc_cuda()->version(&version))
        version = 0;
    snprintf(g->driver, sizeof g->driver, "%s%sCUDA %d.%d", driver, driver[0] ? ", " : "",
             version / 1000, version % 1000 / 10);
}

int mc_gpus_init(void)
{
    mc_cuda_open();
    const int status = mc_cuda_check();
    return status ? status : mc_cuda_status(mc_cuda()->init(0), "be initialised");
}

int mc_gpus_find(mc_gpus_t *gpus)
{
    memset(gpus, 0, sizeof *gpus);
    int status = mc_gpus_init();
    if (!status)
        status = find_all(gpus);
    if (!status)
        find_nvlinks(gpus);
    return status;
}
