/*
 * Program order: each rank runs its steps one after the other, as they stand in its plan, and looks
 * at no dependency. A send waits until fewer than `window` messages to its peer are in flight, a
 * receive until its message has been sent; a message is in flight from its send to its receive.
 *
 * Whether a step can run never changes from yes to no before it runs, so the order in which ranks
 * are looked at does not matter, and a wider window never stops a rank. Where all ranks wait, the
 * window is therefore widened by one message and the run continues: each step is run once, and the
 * window at the end is the least.
 */
#include "base/arena.h"
#include "plan/verify/check.h"

#include <string.h>

typedef struct {
    mc_arena_t arena;
    const mc_world_t *world;
    const mc_match_t *match;
    uint32_t window;
    uint32_t *at;    /* by rank: its next step */
    bool *waits;     /* by rank: for its peer */
    int32_t *ready;  /* ranks that are to be run; such a rank does not wait */
    uint32_t *lane;  /* by send: its pair of ranks, in this direction; MC_NO_STEP for other steps */
    uint32_t *taken; /* by lane: messages received so far */
    uint32_t n_ready;
} program_t;

/* Returns the number of lanes. */
static uint32_t number_lanes(const program_t *p)
{
    uint32_t n = 0;
    memset(p->lane, 0xff, (size_t)p->match->n_steps * sizeof *p->lane);
    for (int32_t rank = 0; rank < p->world->n_ranks; rank++) {
        const mc_plan_t *const plan = p->world->plan[rank];
        for (uint32_t i = 0; i < plan->n_steps; i++) {
            const uint32_t step = p->match->first[rank] + i, next = p->match->next[step];
            if (!mc_op_sends((mc_op_t)plan->step[i].op))
                continue;
            if (p->lane[step] == MC_NO_STEP)
                p->lane[step] = n++;
            if (next != MC_NO_STEP)
                p->lane[next] = p->lane[step];
        }
    }
    return n;
}

static int program_create(const mc_world_t *world, const mc_match_t *match, program_t *program)
{
    const size_t ranks = (size_t)world->n_ranks;
    program_t p = {.world = world, .match = match, .window = 1};
    mc_arena_t *const a = &p.arena;
    p.at = mc_arena_take(a, ranks, sizeof *p.at);
    p.waits = mc_arena_take(a, ranks, sizeof *p.waits);
    p.ready = mc_arena_take(a, ranks, sizeof *p.ready);
    p.lane = mc_arena_take(a, match->n_steps, sizeof *p.lane);
    p.taken = mc_arena_take(a, a->failed ? 0 : number_lanes(&p), sizeof *p.taken);
    if (a->failed) {
        mc_arena_free(a);
        return mc_fail_memory("the program order of a world");
    }
    for (; p.n_ready < ranks; p.n_ready++) {
        p.at[p.n_ready] = match->first[p.n_ready];
        p.ready[p.n_ready] = (int32_t)p.n_ready;
    }
    *program = p;
    return MESHCOLL_OK;
}

static bool is_at_end(const program_t *p, int32_t rank)
{
    return p->at[rank] == p->match->first[rank + 1];
}

/* The step that a rank waits at. */
static const mc_step_t *waiting_step(const program_t *p, int32_t rank)
{
    return mc_match_step(p->world, p->match, p->at[rank]);
}

static bool can_run(const program_t *p, const mc_step_t *s, uint32_t step)
{
    if (mc_op_sends((mc_op_t)s->op))
        return s->seq - p->taken[p->lane[step]] < p->window;
    if (mc_op_receives((mc_op_t)s->op))
        return p->at[s->peer] > p->match->partner[step];
    return true;
}

static void wake(program_t *p, int32_t rank)
{
    if (!p->waits[rank])
        return;
    p->waits[rank] = false;
    p->ready[p->n_ready++] = rank;
}

/* Wakes the peer of a message whose send or receive has just run. */
static void wake_peer(program_t *p, const mc_step_t *s, uint32_t step)
{
    const uint32_t partner = p->match->partner[step];
    if (mc_op_sends((mc_op_t)s->op)) {
        if (p->at[s->peer] == partner)
            wake(p, s->peer);
    } else if (mc_op_receives((mc_op_t)s->op)) {
        const uint32_t lane = p->lane[partner];
        p->taken[lane]++;
        if (!is_at_end(p, s->peer) && p->lane[p->at[s->peer]] == lane)
            wake(p, s->peer);
    }
}

/* Runs a rank until it waits, or is at the end. */
static void run_rank(program_t *p, int32_t rank)
{
    const mc_plan_t *const plan = p->world->plan[rank];
    const uint32_t first = p->match->first[rank];
    for (uint32_t i = p->at[rank] - first; i < plan->n_steps && !p->waits[rank]; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (can_run(p, s, first + i)) {
            p->at[rank]++;
            wake_peer(p, s, first + i);
        } else {
            p->waits[rank] = true;
        }
    }
}

/* Widens the window, and wakes the ranks that this lets go on. Returns false if there are none. */
static bool widen(program_t *p)
{
    p->window++;
    for (int32_t rank = 0; rank < p->world->n_ranks; rank++)
        if (p->waits[rank] && mc_op_sends((mc_op_t)waiting_step(p, rank)->op))
            wake(p, rank);
    return p->n_ready > 0;
}

static bool all_at_end(const program_t *p)
{
    bool all = true;
    for (int32_t rank = 0; rank < p->world->n_ranks && all; rank++)
        all = is_at_end(p, rank);
    return all;
}

enum { CIRCLE_TEXT = 320 };

static void quote_rank(const program_t *p, int32_t rank, mc_text_t *text)
{
    const mc_step_t *const s = waiting_step(p, rank);
    mc_text_add(text, "rank %d's step %u (%s %s %d)", rank, mc_match_index(p->match, p->at[rank]),
                mc_op_name((mc_op_t)s->op), mc_op_sends((mc_op_t)s->op) ? "->" : "<-", s->peer);
}

/* Names ranks that wait for each other. Each that waits does so for one peer, which is not at its
 * end: so the way from peer to peer leads into a circle. */
static void name_circle(const program_t *p, char circle[CIRCLE_TEXT])
{
    enum { NAMED = 4 };
    mc_text_t text = mc_text(circle, CIRCLE_TEXT);
    int32_t rank = 0, named = 0;
    while (!p->waits[rank])
        rank++;
    for (int32_t i = 0; i < p->world->n_ranks; i++) /* after as many it is on the circle */
        rank = waiting_step(p, rank)->peer;
    const int32_t first = rank;
    do {
        quote_rank(p, rank, &text);
        mc_text_add(&text, named++ ? ", which waits for " : " waits for ");
        rank = waiting_step(p, rank)->peer;
    } while (rank != first && named < NAMED);
    mc_text_add(&text, rank == first ? "the first" : "others in a circle");
}

static int fail_window(const program_t *p, uint32_t window, const char *circle)
{
    return mc_fail(MESHCOLL_ERR_PLAN,
                   "no progress in program order with %u message%s in flight from one rank to "
                   "another: %s; %u in flight would do",
                   window, window == 1 ? "" : "s", circle, p->window);
}

static int run_program(program_t *p, uint32_t window)
{
    char circle[CIRCLE_TEXT] = "";
    for (;;) {
        while (p->n_ready > 0)
            run_rank(p, p->ready[--p->n_ready]);
        if (all_at_end(p))
            return p->window <= window ? MESHCOLL_OK : fail_window(p, window, circle);
        if (p->window == window)
            name_circle(p, circle);
        if (!widen(p)) {
            name_circle(p, circle);
            return mc_fail(MESHCOLL_ERR_PLAN,
                           "no progress in program order, however many messages are in flight: %s",
                           circle);
        }
    }
}

int mc_check_program(const mc_world_t *world, const mc_match_t *match, uint32_t window,
                     uint32_t *least)
{
    program_t p;
    int status = program_create(world, match, &p);
    if (status)
        return status;
    status = run_program(&p, window);
    if (!status)
        *least = p.window;
    mc_arena_free(&p.arena);
    return status;
}
