/* The verifier's runs of a world: one fixed order in both placements, then random orders. */
#include "base/arena.h"
#include "mesh/aligned.h"
#include "plan/verify/check.h"

#include <stdlib.h>

enum { NAMED_RANKS = 16, VALUE_TEXT = 160 };

typedef struct {
    mc_arena_t arena;
    const mc_world_t *world;
    const mc_match_t *match;
    mc_machine_t *machine;
    mc_value_t *final; /* OUT after the first run, rank by rank */
    mc_value_t *known; /* by chunk: a value known to be the sum over all ranks */
    int32_t *ranks;    /* that contribute to one value */
    uint32_t *met;     /* by rank: the last value it was found in */
    uint32_t *waits;   /* by step: predecessors that have not run, in a random order */
    uint32_t *ready;   /* steps that wait for nothing */
    size_t *letter;    /* by send: where its message is in `post` */
    mc_value_t *post;  /* messages in flight, each with a slot of its own */
    uint64_t random;
    bool in_place, in_order, aligned;
    const int32_t *number; /* by rank: its number in the aligned tree */
} runs_t;

/* The number of chunks in a rank's OUT, and the k-th of them. */
static uint32_t n_held(const mc_plan_t *plan)
{
    if (plan->out == MC_HOLDS_HOME)
        return plan->layout.segments;
    return plan->out == MC_HOLDS_WHOLE ? plan->n_chunks : 0;
}

static uint32_t held_at(const mc_plan_t *plan, uint32_t k)
{
    return plan->out == MC_HOLDS_HOME ? mc_layout_home(&plan->layout, plan->rank, k) : k;
}

static void runs_free(runs_t *r)
{
    mc_arena_free(&r->arena);
    mc_machine_destroy(r->machine);
}

/* Gives each message a slot of its own: any number may be in flight. */
static void lay_out_post(runs_t *r)
{
    const mc_match_t *const match = r->match;
    size_t end = 0;
    r->letter = mc_arena_take(&r->arena, match->n_steps, sizeof *r->letter);
    for (uint32_t i = 0; r->letter && i < match->n_steps; i++) {
        const mc_step_t *const s = mc_match_step(r->world, match, i);
        r->letter[i] = end;
        if (mc_op_sends((mc_op_t)s->op))
            end += (size_t)s->run * s->nrun;
    }
    r->post = mc_arena_take(&r->arena, end, sizeof *r->post);
}

static int runs_create(const mc_world_t *world, const mc_match_t *match, runs_t *runs)
{
    runs_t r = {.world = world, .match = match};
    const size_t ranks = (size_t)world->n_ranks, steps = match->n_steps;
    const size_t chunks = world->plan[0]->n_chunks;
    size_t held = 0;
    for (size_t i = 0; i < ranks; i++)
        held += n_held(world->plan[i]);
    const int status = mc_machine_create(world, false, &r.machine);
    if (status)
        return status;
    mc_arena_t *const a = &r.arena;
    r.final = mc_arena_take(a, held, sizeof *r.final);
    r.known = mc_arena_take(a, chunks, sizeof *r.known);
    r.ranks = mc_arena_take(a, ranks, sizeof *r.ranks);
    r.met = mc_arena_take(a, ranks, sizeof *r.met);
    r.waits = mc_arena_take(a, steps, sizeof *r.waits);
    r.ready = mc_arena_take(a, steps, sizeof *r.ready);
    lay_out_post(&r);
    if (a->failed) {
        runs_free(&r);
        return mc_fail_memory("verifying a world");
    }
    *runs = r;
    return MESHCOLL_OK;
}

/* Final values
 * ------------------------------------------------------------------------------------ */

static const char *describe(const runs_t *r, mc_value_t value, char *buffer)
{
    mc_text_t text = mc_text(buffer, VALUE_TEXT);
    int32_t ranks[NAMED_RANKS];
    uint32_t n = 0;
    const uint32_t chunk = mc_value_ranks(r->machine, value, ranks, NAMED_RANKS, &n);
    if (n == 0) {
        mc_text_add(&text, "nothing");
        return buffer;
    }
    if (chunk == UINT32_MAX)
        mc_text_add(&text, "mixed chunks of rank%s", n > 1 ? "s" : "");
    else
        mc_text_add(&text, "chunk %u of rank%s", chunk, n > 1 ? "s" : "");
    for (uint32_t i = 0; i < n && i < NAMED_RANKS; i++)
        mc_text_add(&text, " %d", ranks[i]);
    if (n > NAMED_RANKS)
        mc_text_add(&text, " ... (%u in all)", n);
    return buffer;
}

/* Returns the last step of the plan that writes the chunk of OUT, or MC_NO_STEP. */
static uint32_t last_writer(const mc_plan_t *plan, uint32_t chunk)
{
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const mc_step_t *const s = &plan->step[i];
        if (mc_op_writes((mc_op_t)s->op) && s->dst == MC_OUT && mc_range_has(mc_step_to(s), chunk))
            return i;
    }
    return MC_NO_STEP;
}

static int fail_final(const runs_t *r, int32_t rank, uint32_t chunk, mc_value_t found,
                      const char *expected)
{
    char buffer[VALUE_TEXT];
    const mc_plan_t *const plan = r->world->plan[rank];
    const uint32_t writer = last_writer(plan, chunk);
    const char *const where = r->in_place ? " (in place)" : "";
    if (writer == MC_NO_STEP)
        return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: no step writes out[%u]%s: expected %s", rank,
                       chunk, where, expected);
    return mc_fail_step(plan, writer, "leaves %s in out[%u]%s: expected %s",
                        describe(r, found, buffer), chunk, where, expected);
}

/* Is the value the aligned tree over ranks [first, first + n)? */
static bool is_aligned(const runs_t *r, mc_value_t value, int32_t first, int32_t n)
{
    mc_value_t left, right;
    const int32_t *const number = r->number;
    if (!mc_value_operands(r->machine, value, &left, &right)) {
        int32_t rank = -1;
        uint32_t leaves = 0;
        mc_value_ranks(r->machine, value, &rank, 1, &leaves);
        return n == 1 && leaves == 1 && (number ? number[rank] : rank) == first;
    }
    const int32_t half = mc_aligned_left(n);
    return n > 1 && is_aligned(r, left, first, half) &&
           is_aligned(r, right, first + half, n - half);
}

/* Is the value the sum of `chunk` over all ranks, each once, and in rank order or aligned where the
 * options ask for it? */
static bool is_whole_sum(runs_t *r, mc_value_t value, uint32_t chunk)
{
    const uint32_t size = (uint32_t)r->world->n_ranks;
    uint32_t n = 0;
    if (value == MC_NOTHING)
        return false;
    if (r->known[chunk] == value)
        return true;
    if (mc_value_ranks(r->machine, value, r->ranks, size, &n) != chunk || n != size)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *const met = &r->met[r->ranks[i]];
        if (*met == value || (r->in_order && r->ranks[i] != (int32_t)i))
            return false;
        *met = value;
    }
    if (r->aligned && !is_aligned(r, value, 0, (int32_t)size))
        return false;
    r->known[chunk] = value;
    return true;
}

static bool is_sum(meshcoll_collective_t collective)
{
    return collective == MESHCOLL_REDUCE || collective == MESHCOLL_REDUCE_SCATTER ||
           collective == MESHCOLL_ALLREDUCE;
}

static bool is_rooted_source(meshcoll_collective_t collective)
{
    return collective == MESHCOLL_BCAST || collective == MESHCOLL_SCATTER;
}

/* Returns the chunk a block has at its source: there an alltoall numbers blocks by destination. */
static uint32_t chunk_at_source(const mc_plan_t *plan, uint32_t chunk)
{
    const mc_layout_t *const layout = &plan->layout;
    return plan->collective == MESHCOLL_ALLTOALL
               ? mc_layout_home(layout, plan->rank, chunk / layout->per_segment)
               : chunk;
}

/* Checks one final chunk; an absent one is empty and may end as anything. */
static int check_final(runs_t *r, int32_t rank, uint32_t chunk)
{
    enum { EXPECTED = 160 };
    char expected[EXPECTED];
    const mc_plan_t *const plan = r->world->plan[rank];
    const mc_value_t found = mc_machine_value(r->machine, rank, MC_OUT, chunk);
    mc_text_t text = mc_text(expected, sizeof expected);
    if (mc_layout_absent(&plan->layout, chunk))
        return MESHCOLL_OK;
    if (is_sum(plan->collective)) {
        const mc_value_t elsewhere = r->known[chunk];
        if (is_whole_sum(r, found, chunk) && (!elsewhere || found == elsewhere))
            return MESHCOLL_OK;
        mc_text_add(&text, "chunk %u of each of %d ranks once", chunk, r->world->n_ranks);
        if (r->known[chunk] != elsewhere)
            mc_text_add(&text, ", in the same order as elsewhere");
        if (r->in_order)
            mc_text_add(&text, ", in the order of ranks");
        if (r->aligned)
            mc_text_add(&text, ", in brackets of the aligned tree");
        return fail_final(r, rank, chunk, found, expected);
    }
    const int32_t source =
        is_rooted_source(plan->collective) ? plan->root : mc_layout_rank(&plan->layout, chunk);
    const uint32_t there = chunk_at_source(plan, chunk);
    if (found == mc_machine_leaf(r->machine, source, there))
        return MESHCOLL_OK;
    mc_text_add(&text, "chunk %u of rank %d", there, source);
    return fail_final(r, rank, chunk, found, expected);
}

/* Checks the first run, and stores its outcome to compare the others with. */
static int check_finals(runs_t *r)
{
    size_t at = 0;
    for (int32_t rank = 0; rank < r->world->n_ranks; rank++) {
        const mc_plan_t *const plan = r->world->plan[rank];
        for (uint32_t k = 0; k < n_held(plan); k++) {
            const uint32_t chunk = held_at(plan, k);
            const int status = check_final(r, rank, chunk);
            if (status)
                return status;
            r->final[at++] = mc_machine_value(r->machine, rank, MC_OUT, chunk);
        }
    }
    return MESHCOLL_OK;
}

/* Checks that a later run gave the same, down to the order of sums. */
static int compare_finals(const runs_t *r, const char *which)
{
    char was[VALUE_TEXT], is[VALUE_TEXT];
    size_t at = 0;
    for (int32_t rank = 0; rank < r->world->n_ranks; rank++) {
        const mc_plan_t *const plan = r->world->plan[rank];
        for (uint32_t k = 0; k < n_held(plan); k++, at++) {
            const uint32_t chunk = held_at(plan, k);
            const mc_value_t value = mc_machine_value(r->machine, rank, MC_OUT, chunk);
            if (value != r->final[at] && !mc_layout_absent(&plan->layout, chunk))
                return mc_fail(MESHCOLL_ERR_PLAN,
                               "rank %d: out[%u] differs %s: expected %s, found %s", rank, chunk,
                               which, describe(r, r->final[at], was), describe(r, value, is));
        }
    }
    return MESHCOLL_OK;
}

/* Runs ------------------------------------------------------------------------------------------- */

/* A copy onto an equal value is useless work and fails. Exception: an alltoall of four or more
 * phases may return to one half of SCRATCH what a rank kept through two of them. */
static int check_copy(const runs_t *r, uint32_t numbered)
{
    const int32_t rank = r->match->rank[numbered];
    const uint32_t step = mc_match_index(r->match, numbered);
    const mc_plan_t *const plan = r->world->plan[rank];
    const mc_step_t *const s = &plan->step[step];
    const mc_buffer_t src = (mc_buffer_t)s->src, dst = (mc_buffer_t)s->dst;
    const bool halves = src == MC_SCRATCH && dst == MC_SCRATCH;
    const mc_range_t src_range = mc_step_from(s), dst_range = mc_step_to(s);
    for (uint32_t k = 0; s->op == MC_OP_COPY && k < mc_range_chunks(src_range); k++) {
        const uint32_t from = mc_range_chunk(src_range, k), to = mc_range_chunk(dst_range, k);
        const mc_value_t value = mc_machine_value(r->machine, rank, src, from);
        if (mc_plan_absent(plan, src, from) != mc_plan_absent(plan, dst, to))
            return mc_fail_step(plan, step, "copies %s[%u] to %s[%u], of which one is empty",
                                mc_buffer_name(src), from, mc_buffer_name(dst), to);
        if (!halves && value != MC_NOTHING && value == mc_machine_value(r->machine, rank, dst, to))
            return mc_fail_step(plan, step, "writes to %s[%u] the value it already has",
                                mc_buffer_name(dst), to);
    }
    return MESHCOLL_OK;
}

static int run_step(const runs_t *r, uint32_t step)
{
    const int32_t rank = r->match->rank[step];
    const uint32_t index = mc_match_index(r->match, step);
    const mc_op_t op = (mc_op_t)r->world->plan[rank]->step[index].op;
    if (mc_op_sends(op))
        return mc_machine_send(r->machine, rank, index, r->post + r->letter[step]);
    if (mc_op_receives(op))
        return mc_machine_recv(r->machine, rank, index,
                               r->post + r->letter[r->match->partner[step]]);
    return mc_machine_local(r->machine, rank, index);
}

static void start(runs_t *r, bool in_place)
{
    r->in_place = in_place;
    mc_machine_reset(r->machine, in_place);
}

static int run_fixed(runs_t *r, const uint32_t *order, uint32_t n, bool in_place)
{
    int status = MESHCOLL_OK;
    start(r, in_place);
    for (uint32_t i = 0; i < n && !status; i++) {
        const uint32_t recv = r->match->partner[order[i]];
        status = recv == MC_NO_STEP && !in_place ? check_copy(r, order[i]) : MESHCOLL_OK;
        if (!status)
            status = run_step(r, order[i]);
        if (!status && recv != MC_NO_STEP)
            status = run_step(r, recv);
    }
    if (status)
        return status;
    return in_place ? compare_finals(r, "between in place and out of place") : check_finals(r);
}

/* xorshift64* (Marsaglia 2003, Vigna 2016) */
static uint32_t random_below(runs_t *r, uint32_t n)
{
    r->random ^= r->random >> 12;
    r->random ^= r->random << 25;
    r->random ^= r->random >> 27;
    const uint32_t high = (uint32_t)((r->random * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
    return (uint32_t)(((uint64_t)high * n) >> 32);
}

/* Collects the steps that wait for nothing; a receive also waits for its send. */
static uint32_t first_ready(const runs_t *r)
{
    uint32_t n = 0;
    for (int32_t rank = 0; rank < r->world->n_ranks; rank++) {
        const mc_plan_t *const plan = r->world->plan[rank];
        const uint32_t first = r->match->first[rank];
        for (uint32_t i = 0; i < plan->n_steps; i++) {
            r->waits[first + i] =
                plan->n_pred[i] + (mc_op_receives((mc_op_t)plan->step[i].op) ? 1 : 0);
            if (r->waits[first + i] == 0)
                r->ready[n++] = first + i;
        }
    }
    return n;
}

static uint32_t release_after(const runs_t *r, uint32_t step, uint32_t n_ready)
{
    const int32_t rank = r->match->rank[step];
    const mc_plan_t *const plan = r->world->plan[rank];
    const uint32_t first = r->match->first[rank], index = step - first;
    const uint32_t partner = r->match->partner[step];
    if (mc_op_sends((mc_op_t)plan->step[index].op) && --r->waits[partner] == 0)
        r->ready[n_ready++] = partner;
    for (uint32_t e = plan->succ_off[index]; e < plan->succ_off[index + 1]; e++)
        if (--r->waits[first + plan->succ[e]] == 0)
            r->ready[n_ready++] = first + plan->succ[e];
    return n_ready;
}

static int run_random(runs_t *r, bool in_place)
{
    start(r, in_place);
    uint32_t n_ready = first_ready(r);
    while (n_ready > 0) {
        const uint32_t pick = random_below(r, n_ready);
        const uint32_t step = r->ready[pick];
        r->ready[pick] = r->ready[--n_ready];
        const int status = run_step(r, step);
        if (status)
            return status;
        n_ready = release_after(r, step, n_ready);
    }
    return compare_finals(r, in_place ? "in another order of steps, in place"
                                      : "in another order of steps");
}

/* Does any rank hold chunks in both IN and OUT? */
static bool shares_buffers(const mc_world_t *world)
{
    for (int32_t r = 0; r < world->n_ranks; r++)
        if (world->plan[r]->in != MC_HOLDS_NONE && world->plan[r]->out != MC_HOLDS_NONE)
            return true;
    return false;
}

static int run_all(runs_t *r, const mc_verify_options_t *options)
{
    const bool in_place_too = shares_buffers(r->world);
    uint32_t n = 0;
    /* `ready` is large enough, and not in use yet */
    int status = mc_match_order(r->world, r->match, MC_IN_TURN_PER_PEER, r->ready, &n);
    if (!status)
        status = run_fixed(r, r->ready, n, false);
    if (!status && in_place_too)
        status = run_fixed(r, r->ready, n, true);
    r->random = options->seed * 2 + 1; /* the generator must not start from 0 */
    for (uint32_t i = 0; i < options->random_orders && !status; i++) {
        status = run_random(r, false);
        if (!status && in_place_too)
            status = run_random(r, true);
    }
    return status;
}

int mc_check_runs(const mc_world_t *world, const mc_match_t *match,
                  const mc_verify_options_t *options)
{
    runs_t r = {0};
    int status = runs_create(world, match, &r);
    if (status)
        return status;
    r.in_order = options->in_order;
    r.aligned = options->aligned;
    r.number = options->number;
    status = run_all(&r, options);
    runs_free(&r);
    return status;
}
