#include "tools/trace/trace.h"

#include "plan/verify/match.h"

#include <string.h>

const char *mc_chunk_name(uint32_t chunk, char buffer[MC_CHUNK_TEXT])
{
    char reversed[MC_CHUNK_TEXT];
    int n = 0;
    for (uint64_t rest = (uint64_t)chunk + 1; rest > 0 && n < MC_CHUNK_TEXT - 1; n++) {
        rest--;
        reversed[n] = (char)('a' + rest % 26);
        rest /= 26;
    }
    for (int i = 0; i < n; i++)
        buffer[i] = reversed[n - 1 - i];
    buffer[n] = '\0';
    return buffer;
}

enum { MOST_RANKS = 4096, RANK_TEXT = MC_CHUNK_TEXT + 12 };

/* The world being run, step by step. */
typedef struct {
    const mc_world_t *world;
    mc_machine_t *machine;
    mc_times_t times;
    mc_match_t match;
    mc_value_t **message; /* by step: what a send of this time step took along */
    bool *aside;          /* [rank * n_chunks + chunk]: written last in SCRATCH's second half */
    int32_t *ranks;       /* MOST_RANKS, of one value */
    char *text;           /* of one cell */
    size_t room;
    mc_arena_t arena; /* of all these, and of what is sent */
} run_t;

static mc_value_t newest(const run_t *run, int32_t rank, uint32_t chunk)
{
    static const mc_buffer_t order[] = {MC_OUT, MC_SCRATCH, MC_IN};
    const uint32_t n = run->world->plan[0]->n_chunks;
    const bool pairs = run->world->plan[rank]->depth > 0;
    mc_value_t value = MC_NOTHING;
    if (run->aside[(size_t)rank * n + chunk])
        return mc_machine_value(run->machine, rank, MC_SCRATCH, n + chunk);
    for (size_t i = 0; i < MC_COUNT(order) && value == MC_NOTHING; i++)
        if (order[i] != MC_SCRATCH || !pairs)
            value = mc_machine_value(run->machine, rank, order[i], chunk);
    return value;
}

/* The chunks of an alltoall alternate between the halves of SCRATCH. Partial sums in the second
 * half have no column. */
static void note_place(const run_t *run, int32_t rank, uint32_t step)
{
    const mc_plan_t *const plan = run->world->plan[rank];
    const mc_step_t *const s = &plan->step[step];
    const uint32_t n = plan->n_chunks;
    const bool halves = plan->collective == MESHCOLL_ALLTOALL && !plan->depth;
    for (uint32_t k = 0; halves && k < s->run * s->nrun; k++) {
        const uint32_t to = mc_range_chunk(mc_step_to(s), k);
        run->aside[(size_t)rank * n + to % n] = to >= n;
    }
}

/* "a1a0": the chunk with each rank that contributed, in the order of the sum. */
static void describe(const run_t *run, mc_value_t value, mc_text_t *out)
{
    char name[MC_CHUNK_TEXT];
    uint32_t n = 0;
    const uint32_t chunk = mc_value_ranks(run->machine, value, run->ranks, MOST_RANKS, &n);
    for (uint32_t i = 0; i < n && i < MOST_RANKS; i++)
        mc_text_add(out, "%s%d", chunk == UINT32_MAX ? "?" : mc_chunk_name(chunk, name),
                    run->ranks[i]);
}

/* The pairs of a line and a place on it, in the last part of SCRATCH where there are some: "a0,b0". */
static void describe_pairs(const run_t *run, int32_t rank, uint32_t chunk, mc_text_t *out)
{
    const mc_plan_t *const plan = run->world->plan[rank];
    const uint32_t depth = plan->depth, n = plan->n_chunks;
    char name[MC_CHUNK_TEXT];
    for (uint32_t part = plan->parts; part-- > 0 && out->length == 0;)
        for (uint32_t i = 0; i < depth; i++) {
            const uint32_t at = (part * n + chunk) * depth + i;
            const mc_value_t value = mc_machine_value(run->machine, rank, MC_SCRATCH, at);
            int32_t from;
            uint32_t ranks;
            const uint32_t of = mc_value_ranks(run->machine, value, &from, 1, &ranks);
            if (value != MC_NOTHING && !mc_plan_absent(plan, MC_SCRATCH, at))
                mc_text_add(out, "%s%s%d", out->length ? "," : "", mc_chunk_name(of, name), from);
        }
}

/* Is the chunk in pairs? Before that it is in IN, and at the end in OUT. */
static bool shows_pairs(const run_t *run, int32_t rank, uint32_t chunk)
{
    const mc_plan_t *const plan = run->world->plan[rank];
    bool any = false;
    for (uint32_t i = 0; i < plan->depth * plan->parts && !any; i++) {
        const uint32_t at = (i / plan->depth * plan->n_chunks + chunk) * plan->depth;
        any = mc_machine_value(run->machine, rank, MC_SCRATCH, at + i % plan->depth) != MC_NOTHING;
    }
    return any && mc_machine_value(run->machine, rank, MC_OUT, chunk) == MC_NOTHING;
}

static void describe_cell(const run_t *run, int32_t rank, uint32_t chunk, mc_text_t *out)
{
    if (shows_pairs(run, rank, chunk))
        describe_pairs(run, rank, chunk, out);
    else
        describe(run, newest(run, rank, chunk), out);
}

/* A time step changes few cells: the others share their text with the state before. */
static int take_state(const run_t *run, mc_trace_t *trace, mc_trace_state_t *state)
{
    const size_t cells = (size_t)trace->n_ranks * trace->n_chunks;
    const mc_trace_state_t *const before = state > trace->state ? state - 1 : NULL;
    state->cell = mc_arena_take(&trace->arena, cells, sizeof(char *));
    for (size_t i = 0; i < cells && !trace->arena.failed; i++) {
        mc_text_t out = mc_text(run->text, run->room);
        describe_cell(run, (int32_t)(i / trace->n_chunks), (uint32_t)(i % trace->n_chunks), &out);
        if (out.length == 0)
            mc_text_add(&out, "-");
        if (before && strcmp(before->cell[i], run->text) == 0) {
            state->cell[i] = before->cell[i];
            continue;
        }
        state->cell[i] = mc_arena_take(&trace->arena, out.length + 1, 1);
        if (state->cell[i])
            memcpy(state->cell[i], run->text, out.length);
    }
    return trace->arena.failed ? mc_fail_memory("a trace") : MESHCOLL_OK;
}

static int run_local(const run_t *run, int32_t rank, uint32_t step)
{
    note_place(run, rank, step);
    return mc_machine_local(run->machine, rank, step);
}

/* Local steps of a time step, all ranks, in program order. */
static int run_locals(const run_t *run, uint32_t time)
{
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < run->world->n_ranks; r++) {
        const mc_plan_t *const plan = run->world->plan[r];
        for (uint32_t i = 0; i < plan->n_steps && !status; i++)
            if (plan->step[i].peer < 0 && run->times.time[r][i] == time)
                status = run_local(run, r, i);
    }
    return status;
}

/* In columns: of pairs, those of the chunks that they are lines and places of. */
static mc_range_t columns_of(const mc_plan_t *plan, const mc_step_t *s)
{
    const uint32_t depth = s->src == MC_SCRATCH ? mc_plan_depth(plan) : 1;
    mc_range_t r = mc_step_from(s);
    if (depth == 1)
        return r;
    if (r.run % depth == 0)
        return (mc_range_t){r.first / depth, r.run / depth, r.nrun, r.stride / depth, 0};
    return (mc_range_t){r.first / depth, r.nrun, 1, 0, 0};
}

static int send_one(run_t *run, int32_t rank, uint32_t step, mc_trace_state_t *state)
{
    const mc_step_t *const s = &run->world->plan[rank]->step[step];
    const uint32_t at = run->match.first[rank] + step;
    mc_value_t *const values = mc_arena_take(&run->arena, (size_t)s->run * s->nrun, sizeof *values);
    if (!values || state->n_messages == (uint32_t)run->world->n_ranks)
        return mc_fail_memory("a trace");
    run->message[at] = values;
    state->message[state->n_messages++] =
        (mc_trace_message_t){rank, s->peer, s->phase, columns_of(run->world->plan[rank], s)};
    return mc_machine_send(run->machine, rank, step, values);
}

/* What is sent in a time step is what stood there before it: all sends first, then all receives. */
static int run_messages(run_t *run, uint32_t time, mc_trace_state_t *state)
{
    int status = MESHCOLL_OK;
    for (int32_t r = 0; r < run->world->n_ranks; r++) {
        const mc_plan_t *const plan = run->world->plan[r];
        for (uint32_t i = 0; i < plan->n_steps && !status; i++)
            if (mc_op_sends((mc_op_t)plan->step[i].op) && run->times.time[r][i] == time)
                status = send_one(run, r, i, state);
    }
    for (int32_t r = 0; r < run->world->n_ranks; r++) {
        const mc_plan_t *const plan = run->world->plan[r];
        for (uint32_t i = 0; i < plan->n_steps && !status; i++)
            if (mc_op_receives((mc_op_t)plan->step[i].op) && run->times.time[r][i] == time) {
                const uint32_t send = run->match.partner[run->match.first[r] + i];
                note_place(run, r, i);
                status = mc_machine_recv(run->machine, r, i, run->message[send]);
            }
    }
    return status;
}

/* Local steps after the last message belong to the last state. */
static int run_all(run_t *run, mc_trace_t *trace)
{
    const uint32_t n_times = run->times.n_times;
    int status = take_state(run, trace, &trace->state[0]);
    for (uint32_t t = 0; t < n_times && !status; t++) {
        mc_trace_state_t *const state = &trace->state[t + 1];
        /* of a rank one message a time step */
        state->message =
            mc_arena_take(&trace->arena, (size_t)trace->n_ranks, sizeof *state->message);
        status = state->message ? run_locals(run, t) : mc_fail_memory("a trace");
        if (!status)
            status = run_messages(run, t, state);
        if (!status && t + 1 == n_times)
            status = run_locals(run, n_times);
        if (!status)
            status = take_state(run, trace, state);
    }
    return status;
}

static int run_create(const mc_world_t *world, run_t *run)
{
    *run = (run_t){.world = world};
    int status = mc_machine_create(world, false, &run->machine);
    if (!status)
        status = mc_match_create(world, &run->match);
    if (!status)
        status = mc_world_times(world, &run->times);
    if (status)
        return status;
    const size_t cells = (size_t)world->n_ranks * world->plan[0]->n_chunks;
    const uint32_t depth = world->plan[0]->depth;
    run->room = (size_t)(depth > MOST_RANKS ? depth : MOST_RANKS) * RANK_TEXT;
    run->text = mc_arena_take(&run->arena, run->room, 1);
    run->ranks = mc_arena_take(&run->arena, MOST_RANKS, sizeof *run->ranks);
    run->message = mc_arena_take(&run->arena, run->match.n_steps, sizeof(mc_value_t *));
    run->aside = mc_arena_take(&run->arena, cells, sizeof *run->aside);
    return run->arena.failed ? mc_fail_memory("a trace") : MESHCOLL_OK;
}

int mc_trace_create(const mc_world_t *world, mc_trace_t *trace)
{
    run_t run;
    mc_trace_t t = {.n_ranks = world->n_ranks, .n_chunks = world->plan[0]->n_chunks};
    int status = run_create(world, &run);
    if (!status) {
        t.n_states = run.times.n_times + 1;
        t.state = mc_arena_take(&t.arena, t.n_states, sizeof *t.state);
        status = t.state ? run_all(&run, &t) : mc_fail_memory("a trace");
    }
    mc_arena_free(&run.arena);
    mc_arena_free(&run.times.arena);
    mc_arena_free(&run.match.arena);
    mc_machine_destroy(run.machine);
    if (status)
        mc_arena_free(&t.arena);
    else
        *trace = t;
    return status;
}
