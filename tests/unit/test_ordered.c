/*
 * The order in which ranks fill a mesh: all collectives give what they give without one, by every strategy of a sample,
 * with the ranks' own numbers. Ranks are processes; each ends with the line of the check that failed.
 */
#include "runtime/handle/handle.h"
#include "support/case.h"
#include "support/processes.h"
#include "support/strategies.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 6, MOST = 12, PATIENCE_S = 120 };

typedef struct {
    const char *mesh, *order;
    int32_t rank_at[RANKS]; /* by place of the mesh */
} ordered_t;

static int create(mc_seat_t *seat, const ordered_t *o, const char *reproducible, meshcoll_t **mesh)
{
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = o->mesh,
                                      .links = "generic",
                                      .transports = "",
                                      .reproducible = reproducible,
                                      .order = o->order};
    return meshcoll_create_oob(&oob, &params, mesh);
}

static int collectives(const void *context, mc_seat_t *seat)
{
    const ordered_t *const o = context;
    meshcoll_t *mesh;
    char why[512];
    alarm(PATIENCE_S);
    CHECK(create(seat, o, NULL, &mesh) == MESHCOLL_OK);
    CHECK(meshcoll_rank(mesh) == seat->rank);
    CHECK(mc_comm_rank_of(&mesh->order, mesh->rank) == seat->rank);
    CHECK(o->rank_at[mesh->rank] == seat->rank);
    CHECK(mc_case_run_all(mesh, false));
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_case_t call = {.collective = (meshcoll_collective_t)c,
                                .datatype = MESHCOLL_INT32,
                                .op = MESHCOLL_SUM,
                                .count = 13,
                                .root = mc_case_is_rooted((meshcoll_collective_t)c) ? 4 : 0};
        mc_sample_t sample;
        CHECK(mc_sample_open(call.collective, &mesh->mesh, MOST, &sample) == 0);
        for (int i = 0; i < sample.n; i++) {
            CHECK(meshcoll_set_strategy(mesh, call.collective, sample.text[i]) == MESHCOLL_OK);
            if (mc_case_run(mesh, &call, false, why, sizeof why)) {
                fprintf(stderr, "%s: %s\n", sample.text[i], why);
                CHECK(!"as without an order");
            }
        }
        CHECK(sample.n > 0 && meshcoll_set_strategy(mesh, call.collective, NULL) == MESHCOLL_OK);
        mc_sample_close(&sample);
    }
    meshcoll_destroy(mesh);
    return 0;
}

static const ordered_t cases[] = {
    {"box=2,gpu=3", "5,0,3,1,4,2", {5, 0, 3, 1, 4, 2}},
    {"x=6", "3-5,0-2", {3, 4, 5, 0, 1, 2}},
    {"box=2,numa=1,gpu=3", "1,0,2-5", {1, 0, 2, 3, 4, 5}},
    {"box=4+2", "4,5,0-3", {4, 5, 0, 1, 2, 3}},
};

Test(ordered, collectives_are_the_same)
{
    for (size_t i = 0; i < MC_COUNT(cases); i++)
        cr_expect_eq(mc_processes_run(RANKS, collectives, &cases[i]), 0, "%s by %s", cases[i].mesh,
                     cases[i].order);
}

/* Reproducible sums are the same in any order, to the bit. */
static int sums(const void *context, mc_seat_t *seat)
{
    const ordered_t *const o = context, plain = {.mesh = o->mesh, .order = ""};
    const float in = 1.0f / (float)(3 + seat->rank) * (seat->rank % 2 ? -1e6f : 1.0f);
    float out[2];
    for (int i = 0; i < 2; i++) {
        meshcoll_t *mesh;
        CHECK(create(seat, i ? o : &plain, "1", &mesh) == MESHCOLL_OK);
        CHECK((mesh->order.comm_rank != NULL) == i);
        CHECK(meshcoll_allreduce(mesh, &in, &out[i], 1, MESHCOLL_FLOAT32, MESHCOLL_SUM) ==
              MESHCOLL_OK);
        meshcoll_destroy(mesh);
    }
    CHECK(memcmp(&out[0], &out[1], sizeof out[0]) == 0);
    return 0;
}

Test(ordered, reproducible_sums_are_the_same)
{
    for (size_t i = 0; i < MC_COUNT(cases); i++)
        cr_expect_eq(mc_processes_run(RANKS, sums, &cases[i]), 0, "%s", cases[i].mesh);
}

/* The variable holds where the program gives no order, and not for a mesh that is to be found. */
static int variable(const void *context, mc_seat_t *seat)
{
    const ordered_t given = {.mesh = "x=6"}, found = {.mesh = ""};
    meshcoll_t *mesh;
    (void)context;
    setenv("MESHCOLL_ORDER", "5,4,3,2,1,0", 1);
    CHECK(create(seat, &given, NULL, &mesh) == MESHCOLL_OK);
    CHECK(mesh->rank == RANKS - 1 - seat->rank && mc_mesh_adds_up(mesh, 1));
    meshcoll_destroy(mesh);
    CHECK(create(seat, &found, NULL, &mesh) == MESHCOLL_OK);
    CHECK(mesh->rank == seat->rank && mc_mesh_adds_up(mesh, 1));
    meshcoll_destroy(mesh);
    setenv("MESHCOLL_ORDER", "0,1,2,3,5,5", 1);
    CHECK(create(seat, &given, NULL, &mesh) == MESHCOLL_ERR_INVALID_ARG);
    CHECK(strstr(meshcoll_last_error(), "each of the 6 ranks once"));
    return 0;
}

Test(ordered, by_variable)
{
    cr_expect_eq(mc_processes_run(RANKS, variable, NULL), 0);
}
