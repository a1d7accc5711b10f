/*
 * Ranks are processes of one machine. One is killed inside a collective, or gives another count than the others: no rest of
 * them may say that all is well where an element is wrong. Those who were told do at once what a caller may do then: they
 * write over their buffers.
 *
 * MESHCOLL_KILLS: how often each rank is killed in each collective; once unless said, 20 times with MESHCOLL_TESTS=all.
 */
#include "base/base.h"
#include "support/case.h"
#include "support/long_form.h"
#include "support/processes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1 << 19, LEAF = RANKS - 1, KILLS = 1, ALL_KILLS = 20 };
enum { DIFFER_MS = 300 }; /* a rank that has waited for 100 looks for messages of another call */

/* What became of a rank's call. */
typedef enum { RUNS, RIGHT, WRONG, TOLD, NOT_MADE } end_t;

/* In memory of all. */
typedef struct {
    mc_meeting_t meeting;
    _Atomic int entered;
    _Atomic int64_t ns; /* of a call in which nobody is killed */
    _Atomic int end[RANKS];
    char why[RANKS][256];
} world_t;

typedef struct {
    const char *name, *mesh, *transports;
    int patience_ms; /* in which all are told who are told at all */
} wires_t;

static const wires_t shm = {"shm", "gpu=4", "gpu=shm", 2000},
                     tcp = {"tcp", "gpu=4", "gpu=tcp,self", 100},
                     both = {"tcp and shm", "box=2,gpu=2", "box=tcp,self;gpu=shm", 100};

static const struct {
    meshcoll_collective_t collective;
    const char *line, *grid; /* a strategy in which ranks pass on what they are sent */
} calls[] = {
    {MESHCOLL_BCAST, "bcast:chain(gpu)", "bcast:chain(box*gpu)"},
    {MESHCOLL_REDUCE, "reduce:chain(gpu)", "reduce:chain(gpu) reduce:chain(box)"},
    {MESHCOLL_ALLREDUCE, "reduce_scatter:ring(gpu) allgather:ring(gpu)",
     "reduce_scatter:ring(gpu) allreduce:ring(box) allgather:ring(gpu)"},
    {MESHCOLL_ALLGATHER, "allgather:ring(gpu)", "allgather:ring(box) allgather:ring(gpu)"},
    {MESHCOLL_ALLTOALL, "alltoall:bruck(gpu)", "alltoall:pairwise(gpu) alltoall:pairwise(box)"},
};

typedef struct {
    const wires_t *wires;
    int call;
    bool forced;
    int odd;          /* the rank that is killed, or disagrees */
    size_t its_count; /* 0: it is killed */
} case_t;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

/* A rank ----------------------------------------------------------------------------------------- */

static mc_case_t collective_of(const case_t *c, int rank)
{
    const meshcoll_collective_t collective = calls[c->call].collective;
    const bool blocks = mc_case_has_blocks(collective);
    const size_t count = rank == c->odd && c->its_count ? c->its_count : COUNT;
    return (mc_case_t){.collective = collective,
                       .datatype = MESHCOLL_INT32,
                       .op = MESHCOLL_SUM,
                       .count = blocks ? count / RANKS : count};
}

static int open_mesh(const case_t *c, mc_seat_t *seat, meshcoll_t **mesh)
{
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = c->wires->mesh,
                                      .links = "uniform",
                                      .transports = c->wires->transports};
    return meshcoll_create_oob(&oob, &params, mesh);
}

static int call(const case_t *c, meshcoll_t *mesh, const mc_case_t *m, const mc_case_rank_t *r)
{
    const char *const forced = c->wires == &both ? calls[c->call].grid : calls[c->call].line;
    const meshcoll_args_t args = mc_case_args(m, r, c->forced ? forced : NULL);
    meshcoll_request_t *request;
    const int status = meshcoll_begin(mesh, &args, &request);
    return status ? status : meshcoll_wait(request);
}

/* The connections stand when the call begins that fails, and how long it takes is known. */
static int warm_up(const case_t *c, meshcoll_t *mesh, const mc_seat_t *seat, world_t *w)
{
    case_t alike = *c;
    mc_case_rank_t r;
    int status = MESHCOLL_OK;
    alike.its_count = 0;
    const mc_case_t m = collective_of(&alike, seat->rank);
    if (mc_case_open(&m, seat->rank, RANKS, &r))
        return MESHCOLL_ERR_NO_MEMORY;
    for (int i = 0; i < 2 && !status; i++) {
        pthread_barrier_wait(&w->meeting.barrier);
        const int64_t before = now_ns();
        status = call(c, mesh, &m, &r);
        if (seat->rank == 0)
            atomic_store(&w->ns, now_ns() - before);
    }
    mc_case_close(&r);
    return status;
}

static end_t run(const case_t *c, mc_seat_t *seat, world_t *w)
{
    const mc_case_t m = collective_of(c, seat->rank);
    meshcoll_t *mesh;
    mc_case_rank_t r;
    char *const why = w->why[seat->rank];
    if (open_mesh(c, seat, &mesh) || warm_up(c, mesh, seat, w) ||
        mc_case_open(&m, seat->rank, RANKS, &r)) {
        snprintf(why, sizeof w->why[0], "%s", meshcoll_last_error());
        return NOT_MADE;
    }
    pthread_barrier_wait(&w->meeting.barrier);
    atomic_fetch_add(&w->entered, 1);
    const int status = call(c, mesh, &m, &r);
    if (status == MESHCOLL_OK)
        return mc_case_check(&m, &r, why, sizeof w->why[0]) ? WRONG : RIGHT;
    snprintf(why, sizeof w->why[0], "%s", meshcoll_last_error());
    for (int i = 0; i < 2; i++)
        if (r.memory[i])
            memset(r.memory[i], 0x5a, r.bytes[i]);
    return TOLD;
}

/* All of them ------------------------------------------------------------------------------------ */

static bool all_ended(const case_t *c, world_t *w)
{
    for (int r = 0; r < RANKS; r++)
        if (atomic_load(&w->end[r]) == RUNS && (r != c->odd || c->its_count))
            return false;
    return true;
}

static void wait_for_ends(const case_t *c, world_t *w)
{
    const int ms =
        c->its_count && c->wires->patience_ms < DIFFER_MS ? DIFFER_MS : c->wires->patience_ms;
    const int64_t until = now_ns() + (int64_t)ms * 1000000;
    while (!all_ended(c, w) && now_ns() < until)
        sleep_ns(200000);
}

/* Whether the odd one was in its call when it was killed. */
static bool kill_inside(const case_t *c, world_t *w, pid_t pid)
{
    sleep_ns((int64_t)((double)atomic_load(&w->ns) * rand() / RAND_MAX));
    const bool inside = atomic_load(&w->end[c->odd]) == RUNS;
    kill(pid, SIGKILL);
    return inside;
}

typedef struct {
    int inside, told;
} count_t;

static void judge(const case_t *c, world_t *w, count_t *count)
{
    for (int r = 0; r < RANKS; r++) {
        const end_t end = (end_t)atomic_load(&w->end[r]);
        cr_expect(end != WRONG && end != NOT_MADE, "%s over %s, %s, rank %d %s: rank %d %s: %s",
                  meshcoll_collective_name(calls[c->call].collective), c->wires->name,
                  c->forced ? "passed on" : "as planned", c->odd,
                  c->its_count ? "has another count" : "is killed", r,
                  end == WRONG ? "says that all is well" : "did not come so far", w->why[r]);
        count->told += end == TOLD;
    }
}

static void run_all(const case_t *c, count_t *count)
{
    world_t *const w = mc_processes_share(sizeof *w);
    pid_t pid[RANKS];
    mc_meeting_init(&w->meeting, RANKS);
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        cr_assert_geq(pid[r], 0);
        if (pid[r] == 0) {
            atomic_store(&w->end[r], run(c, &(mc_seat_t){&w->meeting, r}, w));
            pause(); /* what it has offered is still read */
        }
    }
    const int64_t until = now_ns() + INT64_C(20000000000);
    while (atomic_load(&w->entered) < RANKS && now_ns() < until && !all_ended(c, w))
        sleep_ns(50000);
    cr_expect_eq(atomic_load(&w->entered), RANKS, "not all came so far");
    if (!c->its_count)
        count->inside += kill_inside(c, w, pid[c->odd]);
    wait_for_ends(c, w);
    for (int r = 0; r < RANKS; r++)
        kill(pid[r], SIGKILL);
    for (int r = 0; r < RANKS; r++)
        waitpid(pid[r], NULL, 0);
    judge(c, w, count);
    munmap(w, sizeof *w);
}

static int kills(void)
{
    const char *const text = getenv("MESHCOLL_KILLS");
    return text ? atoi(text) : long_form() ? ALL_KILLS : KILLS;
}

static void kill_in_all(const wires_t *wires)
{
    count_t count = {0};
    srand(1);
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    for (int i = 0; i < kills(); i++)
        for (int k = 0; k < (int)MC_COUNT(calls); k++) {
            run_all(&(case_t){wires, k, i % 2 == 0, 0, 0}, &count);
            run_all(&(case_t){wires, k, i % 2 == 0, LEAF, 0}, &count);
        }
    cr_expect_gt(count.inside, kills(), "hardly any was killed inside its call");
    if (wires == &shm)
        cr_expect_gt(count.told, kills(), "hardly any was told");
}

static void disagree_in_all(const wires_t *wires)
{
    static const size_t other[] = {COUNT / 2, COUNT - RANKS, 10 * COUNT / 8};
    count_t count = {0};
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    for (size_t i = 0; i < MC_COUNT(other); i++)
        for (int k = 0; k < (int)MC_COUNT(calls); k++)
            for (int odd = 0; odd < RANKS; odd += RANKS - 1)
                for (int forced = 0; forced < 2; forced++)
                    if (long_form() || (i + (size_t)(k + forced)) % 3 == 0)
                        run_all(&(case_t){wires, k, forced, odd, other[i]}, &count);
    cr_expect_gt(count.told, 0);
}

Test(killed, inside_a_call_over_shm)
{
    kill_in_all(&shm);
}

Test(killed, inside_a_call_over_tcp)
{
    kill_in_all(&tcp);
}

Test(killed, inside_a_call_over_both)
{
    kill_in_all(&both);
}

Test(killed, counts_that_differ_over_shm)
{
    disagree_in_all(&shm);
}

Test(killed, counts_that_differ_over_tcp)
{
    disagree_in_all(&tcp);
}

Test(killed, counts_that_differ_over_both)
{
    disagree_in_all(&both);
}
