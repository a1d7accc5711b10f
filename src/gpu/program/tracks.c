#include "gpu/program/tracks.h"

static bool crosses(const mc_device_order_t *o, uint32_t a, uint32_t b)
{
    return mc_device_track_of(o, a) != mc_device_track_of(o, b);
}

/* Steps that others need behind them get marks, in program order. */
static void set_marks(mc_device_order_t *o)
{
    const mc_plan_t *const plan = o->plan;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        bool needed = false;
        for (uint32_t k = plan->succ_off[i]; k < plan->succ_off[i + 1] && !needed; k++)
            needed = crosses(o, i, plan->succ[k]);
        if (needed)
            o->mark[i] = ++o->marks[mc_device_track_of(o, i)];
    }
}

static void set_needs(mc_device_order_t *o)
{
    const mc_plan_t *const plan = o->plan;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (uint32_t k = plan->succ_off[i]; k < plan->succ_off[i + 1]; k++) {
            uint32_t *const need = &o->after[plan->succ[k]][mc_device_track_of(o, i)];
            if (crosses(o, i, plan->succ[k]) && o->mark[i] > *need)
                *need = o->mark[i];
        }
}

int mc_device_order_open(const mc_plan_t *plan, const mc_device_tracks_t *tracks, bool scales,
                         mc_device_order_t *order)
{
    mc_device_order_t o = {.plan = plan, .tracks = tracks, .scales = scales && tracks->n > 1};
    o.mark = mc_arena_take(&o.arena, plan->n_steps, sizeof *o.mark);
    o.after = mc_arena_take(&o.arena, plan->n_steps, sizeof *o.after);
    if (o.arena.failed) {
        mc_arena_free(&o.arena);
        return mc_fail_memory("a program");
    }
    o.marks[0] = o.scales;
    if (tracks->n > 1) {
        set_marks(&o);
        set_needs(&o);
    }
    *order = o;
    return MESHCOLL_OK;
}

uint32_t mc_device_order_after(mc_device_order_t *o, uint32_t step, uint32_t other)
{
    const uint32_t own = mc_device_track_of(o, step);
    uint32_t need = o->after[step][other];
    if (o->scales && other == 0 && own != 0 && need == 0)
        need = 1;
    if (need <= o->awaited[own][other])
        return 0;
    return o->awaited[own][other] = need;
}
