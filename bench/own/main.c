/*
 * meshcoll-bench-own: the library's own time per small operation, without a real transport. All
 * ranks of a mesh run in this process over the in-process transport of the tests, which moves
 * bytes by memcpy. bench/own/instructions.sh counts the instructions of the same runs by function.
 */
#include "support/inproc.h"

#include "base/base.h"
#include "tools/common/options.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: meshcoll-bench-own [-n OPERATIONS] [--mesh M --collective C]\n"
    "\n"
    "Starts and completes operations of 8 bytes on all ranks of small meshes in this process, and\n"
    "prints nanoseconds per operation and rank: medians of 21 turns. With --mesh and --collective\n"
    "one row only, in one turn, for bench/own/instructions.sh.\n"
    "\n";

enum { MOST_RANKS = 64, TURNS = 21, SIZES = 8, PLACES = 64 };
/* Blocking calls: of one size; eight sizes of two collectives in turn; on other buffers each time. */
enum { CALL = -1, CALLS_IN_TURN = -2, CALLS_FRESH = -3 };

typedef struct {
    const char *mesh;
    int collective; /* or CALL */
} case_t;

static const case_t cases[] = {
    {"x=1", CALL},
    {"x=1", CALLS_IN_TURN},
    {"x=1", CALLS_FRESH},
    {"x=2", MESHCOLL_ALLREDUCE},
    {"x=4", MESHCOLL_ALLREDUCE},
    {"x=8", MESHCOLL_ALLREDUCE},
    {"x=4,y=4", MESHCOLL_ALLREDUCE},
    {"x=2", MESHCOLL_BCAST},
    {"x=4", MESHCOLL_BCAST},
    {"x=8", MESHCOLL_BCAST},
    {"x=4,y=4", MESHCOLL_BCAST},
};

typedef struct {
    int n;
    meshcoll_t *rank[MOST_RANKS];
    meshcoll_request_t *request[MOST_RANKS];
    double in[MOST_RANKS], out[MOST_RANKS];
    double started, ended; /* seconds of a turn */
} world_t;

static int check(int status)
{
    if (status >= 0)
        return status;
    fprintf(stderr, "meshcoll-bench-own: %s\n", meshcoll_last_error());
    exit(1);
}

static void open_world(world_t *w, const case_t *c)
{
    *w = (world_t){0};
    check(mc_inproc_create(c->mesh, NULL, w->rank));
    w->n = meshcoll_size(w->rank[0]);
    for (int r = 0; r < w->n; r++) {
        w->in[r] = r + 1;
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = c->collective <= CALL
                                                        ? MESHCOLL_ALLREDUCE
                                                        : (meshcoll_collective_t)c->collective,
                                      .in = &w->in[r],
                                      .out = &w->out[r],
                                      .count = 1,
                                      .datatype = MESHCOLL_FLOAT64};
        check(meshcoll_init(w->rank[r], &args, &w->request[r]));
    }
}

static void close_world(world_t *w)
{
    for (int r = 0; r < w->n; r++)
        meshcoll_free(w->request[r]);
    for (int r = 0; r < w->n; r++)
        meshcoll_destroy(w->rank[r]);
}

/* The script counts what these call: they stay functions of their own. */
__attribute__((noinline)) void own_persistent(world_t *w, int operations);
__attribute__((noinline)) void own_blocking(world_t *w, int operations);
__attribute__((noinline)) void own_in_turn(world_t *w, int operations);
__attribute__((noinline)) void own_fresh(world_t *w, int operations);

void own_persistent(world_t *w, int operations)
{
    w->started = w->ended = 0;
    for (int i = 0; i < operations; i++) {
        const double begin = mc_now();
        for (int r = 0; r < w->n; r++)
            check(meshcoll_start(w->request[r]));
        const double between = mc_now();
        for (int left = w->n; left > 0;) {
            left = 0;
            for (int r = 0; r < w->n; r++)
                left += check(meshcoll_test(w->request[r])) == MESHCOLL_IN_PROGRESS;
        }
        w->started += between - begin;
        w->ended += mc_now() - between;
    }
}

void own_blocking(world_t *w, int operations)
{
    const double begin = mc_now();
    for (int i = 0; i < operations; i++)
        check(meshcoll_allreduce(w->rank[0], &w->in[0], &w->out[0], 1, MESHCOLL_FLOAT64,
                                 MESHCOLL_SUM));
    w->started = mc_now() - begin;
    w->ended = 0;
}

void own_in_turn(world_t *w, int operations)
{
    static float in[SIZES], out[SIZES];
    const double begin = mc_now();
    for (int i = 0; i < operations; i++) {
        const size_t n = 1 + (size_t)(i % SIZES);
        if (i / SIZES % 2)
            check(meshcoll_bcast(w->rank[0], in, in, n, MESHCOLL_FLOAT32, 0));
        else
            check(meshcoll_allreduce(w->rank[0], in, out, n, MESHCOLL_FLOAT32, MESHCOLL_SUM));
    }
    w->started = mc_now() - begin;
    w->ended = 0;
}

void own_fresh(world_t *w, int operations)
{
    static double out[PLACES];
    const double begin = mc_now();
    for (int i = 0; i < operations; i++)
        check(meshcoll_allreduce(w->rank[0], &w->in[0], &out[i * 7 % PLACES], 1, MESHCOLL_FLOAT64,
                                 MESHCOLL_SUM));
    w->started = mc_now() - begin;
    w->ended = 0;
    w->out[0] = out[0];
}

static void run(world_t *w, const case_t *c, int operations)
{
    if (c->collective == CALL)
        own_blocking(w, operations);
    else if (c->collective == CALLS_IN_TURN)
        own_in_turn(w, operations);
    else if (c->collective == CALLS_FRESH)
        own_fresh(w, operations);
    else
        own_persistent(w, operations);
}

static bool is_right(const world_t *w, const case_t *c)
{
    const double wanted = c->collective == MESHCOLL_BCAST ? 1 : w->n * (w->n + 1) / 2.0;
    if (c->collective == CALLS_IN_TURN) /* of buffers of their own */
        return true;
    for (int r = 0; r < w->n; r++)
        if (w->out[r] != wanted)
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double time[TURNS])
{
    qsort(time, TURNS, sizeof *time, compare);
    return time[TURNS / 2];
}

static const char *name_of(const case_t *c)
{
    static const char *const calls[] = {"blocking", "in-turn", "fresh"};
    return c->collective <= CALL ? calls[CALL - c->collective]
                                 : meshcoll_collective_name((meshcoll_collective_t)c->collective);
}

static int measure(const case_t *c, int operations, int turns)
{
    static world_t w;
    double start[TURNS], end[TURNS];
    open_world(&w, c);
    if (turns > 1)
        run(&w, c, operations / 10 + 1);
    for (int t = 0; t < turns; t++) {
        run(&w, c, operations);
        start[t] = w.started * 1e9 / operations / w.n;
        end[t] = w.ended * 1e9 / operations / w.n;
    }
    const bool right = is_right(&w, c);
    if (turns == TURNS)
        printf("%-10s %-10s %10.0f %10.0f   %s\n", c->mesh, name_of(c), median(start), median(end),
               meshcoll_request_strategy(w.request[0]));
    close_world(&w);
    if (!right)
        fprintf(stderr, "meshcoll-bench-own: %s on %s: a wrong result\n", name_of(c), c->mesh);
    return right ? 0 : 1;
}

static int fail(const char *what)
{
    fprintf(stderr, "meshcoll-bench-own: %s; --help shows the options\n", what);
    return 2;
}

static int one(const char *mesh, const char *collective, int operations)
{
    for (size_t i = 0; i < MC_COUNT(cases); i++) {
        const case_t c = {mesh, cases[i].collective};
        const char *const name = name_of(&c);
        const char *a = name, *b = collective;
        while (*a && *a == *b)
            a++, b++;
        if (*a == *b)
            return measure(&c, operations, 1);
    }
    return fail("--collective: expected allreduce, bcast, blocking, in-turn or fresh");
}

typedef struct {
    const char *mesh, *collective;
    int32_t operations;
} options_t;

/* Go on? Otherwise *exit is the exit status. */
static bool read_options(int argc, char **argv, options_t *o, int *exit)
{
    const mc_option_t table[] = {
        {.name = "operations",
         .letter = 'n',
         .value = "N",
         .help = "operations a turn: 1000",
         .number = &o->operations,
         .least = 1,
         .most = 1000000000},
        MC_OPTION_TEXT("mesh", "M", "x=4,y=4; at most 64 ranks", &o->mesh),
        MC_OPTION_TEXT(
            "collective", "C",
            "allreduce, bcast; blocking: allreduce by the blocking call, on one rank; in-turn:\n"
            "eight sizes of two collectives; fresh: other buffers each time",
            &o->collective),
        {0},
    };
    mc_arguments_t none = {0};
    bool help;
    *exit = 0;
    if (mc_options_read(table, argc, argv, &none, &help))
        *exit = fail(meshcoll_last_error());
    else if (!help && !o->mesh != !o->collective)
        *exit = fail("--mesh and --collective go together");
    if (*exit || !help)
        return *exit == 0;
    fputs(usage, stdout);
    mc_options_print(table, stdout);
    return false;
}

int main(int argc, char **argv)
{
    options_t o = {.operations = 1000};
    int status = 0;
    setenv("MESHCOLL_ADAPT", "off", 1); /* trials plan */
    if (!read_options(argc, argv, &o, &status))
        return status;
    if (o.mesh)
        return one(o.mesh, o.collective, o.operations);
    printf("meshcoll-bench-own %s: ns per operation of 8 bytes and rank, medians of %d times %d\n",
           meshcoll_version(), TURNS, o.operations);
    printf("%-10s %-10s %10s %10s   %s\n", "mesh", "collective", "start", "to the end", "strategy");
    for (size_t i = 0; i < MC_COUNT(cases) && !status; i++)
        status = measure(&cases[i], o.operations, TURNS);
    return status;
}
