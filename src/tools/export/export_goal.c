/*
 * GOAL, the input of LogGOPSim: Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language" (2009), in the
 * grammar of LogGOPSim's txt2bin.re. Step i of a rank is s<i>; the sum of what it receives is c<i>. Times are ns.
 */
#include "tools/export/export.h"

#include <math.h>

/* The last operation of a step. */
static char end_of(const mc_export_step_t *step)
{
    return step->receives && step->sums ? 'c' : 's';
}

static void put_step(const mc_request_t *e, const mc_export_rank_t *r, uint32_t i, FILE *out)
{
    const mc_step_t *const s = &r->plan->step[i];
    const mc_export_step_t step = mc_export_step(e, r, i);
    const unsigned long long bytes = step.bytes;
    const long long ns = llround(1e9 * step.seconds);
    if (step.sends)
        fprintf(out, "s%u: send %llub to %d tag %u\n", i, bytes, s->peer, s->seq);
    else if (step.receives)
        fprintf(out, "s%u: recv %llub from %d tag %u\n", i, bytes, s->peer, s->seq);
    else
        fprintf(out, "s%u: calc %lld\n", i, ns);
    for (uint32_t k = r->off[i]; k < r->off[i + 1]; k++) {
        const mc_export_step_t before = mc_export_step(e, r, r->pred[k]);
        fprintf(out, "s%u requires %c%u\n", i, end_of(&before), r->pred[k]);
    }
    if (end_of(&step) == 'c')
        fprintf(out, "c%u: calc %lld\nc%u requires s%u\n", i, ns, i, i);
}

int mc_export_goal(const mc_request_t *e, int32_t rank, FILE *out)
{
    mc_export_rank_t r;
    const int status = mc_export_rank_open(e, rank, &r);
    if (status)
        return status;
    if (rank == 0)
        fprintf(out, "num_ranks %d\n", e->mesh.size);
    fprintf(out, "\nrank %d {\n", rank);
    for (uint32_t i = 0; i < r.plan->n_steps; i++)
        put_step(e, &r, i, out);
    fprintf(out, "}\n");
    mc_export_rank_close(&r);
    return MESHCOLL_OK;
}
