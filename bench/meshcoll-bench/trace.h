/* A trace: the steps of one run of a strategy on all ranks, for --timeline. */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include "bench.h"

#include "runtime/execute/timeline.h"

#include <jansson.h>

/* The most rows for concurrent messages of one rank, dimension and direction. */
enum { LANE_ROWS = 32 };

/* One step of one rank. Seconds; on rank 0 they count from the first rank's start. */
typedef struct {
    int32_t rank, peer, level, phase; /* level: the dimension a message crosses, -1: none;
                                         phase: -1 where the dimension does not tell it */
    uint32_t step, op, segment, seq;
    mc_range_t chunks;
    uint64_t bytes;
    double at[MC_MOMENTS];
    double
        from; /* of a received message: when it was in flight and the one before it of the same pair had arrived */
    int32_t row; /* concurrent messages across a dimension have rows of their own */
} event_t;

typedef struct {
    const char *label, *strategy;
    uint64_t bytes; /* of the whole vector */
    event_t *event; /* by rank, then by step */
    size_t n;
    double seconds;                 /* from the first rank's start to the last one's end */
    double clock_error;             /* of the times of one rank against another's */
    double busy[MC_MAX_DIMS], both; /* shares of the run, the average box */
    double *box_busy, *box_both;    /* by box, then by dimension; by box */
    json_t *box_spans;              /* by box: from when to when that was; µs */
    int n_boxes;
} trace_t;

/* Sets `from` and `row` of events, busy and both. */
void trace_finish(const bench_t *bench, trace_t *trace);
void trace_free(trace_t *trace);

static inline bool event_sends(const event_t *e)
{
    return mc_op_sends((mc_op_t)e->op);
}
/* Was it a message? Empty ones are not sent. */
static inline bool event_is_message(const event_t *e)
{
    return e->at[MC_POSTED] != 0;
}
/* From when to when a message is drawn; a receive from when its sender had begun. */
static inline double event_from(const event_t *e)
{
    return event_sends(e) ? e->at[MC_POSTED] : e->from;
}

#endif
