#include "runtime/handle/lead.h"

/* Counts of calls wrap. */
static bool is_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

int mc_refusals_add(mc_refusals_t *f, uint32_t made)
{
    mc_refused_run_t *const run = mc_grown(f->run, f->n, &f->capacity, sizeof *run);
    if (!run)
        return mc_fail_memory("a list of refused calls");
    f->run = run;
    f->hash = (f->hash ^ made) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    f->hash ^= f->hash >> 29;
    if (f->n > 0 && f->run[f->n - 1].last + 1 == made)
        f->run[f->n - 1].last = made;
    else
        f->run[f->n++] = (mc_refused_run_t){made, made};
    return MESHCOLL_OK;
}

bool mc_refusals_know(const mc_refusals_t *f, uint32_t made)
{
    bool known = !is_after(made, f->settled);
    for (uint32_t i = 0; i < f->n && !known; i++)
        known = !is_after(f->run[i].first, made) && !is_after(made, f->run[i].last);
    return known;
}

uint32_t mc_refusals_begin(mc_refusals_t *f, uint32_t made)
{
    const uint32_t before = f->before;
    f->begun = f->hash;
    f->before = made;
    return f->n > 0 ? f->run[f->n - 1].last : before;
}

void mc_refusals_settle(mc_refusals_t *f, uint32_t made)
{
    uint32_t n = 0;
    f->settled = made;
    for (uint32_t i = 0; i < f->n; i++)
        if (is_after(f->run[i].last, made))
            f->run[n++] = f->run[i];
    f->n = n;
}

void mc_refusals_free(mc_refusals_t *f)
{
    free(f->run);
    *f = (mc_refusals_t){0};
}
