/*
 * Measures the links of a cluster. Small collectives over the whole mesh give the cost of small
 * messages (tune_fit.h). For bandwidth, every line of a dimension is a sub-mesh on its own
 * transports and runs a ring allgather, in which every rank sends and receives all the time. Idle
 * ranks block in a barrier of the whole mesh and use no processor. All series alternate, round by
 * round, so that external load affects all of them equally.
 */
#include "tools/tune/tune.h"

#include <meshcoll/mpi.h>

#include "compose/pace/limits.h"
#include "runtime/choose/choice.h"
#include "runtime/element/datatype.h"
#include "tools/tune/tune_batch.h"
#include "tools/tune/tune_fit.h"
#include "tools/tune/tune_points.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL_BYTES = 8,             /* of a message */
    ROW_MESSAGES = 128,          /* segments without dependencies on each other */
    LEAST_LARGE_BYTES = 1 << 20, /* traffic shapers and buffers let short bursts pass faster */
    MOST_BYTES = 32 << 20,       /* of all blocks of a line */
    FINE_BYTES = 4 << 10,        /* of a small piece, to measure the overhead per piece */
    RARE_BYTES = 128 << 10,      /* of a piece where the receivers limit their senders */
    SUM_BYTES = 1 << 20,         /* of a vector that is reduced in memory */
    BURST_SHOTS = 12 /* per round; after two the initial credit of a shaper is used up */
};
/* Pause between two runs, in addition to a barrier: what an application computes between its
 * calls, in which a shaper collects credit. */
static const double burst_pause = 0.2e-3;
/* Longer than for collectives: nothing synchronises these, and the scheduler switches ranks that
 * share a core every few milliseconds. */
static const double least_sums = 100e-3;

/* Three message sizes, a sequence of small messages and two sizes of pieces; on one line or on
 * all lines. */
typedef enum { SMALL, ROW, QUARTER, LARGE, FROM_ALL, COARSE, FINE, REQUESTS } size_index_t;
typedef enum {
    SMALL_ALL,
    ROW_ALL,
    QUARTER_ALL,
    LARGE_ALL,
    FROM_ALL_ALL,
    QUARTER_ALONE,
    LARGE_ALONE,
    COARSE_ALONE,
    FINE_ALONE,
    SERIES
} series_index_t;
/* `often`: batches per round. The time of a sequence is short and varies most with the
 * scheduler. */
static const struct {
    size_index_t request;
    int32_t often;
    bool alone;
} kinds[SERIES] = {{SMALL, 1, false}, {ROW, 3, false},      {QUARTER, 1, false},
                   {LARGE, 1, false}, {FROM_ALL, 1, false}, {QUARTER, 1, true},
                   {LARGE, 1, true},  {COARSE, 1, true},    {FINE, 1, true}};

/* One dimension, and this rank's line in it. */
typedef struct {
    const char *name;
    int32_t extent, lines;
    bool pulled;
    bool among_alone; /* is this the line of its box that runs when one line runs? */
    meshcoll_t *line;
    bool widened; /* was the window of its wire increased? */
    char *buffer;
    size_t bytes; /* of the large message */
    /* bytes sent in small pieces, on a wire; 0 otherwise. One line per box sends them: where
     * several share a port, small messages are merged into packets. */
    size_t fine;
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
    mc_tune_points_t *points;
    float *sums; /* three vectors */
    mc_series_t sum;
    double begin, seconds;
    bool shows; /* progress, on a terminal */
} tuner_t;

/* mpirun connects its ranks to a pipe; its output goes to the stderr of mpirun. */
static bool has_terminal(void)
{
    char path[64];
    if (isatty(STDERR_FILENO))
        return true;
    snprintf(path, sizeof path, "/proc/%ld/fd/2", (long)getppid());
    const int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
    const bool is_terminal = fd >= 0 && isatty(fd);
    if (fd >= 0)
        close(fd);
    return is_terminal;
}

static void show(const tuner_t *t, const char *what)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################";
    if (!t->shows)
        return;
    double part = (mc_now() - t->begin) / t->seconds;
    part = part < 1 ? part : 1;
    fprintf(stderr, "\rmeshcoll tune: [%-*.*s] %3.0f %%  %-16s", WIDTH, (int)(part * WIDTH), full,
            100 * part, what);
}

/* Batches ---------------------------------------------------------------------------------------- */

/* With a single line, QUARTER_ALONE and LARGE_ALONE are the same as all lines. */
static bool is_run(const dim_t *d, series_index_t s)
{
    const bool known = d->lines == 1 && (s == QUARTER_ALONE || s == LARGE_ALONE);
    return d->request[kinds[s].request] && !known;
}

static double batch_of(const tuner_t *t, const dim_t *d, series_index_t s, int32_t repeats)
{
    const bool mine = !kinds[s].alone || d->among_alone;
    return mc_batch(t->whole, mine ? d->request[kinds[s].request] : NULL, repeats);
}

/* Seconds of large messages along two dimensions concurrently. That is the longer of both times
 * where each has a wire, and their sum where they share one. */
static double batch_of_both(const tuner_t *t, const dim_t *d, const dim_t *other)
{
    meshcoll_request_t *const request[] = {d->request[LARGE], other->request[LARGE]};
    mc_tune_check(meshcoll_barrier(t->whole), "a barrier");
    const double begin = mc_now();
    for (int i = 0; i < 2; i++)
        mc_tune_check(meshcoll_start(request[i]), "a start");
    for (int i = 0; i < 2; i++)
        mc_tune_check(meshcoll_wait(request[i]), "a message");
    return mc_tune_most(t->whole, mc_now() - begin);
}

static void sleep_until(double moment)
{
    const double left = moment - mc_now();
    const struct timespec time = {0, (long)(1e9 * left)};
    if (left > 0)
        nanosleep(&time, NULL);
}

/* The pauses are equal on all runs: the maxima over all ranks are exchanged afterwards. */
static void shoot(const tuner_t *t, small_t *small)
{
    double mine[BURST_SHOTS], ended = mc_now();
    for (int i = 0; i < BURST_SHOTS; i++) {
        sleep_until(ended + burst_pause);
        mc_tune_check(meshcoll_barrier(t->whole), "a barrier");
        const double begin = mc_now();
        mc_tune_check(meshcoll_start(small->request), "a start");
        mc_tune_check(meshcoll_wait(small->request), "a burst");
        ended = mc_now();
        mine[i] = ended - begin;
    }
    for (int i = 0; i < BURST_SHOTS; i++)
        mc_series_keep(&small->series, mc_tune_most(t->whole, mine[i]));
}

static double sum_batch(const tuner_t *t, int32_t repeats)
{
    const size_t n = SUM_BYTES / sizeof(float);
    const mc_kernel_t add = mc_kernel(MESHCOLL_FLOAT32, MESHCOLL_SUM);
    mc_tune_check(meshcoll_barrier(t->whole), "a barrier");
    const double begin = mc_now();
    for (int32_t i = 0; i < repeats; i++)
        add(t->sums, t->sums + n, t->sums + 2 * n, n);
    return mc_tune_most(t->whole, mc_now() - begin) / repeats;
}

static int32_t find_sum_repeats(const tuner_t *t)
{
    int32_t repeats = 8;
    while (repeats < MC_MOST_REPEATS && sum_batch(t, repeats) * repeats < least_sums)
        repeats *= 2;
    return repeats;
}

/* Opening ---------------------------------------------------------------------------------------- */

static meshcoll_request_t *request_of(const dim_t *d, const char *algorithm, size_t bytes,
                                      int32_t segments)
{
    meshcoll_request_t *request;
    char strategy[64];
    snprintf(strategy, sizeof strategy, "allgather:%s(%s) segments=%d", algorithm, d->name,
             segments);
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLGATHER,
                                  .in = d->buffer + bytes * (size_t)meshcoll_rank(d->line),
                                  .out = d->buffer,
                                  .count = bytes / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .strategy = strategy};
    mc_tune_check(meshcoll_init(d->line, &args, &request), strategy);
    return request;
}

static dim_t *dim_open(const tuner_t *t, const mc_cluster_t *c, int32_t index)
{
    dim_t *const d = mc_tune_allocate(sizeof *d);
    d->name = c->mesh.dim[index].name;
    d->extent = c->mesh.dim[index].extent;
    d->pulled = mc_tune_is_pulled(c, index);
    d->lines = mc_mesh_stride(&c->mesh, index);
    d->among_alone = t->whole->rank % d->lines == 0;
    mc_tune_check(meshcoll_split(t->whole, d->name, &d->line), d->name);
    return d;
}

static void small_open(const tuner_t *t, const char *strategy, size_t count, small_t *small)
{
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = t->sums,
                                  .out = t->sums,
                                  .count = count,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_MAX,
                                  .strategy = strategy};
    mc_tune_check(meshcoll_init(t->whole, &args, &small->request), strategy);
    double once = 0; /* the first one connects */
    for (int i = 0; i < 3; i++)
        once = mc_batch(t->whole, small->request, 1);
    small->series.repeats = mc_repeats_for(once);
}

/* One element for each rank of the longest line, as rings cut the vector along one. */
static void open_shapes(tuner_t *t, const mc_mesh_t *mesh)
{
    char strategy[MC_TUNE_SHAPE];
    size_t count = 1;
    for (int32_t d = 0; d < mesh->ndims; d++)
        count = (size_t)mesh->dim[d].extent > count ? (size_t)mesh->dim[d].extent : count;
    for (; mc_tune_shape(mesh, t->n_shapes, strategy); t->n_shapes++)
        small_open(t, strategy, count, &t->shape[t->n_shapes]);
}

static void open_burst(tuner_t *t, const mc_mesh_t *mesh)
{
    char strategy[MC_TUNE_SHAPE];
    if (!mc_tune_burst(mesh, strategy))
        return;
    small_open(t, strategy, 1, &t->burst[0]);
    small_open(t, strategy, MC_TUNE_BURST / sizeof(float), &t->burst[1]);
}

static void small_close(small_t *small)
{
    meshcoll_free(small->request);
}

static int32_t cut(size_t bytes, size_t piece)
{
    const size_t pieces = (bytes + piece - 1) / piece;
    return pieces < MC_MAX_SEGMENTS ? (int32_t)pieces : MC_MAX_SEGMENTS;
}

/* On a wire a message is sent in pieces that flow control can delay, as in pipelines and
 * exchanges. Longer pieces put more bytes into the TCP buffers of a box than queues on the path
 * hold (docs/lab-notes/network.md). Without pieces a full mesh would also send everything to the first
 * neighbour, then to the second, … */
static int32_t pieces_of(const dim_t *d, size_t bytes)
{
    return cut(bytes, d->line->window ? mc_pacing_message(d->line->window, d->line->concurrent)
                                      : RARE_BYTES);
}

static meshcoll_request_t *large_of(const dim_t *d, const char *algorithm, size_t bytes)
{
    const bool whole = d->pulled && strcmp(algorithm, "ring") == 0;
    return request_of(d, algorithm, bytes, whole ? 1 : pieces_of(d, bytes));
}

/* The number of bytes that can be cut into small pieces. */
static void open_pieces(dim_t *d)
{
    const size_t most = (size_t)MC_MAX_SEGMENTS * FINE_BYTES;
    if (d->pulled)
        return;
    d->fine = d->bytes < most ? d->bytes : most;
    if (d->fine < d->bytes)
        d->request[COARSE] = large_of(d, "ring", d->fine);
    d->request[FINE] = request_of(d, "ring", d->fine, cut(d->fine, FINE_BYTES));
}

static series_index_t coarse_of(const dim_t *d)
{
    if (d->request[COARSE])
        return COARSE_ALONE;
    return d->lines > 1 ? LARGE_ALONE : LARGE_ALL;
}

/* Seconds of the small message: the least of several, after connection setup. */
static double least_small(const tuner_t *t, const dim_t *d)
{
    double least = INFINITY;
    for (int i = 0; i < 3; i++)
        batch_of(t, d, SMALL_ALL, 1);
    for (int i = 0; i < 3; i++) {
        const double once = batch_of(t, d, SMALL_ALL, 8);
        least = once < least ? once : least;
    }
    return least;
}

/* A wire limited by its window has that many bytes in flight per round trip, and needs twice
 * that. With a sufficient window it shows its rate. An increase by less than half is noise.
 * Returns whether the window was increased. */
static bool widen(dim_t *d, double small, double large)
{
    const double messages = d->extent - 1;
    const mc_link_t seen = {.alpha = small / messages,
                            .beta = large / messages / d->lines / (double)d->bytes};
    const double window = mc_link_window(&seen);
    if (d->line->window == 0 || window <= 1.5 * (double)d->line->window)
        return false;
    d->line->window = (size_t)window;
    return d->widened = true;
}

/* The small message sets up connections. The size of the large one is doubled until it takes
 * `enough` seconds. */
static void find_sizes(const tuner_t *t, dim_t *d, double enough)
{
    const size_t p = (size_t)d->extent;
    d->bytes = p * LEAST_LARGE_BYTES > MOST_BYTES ? MOST_BYTES / p / 16 * 16 : LEAST_LARGE_BYTES;
    d->buffer = mc_tune_allocate(MOST_BYTES);
    d->request[SMALL] = request_of(d, "ring", SMALL_BYTES, 1);
    d->request[ROW] = request_of(d, "ring", ROW_MESSAGES * SMALL_BYTES, ROW_MESSAGES);
    d->request[QUARTER] = large_of(d, "ring", d->bytes / 4);
    const double small = least_small(t, d);
    for (;;) {
        d->request[LARGE] = large_of(d, "ring", d->bytes);
        const double once = batch_of(t, d, LARGE_ALL, 1);
        if (widen(d, small, once)) {
            meshcoll_free(d->request[LARGE]);
            continue;
        }
        if (once >= enough || 2 * d->bytes * p > MOST_BYTES)
            break;
        d->bytes *= 2;
        meshcoll_free(d->request[LARGE]);
    }
    d->request[FROM_ALL] = large_of(d, "fullmesh", d->bytes);
    meshcoll_free(d->request[QUARTER]);
    d->request[QUARTER] = large_of(d, "ring", d->bytes / 4);
    open_pieces(d);
    for (int s = 0; s < SERIES; s++)
        if (is_run(d, (series_index_t)s))
            d->series[s].repeats = mc_repeats_for(batch_of(t, d, (series_index_t)s, 1));
    /* the initial credit of a shaper is the same share of both */
    d->series[FINE_ALONE].repeats = d->series[coarse_of(d)].repeats;
}

static void dim_close(dim_t *d)
{
    for (int r = 0; r < REQUESTS; r++)
        meshcoll_free(d->request[r]);
    meshcoll_destroy(d->line);
    free(d->buffer);
    free(d);
}

/* Rounds ----------------------------------------------------------------------------------------- */

static void run_series(const tuner_t *t, dim_t *d, series_index_t s)
{
    for (int32_t i = 0; i < kinds[s].often; i++)
        mc_series_keep(&d->series[s], batch_of(t, d, s, d->series[s].repeats));
}

/* The link of a line without a size is used only where no size was measured, so a few rounds
 * suffice where sizes are measured. */
static bool is_enough(const tuner_t *t, int32_t rounds)
{
    enum { FEW = 2 };
    return t->points && rounds >= FEW;
}

static void run_lines(tuner_t *t)
{
    for (int32_t i = 0; i < t->n_dims; i++) {
        dim_t *const d = t->dim[i];
        show(t, d->name);
        for (int s = 0; s < SERIES; s++)
            if (is_run(d, (series_index_t)s))
                run_series(t, d, (series_index_t)s);
        if (t->inner && d != t->inner && !d->pulled)
            mc_series_keep(&d->both, batch_of_both(t, d, t->inner));
    }
    show(t, "small ones");
    for (int32_t i = 0; i < t->n_shapes; i++) {
        small_t *const s = &t->shape[i];
        mc_series_keep(&s->series, mc_batch(t->whole, s->request, s->series.repeats));
    }
    for (int i = 0; i < 2; i++)
        if (t->burst[i].request)
            shoot(t, &t->burst[i]);
    show(t, "summing");
    mc_series_keep(&t->sum, sum_batch(t, t->sum.repeats));
}

static void run_round(tuner_t *t, int32_t round)
{
    if (!is_enough(t, round))
        run_lines(t);
    show(t, "sizes");
    mc_tune_points_run(t->points);
}

/* As many rounds as fit into the time, at least one. */
static int32_t run_rounds(tuner_t *t)
{
    int32_t rounds = 0;
    double longest = 0;
    for (double now = mc_tune_most(t->whole, mc_now() - t->begin);
         rounds == 0 || (now + longest < t->seconds && rounds < MC_MOST_ROUNDS); rounds++) {
        const double before = now;
        run_round(t, rounds);
        now = mc_tune_most(t->whole, mc_now() - t->begin);
        if (now - before > longest || is_enough(t, rounds))
            longest = now - before;
    }
    return rounds;
}

/* Seconds per byte of the p-1 messages of a ring. On a wire only the large ones count: where
 * many ranks share a port, packets of the quarter are lost at the start, which a slope would
 * subtract. */
static double slope(const dim_t *d, double quarter, double large)
{
    const double messages = d->extent - 1, bytes = (double)d->bytes;
    if (large > quarter && d->pulled)
        return (large - quarter) / messages / (bytes * 3 / 4);
    return large / messages / bytes; /* or the difference is noise */
}

/* Seconds per message, of those that a ring sends after its first segment. */
static double in_row(const dim_t *d, double small, double row)
{
    const double messages = (d->extent - 1) * (ROW_MESSAGES - 1);
    /* the difference is noise: use the upper bound */
    return (row > small ? row - small : row) / messages;
}

/* With p-1 senders it is 1 - 1/(p-1) of the limit for many senders. */
static double incast(const dim_t *d, double large, double from_all)
{
    const double senders = d->extent - 1;
    return senders > 1 && from_all > large ? (from_all / large - 1) / (1 - 1 / senders) : 0;
}

/* Of a ring with the block of each rank cut into n pieces; zeros where it was not cut. */
static mc_tune_pieces_t pieces(const dim_t *d, int32_t n, double time)
{
    if (n == 0)
        return (mc_tune_pieces_t){0, 0};
    return (mc_tune_pieces_t){(double)d->fine / n, time / (d->extent - 1) / n};
}

/* The limit lies halfway between the longer time and the sum: both may share a core or a switch. */
static bool has_own_wire(const tuner_t *t, dim_t *d)
{
    bool any = false; /* the innermost one has its own wire where another one does */
    for (int32_t i = 0; i < t->n_dims && d == t->inner; i++)
        any = any || (t->dim[i] != d && has_own_wire(t, t->dim[i]));
    if (d->both.n == 0)
        return any;
    const double large = mc_series_median(&d->series[LARGE_ALL]);
    const double inner = mc_series_median(&t->inner->series[LARGE_ALL]);
    return mc_series_median(&d->both) < fmax(large, inner) + fmin(large, inner) / 2;
}

static mc_seen_t seen(const tuner_t *t, dim_t *d)
{
    double time[SERIES];
    for (int s = 0; s < SERIES; s++)
        time[s] = mc_series_median(&d->series[s]);
    mc_seen_t seen = {.ranks = meshcoll_size(t->whole),
                      .lines = d->lines,
                      .row = in_row(d, time[SMALL_ALL], time[ROW_ALL]),
                      .incast = incast(d, time[LARGE_ALL], time[FROM_ALL_ALL]),
                      .together = slope(d, time[QUARTER_ALL], time[LARGE_ALL]),
                      .window = d->widened ? (double)d->line->window : 0,
                      .own_wire = has_own_wire(t, d),
                      .bytes = d->bytes,
                      .piece = (double)d->bytes / pieces_of(d, d->bytes),
                      .coarse = pieces(d, pieces_of(d, d->fine), time[coarse_of(d)]),
                      .fine = pieces(d, cut(d->fine, FINE_BYTES), time[FINE_ALONE])};
    seen.alone = d->lines > 1 ? slope(d, time[QUARTER_ALONE], time[LARGE_ALONE]) : seen.together;
    return seen;
}

/* Parameters of all dimensions from the small collectives. */
static void see_small(tuner_t *t, const mc_mesh_t *mesh, mc_tuning_t *tuning)
{
    double seconds[MC_TUNE_SHAPES] = {0}, alpha[MC_MAX_DIMS], cpu[MC_MAX_DIMS];
    for (int32_t i = 0; i < t->n_shapes; i++)
        seconds[i] = mc_series_median(&t->shape[i].series);
    mc_tune_check(mc_tune_fit(mesh, seconds, alpha, cpu), "small messages");
    for (int32_t d = 0; d < mesh->ndims; d++) {
        tuning->dim[d].alpha = alpha[d];
        tuning->dim[d].cpu = cpu[d];
    }
    tuning->burst = mc_series_median(&t->burst[1].series) - mc_series_median(&t->burst[0].series);
}

void mc_tune_measure(const mc_cluster_t *cluster, MPI_Comm comm, double seconds,
                     mc_tuning_t *tuning)
{
    const mc_mesh_t *const mesh = &cluster->mesh;
    /* a round lasts about 2.5 times the large messages of all dimensions */
    const double enough = seconds / 40;
    tuner_t *const t = mc_tune_allocate(sizeof *t);
    mc_tuning_t result = {0};
    t->seconds = seconds;
    t->begin = mc_now();
    int32_t line = 0;
    const double pieces = mc_tune_find_pieces(cluster, comm, seconds / 10, &line);
    t->whole = mc_tune_open(cluster, comm, pieces);
    t->shows = meshcoll_rank(t->whole) == 0 && has_terminal();
    show(t, "connecting");
    t->sums = mc_tune_allocate(3 * SUM_BYTES);
    open_shapes(t, mesh);
    open_burst(t, mesh);
    t->sum.repeats = find_sum_repeats(t);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            t->dim[t->n_dims++] = dim_open(t, cluster, d);
    for (int32_t i = 0; i < t->n_dims; i++)
        t->inner = t->dim[i]->pulled ? t->inner : t->dim[i];
    show(t, "sizes");
    if (comm ==
        MPI_COMM_WORLD) /* the sizes of a part of a ragged mesh are not those of the whole */
        mc_tune_check(mc_tune_points_open(cluster, t->whole, &t->points), "several sizes");
    for (int32_t i = 0; i < t->n_dims; i++)
        find_sizes(t, t->dim[i], enough / t->n_dims / (t->points ? 10 : 1));

    result.rounds = run_rounds(t);
    result.gamma = mc_series_median(&t->sum) / SUM_BYTES;
    result.seconds = mc_now() - t->begin;
    for (int32_t d = 0, i = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            result.dim[d] = seen(t, t->dim[i++]);
    result.dim[line].pieces = pieces;
    see_small(t, mesh, &result);
    mc_tune_check(mc_tune_points_close(t->points, &result), "several sizes");
    if (t->shows)
        fprintf(stderr, "\r%72s\r", "");
    for (int32_t i = 0; i < t->n_dims; i++)
        dim_close(t->dim[i]);
    for (int32_t i = 0; i < t->n_shapes; i++)
        small_close(&t->shape[i]);
    small_close(&t->burst[0]);
    small_close(&t->burst[1]);
    meshcoll_destroy(t->whole);
    free(t->sums);
    free(t);
    *tuning = result;
}
