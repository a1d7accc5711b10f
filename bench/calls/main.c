/*
 * meshcoll-bench-calls: blocking calls, calls that do not wait, persistent requests, and calls that a loop tests,
 * by turns in one run. In each turn every kind goes through all cells (a collective and a size), so that sizes and
 * collectives alternate as in a program. What lies between two timed operations is that of meshcoll-bench: buffers
 * are used, then a barrier and, with a gate, one moment for all.
 */
#include "calls/flight.h"
#include "common/gate_mpi.h"
#include "common/use.h"
#include "tools/common/options.h"

#include <meshcoll/mpi.h>

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const char usage[] =
    "usage: mpirun -n RANKS meshcoll-bench-calls [OPTION]...\n"
    "\n"
    "Times blocking calls, calls that do not wait, persistent requests, and calls that a loop "
    "tests\n"
    "instead of waiting, by turns. Prints medians of the slowest rank in us, the ratios to a\n"
    "persistent request (of tests: to a wait), and the page faults of an operation on all ranks.\n"
    "\n";

enum { KINDS = 4, MOST_CELLS = 128, ROOM = 4096 };

typedef enum { BLOCKING, BEGIN, PERSISTENT, TEST } kind_t;
static const char *const name_of[KINDS] = {"blocking", "begin", "persistent", "test"};

typedef struct {
    const char *collectives, *sizes, *gate, *buffers, *only, *flight;
    int32_t iterations, warmup, offset;
    bool no_huge, least;
} options_t;

typedef struct {
    char *in, *out;
    meshcoll_request_t *request;
    double *time;
    double faults;
} lane_t;

typedef struct {
    meshcoll_collective_t collective;
    size_t count, in_bytes, out_bytes, bytes;
    lane_t lane[KINDS];
} cell_t;

typedef struct {
    options_t options;
    meshcoll_t *mesh;
    gate_t *gate;
    int rank, size, n_cells;
    cell_t cell[MOST_CELLS];
} bench_t;

static void check(int status)
{
    if (status == MESHCOLL_OK)
        return;
    fprintf(stderr, "meshcoll-bench-calls: %s\n", meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool is_fresh(const bench_t *b)
{
    return strcmp(b->options.buffers, "known") != 0;
}

static bool is_mallocs(const bench_t *b)
{
    return strcmp(b->options.buffers, "malloc") == 0;
}

/* Memory of the kernel's own, so that it is given back, `offset` bytes behind a page; or malloc's. */
static char *take(const bench_t *b, size_t bytes, int32_t offset)
{
    void *const at = is_mallocs(b) ? malloc(bytes)
                                   : mmap(NULL, bytes + ROOM, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!at || at == MAP_FAILED)
        check(mc_fail_memory("a buffer"));
    return is_mallocs(b) ? at : (char *)at + offset;
}

static void give(const bench_t *b, char *at, size_t bytes, int32_t offset)
{
    if (is_mallocs(b))
        free(at);
    else
        munmap(at - offset, bytes + ROOM);
}

static bool any_in(const bench_t *b, const cell_t *c)
{
    return b->rank == 0 || (c->collective != MESHCOLL_BCAST && c->collective != MESHCOLL_SCATTER);
}

static bool any_out(const bench_t *b, const cell_t *c)
{
    return b->rank == 0 || (c->collective != MESHCOLL_REDUCE && c->collective != MESHCOLL_GATHER);
}

static void open_buffers(const bench_t *b, const cell_t *c, lane_t *l)
{
    l->in = take(b, c->in_bytes, 0);
    l->out = c->collective == MESHCOLL_BCAST ? l->in : take(b, c->out_bytes, b->options.offset);
    if (strcmp(b->options.buffers, "fresh") != 0)
        memset(l->out, 1, c->out_bytes);
}

static void close_buffers(const bench_t *b, const cell_t *c, lane_t *l)
{
    if (l->out != l->in)
        give(b, l->out, c->out_bytes, b->options.offset);
    give(b, l->in, c->in_bytes, 0);
}

static meshcoll_args_t args_of(const cell_t *c, const lane_t *l)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = c->collective,
                             .in = l->in,
                             .out = l->out,
                             .count = c->count,
                             .datatype = MESHCOLL_FLOAT32};
}

static void run_blocking(const bench_t *b, const cell_t *c, const lane_t *l)
{
    const meshcoll_datatype_t f = MESHCOLL_FLOAT32;
    switch (c->collective) {
    case MESHCOLL_BCAST:
        check(meshcoll_bcast(b->mesh, l->in, l->out, c->count, f, 0));
        return;
    case MESHCOLL_REDUCE:
        check(meshcoll_reduce(b->mesh, l->in, l->out, c->count, f, MESHCOLL_SUM, 0));
        return;
    case MESHCOLL_SCATTER:
        check(meshcoll_scatter(b->mesh, l->in, l->out, c->count, f, 0));
        return;
    case MESHCOLL_GATHER:
        check(meshcoll_gather(b->mesh, l->in, l->out, c->count, f, 0));
        return;
    case MESHCOLL_ALLGATHER:
        check(meshcoll_allgather(b->mesh, l->in, l->out, c->count, f));
        return;
    case MESHCOLL_REDUCE_SCATTER:
        check(meshcoll_reduce_scatter(b->mesh, l->in, l->out, c->count, f, MESHCOLL_SUM));
        return;
    case MESHCOLL_ALLREDUCE:
        check(meshcoll_allreduce(b->mesh, l->in, l->out, c->count, f, MESHCOLL_SUM));
        return;
    default:
        check(meshcoll_alltoall(b->mesh, l->in, l->out, c->count, f));
    }
}

static void run(const bench_t *b, const cell_t *c, lane_t *l, kind_t kind)
{
    if (kind == BLOCKING) {
        run_blocking(b, c, l);
        return;
    }
    if (kind == PERSISTENT) {
        check(meshcoll_start(l->request));
        check(meshcoll_wait(l->request));
        return;
    }
    meshcoll_request_t *r;
    const meshcoll_args_t a = args_of(c, l);
    int status = MESHCOLL_IN_PROGRESS;
    check(meshcoll_begin(b->mesh, &a, &r));
    while (kind == TEST && (status = meshcoll_test(r)) == MESHCOLL_IN_PROGRESS)
        continue;
    check(kind == TEST ? status : meshcoll_wait(r));
}

/* A system call takes as long as a small operation, which has no new pages anyway. */
static double faults(const cell_t *c)
{
    enum { LEAST = 1 << 16 };
    struct rusage r = {0};
    if (c->bytes >= LEAST)
        getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_minflt;
}

static double begin_together(const bench_t *b, const cell_t *c, const lane_t *l, double *before)
{
    if (!b->gate) {
        use_buffers(any_in(b, c) ? l->in : NULL, c->in_bytes, any_out(b, c) ? l->out : NULL,
                    c->out_bytes);
        *before = faults(c);
        MPI_Barrier(MPI_COMM_WORLD);
        return mc_now();
    }
    check(meshcoll_barrier(b->mesh));
    gate_met(b->gate, mc_now());
    use_buffers(any_in(b, c) ? l->in : NULL, c->in_bytes,
                any_out(b, c) && !is_fresh(b) ? l->out : NULL, c->out_bytes);
    *before = faults(c);
    return gate_pass(b->gate);
}

static void measure(const bench_t *b, cell_t *c, kind_t kind, int32_t turn)
{
    lane_t *const l = &c->lane[kind];
    lane_t unused = {
        0}; /* beside a persistent request: the kernel has done the same before each kind */
    lane_t *const fresh = !is_fresh(b) ? NULL : kind == PERSISTENT ? &unused : l;
    if (fresh)
        open_buffers(b, c, fresh);
    double before;
    const double begin = begin_together(b, c, l, &before);
    run(b, c, l, kind);
    const double end = mc_now();
    const double after = faults(c);
    if (b->gate)
        gate_leave(b->gate, end);
    check(meshcoll_barrier(b->mesh)); /* who is done takes no core from who is still at it */
    if (turn >= 0) {
        l->time[turn] = end - begin;
        l->faults += after - before;
    }
    if (fresh)
        close_buffers(b, c, fresh);
}

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void print_cell(const bench_t *b, cell_t *c)
{
    const int n = b->options.iterations;
    double median[KINDS], all[KINDS], *const slowest = calloc((size_t)n, sizeof *slowest);
    if (!slowest)
        check(mc_fail_memory("times"));
    for (int k = 0; k < KINDS; k++) {
        MPI_Reduce(c->lane[k].time, slowest, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&c->lane[k].faults, &all[k], 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        qsort(slowest, (size_t)n, sizeof *slowest, compare);
        median[k] = slowest[b->options.least ? 0 : n / 2] * 1e6;
    }
    free(slowest);
    if (b->rank == 0)
        printf("%-15s %9zu %10.2f %10.2f %10.2f %10.2f %8.2f %6.2f %6.2f %9.0f %9.0f %9.0f %9.0f  "
               "%s\n",
               meshcoll_collective_name(c->collective), c->bytes, median[BLOCKING], median[BEGIN],
               median[PERSISTENT], median[TEST], median[BLOCKING] / median[PERSISTENT],
               median[BEGIN] / median[PERSISTENT], median[TEST] / median[BEGIN], all[BLOCKING] / n,
               all[BEGIN] / n, all[PERSISTENT] / n, all[TEST] / n,
               meshcoll_request_strategy(c->lane[PERSISTENT].request));
}

static bool has_blocks(meshcoll_collective_t c)
{
    return c != MESHCOLL_BCAST && c != MESHCOLL_REDUCE && c != MESHCOLL_ALLREDUCE;
}

static void add_cell(bench_t *b, meshcoll_collective_t which, uint64_t bytes)
{
    cell_t *const c = &b->cell[b->n_cells];
    const size_t size = (size_t)b->size, whole = bytes / sizeof(float) / size * size;
    if (b->n_cells == MOST_CELLS)
        check(mc_fail(MESHCOLL_ERR_INVALID_ARG, "at most %d cells", MOST_CELLS));
    const size_t block = whole / size * sizeof(float), all = whole * sizeof(float);
    *c = (cell_t){.collective = which, .in_bytes = all, .out_bytes = all, .bytes = all};
    c->count = has_blocks(which) ? whole / size : whole;
    if (which == MESHCOLL_ALLGATHER || which == MESHCOLL_GATHER)
        c->in_bytes = block;
    if (which == MESHCOLL_REDUCE_SCATTER || which == MESHCOLL_SCATTER)
        c->out_bytes = block;
    b->n_cells += whole > 0;
}

static void open_cell(const bench_t *b, cell_t *c)
{
    const size_t n = (size_t)b->options.iterations;
    for (int k = 0; k < KINDS; k++) {
        lane_t *const l = &c->lane[k];
        l->time = calloc(n, sizeof *l->time);
        if ((k == BEGIN || k == TEST) && !is_fresh(b)) { /* all know the same buffers */
            l->in = c->lane[BLOCKING].in;
            l->out = c->lane[BLOCKING].out;
        } else if (k == PERSISTENT || !is_fresh(b)) {
            open_buffers(b, c, l);
            memset(l->in, 0, c->in_bytes);
        }
    }
    const meshcoll_args_t a = args_of(c, &c->lane[PERSISTENT]);
    check(meshcoll_init(b->mesh, &a, &c->lane[PERSISTENT].request));
}

static void add_cells(bench_t *b)
{
    for (int w = 0; w < MESHCOLL_COLLECTIVES; w++) {
        const char *const name = meshcoll_collective_name((meshcoll_collective_t)w);
        char padded[64], list[256];
        snprintf(padded, sizeof padded, ",%s,", name);
        snprintf(list, sizeof list, ",%s,", b->options.collectives);
        if (strcmp(b->options.collectives, "all") != 0 && !strstr(list, padded))
            continue;
        char sizes[256];
        snprintf(sizes, sizeof sizes, "%s", b->options.sizes);
        for (char *at = strtok(sizes, ","); at; at = strtok(NULL, ",")) {
            uint64_t bytes;
            check(mc_parse_bytes(at, &bytes));
            add_cell(b, (meshcoll_collective_t)w, bytes);
        }
    }
}

static void measure_all(bench_t *b)
{
    const options_t *const o = &b->options;
    for (int32_t turn = -o->warmup; turn < o->iterations; turn++)
        for (int k = 0; k < KINDS; k++) {
            const int kind = (k + turn + o->warmup) % KINDS;
            for (int i = 0; i < b->n_cells; i++)
                if (!o->only || strcmp(o->only, name_of[kind]) == 0)
                    measure(b, &b->cell[i], (kind_t)kind, turn);
        }
}

static bool read_options(int argc, char **argv, options_t *o, int *exit)
{
    const mc_option_t table[] = {
        MC_OPTION_TEXT("collectives", "LIST", "bcast,reduce; all", &o->collectives),
        MC_OPTION_TEXT("sizes", "LIST", "of the whole vector: 8,64K,8M", &o->sizes),
        {.name = "iterations",
         .letter = 'n',
         .value = "N",
         .help = "timed turns: 30",
         .number = &o->iterations,
         .least = 1,
         .most = 100000},
        {.name = "warmup",
         .letter = 'w',
         .value = "N",
         .help = "turns before: 3",
         .number = &o->warmup,
         .least = 0,
         .most = 100000},
        MC_OPTION_TEXT("buffers", "WHICH",
                       "known: the same each time; touched, malloc: new ones for each call, the\n"
                       "kernel's or malloc's, written before; fresh: the output was not",
                       &o->buffers),
        MC_OPTION_NUMBER("offset", "BYTES", "outputs begin so far behind a page: 0", &o->offset, 0,
                         ROOM),
        MC_OPTION_FLAG("no-huge", "no huge pages in this process, for persistent requests neither",
                       &o->no_huge),
        MC_OPTION_FLAG("least", "least times instead of medians: on a busy machine", &o->least),
        MC_OPTION_TEXT("only", "KIND", "blocking, begin, persistent or test: for a profile",
                       &o->only),
        MC_OPTION_TEXT(
            "in-flight", "LIST",
            "instead: so many calls and messages of 8 bytes begun before any is waited for,\n"
            "as 16,1000,16000, in us each",
            &o->flight),
        MC_OPTION_TEXT("gate", "FILE", "start together at a gate, as meshcoll-bench does",
                       &o->gate),
        {0},
    };
    mc_arguments_t none = {0};
    bool help;
    if (mc_options_read(table, argc, argv, &none, &help)) {
        fprintf(stderr, "meshcoll-bench-calls: %s\n", meshcoll_last_error());
        *exit = 2;
        return false;
    }
    if (help) {
        fputs(usage, stdout);
        mc_options_print(table, stdout);
    }
    static const char *const buffers[] = {"known", "touched", "malloc", "fresh"};
    size_t i = 0;
    while (i < MC_COUNT(buffers) && strcmp(o->buffers, buffers[i]) != 0)
        i++;
    *exit = i == MC_COUNT(buffers) ? 2 : 0;
    if (*exit)
        fprintf(stderr,
                "meshcoll-bench-calls: --buffers: expected known, touched, malloc or fresh\n");
    return !help && !*exit;
}

int main(int argc, char **argv)
{
    static bench_t b = {.options = {.collectives = "all",
                                    .sizes = "8,64K,8M",
                                    .buffers = "known",
                                    .iterations = 30,
                                    .warmup = 3}};
    int status;
    if (!read_options(argc, argv, &b.options, &status))
        return status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    if (b.options.no_huge)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    char why[GATE_WHY];
    if (b.options.gate && !gate_open_mpi(b.options.gate, &b.gate, why))
        check(mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s", why));
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &b.mesh));
    if (b.options.flight) {
        check(flight_measure(b.mesh, b.options.flight, b.options.iterations));
        meshcoll_destroy(b.mesh);
        MPI_Finalize();
        return 0;
    }
    add_cells(&b);
    for (int i = 0; i < b.n_cells; i++)
        open_cell(&b, &b.cell[i]);
    measure_all(&b);
    if (b.rank == 0)
        printf("%-15s %9s %10s %10s %10s %10s %8s %6s %6s %9s %9s %9s %9s\n", "collective", "bytes",
               "blocking", "begin", "persistent", "test", "ratios", "", "", "faults", "", "", "");
    for (int i = 0; i < b.n_cells; i++)
        print_cell(&b, &b.cell[i]);
    for (int i = 0; i < b.n_cells; i++)
        meshcoll_free(b.cell[i].lane[PERSISTENT].request);
    meshcoll_destroy(b.mesh);
    MPI_Finalize();
    return 0;
}
