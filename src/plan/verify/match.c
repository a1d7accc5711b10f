#include "plan/verify/match.h"

#include "plan/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_TEXT = 128, SENTENCE = 320 };

int mc_fail_step(const mc_plan_t *plan, uint32_t step, const char *format, ...)
{
    char brief[STEP_TEXT], sentence[SENTENCE];
    mc_text_t text = mc_text(brief, sizeof brief);
    mc_explain_brief(&plan->step[step], &text);
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return mc_fail(MESHCOLL_ERR_PLAN, "rank %d, step %u (%s) %s", plan->rank, step, brief,
                   sentence);
}

/* The messages of each rank with each of its peers, as lists through `next`. */
typedef struct {
    const mc_world_t *world;
    mc_match_t match;
    mc_arena_t arena;
    size_t *first_peer;    /* by rank: where its peers start in the two arrays below */
    uint32_t *sent, *recv; /* by rank and peer: the first message, or MC_NO_STEP */
} matching_t;

/* Numbers the steps, and the pairs of ranks. */
static int number_all(matching_t *m, size_t *n_pairs)
{
    const mc_world_t *const world = m->world;
    const size_t ranks = (size_t)world->n_ranks;
    m->match.first = mc_arena_take(&m->match.arena, ranks + 1, sizeof *m->match.first);
    m->first_peer = mc_arena_take(&m->arena, ranks, sizeof *m->first_peer);
    if (!m->match.first || !m->first_peer)
        return mc_fail_memory("the messages of a world");
    uint64_t steps = 0;
    size_t pairs = 0;
    for (size_t r = 0; r < ranks; r++) {
        m->match.first[r] = (uint32_t)steps;
        m->first_peer[r] = pairs;
        steps += world->plan[r]->n_steps;
        pairs += world->plan[r]->n_peers;
        if (steps >= MC_NO_STEP)
            return mc_fail(
                MESHCOLL_ERR_UNSUPPORTED,
                "the plans of all ranks have more than 2^32 steps, and cannot be verified");
    }
    m->match.first[ranks] = m->match.n_steps = (uint32_t)steps;
    *n_pairs = pairs;
    return MESHCOLL_OK;
}

/* `n` step numbers, all MC_NO_STEP. */
static uint32_t *no_steps(mc_arena_t *a, size_t n)
{
    uint32_t *const step = mc_arena_take(a, n, sizeof *step);
    if (step)
        memset(step, 0xff, n * sizeof *step);
    return step;
}

static int matching_create(const mc_world_t *world, matching_t *matching)
{
    matching_t m = {.world = world};
    size_t n_pairs = 0;
    int status = number_all(&m, &n_pairs);
    if (!status) {
        const size_t n = m.match.n_steps;
        m.match.rank = mc_arena_take(&m.match.arena, n, sizeof *m.match.rank);
        m.match.partner = no_steps(&m.match.arena, n);
        m.match.next = no_steps(&m.match.arena, n);
        m.sent = no_steps(&m.arena, n_pairs);
        m.recv = no_steps(&m.arena, n_pairs);
        if (m.match.arena.failed || m.arena.failed)
            status = mc_fail_memory("the messages of a world");
    }
    if (status) {
        mc_arena_free(&m.arena);
        mc_arena_free(&m.match.arena);
        return status;
    }
    *matching = m;
    return MESHCOLL_OK;
}

/* Returns the number of the pair, or SIZE_MAX where `rank` does not list `peer`. */
static size_t pair_of(const matching_t *m, int32_t rank, int32_t peer)
{
    const mc_plan_t *const plan = m->world->plan[rank];
    const uint32_t at = mc_plan_peer(plan, peer);
    const bool found = at < plan->n_peers && plan->peer[at] == peer;
    return found ? m->first_peer[rank] + at : SIZE_MAX;
}

/* Walks backwards, so that each list starts with the first message. */
static int list_messages(matching_t *m, int32_t rank)
{
    const mc_plan_t *const plan = m->world->plan[rank];
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const mc_step_t *const s = &plan->step[i];
        const uint32_t step = m->match.first[rank] + i;
        m->match.rank[step] = rank;
        if (!mc_op_sends((mc_op_t)s->op) && !mc_op_receives((mc_op_t)s->op))
            continue;
        const size_t pair = pair_of(m, rank, s->peer);
        if (pair == SIZE_MAX)
            return mc_fail_step(
                plan, i, "exchanges with rank %d, which is not among the plan's peers", s->peer);
        uint32_t *const head = mc_op_sends((mc_op_t)s->op) ? &m->sent[pair] : &m->recv[pair];
        m->match.next[step] = *head;
        *head = step;
    }
    return MESHCOLL_OK;
}

/* One side of a message. */
typedef struct {
    const mc_plan_t *plan;
    mc_buffer_t buffer;
    mc_range_t range;
} side_t;

static bool same_shape(mc_range_t a, mc_range_t b)
{
    return a.run == b.run && a.nrun == b.nrun && (a.nrun == 1 || a.stride == b.stride) &&
           a.ring == b.ring;
}

/* Do the k-th chunks of both sides match? In an alltoall a block changes its chunk number on the
 * way, but not its segment; blocks of a segment are of one size, or empty. */
static bool same_chunk(const side_t *a, const side_t *b, uint64_t k)
{
    const uint32_t x = mc_range_chunk(a->range, k), y = mc_range_chunk(b->range, k);
    if (a->plan->collective != MESHCOLL_ALLTOALL)
        return x % a->plan->n_chunks == y % b->plan->n_chunks;
    return mc_plan_segment(a->plan, a->buffer, x) == mc_plan_segment(b->plan, b->buffer, y) &&
           mc_plan_absent(a->plan, a->buffer, x) == mc_plan_absent(b->plan, b->buffer, y);
}

/* Do both sides name the same chunks of the vector? `k`: the first that differs. */
static bool same_chunks(const side_t *a, const side_t *b, uint64_t *k)
{
    const uint64_t n = (uint64_t)a->range.run * a->range.nrun;
    const uint32_t n_chunks = a->plan->n_chunks;
    *k = 0;
    if (same_shape(a->range, b->range) && a->plan->collective != MESHCOLL_ALLTOALL)
        return a->range.first % n_chunks == b->range.first % n_chunks;
    while (*k < n && same_chunk(a, b, *k))
        ++*k;
    return *k == n;
}

static int fail_alone(const matching_t *m, uint32_t step, int32_t peer, const char *missing)
{
    const int32_t rank = m->match.rank[step];
    return mc_fail_step(m->world->plan[rank], mc_match_index(&m->match, step),
                        "has no matching %s at rank %d", missing, peer);
}

static int check_pair(const matching_t *m, uint32_t send, uint32_t recv, uint32_t ordinal)
{
    const mc_world_t *const world = m->world;
    const mc_plan_t *const to = world->plan[m->match.rank[recv]];
    const mc_step_t *const s = mc_match_step(world, &m->match, send);
    const mc_step_t *const t = mc_match_step(world, &m->match, recv);
    const uint32_t at = mc_match_index(&m->match, recv);
    const mc_range_t a = mc_step_from(s), b = mc_step_to(t);
    const side_t here = {to, (mc_buffer_t)t->dst, b};
    const side_t there = {world->plan[m->match.rank[send]], (mc_buffer_t)s->src, a};
    if (s->seq != ordinal || t->seq != ordinal)
        return mc_fail_step(to, at,
                            "is message %u of its pair: expected seq %u, found %u here, %u "
                            "at the sender",
                            ordinal, ordinal, t->seq, s->seq);
    if (s->phase != t->phase) /* tags have it */
        return mc_fail_step(to, at, "is of phase %u, rank %d's step %u that sends it of phase %u",
                            t->phase, m->match.rank[send], mc_match_index(&m->match, send),
                            s->phase);
    if ((uint64_t)a.run * a.nrun != (uint64_t)b.run * b.nrun)
        return mc_fail_step(to, at, "expects %u chunks, rank %d's step %u sends %u", b.run * b.nrun,
                            m->match.rank[send], mc_match_index(&m->match, send), a.run * a.nrun);
    uint64_t k = 0;
    if (!same_chunks(&there, &here, &k))
        return mc_fail_step(to, at, "expects chunk %u, rank %d's step %u sends chunk %u",
                            mc_range_chunk(b, k) % to->n_chunks, m->match.rank[send],
                            mc_match_index(&m->match, send), mc_range_chunk(a, k) % to->n_chunks);
    return MESHCOLL_OK;
}

/* Joins the messages that `from` sends to `to`, in order. */
static int join_pair(matching_t *m, int32_t from, int32_t to, uint32_t send, uint32_t recv)
{
    for (uint32_t ordinal = 0; send != MC_NO_STEP || recv != MC_NO_STEP; ordinal++) {
        if (recv == MC_NO_STEP)
            return fail_alone(m, send, to, "receive");
        if (send == MC_NO_STEP)
            return fail_alone(m, recv, from, "send");
        const int status = check_pair(m, send, recv, ordinal);
        if (status)
            return status;
        m->match.partner[send] = recv;
        m->match.partner[recv] = send;
        send = m->match.next[send];
        recv = m->match.next[recv];
    }
    return MESHCOLL_OK;
}

static int join_rank(matching_t *m, int32_t rank)
{
    const mc_plan_t *const plan = m->world->plan[rank];
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < plan->n_peers && !status; i++) {
        const int32_t peer = plan->peer[i];
        const size_t here = m->first_peer[rank] + i;
        const bool exists = peer >= 0 && peer < m->world->n_ranks && peer != rank;
        if (!exists)
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d lists peer %d: expected another of %d ranks",
                           rank, peer, m->world->n_ranks);
        const size_t there = pair_of(m, peer, rank);
        status = join_pair(m, rank, peer, m->sent[here],
                           there == SIZE_MAX ? MC_NO_STEP : m->recv[there]);
        /* a peer that lists this rank joins its own sends */
        if (!status && there == SIZE_MAX)
            status = join_pair(m, peer, rank, MC_NO_STEP, m->recv[here]);
    }
    return status;
}

int mc_match_create(const mc_world_t *world, mc_match_t *match)
{
    matching_t m = {0};
    int status = matching_create(world, &m);
    if (status)
        return status;
    for (int32_t r = 0; r < world->n_ranks && !status; r++)
        status = list_messages(&m, r);
    for (int32_t r = 0; r < world->n_ranks && !status; r++)
        status = join_rank(&m, r);
    mc_arena_free(&m.arena);
    if (status) {
        mc_arena_free(&m.match.arena);
        return status;
    }
    *match = m.match;
    return MESHCOLL_OK;
}
