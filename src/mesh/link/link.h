/*
 * Link models: alpha, gap, beta, gamma, ports and wire of each dimension, from named presets that
 * state where their numbers come from, or given by hand; and what `meshcoll tune` measured beside
 * them. The grammar and the presets are described in docs/links.md.
 */
#ifndef MC_MESH_LINK_H
#define MC_MESH_LINK_H

#include "mesh/link/measured.h"
#include "mesh/mesh.h"

enum { MC_PORTS_ALL = INT32_MAX }; /* every rank has a port of its own: written "all" */
enum { MC_WIRE_OWN = -1 };
/* The least window, in bytes, of a link for which none is given (docs/lab-notes/constants.md). */
enum { MC_LINK_WINDOW = 1 << 18 };
enum { MC_LINKS_TEXT = 16384 }; /* room for the text of measured links with their table */

typedef struct {
    double alpha; /* seconds per message */
    /* Seconds between two independent messages that a rank sends in a row. 0 in a preset: not
     * known, alpha is used. */
    double gap;
    double beta;   /* seconds per byte */
    double gamma;  /* seconds per byte reduced */
    int32_t ports; /* lines of this dimension that one box drives at full rate */
    /* Index + 1 of the dimension whose port the traffic of this one uses to leave a box: two
     * dimensions between boxes with one NIC share its wire. 0: not given. MC_WIRE_OWN: its own. */
    int32_t wire;
    bool pulled; /* the receiver copies: shared memory, NVLink */
} mc_link_t;

/*
 * What measurements add to the physics of a link (meshcoll tune). Presets have none: each member is
 * 0 where nothing was measured. The first three are known on clusters, too; cpu and burst are 0
 * there, unless ranks share cores or a provider limits the rate of the NIC.
 */
typedef struct {
    /* Bytes by which a message occupies a port beyond its own bytes: headers of Ethernet, IP and
     * TCP, and acknowledgements. */
    double header;
    /* Extra time per byte received from very many ranks at once, as a share of beta; from s ranks,
     * (1 - 1/s) of it. Switches with small buffers drop packets then. */
    double incast;
    /* Bytes that may be in flight through a port, where sends stream: enough that the port never
     * runs dry, and no more than its queues hold. 0: mc_link_window(). */
    double window;
    /* Bytes that pass an idle port before beta applies: what a token bucket lets through (Cruz
     * 1991), as in a virtual machine whose NIC is limited. */
    double burst;
    /* Seconds by which a message of any rank delays all the others where ranks share cores: its
     * CPU time divided by the cores they share. */
    double cpu;
} mc_correction_t;

typedef struct {
    int32_t ndims;
    mc_link_t dim[MC_MAX_DIMS];
    mc_correction_t correction[MC_MAX_DIMS];
    mc_measured_t measured; /* empty unless the mesh is one line in memory */
} mc_links_t;

typedef struct {
    const char *name, *provenance;
    mc_link_t link;
} mc_link_preset_t;

/* `network` is the link of the dimensions down to the one named "box". Without such a dimension it
 * is that of the outermost, unless its name places it inside a box. `inside` is the link of the
 * others. */
typedef struct {
    const char *name, *provenance;
    const char *network, *inside; /* link presets, or "PRESET;FIELD:VALUE" */
} mc_cluster_preset_t;

extern const mc_link_preset_t mc_link_presets[];
extern const int32_t mc_n_link_presets;
extern const mc_cluster_preset_t mc_cluster_presets[]; /* the first one is the default */
extern const int32_t mc_n_cluster_presets;

/*
 * Reads links from text: a cluster preset ("lab", "dgx-h100") or one link preset for all dimensions
 * ("uniform"); or links per dimension, by preset, by hand or both
 * ("box=ethernet-25g;ports:2,gpu=alpha:1us;beta:10GB/s"); or a preset, then the dimensions that
 * differ ("dgx-h100,box=ports:4"). Behind them, "measured=…" is a table of strategies (measured.h). NULL or "": the default preset. ERR_PARSE or ERR_INVALID_ARG.
 */
int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links);
/* Prints all fields of all dimensions; the text parses back to the same numbers. */
void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text);
/* Returns the dimension whose wire dimension `d` uses: itself or an inner one. Ports and burst are
 * those of that dimension. */
static inline int32_t mc_links_wire(const mc_links_t *links, int32_t d)
{
    return links->dim[d].wire > 0 ? links->dim[d].wire - 1 : d;
}
/* Returns the bytes that the link carries in two round trips, each of two alphas: twice the
 * bandwidth-delay product. */
double mc_link_held(const mc_link_t *link);
/* Returns the window of dimension `d` in bytes: the measured one, else mc_link_held(), and
 * MC_LINK_WINDOW at least. */
double mc_link_window(const mc_links_t *links, int32_t d);
/* Returns the size in bytes below which no message is cut on the wire of dimension `d`:
 * mc_link_held(). */
size_t mc_links_least(const mc_links_t *links, int32_t d);
/* Returns the window of all ports of one box together, in bytes, through the wire of dimension
 * `d`. */
double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d);
/* Does any link have a burst? */
bool mc_links_burst(const mc_links_t *links);
/* Lets the dimensions outside of `dim` share its wire, where theirs is not given. */
void mc_links_share_wire(mc_links_t *links, int32_t dim);
int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
