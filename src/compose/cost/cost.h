/*
 * Costs of the 1D algorithms in closed form, after Hockney's model (alpha + beta n) as in Chan et al.
 * 2007: for each dimension the number of messages (times alpha) and the multiples of n bytes sent (times
 * beta) and reduced (times gamma). They are exact fractions, so that strategies that cost the same
 * compare equal. n is the vector's size in bytes; times are in seconds.
 */
#ifndef MC_COMPOSE_COST_H
#define MC_COMPOSE_COST_H

#include "mesh/link/link.h"
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

/*
 * The cost along one dimension, on the critical path unless said otherwise.
 *   alpha     messages one after another
 *   beta      bytes sent, as a multiple of n, slowed down where lines share ports
 *   gamma     bytes reduced, as a multiple of n
 *   row       messages of `alpha` that do not wait for the one before of the same rank: they take a gap
 *             instead of alpha (g of LogP, Culler et al. 1993)
 *   messages  of all ranks on all lines: ranks that share cores delay each other (cpu in link.h)
 *   volume    what these messages carry, as a multiple of n
 */
typedef struct {
    mc_ratio_t alpha, beta, gamma, row;
    double messages;
    mc_ratio_t volume;
} mc_term_t;

typedef struct {
    mc_term_t dim[MC_MAX_DIMS];
} mc_cost_t;

/*
 * What the links of a network between boxes add (mc_links_t.network), in seconds for each byte of the vector.
 *   extra  by which the rounds last longer than their ports do
 *   busy   how long a segment occupies the busiest link of each part of the network: of a tree's level, a torus's dimension
 */
enum { MC_NETWORK_PARTS = 6 };
typedef struct {
    double extra, busy[MC_NETWORK_PARTS];
} mc_strain_t;

static inline void mc_strain_add(mc_strain_t *sum, const mc_strain_t *s, double times)
{
    sum->extra += s->extra * times;
    for (int32_t k = 0; k < MC_NETWORK_PARTS; k++)
        sum->busy[k] += s->busy[k] * times;
}

/* `once`: from a segment's start to its end on every rank. `busy`: how long a segment occupies the
 * busiest rank and its links; the next segment can start after that (for a chain sooner than after
 * `once`). Messages of a segment do not wait for those of the one before, so mc_phase_cost counts all
 * messages of `busy` as being in a row. */
typedef struct {
    mc_cost_t once, busy;
    mc_strain_t network; /* zeros without one */
} mc_phase_cost_t;

/* A cache for callers that price many algorithms on one mesh with one root and the same wires: the rounds
 * in which MST halves a merged line, by the line's first and last dimension. Of a round: the outermost
 * dimension crossed, the slices that the root sends, and the most messages at one port; of each dimension
 * inside that is crossed too, the most messages at one port and the largest one's slices. The caller sets it
 * to 0. */
enum { MC_MAX_ROUNDS = 32 };
typedef struct {
    int32_t top, sent, most;
    struct {
        int32_t most, slices;
    } inner[MC_MAX_DIMS];
} mc_round_t;
typedef struct {
    struct {
        int32_t n; /* 0: not computed yet */
        mc_round_t round[MC_MAX_ROUNDS];
    } line[MC_MAX_DIMS][MC_MAX_DIMS];
} mc_walks_t;

/*
 * What a line's cost depends on.
 *   share      the tile as a fraction of n when the line's dimensions are free: 1 over the extents of
 *              the other sharded dimensions
 *   lines      number of lines of the mesh that run the algorithm at once
 *   sharers[d] number of lines that share one box's ports of dimension d
 *   ports[d]   number of lines that these ports carry at full rate. Terms of beta are multiplied by
 *              max(1, sharers * crossings / ports), where crossings is the number of messages of one line
 *              that leave or enter the same box in that round (1 on a plain line)
 *   wire[d]    the dimension whose ports messages of d use, as index + 1; 0: those of d (link.h)
 *   pulled[d]  the receivers do the copying
 *   walks      the cache of lines priced before; NULL: none
 *   boxes      the boxes of a ragged mesh, for a line of all ranks; in `mesh` each is then as large as
 *              the largest. NULL: none
 *   reduces, slices, root_sends, aligned
 *              what the algorithm does on it: sums; sends slices, not the whole tile; has a root that sends,
 *              not one that receives; halves as the aligned tree does
 *   at_root    the part of the tile that stays at the root of a scatter or gather; 0: 1 / line.len, a
 *              slice like any other rank's
 */
typedef struct {
    const mc_mesh_t *mesh;
    const mc_boxes_t *boxes;
    mc_line_t line;
    mc_ratio_t share;
    int64_t lines;
    int32_t sharers[MC_MAX_DIMS], ports[MC_MAX_DIMS], wire[MC_MAX_DIMS];
    bool pulled[MC_MAX_DIMS];
    bool reduces, slices, root_sends, aligned;
    mc_walks_t *walks;
    mc_ratio_t at_root;
} mc_line_shape_t;

/* Cost of one 1D algorithm on the lines described by `shape`. On a merged line the time of each round is
 * charged to the outermost dimension that any of its messages crosses; `busy` also has the bytes that the
 * wires of inner dimensions carry in it. */
typedef mc_phase_cost_t (*mc_line_cost_t)(const mc_line_shape_t *shape);

/* Trees, chains and stars serve bcast, reduce, scatter and gather, as the shape says. */
mc_phase_cost_t mc_cost_mst(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_chain(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_edst(const mc_line_shape_t *shape);
/* A root that receives on a pulled link takes one message after the other, whereas receivers pull from a
 * root that sends all at once. */
mc_phase_cost_t mc_cost_star(const mc_line_shape_t *shape);
/* A ring serves allgather and reduce-scatter. */
mc_phase_cost_t mc_cost_ring(const mc_line_shape_t *shape);
/* A rank sends p-1 messages in a row; the textbook counts them as one time step. Also for the pairwise
 * alltoall: of an alltoall n is what one rank sends; it is the same in every phase. */
mc_phase_cost_t mc_cost_fullmesh(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_fullmesh_allreduce(const mc_line_shape_t *shape);
/* Each prime factor f of p takes f-1 rounds of n/f. */
mc_phase_cost_t mc_cost_digits_alltoall(const mc_line_shape_t *shape);

/* Recursive doubling and halving: allreduce, reduce-scatter and allgather. The messages before and after the rounds
 * count too on lengths that are no power of two (src/doubling). */
mc_phase_cost_t mc_cost_doubling(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_bruck_allgather(const mc_line_shape_t *shape);
/* Doubling, halving and Bruck with their rounds in the other order. */
mc_phase_cost_t mc_cost_doubling_turned(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_bruck_turned(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_aligned_allreduce(const mc_line_shape_t *shape);
mc_phase_cost_t mc_cost_aligned_reduce_scatter(const mc_line_shape_t *shape);
/* ceil(log2 p) rounds; round k moves the slices whose index has bit k set. */
mc_phase_cost_t mc_cost_bruck_alltoall(const mc_line_shape_t *shape);

/* Rounds until data of one rank is on `p` ranks (or boxes), if each that has it sends to `fan` others in a
 * round. */
static inline int32_t mc_rounds(int32_t p, int64_t fan)
{
    int32_t n = 0;
    for (int64_t reached = 1; reached < p; reached *= 1 + fan)
        n++;
    return n;
}

mc_cost_t mc_cost_zero(void);
mc_cost_t mc_cost_add(const mc_cost_t *a, const mc_cost_t *b);
/* The cost of two phases, one after the other. */
mc_phase_cost_t mc_phase_cost_add(const mc_phase_cost_t *a, const mc_phase_cost_t *b);

/* Returns the term without what each message costs. */
mc_term_t mc_term_bytes(const mc_term_t *term);
/* Seconds for n bytes: of one dimension, and the sum over all. */
double mc_term_seconds(const mc_term_t *term, const mc_links_t *links, int32_t d, double n);
/* The part of it that is the ranks' own: messages and sums. */
double mc_term_own(const mc_term_t *term, const mc_links_t *links, int32_t d, double n);
double mc_cost_seconds(const mc_cost_t *cost, const mc_links_t *links, double n);
/* Rounds to 40 bits, so that equal costs compare equal in whatever order they were added up. */
double mc_cost_rounded(double seconds);
/*
 * Seconds for which a segment occupies a link and its ranks. In the textbook's model (gap equals alpha)
 * messages, bytes and sums all occupy the link. Where the gap is known, or ranks share cores, a wire
 * carries bytes while its ranks handle the next message: then bytes occupy the link, and messages and sums
 * occupy the ranks. On a pulled link everything occupies both, because ranks do the copying.
 */
typedef struct {
    double link, own;
} mc_busy_t;
bool mc_links_are_apart(const mc_links_t *links, int32_t d);
mc_busy_t mc_term_busy(const mc_term_t *busy, const mc_links_t *links, int32_t d, double n);
/* Seconds of the busiest wire or, if they are busier, of the ranks; *busiest: the wire's dimension, MC_BUSY_NETWORK or more:
 * a part of the network, or -1: the ranks. Cores that ranks share do the wires' work too, so there both times add up, and -1 means that no wire
 * has a time of its own. */
enum { MC_BUSY_NETWORK = MC_MAX_DIMS, MC_BUSY_WIRES = MC_MAX_DIMS + MC_NETWORK_PARTS };
double mc_cost_busy(const mc_phase_cost_t *cost, const mc_links_t *links, double n,
                    int32_t *busiest);

/* Seconds of phases whose costs add up to `cost`, in segments: the fill with n/segments, then
 * (segments - 1) times the busiest link; rounded by mc_cost_rounded. */
double mc_phase_cost_seconds(const mc_phase_cost_t *cost, const mc_links_t *links,
                             uint32_t segments, double n);

/* Seconds from one segment of a pipeline to the next: the largest of `n` busy times of wires or, if they are busier, the
 * ranks' `own`, to which the wires' add up on shared cores. *busiest: as of mc_cost_busy; of equal ones the first. */
static inline double mc_pipeline_every(const double *wire, int32_t n, double own, bool share_cores,
                                       int32_t *busiest)
{
    double most = 0;
    *busiest = 0;
    for (int32_t i = 0; i < n; i++)
        if (wire[i] > most) {
            most = wire[i];
            *busiest = i;
        }
    if (share_cores ? most == 0 : own > most)
        *busiest = -1;
    return share_cores ? most + own : most > own ? most : own;
}

#endif
