/*
 * Ranks make the same calls, each in ways of its own, and what they learn never differs.
 *
 *     test_ways CALLS [SEED]
 *
 * Some thousands of kinds of calls are drawn alike on all ranks: few often, which change with time, and many seldom. How
 * a rank makes them is drawn by itself: blocking, nonblocking with others in flight, waited for or tested, in a group, in
 * a callback, in place, in other buffers, late. Results are compared, and from time to time all that the ranks have
 * learned. If two ranks chose otherwise, their messages would not match, and a call would fail.
 */
#include <meshcoll/mpi.h>

#include "runtime/call/adapt.h"
#include "support/long_form.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 8, MOST = 700, SLOTS = 24, BUFFERS = 3, OWN = 6, BETWEEN = 500 };
enum { HOT = 10, WARM = 80, COLD = 3600, ERA = 3000 };

static int rank, size;
static meshcoll_t *mesh;
static mc_random_t of_all, of_own;

static void check(bool good, const char *what, int call)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, call %d: %s; last error: %s\n", rank, call, what,
            meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int shared(int n)
{
    return (int)mc_random_below(&of_all, (size_t)n);
}

static int own(int n)
{
    return (int)mc_random_below(&of_own, (size_t)n);
}

/* Calls in flight: each has buffers of its own. */
typedef struct {
    meshcoll_request_t *request;
    meshcoll_args_t args;
    int call;
} slot_t;
static slot_t slot[SLOTS];
static int32_t from[SLOTS][BUFFERS][RANKS * MOST], to[SLOTS][BUFFERS][RANKS * MOST];

static const meshcoll_collective_t collectives[] = {
    MESHCOLL_ALLREDUCE, MESHCOLL_BCAST,   MESHCOLL_ALLGATHER,      MESHCOLL_REDUCE,
    MESHCOLL_ALLTOALL,  MESHCOLL_SCATTER, MESHCOLL_REDUCE_SCATTER, MESHCOLL_GATHER};

static meshcoll_args_t args_of_kind(int kind)
{
    const int n = (int)(sizeof collectives / sizeof *collectives);
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collectives[kind % n],
                             .count = 1 + (size_t)(kind / n) % MOST,
                             .datatype = MESHCOLL_INT32,
                             .op = MESHCOLL_SUM,
                             .root = kind / n % size};
}

/* Those that come often are others in each era, so that some make room. */
static meshcoll_args_t draw_args(int call)
{
    const int which = shared(10), era = call / ERA;
    const int kind = which < 5   ? (era * 7 + shared(HOT)) * 13
                     : which < 8 ? (era * 31 + shared(WARM)) * 5
                                 : shared(COLD);
    return args_of_kind(kind % COLD);
}

static bool is_root(const meshcoll_args_t *a)
{
    return rank == a->root;
}

static size_t blocks_in(meshcoll_collective_t c)
{
    return c == MESHCOLL_ALLTOALL || c == MESHCOLL_REDUCE_SCATTER || c == MESHCOLL_SCATTER
               ? (size_t)size
               : 1;
}

/* In place as the collective has it, in one of several buffers of the slot. */
static void place(slot_t *s, int k, bool in_place, int buffer, int salt)
{
    meshcoll_args_t *const a = &s->args;
    int32_t *in = from[k][buffer], *out = to[k][(buffer + 1) % BUFFERS];
    const size_t block = (size_t)rank * a->count;
    const bool joins =
        a->collective == MESHCOLL_ALLGATHER || (a->collective == MESHCOLL_GATHER && is_root(a));
    const bool cuts = a->collective == MESHCOLL_REDUCE_SCATTER ||
                      (a->collective == MESHCOLL_SCATTER && is_root(a));
    if (in_place && joins)
        in = out + block;
    else if (in_place && cuts)
        out = in + block;
    else if (in_place)
        out = in;
    memset(out, -1, a->count * sizeof *out);
    for (size_t i = 0; i < a->count * blocks_in(a->collective); i++)
        in[i] = rank * 1000 + (int)i % 777 + salt;
    a->in = in;
    a->out = out;
}

static void expect(const slot_t *s, size_t at, int64_t value)
{
    const int32_t got = ((const int32_t *)s->args.out)[at];
    if (got != value)
        fprintf(stderr, "rank %d, %s of %zu, element %zu: %d, expected %lld\n", rank,
                meshcoll_collective_name(s->args.collective), s->args.count, at, got,
                (long long)value);
    check(got == value, "a wrong result", s->call);
}

/* The last element of each block. */
static void check_result(const slot_t *s)
{
    const meshcoll_args_t *const a = &s->args;
    const int count = (int)a->count, last = count - 1, mine = rank * count + last;
    const int64_t ranks = (int64_t)size * (size - 1) / 2 * 1000;
    const bool sums =
        a->collective == MESHCOLL_ALLREDUCE || (a->collective == MESHCOLL_REDUCE && is_root(a));
    const bool joins =
        a->collective == MESHCOLL_ALLGATHER || (a->collective == MESHCOLL_GATHER && is_root(a));
    if (sums)
        expect(s, (size_t)last, ranks + (int64_t)size * (last % 777 + s->call));
    else if (a->collective == MESHCOLL_REDUCE_SCATTER)
        expect(s, (size_t)last, ranks + (int64_t)size * (mine % 777 + s->call));
    else if (a->collective == MESHCOLL_BCAST)
        expect(s, (size_t)last, a->root * 1000 + last % 777 + s->call);
    else if (a->collective == MESHCOLL_SCATTER)
        expect(s, (size_t)last, a->root * 1000 + mine % 777 + s->call);
    for (int r = 0; r < size; r++)
        if (joins)
            expect(s, (size_t)(r * count + last), r * 1000 + last % 777 + s->call);
        else if (a->collective == MESHCOLL_ALLTOALL)
            expect(s, (size_t)(r * count + last), r * 1000 + mine % 777 + s->call);
}

static void complete(slot_t *s)
{
    int status = MESHCOLL_IN_PROGRESS;
    if (!s->request)
        return;
    for (int tests = own(3) ? 0 : 4; tests > 0 && status == MESHCOLL_IN_PROGRESS; tests--)
        status = meshcoll_test(s->request);
    if (status == MESHCOLL_IN_PROGRESS)
        status = meshcoll_wait(s->request);
    s->request = NULL;
    check(status == MESHCOLL_OK, "a call in flight ends", s->call);
    check_result(s);
}

/* Any but `other`. */
static slot_t *take_slot(int call, const meshcoll_args_t *args, const slot_t *other)
{
    int k = own(SLOTS);
    if (&slot[k] == other)
        k = (k + 1) % SLOTS;
    complete(&slot[k]);
    slot[k].args = *args;
    slot[k].call = call;
    place(&slot[k], k, own(2), own(BUFFERS), call);
    return &slot[k];
}

static int run_blocking(const meshcoll_args_t *a)
{
    switch (a->collective) {
    case MESHCOLL_ALLREDUCE:
        return meshcoll_allreduce(mesh, a->in, a->out, a->count, a->datatype, a->op);
    case MESHCOLL_BCAST:
        return meshcoll_bcast(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_ALLGATHER:
        return meshcoll_allgather(mesh, a->in, a->out, a->count, a->datatype);
    case MESHCOLL_REDUCE:
        return meshcoll_reduce(mesh, a->in, a->out, a->count, a->datatype, a->op, a->root);
    case MESHCOLL_ALLTOALL:
        return meshcoll_alltoall(mesh, a->in, a->out, a->count, a->datatype);
    case MESHCOLL_SCATTER:
        return meshcoll_scatter(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_GATHER:
        return meshcoll_gather(mesh, a->in, a->out, a->count, a->datatype, a->root);
    default:
        return meshcoll_reduce_scatter(mesh, a->in, a->out, a->count, a->datatype, a->op);
    }
}

static void begin(slot_t *s)
{
    check(meshcoll_begin(mesh, &s->args, &s->request) == MESHCOLL_OK, "a call begins", s->call);
}

static void make(slot_t *s)
{
    const int way = own(10);
    if (way < 4) {
        check(run_blocking(&s->args) == MESHCOLL_OK, "a blocking call", s->call);
        check_result(s);
    } else if (way == 4) {
        check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "a group begins", s->call);
        begin(s);
        check(meshcoll_group_end(mesh) == MESHCOLL_OK, "a group ends", s->call);
        check_result(s);
    } else {
        begin(s);
        if (way < 7)
            complete(s);
    }
}

/* Two calls, of which some ranks begin the second when the first is complete. */
static void go_on(void *context, meshcoll_request_t *r, int status)
{
    (void)r;
    check(status == MESHCOLL_OK, "the first of two", 0);
    begin(context);
}

static void make_two(int call)
{
    const meshcoll_args_t first = draw_args(call), second = draw_args(call);
    slot_t *const s = take_slot(call, &first, NULL);
    if (own(2)) {
        make(s);
        make(take_slot(call, &second, NULL));
        return;
    }
    slot_t *const next = take_slot(call, &second, s);
    begin(s);
    check(meshcoll_set_callback(s->request, go_on, next) == MESHCOLL_OK, "a callback", call);
    complete(s);
}

/* Several packed into few, the same on all ranks. */
static void make_group(int call)
{
    enum { MEMBERS = 4 };
    slot_t *member[MEMBERS];
    for (int k = 0; k < MEMBERS; k++) {
        const meshcoll_args_t a = draw_args(call);
        complete(&slot[k]);
        slot[k].args = a;
        slot[k].call = call;
        place(&slot[k], k, own(2), own(BUFFERS), call);
        member[k] = &slot[k];
    }
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "a group begins", call);
    for (int k = 0; k < MEMBERS; k++)
        begin(member[k]);
    check(meshcoll_group_end(mesh) == MESHCOLL_OK, "a group ends", call);
    for (int k = 0; k < MEMBERS; k++)
        check_result(member[k]);
}

/* Persistent requests, started in another order on each rank. */
static slot_t persistent[OWN];
static int32_t own_from[OWN][RANKS * MOST], own_to[OWN][RANKS * MOST];

static void open_own(void)
{
    for (int k = 0; k < OWN; k++) {
        slot_t *const s = &persistent[k];
        s->args = args_of_kind(17 * k + 1);
        s->args.in = own_from[k];
        s->args.out = own_to[k];
        check(meshcoll_init(mesh, &s->args, &s->request) == MESHCOLL_OK, "init", k);
    }
}

static void run_own(int call)
{
    const int first = own(OWN);
    for (int i = 0; i < OWN; i++) {
        slot_t *const s = &persistent[(first + i) % OWN];
        s->call = call;
        for (size_t e = 0; e < s->args.count * blocks_in(s->args.collective); e++)
            ((int32_t *)(uintptr_t)s->args.in)[e] = rank * 1000 + (int)e % 777 + call;
        check(meshcoll_start(s->request) == MESHCOLL_OK, "a start", call);
    }
    for (int i = 0; i < OWN; i++) {
        check(meshcoll_wait(persistent[i].request) == MESHCOLL_OK, "a wait", call);
        check_result(&persistent[i]);
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Of all that follows from the sequence of calls. */
static uint64_t learned(void)
{
    const mc_lessons_t *const t = &mesh->calls.adapt->lessons;
    uint64_t hash = mix((uint64_t)t->n, t->others);
    for (int32_t i = 0; i < t->n; i++) {
        const mc_lesson_t *const lesson = t->lesson[i];
        const mc_learner_t *const l = &lesson->learner;
        const uint64_t of[] = {lesson->key.bytes,
                               (uint64_t)lesson->key.collective,
                               (uint64_t)lesson->key.root,
                               lesson->left,
                               lesson->asked_for,
                               lesson->seen,
                               (uint64_t)lesson->candidate,
                               (uint64_t)l->phase,
                               (uint64_t)l->round,
                               l->calls,
                               (uint64_t)l->n,
                               (uint64_t)l->best,
                               (uint64_t)l->took[l->best]};
        for (size_t k = 0; k < MC_COUNT(of); k++)
            hash = mix(hash, of[k]);
    }
    return hash;
}

static void compare(int call)
{
    for (int k = 0; k < SLOTS; k++)
        complete(&slot[k]);
    check(mesh->calls.adapt && mesh->calls.adapt->lessons.n > 0, "calls learn", call);
    const uint64_t hash = learned(), mine[2] = {hash, ~hash};
    uint64_t most[2];
    MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    check(most[0] == hash && most[1] == ~hash, "another rank has learned otherwise", call);
}

int main(int argc, char **argv)
{
    enum { LONGER = 60 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int calls = (argc > 1 ? atoi(argv[1]) : 4000) * (long_form() ? LONGER : 1);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    of_all = mc_random_of(seed, 0);
    of_own = mc_random_of(seed, 1 + (uint64_t)rank);
    check(size <= RANKS, "on 8 ranks at most", 0);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create", 0);
    open_own();
    for (int i = 0; i < calls; i++) {
        const int what = shared(40);
        if (own(200) == 0)
            usleep((unsigned)own(2000));
        if (what == 0) {
            run_own(i);
        } else if (what == 1) {
            make_group(i);
        } else if (what < 5) {
            make_two(i);
        } else {
            const meshcoll_args_t a = draw_args(i);
            make(take_slot(i, &a, NULL));
        }
        if (i % BETWEEN == 0)
            compare(i);
    }
    compare(calls);
    for (int k = 0; k < OWN; k++)
        meshcoll_free(persistent[k].request);
    if (rank == 0)
        printf("ways: %d calls on %d ranks: ok\n", calls, size);
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
