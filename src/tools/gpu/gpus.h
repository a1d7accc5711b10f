/*
 * The GPUs of this machine: which reach which, and how, as the CUDA driver and NVML say; which
 * network cards are near which, as hwloc says; and the mesh that this suggests.
 */
#ifndef MC_TOOLS_GPUS_H
#define MC_TOOLS_GPUS_H

#include "base/base.h"
#include "mesh/mesh.h"

/* More GPUs and cards than these are counted, and not looked at. */
enum {
    MC_MOST_GPUS = 32,
    MC_MOST_CARDS = 32,
    MC_GPU_NAME = 64,
    MC_PCI_TEXT = 16,
    MC_CARD_NAME = 48,
    MC_DRIVER_TEXT = 48,
    MC_GPUS_WHY = 256
};

/* How one GPU reaches another; the better the greater. */
typedef enum {
    MC_BY_HOST,  /* not at all: through memory of the host */
    MC_BY_PCIE,  /* peer access */
    MC_BY_NVLINK /* peer access over NVLinks; where NVML is missing, over the faster links */
} mc_reach_t;

/* The place where a card and a GPU meet; the nearer the greater. */
typedef enum {
    MC_NEAR_UNKNOWN,
    MC_NEAR_MACHINE, /* in different NUMA nodes or sockets */
    MC_NEAR_SOCKET,  /* in one NUMA node or socket, below different PCIe roots */
    MC_NEAR_ROOT,    /* below one PCIe root */
    MC_NEAR_SWITCH   /* below one PCIe switch */
} mc_near_t;

typedef struct {
    mc_reach_t reach;
    int32_t rank;  /* the driver's performance rank; 0 is the best; -1: not known */
    int32_t links; /* NVLinks that end at the other one */
    bool atomics;  /* native atomics on the other one's memory */
} mc_gpu_pair_t;

typedef struct {
    char name[MC_GPU_NAME], pci[MC_PCI_TEXT]; /* "0000:1b:00.0" */
    int32_t node;                             /* NUMA node; -1: not known, or several */
    int32_t switched;                         /* NVLinks to switches */
    int32_t assumed;                          /* those of them whose other end NVML does not name */
    mc_near_t near[MC_MOST_CARDS];
} mc_gpu_seen_t;

typedef struct {
    char name[MC_CARD_NAME]; /* "mlx5_0, ib0" */
    char pci[MC_PCI_TEXT];
} mc_card_t;

typedef struct {
    int32_t n, found; /* GPUs looked at, and those there are */
    int32_t n_cards;
    bool has_nvml;
    char driver[MC_DRIVER_TEXT]; /* "580.65.06, CUDA 13.0" */
    char why_no_nvml[MC_GPUS_WHY];
    mc_gpu_seen_t gpu[MC_MOST_GPUS];
    mc_card_t card[MC_MOST_CARDS];
    mc_gpu_pair_t pair[MC_MOST_GPUS][MC_MOST_GPUS]; /* from, to */
} mc_gpus_t;

/* Opens libcuda and initialises it. ERR_UNSUPPORTED: there is no driver, or one that is too old; ERR_DEVICE: it finds no
 * GPU, or fails. */
int mc_gpus_init(void);
/* Finds the GPUs, for which it initialises the driver. Errors are those of mc_gpus_init. */
int mc_gpus_find(mc_gpus_t *gpus);
/* Adds cards and NUMA nodes; what hwloc does not know stays unknown. */
void mc_gpus_find_cards(mc_gpus_t *gpus);

/* Has the driver a better performance rank for this direction than for the worst one of all? */
bool mc_gpus_is_faster(const mc_gpus_t *gpus, int32_t from, int32_t to);

/* The mesh of one rank for each GPU; plain memory. */
typedef struct {
    char mesh[MC_MESH_TEXT];     /* "island=2,gpu=4" */
    int32_t order[MC_MOST_GPUS]; /* the GPU of each rank */
    bool in_order;               /* these are 0, 1, … */
    char by[64];                 /* what decided it: "NVLinks", … */
    bool flat;                   /* than how they reach each other, because … */
    char but[96];
} mc_gpu_mesh_t;
mc_gpu_mesh_t mc_gpus_suggest(const mc_gpus_t *gpus);

/* How two GPUs reach each other: the worse of both ways. */
static inline mc_reach_t mc_gpus_reach(const mc_gpus_t *g, int32_t a, int32_t b)
{
    const mc_reach_t to = g->pair[a][b].reach, from = g->pair[b][a].reach;
    return to < from ? to : from;
}

#endif
