/*
 * Destroying waits for nobody but with the last mesh of a job, in whatever order; what was made from a mesh goes
 * with it; and in a child of fork it only forgets. Ranks are processes of one machine. Each ends with the line of
 * the check that failed.
 */
#include "base/base.h"
#include "support/processes.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, PATIENCE_S = 20 };

typedef struct {
    const char *transports, *threads, *progress, *timeout, *check;
    bool last; /* destroys the last mesh */
} how_t;

static int make(mc_seat_t *seat, const how_t *how, meshcoll_t **mesh)
{
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "gpu=3",
                                      .links = "uniform",
                                      .transports = how->transports,
                                      .threads = how->threads,
                                      .progress = how->progress,
                                      .timeout = how->timeout,
                                      .check = how->check};
    alarm(PATIENCE_S); /* a hang is a failure */
    return meshcoll_create_oob(&oob, &params, mesh);
}

static int make_group(meshcoll_t *mesh, meshcoll_t **group)
{
    static const int all[RANKS] = {0, 1, 2};
    return meshcoll_create_group(mesh, all, RANKS, 0, group);
}

static void run(int (*ranks)(const void *how, mc_seat_t *seat), const how_t *how)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    cr_expect_eq(mc_processes_run(RANKS, ranks, how), 0, "over %s", how->transports);
}

static const how_t shm = {.transports = "gpu=shm"}, tcp = {.transports = "gpu=tcp,self"};

/* Order ------------------------------------------------------------------------------------------- */

static int groups_in_any_order(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh, *group[RANKS];
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    for (int turn = 0; turn < 4; turn++) {
        for (int g = 0; g < RANKS; g++) {
            CHECK(make_group(mesh, &group[g]) == MESHCOLL_OK);
            CHECK(mc_mesh_adds_up(group[g], (float)(turn + g + 1)));
        }
        for (int g = 0; g < RANKS; g++)
            meshcoll_destroy(group[(g + seat->rank) % RANKS]);
    }
    CHECK(mc_mesh_adds_up(mesh, 2));
    meshcoll_destroy(mesh);
    return 0;
}

Test(destroy, groups_in_different_orders)
{
    run(groups_in_any_order, &shm);
    run(groups_in_any_order, &tcp);
}

/* Rank 0 tells the others, out of band, that it has destroyed the group that they have not. */
static int group_alone(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh, *group, *next;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(make_group(mesh, &group) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(group, 1));
    if (seat->rank == 0)
        meshcoll_destroy(group);
    pthread_barrier_wait(&seat->meeting->barrier);
    /* another gets a context that is free on all, not rank 0's */
    CHECK(make_group(mesh, &next) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(next, 3));
    if (seat->rank != 0)
        meshcoll_destroy(group);
    meshcoll_destroy(next);
    meshcoll_destroy(mesh);
    return 0;
}

Test(destroy, of_a_group_waits_for_nobody)
{
    run(group_alone, &shm);
    run(group_alone, &tcp);
}

static int meshes_in_any_order(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh[RANKS];
    for (int m = 0; m < RANKS; m++) {
        CHECK(make(seat, how, &mesh[m]) == MESHCOLL_OK);
        CHECK(mc_mesh_adds_up(mesh[m], (float)m + 1));
    }
    for (int m = 0; m < RANKS; m++)
        meshcoll_destroy(mesh[(m + seat->rank) % RANKS]);
    return 0;
}

Test(destroy, meshes_in_different_orders)
{
    run(meshes_in_any_order, &shm);
    run(meshes_in_any_order, &tcp);
}

/* The last one ------------------------------------------------------------------------------------ */

static int last_alone(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(mesh, 1));
    if (seat->rank == 2) {
        pthread_barrier_wait(&seat->meeting->barrier);
        CHECK(!mc_mesh_adds_up(mesh, 1)); /* it is told */
        meshcoll_destroy(mesh);
        return 0;
    }
    meshcoll_destroy(mesh);
    const char *const why = meshcoll_last_error();
    CHECK(strstr(why, "rank 2") && strstr(why, "meshcoll_destroy") &&
          strstr(why, "time limit of 1 s"));
    pthread_barrier_wait(&seat->meeting->barrier);
    return 0;
}

Test(destroy, of_the_last_mesh_has_the_time_limit)
{
    run(last_alone, &(how_t){.transports = "gpu=shm", .timeout = "1"});
    run(last_alone, &(how_t){.transports = "gpu=tcp,self", .timeout = "1"});
    run(last_alone, &(how_t){.transports = "gpu=shm", .timeout = "1", .progress = "thread"});
}

/* A connection that another mesh needs, too, is made for one that goes before it is complete. */
static int connects_for_what_goes(const void *how, mc_seat_t *seat)
{
    float in[RANKS] = {1, 1, 1}, out[RANKS];
    meshcoll_t *mesh, *group;
    meshcoll_request_t *r;
    mallopt(M_PERTURB, 1); /* nobody reads what is freed */
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(make_group(mesh, &group) == MESHCOLL_OK);
    CHECK(meshcoll_alltoall_init(group, in, out, 1, MESHCOLL_FLOAT32, &r) == MESHCOLL_OK);
    meshcoll_free(r);
    meshcoll_destroy(group);
    CHECK(meshcoll_alltoall(mesh, in, out, 1, MESHCOLL_FLOAT32) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(mesh, 1));
    meshcoll_destroy(mesh);
    return 0;
}

Test(destroy, of_what_a_connection_is_made_for)
{
    run(connects_for_what_goes, &tcp);
    run(connects_for_what_goes, &shm);
}

/* What goes along ---------------------------------------------------------------------------------- */

static int check_gone(mc_seat_t *seat, meshcoll_t *group)
{
    float x = 1;
    meshcoll_request_t *r;
    meshcoll_registration_t *registration;
    meshcoll_t *sub;
    const meshcoll_args_t a = {.collective = MESHCOLL_BCAST,
                               .in = &x,
                               .out = &x,
                               .count = 1,
                               .datatype = MESHCOLL_FLOAT32};
    const int own = 0;
    CHECK(meshcoll_bcast(group, &x, &x, 1, MESHCOLL_FLOAT32, 0) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(strstr(meshcoll_last_error(), "was destroyed"));
    CHECK(meshcoll_barrier(group) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_begin(group, &a, &r) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_init(group, &a, &r) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_send(group, &x, 1, MESHCOLL_FLOAT32, 0, 1) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_recv(group, &x, 1, MESHCOLL_FLOAT32, 0, 1, NULL) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_enqueue(group, &a, NULL) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_register(group, &x, sizeof x, &registration) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(strstr(meshcoll_last_error(), "was destroyed"));
    CHECK(meshcoll_async_error(group) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_split(group, "gpu", &sub) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_create_group(group, &own, 1, 0, &sub) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_abort(group, "no") == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_shrink(group, 1, NULL, &sub) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(meshcoll_set_timeout(group, 1) <= MESHCOLL_OK);
    CHECK(meshcoll_set_strategy(group, MESHCOLL_BCAST, NULL) <= MESHCOLL_OK);
    CHECK(meshcoll_group_begin(group) < 0 || meshcoll_group_end(group) <= 0);
    CHECK(meshcoll_bytes_sent(group, 0) == 0);
    CHECK(meshcoll_size(group) == RANKS && meshcoll_rank(group) == seat->rank);
    CHECK(strcmp(meshcoll_mesh_text(group), "gpu=3") == 0);
    return 0;
}

static int mesh_first(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh, *group, *inner, *left;
    meshcoll_request_t *r;
    float x = 1;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(make_group(mesh, &group) == MESHCOLL_OK);
    CHECK(make_group(group, &inner) == MESHCOLL_OK);
    CHECK(make_group(mesh, &left) == MESHCOLL_OK); /* nobody destroys it */
    CHECK(mc_mesh_adds_up(group, 1) && mc_mesh_adds_up(inner, 1));
    CHECK(meshcoll_bcast_init(group, &x, &x, 1, MESHCOLL_FLOAT32, 0, &r) == MESHCOLL_OK);
    meshcoll_destroy(mesh);
    CHECK(meshcoll_start(r) == MESHCOLL_ERR_INVALID_ARG);
    meshcoll_free(r);
    int status = check_gone(seat, group);
    status = status ? status : check_gone(seat, inner);
    meshcoll_destroy(inner);
    meshcoll_destroy(group);
    return status;
}

/* The same of a group, whose connections live on. */
static int group_first(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh, *group, *inner;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(make_group(mesh, &group) == MESHCOLL_OK);
    CHECK(make_group(group, &inner) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(inner, 1));
    meshcoll_destroy(group);
    const int status = check_gone(seat, inner);
    meshcoll_destroy(inner);
    CHECK(mc_mesh_adds_up(mesh, 5));
    meshcoll_destroy(mesh);
    return status;
}

Test(destroy, takes_along_what_was_made_from_it)
{
    run(mesh_first, &shm);
    run(mesh_first, &tcp);
    run(group_first, &shm);
    run(group_first, &(how_t){.transports = "gpu=shm", .progress = "thread"});
}

/* Forks -------------------------------------------------------------------------------------------- */

/* The child calls, waits for its parent's request, then destroys: each an error or nothing. */
static int be_child(mc_seat_t *seat, meshcoll_t *mesh, meshcoll_t *group, meshcoll_request_t *r)
{
    float x = 1;
    alarm(PATIENCE_S);
    CHECK(meshcoll_bcast(mesh, &x, &x, 1, MESHCOLL_FLOAT32, 0) == MESHCOLL_ERR_UNSUPPORTED);
    CHECK(strstr(meshcoll_last_error(), "fork"));
    CHECK(meshcoll_send(group, &x, 1, MESHCOLL_FLOAT32, 0, 1) == MESHCOLL_ERR_UNSUPPORTED);
    CHECK(meshcoll_wait(r) == MESHCOLL_ERR_UNSUPPORTED);
    meshcoll_destroy(group);
    meshcoll_destroy(mesh);
    return 0;
}

static int with_children(const void *how, mc_seat_t *seat)
{
    meshcoll_t *mesh, *group;
    meshcoll_request_t *r;
    const float in = (float)(seat->rank + 1);
    float out = 0;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(make_group(mesh, &group) == MESHCOLL_OK);
    CHECK(mc_mesh_adds_up(mesh, 1) && mc_mesh_adds_up(group, 1));
    CHECK(meshcoll_recv_begin(mesh, &out, 1, MESHCOLL_FLOAT32, (seat->rank + 1) % RANKS, 7, NULL,
                              &r) == MESHCOLL_OK);
    const pid_t child = fork();
    if (child == 0)
        _exit(be_child(seat, mesh, group, r));
    CHECK(mc_process_await(child) == 0);
    CHECK(mc_mesh_adds_up(mesh, 2) && mc_mesh_adds_up(group, 3));
    CHECK(meshcoll_send(mesh, &in, 1, MESHCOLL_FLOAT32, (seat->rank + 2) % RANKS, 7) ==
          MESHCOLL_OK);
    CHECK(meshcoll_wait(r) == MESHCOLL_OK && out == (float)((seat->rank + 1) % RANKS + 1));
    meshcoll_destroy(mesh);
    return 0;
}

Test(destroy, in_a_child_of_fork_only_forgets)
{
    run(with_children, &shm);
    run(with_children, &tcp);
    run(with_children, &(how_t){.transports = "gpu=tcp,self", .progress = "thread"});
    run(with_children, &(how_t){.transports = "gpu=shm", .threads = "multiple"});
}

/* A group of calls that is open -------------------------------------------------------------------- */

static int open_group(const void *argument, mc_seat_t *seat)
{
    const how_t *const how = argument;
    const float in = 1;
    float out = 0;
    meshcoll_t *mesh, *other = NULL;
    CHECK(make(seat, how, &mesh) == MESHCOLL_OK);
    CHECK(how->last || make_group(mesh, &other) == MESHCOLL_OK);
    meshcoll_t *const m = how->last ? mesh : other;
    CHECK(mc_mesh_adds_up(m, 1));
    CHECK(meshcoll_group_begin(m) == MESHCOLL_OK);
    CHECK(meshcoll_allreduce(m, &in, &out, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM) == MESHCOLL_OK);
    if (seat->rank > 0)
        CHECK(meshcoll_group_end(m) < 0);
    meshcoll_destroy(m);
    if (!how->last)
        meshcoll_destroy(mesh);
    return 0;
}

Test(destroy, with_an_open_group_tells_the_others)
{
    for (int i = 0; i < 4; i++) {
        const how_t how = {.transports = "gpu=shm", .check = i % 2 ? "1" : "0", .last = i / 2 > 0};
        run(open_group, &how);
    }
}
