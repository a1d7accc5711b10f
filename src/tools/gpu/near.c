/* Which network cards are near which GPU, by the common ancestor of both in hwloc's tree. */
#include "tools/gpu/gpus.h"

#include "runtime/place/topology.h"

#include <hwloc.h>
#include <hwloc/helper.h>
#include <stdio.h>
#include <string.h>

static void print_pci(hwloc_obj_t device, char pci[MC_PCI_TEXT])
{
    const struct hwloc_pcidev_attr_s *const at = &device->attr->pcidev;
    snprintf(pci, MC_PCI_TEXT, "%04x:%02x:%02x.%x", (unsigned)at->domain & 0xffffu, at->bus,
             at->dev & 0x1fu, at->func & 7u);
}

static hwloc_obj_t device_at(hwloc_topology_t topology, const char *pci)
{
    unsigned domain, bus, device, function;
    return sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4
               ? hwloc_get_pcidev_by_busid(topology, domain, bus, device, function)
               : NULL;
}

/* Cards ------------------------------------------------------------------------------------------- */

static bool is_network(hwloc_obj_t o)
{
    const hwloc_obj_osdev_type_t type = o->attr->osdev.type;
    return type == HWLOC_OBJ_OSDEV_NETWORK || type == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

static hwloc_obj_t pci_of(hwloc_obj_t o)
{
    while (o && o->type != HWLOC_OBJ_PCI_DEVICE)
        o = o->parent;
    return o;
}

static mc_card_t *card_at(mc_gpus_t *g, const char *pci)
{
    int32_t i = 0;
    while (i < g->n_cards && strcmp(g->card[i].pci, pci) != 0)
        i++;
    if (i == MC_MOST_CARDS)
        return NULL;
    if (i == g->n_cards)
        snprintf(g->card[g->n_cards++].pci, MC_PCI_TEXT, "%s", pci);
    return &g->card[i];
}

/* A card has a name for each of its interfaces. */
static void find_names(hwloc_topology_t topology, mc_gpus_t *g)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(topology, o));) {
        const hwloc_obj_t device = pci_of(o);
        char pci[MC_PCI_TEXT];
        if (!is_network(o) || !device || !o->name)
            continue;
        print_pci(device, pci);
        mc_card_t *const card = card_at(g, pci);
        if (!card)
            return;
        const size_t n = strlen(card->name);
        snprintf(card->name + n, sizeof card->name - n, "%s%s", n ? ", " : "", o->name);
    }
}

/* Distances --------------------------------------------------------------------------------------- */

static hwloc_obj_t common(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a; a = a->parent)
        for (hwloc_obj_t other = b; other; other = other->parent)
            if (other == a)
                return a;
    return NULL;
}

static mc_near_t near_at(hwloc_topology_t topology, hwloc_obj_t meet)
{
    if (!meet)
        return MC_NEAR_UNKNOWN;
    if (meet->type == HWLOC_OBJ_BRIDGE)
        return meet->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST ? MC_NEAR_ROOT
                                                                         : MC_NEAR_SWITCH;
    if (meet->type == HWLOC_OBJ_PCI_DEVICE) /* functions of one */
        return MC_NEAR_SWITCH;
    /* where the machine is one socket without NUMA nodes, all of it is near */
    const bool several = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1 ||
                         hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) > 1;
    return meet->type == HWLOC_OBJ_MACHINE && several ? MC_NEAR_MACHINE : MC_NEAR_SOCKET;
}

static int32_t node_of(hwloc_topology_t topology, hwloc_obj_t device)
{
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, device);
    return place && place->nodeset && hwloc_bitmap_weight(place->nodeset) == 1
               ? (int32_t)hwloc_bitmap_first(place->nodeset)
               : -1;
}

static void find_near(hwloc_topology_t topology, mc_gpus_t *g, mc_gpu_seen_t *gpu)
{
    const hwloc_obj_t device = device_at(topology, gpu->pci);
    if (!device)
        return;
    gpu->node = node_of(topology, device);
    for (int32_t c = 0; c < g->n_cards; c++)
        gpu->near[c] = near_at(topology, common(device, device_at(topology, g->card[c].pci)));
}

void mc_gpus_find_cards(mc_gpus_t *g)
{
    hwloc_topology_t topology;
    if (mc_topology_load(true, &topology))
        return;
    mc_topology_warn(true);
    find_names(topology, g);
    for (int32_t i = 0; i < g->n; i++)
        find_near(topology, g, &g->gpu[i]);
    hwloc_topology_destroy(topology);
}
