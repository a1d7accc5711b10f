#include "runtime/bind/binding.h"

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

static bool brings_out(const mc_step_t *s)
{
    return s->op == MC_OP_COPY && s->src == MC_SCRATCH && s->dst == MC_OUT && s->first == s->to;
}

/* Called for steps backwards: a write to SCRATCH that follows the chunk's copy to OUT is seen
 * first. */
static void note_write(mc_binding_t *b, mc_bitmap_t *spoiled, const mc_step_t *s, uint32_t chunk)
{
    const bool taken = mc_bitmap_has(&b->lent, chunk);
    if (brings_out(s) && !taken && !mc_bitmap_has(spoiled, chunk))
        mc_bitmap_set(&b->lent, chunk, 1);
    else if (s->dst == MC_OUT || !taken)
        mc_bitmap_set(spoiled, chunk, 1);
}

static bool is_lent(const mc_binding_t *b, uint32_t chunk)
{
    return chunk < b->lent.bits && mc_bitmap_has(&b->lent, chunk);
}

static void find_lent(mc_binding_t *b, mc_bitmap_t *spoiled)
{
    const mc_plan_t *const plan = b->plan;
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const mc_step_t *const s = &plan->step[i];
        const mc_range_t to = mc_step_to(s);
        for (uint32_t k = 0; mc_op_writes((mc_op_t)s->op) && k < mc_range_chunks(to); k++)
            if (mc_range_chunk(to, k) < plan->n_chunks)
                note_write(b, spoiled, s, mc_range_chunk(to, k));
    }
    for (uint32_t w = 0; w < spoiled->bits / 64 + 1; w++)
        b->lent.word[w] &= ~spoiled->word[w];
    b->all_lent = true;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const mc_range_t to = mc_step_to(s);
        const bool kept = mc_op_writes((mc_op_t)s->op) && s->dst == MC_SCRATCH;
        for (uint32_t k = 0; kept && k < mc_range_chunks(to); k++)
            b->all_lent = b->all_lent && is_lent(b, mc_range_chunk(to, k));
    }
}

static int init_lent(mc_binding_t *b)
{
    const mc_plan_t *const plan = b->plan;
    uint32_t i = 0;
    while (i < plan->n_steps && !brings_out(&plan->step[i]))
        i++;
    if (i == plan->n_steps || plan->in != MC_HOLDS_WHOLE || plan->out != MC_HOLDS_WHOLE)
        return MESHCOLL_OK;
    mc_bitmap_t spoiled;
    int status = mc_bitmap_init(&spoiled, plan->n_chunks);
    if (status)
        return status;
    status = mc_bitmap_init(&b->lent, plan->n_chunks);
    if (!status)
        find_lent(b, &spoiled);
    mc_bitmap_free(&spoiled);
    return status;
}

int mc_binding_init(mc_binding_t *b, const mc_plan_t *plan)
{
    mc_bound_t *const step = calloc((size_t)plan->n_steps + 1, sizeof *step);
    if (!step)
        return mc_fail_memory("a binding");
    *b = (mc_binding_t){.plan = plan, .step = step};
    const int status = init_lent(b);
    if (status)
        mc_binding_free(b);
    return status;
}

void mc_binding_free(mc_binding_t *b)
{
    for (int i = 0; i < MC_BUFFERS; i++)
        mc_blocks_free(&b->blocks[i]);
    mc_bitmap_free(&b->lent);
    free(b->from);
    free(b->to);
    free(b->home);
    free(b->step);
    *b = (mc_binding_t){0};
}

/* Does the vector consist of one block per rank? */
static bool has_blocks(const mc_plan_t *plan)
{
    return plan->collective != MESHCOLL_BCAST && plan->collective != MESHCOLL_REDUCE &&
           plan->collective != MESHCOLL_ALLREDUCE;
}

static const mc_blocks_t *blocks_of(const mc_binding_t *b, mc_buffer_t buffer)
{
    return &b->blocks[buffer == MC_SCRATCH && !b->blocks[MC_SCRATCH].before ? MC_OUT : buffer];
}

/* Elements before chunk c of the vector, in chunk order. */
static size_t elements_before(const mc_binding_t *b, mc_buffer_t buffer, uint32_t c)
{
    const mc_layout_t *const l = &b->plan->layout;
    const mc_blocks_t *const blocks = blocks_of(b, buffer);
    const size_t count = b->operands.count;
    if (!has_blocks(b->plan))
        return mc_even_start(count, b->plan->n_chunks, c);
    if (blocks->before)
        return blocks->before[c];
    const uint32_t segment = c / l->per_segment, home = c % l->per_segment;
    const size_t whole = mc_even_start(count, l->segments, segment) * l->per_segment;
    return home ? whole + mc_even_part(count, l->segments, segment) * home : whole;
}

/* As elements_before, for SCRATCH that holds pairs with equal blocks (plan/pairs.h). */
static size_t pairs_before(const mc_binding_t *b, uint32_t c)
{
    const mc_plan_t *const plan = b->plan;
    const uint32_t segments = plan->layout.segments, in_part = c % mc_plan_part(plan);
    const uint32_t per_segment = plan->layout.per_segment * plan->depth;
    const uint32_t segment = in_part / per_segment;
    const size_t count = b->operands.count, parts = c / mc_plan_part(plan);
    return (parts * count + mc_even_start(count, segments, segment)) * per_segment +
           mc_even_part(count, segments, segment) * (in_part % per_segment);
}

/* As elements_before, for any buffer; SCRATCH may hold the vector's chunks twice. */
static size_t all_before(const mc_binding_t *b, mc_buffer_t buffer, uint32_t c)
{
    const uint32_t n = b->plan->n_chunks;
    if (buffer == MC_SCRATCH && b->blocks[MC_SCRATCH].before)
        return b->blocks[MC_SCRATCH].before[c - b->plan->scratch_first];
    if (buffer == MC_SCRATCH && b->plan->depth)
        return pairs_before(b, c);
    return c <= n ? elements_before(b, buffer, c)
                  : elements_before(b, buffer, n) + elements_before(b, buffer, c - n);
}

static size_t bytes_of(const mc_binding_t *b, mc_buffer_t buffer, uint32_t first, uint32_t n)
{
    return (all_before(b, buffer, first + n) - all_before(b, buffer, first)) * b->element;
}

/* The buffer whose chunks give the step's size: the one it reads, else the one it writes. */
static mc_buffer_t buffer_of(const mc_step_t *s)
{
    return (mc_buffer_t)(mc_op_reads((mc_op_t)s->op) ? s->src : s->dst);
}

static size_t step_bytes(const mc_binding_t *b, const mc_step_t *s)
{
    const mc_range_t r = mc_op_reads((mc_op_t)s->op) ? mc_step_from(s) : mc_step_to(s);
    size_t bytes = 0;
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        bytes += bytes_of(b, buffer_of(s), run.first, run.n);
    }
    return bytes;
}

static int fill_blocks(mc_binding_t *b, const mc_operands_t *o)
{
    const mc_layout_t *const layout = &b->plan->layout;
    if (!has_blocks(b->plan))
        return MESHCOLL_OK;
    int status = mc_blocks_fill(layout, b->block_of, o->in_counts, o->count, o->in_displs,
                                &b->blocks[MC_IN]);
    if (!status)
        status = mc_blocks_fill(layout, b->block_of, o->out_counts, o->count, o->out_displs,
                                &b->blocks[MC_OUT]);
    return status ? status
                  : mc_blocks_fill_scratch(b->plan, o->forwarded, o->count, &b->blocks[MC_SCRATCH]);
}

/* Elements of OUT that hold results; for blocks of unequal sizes `count` is the sum of all. */
static size_t results_of(const mc_binding_t *b, const mc_operands_t *o)
{
    const mc_plan_t *const plan = b->plan;
    if (plan->out == MC_HOLDS_NONE)
        return 0;
    if (plan->out == MC_HOLDS_WHOLE || !o->out_counts)
        return o->count;
    return o->out_counts[b->block_of ? b->block_of[plan->rank] : plan->rank];
}

/* Scaled sums ------------------------------------------------------------------------------------ */

/* Each run first multiplies this rank's input by the scalar of its operation, in one pass, and the
 * plan reduces the products. They lie in OUT where it holds a whole vector on this rank (allreduce,
 * the root of a reduce): the plan runs in place there. Otherwise they lie behind SCRATCH, in the
 * layout of the input. */

/* AT_ONCE: bytes of one call of the kernel, small enough that the repeated scalar stays in the
 * first-level cache and on the stack. ALIGN: of the products. */
enum { AT_ONCE = 2048, ALIGN = 64 };

static bool has_tables(const mc_binding_t *b)
{
    return b->blocks[MC_IN].before;
}

/* Elements of the input; with tables of blocks, up to the end of the last one. */
static size_t elements_of(const mc_binding_t *b)
{
    const mc_plan_t *const plan = b->plan;
    const mc_blocks_t *const blocks = &b->blocks[MC_IN];
    size_t end = 0;
    if (plan->collective != MESHCOLL_REDUCE_SCATTER)
        return b->operands.count;
    if (!has_tables(b))
        return b->operands.count * (size_t)plan->layout.mesh.size;
    for (uint32_t c = 0; c < plan->layout.per_segment; c++)
        if (blocks->count[c] > 0 && blocks->start[c] + blocks->count[c] > end)
            end = blocks->start[c] + blocks->count[c];
    return end;
}

static void measure_scaling(mc_binding_t *b)
{
    b->scaled_bytes = 0;
    b->unscaled = b->operands.in;
    if (!b->reducer.scale || b->plan->in == MC_HOLDS_NONE)
        return;
    if (b->plan->out == MC_HOLDS_WHOLE)
        b->operands.in = b->operands.out;
    else
        b->scaled_bytes = elements_of(b) * b->element;
}

/* Scales n elements from `first` on. */
static void scale(const mc_binding_t *b, const char *scalars, size_t first, size_t n)
{
    const size_t most = AT_ONCE / b->element, end = first + n;
    for (size_t i = first, part; i < end; i += part) {
        const size_t at = i * b->element;
        part = end - i < most ? end - i : most;
        b->reducer.scale((char *)b->operands.in + at, (const char *)b->unscaled + at, scalars,
                         part);
    }
}

void mc_binding_scale(const mc_binding_t *b)
{
    _Alignas(ALIGN) char scalars[AT_ONCE];
    const mc_blocks_t *const blocks = &b->blocks[MC_IN];
    const size_t all = b->plan->in == MC_HOLDS_NONE ? 0 : elements_of(b);
    for (size_t i = 0; i < all && i < AT_ONCE / b->element; i++)
        memcpy(scalars + i * b->element, b->reducer.scalar, b->element);
    if (!has_tables(b))
        scale(b, scalars, 0, all);
    else
        for (uint32_t c = 0; c < b->plan->layout.per_segment; c++) /* each rank's block once */
            scale(b, scalars, blocks->start[c], blocks->count[c]);
}

/* Measuring and placing --------------------------------------------------------------------------- */

int mc_binding_measure(mc_binding_t *b, const mc_operands_t *operands)
{
    const mc_plan_t *const plan = b->plan;
    const int status = fill_blocks(b, operands);
    if (status)
        return status;
    b->operands = *operands;
    b->reducer = mc_reducer(operands->datatype, operands->op);
    b->element = meshcoll_datatype_size(operands->datatype);
    b->results = results_of(b, operands);
    measure_scaling(b);
    b->lends = b->lent.bits > 0 && b->operands.in != b->operands.out;
    b->scratch_bytes =
        b->lends && b->all_lent ? 0 : bytes_of(b, MC_SCRATCH, plan->scratch_first, plan->n_scratch);
    if (b->scaled_bytes > 0) {
        b->scaled_at = (b->scratch_bytes + ALIGN - 1) / ALIGN * ALIGN;
        b->scratch_bytes = b->scaled_at + b->scaled_bytes;
    }
    for (uint32_t i = 0; i < plan->n_steps; i++)
        b->step[i].bytes = step_bytes(b, &plan->step[i]);
    return MESHCOLL_OK;
}

/* How many of the chunks [c, c + n) are adjacent in a user's buffer that holds all blocks. */
static uint32_t blocks_together(const mc_binding_t *b, uint32_t n)
{
    const mc_layout_t *const l = &b->plan->layout;
    if (l->segments > 1 || b->block_of || b->blocks[0].before)
        return 1;
    for (int32_t d = 0; d < l->mesh.ndims; d++)
        if (l->order[0][d] != d)
            return 1;
    return n;
}

static size_t block_at(const mc_binding_t *b, mc_buffer_t buffer, bool whole, uint32_t c)
{
    const mc_layout_t *const l = &b->plan->layout;
    const mc_blocks_t *const blocks = blocks_of(b, buffer);
    const uint32_t segment = c / l->per_segment, home = c % mc_blocks_period(l);
    const size_t count = blocks->before ? blocks->count[home] : b->operands.count;
    size_t element = mc_even_start(count, l->segments, segment);
    if (whole && blocks->before) {
        element += blocks->start[home];
    } else if (whole) {
        const int32_t rank = mc_layout_rank(l, c);
        element += (size_t)(b->block_of ? b->block_of[rank] : rank) * count;
    }
    return element * b->element;
}

/* How many of the `n` chunks of SCRATCH from `c` on lie in the same buffer as c: OUT or SCRATCH. */
static uint32_t lent_alike(const mc_binding_t *b, uint32_t c, uint32_t n)
{
    uint32_t run = 1;
    while (run < n && is_lent(b, c + run) == is_lent(b, c))
        run++;
    return run;
}

/* First byte of chunk c in the buffer where it really lies, *home. Cuts *n to the number of chunks that
 * are contiguous from there. */
static size_t chunk_at(const mc_binding_t *b, mc_buffer_t buffer, uint32_t c, uint32_t *n,
                       uint8_t *home)
{
    const mc_plan_t *const plan = b->plan;
    if (buffer == MC_SCRATCH && b->lends) {
        *n = lent_alike(b, c, *n);
        buffer = is_lent(b, c) ? MC_OUT : MC_SCRATCH;
    }
    *home = (uint8_t)buffer;
    if (buffer == MC_SCRATCH)
        return bytes_of(b, MC_SCRATCH, plan->scratch_first, c - plan->scratch_first);
    if (!has_blocks(plan))
        return elements_before(b, buffer, c) * b->element;
    const bool whole = (buffer == MC_IN ? plan->in : plan->out) == MC_HOLDS_WHOLE;
    *n = whole ? blocks_together(b, *n) : 1;
    return block_at(b, buffer, whole, c);
}

static char *base_of(const mc_binding_t *b, uint8_t home)
{
    return home == MC_IN ? (char *)b->operands.in : home == MC_OUT ? b->operands.out : b->scratch;
}

mc_chunk_t mc_binding_chunk(const mc_binding_t *b, mc_buffer_t buffer, uint32_t chunk)
{
    mc_chunk_t c = {.bytes = bytes_of(b, buffer, chunk, 1)};
    uint32_t n = 1;
    if (c.bytes > 0)
        c.at = chunk_at(b, buffer, chunk, &n, &c.home);
    return c;
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
    mc_homes_t *const home = realloc(b->home, capacity * sizeof *home);
    if (home)
        b->home = home;
    if (!from || !to || !home)
        return mc_fail_memory("a binding");
    b->capacity = capacity;
    return MESHCOLL_OK;
}

/* Appends a piece, or extends the step's last one if both sides continue it without a gap, in the same
 * buffers. */
static int add_piece(mc_binding_t *b, mc_bound_t *step, char *from, char *to, mc_homes_t home,
                     size_t bytes)
{
    if (bytes == 0)
        return MESHCOLL_OK;
    if (step->n > 0) {
        mc_span_t *const f = &b->from[b->n_spans - 1], *const t = &b->to[b->n_spans - 1];
        const mc_homes_t last = b->home[b->n_spans - 1];
        if (last.from == home.from && last.to == home.to &&
            (!from || (char *)f->at + f->bytes == from) &&
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
    b->home[b->n_spans] = home;
    b->n_spans++;
    step->n++;
    return MESHCOLL_OK;
}

static int place_run(mc_binding_t *b, const mc_step_t *s, mc_bound_t *step, uint32_t i)
{
    const bool reads = mc_op_reads((mc_op_t)s->op), writes = mc_op_writes((mc_op_t)s->op);
    const mc_chunks_t in = mc_range_run(mc_step_from(s), i), out = mc_range_run(mc_step_to(s), i);
    for (uint32_t done = 0, all = reads ? in.n : out.n; done < all;) {
        uint32_t n = all - done;
        const uint32_t first = in.first + done, to = out.first + done;
        mc_homes_t home = {MC_BUFFERS, MC_BUFFERS};
        const size_t f = reads ? chunk_at(b, (mc_buffer_t)s->src, first, &n, &home.from) : 0;
        const size_t t = writes ? chunk_at(b, (mc_buffer_t)s->dst, to, &n, &home.to) : 0;
        const int status = add_piece(b, step, reads ? base_of(b, home.from) + f : NULL,
                                     writes ? base_of(b, home.to) + t : NULL, home,
                                     bytes_of(b, buffer_of(s), reads ? first : to, n));
        if (status)
            return status;
        done += n;
    }
    return MESHCOLL_OK;
}

int mc_binding_place(mc_binding_t *b, char *scratch)
{
    b->scratch = scratch;
    if (b->scaled_bytes > 0)
        b->operands.in = b->scratch + b->scaled_at;
    b->n_spans = 0;
    for (uint32_t i = 0; i < b->plan->n_steps; i++) {
        const mc_step_t *const s = &b->plan->step[i];
        mc_bound_t *const step = &b->step[i];
        step->at = b->n_spans;
        step->n = 0;
        const mc_range_t r = mc_op_reads((mc_op_t)s->op) ? mc_step_from(s) : mc_step_to(s);
        for (uint32_t k = 0; k < mc_range_runs(r) && step->bytes > 0; k++) {
            const int status = place_run(b, s, step, k);
            if (status)
                return status;
        }
    }
    return MESHCOLL_OK;
}

void mc_binding_move(mc_binding_t *b, const void *in, void *out, char *scratch)
{
    const uintptr_t by[MC_BUFFERS + 1] = {
        [MC_IN] = (uintptr_t)in - (uintptr_t)b->operands.in,
        [MC_OUT] = (uintptr_t)out - (uintptr_t)b->operands.out,
        [MC_SCRATCH] = (uintptr_t)scratch - (uintptr_t)b->scratch,
    };
    for (uint32_t i = 0; i < b->n_spans; i++) {
        const mc_homes_t home = b->home[i];
        b->from[i].at = (void *)((uintptr_t)b->from[i].at + by[home.from]); /* NOLINT */
        b->to[i].at = (void *)((uintptr_t)b->to[i].at + by[home.to]);       /* NOLINT */
    }
    b->operands.in = in;
    b->operands.out = out;
    b->scratch = scratch;
}

/* Does the operation give 0 or 1? All on bool do, of which sum, which moves have that reduce nothing, is none. */
static bool is_logical(const mc_operands_t *o)
{
    return o->op == MESHCOLL_LAND || o->op == MESHCOLL_LOR || o->op == MESHCOLL_LXOR ||
           o->datatype == MESHCOLL_BOOL;
}

/* The plan of one rank only copies: its values become 0 or 1 here, as x && x. */
void mc_binding_finish(const mc_binding_t *b)
{
    const int32_t ranks = b->plan->layout.mesh.size;
    char *const out = b->operands.out;
    if (b->results == 0)
        return;
    if (ranks > 1 && b->reducer.divide)
        b->reducer.divide(out, b->results, ranks);
    else if (ranks == 1 && b->reducer.kernel && is_logical(&b->operands))
        mc_kernel(b->operands.datatype, MESHCOLL_LAND)(out, out, out, b->results);
}
