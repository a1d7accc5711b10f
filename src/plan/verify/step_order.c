/* Orders of a whole world's steps, where both sides of a message complete together; and the times
 * of a trace. */
#include "plan/verify/match.h"

#include <stdlib.h>
#include <string.h>

static bool is_send(const mc_world_t *world, const mc_match_t *match, uint32_t step)
{
    return mc_op_sends((mc_op_t)mc_match_step(world, match, step)->op);
}

static bool is_receive(const mc_world_t *world, const mc_match_t *match, uint32_t step)
{
    return mc_op_receives((mc_op_t)mc_match_step(world, match, step)->op);
}

/* Returns the step that represents `step`: a receive completes with its send. */
static uint32_t mover_of(const mc_world_t *world, const mc_match_t *match, uint32_t step)
{
    return is_receive(world, match, step) ? match->partner[step] : step;
}

/* Returns the rank's next step that sends (or receives, as `step` does), to or from any peer. */
static uint32_t next_alike(const mc_world_t *world, const mc_match_t *match, uint32_t step)
{
    const bool sends = is_send(world, match, step);
    const uint32_t end = match->first[match->rank[step] + 1];
    for (uint32_t i = step + 1; i < end; i++)
        if (sends ? is_send(world, match, i) : is_receive(world, match, i))
            return i;
    return MC_NO_STEP;
}

static void each_successor(const mc_world_t *world, const mc_match_t *match, uint32_t step,
                           void (*each)(void *context, uint32_t step), void *context)
{
    const int32_t rank = match->rank[step];
    const mc_plan_t *const plan = world->plan[rank];
    const uint32_t i = mc_match_index(match, step);
    for (uint32_t e = plan->succ_off[i]; e < plan->succ_off[i + 1]; e++)
        each(context, mover_of(world, match, match->first[rank] + plan->succ[e]));
}

/* Calls `each` for the steps that wait for `step` directly. Both sides of a message are one step here, the send. */
static void each_after(const mc_world_t *world, const mc_match_t *match, mc_turn_t turn,
                       uint32_t step, void (*each)(void *context, uint32_t step), void *context)
{
    each_successor(world, match, step, each, context);
    const uint32_t recv = match->partner[step];
    if (recv == MC_NO_STEP)
        return;
    each_successor(world, match, recv, each, context);
    if (turn == MC_IN_TURN_PER_PEER) {
        if (match->next[step] != MC_NO_STEP)
            each(context, match->next[step]);
        return;
    }
    const uint32_t next_send = next_alike(world, match, step);
    const uint32_t next_recv = next_alike(world, match, recv);
    if (next_send != MC_NO_STEP)
        each(context, next_send);
    if (next_recv != MC_NO_STEP)
        each(context, match->partner[next_recv]);
}

/* Topological order: a step joins `order` once it waits for nothing. */
typedef struct {
    uint32_t *waits; /* by step: how many others it waits for */
    uint32_t *order, n;
} queue_t;

static void count_wait(void *context, uint32_t step)
{
    queue_t *const q = context;
    q->waits[step]++;
}

static void release(void *context, uint32_t step)
{
    queue_t *const q = context;
    if (--q->waits[step] == 0)
        q->order[q->n++] = step;
}

typedef struct {
    uint32_t *before; /* by step: one of those it waits for */
    uint32_t self;
} search_t;

static void note_before(void *context, uint32_t step)
{
    search_t *const s = context;
    s->before[step] = s->self;
}

static void quote_step(const mc_world_t *world, const mc_match_t *match, uint32_t step,
                       mc_text_t *text)
{
    const mc_step_t *const s = mc_match_step(world, match, step);
    mc_text_add(text, "rank %d's step %u (%s", match->rank[step], mc_match_index(match, step),
                mc_op_name((mc_op_t)s->op));
    if (match->partner[step] != MC_NO_STEP)
        mc_text_add(text, " -> %d", s->peer);
    mc_text_add(text, ")");
}

/* Names a cycle of steps that wait for each other; following predecessors from any unfinished step
 * leads into one. */
static int fail_circle(const mc_world_t *world, const mc_match_t *match, mc_turn_t turn,
                       const uint32_t *waits)
{
    enum { NAMED = 5, ROOM = 400 };
    char room[ROOM];
    mc_text_t text = mc_text(room, sizeof room);
    search_t s = {.before = malloc(((size_t)match->n_steps + 1) * sizeof *s.before)};
    if (!s.before)
        return mc_fail_memory("the order of a world");
    memset(s.before, 0xff, ((size_t)match->n_steps + 1) * sizeof *s.before);
    uint32_t at = MC_NO_STEP;
    for (uint32_t i = 0; i < match->n_steps; i++)
        if (waits[i] > 0 && !is_receive(world, match, i)) {
            s.self = at = i;
            each_after(world, match, turn, i, note_before, &s);
        }
    for (uint32_t i = 0; i < match->n_steps;
         i++) /* after that many steps back it is on the cycle */
        at = s.before[at];
    quote_step(world, match, at, &text);
    uint32_t step = s.before[at];
    for (int named = 1; named < NAMED && step != at; named++, step = s.before[step]) {
        mc_text_add(&text, named == 1 ? " waits for " : ", which waits for ");
        quote_step(world, match, step, &text);
    }
    free(s.before);
    return mc_fail(MESHCOLL_ERR_PLAN, "no progress: %s, which waits for %s", room,
                   step == at ? "the first" : "others in a cycle");
}

static int order_with(const mc_world_t *world, const mc_match_t *match, mc_turn_t turn, queue_t *q)
{
    uint32_t movers = 0;
    for (uint32_t i = 0; i < match->n_steps; i++)
        if (!is_receive(world, match, i)) {
            each_after(world, match, turn, i, count_wait, q);
            movers++;
        }
    for (uint32_t i = 0; i < match->n_steps; i++)
        if (q->waits[i] == 0 && !is_receive(world, match, i))
            q->order[q->n++] = i;
    for (uint32_t i = 0; i < q->n; i++)
        each_after(world, match, turn, q->order[i], release, q);
    return q->n == movers ? MESHCOLL_OK : fail_circle(world, match, turn, q->waits);
}

int mc_match_order(const mc_world_t *world, const mc_match_t *match, mc_turn_t turn,
                   uint32_t *order, uint32_t *n)
{
    queue_t q = {.waits = calloc((size_t)match->n_steps + 1, sizeof *q.waits), .order = order};
    if (!q.waits)
        return mc_fail_memory("the order of a world");
    const int status = order_with(world, match, turn, &q);
    free(q.waits);
    if (!status)
        *n = q.n;
    return status;
}

/* Times --------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *time;
    uint32_t earliest;
} timing_t;

static void push_forward(void *context, uint32_t step)
{
    timing_t *const t = context;
    if (t->time[step] < t->earliest)
        t->time[step] = t->earliest;
}

/* Fills `time`, by step, which is 0 at first. Returns the number of time steps. */
static uint32_t time_in_order(const mc_world_t *world, const mc_match_t *match,
                              const uint32_t *order, uint32_t n, uint32_t *time)
{
    uint32_t n_times = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t step = order[i], recv = match->partner[step];
        const bool message = recv != MC_NO_STEP;
        timing_t t = {.time = time, .earliest = time[step] + (message ? 1 : 0)};
        each_after(world, match, MC_IN_TURN_PER_RANK, step, push_forward, &t);
        if (message)
            time[recv] = time[step];
        if (message && t.earliest > n_times)
            n_times = t.earliest;
    }
    return n_times;
}

static int times_of(const mc_world_t *world, const mc_match_t *match, mc_times_t *times)
{
    mc_times_t t = {.n_times = 0};
    uint32_t n = 0;
    t.time = mc_arena_take(&t.arena, (size_t)world->n_ranks, sizeof(uint32_t *));
    uint32_t *const all = mc_arena_take(&t.arena, match->n_steps, sizeof *all);
    uint32_t *const order = mc_arena_take(&t.arena, match->n_steps, sizeof *order);
    int status = t.arena.failed ? mc_fail_memory("the times of a world") : MESHCOLL_OK;
    if (!status)
        status = mc_match_order(world, match, MC_IN_TURN_PER_RANK, order, &n);
    if (status) {
        mc_arena_free(&t.arena);
        return status;
    }
    for (int32_t r = 0; r < world->n_ranks; r++)
        t.time[r] = all + match->first[r];
    t.n_times = time_in_order(world, match, order, n, all);
    *times = t;
    return MESHCOLL_OK;
}

int mc_world_times(const mc_world_t *world, mc_times_t *times)
{
    mc_match_t match = {0};
    int status = mc_match_create(world, &match);
    if (status)
        return status;
    status = times_of(world, &match, times);
    mc_arena_free(&match.arena);
    return status;
}
