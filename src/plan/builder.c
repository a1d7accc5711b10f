#include "plan/pairs.h"
#include "plan/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int find_absent(mc_builder_t *b)
{
    const mc_layout_t *const l = &b->head.layout;
    if (!l->mesh.ragged || b->head.in != MC_HOLDS_HOME)
        return MESHCOLL_OK;
    const int status = mc_bitmap_init(&b->absent, b->head.n_chunks);
    for (uint32_t c = 0; c < b->head.n_chunks && !status; c++)
        if (mc_layout_absent(l, c))
            mc_bitmap_set(&b->absent, c, 1);
    return status;
}

int mc_builder_init(mc_builder_t *b, const mc_layout_t *layout, meshcoll_collective_t collective,
                    int32_t rank, int32_t root, mc_holds_t in, mc_holds_t out)
{
    mc_builder_t fresh = {
        .head = {.layout = *layout,
                 .collective = collective,
                 .rank = rank,
                 .root = root,
                 .in = in,
                 .out = out,
                 .n_chunks = mc_layout_chunks(layout)},
        .work = out == MC_HOLDS_WHOLE ? MC_OUT : MC_SCRATCH,
    };
    int status = mc_bitmap_init(&fresh.done, fresh.head.n_chunks);
    if (!status)
        status = find_absent(&fresh);
    if (status) {
        mc_builder_free(&fresh);
        return status;
    }
    *b = fresh;
    return MESHCOLL_OK;
}

void mc_builder_free(mc_builder_t *b)
{
    free(b->step);
    mc_pairs_free(b->pairs);
    mc_bitmap_free(&b->absent);
    mc_bitmap_free(&b->done);
    *b = (mc_builder_t){0};
}

static uint32_t count_of(const mc_bitmap_t *map, mc_range_t r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        count += mc_bitmap_count(map, run.first, run.n);
    }
    return count;
}

static void mark_done(mc_builder_t *b, mc_range_t r)
{
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        mc_bitmap_set(&b->done, run.first, run.n);
    }
}

static bool is_absent(const mc_builder_t *b, uint32_t chunk)
{
    return b->absent.bits > 0 && mc_bitmap_has(&b->absent, chunk);
}

/* Is the newest value of a chunk still in IN? */
static bool is_away(const mc_builder_t *b, uint32_t chunk)
{
    return !mc_bitmap_has(&b->done, chunk) && !is_absent(b, chunk);
}

/* Copies the chunks of [first, first + n) that are not in `work` yet from IN. */
static void bring(mc_builder_t *b, uint32_t first, uint32_t n)
{
    const uint32_t end = first + n;
    for (uint32_t c = first; c < end; c++) {
        if (!is_away(b, c))
            continue;
        uint32_t run = 1;
        while (c + run < end && is_away(b, c + run))
            run++;
        const mc_range_t r = {.first = c, .run = run, .nrun = 1};
        mc_append(b, mc_step_of(MC_OP_COPY, -1, MC_IN, b->work, r));
        mark_done(b, r);
        c += run - 1;
    }
}

static void bring_range(mc_builder_t *b, mc_range_t r)
{
    for (uint32_t i = 0; i < mc_range_runs(r); i++) {
        const mc_chunks_t run = mc_range_run(r, i);
        bring(b, run.first, run.n);
    }
}

/* Removes absent chunks from both counts. */
static void count_present(const mc_builder_t *b, mc_range_t r, uint32_t *done, uint32_t *all)
{
    *all -= count_of(&b->absent, r);
    for (uint32_t k = 0; k < mc_range_chunks(r); k++) {
        const uint32_t c = mc_range_chunk(r, k);
        *done -= is_absent(b, c) && mc_bitmap_has(&b->done, c);
    }
}

/* Returns the buffer that holds the newest value of `r`. A step reads one buffer only: where the
 * range is split over two, the part in IN is copied over first. */
static mc_buffer_t place_of(mc_builder_t *b, mc_range_t r)
{
    uint32_t done = count_of(&b->done, r), all = r.run * r.nrun;
    if (b->absent.bits > 0)
        count_present(b, r, &done, &all);
    if (done == 0)
        return MC_IN;
    if (done < all)
        bring_range(b, r);
    return b->work;
}

static void send_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    mc_append(c->b, mc_step_of(MC_OP_SEND, c->peer, place_of(c->b, r), MC_IN, r));
}

static void recv_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    mc_append(c->b, mc_step_of(MC_OP_RECV, c->peer, MC_IN, c->b->work, r));
    mark_done(c->b, r);
}

static void recv_reduce_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    mc_append(c->b, mc_step_of(MC_OP_RECV_REDUCE, c->peer, place_of(c->b, r), c->b->work, r));
    mark_done(c->b, r);
}

static void recv_reduce_before_range(void *context, mc_range_t r)
{
    mc_builder_t *const b = ((const mc_towards_t *)context)->b;
    const uint32_t before = b->n_steps;
    recv_reduce_range(context, r);
    if (b->n_steps > before)
        b->step[b->n_steps - 1].flags = MC_MESSAGE_FIRST;
}

static mc_range_t aside(const mc_builder_t *b, mc_range_t r)
{
    r.first += b->head.n_chunks;
    return r;
}

static void recv_aside_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    mc_append(c->b, mc_step_of(MC_OP_RECV, c->peer, MC_IN, MC_SCRATCH, aside(c->b, r)));
}

static void recv_reduce_aside_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    mc_append(c->b, mc_step_of(MC_OP_RECV_REDUCE, c->peer, MC_SCRATCH, MC_SCRATCH, aside(c->b, r)));
}

static void add_aside(mc_builder_t *b, mc_op_t op, mc_range_t r)
{
    bring_range(b, r);
    mc_step_t step = mc_step_of(op, -1, MC_SCRATCH, b->work, aside(b, r));
    step.to = r.first;
    mc_append(b, step);
}

static void reduce_aside_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    add_aside(c->b, MC_OP_REDUCE, r);
}

static void reduce_behind_range(void *context, mc_range_t r)
{
    const mc_towards_t *const c = context;
    add_aside(c->b, MC_OP_REDUCE_BEHIND, r);
}

void mc_send(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    if (b->pairs)
        mc_pairs_send(b, peer, v);
    else
        mc_each_range(b, peer, &v, send_range);
}

void mc_recv(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    if (b->pairs)
        mc_pairs_recv(b, peer, v);
    else
        mc_each_range(b, peer, &v, recv_range);
}

void mc_recv_reduce(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    mc_each_range(b, peer, &v, recv_reduce_range);
}

void mc_recv_reduce_before(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    mc_each_range(b, peer, &v, recv_reduce_before_range);
}

void mc_recv_reduce_along(mc_builder_t *b, mc_line_t l, int32_t from, mc_tile_t v)
{
    if (l.len == 2 && from < l.me)
        mc_recv_reduce_before(b, mc_line_rank(l, from), v);
    else
        mc_recv_reduce(b, mc_line_rank(l, from), v);
}

void mc_recv_aside(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    mc_each_range(b, peer, &v, recv_aside_range);
}

void mc_recv_reduce_aside(mc_builder_t *b, int32_t peer, mc_tile_t v)
{
    mc_each_range(b, peer, &v, recv_reduce_aside_range);
}

void mc_reduce_aside(mc_builder_t *b, mc_tile_t v)
{
    mc_each_range(b, -1, &v, reduce_aside_range);
}

void mc_reduce_behind(mc_builder_t *b, mc_tile_t v)
{
    mc_each_range(b, -1, &v, reduce_behind_range);
}

/* Returns the step that last wrote `chunk` of SCRATCH, if it wrote nothing else and no step reads
 * the chunk afterwards: it can write elsewhere instead. NULL otherwise. */
static mc_step_t *sole_writer(mc_builder_t *b, uint32_t chunk)
{
    if (!mc_bitmap_has(&b->done, chunk))
        return NULL;
    for (uint32_t i = b->n_steps; i-- > 0;) {
        mc_step_t *const s = &b->step[i];
        const mc_op_t op = (mc_op_t)s->op;
        if (mc_op_writes(op) && s->dst == MC_SCRATCH && mc_range_has(mc_step_to(s), chunk))
            return s->run * s->nrun == 1 && !mc_op_adds(op) ? s : NULL;
        if (mc_op_reads(op) && s->src == MC_SCRATCH && mc_range_has(mc_step_from(s), chunk))
            return NULL;
    }
    return NULL;
}

static void settle_home(mc_builder_t *b, uint32_t chunk)
{
    const mc_range_t r = {.first = chunk, .run = 1, .nrun = 1};
    mc_step_t *const writer = sole_writer(b, chunk);
    if (writer)
        writer->dst = MC_OUT;
    else
        mc_append(b, mc_step_of(MC_OP_COPY, -1, place_of(b, r), MC_OUT, r));
}

void mc_settle(mc_builder_t *b, uint32_t segment)
{
    const mc_layout_t *const layout = &b->head.layout;
    if (b->counting)
        b->turns = b->turn;
    if (b->pairs)
        mc_pairs_settle(b, segment);
    if (b->counting || b->turn > 0 || b->pairs) /* the data is in OUT already */
        b->turn = 0;
    else if (b->head.out == MC_HOLDS_WHOLE)
        bring(b, segment * layout->per_segment, layout->per_segment);
    else if (b->head.out == MC_HOLDS_HOME)
        settle_home(b, mc_layout_home(layout, b->head.rank, segment));
    b->counting = false;
    b->segment_start = b->n_steps;
}

/* Copies the steps from `i` up to and with the next message; returns the step after it. */
static uint32_t copy_message(const mc_step_t *step, uint32_t i, uint32_t end, mc_step_t **to)
{
    bool message = false;
    for (; i < end && !message; i++) {
        message = step[i].peer >= 0;
        *(*to)++ = step[i];
    }
    return i;
}

/* Returns the step behind the last send from `start` on, and counts the sends. */
static uint32_t end_of_sends(const mc_builder_t *b, uint32_t start, uint32_t *sends)
{
    uint32_t end = start;
    *sends = 0;
    for (uint32_t i = start; i < b->n_steps; i++)
        if (mc_op_sends((mc_op_t)b->step[i].op)) {
            end = i + 1;
            ++*sends;
        }
    return end;
}

void mc_in_turns(mc_builder_t *b, uint32_t start)
{
    uint32_t sends;
    const uint32_t middle = end_of_sends(b, start, &sends), end = b->n_steps;
    if (b->status || sends <= MC_PROGRAM_WINDOW)
        return;
    mc_step_t *const turns = malloc((size_t)(end - start) * sizeof *turns);
    if (!turns) {
        b->status = mc_fail_memory("the steps of a plan");
        return;
    }
    mc_step_t *to = turns;
    for (uint32_t i = start, k = middle; i < middle || k < end;) {
        i = copy_message(b->step, i, middle, &to);
        k = copy_message(b->step, k, end, &to);
    }
    memcpy(b->step + start, turns, (size_t)(end - start) * sizeof *turns);
    free(turns);
}

/* Does a turn begin at `i`? A turn is what a rank sends and then receives. Interleaved at any other
 * place, messages of a pair could be in another order at the sender than at the receiver. */
static bool begins_turn(const mc_step_t *step, uint32_t i)
{
    return i == 0 ||
           (mc_op_receives((mc_op_t)step[i - 1].op) && !mc_op_receives((mc_op_t)step[i].op));
}

static uint32_t count_turns(const mc_step_t *step, uint32_t n)
{
    uint32_t turns = 0;
    for (uint32_t i = 0; i < n; i++)
        turns += begins_turn(step, i);
    return turns;
}

/* Copies the turn that begins at `i`; returns where the next one begins. */
static uint32_t copy_turn(const mc_step_t *step, uint32_t i, uint32_t n, mc_step_t **to)
{
    do
        *(*to)++ = step[i++];
    while (i < n && !begins_turn(step, i));
    return i;
}

/* Turn t of n is placed at the fraction (2t + 1) / 2n of the merged order. */
static void merge_turns(const mc_step_t *a, uint32_t n, const mc_step_t *b, uint32_t m,
                        mc_step_t *merged)
{
    const uint64_t turns = count_turns(a, n), others = count_turns(b, m);
    uint64_t t = 0, o = 0;
    for (uint32_t i = 0, k = 0; i < n || k < m;) {
        if (k == m || (i < n && (2 * t + 1) * others <= (2 * o + 1) * turns)) {
            i = copy_turn(a, i, n, &merged);
            t++;
        } else {
            k = copy_turn(b, k, m, &merged);
            o++;
        }
    }
}

void mc_alternate(mc_builder_t *b, uint32_t start, uint32_t middle)
{
    const uint32_t n = middle - start, m = b->n_steps - middle;
    if (b->status || n == 0 || m == 0)
        return;
    mc_step_t *const merged = malloc((size_t)(n + m) * sizeof *merged);
    if (!merged) {
        b->status = mc_fail_memory("the steps of a plan");
        return;
    }
    merge_turns(b->step + start, n, b->step + middle, m, merged);
    memcpy(b->step + start, merged, (size_t)(n + m) * sizeof *merged);
    free(merged);
}

int mc_seal(const mc_builder_t *b, mc_plan_t **plan)
{
    if (b->status)
        return b->status;
    return mc_seal_steps(&b->head, b->step, b->n_steps, plan);
}
