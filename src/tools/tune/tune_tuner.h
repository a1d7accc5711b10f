/* The state of measuring a cluster, shared by what runs and what evaluates; for meshcoll tune. */
#ifndef MC_TOOLS_TUNE_TUNER_H
#define MC_TOOLS_TUNE_TUNER_H

#include "tools/tune/tune.h"

enum {
    SMALL_BYTES = 8,             /* of a message */
    ROW_MESSAGES = 128,          /* segments without dependencies on each other */
    LEAST_LARGE_BYTES = 1 << 20, /* traffic shapers and buffers let short bursts pass faster */
    MOST_BYTES = 32 << 20,       /* of all blocks of a line */
    RARE_BYTES = 128 << 10,      /* of a piece where the receivers limit their senders */
    SUM_BYTES = 1 << 20,         /* of a vector that is reduced in memory */
    BURST_SHOTS = 12 /* per round; after two the initial credit of a shaper is used up */
};
/* Three message sizes and a sequence of small messages; on one line or on all lines. */
typedef enum { SMALL, ROW, QUARTER, LARGE, REQUESTS } size_index_t;
typedef enum {
    SMALL_ALL,
    ROW_ALL,
    QUARTER_ALL,
    LARGE_ALL,
    QUARTER_ALONE,
    LARGE_ALONE,
    SERIES
} series_index_t;
/* Measures strategies of a line in shared memory at several sizes of the vector. */
typedef struct mc_tune_table mc_tune_table_t;

/* Sets *table to NULL where the mesh is not a single line in shared memory; the other functions
 * accept that. */
int mc_tune_table_open(const mc_cluster_t *cluster, meshcoll_t *whole, mc_tune_table_t **table);
/* One round. */
void mc_tune_table_run(mc_tune_table_t *table);
/*
 * Of each collective: the strategy with the least mean over the sizes, and those that are faster
 * than it at some size by more than the error of the difference. Frees `table`.
 */
int mc_tune_table_close(mc_tune_table_t *table, mc_measured_t *measured);

/* One dimension, and this rank's line in it. */
typedef struct {
    const char *name;
    int32_t extent, lines;
    bool pulled;
    bool among_alone; /* is this the line of its box that runs when one line runs? */
    meshcoll_t *line;
    char *buffer;
    size_t bytes;                          /* of the large message */
    meshcoll_request_t *request[REQUESTS]; /* NULL: not sent */
    mc_series_t series[SERIES];
    mc_series_t
        both; /* large messages of this dimension and of the network's innermost one, concurrently */
} dim_t;

/* An allreduce over the whole mesh. */
typedef struct {
    meshcoll_request_t *request;
    mc_series_t series;
} small_t;

typedef struct {
    meshcoll_t *whole;
    small_t shape[MC_TUNE_SHAPES];
    int32_t n_shapes;
    small_t burst[2]; /* few bytes, and MC_TUNE_BURST bytes */
    dim_t *dim[MC_MAX_DIMS];
    int32_t n_dims; /* those longer than 1 */
    dim_t *inner;   /* the innermost of the network; NULL: all is memory */
    mc_tune_table_t *table;
    float *sums; /* three vectors */
    meshcoll_request_t
        *summing;    /* on device memory: LARGE of the last dimension, and sums besides */
    mc_series_t sum; /* seconds for SUM_BYTES */
    double begin, seconds;
    bool shows; /* progress, on a terminal */
} tuner_t;

/* Into how many pieces a message of the dimension is cut. */
int32_t mc_tuner_pieces(const dim_t *d, size_t bytes);

/* What the series of a dimension say, but alpha and cpu. */
mc_seen_t mc_tuner_seen(const tuner_t *t, dim_t *d);
/* Adds alpha and cpu of all dimensions, and the burst. */
void mc_tuner_see_messages(const tuner_t *t, const mc_mesh_t *mesh, mc_tuning_t *tuning);

#endif
