#include "runtime/binding.h"

#include <stdlib.h>
#include <string.h>

int mc_workspace_reserve(mc_workspace_t *workspace, size_t bytes)
{
    if (bytes <= workspace->bytes)
        return MESHCOLL_OK;
    void *base = NULL;
    if (posix_memalign(&base, 64, bytes))
        return mc_fail_memory("scratch");
    free(workspace->base);
    workspace->base = base;
    workspace->bytes = bytes;
    return MESHCOLL_OK;
}

void mc_workspace_free(mc_workspace_t *workspace)
{
    free(workspace->base);
    *workspace = (mc_workspace_t){0};
}

int mc_binding_init(mc_binding_t *b, const mc_plan_t *plan)
{
    mc_bound_t *const step = calloc((size_t)plan->n_steps + 1, sizeof *step);
    if (!step)
        return mc_fail_memory("a binding");
    *b = (mc_binding_t){.plan = plan, .step = step};
    return MESHCOLL_OK;
}

void mc_binding_free(mc_binding_t *b)
{
    free(b->from);
    free(b->to);
    free(b->step);
    *b = (mc_binding_t){0};
}

/* Does the vector consist of one block per rank? */
static bool has_blocks(const mc_plan_t *plan)
{
    switch (plan->collective) {
    case MESHCOLL_BCAST:
    case MESHCOLL_REDUCE:
    case MESHCOLL_ALLREDUCE:
        return false;
    default:
        return true;
    }
}

/* Elements in the first k of n even parts. */
static size_t even_start(size_t count, uint32_t n, uint32_t k)
{
    const size_t longer = count % n;
    return count / n * k + (k < longer ? k : longer);
}

static size_t even_part(size_t count, uint32_t n, uint32_t k)
{
    return count / n + (k < count % n);
}

/* Elements before chunk c of the vector, in chunk order. */
static size_t elements_before(const mc_binding_t *b, uint32_t c)
{
    const mc_layout_t *const l = &b->plan->layout;
    const size_t count = b->operands.count;
    if (!has_blocks(b->plan))
        return even_start(count, b->plan->n_chunks, c);
    const uint32_t segment = c / l->per_segment, home = c % l->per_segment;
    const size_t whole = even_start(count, l->segments, segment) * l->per_segment;
    return home ? whole + even_part(count, l->segments, segment) * home : whole;
}

/* The same over the chunks of SCRATCH, where the vector's come twice. */
static size_t scratch_before(const mc_binding_t *b, uint32_t c)
{
    const uint32_t n = b->plan->n_chunks;
    return c <= n ? elements_before(b, c) : elements_before(b, n) + elements_before(b, c - n);
}

static size_t bytes_of(const mc_binding_t *b, uint32_t first, uint32_t n)
{
    return (scratch_before(b, first + n) - scratch_before(b, first)) * b->element;
}

static size_t step_bytes(const mc_binding_t *b, const mc_step_t *s)
{
    const uint32_t first = mc_op_reads((mc_op_t)s->op) ? s->first : s->to;
    size_t bytes = 0;
    for (uint32_t i = 0; i < s->nrun; i++)
        bytes += bytes_of(b, first + i * s->stride, s->run);
    return bytes;
}

void mc_binding_measure(mc_binding_t *b, const mc_operands_t *operands)
{
    const mc_plan_t *const plan = b->plan;
    b->operands = *operands;
    b->kernel = mc_kernel(operands->datatype, operands->op);
    b->element = meshcoll_datatype_size(operands->datatype);
    b->scratch_bytes = bytes_of(b, plan->scratch_first, plan->n_scratch);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        b->step[i].bytes = step_bytes(b, &plan->step[i]);
}

/* How many of the chunks [c, c + n) lie back to back where the user has whole blocks. */
static uint32_t blocks_together(const mc_binding_t *b, uint32_t n)
{
    const mc_layout_t *const l = &b->plan->layout;
    if (l->segments > 1 || b->block_of)
        return 1;
    for (int32_t d = 0; d < l->mesh.ndims; d++)
        if (l->order[d] != d)
            return 1;
    return n;
}

static char *block_at(const mc_binding_t *b, const char *base, bool whole, uint32_t c)
{
    const mc_layout_t *const l = &b->plan->layout;
    size_t element = even_start(b->operands.count, l->segments, c / l->per_segment);
    if (whole) {
        const int32_t rank = mc_layout_rank(l, c);
        element += (size_t)(b->block_of ? b->block_of[rank] : rank) * b->operands.count;
    }
    return (char *)base + element * b->element;
}

/* Address of chunk c in a buffer; *n is cut to how many chunks follow it there without a gap. */
static char *chunk_at(const mc_binding_t *b, mc_buffer_t buffer, uint32_t c, uint32_t *n)
{
    const mc_plan_t *const plan = b->plan;
    if (buffer == MC_SCRATCH)
        return b->scratch + bytes_of(b, plan->scratch_first, c - plan->scratch_first);
    const char *const base = buffer == MC_IN ? b->operands.in : b->operands.out;
    if (!has_blocks(plan))
        return (char *)base + elements_before(b, c) * b->element;
    const bool whole = (buffer == MC_IN ? plan->in : plan->out) == MC_HOLDS_WHOLE;
    *n = whole ? blocks_together(b, *n) : 1;
    return block_at(b, base, whole, c);
}

static int grow_spans(mc_binding_t *b)
{
    const uint32_t capacity = b->capacity ? 2 * b->capacity : 64;
    mc_span_t *const from = realloc(b->from, capacity * sizeof *from);
    if (from)
        b->from = from;
    mc_span_t *const to = realloc(b->to, capacity * sizeof *to);
    if (to)
        b->to = to;
    if (!from || !to)
        return mc_fail_memory("a binding");
    b->capacity = capacity;
    return MESHCOLL_OK;
}

/* Appends a piece, or lengthens the step's last one where both sides go on without a gap. */
static int add_piece(mc_binding_t *b, mc_bound_t *step, char *from, char *to, size_t bytes)
{
    if (bytes == 0)
        return MESHCOLL_OK;
    if (step->n > 0) {
        mc_span_t *const f = &b->from[b->n_spans - 1], *const t = &b->to[b->n_spans - 1];
        if ((!from || (char *)f->at + f->bytes == from) &&
            (!to || (char *)t->at + t->bytes == to)) {
            f->bytes = t->bytes = f->bytes + bytes;
            return MESHCOLL_OK;
        }
    }
    if (b->n_spans == b->capacity) {
        const int status = grow_spans(b);
        if (status)
            return status;
    }
    b->from[b->n_spans] = (mc_span_t){.at = from, .bytes = bytes};
    b->to[b->n_spans] = (mc_span_t){.at = to, .bytes = bytes};
    b->n_spans++;
    step->n++;
    return MESHCOLL_OK;
}

static int place_run(mc_binding_t *b, const mc_step_t *s, mc_bound_t *step, uint32_t offset)
{
    const bool reads = mc_op_reads((mc_op_t)s->op), writes = mc_op_writes((mc_op_t)s->op);
    for (uint32_t done = 0; done < s->run;) {
        uint32_t n = s->run - done;
        const uint32_t first = s->first + offset + done, to = s->to + offset + done;
        char *const f = reads ? chunk_at(b, (mc_buffer_t)s->src, first, &n) : NULL;
        char *const t = writes ? chunk_at(b, (mc_buffer_t)s->dst, to, &n) : NULL;
        const int status = add_piece(b, step, f, t, bytes_of(b, reads ? first : to, n));
        if (status)
            return status;
        done += n;
    }
    return MESHCOLL_OK;
}

int mc_binding_place(mc_binding_t *b, char *scratch)
{
    b->scratch = scratch;
    b->n_spans = 0;
    for (uint32_t i = 0; i < b->plan->n_steps; i++) {
        const mc_step_t *const s = &b->plan->step[i];
        mc_bound_t *const step = &b->step[i];
        step->at = b->n_spans;
        step->n = 0;
        for (uint32_t r = 0; r < s->nrun && step->bytes > 0; r++) {
            const int status = place_run(b, s, step, r * s->stride);
            if (status)
                return status;
        }
    }
    return MESHCOLL_OK;
}
