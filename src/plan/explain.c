#include "plan/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 128, LISTED_RUNS = 4 };

static void add_run(mc_text_t *text, mc_chunks_t run)
{
    if (run.n == 1)
        mc_text_add(text, "%" PRIu32, run.first);
    else
        mc_text_add(text, "%" PRIu32 "..%" PRIu32, run.first, run.first + run.n - 1);
}

/* "in[4]", "in[4..7]", "in[0,4,8]", "in[0..1,4..5,...,28..29]" */
static void add_range(mc_text_t *text, uint8_t buffer, mc_range_t r)
{
    mc_text_add(text, "%s[", mc_buffer_name((mc_buffer_t)buffer));
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        if (i > 0)
            mc_text_add(text, ",");
        if (r.nrun > LISTED_RUNS && i == 2) {
            mc_text_add(text, "...,");
            i = r.nrun - 1;
        }
        add_run(text, mc_range_run(r, i));
    }
    mc_text_add(text, "]");
}

/* Prints the chunks, "in[4..7] -> out[4..7]"; one side only where the other is the message. */
static void add_chunks(mc_text_t *text, const mc_step_t *s)
{
    const mc_op_t op = (mc_op_t)s->op;
    if (s->flags & MC_MESSAGE_FIRST)
        mc_text_add(text, "message + ");
    if (mc_op_reads(op))
        add_range(text, s->src, mc_step_from(s));
    if (mc_op_reads(op) && mc_op_writes(op))
        mc_text_add(text, " -> ");
    if (mc_op_writes(op))
        add_range(text, s->dst, mc_step_to(s));
}

static const char *arrow_of(mc_op_t op)
{
    if (mc_op_sends(op))
        return "->";
    return mc_op_receives(op) ? "<-" : "";
}

static bool is_message(mc_op_t op)
{
    return mc_op_sends(op) || mc_op_receives(op);
}

void mc_explain_brief(const mc_step_t *step, mc_text_t *text)
{
    const mc_op_t op = (mc_op_t)step->op;
    mc_text_add(text, "%s ", mc_op_name(op));
    if (is_message(op))
        mc_text_add(text, "%s %" PRId32 " ", arrow_of(op), step->peer);
    add_chunks(text, step);
    if (is_message(op))
        mc_text_add(text, " #%" PRIu32, step->seq);
}

/* The columns of a line that vary in width: peer, chunks and ordinal. */
typedef struct {
    char peer[PART], chunks[PART], seq[PART];
} parts_t;

typedef struct {
    int number, peer, chunks, seq;
} widths_t;

static const widths_t least = {.number = 3, .peer = 6, .chunks = 0, .seq = 4};

static parts_t parts_of(const mc_step_t *s)
{
    parts_t parts = {.peer = ""};
    if (is_message((mc_op_t)s->op)) {
        snprintf(parts.peer, PART, "%s %" PRId32, arrow_of((mc_op_t)s->op), s->peer);
        snprintf(parts.seq, PART, "#%" PRIu32, s->seq);
    }
    mc_text_t chunks = mc_text(parts.chunks, PART);
    add_chunks(&chunks, s);
    return parts;
}

static void widen(int *width, const char *text)
{
    const int length = (int)strlen(text);
    if (length > *width)
        *width = length;
}

static widths_t widths_of(const mc_plan_t *plan)
{
    char number[PART];
    widths_t w = least;
    snprintf(number, PART, "%" PRIu32, plan->n_steps);
    widen(&w.number, number);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const parts_t parts = parts_of(&plan->step[i]);
        widen(&w.peer, parts.peer);
        widen(&w.chunks, parts.chunks);
        widen(&w.seq, parts.seq);
    }
    return w;
}

static void add_line(const mc_plan_t *plan, uint32_t step, widths_t w, const uint32_t *pred,
                     uint32_t n_pred, mc_text_t *text)
{
    const mc_step_t *const s = &plan->step[step];
    const parts_t parts = parts_of(s);
    mc_text_add(text, "%*" PRIu32 "  %-11s  %-*s %-*s  ", w.number, step,
                mc_op_name((mc_op_t)s->op), w.peer, parts.peer, w.chunks, parts.chunks);
    if (n_pred > 0) {
        mc_text_add(text, "%-*s after", w.seq, parts.seq);
        for (uint32_t i = 0; i < n_pred; i++)
            mc_text_add(text, " %" PRIu32, pred[i]);
        return;
    }
    mc_text_add(text, "%s", parts.seq);
    while (text->length > 0 && text->length < text->capacity && text->at[text->length - 1] == ' ')
        text->at[--text->length] = '\0';
}

typedef struct {
    uint32_t *off, *pred; /* as mc_plan_predecessors fills them */
} preds_t;

static void preds_free(preds_t *p)
{
    free(p->pred);
    free(p->off);
}

static int preds_create(const mc_plan_t *plan, preds_t *preds)
{
    preds_t p = {.off = malloc(((size_t)plan->n_steps + 2) * sizeof *p.off),
                 .pred = malloc(((size_t)plan->n_edges + 1) * sizeof *p.pred)};
    if (!p.off || !p.pred) {
        preds_free(&p);
        return mc_fail_memory("explaining a plan");
    }
    mc_plan_predecessors(plan, p.off, p.pred);
    *preds = p;
    return MESHCOLL_OK;
}

static const char *holds_name(mc_holds_t holds)
{
    static const char *const name[] = {"none", "home", "whole"};
    return (size_t)holds < MC_COUNT(name) ? name[holds] : "?";
}

static void explain_header(const mc_plan_t *plan, FILE *out)
{
    char mesh[MC_MESH_TEXT];
    fprintf(out, "%s on %s, rank %" PRId32 " of %" PRId32 ", root %" PRId32,
            meshcoll_collective_name(plan->collective), mc_mesh_text(&plan->layout.mesh, mesh),
            plan->rank, plan->layout.mesh.size, plan->root);
    fprintf(out, ": %" PRIu32 " chunks", plan->n_chunks);
    if (plan->layout.segments > 1)
        fprintf(out, " in %" PRIu32 " segments", plan->layout.segments);
    fprintf(out, ", in %s, out %s", holds_name(plan->in), holds_name(plan->out));
    if (plan->n_scratch > 0)
        fprintf(out, ", scratch %" PRIu32 "..%" PRIu32, plan->scratch_first,
                plan->scratch_first + plan->n_scratch - 1);
    fprintf(out, ", %" PRIu32 " peers, %" PRIu32 " steps, %" PRIu32 " dependencies\n",
            plan->n_peers, plan->n_steps, plan->n_edges);
}

/* A line can list any number of predecessors, so its buffer grows with them. */
static int explain_line(const mc_plan_t *plan, uint32_t step, widths_t w, const preds_t *p,
                        FILE *out)
{
    const uint32_t n_pred = p->off[step + 1] - p->off[step];
    const size_t room = sizeof(parts_t) + PART + 12 * (size_t)n_pred;
    char *const line = malloc(room);
    if (!line)
        return mc_fail_memory("explaining a plan");
    mc_text_t text = mc_text(line, room);
    add_line(plan, step, w, p->pred + p->off[step], n_pred, &text);
    fprintf(out, "%s\n", line);
    free(line);
    return MESHCOLL_OK;
}

int mc_explain_plan(const mc_plan_t *plan, FILE *out)
{
    preds_t p = {0};
    int status = preds_create(plan, &p);
    if (status)
        return status;
    const widths_t w = widths_of(plan);
    explain_header(plan, out);
    for (uint32_t i = 0; i < plan->n_steps && !status; i++)
        status = explain_line(plan, i, w, &p, out);
    preds_free(&p);
    return status;
}
