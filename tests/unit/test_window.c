/* Sends that are held for a message of another: which, until when, and that nobody waits for ever. */
#include "plan/verify/match.h"
#include "runtime/execute/pace.h"
#include "support/fake_wire.h"
#include "support/places.h"
#include "support/plans.h"
#include "support/strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Program order ----------------------------------------------------------------------------------- */

/* Does this send wait for its receiver: is it one of several to one, or from one, or of a pair beside others
 * (runtime/execute/pace.h)? */
static bool waits(const mc_plan_t *plan, const mc_step_t *s)
{
    const mc_traffic_t *const traffic = &plan->traffic[s->phase];
    return mc_op_sends((mc_op_t)s->op) && (traffic->senders > 1 || traffic->receivers > 1 ||
                                           traffic->passes_on || mc_moves[traffic->moves].rooted);
}

/* Can all ranks run their steps strictly one after another, where other sends do not wait? */
static bool runs_in_order(const plans_t *p)
{
    mc_match_t match;
    const mc_world_t world = world_of(p);
    cr_assert_eq(mc_match_create(&world, &match), MESHCOLL_OK, "%s", meshcoll_last_error());
    uint32_t *const at = calloc((size_t)p->n, sizeof *at);
    uint32_t done = 0, before;
    do {
        before = done;
        for (int32_t r = 0; r < p->n; r++)
            for (; at[r] < p->plan[r]->n_steps; at[r]++, done++) {
                const mc_step_t *const s = &p->plan[r]->step[at[r]];
                const uint32_t other = match.partner[match.first[r] + at[r]];
                const bool receives = mc_op_receives((mc_op_t)s->op);
                if (!receives && !waits(p->plan[r], s))
                    continue;
                const uint32_t there = at[match.rank[other]], its = mc_match_index(&match, other);
                /* the two of them at once, or the message has been sent before */
                const mc_plan_t *const peer = p->plan[match.rank[other]];
                const bool meets = receives && waits(peer, &peer->step[its]);
                if (meets ? its > there : its >= there)
                    break;
            }
    } while (done > before);
    const bool all = done == match.n_steps;
    free(at);
    mc_arena_free(&match.arena);
    return all;
}

static void check_order(const char *mesh, meshcoll_collective_t collective, const char *text)
{
    static plans_t p;
    char strategy[2048];
    for (int segments = 1; segments <= 6; segments += 5) {
        if (segments > 1 && strstr(text, "segments="))
            continue;
        snprintf(strategy, sizeof strategy, "%s%s", text, segments > 1 ? " segments=6" : "");
        plans_of(&p, &(case_t){mesh, collective, mc_moves[collective].rooted ? 1 : 0, strategy});
        cr_expect(runs_in_order(&p), "%s on %s", strategy, mesh);
        plans_free(&p);
    }
}

Test(window, every_program_order_runs_to_the_end)
{
    static const char *const meshes[] = {"gpu=7",       "box=3,gpu=4", "box=4,gpu=4", "box=2,gpu=4",
                                         "x=2,y=3,z=2", "x=2,y=2,z=3", "box=4+3+2",   "box=4+3"};
    for (size_t i = 0; i < MC_COUNT(meshes); i++)
        for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
            mc_mesh_t mesh;
            mc_sample_t sample;
            cr_assert_eq(mc_mesh_parse(meshes[i], &mesh), MESHCOLL_OK);
            cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, 150, &sample), 0);
            for (int s = 0; s < sample.n; s++)
                check_order(meshes[i], (meshcoll_collective_t)k, sample.text[s]);
            mc_sample_close(&sample);
        }
}

/* Which wait, and for how long ------------------------------------------------------------------- */

/* Rank 0's exchange of blocks with seven others: to 1, from 7, to 2, from 6, … */
static void open_sharing(rank_t *r, size_t block, bool streams, int32_t concurrent)
{
    rank_open(r, &(opened_t){MESHCOLL_ALLTOALL, "alltoall:pairwise(x)", 0, block, concurrent,
                             streams, 0});
}

static void open_rank(rank_t *r, size_t block, bool streams)
{
    open_sharing(r, block, streams, 1);
}

/* 128 KiB are sent ahead: two blocks, so three sends go at once. Each block that comes frees one more,
 * also where one overtakes another. */
Test(window, sends_wait_for_what_comes)
{
    static const int32_t sent_to[] = {1, 2, 3, 5, 4, 6, 7};
    static rank_t r;
    open_rank(&r, 64 * KIB, true);
    for (int again = 0; again < 2; again++) {
        rank_start(&r);
        cr_expect_eq(r.wire.n_sent, 3);
        come(&r, r.wire.message[6]);
        cr_expect_eq(r.wire.n_sent, 4);
        come(&r, r.wire.message[7]);
        cr_expect_eq(r.wire.n_sent, 5);
        for (int32_t from = 5; from > 1; from--)
            cr_expect_eq(come(&r, r.wire.message[from]), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(r.wire.n_sent, 7);
        cr_expect_eq(come(&r, r.wire.message[1]), MESHCOLL_OK);
        for (int32_t i = 0; i < RANKS - 1; i++)
            cr_expect_eq(r.wire.sent_to[i], sent_to[i]);
    }
    rank_close(&r);
}

/* So many that each may send 64 KiB ahead: one block, so two sends go at once. */
Test(window, ranks_that_share_a_port_share_what_goes_ahead)
{
    static rank_t r;
    open_sharing(&r, 64 * KIB, true, MC_LINK_WINDOW / (64 * KIB));
    rank_start(&r);
    cr_expect_eq(r.wire.n_sent, 2);
    come(&r, r.wire.message[7]);
    cr_expect_eq(r.wire.n_sent, 3);
    rank_close(&r);
}

/* Half of the wire's window: four blocks, so that five sends go at once. */
Test(window, a_wider_window_lets_more_go_ahead)
{
    static rank_t r;
    rank_open(&r, &(opened_t){MESHCOLL_ALLTOALL, "alltoall:pairwise(x)", 0, 64 * KIB, 1, true,
                              512 * KIB});
    rank_start(&r);
    cr_expect_eq(r.wire.n_sent, 5);
    rank_close(&r);
}

/* From a link's numbers to its sends: 100 Gbit/s and 25 us hold 1.25 MB, of which one rank has half. */
Test(window, a_fast_wire_has_more_on_the_way)
{
    static const struct {
        const char *link;
        uint32_t sent;
    } wires[] = {{"uniform,x=alpha:15us;beta:10Gbit/s", 2},
                 {"uniform,x=alpha:25us;beta:100Gbit/s", 5},
                 {"uniform,x=alpha:25us;beta:400Gbit/s", 7},
                 {"uniform,x=alpha:1s;beta:1000Tbit/s", 7}};
    for (size_t i = 0; i < MC_COUNT(wires); i++) {
        static rank_t r;
        const place_t at = place_of("x=8", wires[i].link);
        rank_open(&r, &(opened_t){MESHCOLL_ALLTOALL, "alltoall:pairwise(x)", 0, 128 * KIB, 1, true,
                                  (size_t)mc_links_window(&at.links, &at.mesh, 0)});
        rank_start(&r);
        cr_expect_eq(r.wire.n_sent, wires[i].sent, "%s: %u", wires[i].link, r.wire.n_sent);
        rank_close(&r);
    }
}

static void expect_all_at_once(size_t block, bool streams)
{
    static rank_t r;
    open_rank(&r, block, streams);
    rank_start(&r);
    cr_expect_eq(r.wire.n_sent, 7);
    rank_close(&r);
}

Test(window, small_messages_go_at_once)
{
    expect_all_at_once(16 * KIB, true);
}

/* Other sizes of the same plan hold other sends: what was held before is not. */
Test(window, a_new_binding_begins_anew)
{
    static rank_t r;
    open_rank(&r, 64 * KIB, true);
    rank_bind(&r, 4 * KIB, true);
    rank_start(&r);
    cr_expect_eq(r.wire.n_sent, 7);
    for (int32_t from = 1; from < RANKS; from++)
        come(&r, r.wire.message[from]);
    rank_bind(&r, 0, true);
    rank_start(&r);
    cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_OK);
    rank_bind(&r, 64 * KIB, true);
    rank_start(&r);
    cr_expect_eq(r.wire.n_sent, 3);
    rank_close(&r);
}

/* Where a send waits for its receiver, that is enough. */
Test(window, only_what_streams_is_held)
{
    expect_all_at_once(64 * KIB, false);
}
