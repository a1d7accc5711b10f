/*
 * Link models: alpha, gap, beta, gamma, call, ports and wire of each dimension. They come from named
 * presets, which state the source of their numbers, from the user's text, or from `meshcoll tune`,
 * which also measures corrections. docs/links.md describes the grammar and the presets.
 */
#ifndef MC_MESH_LINK_H
#define MC_MESH_LINK_H

#include "mesh/mesh.h"

#include <meshcoll/meshcoll.h>

enum { MC_PORTS_ALL = INT32_MAX }; /* every rank has its own port; "all" in text */
enum { MC_WIRE_OWN = -1 };         /* value of mc_link_t.wire; "own" in text */
/* Lower bound of the default window, in bytes: of a link whose window is not given
 * (docs/lab-notes/constants.md). */
enum { MC_LINK_WINDOW = 1 << 18 };
/* Buffer size for links as text: a table of measured strategies has up to MC_MEASURED_ROWS rows of
 * 330 characters, and a dimension takes 400. */
enum { MC_LINKS_TEXT = 32768 };
/* The most characters of a text that is parsed. */
enum { MC_LINKS_MOST_READ = 65535 };

typedef struct {
    double alpha; /* seconds per message */
    /* Seconds between two independent messages that a rank sends in a row. 0 in a preset: unknown;
     * mc_links_parse sets it to alpha. */
    double gap;
    double beta;  /* seconds per byte */
    double gamma; /* seconds per byte reduced */
    /* Seconds that a call takes besides its messages, whatever it does: a kernel is launched and ends.
     * The largest of all dimensions counts, once (mc_links_call). */
    double call;
    int32_t ports; /* lines of this dimension that one box drives at full rate */
    /* Index + 1 of the dimension whose ports the traffic of this dimension uses. Two dimensions
     * between boxes that have one NIC share its wire. 0: not given. MC_WIRE_OWN: its own wire. */
    int32_t wire;
    bool pulled; /* the receiver copies the data (shared memory, NVLink) */
    /* A send completes once the wire has accepted it, as over TCP, so that pacing bounds what is in flight. Over RDMA
     * it completes with the receiver. No meaning where `pulled`. */
    bool streams;
} mc_link_t;

/*
 * Corrections of a link, which `meshcoll tune` measures or the user's text sets. 0: no correction.
 * Link presets have none; the cluster preset "lab" sets the window. On a real cluster a window
 * occurs; burst only if the rate of a NIC is limited, cpu only if ranks share cores.
 */
typedef struct {
    /* Bytes that may be in flight through a port, if the transport streams
     * (mc_transport_t.streams): at least the bandwidth-delay product, and at most what the queues on
     * the path hold. 0: the default of mc_link_window(). */
    double window;
    /* Bytes that pass an idle port before beta applies: the size of a token bucket (Cruz 1991), as
     * on a virtual machine whose NIC has a rate limit. Costs count it by mc_links_at. */
    double burst;
    /* Seconds by which a message of any rank delays all other ranks, if ranks share cores: its CPU
     * time divided by the number of these cores. Where `pulled`, a gap other than 0 and alpha is
     * that CPU time, and gap / cpu the number of cores, which copy for all ranks. */
    double cpu;
    /* Bytes of the longest message that its sender copies to shared memory (mc_transport_t.eager); longer ones are
     * read from the sender's memory. Costs do not use it. 0: the transport's. */
    double eager;
} mc_correction_t;

/*
 * Times of strategies, measured by `meshcoll tune` on a mesh that is one line in memory. Caches,
 * pages and protocols decide there, which no closed form knows. A collective with rows in the table
 * takes the fastest of them; one without rows is priced by the model.
 */
enum { MC_MEASURED_SIZES = 8, MC_MEASURED_ROWS = 64, MC_MEASURED_TEXT = 112 };

typedef struct {
    meshcoll_collective_t collective;
    char strategy[MC_MEASURED_TEXT];   /* as strategies are written, without segments */
    double seconds[MC_MEASURED_SIZES]; /* at each of the table's sizes */
} mc_measured_row_t;

typedef struct {
    int32_t n_sizes, n_rows;         /* both 0: nothing was measured */
    double bytes[MC_MEASURED_SIZES]; /* of the whole vector, ascending */
    mc_measured_row_t row[MC_MEASURED_ROWS];
} mc_measured_t;

/* Are there rows of this collective? */
bool mc_measured_has(const mc_measured_t *table, meshcoll_collective_t collective);
/* Seconds of a row for a vector of `bytes` bytes: interpolated between two sizes; as long as at the
 * least size below it, and at the rate of the greatest size beyond that. */
double mc_measured_seconds(const mc_measured_t *table, const mc_measured_row_t *row, double bytes);
/* Appends a row of n_sizes times. ERR_INVALID_ARG without room for it. */
int mc_measured_add(mc_measured_t *table, meshcoll_collective_t collective, const char *strategy,
                    const double *seconds);
/* Do the sizes ascend, and has every row a collective, a strategy and positive times? */
int mc_measured_check(const mc_measured_t *table);

struct mc_networked;

typedef struct {
    int32_t ndims;
    mc_link_t dim[MC_MAX_DIMS];
    mc_correction_t correction[MC_MAX_DIMS];
    /* measured times; NULL unless the mesh is one line of ranks in one box. Copies of the links share them */
    const mc_measured_t *measured;
    /* What prices phases on a network between boxes (compose/price/networked.h); NULL: boxes share nothing behind their
     * ports. Neither read nor printed with the links. Copies of the links share it. */
    struct mc_networked *network;
} mc_links_t;

typedef struct {
    const char *name, *provenance;
    mc_link_t link;
} mc_link_preset_t;

/* `network` is the link of the dimension named "box" and of all dimensions outside of it. Without a
 * dimension "box" it is the link of the outermost dimension, unless the name of that one means the
 * inside of a box (mc_dim_is_inside). `inside` is the link of the other dimensions. */
typedef struct {
    const char *name, *provenance;
    const char *network, *inside; /* link presets, or "PRESET;FIELD:VALUE" */
} mc_cluster_preset_t;

extern const mc_link_preset_t mc_link_presets[];
extern const int32_t mc_n_link_presets;
extern const mc_cluster_preset_t mc_cluster_presets[]; /* the first one is the default */
extern const int32_t mc_n_cluster_presets;

/*
 * Reads links from text, in one of these forms:
 * - a cluster preset ("lab", "dgx-h100"), or a link preset for all dimensions ("uniform");
 * - a link for each dimension: a preset, fields, or both
 *   ("box=ethernet-25g;ports:2,gpu=alpha:1us;beta:10GB/s");
 * - a preset, then the dimensions that differ from it ("dgx-h100,box=ports:4").
 * An item "measured=…" is a table of measured strategies. NULL or "": the default
 * preset. Dimensions outside of "box" share its wire (mc_links_share_wire). Fails with ERR_PARSE or
 * ERR_INVALID_ARG.
 */
int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links);
/* Frees the table that mc_links_parse has read, if any. Copies of the links must not be used any more. */
void mc_links_free(mc_links_t *links);
/* The table; an empty one if there is none. */
static inline const mc_measured_t *mc_links_measured(const mc_links_t *links)
{
    static const mc_measured_t none = {0};
    return links->measured ? links->measured : &none;
}
/* Prints the links of all dimensions and the table of measured strategies. Omits a gap equal to
 * alpha, a call and corrections of 0, and wires that are not given. On the same mesh, mc_links_parse reads the
 * same numbers from this text. */
void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text);
/* Returns the dimension whose wire dimension `d` uses: `d` or an inner one. Ports and burst of `d`
 * are those of the returned dimension. */
static inline int32_t mc_links_wire(const mc_links_t *links, int32_t d)
{
    return links->dim[d].wire > 0 ? links->dim[d].wire - 1 : d;
}
/* Returns the seconds that every call takes besides what its strategy costs. */
static inline double mc_links_call(const mc_links_t *links)
{
    double most = 0;
    for (int32_t d = 0; d < links->ndims; d++)
        most = links->dim[d].call > most ? links->dim[d].call : most;
    return most;
}
/* Returns the window of one port of dimension `d` in bytes: correction.window if it is not 0, else
 * the larger one of 4 alpha / beta, twice the bandwidth-delay product, and MC_LINK_WINDOW. */
double mc_link_window(const mc_links_t *links, int32_t d);
/* Returns the size in bytes below which pacing cuts no message on the wire of dimension `d`:
 * 4 alpha / beta of that wire, or more than any message if it does not stream. */
size_t mc_links_least(const mc_links_t *links, int32_t d);
/* Returns the sum of the windows of all ports of one box on the wire of dimension `d`, in bytes. Of
 * the ports, at most one for each line of `d` in the box counts. */
double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d);
/* The links as a vector of so many bytes finds them: without bursts. On a wire with a burst beta counts as
 * beta * bytes / (bytes + burst): next to nothing for vectors much shorter than the burst, and for much longer
 * ones all bytes but those of a burst take beta. */
mc_links_t mc_links_at(const mc_links_t *links, double bytes);
/* Does any link have a burst? */
bool mc_links_burst(const mc_links_t *links);
/* Do ranks share cores, so that messages of all of them delay each other (mc_correction_t.cpu)? */
bool mc_links_share_cores(const mc_links_t *links);
/* Gives each dimension outside of `dim` whose wire is not given the wire of `dim`. It has no effect
 * if `dim` itself uses the wire of an inner dimension. */
void mc_links_share_wire(mc_links_t *links, int32_t dim);
/* Are all numbers valid for this mesh? Fails with ERR_INVALID_ARG. */
int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
