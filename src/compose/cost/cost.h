/*
 * Costs in closed form: for each dimension how many messages (times alpha), how many times n bytes
 * (times beta) and how many times n bytes reduced (times gamma), as exact fractions.
 */
#ifndef MC_COMPOSE_COST_H
#define MC_COMPOSE_COST_H

#include "mesh/link.h"
#include "mesh/mesh.h"

/* A fraction in lowest terms, den > 0. */
typedef struct {
    int64_t num, den;
} mc_ratio_t;

mc_ratio_t mc_ratio(int64_t num, int64_t den);
mc_ratio_t mc_ratio_add(mc_ratio_t a, mc_ratio_t b);
mc_ratio_t mc_ratio_mul(mc_ratio_t a, mc_ratio_t b);
bool mc_ratio_equal(mc_ratio_t a, mc_ratio_t b);
double mc_ratio_value(mc_ratio_t a);

/* alpha: messages one after another; row: those among them that follow one of the same rank in a row
 * without waiting for it, and take a gap instead of alpha (Culler et al. 1993, LogP; the textbook has
 * alpha for both); beta, gamma: multiples of n, the bytes of the whole vector; incast:
 * those of beta that come from s ranks at once, times 1 - 1/s; messages, volume: of all ranks on all
 * lines, and what they carry as a multiple of n, for ranks that share cores (link.h's cpu and bus);
 * headers: messages that pass the busiest port, over its ports, as beta has their bytes. */
typedef struct {
    mc_ratio_t alpha, beta, gamma, row, incast;
    double messages;
    mc_ratio_t volume;
    double headers;
} mc_term_t;

typedef struct {
    mc_term_t dim[MC_MAX_DIMS];
} mc_cost_t;

/* `once`: from a segment's start to its end on every rank. `busy`: how long a segment keeps the
 * busiest rank and its links, which is when the next segment can follow (smaller for a chain). The
 * next segment's messages do not wait for this one's: all of busy's are in a row (mc_phase_cost). */
typedef struct {
    mc_cost_t once, busy;
} mc_phase_cost_t;

/* Rounds in which MST halves a merged line: outermost dimension crossed, slices that the root passes on, most
 * messages at one port. Of the lines of one mesh, root and wires, by first and last dimension: for those who price
 * many algorithms on them. All 0 at first. */
enum { MC_MAX_ROUNDS = 32 };
typedef struct {
    int32_t top, sent, most;
} mc_round_t;
typedef struct {
    struct {
        int32_t n; /* 0: not walked yet */
        mc_round_t round[MC_MAX_ROUNDS];
    } line[MC_MAX_DIMS][MC_MAX_DIMS];
} mc_walks_t;

/*
 * What a line's cost depends on.
 *   share      the fraction of n that the tile is when the line's dimensions are free (1 over the
 *              extents of the other sharded dimensions)
 *   lines      how many lines of the mesh run it at once
 *   crowd[d]   how many lines drive one box's link of dimension d at once
 *   ports[d]   how many it carries at full rate: beta terms of d are multiplied by
 *              max(1, crowd * crossings / ports), where crossings is how many messages of one line
 *              leave or enter the same box in that round (1 on a plain line)
 *   wire[d]    the dimension through whose port they go, as index + 1; 0: d's own (link.h)
 *   pulled[d]  the receivers do the copying
 *   walks      of lines priced before; NULL: none are kept
 *   boxes      of unequal sizes, for a line of all their ranks; `mesh` has equal ones then. NULL: none
 *   kept       the part of the tile that stays with the root of a scatter or gather; 0: as much as with
 *              each of the others, 1 / line.len
 */
typedef struct {
    const mc_mesh_t *mesh;
    const mc_boxes_t *boxes;
    mc_line_t line;
    mc_ratio_t share;
    int64_t lines;
    int32_t crowd[MC_MAX_DIMS], ports[MC_MAX_DIMS], wire[MC_MAX_DIMS];
    bool pulled[MC_MAX_DIMS];
    mc_walks_t *walks;
    mc_ratio_t kept;
} mc_line_shape_t;

/* Cost of one 1D algorithm on the lines described by `shape`; part of the registry. A merged line
 * charges each round to the outermost dimension that any of its messages crosses. */
typedef mc_phase_cost_t (*mc_line_cost_t)(const mc_line_shape_t *shape);

mc_phase_cost_t mc_cost_mst_bcast(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_mst_reduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_mst_reduce_aligned(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_mst_scatter(const mc_line_shape_t *shape); /* and gather */
mc_phase_cost_t mc_cost_mst_allreduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_ring_allgather(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_ring_reduce_scatter(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_ring_allreduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_long_bcast(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_long_reduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_chain_bcast(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_chain_reduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_edst_bcast(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_edst_reduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_star_bcast(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_star_reduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_star_scatter(const mc_line_shape_t *shape);
/* As scatter on a wire; where the root pulls, it still takes one message after the other. */
mc_phase_cost_t mc_cost_star_gather(const mc_line_shape_t *shape);
/* A rank sends p-1 messages one after another (REFERENCE's table of ways counts one time step). */
mc_phase_cost_t mc_cost_fullmesh_allgather(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_fullmesh_reduce_scatter(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_fullmesh_allreduce(const mc_line_shape_t *shape);
/* p-1 rounds of n/p: n is what one rank sends, and no phase makes it smaller. */
mc_phase_cost_t mc_cost_pairwise_alltoall(const mc_line_shape_t *shape);
/* For each prime factor f of p: f-1 rounds of n/f. */
mc_phase_cost_t mc_cost_digits_alltoall(const mc_line_shape_t *shape);

/* On lengths that are no power of two with the exchange before and after: see src/doubling. */
mc_phase_cost_t mc_cost_doubling_allreduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_halving_reduce_scatter(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_doubling_allgather(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_bruck_allgather(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_aligned_allreduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_aligned_reduce_scatter(const mc_line_shape_t *shape);
/* ceil(log p) rounds, each of the slices whose index has that bit. */
mc_phase_cost_t mc_cost_bruck_alltoall(const mc_line_shape_t *shape);

/* All of it so many times as long: what was measured of it over what it says (link.h). */
void mc_phase_cost_scale(mc_phase_cost_t *cost, mc_ratio_t factor);

mc_cost_t mc_cost_zero(void);
mc_cost_t mc_cost_add(const mc_cost_t *a, const mc_cost_t *b);
mc_term_t mc_term_add(const mc_term_t *a, const mc_term_t *b);
/* What is by the byte times `share`: the same messages with that part of the bytes. */
mc_term_t mc_term_share(const mc_term_t *term, mc_ratio_t share);

/* The same links where a port carries what `busy` says of n bytes: a burst passes once, not again for each
 * of a port's messages. */
mc_links_t mc_links_carrying(const mc_links_t *links, const mc_cost_t *busy, double n);
/* The same into a copy of `links`, of which nothing else changes. */
void mc_links_carry(const mc_links_t *links, const mc_cost_t *busy, double n, mc_links_t *left);
/* The same term without what is paid by the message. */
mc_term_t mc_term_bytes(const mc_term_t *term);
/* Seconds for n bytes: of one dimension, of all one after another. */
double mc_term_seconds(const mc_term_t *term, const mc_link_t *link, double n);
double mc_cost_seconds(const mc_cost_t *cost, const mc_links_t *links, double n);
/* To 40 bits: what is equal on paper is equal here, in whatever order it was added up. */
double mc_cost_rounded(double seconds);
/*
 * What a segment keeps busy, in seconds. By the textbook a link, with its messages and its bytes. Where
 * the gap is known (it is not alpha), a wire carries the bytes while its ranks are at the next message:
 * then the wire has the bytes, and the ranks' own time the messages (where they share cores, of all of
 * them) and sums; a pulled link's bytes are its ranks' work too.
 */
typedef struct {
    double link, own;
} mc_busy_t;
static inline bool mc_link_is_ranks_own(const mc_link_t *link)
{
    return link->pulled && link->gap != link->alpha;
}
mc_busy_t mc_term_busy(const mc_term_t *busy, const mc_link_t *link, double n);
/* What both take side by side: the longer one if the other is short, and more the closer they are, as
 * neither is always ready for the other. */
double mc_busy_both(double link, double own);
/* Of the busiest wire and the ranks' own; *busiest: its dimension, or -1 where the ranks have more. */
double mc_cost_busy(const mc_cost_t *busy, const mc_links_t *links, double n, int32_t *busiest);

/* Seconds of the fill that pass while wires are shaped save up what they let pass later: those of all else, but no
 * more than of their bytes, nor than their bursts prove. `left`: without bursts; in one segment n bytes. */
double mc_phase_cost_saved(const mc_phase_cost_t *cost, const mc_links_t *links,
                           const mc_links_t *left, double n);

/* Seconds of phases whose costs add up to `cost`, in segments: the fill with n/segments, then
 * (segments - 1) times the busiest link; rounded to 12 digits, so that equal costs tie. */
double mc_phase_cost_seconds(const mc_phase_cost_t *cost, const mc_links_t *links,
                             uint32_t segments, double n);

#endif
