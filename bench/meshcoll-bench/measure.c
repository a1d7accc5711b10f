/*
 * Measures one size. All strategies alternate, round by round, so that external load affects all
 * of them equally. The time of an iteration is that of its slowest rank, by its own clock, or with
 * a gate from the common release.
 */
#include "bench.h"
#include "runtime/handle/handle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_ROUNDS = 3, LATE_US = 2000 };

/* Per iteration, on this rank. */
typedef struct {
    double *time;
    int n, capacity;
} times_t;

/* One contender at one size. */
typedef struct {
    const contender_t *who;
    meshcoll_request_t *request; /* NULL for another library's */
    times_t in_time, late;       /* the barrier before these was (gate_late) */
    double elapsed, spent; /* seconds in timed operations; and including what runs between them */
    double cpu;            /* of calls that were enqueued in timed operations */
    uint64_t sent[MC_MAX_DIMS], wrong;
} lane_t;

static void check_status(int status, const contender_t *who, const char *what)
{
    if (status != MESHCOLL_OK)
        die("%s of \"%s\": %s", what, who->label, meshcoll_last_error());
}

meshcoll_request_t *request_open(const bench_t *bench, const view_t *view, const contender_t *who)
{
    const options_t *const o = &bench->options;
    meshcoll_request_t *request;
    const meshcoll_args_t args = {
        .size = sizeof args,
        .collective = o->collective,
        .in = device_at(bench, view->in.at),
        .out = device_at(bench, view->out.at),
        .count = view->count,
        .datatype = o->datatype,
        .op = o->op,
        .root = o->root,
        .strategy = who->kind == FORCED ? who->label : NULL,
    };
    const bool own = o->barrier && who->kind == PLANNED;
    check_status(own ? meshcoll_barrier_init(bench->handle, &request)
                     : meshcoll_init(bench->handle, &args, &request),
                 who, "initialisation");
    return request;
}

void request_run(meshcoll_request_t *request, const contender_t *who)
{
    check_status(meshcoll_start(request), who, "start");
    check_status(meshcoll_wait(request), who, "wait");
}

/* What is enqueued. */
typedef struct {
    const bench_t *bench;
    const view_t *view;
    const lane_t *lane;
} call_t;

static void enqueue(const void *context)
{
    const call_t *const c = context;
    if (c->lane->request)
        check_status(meshcoll_enqueue_request(c->lane->request, c->bench->gpu.stream), c->lane->who,
                     "enqueueing");
    else
        own_nccl_enqueue(c->bench, c->view);
}

/* On device memory the stream is waited for: requests there are enqueued, and NCCL has no call that waits. */
static void run(const bench_t *bench, const view_t *view, const lane_t *lane)
{
    const call_t call = {bench, view, lane};
    if (bench->options.device) {
        enqueue(&call);
        device_wait(bench);
    } else if (lane->request) {
        request_run(lane->request, lane->who);
    } else {
        mpi_run(bench, view);
    }
}

/* Runs it; returns its seconds since `begin`, or of one of those enqueued. */
static double run_clocked(const bench_t *bench, const view_t *view, lane_t *lane, double begin)
{
    const call_t call = {bench, view, lane};
    if (bench->options.enqueue > 0)
        return device_timed(bench, enqueue, &call, &lane->cpu);
    run(bench, view, lane);
    return mc_now() - begin;
}

/* A rank that is done waits in a barrier of the measured library, as the peers do in theirs
 * (compare/peer.c). In a barrier of another library it might take a shared core from ranks that
 * still run the operation. */
static void wait_for_all(const bench_t *bench, const lane_t *lane)
{
    if (lane->who->kind == MPI_OWN)
        bench->mpi->barrier();
    else
        check_status(meshcoll_barrier(bench->handle), lane->who, "a barrier");
}

/* Returns when the iteration began. The barrier before the gate is the one of the measured
 * library, as in compare/peer.c: the remaining burst of a shaper is then the same for all, and a
 * rank that is done takes no core from one that is not. */
static double begin_together(const bench_t *bench, const lane_t *lane, const view_t *given)
{
    const view_t *const used = bench->options.device ? NULL : given;
    if (used && !bench->gate)
        data_use(bench, used);
    wait_for_all(bench, lane);
    if (bench->gate)
        gate_met(bench->gate, mc_now());
    if (used && bench->gate)
        data_use(bench, used);
    return bench->gate ? gate_pass(bench->gate) : mc_now();
}

static void run_checked(bench_t *bench, const view_t *view, lane_t *lane)
{
    const bool device = bench->options.device;
    const view_t mine = lane->who->kind == MPI_OWN ? mpi_view(bench, view) : *view;
    data_fill(bench, &mine);
    if (device)
        device_put(bench, &mine);
    begin_together(bench, lane, NULL);
    run(bench, &mine, lane);
    if (device)
        device_get(bench, &mine);
    lane->wrong += ranks_sum(bench, data_wrong(bench, &mine));
}

/* Checks that no rank leaves the barrier before all have entered: one rank, a different one each
 * time, is late. Needs a common clock, thus a gate. */
static void run_barrier_checked(bench_t *bench, const view_t *view, lane_t *lane)
{
    begin_together(bench, lane, NULL);
    if (bench->rank == (int)(bench->salt++ % (uint64_t)bench->size))
        usleep(LATE_US);
    const double came = mc_now();
    run(bench, view, lane);
    const double left = mc_now();
    const double last = ranks_most(bench, came);
    lane->wrong += ranks_sum(bench, left < last);
}

static bool is_checked(const bench_t *bench)
{
    return bench->options.check && (!bench->options.barrier || bench->gate);
}

static void check_all(bench_t *bench, const view_t *view, lane_t *lane, int n)
{
    for (int i = 0; i < n && is_checked(bench); i++)
        if (bench->options.barrier)
            run_barrier_checked(bench, view, &lane[i]);
        else
            run_checked(bench, view, &lane[i]);
}

static void keep_time(times_t *times, double seconds)
{
    if (times->n == times->capacity) {
        const int capacity = times->capacity ? 2 * times->capacity : 64;
        double *const grown = realloc(times->time, (size_t)capacity * sizeof *grown);
        if (!grown)
            die("out of memory for %d times", capacity);
        times->time = grown;
        times->capacity = capacity;
    }
    times->time[times->n++] = seconds;
}

/* Like a timed run, without the clock. */
static void run_again(const bench_t *bench, const view_t *view, const lane_t *lane)
{
    begin_together(bench, lane, view);
    run(bench, view, lane);
    if (bench->gate)
        gate_leave(bench->gate, mc_now());
}

static void run_timed(const bench_t *bench, const view_t *view, lane_t *lane)
{
    uint64_t before[MC_MAX_DIMS];
    const double came = mc_now();
    for (int i = 0; i < bench->options.again; i++)
        run_again(bench, view, lane);
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        before[d] = meshcoll_bytes_sent(bench->handle, d);
    const double begin = begin_together(bench, lane, view);
    const double seconds = run_clocked(bench, view, lane, begin);
    const double end = mc_now();
    if (bench->gate)
        gate_leave(bench->gate, end);
    lane->elapsed += end - begin;
    lane->spent += end - came;
    keep_time(bench->gate && gate_late(bench->gate) ? &lane->late : &lane->in_time, seconds);
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        lane->sent[d] += meshcoll_bytes_sent(bench->handle, d) - before[d];
    if (!bench->gate)
        wait_for_all(bench, lane);
}

static int least_rounds(const options_t *o)
{
    return o->iterations < LEAST_ROUNDS ? o->iterations : LEAST_ROUNDS;
}

/* Is another round needed? The clock of rank 0 decides for all. Late iterations are repeated
 * while the lane has time left. */
static char wants_more(const options_t *o, const lane_t *lane)
{
    const int all = lane->in_time.n + lane->late.n;
    const bool again = lane->spent < o->max_time;
    if (o->max_time > 0 && all >= least_rounds(o) && lane->elapsed >= o->max_time)
        return 0;
    return (again ? lane->in_time.n : all) < o->iterations || lane->elapsed < o->min_time;
}

/* Late iterations count only where too few others exist; returns how many count. */
static int add_late_ones(const options_t *o, lane_t *lane)
{
    if (lane->in_time.n >= least_rounds(o))
        return 0;
    for (int i = 0; i < lane->late.n; i++)
        keep_time(&lane->in_time, lane->late.time[i]);
    return lane->late.n;
}

/* The same on all ranks (Fisher, Yates 1938). */
static void shuffle(int *order, int n, unsigned short seed[3])
{
    for (int i = n - 1; i > 0; i--) {
        const int other = (int)(nrand48(seed) % (i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* Each round runs in a different order: an operation leaves data in caches, and a strategy that
 * always follows the same one would pay for that. */
static void run_rounds(const bench_t *bench, const view_t *view, lane_t *lane, int n)
{
    char *const more = malloc((size_t)n);
    int *const order = malloc((size_t)n * sizeof *order);
    unsigned short seed[3] = {1};
    if (!more || !order)
        die("out of memory for %d strategies", n);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (bool any = true; any;) {
        for (int i = 0; i < n; i++)
            more[i] = wants_more(&bench->options, &lane[i]);
        ranks_tell(bench, more, (size_t)n);
        shuffle(order, n, seed);
        any = false;
        for (int i = 0; i < n; i++)
            if (more[order[i]]) {
                run_timed(bench, view, &lane[order[i]]);
                any = true;
            }
    }
    free(order);
    free(more);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *sorted, int n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Bytes of the busiest box across dimension d in one iteration; collective. */
static double busiest(const bench_t *bench, const lane_t *lane, int32_t d)
{
    /* of the ranks that share coordinates 0…d, which a mesh rank's quotient numbers */
    const uint64_t mine[] = {(uint64_t)(bench->handle->rank / mc_mesh_stride(&bench->mesh, d)),
                             lane->sent[d]};
    uint64_t(*const all)[2] = malloc((size_t)bench->size * sizeof *all), sum = 0;
    if (!all)
        die("out of memory for the bytes of %d ranks", bench->size);
    ranks_gather(bench, mine, all, sizeof mine);
    for (int r = 0; r < bench->size; r++)
        sum += all[r][0] == mine[0] ? all[r][1] : 0;
    free(all);
    return ranks_most(bench, (double)sum) / (lane->in_time.n + lane->late.n);
}

static void add_row(bench_t *bench, const row_t *row)
{
    row_t *const grown = realloc(bench->row, (size_t)(bench->n_rows + 1) * sizeof *grown);
    if (!grown)
        die("out of memory for the rows");
    bench->row = grown;
    bench->row[bench->n_rows++] = *row;
}

static void make_row(bench_t *bench, const view_t *view, const lane_t *lane, row_t *row)
{
    const options_t *const o = &bench->options;
    const uint64_t bytes = view->whole * meshcoll_datatype_size(o->datatype);
    *row = (row_t){.bytes = bytes,
                   .count = view->count,
                   .label = lane->who->label,
                   .other = !lane->request,
                   .predicted = NAN,
                   .algbw = NAN,
                   .busbw = NAN,
                   .cpu = NAN,
                   .checked = is_checked(bench),
                   .wrong = lane->wrong};
    if (o->barrier) /* no bytes of anybody's, and nothing known that bounds it */
        row->bytes = row->count = 0;
    row->bound = o->barrier ? 0
                            : mc_lower_bound(o->collective, &bench->mesh, &bench->bound_links,
                                             (double)bytes);
    if (row->bound == 0)
        row->bound = NAN;
    if (lane->request)
        row->predicted = meshcoll_request_predicted(lane->request);
    row->strategy =
        strdup(lane->request ? meshcoll_request_strategy(lane->request) : lane->who->label);
    if (!row->strategy)
        die("out of memory for the rows");
}

/* What nccl-tests multiplies the rate of an algorithm with, so that the result is a rate of links, whatever the
 * number of ranks. */
static double bus_factor(meshcoll_collective_t collective, int ranks)
{
    const double n = ranks;
    switch (collective) {
    case MESHCOLL_BCAST:
    case MESHCOLL_REDUCE:
        return 1;
    case MESHCOLL_ALLREDUCE:
        return 2 * (n - 1) / n;
    default:
        return (n - 1) / n;
    }
}

/* CPU seconds of one enqueued call on the rank that takes most; collective. */
static double enqueue_cpu(const bench_t *bench, const lane_t *lane)
{
    const int calls = lane->in_time.n * bench->options.enqueue;
    const double mine = calls > 0 ? lane->cpu / calls : NAN;
    return ranks_most(bench, mine);
}

/* Reduces the times of all ranks and appends the row on rank 0. */
static void close_lane(bench_t *bench, const view_t *view, lane_t *lane)
{
    row_t row;
    make_row(bench, view, lane, &row);
    for (int32_t d = 0; d < bench->mesh.ndims; d++)
        row.sent[d] = lane->request && !bench->options.device ? busiest(bench, lane, d) : NAN;
    if (bench->options.enqueue > 0)
        row.cpu = enqueue_cpu(bench, lane);

    row.late = add_late_ones(&bench->options, lane);
    const int n = row.iterations = lane->in_time.n;
    double *const slowest = malloc((size_t)n * sizeof *slowest);
    if (!slowest)
        die("out of memory for %d times", n);
    check_status(meshcoll_reduce(bench->handle, lane->in_time.time, slowest, (size_t)n,
                                 MESHCOLL_FLOAT64, MESHCOLL_MAX, 0),
                 lane->who, "the times");
    if (bench->rank == 0) {
        qsort(slowest, (size_t)n, sizeof *slowest, compare);
        row.min = slowest[0];
        row.median = median(slowest, n);
        row.p99 = slowest[(int)ceil(0.99 * n) - 1];
        if (row.bytes > 0 && row.median > 0) {
            row.algbw = (double)row.bytes / row.median;
            row.busbw = row.algbw * bus_factor(bench->options.collective, bench->size);
        }
        add_row(bench, &row);
    } else {
        free(row.strategy);
    }
    free(slowest);
    free(lane->in_time.time);
    free(lane->late.time);
    meshcoll_free(lane->request);
}

static uint64_t measure_lanes(bench_t *bench, const view_t *view, lane_t *lane, int n)
{
    for (int i = 0; i < n; i++)
        if (lane[i].who->kind == PLANNED || lane[i].who->kind == FORCED)
            lane[i].request = request_open(bench, view, lane[i].who);
    check_all(bench, view, lane, n);
    data_clear(bench, view);
    if (bench->options.device)
        device_put(bench, view);
    for (int round = 0; round < bench->options.warmup; round++)
        for (int i = 0; i < n; i++) {
            begin_together(bench, &lane[i], NULL);
            run(bench, view, &lane[i]);
        }
    run_rounds(bench, view, lane, n);
    check_all(bench, view, lane, n);

    uint64_t wrong = 0;
    for (int i = 0; i < n; i++) {
        wrong += lane[i].wrong;
        close_lane(bench, view, &lane[i]);
    }
    return wrong;
}

/* How many requests may exist concurrently: each may have scratch memory of the size of the
 * vector, and all ranks may share one machine. The same on all ranks. */
static int lanes_together(const bench_t *bench, size_t bytes)
{
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double each = 2.0 * (double)bytes * bench->size;
    int together = bench->contenders.n;
    if (each * together > memory / 4)
        together = memory / 4 < each ? 1 : (int)(memory / 4 / each);
    return -(int)ranks_most(bench, -together);
}

uint64_t measure_size(bench_t *bench, size_t whole)
{
    const view_t view = data_view(bench, whole);
    const contenders_t *const all = &bench->contenders;
    const int together =
        lanes_together(bench, whole * meshcoll_datatype_size(bench->options.datatype));
    uint64_t wrong = 0;
    for (int first = 0; first < all->n; first += together) {
        const int n = all->n - first < together ? all->n - first : together;
        lane_t *const lane = calloc((size_t)n, sizeof *lane);
        if (!lane)
            die("out of memory for %d strategies", n);
        for (int i = 0; i < n; i++)
            lane[i].who = &all->at[first + i];
        wrong += measure_lanes(bench, &view, lane, n);
        free(lane);
    }
    return wrong;
}
