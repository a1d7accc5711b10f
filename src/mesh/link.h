/*
 * Link models: alpha, beta, gamma, ports and their refinements per dimension, from named presets
 * that state where their numbers come from, or given by hand. The grammar and the presets are
 * described in docs/links.md.
 */
#ifndef MC_MESH_LINK_H
#define MC_MESH_LINK_H

#include "mesh/mesh.h"

enum { MC_PORTS_ALL = INT32_MAX }; /* every rank has a port of its own: written "all" */
enum { MC_LINK_POINTS = 9, MC_WIRE_OWN = -1 };
/* The least window, in bytes, of a link for which none is given (docs/lab-notes/constants.md). */
enum { MC_LINK_WINDOW = 1 << 18 };
enum {
    MC_LINKS_TEXT = 8192
}; /* Room for the text of measured links: several sizes each, with factors. */

/* The fields of mc_link_t of the same names, for a vector of `bytes` bytes. */
typedef struct {
    double bytes, alpha, gap, cpu, beta, bus, gamma;
} mc_link_point_t;

typedef struct {
    double alpha;  /* seconds per message */
    double beta;   /* seconds per byte */
    double gamma;  /* seconds per byte reduced */
    int32_t ports; /* lines of this dimension that one box drives at full rate */
    bool pulled;   /* the receiver copies: shared memory, NVLink */
    /* Seconds between two independent messages that a rank sends in a row. 0 in a preset: not
     * known, alpha is used. */
    double gap;
    /* Extra time per byte received from very many ranks at once, as a share of beta; from s
     * ranks, (1 - 1/s) of it. */
    double incast;
    /* Seconds by which a message of any rank delays all the others where ranks share cores: its
     * CPU time divided by the cores they share. 0 where each rank has its own core. */
    double cpu;
    /* Bytes that pass an idle port before beta applies: what a token bucket lets through (Cruz
     * 1991). 0 where nothing shapes the link. */
    double burst;
    /* Bytes of headers by which a message occupies a port beyond its own bytes. */
    double header;
    /* Bytes that may be in flight through a port, where sends stream: enough that the port never
     * runs dry, and no more than its queues hold. 0: mc_link_window(). */
    double window;
    /* Bytes up to which a message between two ranks of a machine is copied piecewise through shared
     * pages, although its sender could help the receiver to read it instead. 0: not measured, the
     * transport's own limit holds. */
    double pieces;
    /* Index + 1 of the dimension whose port the traffic of this one uses to leave a box: two
     * dimensions between boxes with one NIC share its wire. 0: not given. MC_WIRE_OWN: its own. */
    int32_t wire;
    /* Seconds by which a byte of any rank delays all the others where ranks share cores and the
     * memory bus; 0 where they do not. */
    double bus;
    /* Caches, pages and protocols change with the vector's size: the sizes at which the link was
     * measured, ascending. Times between two of them are interpolated. Without points the link is
     * the same at all sizes. */
    int32_t n_points;
    mc_link_point_t point[MC_LINK_POINTS];
} mc_link_t;

/* The measured time of an algorithm along one dimension over that of its closed form, in
 * thousandths, at each of the link's sizes; a single number where the link has none. It holds for
 * the collective in general, or only as a phase of the collective `asked` for: there an earlier
 * phase has just written its input, which then lies in other caches. */
enum {
    MC_LINK_FACTORS = 48,
    MC_FACTOR_NAME = 14,
    MC_FACTOR_ONE = 1000,
    MC_FACTOR_MOST = UINT16_MAX
};
typedef struct {
    uint8_t dim, asked, collective; /* asked == collective: in general */
    char algorithm[MC_FACTOR_NAME];
    uint16_t at[MC_LINK_POINTS];
} mc_link_factor_t;

typedef struct {
    int32_t ndims;
    mc_link_t dim[MC_MAX_DIMS];
    int32_t n_factors; /* 0: closed forms hold unchanged */
    mc_link_factor_t factor[MC_LINK_FACTORS];
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
 * differ ("dgx-h100,box=ports:4"). NULL or "": the default preset. ERR_PARSE or ERR_INVALID_ARG.
 */
int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links);
/* Prints all fields of all dimensions; the text parses back to the same numbers. */
void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text);
/* Returns the links at a vector of `bytes` bytes: interpolated between points, and without
 * points. */
mc_links_t mc_links_at(const mc_links_t *links, double bytes);
/* Names a factor: `algorithm` of `collective` along dimension `dim`, as a phase of `asked`. asked
 * == collective: in general. */
typedef struct {
    int32_t dim;
    meshcoll_collective_t asked, collective;
    const char *algorithm;
} mc_factor_key_t;
/* Returns a factor in thousandths: the one of this phase, else the one in general, else
 * MC_FACTOR_ONE. Also MC_FACTOR_ONE while the dimension still has points: call mc_links_at first.
 * The search starts at index `near`. */
int32_t mc_links_factor(const mc_links_t *links, const mc_factor_key_t *key, int32_t near);
/* Sets the factor of `key` at the dimension's point `point`, rounded to thousandths and clamped to
 * 1…MC_FACTOR_MOST of them. Without room for another factor it does nothing. */
void mc_links_set_factor(mc_links_t *links, const mc_factor_key_t *key, int32_t point,
                         double factor);
/* Prints "allgather.ring", or "allreduce/allgather.ring" for a phase of another collective, with
 * `separator` for the dot. */
void mc_link_print_phase(const mc_link_factor_t *factor, char separator, mc_text_t *text);
/* Returns the dimension whose wire dimension `d` uses: itself or an inner one. Ports and burst are
 * those of that dimension. */
static inline int32_t mc_links_wire(const mc_links_t *links, int32_t d)
{
    return links->dim[d].wire > 0 ? links->dim[d].wire - 1 : d;
}
/* Returns the bytes that the link carries in two round trips, each of two alphas: twice the
 * bandwidth-delay product. */
double mc_link_held(const mc_link_t *link);
/* Returns the link's window in bytes: the given one, else mc_link_held(), and MC_LINK_WINDOW at
 * least. */
double mc_link_window(const mc_link_t *link);
/* Returns the size in bytes below which no message is cut on the wire of dimension `d`:
 * mc_link_held(). */
size_t mc_links_least(const mc_links_t *links, int32_t d);
/* Returns the window of all ports of one box together, in bytes, through the wire of dimension
 * `d`. */
double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d);
/* Does any link have a burst? */
bool mc_links_burst(const mc_links_t *links);
/* Copies `links` to `left` with bursts folded into beta: `carried[d]` bytes pass the port of wire
 * d, and those within its burst cost nothing. */
void mc_links_take_burst(const mc_links_t *links, const double carried[MC_MAX_DIMS],
                         mc_links_t *left);
/* Lets the dimensions outside of `dim` share its wire, where theirs is not given. */
void mc_links_share_wire(mc_links_t *links, int32_t dim);
int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
