#include "plan/verify/world.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 512 };

/* A send and its receive, of one chunk or more. */
static int run_message(mc_machine_t *m, int32_t from, uint32_t send, int32_t to, uint32_t recv)
{
    mc_value_t message[64];
    const int status = mc_machine_send(m, from, send, message);
    return status ? status : mc_machine_recv(m, to, recv, message);
}

/* Time steps ------------------------------------------------------------------------------------- */

static uint32_t count_times(const char *mesh, meshcoll_collective_t collective, int32_t root,
                            const char *strategy)
{
    plans_t p;
    mc_times_t times;
    plans_of(&p, &(case_t){mesh, collective, root, strategy});
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_world_times(&world, &times), MESHCOLL_OK, "%s", meshcoll_last_error());
    const uint32_t n = times.n_times;
    mc_arena_free(&times.arena);
    plans_free(&p);
    return n;
}

static uint32_t log_2(uint32_t n)
{
    uint32_t log = 0;
    while ((UINT32_C(1) << log) < n)
        log++;
    return log;
}

Test(times, are_those_of_the_closed_forms_on_a_line)
{
    for (uint32_t p = 1; p <= 12; p++) {
        char mesh[16];
        const int32_t root = (int32_t)p / 3;
        snprintf(mesh, sizeof mesh, "x=%u", p);
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"), 2 * (p - 1));
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLGATHER, 0, "allgather:ring(x)"), p - 1);
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLGATHER, 0, "allgather:fullmesh(x)"), p - 1);
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLTOALL, 0, "alltoall:pairwise(x)"), p - 1);
        if ((p & (p - 1)) == 0)
            cr_expect_eq(count_times(mesh, MESHCOLL_ALLTOALL, 0, "alltoall:digits(x)"), log_2(p));
        cr_expect_leq(count_times(mesh, MESHCOLL_ALLTOALL, 0, "alltoall:bruck(x)"), 2 * log_2(p));
        cr_expect_eq(count_times(mesh, MESHCOLL_BCAST, root, "bcast:mst(x)"), log_2(p));
        cr_expect_eq(count_times(mesh, MESHCOLL_REDUCE, root, "reduce:mst(x)"), log_2(p));
        cr_expect_eq(count_times(mesh, MESHCOLL_SCATTER, root, "scatter:mst(x)"), log_2(p));
        cr_expect_eq(count_times(mesh, MESHCOLL_GATHER, root, "gather:mst(x)"), log_2(p));
        cr_expect_eq(count_times(mesh, MESHCOLL_BCAST, root, "bcast:star(x)"), p - 1);
        const uint32_t core = p == 1u << log_2(p) ? log_2(p) : log_2(p) + 1;
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLREDUCE, 0, "allreduce:doubling(x)"), core);
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLGATHER, 0, "allgather:doubling(x)"), core);
        cr_expect_eq(count_times(mesh, MESHCOLL_REDUCE_SCATTER, 0, "reduce_scatter:halving(x)"),
                     core);
        cr_expect_eq(count_times(mesh, MESHCOLL_ALLGATHER, 0, "allgather:bruck(x)"), log_2(p));
        if (p > 1)
            cr_expect_eq(count_times(mesh, MESHCOLL_BCAST, root, "bcast:chain(x) segments=5"),
                         p - 2 + 5);
    }
}

Test(times, are_those_of_the_broadcast_options)
{
    cr_expect_eq(count_times("box=4,gpu=8", MESHCOLL_BCAST, 9, "option1"), 2 + 3);
    cr_expect_eq(count_times("box=4,gpu=8", MESHCOLL_BCAST, 9, "option2"), 2 + 3 + 4 - 1);
    cr_expect_eq(count_times("box=4,gpu=8", MESHCOLL_BCAST, 9, "option3"), 2 + 3 + 4 + 8 - 2);
}

/* Trace ------------------------------------------------------------------------------------------ */

/* Everything of one time step: local steps, then messages. */
static void run_time(mc_machine_t *m, const plans_t *p, const mc_times_t *times, uint32_t time)
{
    for (int32_t r = 0; r < p->n; r++)
        for (uint32_t i = 0; i < p->plan[r]->n_steps; i++)
            if (times->time[r][i] == time && p->plan[r]->step[i].peer < 0)
                cr_assert_eq(mc_machine_local(m, r, i), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int32_t r = 0; r < p->n; r++)
        for (uint32_t i = 0; i < p->plan[r]->n_steps; i++) {
            const mc_step_t *const s = &p->plan[r]->step[i];
            if (times->time[r][i] != time || !mc_op_sends((mc_op_t)s->op))
                continue;
            const uint32_t recv = receive_of(p->plan[s->peer], r, s->seq);
            cr_expect_eq(times->time[s->peer][recv], time);
            cr_assert_eq(run_message(m, r, i, s->peer, recv), MESHCOLL_OK, "%s",
                         meshcoll_last_error());
        }
}

/* "a0 b0 c0c3c2 d0d3": each chunk of OUT, or IN's where OUT has none yet. */
static void show_rank(const mc_machine_t *m, int32_t rank, uint32_t n_chunks, char *line)
{
    mc_text_t text = mc_text(line, TEXT);
    for (uint32_t c = 0; c < n_chunks; c++) {
        int32_t ranks[MOST_RANKS];
        uint32_t n = 0;
        mc_value_t value = mc_machine_value(m, rank, MC_OUT, c);
        if (value == MC_NOTHING)
            value = mc_machine_value(m, rank, MC_IN, c);
        const uint32_t chunk = mc_value_ranks(m, value, ranks, MOST_RANKS, &n);
        mc_text_add(&text, "%s", c ? " " : "");
        for (uint32_t i = 0; i < n; i++)
            mc_text_add(&text, "%c%d", 'a' + (int)chunk, ranks[i]);
    }
}

Test(trace, of_the_ring_is_the_table_of_the_reference)
{
    static const char *const table[6][4] = {
        {"a0 b0 c0 d0d3", "a1a0 b1 c1 d1", "a2 b2b1 c2 d2", "a3 b3 c3c2 d3"},
        {"a0 b0 c0c3c2 d0d3", "a1a0 b1 c1 d1d0d3", "a2a1a0 b2b1 c2 d2", "a3 b3b2b1 c3c2 d3"},
        {"a0 b0b3b2b1 c0c3c2 d0d3", "a1a0 b1 c1c0c3c2 d1d0d3", "a2a1a0 b2b1 c2 d2d1d0d3",
         "a3a2a1a0 b3b2b1 c3c2 d3"},
        {"a3a2a1a0 b0b3b2b1 c0c3c2 d0d3", "a1a0 b0b3b2b1 c1c0c3c2 d1d0d3",
         "a2a1a0 b2b1 c1c0c3c2 d2d1d0d3", "a3a2a1a0 b3b2b1 c3c2 d2d1d0d3"},
        {"a3a2a1a0 b0b3b2b1 c0c3c2 d2d1d0d3", "a3a2a1a0 b0b3b2b1 c1c0c3c2 d1d0d3",
         "a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3", "a3a2a1a0 b3b2b1 c1c0c3c2 d2d1d0d3"},
        {"a3a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3", "a3a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3",
         "a3a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3", "a3a2a1a0 b0b3b2b1 c1c0c3c2 d2d1d0d3"},
    };
    plans_t p;
    mc_times_t times;
    plans_of(&p, &(case_t){"x=4", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"});
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_world_times(&world, &times), MESHCOLL_OK);
    cr_assert_eq(times.n_times, MC_COUNT(table));
    for (int in_place = 0; in_place < 2; in_place++) {
        mc_machine_t *m = NULL;
        cr_assert_eq(mc_machine_create(&world, in_place, &m), MESHCOLL_OK);
        for (uint32_t t = 0; t < times.n_times; t++) {
            run_time(m, &p, &times, t);
            for (int32_t r = 0; r < p.n; r++) {
                char line[TEXT];
                show_rank(m, r, 4, line);
                cr_expect_str_eq(line, table[t][r]);
            }
        }
        mc_machine_destroy(m);
    }
    mc_arena_free(&times.arena);
    plans_free(&p);
}

Test(machine, names_ranks_in_the_order_of_the_sum)
{
    plans_t p;
    mc_machine_t *m = NULL;
    int32_t ranks[4] = {-1, -1, -1, -1};
    uint32_t n = 0;
    plans_of(&p, &(case_t){"x=4", MESHCOLL_REDUCE, 3, "reduce:chain(x)"});
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_machine_create(&world, false, &m), MESHCOLL_OK);
    for (int32_t r = 0; r < 3; r++)
        cr_assert_eq(run_message(m, r, r > 0, r + 1, 0), MESHCOLL_OK, "%s", meshcoll_last_error());
    const mc_value_t sum = mc_machine_value(m, 3, MC_OUT, 0);
    cr_expect_eq(mc_value_ranks(m, sum, ranks, 2, &n), 0);
    cr_expect_eq(n, 4);
    cr_expect(ranks[0] == 3 && ranks[1] == 2 && ranks[2] == -1);
    mc_value_ranks(m, sum, ranks, 4, &n);
    cr_expect(ranks[0] == 3 && ranks[1] == 2 && ranks[2] == 1 && ranks[3] == 0);
    cr_expect_eq(mc_value_ranks(m, MC_NOTHING, ranks, 4, &n), UINT32_MAX);
    cr_expect_eq(n, 0);

    mc_machine_reset(m, false);
    cr_expect_eq(mc_machine_value(m, 3, MC_OUT, 0), MC_NOTHING);
    for (int32_t r = 0; r < 3; r++)
        run_message(m, r, r > 0, r + 1, 0);
    cr_expect_eq(mc_machine_value(m, 3, MC_OUT, 0), sum, "equal sums have equal numbers");
    mc_machine_destroy(m);
    plans_free(&p);
}

Test(machine, starts_with_what_each_buffer_holds)
{
    plans_t p;
    mc_machine_t *m = NULL;
    plans_of(&p, &(case_t){"x=3", MESHCOLL_ALLGATHER, 0, "allgather:ring(x) segments=2"});
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_machine_create(&world, false, &m), MESHCOLL_OK);
    for (int in_place = 0; in_place < 2; in_place++) {
        mc_machine_reset(m, in_place);
        for (int32_t r = 0; r < 3; r++)
            for (uint32_t c = 0; c < 6; c++) {
                const mc_value_t own = c % 3 == (uint32_t)r ? mc_machine_leaf(m, r, c) : MC_NOTHING;
                cr_expect_eq(mc_machine_value(m, r, MC_IN, c), own);
                cr_expect_eq(mc_machine_value(m, r, MC_OUT, c), in_place ? own : MC_NOTHING);
                cr_expect_eq(mc_machine_value(m, r, MC_SCRATCH, c), MC_NOTHING);
            }
    }
    mc_machine_destroy(m);
    plans_free(&p);
}

Test(machine, refuses_what_is_not_there)
{
    plans_t p;
    mc_machine_t *m = NULL;
    plans_of(&p, &(case_t){"x=3", MESHCOLL_BCAST, 0, "bcast:chain(x)"});
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_machine_create(&world, false, &m), MESHCOLL_OK);
    cr_expect_eq(run_message(m, 1, 1, 2, 0), MESHCOLL_ERR_PLAN);
    cr_expect_str_eq(meshcoll_last_error(), "rank 1, step 1 (send -> 2 out[0] #0) reads out[0], "
                                            "which nothing has written yet");
    cr_expect_eq(run_message(m, 0, 0, 1, 0), MESHCOLL_OK);
    cr_expect_eq(run_message(m, 1, 1, 2, 0), MESHCOLL_OK);
    mc_machine_destroy(m);
    plans_free(&p);
}
