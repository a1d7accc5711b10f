#include "gpu/route/schedule.h"

#include "gpu/program/piece.h"

#include <stdlib.h>
#include <string.h>

/* Counts the messages of each lane: first[lane + 1]; then makes sums of them. */
static uint32_t count(const mc_device_program_t *p, uint32_t *first)
{
    for (uint32_t i = 0; i < p->n_runs; i = mc_device_step_end(p->run, i))
        first[p->run[i].lane + 1] += mc_device_is_message(&p->run[i]);
    for (uint32_t l = 0; l < 2 * p->n_peers; l++)
        first[l + 1] += first[l];
    return first[2 * p->n_peers];
}

static int fill(const mc_device_program_t *p, const uint32_t *first, mc_schedule_message_t *message)
{
    uint32_t *const next = malloc((2 * p->n_peers + 1) * sizeof *next);
    if (!next)
        return mc_fail_memory("the messages of a program");
    memcpy(next, first, (2 * p->n_peers + 1) * sizeof *next);
    for (uint32_t i = 0; i < p->n_runs; i = mc_device_step_end(p->run, i))
        if (mc_device_is_message(&p->run[i]))
            message[next[p->run[i].lane]++] =
                (mc_schedule_message_t){i, mc_device_step_end(p->run, i)};
    free(next);
    return MESHCOLL_OK;
}

static void free_parts(mc_schedule_t *t)
{
    free((void *)t->call.run);
    free((void *)t->message);
    free((void *)t->first);
    free(t->route);
    free(t);
}

int mc_schedule_make(const mc_device_program_t *program, const mc_device_call_t *call,
                     mc_schedule_t **schedule)
{
    const uint32_t n_lanes = 2 * program->n_peers;
    mc_schedule_t *const t = calloc(1, sizeof *t);
    if (!t)
        return mc_fail_memory("the messages of a program");
    uint32_t *const first = calloc(n_lanes + 2, sizeof *first);
    mc_device_run_t *const run = malloc((program->n_runs + 1) * sizeof *run);
    mc_schedule_message_t *const message = malloc((program->n_runs + 1) * sizeof *message);
    t->holders = 1;
    t->n_lanes = n_lanes;
    t->call = *call;
    t->call.run = run;
    t->first = first;
    t->message = message;
    t->route = calloc(n_lanes + 1, sizeof(struct mc_route *));
    int status = MESHCOLL_OK;
    if (!first || !run || !message || !t->route)
        status = mc_fail_memory("the messages of a program");
    if (!status && program->n_runs > 0)
        memcpy(run, program->run, program->n_runs * sizeof *run);
    if (!status && count(program, first) > 0)
        status = fill(program, first, message);
    if (status)
        free_parts(t);
    else
        *schedule = t;
    return status;
}

void mc_schedule_hold(mc_schedule_t *t)
{
    atomic_fetch_add_explicit(&t->holders, 1, memory_order_relaxed);
}

void mc_schedule_drop(mc_schedule_t *t)
{
    if (t && atomic_fetch_sub_explicit(&t->holders, 1, memory_order_acq_rel) == 1)
        free_parts(t);
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
