/* Alltoall: its plans, what goes over which link, and where blocks lie on the way. */
#include "runtime/call/request.h"
#include "support/case.h"
#include "support/inproc.h"
#include "support/plans.h"
#include "support/strategies.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 12 };

/* In round k to the k-th on the right, from the k-th on the left; what stays is copied last. */
Test(alltoall, pairwise_goes_round_as_in_the_textbook)
{
    plans_t p;
    plans_of(&p, &(case_t){"x=5", MESHCOLL_ALLTOALL, 0, "alltoall:pairwise(x)"});
    for (int32_t me = 0; me < 5; me++) {
        const mc_step_t *const step = p.plan[me]->step;
        for (int32_t k = 1; k < 5; k++) {
            const mc_step_t give = step[2 * k - 2], take = step[2 * k - 1];
            cr_expect_eq(give.op, MC_OP_SEND);
            cr_expect_eq(give.peer, (me + k) % 5);
            cr_expect_eq(give.first, (uint32_t)give.peer);
            cr_expect_eq(take.op, MC_OP_RECV);
            cr_expect_eq(take.peer, (me + 5 - k) % 5);
            cr_expect_eq(take.to, (uint32_t)take.peer);
            cr_expect_eq(p.plan[me]->n_pred[2 * k - 2] + p.plan[me]->n_pred[2 * k - 1], 0u);
        }
        cr_expect_eq(step[8].op, MC_OP_COPY);
        cr_expect_eq(step[8].first, (uint32_t)me);
    }
    plans_free(&p);
}

/* One message to each peer, of one range, whatever the dimensions and their order. */
Test(alltoall, has_one_message_for_each_pair_and_phase)
{
    static const char *const strategy[] = {
        "alltoall:pairwise(y) alltoall:pairwise(x) alltoall:pairwise(z)",
        "alltoall:pairwise(z) alltoall:pairwise(x*y)", "hierarchical", "flat-pairwise",
        "flat-digits"};
    static const uint32_t messages[] = {1 + 2 + 3, 3 + 5, 1 + 2 + 3, 23, 1 + 1 + 1 + 2};
    for (size_t i = 0; i < MC_COUNT(strategy); i++) {
        plans_t p;
        plans_of(&p, &(case_t){"x=2,y=3,z=4", MESHCOLL_ALLTOALL, 0, strategy[i]});
        for (int32_t r = 0; r < p.n; r++) {
            uint32_t sends = 0;
            for (uint32_t s = 0; s < p.plan[r]->n_steps; s++)
                sends += mc_op_sends((mc_op_t)p.plan[r]->step[s].op);
            cr_expect_eq(sends, messages[i]);
        }
        plans_free(&p);
    }
}

/* Rounds of Bruck's: 1, 3, 5 | 2, 3 and 6 | 4, 5, 6 ranks away, a message for runs of one length. */
Test(alltoall, bruck_takes_the_bits_of_the_distance)
{
    static const int32_t away[] = {1, 2, 2, 4};
    static const uint32_t chunks[] = {3, 2, 1, 3};
    plans_t p;
    plans_of(&p, &(case_t){"x=7", MESHCOLL_ALLTOALL, 0, "alltoall:bruck(x)"});
    for (int32_t me = 0; me < 7; me++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p.plan[me]->n_steps; i++) {
            const mc_step_t *const s = &p.plan[me]->step[i];
            if (!mc_op_sends((mc_op_t)s->op))
                continue;
            cr_assert_lt(n, 4u);
            cr_expect_eq(s->peer, (me + away[n]) % 7);
            cr_expect_eq(s->run * s->nrun, chunks[n]);
            n++;
        }
        cr_expect_eq(n, 4u);
    }
    plans_free(&p);
}

/* Runs ------------------------------------------------------------------------------------------- */

typedef struct {
    meshcoll_t *rank[RANKS];
    int n;
} world_t;

static void world_open(world_t *w, const char *text, int n)
{
    w->n = n;
    cr_assert_eq(mc_inproc_create(text, NULL, w->rank), MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void world_close(world_t *w)
{
    for (int r = 0; r < w->n; r++)
        meshcoll_destroy(w->rank[r]);
}

static void finish(meshcoll_request_t *const *request, int n)
{
    int left = n;
    for (int turn = 0; left > 0; turn++) {
        left = 0;
        for (int r = 0; r < n; r++) {
            const int status = meshcoll_test(request[r]);
            cr_assert_geq(status, 0, "%s", meshcoll_last_error());
            left += status == MESHCOLL_IN_PROGRESS;
        }
        cr_assert_lt(turn, 100000, "hangs");
    }
}

/* Binds the requests to buffers in place or not, runs them, and checks the values. */
static void run_bound(const world_t *w, meshcoll_request_t *const *request, bool in_place)
{
    const mc_case_t c = {.collective = MESHCOLL_ALLTOALL,
                         .datatype = MESHCOLL_INT32,
                         .count = 5,
                         .in_place = in_place};
    mc_case_rank_t buffers[RANKS];
    for (int r = 0; r < w->n; r++) {
        cr_assert_eq(mc_case_open(&c, r, w->n, &buffers[r]), 0);
        const meshcoll_args_t args = {.collective = c.collective,
                                      .in = buffers[r].in,
                                      .out = buffers[r].out,
                                      .count = c.count,
                                      .datatype = c.datatype};
        cr_assert_eq(mc_run_bind(mc_run_of(request[r]), &args, NULL), MESHCOLL_OK);
    }
    for (int r = 0; r < w->n; r++)
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
    finish(request, w->n);
    for (int r = 0; r < w->n; r++) {
        char why[128];
        cr_expect_eq(mc_case_check(&c, &buffers[r], why, sizeof why), 0, "%s", why);
        mc_case_close(&buffers[r]);
    }
}

static void open_all(const world_t *w, const char *strategy, meshcoll_request_t **request)
{
    int32_t in[5 * RANKS], out[5 * RANKS];
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLTOALL,
                                  .in = in,
                                  .out = out,
                                  .count = 5,
                                  .datatype = MESHCOLL_INT32,
                                  .strategy = strategy};
    for (int r = 0; r < w->n; r++)
        cr_assert_eq(meshcoll_init(w->rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
}

/* One plan serves in place and out of it. In place a single phase receives into SCRATCH, out of place
 * into OUT itself; of two phases the first one's blocks for other boxes are in SCRATCH anyway. */
Test(alltoall, scratch_lies_in_out_where_it_can)
{
    static const struct {
        const char *strategy;
        bool lent;
    } row[] = {{"flat-pairwise", true},
               {"flat-pairwise segments=2", true},
               {"hierarchical", false},
               {"hierarchical segments=2", false}};
    const size_t whole = 5 * RANKS * sizeof(int32_t);
    world_t w;
    world_open(&w, "box=3,gpu=4", RANKS);
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        meshcoll_request_t *request[RANKS];
        open_all(&w, row[i].strategy, request);
        for (int turn = 0; turn < 4; turn++) {
            const bool in_place = turn % 2;
            run_bound(&w, request, in_place);
            const size_t scratch = mc_run_of(request[5])->binding.scratch_bytes;
            cr_expect_eq(scratch, row[i].lent && !in_place ? 0 : whole, "%s: %zu", row[i].strategy,
                         scratch);
        }
        for (int r = 0; r < RANKS; r++)
            meshcoll_free(request[r]);
    }
    world_close(&w);
}

/* Of n bytes to send, (B-1)/B leave the box and, inside first, (G-1)/G go round in it. */
Test(alltoall, moves_each_byte_over_each_link_once)
{
    static const struct {
        const char *strategy;
        uint64_t box, gpu; /* blocks a rank sends */
    } row[] = {{"hierarchical", 8, 9}, {"flat-pairwise", 8, 3}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        meshcoll_request_t *request[RANKS];
        world_t w;
        world_open(&w, "box=3,gpu=4", RANKS);
        open_all(&w, row[i].strategy, request);
        run_bound(&w, request, false);
        for (int r = 0; r < RANKS; r++) {
            cr_expect_eq(meshcoll_bytes_sent(w.rank[r], 0), row[i].box * 5 * sizeof(int32_t));
            cr_expect_eq(meshcoll_bytes_sent(w.rank[r], 1), row[i].gpu * 5 * sizeof(int32_t));
            meshcoll_free(request[r]);
        }
        world_close(&w);
    }
}

/* Boxes of 4, 3 and 1: what the 12 places of a line and the ranks behind it need. Blocks that leave their
 * boxes: 4 * 4, 3 * 5 and 1 * 7, once, in a message for each pair of boxes; inside each rank but the first
 * gives 8 and gets 8. */
Test(alltoall, goes_once_between_boxes_of_unequal_sizes)
{
    static const uint64_t to_boxes[] = {16, 0, 0, 0, 15, 0, 0, 7};
    static const uint64_t inside[] = {24, 8, 8, 8, 16, 8, 8, 0};
    static const uint32_t stands[] = {32, 0, 0, 0, 24, 0, 0, 8};
    meshcoll_request_t *request[RANKS];
    world_t w;
    world_open(&w, "box=4+3+1", 8);
    open_all(&w, "gather:star(fold) alltoall:pairwise(box) scatter:star(fold)", request);
    for (int turn = 0; turn < 2; turn++)
        run_bound(&w, request, turn % 2);
    for (int r = 0; r < 8; r++) {
        uint32_t messages = 0;
        for (uint32_t i = 0; i < mc_run_of(request[r])->plan->n_steps; i++) {
            const mc_step_t *const s = &mc_run_of(request[r])->plan->step[i];
            messages += mc_op_sends((mc_op_t)s->op) &&
                        mc_mesh_level(&w.rank[0]->mesh, r, s->peer) == MC_RAGGED_BOX;
        }
        cr_expect_eq(messages, to_boxes[r] ? 2u : 0u);
        cr_expect_eq(meshcoll_bytes_sent(w.rank[r], 0), 2 * to_boxes[r] * 5 * sizeof(int32_t));
        cr_expect_eq(meshcoll_bytes_sent(w.rank[r], 2), 2 * inside[r] * 5 * sizeof(int32_t));
        /* as they were gathered, and as they have come */
        cr_expect_eq(mc_run_of(request[r])->binding.scratch_bytes,
                     2 * stands[r] * 5 * sizeof(int32_t));
        meshcoll_free(request[r]);
    }
    world_close(&w);
}

/* Every way, values and all, in place and not. */
Test(alltoall, is_right_between_boxes_of_unequal_sizes)
{
    static const char *const text[] = {"box=2+1", "box=1+1+3", "box=3+3+2", "box=4+3+1",
                                       "box=5+2+4"};
    for (size_t m = 0; m < MC_COUNT(text); m++) {
        mc_mesh_t mesh;
        mc_sample_t sample;
        world_t w;
        cr_assert_eq(mc_mesh_parse(text[m], &mesh), MESHCOLL_OK);
        cr_assert_eq(mc_sample_open(MESHCOLL_ALLTOALL, &mesh, 24, &sample), 0);
        world_open(&w, text[m], mesh.size);
        for (int i = 0; i < sample.n; i++) {
            char strategy[512];
            meshcoll_request_t *request[RANKS];
            snprintf(strategy, sizeof strategy, "%s segments=%d", sample.text[i], i % 3 + 1);
            open_all(&w, strategy, request);
            for (int turn = 0; turn < 2; turn++)
                run_bound(&w, request, turn % 2);
            for (int r = 0; r < w.n; r++)
                meshcoll_free(request[r]);
        }
        world_close(&w);
        mc_sample_close(&sample);
    }
}

Test(alltoall, is_forced_by_the_environment_and_checks_its_buffers)
{
    int32_t v[2 * RANKS] = {0};
    meshcoll_request_t *request;
    meshcoll_args_t args = {.size = sizeof args,
                            .collective = MESHCOLL_ALLTOALL,
                            .in = v,
                            .out = v,
                            .count = 1,
                            .datatype = MESHCOLL_INT32};
    world_t w;
    setenv("MESHCOLL_STRATEGY_ALLTOALL", "flat-pairwise", 1);
    world_open(&w, "box=3,gpu=4", RANKS);
    unsetenv("MESHCOLL_STRATEGY_ALLTOALL");
    cr_assert_eq(meshcoll_init(w.rank[0], &args, &request), MESHCOLL_OK);
    cr_expect_str_eq(meshcoll_request_strategy(request), "alltoall:pairwise(box*gpu)");
    meshcoll_free(request);
    args.out = v + 1;
    cr_expect_eq(meshcoll_init(w.rank[0], &args, &request), MESHCOLL_ERR_INVALID_ARG);
    cr_expect(strstr(meshcoll_last_error(), "in place means in == out"), "%s",
              meshcoll_last_error());
    args.out = NULL;
    cr_expect_eq(meshcoll_init(w.rank[0], &args, &request), MESHCOLL_ERR_INVALID_ARG);
    world_close(&w);
}
