/* Plans run in program order: each rank one step after the other, so many messages in flight. */
#include "plan/verify/check.h"
#include "support/plans.h"
#include "support/program.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MANY = 1000 };

/* The least window that the verifier finds; 0: it fails with this one. */
static uint32_t least_of(const plans_t *p, uint32_t window)
{
    const mc_world_t world = world_of(p);
    mc_match_t match;
    uint32_t least = 0;
    cr_assert_eq(mc_match_create(&world, &match), MESHCOLL_OK, "%s", meshcoll_last_error());
    const int status = mc_check_program(&world, &match, window, &least);
    cr_expect_eq(status == MESHCOLL_OK, least != 0);
    cr_expect(status == MESHCOLL_OK || status == MESHCOLL_ERR_PLAN);
    mc_arena_free(&match.arena);
    return least;
}

static void expect_stuck(const plans_t *p, uint32_t window, const char *sentence)
{
    cr_expect_eq(least_of(p, window), 0);
    cr_expect_str_eq(meshcoll_last_error(), sentence);
}

/* Strategies --------------------------------------------------------------------------------------- */

static const case_t right[] = {
    {"x=1", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"},
    {"x=5", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x) segments=3"},
    {"x=6", MESHCOLL_BCAST, 2, "bcast:mst(x) segments=4"},
    {"x=4", MESHCOLL_BCAST, 1, "bcast:chain(x) segments=8"},
    {"x=5", MESHCOLL_ALLGATHER, 0, "allgather:bruck(x)"},
    {"x=7", MESHCOLL_ALLTOALL, 0, "alltoall:bruck(x)"},
    {"x=5", MESHCOLL_ALLREDUCE, 0, "allreduce:fullmesh(x)"},
    {"x=6", MESHCOLL_ALLREDUCE, 0, "allreduce:aligned(x)"},
    {"box=2,gpu=3", MESHCOLL_BCAST, 4, "option3 segments=2"},
    {"box=4,gpu=4", MESHCOLL_ALLREDUCE, 0, "hierarchical segments=4"},
    {"box=4+3+1", MESHCOLL_ALLREDUCE, 0, "hierarchical segments=2"},
    {"box=4+3+1", MESHCOLL_BCAST, 6, "option3"},
    {"box=4+3+1", MESHCOLL_ALLTOALL, 0, "hierarchical"},
    {"box=3,gpu=2", MESHCOLL_ALLREDUCE, 0, "torus"},
    /* tiles of several ranges, in turns: sends first, these would need four and three in flight */
    {"x=4,y=5", MESHCOLL_ALLTOALL, 0, "alltoall:bruck(x) alltoall:bruck(y)"},
    {"x=3,y=2,z=4", MESHCOLL_BCAST, 0,
     "scatter:star(x) scatter:star(z) allgather:bruck(x) scatter:star(y) allgather:bruck(z) "
     "allgather:bruck(y)"},
};

Test(program, completes_with_the_window_of_devices)
{
    for (size_t i = 0; i < MC_COUNT(right); i++) {
        plans_t p;
        plans_of(&p, &right[i]);
        const mc_world_t world = world_of(&p);
        const uint32_t least = least_of(&p, MC_PROGRAM_WINDOW);
        uint32_t window = 0;
        cr_expect_gt(least, 0, "%s: %s", right[i].strategy, meshcoll_last_error());
        cr_expect_eq(least, program_least(&world, MANY), "%s", right[i].strategy);
        cr_expect_eq(mc_verify(&world, NULL, &window), MESHCOLL_OK);
        cr_expect_eq(window, least);
        plans_free(&p);
    }
}

typedef struct {
    const mc_mesh_t *mesh;
    uint32_t worlds, most, seen;
} sweep_t;

/* The least window by both ways. Of many strategies some are taken. */
static bool compare(void *context, const mc_strategy_t *strategy)
{
    enum { FEW = 64, EVERY = 23 };
    sweep_t *const sweep = context;
    mc_strategy_t s = *strategy;
    if (sweep->seen++ >= FEW && sweep->seen % EVERY)
        return true;
    for (s.segments = 1; s.segments <= 3; s.segments += 2) {
        plans_t p;
        plans_make(&p, sweep->mesh, &s, sweep->mesh->size - 1);
        const mc_world_t world = world_of(&p);
        const uint32_t least = least_of(&p, MANY);
        char text[MC_STRATEGY_TEXT];
        mc_text_t out = mc_text(text, sizeof text);
        mc_strategy_print(&s, sweep->mesh, &out);
        cr_expect_eq(least, program_least(&world, MANY), "%s: %u", text, least);
        cr_expect_leq(least, MC_PROGRAM_WINDOW, "%s: %u", text, least);
        sweep->most = least > sweep->most ? least : sweep->most;
        sweep->worlds++;
        plans_free(&p);
    }
    return true;
}

Test(program, finds_the_least_window)
{
    static const char *const text[] = {"x=7", "x=3,y=2", "x=2,y=2,z=3", "box=3+2+1"};
    uint32_t most = 0;
    for (size_t i = 0; i < MC_COUNT(text); i++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            mc_mesh_t mesh;
            cr_assert_eq(mc_mesh_parse(text[i], &mesh), MESHCOLL_OK);
            sweep_t sweep = {.mesh = &mesh};
            cr_expect_eq(
                mc_strategy_each((meshcoll_collective_t)c, &mesh, MC_PATHS_COVER, compare, &sweep),
                MESHCOLL_OK);
            cr_expect_gt(sweep.worlds, 0);
            most = sweep.most > most ? sweep.most : most;
        }
    cr_expect_gt(most, 1);
}

/* Plans by hand ------------------------------------------------------------------------------------ */

#define SEND(peer_, chunk)                                                                     \
    {                                                                                          \
        .op = MC_OP_SEND, .src = MC_IN, .peer = (peer_), .first = (chunk), .run = 1, .nrun = 1 \
    }
#define RECV(peer_, chunk)                                                                       \
    {                                                                                            \
        .op = MC_OP_RECV, .dst = MC_SCRATCH, .peer = (peer_), .to = (chunk), .run = 1, .nrun = 1 \
    }

static void seal(plans_t *p, const plans_t *model, const mc_step_t *step, uint32_t n)
{
    const int32_t rank = p->n++;
    cr_assert_eq(mc_seal_steps(model->plan[rank], step, n, &p->plan[rank]), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
}

/* Two ranks and three chunks. Both send all, then receive all. */
Test(program, needs_three_in_flight_where_three_are_sent_before_any_is_received)
{
    const mc_step_t first[] = {SEND(1, 0), SEND(1, 1), SEND(1, 2),
                               RECV(1, 0), RECV(1, 1), RECV(1, 2)};
    const mc_step_t second[] = {SEND(0, 0), SEND(0, 1), SEND(0, 2),
                                RECV(0, 0), RECV(0, 1), RECV(0, 2)};
    plans_t model, p = {0};
    plans_of(&model, &(case_t){"x=2", MESHCOLL_ALLREDUCE, 0, "allreduce:mst(x) segments=3"});
    seal(&p, &model, first, MC_COUNT(first));
    seal(&p, &model, second, MC_COUNT(second));
    cr_expect_eq(least_of(&p, 3), 3);
    cr_expect_eq(least_of(&p, MANY), 3);
    expect_stuck(&p, 2,
                 "no progress in program order with 2 messages in flight from one rank to another: "
                 "rank 0's step 2 (send -> 1) waits for rank 1's step 2 (send -> 0), which waits "
                 "for the first; 3 in flight would do");
    expect_stuck(&p, 1,
                 "no progress in program order with 1 message in flight from one rank to another: "
                 "rank 0's step 1 (send -> 1) waits for rank 1's step 1 (send -> 0), which waits "
                 "for the first; 3 in flight would do");
    plans_free(&p);
    plans_free(&model);
}

/* The same messages, of which one rank or both receive each before they send the next. */
Test(program, needs_fewer_in_flight_where_ranks_take_turns)
{
    const mc_step_t at_once[] = {SEND(1, 0), SEND(1, 1), SEND(1, 2),
                                 RECV(1, 0), RECV(1, 1), RECV(1, 2)};
    const mc_step_t first[] = {SEND(1, 0), RECV(1, 0), SEND(1, 1),
                               RECV(1, 1), SEND(1, 2), RECV(1, 2)};
    const mc_step_t second[] = {SEND(0, 0), RECV(0, 0), SEND(0, 1),
                                RECV(0, 1), SEND(0, 2), RECV(0, 2)};
    plans_t model, one = {0}, both = {0};
    plans_of(&model, &(case_t){"x=2", MESHCOLL_ALLREDUCE, 0, "allreduce:mst(x) segments=3"});
    seal(&one, &model, at_once, MC_COUNT(at_once));
    seal(&one, &model, second, MC_COUNT(second));
    seal(&both, &model, first, MC_COUNT(first));
    seal(&both, &model, second, MC_COUNT(second));
    cr_expect_eq(least_of(&one, MANY), 2);
    cr_expect_eq(least_of(&both, MANY), 1);
    plans_free(&both);
    plans_free(&one);
    plans_free(&model);
}

/* An allgather whose ranks receive before they send: dependencies let the send go first, program
 * order never does. */
Test(program, catches_an_order_that_only_dependencies_mend)
{
    enum { AT_MOST = 8 };
    plans_t p;
    plans_of(&p, &(case_t){"x=2", MESHCOLL_ALLGATHER, 0, "allgather:ring(x)"});
    for (int32_t rank = 0; rank < p.n; rank++) {
        mc_plan_t *const plan = p.plan[rank];
        mc_step_t step[AT_MOST];
        cr_assert(plan->n_steps >= 2 && plan->n_steps <= AT_MOST);
        memcpy(step, plan->step, plan->n_steps * sizeof *step);
        cr_assert_eq(step[0].op, MC_OP_SEND);
        cr_assert_eq(step[1].op, MC_OP_RECV);
        step[0] = plan->step[1];
        step[1] = plan->step[0];
        cr_assert_eq(mc_seal_steps(plan, step, plan->n_steps, &p.plan[rank]), MESHCOLL_OK);
        mc_plan_free(plan);
    }
    const char *const sentence =
        "no progress in program order, however many messages are in flight: rank 0's step 0 (recv "
        "<- 1) waits for rank 1's step 0 (recv <- 0), which waits for the first";
    const mc_world_t world = world_of(&p);
    expect_stuck(&p, MC_PROGRAM_WINDOW, sentence);
    expect_stuck(&p, MANY, sentence);
    /* the verifier finds nothing else */
    cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_ERR_PLAN);
    cr_expect_str_eq(meshcoll_last_error(), sentence);
    cr_expect_not(program_completes(&world, MANY));
    plans_free(&p);
}

/* A circle of more ranks than a sentence names. */
Test(program, names_some_of_many_ranks_that_wait_in_a_circle)
{
    enum { RANKS = 6 };
    plans_t model, p = {0};
    plans_of(&model, &(case_t){"x=6", MESHCOLL_ALLREDUCE, 0, "allreduce:mst(x) segments=2"});
    for (int32_t rank = 0; rank < RANKS; rank++) {
        const int32_t right_one = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
        const mc_step_t step[] = {SEND(right_one, 0), SEND(right_one, 1), RECV(left, 0),
                                  RECV(left, 1)};
        seal(&p, &model, step, MC_COUNT(step));
    }
    cr_expect_eq(least_of(&p, 2), 2);
    expect_stuck(&p, 1,
                 "no progress in program order with 1 message in flight from one rank to another: "
                 "rank 0's step 1 (send -> 1) waits for rank 1's step 1 (send -> 2), which waits "
                 "for rank 2's step 1 (send -> 3), which waits for rank 3's step 1 (send -> 4), "
                 "which waits for others in a circle; 2 in flight would do");
    plans_free(&p);
    plans_free(&model);
}
