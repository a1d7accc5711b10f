/* The words of a trace's picture. */
#include "tools/common/show.h"
#include "tools/trace/trace_svg.h"

static char buffer[MC_STRATEGY_TEXT + 128];

static mc_text_t begin(void)
{
    return mc_text(buffer, sizeof buffer);
}

/* Along all dimensions, of one segment: of phases [first, end). */
static mc_term_t term_of(const mc_picture_t *p, int32_t first, int32_t end)
{
    mc_term_t sum = {.alpha = {0, 1}, .beta = {0, 1}, .gamma = {0, 1}};
    for (int32_t phase = first; phase < end; phase++) {
        const mc_phase_cost_t cost =
            mc_strategy_phase_cost(p->strategy, p->mesh, &p->links, p->root, phase);
        for (int32_t d = 0; d < p->mesh->ndims; d++) {
            sum.alpha = mc_ratio_add(sum.alpha, cost.once.dim[d].alpha);
            sum.beta = mc_ratio_add(sum.beta, cost.once.dim[d].beta);
            sum.gamma = mc_ratio_add(sum.gamma, cost.once.dim[d].gamma);
        }
    }
    return sum;
}

const char *mc_trace_headline(const mc_picture_t *p)
{
    char mesh[MC_MESH_TEXT];
    mc_text_t out = begin();
    mc_text_add(&out, "%s on %s", mc_moves[p->strategy->collective].name,
                mc_mesh_text(p->mesh, mesh));
    if (mc_moves[p->strategy->collective].rooted)
        mc_text_add(&out, ", root %d", p->root);
    return buffer;
}

const char *mc_trace_subline(const mc_picture_t *p, int32_t messages)
{
    const mc_term_t sum = term_of(p, 0, p->strategy->n_phases);
    mc_text_t out = begin();
    mc_text_add(&out, "%d messages in %u time steps", messages, p->trace->n_states - 1);
    if (p->strategy->segments == 1)
        mc_text_add(&out, ", %s in all", mc_show_term(&sum).text);
    else
        mc_text_add(&out, "; n is a segment, one of %u", p->strategy->segments);
    return buffer;
}

const char *mc_trace_title(const mc_picture_t *p, int32_t phase)
{
    const mc_phase_t *const one = &p->strategy->phase[phase];
    mc_text_t out = begin();
    if (mc_strategy_sides(p->strategy) > 1)
        mc_text_add(&out, "%s", phase < p->strategy->second ? "A" : "B");
    mc_text_add(&out, "%d. %s along ",
                phase + 1 - (phase >= p->strategy->second ? p->strategy->second : 0),
                mc_moves[mc_algorithms[one->algorithm].collective].name);
    mc_dims_print(p->mesh, one->dims, &out);
    return buffer;
}

const char *mc_trace_steps(const mc_picture_t *p, int32_t phase, uint32_t first, uint32_t last)
{
    mc_text_t out = begin();
    mc_text_add(&out, "%s", mc_show_phase(p->strategy, p->mesh, phase));
    if (first > last)
        mc_text_add(&out, ", no message");
    else if (first == last)
        mc_text_add(&out, ", step %u", first);
    else
        mc_text_add(&out, ", steps %u–%u", first, last);
    return buffer;
}

const char *mc_trace_terms(const mc_picture_t *p, int32_t phase)
{
    const mc_term_t term = term_of(p, phase, phase + 1);
    mc_text_t out = begin();
    mc_text_add(&out, "%s", mc_show_term(&term).text);
    return buffer;
}

/* "3/4 n bytes", "n bytes" */
static void add_part(mc_text_t *out, mc_ratio_t part, const char *what)
{
    if (part.num == part.den)
        mc_text_add(out, ", n bytes%s", what);
    else if (part.num != 0)
        mc_text_add(out, ", %s n bytes%s", mc_show_ratio(part).text, what);
}

const char *mc_trace_cost(const mc_picture_t *p, int32_t phase)
{
    const mc_term_t term = term_of(p, phase, phase + 1);
    mc_text_t out = begin();
    mc_text_add(&out, "%s message%s in a row", mc_show_ratio(term.alpha).text,
                term.alpha.num == term.alpha.den ? "" : "s");
    const bool all = mc_ratio_equal(term.beta, term.gamma);
    add_part(&out, term.beta, all ? " reduced" : "");
    if (!all)
        add_part(&out, term.gamma, " reduced");
    return buffer;
}
