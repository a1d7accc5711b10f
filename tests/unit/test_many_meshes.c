/*
 * Meshes by the thousand of the same processes, whatever makes them: they take part in one job, so that each costs no
 * descriptor, no thread and little memory. Ranks are processes of one machine; each ends with the line of the check
 * that failed.
 */
#include "base/base.h"
#include "support/processes.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, MESHES = 2000, MOST_KIB = 64, PATIENCE_S = 120, NAP_US = 1000 };

/* How often the library has asked for the machine's addresses, as it does when it looks where a process runs. */
static int n_asked;

int getifaddrs(struct ifaddrs **all)
{
    int (*next)(struct ifaddrs **) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "getifaddrs");
    n_asked++;
    return next(all);
}

typedef struct {
    long descriptors, threads, kib;
} costs_t;

static costs_t measure(void)
{
    costs_t c = {0};
    char line[128];
    DIR *const dir = opendir("/proc/self/fd");
    FILE *const status = fopen("/proc/self/status", "r");
    while (dir && readdir(dir))
        c.descriptors++;
    while (status && fgets(line, sizeof line, status)) {
        (void)sscanf(line, "Threads: %ld", &c.threads);
        (void)sscanf(line, "VmRSS: %ld", &c.kib);
    }
    fclose(status);
    closedir(dir);
    return c;
}

/* Does this process have as many descriptors and threads again? The kernel still counts a thread that has been joined
 * for a moment, and the monitor's thread closes connections when it comes to it. */
static bool costs_as_before(const costs_t *before)
{
    const double until = mc_now() + PATIENCE_S / 4.0;
    costs_t c;
    do
        c = measure();
    while ((c.threads != before->threads || c.descriptors != before->descriptors) &&
           mc_now() < until && usleep(NAP_US) == 0);
    if (c.threads != before->threads || c.descriptors != before->descriptors)
        fprintf(stderr, "%ld threads and %ld descriptors, %ld and %ld before\n", c.threads,
                c.descriptors, before->threads, before->descriptors);
    return c.threads == before->threads && c.descriptors == before->descriptors;
}

static int make(mc_seat_t *seat, const meshcoll_params_t *params, meshcoll_t **mesh)
{
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    return meshcoll_create_oob(&oob, params, mesh);
}

static void run(int (*ranks)(const void *how, mc_seat_t *seat), const void *how)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    cr_expect_eq(mc_processes_run(RANKS, ranks, how), 0);
}

static meshcoll_params_t params_of(const void *progress)
{
    return (meshcoll_params_t){.size = sizeof(meshcoll_params_t),
                               .links = "uniform",
                               .transports = "gpu=tcp,self",
                               .progress = progress};
}

/* The first of them may open connections, and the second tables that all use. */
static int many(const void *progress, mc_seat_t *seat)
{
    static meshcoll_t *mesh[MESHES];
    const meshcoll_params_t params = params_of(progress);
    costs_t before = {0};
    int n_first = 0;
    alarm(PATIENCE_S);
    for (int i = 0; i < MESHES; i++) {
        if (i == 1)
            n_first = n_asked;
        if (i == 2)
            before = measure();
        CHECK(make(seat, &params, &mesh[i]) == MESHCOLL_OK);
        CHECK(mc_mesh_adds_up(mesh[i], (float)i));
    }
    const costs_t after = measure();
    const long kib = (after.kib - before.kib) / (MESHES - 2);
    if (seat->rank == 0)
        fprintf(stderr, "%d meshes: %ld descriptors, %ld threads, %ld KiB each\n", MESHES,
                after.descriptors - before.descriptors, after.threads - before.threads, kib);
    CHECK(costs_as_before(&before));
    CHECK(n_first > 0 && n_asked == n_first);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    CHECK(kib <= MOST_KIB);
#endif
    for (int i = 0; i < MESHES; i++)
        meshcoll_destroy(mesh[(i + seat->rank * 100) % MESHES]);
    return 0;
}

Test(many_meshes, cost_no_descriptor_no_thread_and_little_memory, .timeout = 2 * PATIENCE_S)
{
    run(many, NULL);
}

Test(many_meshes, have_one_progress_thread, .timeout = 2 * PATIENCE_S)
{
    run(many, "thread");
}

/* Parts, another order, a group of one, and a group made of them; the first mesh goes first. */
static int parts(const void *unused, mc_seat_t *seat)
{
    const meshcoll_params_t params = params_of(NULL), alone = {.size = sizeof alone};
    meshcoll_t *all, *turned, *one, *group;
    static const int ranks[] = {2, 0};
    mc_seat_t other = {seat->meeting, (seat->rank + 1) % RANKS};
    mc_meeting_t *const own = mc_processes_share(sizeof *own);
    mc_seat_t only = {own, 0};
    (void)unused;
    alarm(PATIENCE_S);
    CHECK(make(seat, &params, &all) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(all, 1));
    const costs_t before = measure();
    CHECK(make(&other, &params, &turned) == MESHCOLL_OK);
    CHECK(meshcoll_rank(turned) == other.rank && meshcoll_size(turned) == RANKS);
    mc_meeting_init(own, 1);
    CHECK(make(&only, &alone, &one) == MESHCOLL_OK);
    CHECK(meshcoll_size(one) == 1);
    CHECK(costs_as_before(&before));
    float from[RANKS], x = (float)other.rank;
    CHECK(meshcoll_allgather(turned, &x, from, 1, MESHCOLL_FLOAT32) == MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++)
        CHECK(from[r] == (float)r);
    meshcoll_destroy(all);
    CHECK(mc_mesh_adds_up(turned, 4));
    if (other.rank != 1) {
        CHECK(meshcoll_create_group(turned, ranks, 2, 0, &group) == MESHCOLL_OK);
        CHECK(meshcoll_rank(group) == (other.rank == 2 ? 0 : 1));
        CHECK(meshcoll_barrier(group) == MESHCOLL_OK);
        meshcoll_destroy(group);
    }
    meshcoll_destroy(one);
    CHECK(mc_mesh_adds_up(turned, 5));
    meshcoll_destroy(turned);
    /* a job that has ended is not joined */
    CHECK(make(seat, &params, &all) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(all, 6));
    meshcoll_destroy(all);
    return 0;
}

Test(many_meshes, of_parts_and_in_other_orders, .timeout = 2 * PATIENCE_S)
{
    run(parts, NULL);
}

/* What belongs to the job differs: the mesh makes one of its own. */
static int others(const void *unused, mc_seat_t *seat)
{
    meshcoll_params_t params = params_of(NULL);
    meshcoll_t *mesh, *shm;
    (void)unused;
    alarm(PATIENCE_S);
    CHECK(make(seat, &params, &mesh) == MESHCOLL_OK);
    params.transports = "gpu=shm";
    const costs_t before = measure();
    CHECK(make(seat, &params, &shm) == MESHCOLL_OK);
    CHECK(measure().descriptors > before.descriptors && measure().threads > before.threads);
    CHECK(mc_mesh_adds_up(mesh, 1) && mc_mesh_adds_up(shm, 2));
    meshcoll_destroy(mesh);
    CHECK(mc_mesh_adds_up(shm, 3));
    meshcoll_destroy(shm);
    return 0;
}

Test(many_meshes, with_other_transports_have_a_job_of_their_own, .timeout = 2 * PATIENCE_S)
{
    run(others, NULL);
}

/* Ranks 0 and 1 are in a job, rank 2 in none, and then in another one: a mesh of all makes a job of its own. */
static int apart(const void *context, mc_seat_t *seat)
{
    mc_seat_t its = {(mc_meeting_t *)(uintptr_t)context + seat->rank / 2, seat->rank % 2};
    const meshcoll_params_t params = {.size = sizeof params, .transports = "gpu=shm"};
    meshcoll_t *own = NULL, *all, *again, *joined;
    alarm(PATIENCE_S);
    if (seat->rank < 2)
        CHECK(make(&its, &params, &own) == MESHCOLL_OK && mc_mesh_adds_up(own, 1));
    CHECK(make(seat, &params, &all) == MESHCOLL_OK && meshcoll_size(all) == RANKS);
    CHECK(mc_mesh_adds_up(all, 2));
    meshcoll_destroy(all);
    if (seat->rank == 2)
        CHECK(make(&its, &params, &own) == MESHCOLL_OK);
    CHECK(make(seat, &params, &again) == MESHCOLL_OK && mc_mesh_adds_up(again, 3));
    const int n = n_asked;
    CHECK(make(seat, &params, &joined) == MESHCOLL_OK && mc_mesh_adds_up(joined, 4));
    CHECK(n_asked == n);
    meshcoll_destroy(again);
    meshcoll_destroy(own);
    CHECK(mc_mesh_adds_up(joined, 5));
    meshcoll_destroy(joined);
    return 0;
}

Test(many_meshes, of_ranks_in_different_jobs, .timeout = 2 * PATIENCE_S)
{
    mc_meeting_t *const meeting = mc_processes_share(2 * sizeof *meeting);
    mc_meeting_init(&meeting[0], 2);
    mc_meeting_init(&meeting[1], 1);
    run(apart, meeting);
}

/* Ranks 0 and 2 have a mesh of their own. All fail with rank 1, and these go on. */
static int shrink_pair(const void *context, mc_seat_t *seat)
{
    mc_seat_t its = {(mc_meeting_t *)(uintptr_t)context, seat->rank / 2};
    const meshcoll_params_t params = params_of(NULL);
    meshcoll_t *all, *pair = NULL, *rest;
    alarm(PATIENCE_S);
    CHECK(make(seat, &params, &all) == MESHCOLL_OK);
    if (seat->rank != 1)
        CHECK(make(&its, &params, &pair) == MESHCOLL_OK && meshcoll_barrier(pair) == MESHCOLL_OK);
    pthread_barrier_wait(&seat->meeting->barrier);
    if (seat->rank == 1)
        raise(SIGKILL);
    while (meshcoll_barrier(pair) == MESHCOLL_OK) {}
    CHECK(meshcoll_shrink(pair, 10, &params, &rest) == MESHCOLL_OK);
    meshcoll_destroy(all);
    meshcoll_destroy(pair);
    CHECK(meshcoll_size(rest) == 2 && meshcoll_rank(rest) == its.rank);
    CHECK(meshcoll_barrier(rest) == MESHCOLL_OK);
    meshcoll_destroy(rest);
    return 0;
}

Test(many_meshes, of_some_ranks_shrink, .timeout = 2 * PATIENCE_S)
{
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    mc_meeting_t *const its = mc_processes_share(sizeof *its);
    pid_t pid[RANKS];
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    mc_meeting_init(meeting, RANKS);
    mc_meeting_init(its, 2);
    mc_processes_fork(meeting, shrink_pair, its, pid);
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(mc_process_await(pid[r]), r == 1 ? -SIGKILL : 0, "rank %d", r);
}

/* Threads of each rank make meshes at the same time, in no order that ranks share: as PyTorch does. */
enum { THREADS = 4, EACH = 25 };
typedef struct {
    mc_seat_t seat;
    pthread_t thread;
    bool good;
} maker_t;

static void *make_some(void *argument)
{
    maker_t *const m = argument;
    meshcoll_params_t params = params_of("thread");
    meshcoll_t *mesh[EACH];
    m->good = true;
    for (int i = 0; i < EACH && m->good; i++)
        m->good =
            make(&m->seat, &params, &mesh[i]) == MESHCOLL_OK && mc_mesh_adds_up(mesh[i], (float)i);
    for (int i = 0; i < EACH && m->good; i++)
        meshcoll_destroy(mesh[i]);
    return NULL;
}

static int by_threads(const void *context, mc_seat_t *seat)
{
    mc_meeting_t *const meeting = (mc_meeting_t *)(uintptr_t)context;
    const meshcoll_params_t params = params_of("thread");
    maker_t maker[THREADS];
    meshcoll_t *first;
    alarm(PATIENCE_S);
    CHECK(make(seat, &params, &first) == MESHCOLL_OK && mc_mesh_adds_up(first, 1));
    const costs_t before = measure();
    for (int t = 0; t < THREADS; t++) {
        maker[t].seat = (mc_seat_t){&meeting[t], seat->rank};
        CHECK(pthread_create(&maker[t].thread, NULL, make_some, &maker[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(maker[t].thread, NULL);
        CHECK(maker[t].good);
    }
    CHECK(mc_mesh_adds_up(first, 7));
    CHECK(costs_as_before(&before));
    meshcoll_destroy(first);
    return 0;
}

Test(many_meshes, made_by_several_threads_at_once, .timeout = 2 * PATIENCE_S)
{
    mc_meeting_t *const meeting = mc_processes_share(THREADS * sizeof *meeting);
    for (int t = 0; t < THREADS; t++)
        mc_meeting_init(&meeting[t], RANKS);
    run(by_threads, meeting);
}
