#include "runtime/calibrate/measure.h"

#include "runtime/calibrate/eager.h"
#include "runtime/calibrate/lines.h"
#include "runtime/calibrate/series.h"
#include "runtime/element/datatype.h"
#include "runtime/element/kernels.h"
#include "transport/shm/shm_memory.h"

#include <meshcoll/fault.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SHORT_BYTES = 8,       /* of a message */
    ROW_MESSAGES = 32,     /* segments without dependencies on each other */
    LEAST_BYTES = 4 << 10, /* of the first long message; each is GROWTH times the one before */
    GROWTH = 4,
    MOST_BYTES = 4 << 20,  /* of all blocks of a line, on a wire and in memory: */
    MOST_MEMORY = 1 << 20, /* what a cache holds */
    SUM_BYTES = 64 << 10,
    BURST_BYTES = 32 << 10, /* of the whole vector, on all lines */
    SHOTS = 8,
    MOST_REPEATS = 64,
    PIECE_BYTES = 32 << 10, /* into which the library cuts exchanges (execute/pace.h) */
    MOST_PIECES = 256,
    FIRST_RUNS = 4, /* one connects */
    FIRST_ROWS = 2  /* they are long where ranks share cores */
};

/* Before each shot, for a token bucket to fill as between a program's calls (docs/lab-notes/model.md, "Bursts"). */
static const struct timespec pause_before = {0, 200000};

typedef enum { SHORT, ROW, QUARTER, LONG, BURST, SUMMING, EAGER, REQUESTS } request_t;
typedef enum { S_SHORT, S_ROW, S_QUARTER, S_LONG, S_ALONE, SERIES } series_t;
static const request_t request_of_series[SERIES] = {SHORT, ROW, QUARTER, LONG, LONG};

/* One dimension, and this rank's line along it. */
typedef struct {
    int32_t dim, ranks, lines;
    bool first, alone, pulled, streams;
    bool fixed;       /* its links are those of memory whose ranks share cores (mc_seen_t) */
    bool known;       /* its sizes were found in time */
    meshcoll_t *line; /* NULL: it has none */
    mc_transport_t *transport;
    size_t bytes; /* of the long message */
    double brief; /* seconds of a run of short messages */
    double eager; /* bytes; 0: not measured */
    meshcoll_request_t *request[REQUESTS];
    mc_series_t series[SERIES], both;
    mc_series_t few, burst; /* shots of short messages, and of BURST_BYTES */
} dim_t;

typedef struct {
    meshcoll_t *mesh, *whole;
    const mc_vectors_t *vectors;
    char *buffer;
    float *sums;
    double began, seconds, now; /* `now`: since it began, on the slowest rank, the same on all */
    double once;                /* that all series took once */
    int32_t n_dims, rounds;
    double crowd; /* ranks to a core, where they are most */
    bool fixes;   /* leaves out memory where they are more than one */
    dim_t *dim[MC_MAX_DIMS];
    mc_series_t sum, runs;
} measuring_t;

/* Batches ---------------------------------------------------------------------------------------- */

static bool is_late(const measuring_t *m)
{
    return !(m->now < m->seconds);
}

/* The most of all ranks, and the time. */
static int settle(measuring_t *m, double mine, double *most)
{
    const double own[] = {mine, mc_now() - m->began};
    double all[2] = {0};
    const int status = meshcoll_allreduce(m->whole, own, all, 2, MESHCOLL_FLOAT64, MESHCOLL_MAX);
    if (status)
        return status;
    *most = all[0];
    m->now = all[1];
    return MESHCOLL_OK;
}

static int run_both(meshcoll_request_t *const request[2])
{
    int status = MESHCOLL_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = meshcoll_start(request[i]);
    for (int i = 0; i < 2 && !status; i++)
        status = meshcoll_wait(request[i]);
    return status;
}

/* Seconds of a run of one or two requests at once: the lower quartile of this rank's runs, as others may take its core
 * for some, and the most of all ranks. A rank without requests blocks. */
static int batch(measuring_t *m, meshcoll_request_t *const *request, int32_t n, int32_t repeats,
                 double *seconds)
{
    mc_series_t *const runs = &m->runs;
    int status = MESHCOLL_OK;
    runs->n = 0;
    const int32_t times = m->vectors->queued && n == 1 ? repeats : 1;
    for (int32_t i = 0; i < repeats && n > 0 && !status; i += times) {
        const double begin = mc_now();
        status = n == 1 ? m->vectors->run(*request, times) : run_both(request);
        mc_series_keep(runs, (mc_now() - begin) / times);
    }
    return status ? status : settle(m, mc_series_quantile(runs, 0.25), seconds);
}

static int batch_of(measuring_t *m, const dim_t *d, series_t s, int32_t repeats, double *seconds)
{
    meshcoll_request_t *const request = d->request[request_of_series[s]];
    const bool waits = (s == S_ALONE && !d->first) || (s == S_SHORT && m->crowd > 1 && !d->alone);
    return batch(m, &request, request && !waits, repeats, seconds);
}

static bool is_run(const dim_t *d, series_t s)
{
    return s != S_ALONE || d->lines > 1;
}

static int keep(measuring_t *m, dim_t *d, series_t s)
{
    double seconds;
    const int status = batch_of(m, d, s, d->series[s].repeats, &seconds);
    if (!status)
        mc_series_keep(&d->series[s], seconds);
    return status;
}

/* Sizes ------------------------------------------------------------------------------------------ */

static int make_request(measuring_t *m, dim_t *d, request_t which, size_t bytes, int32_t segments)
{
    char strategy[64];
    const mc_dim_t *const dim = &m->mesh->mesh.dim[d->dim];
    const bool sums = which == SUMMING;
    if (!d->line)
        return MESHCOLL_OK;
    snprintf(strategy, sizeof strategy, "%s:ring(%s) segments=%d",
             sums ? "reduce_scatter" : "allgather", dim->name, (int)segments);
    char *const own = m->buffer + bytes * (size_t)meshcoll_rank(d->line);
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = sums ? MESHCOLL_REDUCE_SCATTER : MESHCOLL_ALLGATHER,
                                  .in = sums ? m->buffer : own,
                                  .out = sums ? own : m->buffer,
                                  .count = bytes / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_MAX,
                                  .strategy = strategy};
    return meshcoll_init(d->line, &args, &d->request[which]);
}

static int32_t repeats_for(double once, double enough)
{
    const double repeats = once > 0 ? enough / once : MOST_REPEATS;
    return repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (int32_t)repeats;
}

/* The first runs connect. */
static int find_short(measuring_t *m, dim_t *d, double enough)
{
    double once = 0;
    int status = make_request(m, d, SHORT, SHORT_BYTES, 1);
    if (!status)
        status = make_request(m, d, ROW, ROW_MESSAGES * SHORT_BYTES, ROW_MESSAGES);
    if (!status)
        status = batch_of(m, d, S_SHORT, FIRST_RUNS, &once);
    d->brief = once;
    d->series[S_SHORT].repeats = repeats_for(once, enough);
    if (!status)
        status = batch_of(m, d, S_ROW, FIRST_ROWS, &once);
    d->series[S_ROW].repeats = repeats_for(once, enough);
    return status;
}

/* Long messages go in pieces where they stream, as the library cuts them: else queues overflow
 * (docs/lab-notes/calibration.md). A piece takes as long as 4 messages: shorter ones cost a fast network its rate. */
static int32_t pieces_for(const dim_t *d, size_t bytes, double once)
{
    const double per_byte = once / (d->ranks - 1) / (double)bytes / d->lines;
    const double brief = d->brief / (d->ranks - 1);
    const double piece = fmax(PIECE_BYTES, per_byte > 0 ? 4 * brief / per_byte : 0);
    const double pieces = (double)(bytes * GROWTH) / piece;
    if (!d->streams || d->pulled || pieces < 1)
        return 1;
    return pieces < MOST_PIECES ? (int32_t)pieces : MOST_PIECES;
}

/* Messages grow until they take `enough` seconds. */
static int find_long(measuring_t *m, dim_t *d, double enough)
{
    const bool cached = d->pulled && !m->vectors->queued;
    const size_t most = (size_t)(cached ? MOST_MEMORY : MOST_BYTES) / (size_t)d->ranks;
    double once = 0;
    int status = MESHCOLL_OK;
    d->bytes = most < GROWTH * LEAST_BYTES ? most / GROWTH / 16 * 16 : LEAST_BYTES;
    status = make_request(m, d, LONG, d->bytes, 1);
    if (!status)
        status = batch_of(m, d, S_LONG, 1, &once);
    do {
        meshcoll_free(d->request[QUARTER]);
        d->request[QUARTER] = d->request[LONG];
        d->request[LONG] = NULL;
        d->series[S_QUARTER].repeats = repeats_for(once, enough / GROWTH);
        const int32_t pieces = pieces_for(d, d->bytes, once);
        d->bytes *= GROWTH;
        if (!status)
            status = make_request(m, d, LONG, d->bytes, pieces);
        if (!status)
            status = batch_of(m, d, S_LONG, 1, &once);
    } while (!status && !is_late(m) && once < enough && d->bytes * GROWTH <= most);
    d->series[S_LONG].repeats = d->series[S_ALONE].repeats = repeats_for(once, enough);
    return status;
}

typedef struct {
    measuring_t *m;
    dim_t *d;
    size_t bytes; /* of its request */
} exchange_t;

static int exchange(void *context, size_t bytes, int32_t runs, double *seconds)
{
    exchange_t *const e = context;
    meshcoll_request_t **const request = &e->d->request[EAGER];
    int status = MESHCOLL_OK;
    if (bytes != e->bytes) {
        meshcoll_free(*request);
        *request = NULL;
        status = make_request(e->m, e->d, EAGER, bytes, 1);
    }
    e->bytes = bytes;
    return status ? status : batch(e->m, request, *request != NULL, runs, seconds);
}

static int find_eager(measuring_t *m, dim_t *d)
{
    exchange_t e = {.m = m, .d = d};
    return mc_eager_find(&(mc_exchanges_t){.transport = d->transport,
                                           .ranks = d->ranks,
                                           .most = MOST_MEMORY / (size_t)d->ranks,
                                           .run = exchange,
                                           .context = &e,
                                           .now = &m->now,
                                           .end = m->seconds},
                         &d->eager);
}

/* And times all once, as first runs do not count. Long messages are read until the board has been filled. */
static int find_sizes(measuring_t *m, dim_t *d, double seconds)
{
    const double enough = seconds / 20;
    const mc_shm_access_t access = m->mesh->job->connections.access;
    const bool reads = d->pulled && access == MC_SHM_READ && m->crowd <= 1 && !m->vectors->queued;
    int status = find_short(m, d, enough);
    if (reads)
        mc_eager_set(d->transport, 0);
    if (!status && !is_late(m))
        status = find_long(m, d, enough);
    const double before = m->now;
    for (int s = 0; s < SERIES && !status && !is_late(m); s++)
        if (is_run(d, (series_t)s))
            status = keep(m, d, (series_t)s);
    m->once += m->now - before;
    d->known = !status && d->series[S_LONG].n > 0;
    if (reads && d->known && !is_late(m))
        status = find_eager(m, d);
    return status;
}

/* Bursts ----------------------------------------------------------------------------------------- */

/* Of a block, that of a rank. */
static size_t burst_bytes(const dim_t *d)
{
    const size_t block = (size_t)BURST_BYTES / (size_t)d->lines / (size_t)d->ranks;
    return block < SHORT_BYTES ? SHORT_BYTES : block / SHORT_BYTES * SHORT_BYTES;
}

static int shoot(measuring_t *m, meshcoll_request_t *request, double *seconds)
{
    nanosleep(&pause_before, NULL);
    int status = meshcoll_barrier(m->whole);
    const double begin = mc_now();
    if (!status && request)
        status = m->vectors->run(request, 1);
    *seconds = mc_now() - begin;
    return status;
}

/* All pause alike: ranks tell their times afterwards. */
static int keep_burst(measuring_t *m, dim_t *d)
{
    double own[2 * SHOTS + 1], most[2 * SHOTS + 1];
    int status = d->request[BURST] ? MESHCOLL_OK : make_request(m, d, BURST, burst_bytes(d), 1);
    for (int i = 0; i < 2 * SHOTS && !status; i++)
        status = shoot(m, d->request[i < SHOTS ? SHORT : BURST], &own[i]);
    own[2 * SHOTS] = mc_now() - m->began;
    if (!status)
        status =
            meshcoll_allreduce(m->whole, own, most, 2 * SHOTS + 1, MESHCOLL_FLOAT64, MESHCOLL_MAX);
    if (status)
        return status;
    for (int i = 0; i < 2 * SHOTS; i++)
        mc_series_keep(i < SHOTS ? &d->few : &d->burst, most[i]);
    m->now = most[2 * SHOTS];
    return MESHCOLL_OK;
}

static int keep_bursts(measuring_t *m)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < m->n_dims && !status && !is_late(m); i++)
        if (m->dim[i]->known && !m->dim[i]->pulled)
            status = keep_burst(m, m->dim[i]);
    return status;
}

/* Rounds ----------------------------------------------------------------------------------------- */

/* The processor's time, where ranks share cores as often as there are ranks to a core. */
static double sum_seconds(const measuring_t *m)
{
    const size_t n = SUM_BYTES / sizeof(float);
    const mc_kernel_t add = mc_kernel(MESHCOLL_FLOAT32, MESHCOLL_SUM);
    struct timespec from, to;
    add(m->sums, m->sums + n, m->sums + 2 * n, n);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    add(m->sums, m->sums + n, m->sums + 2 * n, n);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* In memory of a GPU: by how much a reduce-scatter is slower than an allgather of the same messages. */
static int sum_on_device(measuring_t *m, double *seconds)
{
    dim_t *const d = m->dim[m->n_dims - 1];
    meshcoll_request_t *const request = d->request[SUMMING];
    double with = 0, without = 0;
    int status = batch(m, &request, request ? 1 : 0, 1, &with);
    if (!status)
        status = batch_of(m, d, S_LONG, 1, &without);
    *seconds =
        (with > without ? with - without : 0) / (d->ranks - 1) / (double)d->bytes * SUM_BYTES;
    return status;
}

static int keep_sum(measuring_t *m)
{
    double most = 0;
    const int status = !m->vectors->queued            ? settle(m, sum_seconds(m), &most)
                       : m->dim[m->n_dims - 1]->known ? sum_on_device(m, &most)
                                                      : MESHCOLL_OK;
    if (!status)
        mc_series_keep(&m->sum, most);
    return status;
}

/* The innermost dimension of the network; NULL: all is memory. */
static dim_t *inner_wire(const measuring_t *m)
{
    dim_t *inner = NULL;
    for (int32_t i = 0; i < m->n_dims; i++)
        inner = m->dim[i]->known && !m->dim[i]->pulled ? m->dim[i] : inner;
    return inner;
}

/* Along two dimensions at once: the longer of both times where each has a wire, their sum where they share one. */
static int keep_both(measuring_t *m, dim_t *d, const dim_t *inner)
{
    meshcoll_request_t *const request[] = {d->request[LONG], inner->request[LONG]};
    double seconds;
    const bool mine = request[0] && request[1];
    const int status = batch(m, request, mine ? 2 : 0, 1, &seconds);
    if (!status)
        mc_series_keep(&d->both, seconds);
    return status;
}

static int run_round(measuring_t *m)
{
    int status = keep_sum(m);
    const dim_t *const inner = inner_wire(m);
    for (int32_t i = 0; i < m->n_dims && !status; i++) {
        dim_t *const d = m->dim[i];
        for (int s = 0; s < SERIES && d->known && !status; s++)
            if (is_run(d, (series_t)s))
                status = keep(m, d, (series_t)s);
        if (!status && d->known && !d->pulled && d != inner)
            status = keep_both(m, d, inner);
    }
    return status ? status : keep_bursts(m);
}

/* As many as fit into the time. Bursts first, as all else has been timed once. */
static int run_rounds(measuring_t *m)
{
    int status = keep_sum(m);
    const double before = m->now;
    if (!status)
        status = keep_bursts(m);
    double longest = m->once + m->now - before;
    m->rounds = 1;
    while (!status && m->now + longest < m->seconds && m->rounds < MC_MOST_ROUNDS) {
        const double begin = m->now;
        status = run_round(m);
        longest = m->now - begin > longest ? m->now - begin : longest;
        m->rounds++;
    }
    return status;
}

/* What was seen ---------------------------------------------------------------------------------- */

/* Seconds per byte of the messages of a ring. Where many ranks share a port, a token bucket passes the first bytes, which
 * a slope takes off. */
static double slope(const dim_t *d, double quarter, double full)
{
    const double messages = d->ranks - 1, bytes = (double)d->bytes;
    const double per_byte = full / messages / bytes;
    const double other = (full - quarter) / messages / (bytes - bytes / GROWTH);
    return other > 0 && other < per_byte * GROWTH / (GROWTH - 1) ? other : per_byte;
}

/* Seconds per message, of those that a ring sends after its first segment. */
static double in_row(const dim_t *d, double brief, double row)
{
    const double messages = (d->ranks - 1) * (ROW_MESSAGES - 1);
    return (row > brief ? row - brief : row) / messages; /* else the difference is noise */
}

/* The limit lies halfway between the longer time and the sum: both may share a core or a switch. */
static bool has_own_wire(const measuring_t *m, const dim_t *d)
{
    const dim_t *const inner = inner_wire(m);
    bool any = false; /* the innermost one has its own wire where another one does */
    for (int32_t i = 0; i < m->n_dims && d == inner; i++)
        any = any || (m->dim[i] != d && has_own_wire(m, m->dim[i]));
    if (d->both.n == 0)
        return any;
    const double full = mc_series_median(&d->series[S_LONG]),
                 other = mc_series_median(&inner->series[S_LONG]);
    return mc_series_median(&d->both) < fmax(full, other) + fmin(full, other) / 2;
}

/* Bytes of a vector that take no time after a pause; 0: not more than the error. */
static double burst_of(const dim_t *d, double per_byte)
{
    const mc_estimate_t few = mc_series_estimate(&d->few), many = mc_series_estimate(&d->burst);
    const double block = (double)burst_bytes(d), all = per_byte * block * (d->ranks - 1);
    const double saved = fmin(all - (many.value - few.value), all);
    const bool is_sure = many.n > 0 && saved > 2 * hypot(few.error, many.error);
    return is_sure ? saved / all * block * d->ranks * d->lines : 0;
}

static mc_seen_t seen_of(const measuring_t *m, const dim_t *d)
{
    double time[SERIES];
    if (d->fixed)
        return (mc_seen_t){.ranks = d->ranks, .pulled = true};
    for (int s = 0; s < SERIES; s++)
        time[s] = mc_series_median(&d->series[s]);
    mc_seen_t seen = {.ranks = d->ranks,
                      .lines = d->lines,
                      .pulled = d->pulled,
                      .streams = d->streams,
                      .own_wire = has_own_wire(m, d),
                      .round = time[S_SHORT] / (d->ranks - 1),
                      .row = in_row(d, time[S_SHORT], time[S_ROW]),
                      .together = slope(d, time[S_QUARTER], time[S_LONG])};
    seen.burst = burst_of(d, seen.together);
    seen.eager = d->eager;
    /* its quarter was not timed */
    seen.alone = d->lines > 1 ? seen.together * time[S_ALONE] / time[S_LONG] : seen.together;
    return seen;
}

/* Rank 0's, which all take. */
static int see(measuring_t *m, mc_sight_t *sight)
{
    mc_sight_t own = {.gamma = mc_series_median(&m->sum) / SUM_BYTES,
                      .ranks = m->mesh->mesh.size,
                      .crowd = m->vectors->queued ? 1 : m->crowd,
                      .rounds = m->rounds};
    for (int32_t i = 0; i < m->n_dims; i++)
        if (m->dim[i]->known || m->dim[i]->fixed)
            own.dim[m->dim[i]->dim] = seen_of(m, m->dim[i]);
    if (m->mesh->mesh.ragged) /* both inside a box */
        own.dim[MC_RAGGED_FOLD] = own.dim[MC_RAGGED_GPU];
    const int status = meshcoll_bcast(m->whole, &own, &own, sizeof own, MESHCOLL_UINT8, 0);
    if (!status)
        *sight = own;
    return status;
}

/* Opening ---------------------------------------------------------------------------------------- */

static int open_dim(measuring_t *m, int32_t dim)
{
    const mc_mesh_t *const mesh = &m->mesh->mesh;
    mc_transport_t *const t = m->mesh->transport[dim];
    dim_t *const d = calloc(1, sizeof *d);
    if (!d)
        return mc_fail_memory("times");
    m->dim[m->n_dims++] = d;
    d->dim = dim;
    d->ranks = mc_line_longest(mesh, dim);
    d->lines = mc_line_count(mesh, dim);
    d->first = mc_line_is_first(mesh, dim, m->mesh->rank);
    d->alone = mc_line_is_alone(mesh, dim, m->mesh->rank);
    d->pulled = mc_tls_is_memory(m->mesh->job->connections.tls[dim]);
    d->streams = t && t->streams;
    d->transport = t;
    return mc_line_open(m->mesh, dim, &d->line);
}

static int open_all(measuring_t *m)
{
    int status = mc_line_open_whole(m->mesh, &m->whole);
    for (int32_t d = 0; d < m->mesh->mesh.ndims && !status; d++)
        if (mc_line_longest(&m->mesh->mesh, d) > 1)
            status = open_dim(m, d);
    m->buffer = status ? NULL : m->vectors->vector(MOST_BYTES);
    m->sums = status ? NULL : calloc(3, SUM_BYTES);
    if (!status && (!m->buffer || !m->sums))
        status = mc_fail_memory("vectors to measure with");
    return status;
}

static void close_all(measuring_t *m)
{
    for (int32_t i = m->n_dims - 1; i >= 0; i--) {
        dim_t *const d = m->dim[i];
        for (int r = 0; r < REQUESTS; r++)
            meshcoll_free(d->request[r]);
        if (d->pulled)
            mc_eager_set(d->transport, MC_SHM_EAGER);
        meshcoll_destroy(d->line);
        free(d);
    }
    meshcoll_destroy(m->whole);
    if (m->buffer)
        m->vectors->free(m->buffer);
    free(m->sums);
    free(m);
}

/* Of the time: memory takes a tenth of what a wire takes, whose shapers and buffers let short bursts pass faster. */
static double part_of(const dim_t *d)
{
    return d->fixed ? 0 : d->pulled ? 0.1 : 1;
}

static int measure(measuring_t *m)
{
    dim_t *const last = m->n_dims > 0 ? m->dim[m->n_dims - 1] : NULL;
    double parts = 0, most = 0;
    int status = settle(m, m->mesh->job->crowd, &most);
    m->crowd = most;
    for (int32_t i = 0; i < m->n_dims; i++) {
        m->dim[i]->fixed = m->fixes && m->dim[i]->pulled && most > 1 && !m->vectors->queued;
        parts += part_of(m->dim[i]);
    }
    for (int32_t i = 0; i < m->n_dims && !status && !is_late(m); i++)
        if (!m->dim[i]->fixed)
            status = find_sizes(m, m->dim[i], m->seconds * part_of(m->dim[i]) / parts);
    if (!status && last && last->known && m->vectors->queued)
        status = make_request(m, last, SUMMING, last->bytes, 1);
    return status || parts == 0 ? status : run_rounds(m);
}

int mc_measure(meshcoll_t *mesh, double seconds, const mc_vectors_t *vectors, bool fixes,
               mc_sight_t *sight)
{
    measuring_t *const m = calloc(1, sizeof *m);
    int status = m ? MESHCOLL_OK : mc_fail_memory("times");
    if (m) {
        *m = (measuring_t){.mesh = mesh, .vectors = vectors, .began = mc_now(), .seconds = seconds};
        m->fixes = fixes;
        status = open_all(m);
    }
    if (!status)
        status = measure(m);
    if (!status)
        status = see(m, sight);
    if (status && !mesh->job->failure.status) /* its own; the others would wait for it */
        (void)meshcoll_abort(mesh, meshcoll_last_error());
    if (m)
        close_all(m);
    return status;
}
