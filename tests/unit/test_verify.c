#include "plan/verify/verify.h"
#include "support/loose.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 2048 };

static void expect_well(const plans_t *p, const char *what)
{
    const mc_world_t world = world_of(p);
    cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_OK, "%s: %s", what, meshcoll_last_error());
}

static void expect_fault(const plans_t *p, const char *sentence)
{
    const mc_world_t world = world_of(p);
    cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_ERR_PLAN);
    cr_expect(strstr(meshcoll_last_error(), sentence), "expected \"%s\" in \"%s\"", sentence,
              meshcoll_last_error());
}

/* Every path, algorithm, root and some segments on small meshes pass. */

typedef struct {
    const mc_mesh_t *mesh;
    uint32_t worlds, most; /* most: 0 for all */
    uint32_t seen, every, pairs;
    mc_strategy_t kept; /* the last one, for pairs */
} sweep_t;

static bool verify_strategy(void *context, const mc_strategy_t *strategy)
{
    sweep_t *const sweep = context;
    char name[TEXT];
    mc_strategy_t s = *strategy;
    for (s.segments = 1; s.segments <= 3; s.segments += 2)
        for (int32_t root = 0; root < sweep->mesh->size; root += 3) {
            plans_t p;
            mc_text_t text = mc_text(name, sizeof name);
            mc_strategy_print(&s, sweep->mesh, &text);
            plans_make(&p, sweep->mesh, &s, root);
            expect_well(&p, name);
            plans_free(&p);
            sweep->worlds++;
        }
    return sweep->most == 0 || sweep->worlds < sweep->most;
}

static void sweep_mesh(const char *mesh_text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(mesh_text, &mesh), MESHCOLL_OK);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        sweep_t sweep = {.mesh = &mesh};
        cr_expect_eq(mc_strategy_each((meshcoll_collective_t)c, &mesh, MC_PATHS_COVER,
                                      verify_strategy, &sweep),
                     MESHCOLL_OK);
        cr_expect_gt(sweep.worlds, 0);
    }
}

Test(verify, passes_every_path_on_small_meshes)
{
    sweep_mesh("x=1");
    sweep_mesh("x=2");
    sweep_mesh("x=5");
    sweep_mesh("box=2,gpu=3");
    sweep_mesh("box=3,gpu=2");
}

/* Boxes of unequal sizes: every list of 2 to 4 boxes in any order of at most 8 ranks, and larger ones
 * with fold lines of several lengths; all paths, all roots, in the order of ranks where that is said. */

static void verify_roots(sweep_t *sweep, mc_strategy_t s)
{
    char name[TEXT];
    const bool rooted = mc_moves[s.collective].rooted;
    for (int32_t root = 0; root < (rooted ? sweep->mesh->size : 1); root++) {
        plans_t p;
        mc_text_t text = mc_text(name, sizeof name);
        const mc_mesh_t led = mc_mesh_led_by(sweep->mesh, root);
        mc_mesh_print(sweep->mesh, &text);
        mc_text_add(&text, ", root %d: ", root);
        mc_strategy_print(&s, sweep->mesh, &text);
        plans_make(&p, sweep->mesh, &s, root);
        const mc_world_t world = world_of(&p);
        const mc_verify_options_t options = {
            .random_orders = 1, .in_order = mc_strategy_check_order(&s, &led) == MESHCOLL_OK};
        cr_expect_eq(mc_verify(&world, &options, NULL), MESHCOLL_OK, "%s: %s", name,
                     meshcoll_last_error());
        plans_free(&p);
        sweep->worlds++;
    }
}

/* The one before beside this one, where the rule lets both be sides. */
static void verify_pair(sweep_t *sweep, const mc_strategy_t *strategy)
{
    mc_strategy_t pair = sweep->kept;
    sweep->kept = *strategy;
    pair.second = pair.n_phases;
    pair.segments = 2 * (sweep->seen % 2 + 1);
    if (pair.n_phases == 0 || strategy->collective == MESHCOLL_ALLTOALL)
        return;
    for (int32_t i = 0; i < strategy->n_phases; i++)
        pair.phase[pair.n_phases++] = strategy->phase[i];
    if (mc_strategy_check(&pair, sweep->mesh))
        return;
    verify_roots(sweep, pair);
    sweep->pairs++;
}

static bool verify_ragged(void *context, const mc_strategy_t *strategy)
{
    sweep_t *const sweep = context;
    mc_strategy_t s = *strategy;
    if (++sweep->seen % sweep->every)
        return true;
    s.segments = sweep->seen % 3 + 1;
    verify_roots(sweep, s);
    if (sweep->seen % 2)
        verify_pair(sweep, strategy);
    return true;
}

static void verify_torus(sweep_t *sweep, meshcoll_collective_t collective)
{
    mc_strategy_t torus;
    if (mc_strategy_named("torus", collective, sweep->mesh, &torus))
        return;
    verify_roots(sweep, torus);
    sweep->pairs++;
}

static void sweep_ragged(const int32_t *sizes, int32_t n, uint32_t every)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_of_boxes("box", sizes, n, &mesh), MESHCOLL_OK);
    for (int c = 0; c < MESHCOLL_COLLECTIVES && mesh.ragged; c++) {
        sweep_t sweep = {.mesh = &mesh, .every = every};
        mc_strategy_each((meshcoll_collective_t)c, &mesh, MC_PATHS_COVER, verify_ragged, &sweep);
        verify_torus(&sweep, (meshcoll_collective_t)c);
        cr_expect(sweep.pairs > 0 || c == MESHCOLL_ALLTOALL);
        cr_expect(c != MESHCOLL_ALLTOALL || every > 1 || sweep.worlds > 3);
        cr_expect(every > 1 || sweep.worlds > 0);
    }
}

/* All lists that begin with `sizes`, of at most `left` ranks more. */
static void sweep_lists(int32_t *sizes, int32_t n, int32_t left)
{
    if (n >= 2)
        sweep_ragged(sizes, n, 7);
    for (int32_t size = 1; size <= left && n < 4; size++) {
        sizes[n] = size;
        sweep_lists(sizes, n + 1, left - size);
    }
}

Test(verify, passes_boxes_of_unequal_sizes)
{
    static const int32_t large[][4] = {{4, 3, 1, 0}, {5, 2, 5, 0}, {7, 5, 0, 0}, {2, 6, 3, 1}};
    int32_t sizes[4];
    sweep_lists(sizes, 0, 8);
    for (size_t i = 0; i < MC_COUNT(large); i++)
        sweep_ragged(large[i], large[i][2] ? large[i][3] ? 4 : 3 : 2, 5);
    sweep_ragged((const int32_t[]){2, 1}, 2, 1);
    sweep_ragged((const int32_t[]){2, 3}, 2, 1);
}

static void expect_refused(meshcoll_collective_t collective, const char *text, const char *why)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    cr_assert_eq(mc_mesh_parse("box=4+3+2", &mesh), MESHCOLL_OK);
    cr_expect_eq(mc_strategy_parse(text, collective, &mesh, &strategy), MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), why), "%s: %s", text, meshcoll_last_error());
}

Test(verify, refuses_what_boxes_of_unequal_sizes_cannot)
{
    expect_refused(MESHCOLL_BCAST, "bcast:mst(fold) bcast:mst(box) bcast:mst(gpu)", "fold 0");
    expect_refused(MESHCOLL_BCAST, "bcast:mst(box) bcast:mst(gpu*fold)", "merges fold");
    expect_refused(MESHCOLL_BCAST, "bcast:mst(box*gpu) scatter:mst(fold) allgather:ring(fold)",
                   "differ in length");
    expect_refused(MESHCOLL_ALLTOALL, "alltoall:pairwise(box*gpu) alltoall:pairwise(fold)",
                   "fold is not in state root");
    expect_refused(MESHCOLL_ALLTOALL,
                   "gather:mst(fold) gather:mst(gpu) alltoall:pairwise(box) scatter:mst(gpu) "
                   "scatter:mst(fold)",
                   "gathers and scatters there only");
    expect_refused(MESHCOLL_ALLTOALL, "gather:mst(fold) alltoall:bruck(box*gpu) scatter:mst(fold)",
                   "take pairwise or digits");
    expect_refused(MESHCOLL_BCAST,
                   "bcast:mst(box*gpu*fold) | bcast:mst(box) bcast:mst(gpu) bcast:mst(fold) "
                   "segments=2",
                   "merges fold");
}

/* Every way through the halves of SCRATCH. */
Test(verify, passes_alltoall_in_up_to_five_phases)
{
    static const char *const text[] = {"a=3,b=2,c=2", "a=2,b=2,c=3,d=2", "a=2,b=2,c=2,d=2,e=2"};
    for (size_t i = 0; i < MC_COUNT(text); i++) {
        mc_mesh_t mesh;
        cr_assert_eq(mc_mesh_parse(text[i], &mesh), MESHCOLL_OK);
        sweep_t sweep = {.mesh = &mesh, .most = 64};
        mc_strategy_each(MESHCOLL_ALLTOALL, &mesh, MC_PATHS_ALL, verify_strategy, &sweep);
        cr_expect_gt(sweep.worlds, 20);
    }
}

/* There is nobody to exchange with. */
Test(verify, refuses_an_alltoall_that_only_gathers)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    cr_assert_eq(mc_mesh_parse("x=1,y=5", &mesh), MESHCOLL_OK);
    cr_expect_eq(mc_strategy_parse("gather:mst(y) alltoall:pairwise(x) scatter:mst(y)",
                                   MESHCOLL_ALLTOALL, &mesh, &strategy),
                 MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), "needs several lines"), "%s", meshcoll_last_error());
}

/* Lines that gather also where they are equally long. */
Test(verify, passes_alltoall_that_gathers_on_even_meshes)
{
    static const case_t gathers[] = {
        {"box=2,gpu=3", MESHCOLL_ALLTOALL, 0,
         "gather:mst(gpu) alltoall:digits(box) scatter:star(gpu)"},
        {"box=4,gpu=5", MESHCOLL_ALLTOALL, 0,
         "gather:star(gpu) alltoall:digits(box) scatter:mst(gpu) segments=3"},
        {"rack=2,box=3,gpu=4", MESHCOLL_ALLTOALL, 0,
         "gather:mst(gpu) alltoall:pairwise(rack) alltoall:digits(box) scatter:mst(gpu) "
         "segments=2"},
        {"rack=2,box=3,gpu=1", MESHCOLL_ALLTOALL, 0,
         "gather:mst(box) alltoall:digits(rack) scatter:mst(box)"},
    };
    for (size_t i = 0; i < MC_COUNT(gathers); i++) {
        plans_t p;
        plans_of(&p, &gathers[i]);
        expect_well(&p, gathers[i].strategy);
        plans_free(&p);
    }
}

Test(verify, passes_a_mesh_of_1024_ranks)
{
    static plans_t p;
    plans_of(&p, &(case_t){"x=32,y=32", MESHCOLL_ALLREDUCE, 0,
                           "reduce_scatter:ring(y) reduce_scatter:ring(x) "
                           "allgather:ring(x) allgather:ring(y)"});
    expect_well(&p, "32 x 32");
    plans_free(&p);
}

/* Sealed plans changed by hand ------------------------------------------------------------------- */

static void expect_loose_fault(void (*spoil)(loose_t *l), const char *sentence)
{
    plans_t p;
    plans_of(&p, &(case_t){"x=4", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"});
    mc_plan_t *const whole = p.plan[1];
    loose_t l = loose_copy(whole);
    spoil(&l);
    p.plan[1] = &l.plan;
    expect_fault(&p, sentence);
    p.plan[1] = whole;
    loose_free(&l);
    plans_free(&p);
}

static void spoil_count(loose_t *l)
{
    l->n_pred[2]++;
}
static void spoil_direction(loose_t *l)
{
    l->succ[l->succ_off[1]] = 1;
}
static void spoil_seq(loose_t *l)
{
    l->step[2].seq = 0;
}
static void spoil_peers(loose_t *l)
{
    l->plan.n_peers = 1;
}
static void spoil_peer_order(loose_t *l)
{
    l->peer[1] = l->peer[0];
}
static void spoil_rank(loose_t *l)
{
    l->plan.rank = 2;
}
static void spoil_root(loose_t *l)
{
    l->plan.root = 2;
}
static void spoil_holds(loose_t *l)
{
    l->plan.out = MC_HOLDS_HOME;
}
static void spoil_op(loose_t *l)
{
    l->step[0].op = MC_OPS;
}
static void spoil_run(loose_t *l)
{
    l->step[0].run = 0;
}
static void spoil_bound(loose_t *l)
{
    l->step[0].first = 4;
}
static void spoil_input(loose_t *l)
{
    l->step[1].dst = MC_IN;
}

Test(verify, says_what_is_wrong_with_a_plan_of_its_own)
{
    expect_loose_fault(spoil_count, "rank 1, step 2 (send -> 2 out[0] #1) waits for 1 steps, its "
                                    "count says 2");
    expect_loose_fault(spoil_direction, "has successor 1: expected a later step");
    expect_loose_fault(spoil_seq, "expected seq 1");
    expect_loose_fault(spoil_peers, "exchanges with rank 2, which is not among the plan's peers");
    expect_loose_fault(spoil_peer_order, "expected other ranks, ascending");
    expect_loose_fault(spoil_rank,
                       "rank 1: expected its plan for 4 ranks, found that of another rank or mesh");
    expect_loose_fault(spoil_root, "rank 1: its plan has another collective, root or layout");
    expect_loose_fault(spoil_holds, "the whole vector in OUT");
    expect_loose_fault(spoil_op, "expected an op below");
    expect_loose_fault(spoil_run, "1 runs of 0 chunks");
    expect_loose_fault(spoil_bound, "accesses in[4..4]: expected within [0..3]");
    expect_loose_fault(spoil_input, "writes IN, which is read only");
}

/* Plans by hand: an allreduce of two ranks and one chunk. ---------------------------------------- */

#define SEND(peer_, src_)                                                     \
    {                                                                         \
        .op = MC_OP_SEND, .src = (src_), .peer = (peer_), .run = 1, .nrun = 1 \
    }
#define RECV(peer_, dst_)                                                     \
    {                                                                         \
        .op = MC_OP_RECV, .dst = (dst_), .peer = (peer_), .run = 1, .nrun = 1 \
    }
#define LOCAL(op_, src_, dst_)                                                     \
    {                                                                              \
        .op = (op_), .src = (src_), .dst = (dst_), .peer = -1, .run = 1, .nrun = 1 \
    }
#define ADD(peer_, src_, dst_)                                                            \
    {                                                                                     \
        .op = MC_OP_RECV_REDUCE, .src = (src_), .dst = (dst_), .peer = (peer_), .run = 1, \
        .nrun = 1                                                                         \
    }

static void pair_of(plans_t *p, const mc_step_t *a, uint32_t n_a, const mc_step_t *b, uint32_t n_b)
{
    plans_t model;
    plans_of(&model, &(case_t){"x=2", MESHCOLL_ALLREDUCE, 0, "allreduce:mst(x)"});
    p->n = 2;
    cr_assert_eq(mc_seal_steps(model.plan[0], a, n_a, &p->plan[0]), MESHCOLL_OK);
    cr_assert_eq(mc_seal_steps(model.plan[1], b, n_b, &p->plan[1]), MESHCOLL_OK);
    plans_free(&model);
}

#define EXPECT_PAIR_FAULT(a, b, sentence)             \
    do {                                              \
        plans_t p_;                                   \
        pair_of(&p_, a, MC_COUNT(a), b, MC_COUNT(b)); \
        expect_fault(&p_, sentence);                  \
        plans_free(&p_);                              \
    } while (0)

Test(verify, says_what_is_wrong_with_a_world)
{
    const mc_step_t give[] = {SEND(1, MC_IN), RECV(1, MC_OUT)};
    const mc_step_t take[] = {ADD(0, MC_IN, MC_OUT), SEND(0, MC_OUT)};
    plans_t p;
    pair_of(&p, give, MC_COUNT(give), take, MC_COUNT(take));
    expect_well(&p, "by hand");
    plans_free(&p);

    const mc_step_t swap_0[] = {SEND(1, MC_IN), ADD(1, MC_IN, MC_OUT)};
    const mc_step_t swap_1[] = {SEND(0, MC_IN), ADD(0, MC_IN, MC_OUT)};
    EXPECT_PAIR_FAULT(swap_0, swap_1, "no progress: rank ");

    /* right out of place only: what rank 0 sends is overwritten before in place */
    const mc_step_t late[] = {ADD(1, MC_IN, MC_OUT), SEND(1, MC_IN)};
    const mc_step_t early[] = {SEND(0, MC_IN), ADD(0, MC_IN, MC_OUT)};
    const mc_step_t behind[] = {SEND(0, MC_IN), RECV(0, MC_SCRATCH),
                                LOCAL(MC_OP_COPY, MC_IN, MC_OUT),
                                LOCAL(MC_OP_REDUCE, MC_SCRATCH, MC_OUT)};
    EXPECT_PAIR_FAULT(late, early, "in the same order as elsewhere");
    EXPECT_PAIR_FAULT(late, behind, "rank 1: out[0] differs between in place and out of place");

    const mc_step_t own[] = {ADD(0, MC_IN, MC_OUT), SEND(0, MC_SCRATCH)};
    EXPECT_PAIR_FAULT(give, own,
                      "rank 1, step 1 (send -> 0 scratch[0] #0) reads scratch[0], which "
                      "nothing has written yet");

    const mc_step_t waste[] = {LOCAL(MC_OP_COPY, MC_IN, MC_OUT), ADD(0, MC_IN, MC_OUT),
                               SEND(0, MC_OUT)};
    EXPECT_PAIR_FAULT(give, waste, "overwrites what step 0 wrote and nothing has read");

    const mc_step_t left[] = {LOCAL(MC_OP_COPY, MC_IN, MC_SCRATCH), ADD(0, MC_IN, MC_OUT),
                              SEND(0, MC_OUT)};
    EXPECT_PAIR_FAULT(give, left, "writes scratch[0], which nothing reads");

    const mc_step_t again[] = {ADD(0, MC_IN, MC_OUT), LOCAL(MC_OP_COPY, MC_OUT, MC_SCRATCH),
                               LOCAL(MC_OP_COPY, MC_SCRATCH, MC_OUT), SEND(0, MC_OUT)};
    EXPECT_PAIR_FAULT(give, again, "writes to out[0] the value it already has");

    const mc_step_t silent[] = {ADD(0, MC_IN, MC_OUT)};
    EXPECT_PAIR_FAULT(give, silent,
                      "rank 0, step 1 (recv <- 1 out[0] #0) has no matching send at rank 1");

    const mc_step_t unsummed[] = {RECV(0, MC_OUT), SEND(0, MC_OUT)};
    EXPECT_PAIR_FAULT(give, unsummed,
                      "leaves chunk 0 of rank 0 in out[0]: expected chunk 0 of each "
                      "of 2 ranks once");
}
