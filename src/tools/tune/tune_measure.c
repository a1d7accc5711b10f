/*
 * Measures the links of a cluster. Small collectives over the whole mesh give the cost of small
 * messages (tune_fit.h). For bandwidth, every line of a dimension is a sub-mesh on its own
 * transports and runs a ring allgather, in which every rank sends and receives all the time. Idle
 * ranks block in a barrier of the whole mesh and use no processor. All series alternate, round by
 * round, so that external load affects all of them equally.
 */
#include "tools/tune/tune_tuner.h"

#include "compose/pace/limits.h"
#include "runtime/choose/choice.h"
#include "runtime/element/datatype.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Pause between two runs, in addition to a barrier: what an application computes between its
 * calls, in which a shaper collects credit. */
static const double burst_pause = 0.2e-3;
/* Longer than for collectives: nothing synchronises these, and the scheduler switches ranks that
 * share a core every few milliseconds. */
static const double least_sums = 100e-3;

/* `often`: batches per round. The time of a sequence is short and varies most with the
 * scheduler. */
static const struct {
    size_index_t request;
    int32_t often;
    bool alone;
} kinds[SERIES] = {{SMALL, 1, false}, {ROW, 3, false},    {QUARTER, 1, false},
                   {LARGE, 1, false}, {QUARTER, 1, true}, {LARGE, 1, true}};

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
    mc_tune_run_both(request);
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
        mc_tune_run(small->request, 1);
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

/* By how much a reduce-scatter is slower than an allgather of the same messages; it may be noise. */
static double sum_on_device(const tuner_t *t)
{
    const dim_t *const d = t->dim[t->n_dims - 1];
    const int32_t repeats = d->series[LARGE_ALL].repeats;
    const double with = mc_batch(t->whole, t->summing, repeats);
    const double more = with - mc_batch(t->whole, d->request[LARGE], repeats);
    return more > 0 ? more / (d->extent - 1) / (double)d->bytes * SUM_BYTES : 0;
}

static int32_t find_sum_repeats(const tuner_t *t)
{
    int32_t repeats = 8;
    while (repeats < MC_MOST_REPEATS && sum_batch(t, repeats) * repeats < least_sums)
        repeats *= 2;
    return repeats;
}

/* Opening ---------------------------------------------------------------------------------------- */

static meshcoll_request_t *request_of(const dim_t *d, size_t bytes, int32_t segments)
{
    meshcoll_request_t *request;
    char strategy[64];
    snprintf(strategy, sizeof strategy, "allgather:ring(%s) segments=%d", d->name, segments);
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

/* The messages of LARGE, in the reverse order, and summed. */
static meshcoll_request_t *summing_of(const dim_t *d)
{
    meshcoll_request_t *request;
    char strategy[64];
    const bool whole = d->pulled;
    snprintf(strategy, sizeof strategy, "reduce_scatter:ring(%s) segments=%d", d->name,
             whole ? 1 : mc_tuner_pieces(d, d->bytes));
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_REDUCE_SCATTER,
                                  .in = d->buffer,
                                  .out = d->buffer + d->bytes * (size_t)meshcoll_rank(d->line),
                                  .count = d->bytes / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_MAX,
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

static meshcoll_request_t *large_of(const dim_t *d, size_t bytes)
{
    return request_of(d, bytes, d->pulled ? 1 : mc_tuner_pieces(d, bytes));
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
    const mc_links_t seen = {.ndims = 1,
                             .dim = {{.alpha = small / messages,
                                      .beta = large / messages / d->lines / (double)d->bytes}}};
    const double window = mc_link_window(&seen, 0);
    if (d->line->share.window == 0 || window <= 1.5 * (double)d->line->share.window)
        return false;
    d->line->share.window = (size_t)window;
    return true;
}

/* The small message sets up connections. The size of the large one is doubled until it takes
 * `enough` seconds. */
static void find_sizes(const tuner_t *t, dim_t *d, double enough)
{
    const size_t p = (size_t)d->extent;
    d->bytes = p * LEAST_LARGE_BYTES > MOST_BYTES ? MOST_BYTES / p / 16 * 16 : LEAST_LARGE_BYTES;
    d->buffer = mc_tune_vector(MOST_BYTES);
    d->request[SMALL] = request_of(d, SMALL_BYTES, 1);
    d->request[ROW] = request_of(d, ROW_MESSAGES * SMALL_BYTES, ROW_MESSAGES);
    d->request[QUARTER] = large_of(d, d->bytes / 4);
    const double small = least_small(t, d);
    for (;;) {
        d->request[LARGE] = large_of(d, d->bytes);
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
    meshcoll_free(d->request[QUARTER]);
    d->request[QUARTER] = large_of(d, d->bytes / 4);
    for (int s = 0; s < SERIES; s++)
        if (is_run(d, (series_index_t)s))
            d->series[s].repeats = mc_repeats_for(batch_of(t, d, (series_index_t)s, 1));
}

static void dim_close(dim_t *d)
{
    for (int r = 0; r < REQUESTS; r++)
        meshcoll_free(d->request[r]);
    meshcoll_destroy(d->line);
    mc_tune_vector_free(d->buffer);
    free(d);
}

/* Rounds ----------------------------------------------------------------------------------------- */

static void run_series(const tuner_t *t, dim_t *d, series_index_t s)
{
    for (int32_t i = 0; i < kinds[s].often; i++)
        mc_series_keep(&d->series[s], batch_of(t, d, s, d->series[s].repeats));
}

/* Where strategies are measured, sub-meshes alone use the link, so a few rounds suffice. */
static bool is_enough(const tuner_t *t, int32_t rounds)
{
    enum { FEW = MC_LEAST_ROUNDS };
    return t->table && rounds >= FEW;
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
    mc_series_keep(&t->sum, t->summing ? sum_on_device(t) : sum_batch(t, t->sum.repeats));
}

static void run_round(tuner_t *t, int32_t round)
{
    if (!is_enough(t, round))
        run_lines(t);
    show(t, "strategies");
    mc_tune_table_run(t->table);
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

static void tuner_open(tuner_t *t, const mc_cluster_t *cluster, const mc_ranks_t *ranks)
{
    const mc_mesh_t *const mesh = &cluster->mesh;
    /* a round lasts about 2.5 times the large messages of all dimensions */
    const double enough = t->seconds / 40;
    t->whole = mc_tune_open(cluster, ranks);
    t->shows = meshcoll_rank(t->whole) == 0 && has_terminal();
    show(t, "connecting");
    t->sums = mc_tune_vector(3 * SUM_BYTES);
    open_shapes(t, mesh);
    open_burst(t, mesh);
    if (!mc_tune_on_device())
        t->sum.repeats = find_sum_repeats(t);
    for (int32_t d = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            t->dim[t->n_dims++] = dim_open(t, cluster, d);
    for (int32_t i = 0; i < t->n_dims; i++)
        t->inner = t->dim[i]->pulled ? t->inner : t->dim[i];
    show(t, "strategies");
    /* a part of a ragged mesh is no mesh that anyone uses alone */
    if (ranks->bootstrap)
        mc_tune_check(mc_tune_table_open(cluster, t->whole, &t->table), "strategies");
    for (int32_t i = 0; i < t->n_dims; i++)
        find_sizes(t, t->dim[i], enough / t->n_dims / (t->table ? 10 : 1));
    if (mc_tune_on_device())
        t->summing = summing_of(t->dim[t->n_dims - 1]);
}

static void tuner_close(tuner_t *t)
{
    if (t->shows)
        fprintf(stderr, "\r%72s\r", "");
    meshcoll_free(t->summing);
    for (int32_t i = 0; i < t->n_dims; i++)
        dim_close(t->dim[i]);
    for (int32_t i = 0; i < t->n_shapes; i++)
        small_close(&t->shape[i]);
    small_close(&t->burst[0]);
    small_close(&t->burst[1]);
    meshcoll_destroy(t->whole);
    mc_tune_vector_free(t->sums);
    free(t);
}

void mc_tune_measure(const mc_cluster_t *cluster, const mc_ranks_t *ranks, double seconds,
                     mc_tuning_t *tuning)
{
    const mc_mesh_t *const mesh = &cluster->mesh;
    tuner_t *const t = mc_tune_allocate(sizeof *t);
    *tuning = (mc_tuning_t){0};
    t->seconds = seconds;
    t->begin = mc_now();
    tuner_open(t, cluster, ranks);
    tuning->rounds = run_rounds(t);
    tuning->gamma = mc_series_median(&t->sum) / SUM_BYTES;
    tuning->seconds = mc_now() - t->begin;
    for (int32_t d = 0, i = 0; d < mesh->ndims; d++)
        if (mesh->dim[d].extent > 1)
            tuning->dim[d] = mc_tuner_seen(t, t->dim[i++]);
    mc_tuner_see_messages(t, mesh, tuning);
    mc_tune_check(mc_tune_table_close(t->table, &tuning->measured), "strategies");
    tuner_close(t);
}
