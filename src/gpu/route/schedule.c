#include "gpu/route/route.h"

#include "gpu/program/piece.h"

#include <stdlib.h>
#include <string.h>

/* Counts the messages of each lane: first[lane + 1]; then makes sums of them. */
static void count(const mc_device_program_t *p, uint32_t *first)
{
    for (uint32_t i = 0; i < p->n_runs; i = mc_device_step_end(p->run, i))
        if (mc_device_is_message(&p->run[i]))
            first[p->run[i].lane + 1]++;
    for (uint32_t l = 0; l < 2 * p->n_peers; l++)
        first[l + 1] += first[l];
}

/* `next`: a copy of the lanes' first messages. */
static void fill(const mc_device_program_t *p, uint32_t *next, mc_schedule_message_t *message)
{
    for (uint32_t i = 0; i < p->n_runs; i = mc_device_step_end(p->run, i))
        if (mc_device_is_message(&p->run[i]))
            message[next[p->run[i].lane]++] =
                (mc_schedule_message_t){i, mc_device_step_end(p->run, i)};
}

static void free_all(mc_schedule_t *t)
{
    mc_arena_free(&t->arena);
    free(t);
}

int mc_schedule_make(const mc_device_program_t *program, const mc_device_call_t *call,
                     mc_schedule_t **schedule)
{
    const uint32_t n_lanes = 2 * program->n_peers;
    mc_schedule_t *const t = calloc(1, sizeof *t);
    if (!t)
        return mc_fail_memory("the messages of a program");
    mc_arena_t *const a = &t->arena;
    uint32_t *const first = mc_arena_take(a, n_lanes + 1, sizeof *first);
    uint32_t *const next = mc_arena_take(a, n_lanes + 1, sizeof *next);
    mc_device_run_t *const run = mc_arena_take(a, program->n_runs, sizeof *run);
    mc_schedule_message_t *const message = mc_arena_take(a, program->n_runs, sizeof *message);
    struct mc_route **const route = mc_arena_take(a, n_lanes, sizeof(struct mc_route *));
    *t = (mc_schedule_t){.arena = *a,
                         .holders = 1,
                         .n_lanes = n_lanes,
                         .call = *call,
                         .message = message,
                         .first = first,
                         .route = route};
    if (t->arena.failed) {
        free_all(t);
        return mc_fail_memory("the messages of a program");
    }
    t->call.run = run;
    memcpy(run, program->run, program->n_runs * sizeof *run);
    count(program, first);
    memcpy(next, first, (n_lanes + 1) * sizeof *next);
    fill(program, next, message);
    *schedule = t;
    return MESHCOLL_OK;
}

void mc_schedule_hold(mc_schedule_t *t)
{
    atomic_fetch_add_explicit(&t->holders, 1, memory_order_relaxed);
}

void mc_schedule_drop(mc_schedule_t *t)
{
    if (t && atomic_fetch_sub_explicit(&t->holders, 1, memory_order_acq_rel) == 1)
        free_all(t);
}

uint64_t mc_schedule_bytes(const mc_schedule_t *t, uint32_t lane, uint32_t message, uint32_t block,
                           uint32_t pass)
{
    const mc_schedule_message_t *const m = &t->message[t->first[lane] + message];
    uint64_t bytes = 0;
    if (mc_device_track(&t->call.run[m->first]) != block % t->call.tracks)
        return 0;
    for (uint32_t i = m->first; i < m->end; i++)
        bytes +=
            t->call.run[i].n *
            mc_device_padded(
                mc_device_piece(&t->call, block / t->call.tracks, pass, &t->call.run[i]).bytes);
    return bytes;
}
