/*
 * MSCCL's XML, as the parsers of microsoft/msccl and Azure/msccl-executor-nccl read it. A thread block runs its steps in
 * order, sends to one peer and receives from one, and a step waits for one step of another block; a nop waits for one
 * more. Here a block sends to a peer or receives from one, and another has the local steps: only messages of a pair
 * are in order. That completes, as plans do with one message a pair and direction, without buffers (plan/verify).
 */
#include "tools/common/show.h"
#include "tools/export/export.h"

#include <string.h>

/* Limits of both: steps of a block, chunks of a step, peers of a channel by direction, what an int16_t counts; of the
 * reader of the file: nodes that it keeps for a rank, and children of a node. */
enum {
    MOST_NODES = 4096,
    MOST_GPUS = 1024,
    MOST_STEPS = 256,
    MOST_CHUNKS = 71,
    MOST_PEERS = 32,
    MOST_NUMBER = INT16_MAX,
    LOCAL =
        4 *
        MOST_PEERS, /* the block of local steps; 2k sends to peer k of the plan, 2k + 1 receives */
    MOST_BLOCKS
};

typedef struct {
    char buffer;
    int chunk;
} place_t;

/* Chunks that lie side by side in all three places, so that both ends cut a message alike. */
typedef struct {
    place_t from, to, with; /* with: the operand that a receive adds; else as from */
    int chunks;
} piece_t;

typedef struct {
    const char *type;
    piece_t what;
    int block, step; /* what it waits for; -1: nothing */
    bool awaited;
} row_t;

typedef struct {
    int32_t id, n;
    row_t row[MOST_STEPS];
    int32_t waited[MOST_BLOCKS]; /* so many rows of each block are known to have ended */
    uint32_t next;               /* no step of the peer before this one is the next message's */
} block_t;

typedef struct {
    const mc_plans_t *plans;
    const mc_plan_t *plan;
    mc_arena_t arena;
    block_t *block; /* MOST_BLOCKS */
    int32_t n_blocks;
    uint32_t *off, *pred; /* as mc_plan_predecessors */
    struct {
        int32_t block, rows; /* the rows of its block up to it; 0: it moves nothing */
    } * end;                 /* by step of the plan */
} gpu_t;

static const char *const names[MESHCOLL_COLLECTIVES] = {
    [MESHCOLL_ALLGATHER] = "allgather",
    [MESHCOLL_REDUCE_SCATTER] = "reducescatter",
    [MESHCOLL_ALLREDUCE] = "allreduce",
    [MESHCOLL_ALLTOALL] = "alltoall",
};

static int too_many(const mc_plan_t *plan, const char *what, int most)
{
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "MSCCL has room for %d %s, and rank %d has more: take fewer segments, a smaller "
                   "mesh or another strategy",
                   most, what, plan->rank);
}

/* Chunks: of blocks a segment each, in the order of ranks; of whole vectors those of the plan. */
static uint32_t chunks_in(const mc_plan_t *plan, mc_holds_t holds)
{
    if (!mc_move_has_blocks(&mc_moves[plan->collective]))
        return plan->n_chunks;
    return plan->layout.segments * (holds == MC_HOLDS_WHOLE ? (uint32_t)plan->layout.mesh.size : 1);
}

static place_t place_of(const mc_plan_t *plan, uint8_t buffer, mc_range_t range, uint32_t k)
{
    const mc_layout_t *const l = &plan->layout;
    const uint32_t chunk = mc_range_chunk(range, k);
    if (buffer == MC_SCRATCH)
        return (place_t){'s', (int)(chunk - plan->scratch_first)};
    const char name = buffer == MC_IN ? 'i' : 'o';
    if (!mc_move_has_blocks(&mc_moves[plan->collective]))
        return (place_t){name, (int)chunk};
    const bool whole = (buffer == MC_IN ? plan->in : plan->out) == MC_HOLDS_WHOLE;
    const int first = whole ? mc_layout_rank(l, chunk) * (int)l->segments : 0;
    return (place_t){name, first + (int)(chunk / l->per_segment)};
}

static bool follows(place_t a, int chunks, place_t b)
{
    return a.buffer == b.buffer && a.chunk + chunks == b.chunk;
}

static bool goes_on(const piece_t *a, const piece_t *b)
{
    return a->chunks > 0 && a->chunks < MOST_CHUNKS && follows(a->from, a->chunks, b->from) &&
           follows(a->to, a->chunks, b->to) && follows(a->with, a->chunks, b->with);
}

/* Rows -------------------------------------------------------------------------------------------- */

static int add_row(gpu_t *g, block_t *b, const row_t *row)
{
    if (b->n == MOST_STEPS)
        return too_many(g->plan, "steps in a thread block", MOST_STEPS);
    if (b->n == 0)
        b->id = g->n_blocks++;
    b->row[b->n++] = *row;
    return MESHCOLL_OK;
}

/* Rows of each block that a step needs. What moves nothing has none: who waits for it waits for what it waits for. */
static void add_needs(const gpu_t *g, uint32_t step, int32_t need[MOST_BLOCKS])
{
    for (uint32_t k = g->off[step]; k < g->off[step + 1]; k++) {
        const uint32_t p = g->pred[k];
        if (g->end[p].rows == 0)
            add_needs(g, p, need);
        else if (need[g->end[p].block] < g->end[p].rows)
            need[g->end[p].block] = g->end[p].rows;
    }
}

/* The step's first row waits for one of them, and nops before it for the others. */
static int add_waits(gpu_t *g, uint32_t step, block_t *b, row_t *row)
{
    int32_t need[MOST_BLOCKS] = {0};
    int status = MESHCOLL_OK;
    add_needs(g, step, need);
    for (int i = 0; i < MOST_BLOCKS && !status; i++) {
        block_t *const other = &g->block[i];
        if (other == b || need[i] <= b->waited[i])
            continue;
        const row_t nop = {
            "nop", {{'i', -1}, {'o', -1}, {'i', -1}, 0}, row->block, row->step, false};
        status = row->block < 0 ? MESHCOLL_OK : add_row(g, b, &nop);
        b->waited[i] = need[i];
        row->block = other->id;
        row->step = need[i] - 1;
        other->row[row->step].awaited = true;
    }
    return status;
}

static int add_piece(gpu_t *g, uint32_t step, bool first, block_t *b, const piece_t *piece)
{
    static const char *const types[MC_OPS] = {
        [MC_OP_SEND] = "s",   [MC_OP_RECV] = "r",    [MC_OP_RECV_REDUCE] = "rrc",
        [MC_OP_COPY] = "cpy", [MC_OP_REDUCE] = "re", [MC_OP_REDUCE_BEHIND] = "re"};
    row_t row = {types[g->plan->step[step].op], *piece, -1, -1, false};
    const int status = first ? add_waits(g, step, b, &row) : MESHCOLL_OK;
    return status ? status : add_row(g, b, &row);
}

/* The two ends of what a step moves: those of a message, or this rank twice. */
typedef struct {
    const mc_plan_t *from, *to;
    const mc_step_t *read, *write;
} ends_t;

static int find_ends(const gpu_t *g, block_t *b, const mc_step_t *s, ends_t *ends)
{
    *ends = (ends_t){g->plan, g->plan, s, s};
    if (s->peer < 0)
        return MESHCOLL_OK;
    const bool sends = mc_op_sends((mc_op_t)s->op);
    const mc_plan_t *const there = g->plans->plan[s->peer];
    for (; b->next < there->n_steps; b->next++) {
        const mc_step_t *const t = &there->step[b->next];
        const mc_op_t op = (mc_op_t)t->op;
        if (t->peer == g->plan->rank && t->seq == s->seq &&
            (sends ? mc_op_receives(op) : mc_op_sends(op))) {
            *ends = sends ? (ends_t){g->plan, there, s, t} : (ends_t){there, g->plan, t, s};
            return MESHCOLL_OK;
        }
    }
    return mc_fail(MESHCOLL_ERR_PLAN, "message %u between ranks %d and %d is in one plan only",
                   s->seq, g->plan->rank, s->peer);
}

static piece_t piece_of(const ends_t *e, uint32_t k)
{
    const mc_step_t *const r = e->read, *const w = e->write;
    const place_t from = place_of(e->from, r->src, mc_step_from(r), k);
    return (piece_t){
        from, place_of(e->to, w->dst, mc_step_to(w), k),
        w->op == MC_OP_RECV_REDUCE ? place_of(e->to, w->src, mc_step_from(w), k) : from, 1};
}

static int add_step(gpu_t *g, uint32_t step)
{
    const mc_step_t *const s = &g->plan->step[step];
    const int32_t at =
        s->peer < 0 ? LOCAL
                    : 2 * (int32_t)mc_plan_peer(g->plan, s->peer) + !mc_op_sends((mc_op_t)s->op);
    block_t *const b = &g->block[at];
    ends_t ends;
    int status = find_ends(g, b, s, &ends);
    if (status)
        return status;
    const mc_range_t reads = mc_step_from(ends.read);
    piece_t piece = {.chunks = 0};
    bool first = true;
    for (uint32_t k = 0; k < mc_range_chunks(reads) && !status; k++) {
        if (mc_plan_absent(ends.from, (mc_buffer_t)ends.read->src, mc_range_chunk(reads, k)))
            continue;
        const piece_t next = piece_of(&ends, k);
        if (goes_on(&piece, &next)) {
            piece.chunks++;
            continue;
        }
        if (piece.chunks > 0) {
            status = add_piece(g, step, first, b, &piece);
            first = false;
        }
        piece = next;
    }
    if (!status && piece.chunks > 0)
        status = add_piece(g, step, first, b, &piece);
    g->end[step].block = at;
    g->end[step].rows = piece.chunks > 0 ? b->n : 0;
    return status;
}

/* The file ---------------------------------------------------------------------------------------- */

static int fill(gpu_t *g)
{
    int status = MESHCOLL_OK;
    if (g->plan->n_peers > 2 * MOST_PEERS)
        return too_many(g->plan, "peers a direction", MOST_PEERS);
    g->block = mc_arena_take(&g->arena, MOST_BLOCKS, sizeof *g->block);
    g->end = mc_arena_take(&g->arena, (size_t)g->plan->n_steps + 1, sizeof *g->end);
    g->off = mc_arena_take(&g->arena, (size_t)g->plan->n_steps + 2, sizeof *g->off);
    g->pred = mc_arena_take(&g->arena, (size_t)g->plan->n_edges + 1, sizeof *g->pred);
    if (g->arena.failed)
        return mc_fail_memory("thread blocks");
    mc_plan_predecessors(g->plan, g->off, g->pred);
    for (uint32_t i = 0; i < g->plan->n_steps && !status; i++)
        status = add_step(g, i);
    int peers[2] = {0, 0};
    for (int i = 0; i < LOCAL && !status; i++)
        peers[i % 2] += g->block[i].n > 0;
    return peers[0] > MOST_PEERS || peers[1] > MOST_PEERS
               ? too_many(g->plan, "peers a direction", MOST_PEERS)
               : status;
}

static void put_block(const gpu_t *g, int at, FILE *out)
{
    const block_t *const b = &g->block[at];
    const int32_t peer = at == LOCAL ? -1 : g->plan->peer[at / 2];
    fprintf(out, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", b->id,
            at % 2 ? -1 : peer, at % 2 ? peer : -1);
    for (int i = 0; i < b->n; i++) {
        const row_t *const r = &b->row[i];
        const place_t from = strcmp(r->type, "rrc") == 0 ? r->what.with : r->what.from;
        fprintf(out,
                "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
                "dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
                i, r->type, from.buffer, from.chunk, r->what.to.buffer, r->what.to.chunk,
                r->what.chunks, r->block, r->step, r->awaited);
    }
    fprintf(out, "    </tb>\n");
}

static int put_gpu(const mc_plans_t *plans, int32_t rank, FILE *out)
{
    const mc_plan_t *const plan = plans->plan[rank];
    gpu_t g = {.plans = plans, .plan = plan};
    int status = fill(&g);
    int nodes = 1 + plans->n; /* the algorithm, and its GPUs */
    for (int i = 0; i < MOST_BLOCKS && !status; i++)
        nodes += g.block[i].n > 0 ? 1 + g.block[i].n : 0;
    if (!status && nodes > MOST_NODES)
        status = too_many(plan, "nodes of XML a rank", MOST_NODES);
    fprintf(out, "  <gpu id=\"%d\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", rank,
            chunks_in(plan, plan->in), chunks_in(plan, plan->out), plan->n_scratch);
    for (int i = 0; i < MOST_BLOCKS && !status; i++)
        if (g.block[i].n > 0)
            put_block(&g, i, out);
    fprintf(out, "  </gpu>\n");
    mc_arena_free(&g.arena);
    return status;
}

/* For out-of-place calls of any size: what other runtimes read `inplace` as differs. */
static int put_algorithm(const mc_request_t *e, const mc_plans_t *plans, FILE *out)
{
    const mc_plan_t *const plan = plans->plan[0];
    const uint32_t chunks = chunks_in(plan, MC_HOLDS_WHOLE);
    int status = MESHCOLL_OK;
    if (plans->n > MOST_GPUS)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "MSCCL has room for %d GPUs, and this mesh has %d ranks", MOST_GPUS,
                       plans->n);
    if (chunks > MOST_NUMBER || plans->n > MOST_NUMBER)
        return too_many(plan, "ranks, and chunks of the vector", MOST_NUMBER);
    fprintf(
        out,
        "<algo name=\"%.63s\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%u\" ngpus=\"%d\" "
        "coll=\"%s\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"34359738368\">\n",
        mc_show_strategy(&e->strategy, &e->mesh), chunks, plans->n, names[plan->collective]);
    for (int32_t rank = 0; rank < plans->n && !status; rank++)
        status = put_gpu(plans, rank, out);
    fprintf(out, "</algo>\n");
    return status;
}

int mc_export_msccl(const mc_request_t *e, int32_t rank, FILE *out)
{
    mc_plans_t plans;
    (void)rank;
    if (!names[e->strategy.collective])
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "an MSCCL file names no root, so that %s has none: expected allgather, "
                       "reduce_scatter, allreduce or alltoall",
                       mc_moves[e->strategy.collective].name);
    int status = mc_plans_create(&e->strategy, &e->mesh, e->root, &plans);
    if (status)
        return status;
    status = put_algorithm(e, &plans, out);
    mc_plans_free(&plans);
    return status;
}
