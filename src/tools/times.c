#include "tools/times.h"

#include "plan/match.h"

#include <stdlib.h>

typedef struct {
    const mc_world_t *world;
    const mc_match_t *match;
    uint32_t *waits;              /* by step: how many it waits for */
    uint32_t *time;               /* by step */
    uint32_t *busy_out, *busy_in; /* by rank: the last time step with a message, plus one */
    uint32_t *first_open;         /* by rank: steps before it are all done */
    bool *done;                   /* by step; a receive's is its send's */
    uint32_t *taken, n_taken;     /* in this time step */
} schedule_t;

static void count_wait(void *context, uint32_t step)
{
    schedule_t *const s = context;
    s->waits[step]++;
}

static void release(void *context, uint32_t step)
{
    schedule_t *const s = context;
    s->waits[step]--;
}

static void each_after(schedule_t *s, uint32_t step, void (*each)(void *context, uint32_t step))
{
    mc_match_each_after(s->world, s->match, MC_IN_TURN_PER_PEER, step, each, s);
}

static bool receives(const schedule_t *s, uint32_t step)
{
    return mc_op_receives((mc_op_t)mc_match_step(s->world, s->match, step)->op);
}

static bool is_open(const schedule_t *s, uint32_t step)
{
    return !s->done[step] && !receives(s, step) && s->waits[step] == 0;
}

static bool is_local(const schedule_t *s, uint32_t step)
{
    return s->match->partner[step] == MC_NO_STEP;
}

/* Local steps take no time, so one may set the next one free. */
static void take_locals(schedule_t *s, uint32_t time)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < s->match->n_steps; i++)
            if (is_local(s, i) && is_open(s, i)) {
                s->done[i] = more = true;
                s->time[i] = time;
                each_after(s, i, release);
            }
    }
}

static void take_message(schedule_t *s, uint32_t step, uint32_t time)
{
    const uint32_t recv = s->match->partner[step];
    uint32_t *const out = &s->busy_out[s->match->rank[step]];
    uint32_t *const in = &s->busy_in[s->match->rank[recv]];
    if (*out == time + 1 || *in == time + 1)
        return;
    *out = *in = time + 1;
    s->time[step] = s->time[recv] = time;
    s->taken[s->n_taken++] = step;
}

/* What a message sets free has to wait for the next time step. */
static bool take_messages(schedule_t *s, uint32_t time)
{
    s->n_taken = 0;
    for (int32_t r = 0; r < s->world->n_ranks; r++) {
        const uint32_t end = s->match->first[r + 1];
        uint32_t *const open = &s->first_open[r];
        while (*open < end && (s->done[*open] || receives(s, *open)))
            ++*open;
        for (uint32_t i = *open; i < end && s->busy_out[r] != time + 1; i++)
            if (!is_local(s, i) && is_open(s, i))
                take_message(s, i, time);
    }
    for (uint32_t i = 0; i < s->n_taken; i++) {
        s->done[s->taken[i]] = true;
        each_after(s, s->taken[i], release);
    }
    return s->n_taken > 0;
}

static uint32_t run_schedule(schedule_t *s)
{
    uint32_t time = 0;
    for (int32_t r = 0; r < s->world->n_ranks; r++)
        s->first_open[r] = s->match->first[r];
    for (uint32_t i = 0; i < s->match->n_steps; i++)
        if (!receives(s, i))
            each_after(s, i, count_wait);
    do
        take_locals(s, time);
    while (take_messages(s, time) && ++time);
    return time;
}

static void schedule_free(schedule_t *s)
{
    free(s->waits);
    free(s->busy_out);
    free(s->busy_in);
    free(s->first_open);
    free(s->done);
    free(s->taken);
}

static int schedule_create(const mc_world_t *world, const mc_match_t *match, schedule_t *s)
{
    const size_t steps = (size_t)match->n_steps + 1, ranks = (size_t)world->n_ranks;
    *s = (schedule_t){.world = world, .match = match};
    s->waits = calloc(steps, sizeof *s->waits);
    s->time = calloc(steps, sizeof *s->time);
    s->busy_out = calloc(ranks, sizeof *s->busy_out);
    s->busy_in = calloc(ranks, sizeof *s->busy_in);
    s->first_open = calloc(ranks, sizeof *s->first_open);
    s->done = calloc(steps, sizeof *s->done);
    s->taken = calloc(ranks, sizeof *s->taken);
    if (s->waits && s->time && s->busy_out && s->busy_in && s->first_open && s->done && s->taken)
        return MESHCOLL_OK;
    free(s->time);
    schedule_free(s);
    return mc_fail_memory("the times of a world");
}

static int finish(schedule_t *s, uint32_t n_times, mc_times_t *times)
{
    const int32_t ranks = s->world->n_ranks;
    uint32_t **const time = malloc((size_t)ranks * sizeof *time);
    bool all = true;
    for (uint32_t i = 0; i < s->match->n_steps; i++)
        all = all && (s->done[i] || receives(s, i));
    if (!time || !all) {
        free(time);
        free(s->time);
        return all ? mc_fail_memory("the times of a world")
                   : mc_fail(MESHCOLL_ERR_PLAN, "no progress: messages wait for each other");
    }
    for (int32_t r = 0; r < ranks; r++)
        time[r] = s->time + s->match->first[r];
    *times = (mc_times_t){.n_times = n_times, .time = time};
    return MESHCOLL_OK;
}

static int schedule(const mc_world_t *world, mc_times_t *times)
{
    mc_match_t match;
    schedule_t s;
    int status = mc_match_create(world, &match);
    if (status)
        return status;
    status = schedule_create(world, &match, &s);
    if (!status) {
        status = finish(&s, run_schedule(&s), times);
        schedule_free(&s);
    }
    mc_match_free(&match);
    return status;
}

int mc_tool_times(const mc_world_t *world, mc_times_t *times)
{
    const int status = mc_world_times(world, times);
    return status == MESHCOLL_ERR_PLAN ? schedule(world, times) : status;
}
