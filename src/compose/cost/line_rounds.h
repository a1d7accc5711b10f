/*
 * Who sends to whom in the rounds that a closed form counts: for links that a round's messages share far from their ends,
 * which the numbers of a dimension's link do not tell.
 */
#ifndef MC_COMPOSE_ROUNDS_H
#define MC_COMPOSE_ROUNDS_H

#include "compose/cost/cost.h"

/* Takes the rounds of one line, by index on it. Parts are those of the tile when the line's dimensions are free. */
typedef struct mc_round_sink {
    /* In each of `times` rounds every rank sends `part` to the rank `by` after it, round the line's end. */
    void (*shift)(struct mc_round_sink *sink, int32_t by, double part, double times);
    /* Every rank sends `part` to every other, one after the other without waiting in between. */
    void (*spread)(struct mc_round_sink *sink, double part);
    /* Members m apart send `part` to each other: of the line's core (mc_core_t), or of all its ranks. */
    void (*swap)(struct mc_round_sink *sink, int32_t m, bool core, double part);
    /* A message of the round that mc_round_sink_t.end ends. `times`: how many such rounds follow each other; 0 if it tells
     * only what a segment carries in all, as messages that each take a time of their own do. */
    void (*send)(struct mc_round_sink *sink, int32_t from, int32_t to, double part);
    void (*end)(struct mc_round_sink *sink, double times);
} mc_round_sink_t;

/* `rows`: the extent of the line's outermost dimension longer than 1. The flags are those of mc_line_shape_t. */
typedef struct {
    int32_t len, root, rows;
    bool reduces, slices, root_sends, aligned;
} mc_round_line_t;

/* The k-th of `samples` numbers in [1, n), evenly apart. */
static inline int32_t mc_round_sample(int32_t k, int32_t samples, int32_t n)
{
    return 1 + (int32_t)(((int64_t)2 * k + 1) * (n - 1) / (2 * samples));
}

/* The rounds of an algorithm. */
typedef void (*mc_line_rounds_t)(const mc_round_line_t *line, mc_round_sink_t *sink);

void mc_rounds_mst(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_chain(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_edst(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_star(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_ring(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_fullmesh(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_digits(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_doubling(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_doubling_turned(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_bruck_allgather(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_bruck_turned(const mc_round_line_t *line, mc_round_sink_t *sink);
void mc_rounds_bruck_alltoall(const mc_round_line_t *line, mc_round_sink_t *sink);
/* Where the length is no power of two, without the messages of ranks that lack a partner. */
void mc_rounds_aligned(const mc_round_line_t *line, mc_round_sink_t *sink);

#endif
