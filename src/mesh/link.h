/*
 * Link models: alpha, beta, gamma and ports per dimension, from named presets that say where their
 * numbers come from, or given by hand. The grammar and the presets stand in docs/links.md.
 */
#ifndef MC_MESH_LINK_H
#define MC_MESH_LINK_H

#include "mesh/mesh.h"

enum { MC_PORTS_ALL = INT32_MAX }; /* every rank has a port of its own: written "all" */
enum { MC_LINK_POINTS = 9, MC_WIRE_OWN = -1 };
/* Bytes that any link may have on the way, as measured in the lab: see preset.c. */
enum { MC_LINK_WINDOW = 1 << 18 };
enum {
    MC_LINKS_TEXT = 8192
}; /* room for what is printed of links as measured, a few at several sizes with factors */

/* What stands below under the same names, where the whole vector has so many bytes. */
typedef struct {
    double bytes, alpha, gap, cpu, beta, bus, gamma;
} mc_link_point_t;

typedef struct {
    double alpha;  /* seconds per message */
    double beta;   /* seconds per byte */
    double gamma;  /* seconds per byte reduced */
    int32_t ports; /* lines of this dimension one box drives at full rate */
    bool pulled;   /* the receiver copies: shared memory, NVLink */
    double gap; /* seconds between two messages of a rank in a row, neither waiting for the other;
                      of presets: 0 where it is not known, and alpha is taken */
    double incast; /* by how much of beta bytes are slower that come from very many ranks at once;
                      from s ranks, 1 - 1/s of that */
    double
        cpu; /* seconds by which any rank's message holds up all the others, as ranks share cores:
                      its time on a core, over the cores they share; 0 where each has its own */
    double burst;  /* bytes that pass a port at once after a pause, before beta counts: what a token
                      bucket lets through (Cruz 1991); 0 where nothing shapes the link */
    double header; /* bytes by which a message keeps a port busy besides its own: its headers */
    /* Bytes that may be on the way through a port, where sends stream: so many that it never runs dry, and no more
     * than queues hold. 0: mc_link_window(). */
    double window;
    /* Bytes up to which a message between two ranks of a machine goes in pieces through pages both have, where its
     * sender could help its receiver to read it instead. 0: not measured, the transport's own. */
    double pieces;
    /* The dimension through whose port it leaves a box too, as index + 1: two dimensions between boxes that have
     * one NIC share its wire. 0: not said, MC_WIRE_OWN: its own. */
    int32_t wire;
    double
        bus; /* seconds by which any rank's byte holds up all the others, as ranks share cores and
                   the memory's bus; 0 where they do not */
    /* Caches, pages and protocols are others for large vectors: sizes at which it was measured, in
     * ascending order. Between two of them times are interpolated; none: the same at all sizes. */
    int32_t n_points;
    mc_link_point_t point[MC_LINK_POINTS];
} mc_link_t;

/* What an algorithm takes along one dimension over what its closed form says: measured, in thousandths, at each of the
 * link's sizes; one number where the link has none. For any collective, or as a phase of the one that is asked for: there its
 * input was just written, and lies in other caches. */
enum {
    MC_LINK_FACTORS = 48,
    MC_FACTOR_NAME = 14,
    MC_FACTOR_ONE = 1000,
    MC_FACTOR_MOST = UINT16_MAX
};
typedef struct {
    uint8_t dim, asked, collective; /* asked is collective: for any */
    char algorithm[MC_FACTOR_NAME];
    uint16_t at[MC_LINK_POINTS];
} mc_link_factor_t;

typedef struct {
    int32_t ndims;
    mc_link_t dim[MC_MAX_DIMS];
    int32_t n_factors; /* none: closed forms as they are */
    mc_link_factor_t factor[MC_LINK_FACTORS];
} mc_links_t;

typedef struct {
    const char *name, *provenance;
    mc_link_t link;
} mc_link_preset_t;

/* `network` is the link of the dimensions down to the one named "box" (without one: of the
 * outermost, unless that is inside a box by its name), `inside` the link of the others. */
typedef struct {
    const char *name, *provenance;
    const char *network, *inside; /* link presets */
} mc_cluster_preset_t;

extern const mc_link_preset_t mc_link_presets[];
extern const int32_t mc_n_link_presets;
extern const mc_cluster_preset_t mc_cluster_presets[]; /* the first one is the default */
extern const int32_t mc_n_cluster_presets;

/*
 * A cluster preset ("lab", "dgx-h100") or one link preset for all dimensions ("uniform"); links per
 * dimension, by preset, by hand or both ("box=ethernet-25g;ports:2,gpu=alpha:1us;beta:10GB/s"); or
 * the first, then links that differ ("dgx-h100,box=ports:4"). NULL or "": the default preset.
 */
int mc_links_parse(const char *text, const mc_mesh_t *mesh, mc_links_t *links);
/* By hand in full; parses back to the same numbers. */
void mc_links_print(const mc_links_t *links, const mc_mesh_t *mesh, mc_text_t *text);
/* The same links as a vector of `bytes` finds them: by their points, which are gone then. */
mc_links_t mc_links_at(const mc_links_t *links, double bytes);
/* `algorithm` of `collective` along dimension `dim`, as a phase of `asked`; `collective` there means any. */
typedef struct {
    int32_t dim;
    meshcoll_collective_t asked, collective;
    const char *algorithm;
} mc_factor_key_t;
/* In thousandths: as a phase of what is asked for, else for any; MC_FACTOR_ONE where none was measured, and as long as sizes
 * are not found (mc_links_at). They are looked through from the one at `near` on. */
int32_t mc_links_factor(const mc_links_t *links, const mc_factor_key_t *key, int32_t near);
/* Sets the one of `key` at the dimension's point `point`: to thousandths, 1 to MC_FACTOR_MOST of them. Without room nothing
 * is set. */
void mc_links_set_factor(mc_links_t *links, const mc_factor_key_t *key, int32_t point,
                         double factor);
/* "allgather.ring", or "allreduce/allgather.ring" as a phase of another one, with this separator for the dot. */
void mc_link_print_phase(const mc_link_factor_t *factor, char separator, mc_text_t *text);
/* The dimension whose wire dimension `d` goes over: itself or an inner one. Ports and burst are that one's. */
static inline int32_t mc_links_wire(const mc_links_t *links, int32_t d)
{
    return links->dim[d].wire > 0 ? links->dim[d].wire - 1 : d;
}
/* Bytes that it carries in two round trips, each of two alphas: twice the bandwidth-delay product. */
double mc_link_held(const mc_link_t *link);
/* The window it has, or else what it carries in two round trips, and MC_LINK_WINDOW at least. */
double mc_link_window(const mc_link_t *link);
/* What no message is cut below on the wire of dimension `d`: mc_link_held(). */
size_t mc_links_least(const mc_links_t *links, int32_t d);
/* Of all ports of one box, through the wire of dimension `d`. */
double mc_links_window(const mc_links_t *links, const mc_mesh_t *mesh, int32_t d);
/* Does any link let a burst through? */
bool mc_links_burst(const mc_links_t *links);
/* Where `carried[d]` bytes pass the port of the wire of dimension d: `left`, a copy of `links`, has bursts taken
 * off beta, and none. */
void mc_links_take_burst(const mc_links_t *links, const double carried[MC_MAX_DIMS],
                         mc_links_t *left);
/* Where nothing is said of a dimension's wire: those outside of `dim` go over that one's. */
void mc_links_share_wire(mc_links_t *links, int32_t dim);
int mc_links_check(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
