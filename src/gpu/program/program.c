#include "gpu/program/program.h"

#include "gpu/program/join.h"
#include "gpu/program/piece.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)MC_DEVICE_SEND == (int)MC_OP_SEND && (int)MC_DEVICE_RECV == (int)MC_OP_RECV &&
                   (int)MC_DEVICE_RECV_REDUCE == (int)MC_OP_RECV_REDUCE &&
                   (int)MC_DEVICE_COPY == (int)MC_OP_COPY &&
                   (int)MC_DEVICE_REDUCE == (int)MC_OP_REDUCE,
               "steps keep their operations");
_Static_assert((int)MC_DEVICE_IN == (int)MC_IN && (int)MC_DEVICE_OUT == (int)MC_OUT &&
                   (int)MC_DEVICE_SCRATCH == (int)MC_SCRATCH,
               "and their buffers");

/* Runs ----------------------------------------------------------------------------------------- */

/* What is lowered so far. `first`: the first run of the step being lowered, which later steps must
 * not extend. */
typedef struct {
    const mc_binding_t *binding;
    const mc_direct_t *direct; /* NULL: no messages are */
    mc_device_run_t *run;
    uint32_t n, capacity, first, slices;
    uint8_t track; /* of what is being lowered, as flags */
    uint64_t longest;
    int status;
} lowering_t;

static mc_device_run_t *add_run(lowering_t *l)
{
    mc_device_run_t *const run = mc_grown(l->run, l->n, &l->capacity, sizeof *run);
    if (!run) {
        l->status = mc_fail_memory("a program");
        return NULL;
    }
    l->run = run;
    return &l->run[l->n++];
}

/* Is `at` where the run's next chunk lies, or could its second one lie there? */
static bool continues(uint64_t first, int64_t stride, uint32_t n, uint64_t at)
{
    return n == 1 || (int64_t)(at - first) == stride * (int64_t)n;
}

/* Appends a chunk to the step's last run, or begins another one. */
static void add_chunk(lowering_t *l, const mc_device_run_t *chunk)
{
    mc_device_run_t *const last = l->n > l->first ? &l->run[l->n - 1] : NULL;
    if (last && last->bytes == chunk->bytes && last->from_buffer == chunk->from_buffer &&
        last->to_buffer == chunk->to_buffer &&
        continues(last->from, last->from_stride, last->n, chunk->from) &&
        continues(last->to, last->to_stride, last->n, chunk->to)) {
        if (last->n == 1) {
            last->from_stride = (int64_t)(chunk->from - last->from);
            last->to_stride = (int64_t)(chunk->to - last->to);
        }
        last->n++;
        return;
    }
    mc_device_run_t *const run = add_run(l);
    if (!run)
        return;
    const uint64_t words = (chunk->bytes + MC_DEVICE_WORD - 1) / MC_DEVICE_WORD;
    *run = *chunk;
    run->flags |= l->track;
    run->slice = (words + l->slices - 1) / l->slices * MC_DEVICE_WORD;
    l->longest = run->slice > l->longest ? run->slice : l->longest;
}

/* Where a chunk that a plan reads or writes lies. The plan of a scaled sum finds the products in IN's place:
 * they are in OUT, in the same order, or in SCRATCH. */
static mc_chunk_t find_chunk(const mc_binding_t *b, mc_buffer_t buffer, uint32_t i)
{
    mc_chunk_t chunk = mc_binding_chunk(b, buffer, i);
    if (!b->reducer.scale || chunk.home != MC_IN)
        return chunk;
    chunk.home = b->scaled_bytes > 0 ? MC_SCRATCH : MC_OUT;
    chunk.at += b->scaled_bytes > 0 ? b->scaled_at : 0;
    return chunk;
}

/* A scaled sum begins with the products, chunk by chunk: each block multiplies what it sums. */
static void lower_scaling(lowering_t *l)
{
    const mc_binding_t *const b = l->binding;
    for (uint32_t i = 0; i < b->plan->n_chunks && !l->status; i++) {
        const mc_chunk_t from = mc_binding_chunk(b, MC_IN, i), to = find_chunk(b, MC_IN, i);
        const mc_device_run_t run = {.op = MC_DEVICE_SCALE,
                                     .from_buffer = from.home,
                                     .to_buffer = to.home,
                                     .n = 1,
                                     .bytes = from.bytes,
                                     .from = from.at,
                                     .to = to.at};
        if (from.bytes > 0)
            add_chunk(l, &run);
    }
}

/* Index of a message's lane; 0 of a local step. */
static uint32_t lane_of(const mc_plan_t *plan, const mc_step_t *s)
{
    uint32_t i = 0;
    while (i < plan->n_peers && plan->peer[i] != s->peer)
        i++;
    return i < plan->n_peers ? 2 * i + mc_op_receives((mc_op_t)s->op) : 0;
}

/* Where the receiver of a direct message stores its chunk k. */
static uint64_t place_there(const lowering_t *l, const mc_direct_step_t *m, uint32_t k)
{
    const mc_binding_t *const b = &l->direct->world.binding[m->peer];
    const mc_step_t *const s = &b->plan->step[m->step];
    return mc_binding_chunk(b, (mc_buffer_t)s->dst, mc_range_chunk(mc_step_to(s), k)).at;
}

/* Chunk k of a step. */
static void lower_chunk(lowering_t *l, const mc_step_t *s, const mc_device_run_t *like, uint32_t k,
                        const mc_direct_step_t *direct)
{
    const mc_binding_t *const b = l->binding;
    const mc_op_t op = (mc_op_t)s->op;
    mc_device_run_t chunk = *like;
    if (mc_op_writes(op)) {
        const mc_chunk_t to = find_chunk(b, (mc_buffer_t)s->dst, mc_range_chunk(mc_step_to(s), k));
        chunk.to_buffer = to.home;
        chunk.to = to.at;
        chunk.bytes = to.bytes;
    }
    if (mc_op_reads(op)) {
        const mc_chunk_t from =
            find_chunk(b, (mc_buffer_t)s->src, mc_range_chunk(mc_step_from(s), k));
        if (mc_op_writes(op) && from.bytes != chunk.bytes)
            l->status = mc_fail(MESHCOLL_ERR_PLAN,
                                "rank %d: a chunk of %zu bytes goes to one of %" PRIu64 " bytes",
                                b->plan->rank, from.bytes, chunk.bytes);
        chunk.from_buffer = from.home;
        chunk.from = from.at;
        chunk.bytes = from.bytes;
    }
    if (direct && mc_op_sends(op) && chunk.bytes > 0)
        chunk.to = place_there(l, direct, k);
    const bool stays = op == MC_OP_COPY && chunk.from_buffer == chunk.to_buffer &&
                       chunk.from == chunk.to; /* a lent chunk of SCRATCH */
    if (chunk.bytes > 0 && !stays)
        add_chunk(l, &chunk);
}

static void lower_step(lowering_t *l, uint32_t i)
{
    const mc_plan_t *const plan = l->binding->plan;
    const mc_step_t *const s = &plan->step[i];
    const mc_direct_step_t *const direct =
        l->direct ? mc_direct_message(l->direct, plan->rank, i) : NULL;
    const mc_device_run_t like = {.op = s->op == MC_OP_REDUCE_BEHIND ? MC_DEVICE_REDUCE : s->op,
                                  .from_buffer = MC_DEVICE_NONE,
                                  .to_buffer = MC_DEVICE_NONE,
                                  .flags = direct ? MC_DEVICE_DIRECT : 0,
                                  .step = i,
                                  .lane = lane_of(plan, s),
                                  .n = 1};
    l->first = l->n;
    for (uint32_t k = 0; k < s->run * s->nrun && !l->status; k++)
        lower_chunk(l, s, &like, k, direct);
    const bool is_message = mc_op_sends((mc_op_t)s->op) || mc_op_receives((mc_op_t)s->op);
    for (uint32_t k = l->first; is_message && k + 1 < l->n; k++)
        l->run[k].flags |= MC_DEVICE_MORE;
}

/* Tracks ----------------------------------------------------------------------------------------- */

static void enter_track(lowering_t *l, uint32_t track)
{
    l->track = (uint8_t)(track << MC_DEVICE_TRACK_SHIFT);
}

/* Marks and waits move nothing. */
static void add_order(lowering_t *l, uint8_t op, uint32_t step, uint32_t track, uint32_t mark)
{
    mc_device_run_t *const run = add_run(l);
    if (run)
        *run = (mc_device_run_t){.op = op,
                                 .from_buffer = MC_DEVICE_NONE,
                                 .to_buffer = MC_DEVICE_NONE,
                                 .flags = l->track,
                                 .step = step,
                                 .lane = track,
                                 .n = mark};
}

static void lower_in_track(lowering_t *l, mc_device_order_t *o, uint32_t step)
{
    enter_track(l, mc_device_track_of(o, step));
    for (uint32_t other = 0; other < o->tracks->n && !l->status; other++) {
        const uint32_t mark = mc_device_order_after(o, step, other);
        if (mark > 0)
            add_order(l, MC_DEVICE_AFTER, step, other, mark);
    }
    if (!l->status)
        lower_step(l, step);
    if (o->mark[step] > 0 && !l->status)
        add_order(l, MC_DEVICE_MARK, step, mc_device_track_of(o, step), o->mark[step]);
}

/* What follows, in the last track, comes after all others. */
static void gather_tracks(lowering_t *l, mc_device_order_t *o)
{
    const uint32_t last = o->tracks->n - 1;
    for (uint32_t t = 0; t < last && !l->status; t++) {
        enter_track(l, t);
        add_order(l, MC_DEVICE_MARK, o->plan->n_steps, t, ++o->marks[t]);
    }
    enter_track(l, last);
    for (uint32_t t = 0; t < last && !l->status; t++)
        add_order(l, MC_DEVICE_AFTER, o->plan->n_steps, t, o->marks[t]);
}

/* An average divides the results, chunk by chunk, so that each block divides what it has summed. */
static void lower_division(lowering_t *l)
{
    const mc_plan_t *const plan = l->binding->plan;
    const mc_layout_t *const layout = &plan->layout;
    const bool whole = plan->out == MC_HOLDS_WHOLE;
    const uint32_t n = whole ? plan->n_chunks : layout->segments;
    l->first = l->n;
    for (uint32_t i = 0; i < n && !l->status; i++) {
        const uint32_t chunk = whole ? i : mc_layout_home(layout, plan->rank, i);
        const mc_chunk_t to = mc_binding_chunk(l->binding, MC_OUT, chunk);
        const mc_device_run_t run = {.op = MC_DEVICE_DIVIDE,
                                     .from_buffer = MC_DEVICE_NONE,
                                     .to_buffer = to.home,
                                     .step = plan->n_steps,
                                     .n = 1,
                                     .bytes = to.bytes,
                                     .to = to.at};
        if (to.bytes > 0)
            add_chunk(l, &run);
    }
}

/* Programs ------------------------------------------------------------------------------------- */

uint32_t mc_device_widest(const mc_plan_t *plan)
{
    uint32_t widest = 1;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        const bool is_message = mc_op_sends((mc_op_t)s->op) || mc_op_receives((mc_op_t)s->op);
        if (is_message && s->run * s->nrun > widest)
            widest = s->run * s->nrun;
    }
    return widest;
}

static bool reduces(const mc_plan_t *plan)
{
    return plan->collective == MESHCOLL_REDUCE || plan->collective == MESHCOLL_ALLREDUCE ||
           plan->collective == MESHCOLL_REDUCE_SCATTER;
}

static mc_device_body_t body_of(const mc_binding_t *b)
{
    if (!reduces(b->plan))
        return MC_DEVICE_BODY_move;
    return b->reducer.scale ? mc_device_premul_body(b->operands.datatype)
                            : mc_device_body(b->operands.datatype, b->operands.op);
}

static int check_supported(const mc_binding_t *b, uint32_t widest, uint32_t blocks, uint32_t tracks)
{
    const mc_plan_t *const plan = b->plan;
    if (reduces(plan) && body_of(b) == MC_DEVICE_BODY_move)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "a device has no kernel for this operation (%s of %s): expected one of the "
                       "library's, not a user's",
                       meshcoll_op_name(b->operands.op),
                       meshcoll_datatype_name(b->operands.datatype));
    if (blocks < tracks)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "a program of %u tracks needs a block for each at least, got %u", tracks,
                       blocks);
    if (mc_device_widest(plan) > widest)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "rank %d's plan has a message of %u chunks: expected at most %u, the most "
                       "of all ranks",
                       plan->rank, mc_device_widest(plan), widest);
    return MESHCOLL_OK;
}

/* By lane, and behind the last one their number. */
static void list_messages(const mc_device_program_t *p, uint32_t *first,
                          mc_device_message_t *message)
{
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < 2 * p->n_peers; lane++) {
        first[lane] = n;
        for (uint32_t i = 0, end; i < p->n_runs; i = end) {
            end = mc_device_step_end(p->run, i);
            if (mc_device_is_message(&p->run[i]) && p->run[i].lane == lane)
                message[n++] = (mc_device_message_t){i, end};
        }
    }
    first[2 * p->n_peers] = n;
}

static mc_device_program_t *seal(const lowering_t *l, const mc_device_order_t *o, uint32_t widest,
                                 uint32_t blocks)
{
    const mc_plan_t *const plan = l->binding->plan;
    const size_t runs = l->n * sizeof *l->run, peers = plan->n_peers * sizeof *plan->peer;
    const size_t messages = l->n * sizeof(mc_device_message_t);
    const size_t lanes = (2 * (size_t)plan->n_peers + 1) * sizeof(uint32_t);
    mc_device_program_t *const p = malloc(sizeof *p + runs + peers + messages + lanes);
    if (!p)
        return NULL;
    mc_device_run_t *const run = (mc_device_run_t *)(p + 1);
    mc_device_message_t *const message = (mc_device_message_t *)(run + l->n);
    int32_t *const peer = (int32_t *)(message + l->n);
    uint32_t *const first = (uint32_t *)(peer + plan->n_peers);
    if (l->n > 0)
        memcpy(run, l->run, runs);
    if (plan->n_peers > 0)
        memcpy(peer, plan->peer, peers);
    *p = (mc_device_program_t){.holders = 1,
                               .rank = plan->rank,
                               .ranks = plan->layout.mesh.size,
                               .body = body_of(l->binding),
                               .element = (uint32_t)l->binding->element,
                               .widest = widest,
                               .blocks = blocks,
                               .tracks = o->tracks->n,
                               .n_steps = plan->n_steps,
                               .n_runs = l->n,
                               .n_peers = plan->n_peers,
                               .longest = l->longest,
                               .run = run,
                               .peer = peer,
                               .message = message,
                               .first = first};
    _Static_assert(sizeof p->scalar == sizeof l->binding->reducer.scalar, "an element");
    memcpy(p->scalar, l->binding->reducer.scalar, sizeof p->scalar);
    memcpy(p->marks, o->marks, sizeof p->marks);
    list_messages(p, first, message);
    return p;
}

static void lower_all(lowering_t *l, mc_device_order_t *o)
{
    const mc_binding_t *const b = l->binding;
    const mc_plan_t *const plan = b->plan;
    if (b->reducer.scale && plan->in != MC_HOLDS_NONE)
        lower_scaling(l);
    if (o->scales && !l->status)
        add_order(l, MC_DEVICE_MARK, 0, 0, 1);
    for (uint32_t i = 0; i < plan->n_steps && !l->status; i++)
        lower_in_track(l, o, i);
    if (!l->status)
        l->status = mc_device_join(b, l->run, l->n);
    if (l->status || !reduces(plan) || !b->reducer.divide || plan->out == MC_HOLDS_NONE ||
        plan->layout.mesh.size == 1)
        return;
    if (o->tracks->n > 1)
        gather_tracks(l, o);
    if (!l->status)
        lower_division(l);
}

int mc_device_lower(const mc_binding_t *binding, uint32_t widest, uint32_t blocks,
                    const mc_device_tracks_t *tracks, const mc_direct_t *direct,
                    mc_device_program_t **program)
{
    static const mc_device_tracks_t one = {.n = 1};
    const mc_device_tracks_t *const t = tracks ? tracks : &one;
    const int refused = check_supported(binding, widest, blocks, t->n);
    if (refused)
        return refused;
    mc_device_order_t o;
    lowering_t l = {.binding = binding, .direct = direct, .slices = blocks / t->n};
    l.status = mc_device_order_open(binding->plan, t, binding->reducer.scale, &o);
    if (l.status)
        return l.status;
    lower_all(&l, &o);
    mc_device_program_t *const made = l.status ? NULL : seal(&l, &o, widest, blocks);
    if (!l.status && !made)
        l.status = mc_fail_memory("a program");
    free(l.run);
    mc_arena_free(&o.arena);
    if (!l.status)
        *program = made;
    return l.status;
}

void mc_device_program_hold(mc_device_program_t *p)
{
    atomic_fetch_add_explicit(&p->holders, 1, memory_order_relaxed);
}

void mc_device_program_free(mc_device_program_t *p)
{
    if (p && atomic_fetch_sub_explicit(&p->holders, 1, memory_order_acq_rel) == 1)
        free(p);
}

uint32_t mc_device_messages(const mc_device_program_t *p, uint32_t lane, bool direct)
{
    uint32_t n = 0;
    for (uint32_t i = p->first[lane]; i < p->first[lane + 1]; i++)
        n += !direct || p->run[p->message[i].first].flags & MC_DEVICE_DIRECT;
    return n;
}

/* Launches ------------------------------------------------------------------------------------- */

/* Bytes of a slot that a word of a message takes. */
static uint32_t word_of(bool ll)
{
    return ll ? 2 * MC_DEVICE_WORD : MC_DEVICE_WORD;
}

bool mc_device_piece_bytes(uint32_t widest, uint32_t slot_bytes, bool ll, uint32_t *piece)
{
    const uint32_t words = slot_bytes / widest / word_of(ll);
    if (words > 0)
        *piece = words * MC_DEVICE_WORD;
    return words > 0;
}

int mc_device_call(const mc_device_program_t *p, uint32_t slot_bytes, bool ll,
                   mc_device_call_t *call)
{
    uint32_t piece;
    if (!mc_device_piece_bytes(p->widest, slot_bytes, ll, &piece))
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "a slot of %u bytes is too small for messages of %u chunks: expected %u "
                       "bytes for each",
                       slot_bytes, p->widest, word_of(ll));
    *call = (mc_device_call_t){.run = p->run,
                               .n_runs = p->n_runs,
                               .passes = (uint32_t)((p->longest + piece - 1) / piece),
                               .blocks = p->blocks,
                               .tracks = p->tracks,
                               .piece = piece,
                               .slot_bytes = slot_bytes,
                               .ll = ll,
                               .ranks = p->ranks,
                               .scalar = {p->scalar[0], p->scalar[1]}};
    memcpy(call->marks, p->marks, sizeof call->marks);
    return MESHCOLL_OK;
}

/* Text ----------------------------------------------------------------------------------------- */

const char *mc_device_op_name(uint8_t op)
{
    return op == MC_DEVICE_DIVIDE  ? "divide"
           : op == MC_DEVICE_SCALE ? "scale"
           : op == MC_DEVICE_MARK  ? "mark"
           : op == MC_DEVICE_AFTER ? "after"
                                   : mc_op_name((mc_op_t)op);
}

void mc_device_report_print(const mc_device_program_t *program, const mc_device_report_t *report,
                            mc_text_t *text)
{
    if (report->status == MC_DEVICE_DONE) {
        mc_text_add(text, "done");
        return;
    }
    const mc_device_run_t *const r =
        report->run < program->n_runs ? &program->run[report->run] : NULL;
    mc_text_add(text, "%s",
                report->status == MC_DEVICE_ABORTED   ? "aborted"
                : report->status == MC_DEVICE_LATE    ? "waited longer than its limit"
                : report->status == MC_DEVICE_DIFFERS ? "was sent another call's message"
                                                      : "still running");
    if (r && report->status != MC_DEVICE_RUNNING)
        mc_text_add(text, " at step %u of %u (%s, rank %d), pass %u", r->step, program->n_steps,
                    mc_device_op_name(r->op),
                    mc_device_is_message(r) ? program->peer[r->lane / 2] : -1, report->pass);
}
