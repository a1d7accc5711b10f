/*
 * A library's own collectives, timed and checked as meshcoll-bench times and checks meshcoll's: one
 * program for all libraries (library.h), started by compare.
 *
 *     mpirun -n RANKS peer [-n ITERATIONS] [-t SECONDS] [-l LEAST] [-1] [-w CALLS:SECONDS]
 *         [--persistent] [--pages huge|small] [--mesh TEXT] [--gate FILE] COLLECTIVE:BYTES…
 *
 * A cell is a collective and the bytes of its whole vector (alltoall: of one rank's send buffer), a
 * multiple of 4, and of 4 × ranks where ranks hold blocks; of a barrier 0. A cell ends after
 * ITERATIONS, or after SECONDS but not before LEAST. With -1 the checked run that precedes them is
 * timed, and the only one if it took SECONDS. With -w, CALLS of the operation come before what is
 * timed, as many as begin within SECONDS. Rank 0 prints a JSON object a line: the library's
 * version, then for each cell one when it begins and one with its times.
 */
#include "../common/gate_mpi.h"
#include "../common/use.h"
#include "library.h"

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    BASE_BITS = 16,
    FACTORS = 4,
    MOST_RANKS = 128,
    POISON = 0xA5,
    LATE_US = 2000,
    FINALIZE_SECONDS = 2,
    HUGE_PAGE = 2 << 20
};

/* Who has a buffer, and how much of the vector it holds. */
static const struct {
    const char *name;
    bool in_root, in_block, out_root, out_block, reduces;
} shape[KINDS] = {
    [BCAST] = {.name = "bcast", .in_root = true},
    [REDUCE] = {.name = "reduce", .out_root = true, .reduces = true},
    [SCATTER] = {.name = "scatter", .in_root = true, .out_block = true},
    [GATHER] = {.name = "gather", .in_block = true, .out_root = true},
    [ALLGATHER] = {.name = "allgather", .in_block = true},
    [REDUCE_SCATTER] = {.name = "reduce_scatter", .out_block = true, .reduces = true},
    [ALLREDUCE] = {.name = "allreduce", .reduces = true},
    [ALLTOALL] = {.name = "alltoall"},
    [BARRIER] = {.name = "barrier"},
};

typedef struct {
    kind_t kind;
    size_t whole; /* elements */
} cell_t;

typedef struct {
    int iterations, least, warm_calls;
    double seconds, warm_seconds;
    bool once, persistent, small_pages;
    const char *mesh, *gate; /* NULL: what is found; iterations begin after the barrier alone */
    cell_t *cell;
    int n_cells;
} options_t;

/* Elements [first, first + n) of the whole vector; `at` NULL: not on this rank. */
typedef struct {
    float *at;
    size_t n, first;
} span_t;

typedef struct {
    cell_t cell;
    int count; /* what MPI is given */
    span_t in, out;
} view_t;

static int rank, size;
static gate_t *gate;

void die(const char *what, const char *text)
{
    fprintf(stderr, "peer: rank %d: %s%s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t bytes)
{
    void *const at = calloc(1, bytes ? bytes : 1);
    if (!at)
        die("out of memory", "");
    return at;
}

/* From a huge page's begin on, in huge pages or in none: the same for all libraries, and at the
 * same distance, as some cores copy slowly between buffers of certain offsets. */
static float *allocate_buffer(size_t elements, bool small_pages)
{
    const size_t bytes = (elements * sizeof(float) / HUGE_PAGE + 1) * HUGE_PAGE;
    void *at;
    if (posix_memalign(&at, HUGE_PAGE, bytes) != 0)
        die("out of memory", "");
    madvise(at, bytes, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE); /* where there are any */
    memset(at, 0, bytes);
    return at;
}

/* --- the command line ------------------------------------------------------------------------- */

static bool has_blocks(kind_t kind)
{
    return shape[kind].in_block || shape[kind].out_block || kind == ALLTOALL;
}

static cell_t parse_cell(const char *text)
{
    const char *const colon = strchr(text, ':');
    for (int k = 0; colon && k < KINDS; k++) {
        const size_t n = strlen(shape[k].name);
        if (n != (size_t)(colon - text) || strncmp(text, shape[k].name, n) != 0)
            continue;
        char *end;
        const unsigned long long bytes = strtoull(colon + 1, &end, 10);
        const unsigned long long unit =
            sizeof(float) * (has_blocks((kind_t)k) ? (unsigned)size : 1U);
        if (end == colon + 1 || *end || (bytes == 0) != (k == BARRIER) || bytes % unit ||
            bytes / 4 > INT32_MAX)
            break;
        return (cell_t){(kind_t)k, (size_t)(bytes / sizeof(float))};
    }
    die("expected COLLECTIVE:BYTES, with blocks that are equal; came ", text);
    return (cell_t){BCAST, 0};
}

static void read_warm_up(const char *text, options_t *o)
{
    if (sscanf(text, "%d:%lf", &o->warm_calls, &o->warm_seconds) != 2)
        die("expected -w CALLS:SECONDS, came ", text);
}

static void read_options(int argc, char **argv, options_t *o)
{
    static const struct option longs[] = {{"gate", required_argument, NULL, 'g'},
                                          {"mesh", required_argument, NULL, 'm'},
                                          {"pages", required_argument, NULL, 'h'},
                                          {"persistent", no_argument, NULL, 'p'},
                                          {0}};
    for (int which; (which = getopt_long(argc, argv, "n:t:l:1w:", longs, NULL)) != -1;) {
        if (which == 'n')
            o->iterations = atoi(optarg);
        else if (which == 't')
            o->seconds = atof(optarg);
        else if (which == 'l')
            o->least = atoi(optarg);
        else if (which == '1')
            o->once = true;
        else if (which == 'w')
            read_warm_up(optarg, o);
        else if (which == 'g')
            o->gate = optarg;
        else if (which == 'm')
            o->mesh = optarg;
        else if (which == 'h')
            o->small_pages = strcmp(optarg, "small") == 0;
        else if (which == 'p')
            o->persistent = true;
        else
            die("no such option; see the head of peer.c", "");
    }
}

static options_t parse(int argc, char **argv)
{
    options_t o = {.iterations = 20, .least = 3, .seconds = 1};
    read_options(argc, argv, &o);
    if (o.iterations < 1 || o.least < 1 || !(o.seconds > 0))
        die("expected -n and -l from 1, -t above 0", "");
    if (o.least > o.iterations)
        o.least = o.iterations;
    o.n_cells = argc - optind;
    o.cell = allocate((size_t)o.n_cells * sizeof *o.cell);
    for (int i = 0; i < o.n_cells; i++)
        o.cell[i] = parse_cell(argv[optind + i]);
    return o;
}

/* --- data whose right result is known without communicating: see meshcoll-bench's data.c --------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static float value(int from, size_t j)
{
    const uint64_t hash = mix(j + 1);
    const uint64_t base = hash & ((1U << BASE_BITS) - 1),
                   factor = 1 + (hash >> BASE_BITS) % FACTORS;
    return (float)(base + factor * (((uint64_t)from + (hash >> 32)) % (uint64_t)size));
}

static float summed(size_t j)
{
    const uint64_t hash = mix(j + 1), p = (uint64_t)size;
    const uint64_t base = hash & ((1U << BASE_BITS) - 1),
                   factor = 1 + (hash >> BASE_BITS) % FACTORS;
    return (float)(p * base + factor * (p * (p - 1) / 2));
}

static float right(const view_t *view, size_t i)
{
    const kind_t kind = view->cell.kind;
    const size_t j = view->out.first + i, count = (size_t)view->count;
    if (kind == ALLTOALL)
        return value((int)(i / count), (size_t)rank * count + i % count);
    if (shape[kind].reduces)
        return summed(j);
    return value(shape[kind].in_block ? (int)(j / count) : 0, j);
}

static void fill(const view_t *view)
{
    if (view->out.at)
        memset(view->out.at, POISON, view->out.n * sizeof(float));
    for (size_t i = 0; view->in.at && i < view->in.n; i++)
        view->in.at[i] = value(rank, view->in.first + i);
}

static unsigned long long wrong(const view_t *view)
{
    unsigned long long mine = 0, all;
    for (size_t i = 0; view->out.at && i < view->out.n; i++)
        mine += view->out.at[i] != right(view, i);
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* What is timed carries zeros, as in meshcoll-bench: sums stay finite. All pages are touched. */
static void clear(const view_t *view)
{
    if (view->in.at)
        memset(view->in.at, 0, view->in.n * sizeof(float));
    if (view->out.at)
        memset(view->out.at, 0, view->out.n * sizeof(float));
}

static view_t view_of(cell_t cell, float *in, float *out)
{
    const size_t block = cell.whole / (size_t)size;
    view_t view = {.cell = cell, .count = (int)(has_blocks(cell.kind) ? block : cell.whole)};
    if (!shape[cell.kind].in_root || rank == 0) {
        const bool part = shape[cell.kind].in_block;
        view.in = (span_t){in, part ? block : cell.whole, part ? (size_t)rank * block : 0};
    }
    if (!shape[cell.kind].out_root || rank == 0) {
        const bool part = shape[cell.kind].out_block;
        view.out = (span_t){out, part ? block : cell.whole, part ? (size_t)rank * block : 0};
    }
    if (cell.kind == BCAST && rank == 0) /* one buffer */
        view.out.at = NULL;
    return view;
}

/* --- measuring -------------------------------------------------------------------------------- */

static call_t call_of(const view_t *view)
{
    return (call_t){view->cell.kind, view->count, view->in.at, view->out.at};
}

static void use(const view_t *view)
{
    use_buffers(view->in.at, view->in.n * sizeof(float), view->out.at, view->out.n * sizeof(float));
}

/* Buffers are used behind the barrier: who is done with the last operation takes no core from who is still at it. */
static double run_after_barrier(const view_t *view, bool used)
{
    const call_t call = call_of(view);
    if (used && !gate)
        use(view);
    library_barrier();
    if (gate)
        gate_met(gate, now());
    if (used && gate)
        use(view);
    const double begin = gate ? gate_pass(gate) : now();
    library_run(&call);
    const double end = now();
    if (gate)
        gate_leave(gate, end);
    return end - begin;
}

/* Nobody may leave a barrier before all have come: the last rank comes late. */
static unsigned long long barrier_wrong(const view_t *view)
{
    const call_t call = call_of(view);
    library_barrier();
    if (rank == size - 1)
        usleep(LATE_US);
    const double came = now();
    library_run(&call);
    const double left = now();
    double last;
    MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    unsigned long long early = left < last, all;
    MPI_Allreduce(&early, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Wrong results, of all ranks; *time is the run's on this rank, of a barrier 0. */
static unsigned long long run_checked(const view_t *view, double *time)
{
    *time = 0;
    if (view->cell.kind == BARRIER)
        return barrier_wrong(view);
    fill(view);
    *time = run_after_barrier(view, false);
    return wrong(view);
}

/* Times on this rank: of what began in time, and of what the barrier before it made late (gate.h). */
typedef struct {
    double *in_time, *late;
    int n_in_time, n_late;
} times_t;

/* Seconds of wall time: rank 0 alone may be done long before the others. Late ones are made again
 * while there are seconds left. */
static bool wants_more(const options_t *o, const times_t *times, double spent)
{
    const bool over = times->n_in_time + times->n_late >= o->least && spent >= o->seconds;
    return times->n_in_time < o->iterations && !over;
}

/* What a library learns from its calls, it knows then. Rank 0's clock decides for all. */
static void warm_up(const options_t *o, const view_t *view)
{
    const double came = now();
    for (int i = 0; i < o->warm_calls; i++) {
        char more = now() - came < o->warm_seconds;
        library_share(&more);
        if (!more)
            return;
        run_after_barrier(view, true);
    }
}

/* Rank 0's clock decides for all whether there is another round. */
static void run_rounds(const options_t *o, const view_t *view, times_t *times)
{
    const double came = now();
    for (;;) {
        char more = wants_more(o, times, now() - came);
        library_share(&more);
        if (!more)
            return;
        const double time = run_after_barrier(view, true);
        if (!gate || !gate_late(gate))
            times->in_time[times->n_in_time++] = time;
        else if (times->n_late < o->iterations)
            times->late[times->n_late++] = time;
    }
}

/* Late ones count only where too few others came. Returns how many are in times->in_time now. */
static int keep_what_counts(const options_t *o, times_t *times, int *late)
{
    const int in_time = times->n_in_time;
    for (int i = 0; in_time < o->least && i < times->n_late && times->n_in_time < o->iterations;
         i++)
        times->in_time[times->n_in_time++] = times->late[i];
    *late = times->n_in_time - in_time;
    return times->n_in_time;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_cell(const view_t *view, double *slowest, int n, int late, unsigned long long bad)
{
    qsort(slowest, (size_t)n, sizeof *slowest, compare);
    const double median = n % 2 ? slowest[n / 2] : (slowest[n / 2 - 1] + slowest[n / 2]) / 2;
    printf("{\"cell\": \"%s\", \"bytes\": %zu, \"iterations\": %d, \"late\": %d, "
           "\"median_s\": %.9g, \"min_s\": %.9g, \"wrong\": %llu",
           shape[view->cell.kind].name, view->cell.whole * sizeof(float), n, late, median,
           slowest[0], bad);
    library_print(stdout);
    printf("}\n");
    fflush(stdout);
}

/* Was the checked run so slow that it will do? Rank 0's clock decides. */
static bool will_do(const options_t *o, double time)
{
    char enough = o->once && time >= o->seconds;
    library_share(&enough);
    return enough;
}

static void time_cell(const options_t *o, const view_t *view, times_t *times)
{
    double *const slowest = allocate((size_t)o->iterations * sizeof *slowest);
    double checked;
    const unsigned long long bad = run_checked(view, &checked);
    if (will_do(o, checked)) {
        times->in_time[times->n_in_time++] = checked;
    } else {
        clear(view);
        warm_up(o, view);
        run_rounds(o, view, times);
    }
    int late;
    const int n = keep_what_counts(o, times, &late);
    MPI_Reduce(times->in_time, slowest, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_cell(view, slowest, n, late, bad);
    free(slowest);
}

static void measure(const options_t *o, const view_t *view)
{
    if (rank == 0) {
        printf("{\"begin\": \"%s\", \"bytes\": %zu}\n", shape[view->cell.kind].name,
               view->cell.whole * sizeof(float));
        fflush(stdout);
    }
    const size_t bytes = (size_t)o->iterations * sizeof(double);
    times_t times = {.in_time = allocate(bytes), .late = allocate(bytes)};
    const call_t call = call_of(view);
    library_prepare(&call, o->persistent);
    time_cell(o, view, &times);
    library_done();
    free(times.in_time);
    free(times.late);
}

static void print_library(void)
{
    enum { ROOM = 512 };
    char text[ROOM];
    library_version(text, ROOM);
    text[strcspn(text, "\n")] = '\0';
    for (char *at = text; *at; at++)
        if (*at < ' ' || *at == '"' || *at == '\\')
            *at = ' ';
    printf("{\"library\": \"%s\", \"ranks\": %d}\n", text, size);
    fflush(stdout);
}

/* What all ranks find alike is said once. */
static void open_gate(const char *path)
{
    char why[GATE_WHY];
    if (gate_open_mpi(path, &gate, why))
        return;
    if (rank == 0)
        die(why, "");
    MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 ends us */
}

static void measure_all(const options_t *o)
{
    size_t most = 0;
    for (int i = 0; i < o->n_cells; i++)
        most = o->cell[i].whole > most ? o->cell[i].whole : most;
    float *const in = allocate_buffer(most, o->small_pages);
    float *const out = allocate_buffer(most, o->small_pages);
    for (int i = 0; i < o->n_cells; i++) {
        const view_t view = view_of(o->cell[i], in, out);
        measure(o, &view);
    }
    free(in);
    free(out);
}

static void leave(int signum)
{
    (void)signum;
    _exit(0);
}

/* MPICH 4.0.2 over UCX/TCP hangs in MPI_Finalize in up to half of all runs (pmodels/mpich pull
 * request 6596). All is printed by now, and behind the barrier nobody still communicates. */
static void finalize(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    signal(SIGALRM, leave);
    alarm(FINALIZE_SECONDS);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST_RANKS)
        die("float32 holds the checked sums of up to 128 ranks exactly, not of more", "");
    const options_t o = parse(argc, argv);
    if (o.gate)
        open_gate(o.gate);
    library_open(o.mesh);
    if (rank == 0)
        print_library();
    measure_all(&o);
    free(o.cell);
    gate_close(gate);
    if (rank == 0) {
        printf("{\"done\": true}\n");
        fflush(stdout);
    }
    library_close();
    finalize();
    return 0;
}
