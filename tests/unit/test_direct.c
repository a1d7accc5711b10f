/*
 * Direct messages (gpu/program/direct.h): that each has its place for itself, by a search over lowered programs that
 * shares nothing with what marks them; which are marked; and what moves.
 */
#include "gpu/program/piece.h"
#include "gpu/program/program.h"
#include "plan/builder.h"
#include "runtime/call/request.h"
#include "support/plans.h"
#include "support/strategies.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 8, STEPS = 512, ROOM = 1 << 16, SAMPLE = 40 };

/* A call on all ranks. */
typedef struct {
    mc_mesh_t mesh;
    meshcoll_collective_t collective;
    bool in_place;
    size_t count;
    uint32_t blocks;
    mc_plan_t *plan[RANKS];
    mc_binding_t binding[RANKS];
    char *in[RANKS], *out[RANKS], *memory[2 * RANKS];
    mc_device_program_t *program[RANKS];
} call_t;

/* In place, the input of an allgather is a block of its output, and that of a reduce-scatter contains it. */
static void place_buffers(call_t *c, int r)
{
    const size_t block = c->count * sizeof(int16_t) * (size_t)r;
    c->memory[2 * r] = malloc(ROOM);
    c->memory[2 * r + 1] = malloc(ROOM);
    c->in[r] = c->memory[2 * r];
    c->out[r] = c->memory[2 * r + 1];
    if (!c->in_place)
        return;
    if (c->collective == MESHCOLL_REDUCE_SCATTER || c->collective == MESHCOLL_SCATTER)
        c->out[r] =
            c->in[r] + (c->collective == MESHCOLL_REDUCE_SCATTER || r == 0 ? block : ROOM / 2);
    else
        c->in[r] = c->out[r] + (c->collective == MESHCOLL_ALLGATHER ? block : 0);
}

static void open_call(call_t *c, const char *mesh, meshcoll_collective_t collective,
                      const char *strategy, bool marks)
{
    unsigned char linked[RANKS * RANKS];
    mc_strategy_t s;
    mc_direct_t direct = {.first = NULL};
    uint32_t widest = 1;
    c->collective = collective;
    cr_assert_eq(mc_mesh_parse(mesh, &c->mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse(strategy, collective, &c->mesh, &s), MESHCOLL_OK);
    for (int r = 0; r < c->mesh.size; r++) {
        cr_assert_eq(mc_strategy_plan(&s, &c->mesh, r, 0, &c->plan[r]), MESHCOLL_OK);
        place_buffers(c, r);
        const mc_operands_t operands = {
            .in = c->in[r], .out = c->out[r], .count = c->count, .datatype = MESHCOLL_INT16};
        cr_assert_eq(mc_binding_init(&c->binding[r], c->plan[r]), MESHCOLL_OK);
        cr_assert_eq(mc_binding_measure(&c->binding[r], &operands), MESHCOLL_OK);
        const uint32_t own = mc_device_widest(c->plan[r]);
        widest = own > widest ? own : widest;
        for (int p = 0; p < c->mesh.size; p++)
            linked[r * c->mesh.size + p] = p != r;
    }
    const mc_direct_world_t world = {.n = c->mesh.size,
                                     .binding = c->binding,
                                     .linked = linked,
                                     .apart = collective == MESHCOLL_ALLTOALL && !c->in_place,
                                     .blocks = c->blocks};
    if (marks)
        cr_assert_eq(mc_direct_find(&world, &direct), MESHCOLL_OK);
    for (int r = 0; r < c->mesh.size; r++)
        cr_assert_eq(mc_device_lower(&c->binding[r], widest, c->blocks, NULL,
                                     marks ? &direct : NULL, &c->program[r]),
                     MESHCOLL_OK);
    mc_arena_free(&direct.arena);
}

static void close_call(call_t *c)
{
    for (int r = 0; r < c->mesh.size; r++) {
        mc_device_program_free(c->program[r]);
        mc_binding_free(&c->binding[r]);
        mc_plan_free(c->plan[r]);
        free(c->memory[2 * r]);
        free(c->memory[2 * r + 1]);
    }
}

/* What happens before what ------------------------------------------------------------------------ */

/* One block in one pass. Steps are messages, each by itself, and local runs that have a part. */
typedef struct {
    const call_t *call;
    mc_device_call_t cut;
    uint32_t block, pass;
    struct {
        uint32_t first, end; /* runs */
        int peer;            /* of a message; -1: none */
        uint32_t other;      /* its step there */
        bool sends;
    } step[RANKS][STEPS];
    uint32_t n[RANKS];
} view_t;

static mc_device_piece_t piece_of(const view_t *v, const mc_device_run_t *run)
{
    return mc_device_piece(v->cut.piece, v->block, v->pass, run);
}

static void list_steps(view_t *v, int r)
{
    const mc_device_program_t *const p = v->call->program[r];
    v->n[r] = 0;
    for (uint32_t i = 0, end; i < p->n_runs; i = end) {
        bool any = false;
        for (end = i + 1; p->run[end - 1].flags & MC_DEVICE_MORE;)
            end++;
        for (uint32_t k = i; k < end; k++)
            any = any || piece_of(v, &p->run[k]).bytes > 0;
        if (!any)
            continue;
        cr_assert_lt(v->n[r], STEPS);
        const bool is_message = p->run[i].op <= MC_DEVICE_RECV_REDUCE;
        v->step[r][v->n[r]].first = i;
        v->step[r][v->n[r]].end = end;
        v->step[r][v->n[r]].peer = is_message ? p->peer[p->run[i].lane / 2] : -1;
        v->step[r][v->n[r]++].sends = p->run[i].op == MC_DEVICE_SEND;
    }
}

/* Message k of a lane that is sent is the one that is received as number k. */
static void join_ends(view_t *v, int from, int to)
{
    uint32_t j = 0;
    for (uint32_t i = 0; i < v->n[from]; i++) {
        if (v->step[from][i].peer != to || !v->step[from][i].sends)
            continue;
        while (j < v->n[to] && (v->step[to][j].peer != from || v->step[to][j].sends))
            j++;
        cr_assert_lt(j, v->n[to]);
        v->step[from][i].other = j;
        v->step[to][j++].other = i;
    }
}

/* known[r]: so many steps of rank r come before step `at` of rank `rank`. */
static void look_back(const view_t *v, int rank, uint32_t at, uint32_t known[RANKS])
{
    uint32_t looked[RANKS] = {0};
    for (int r = 0; r < RANKS; r++)
        known[r] = 0;
    known[rank] = at;
    for (bool more = true; more;) {
        more = false;
        for (int r = 0; r < v->call->mesh.size; r++)
            for (; looked[r] < known[r]; looked[r]++, more = true) {
                const int peer = v->step[r][looked[r]].peer;
                if (peer < 0 || v->step[r][looked[r]].sends)
                    continue;
                const uint32_t other = v->step[r][looked[r]].other + 1;
                known[peer] = known[peer] > other ? known[peer] : other;
            }
    }
}

typedef struct {
    const char *at, *end;
} span_t;

static span_t span_of(const view_t *v, int r, const mc_device_run_t *run, bool to, uint32_t k)
{
    const char *const base[] = {v->call->in[r], v->call->out[r], NULL, NULL};
    const uint8_t buffer = to ? run->to_buffer : run->from_buffer;
    const mc_device_piece_t piece = piece_of(v, run);
    if (!base[buffer] || piece.bytes == 0)
        return (span_t){NULL, NULL};
    const char *const at = base[buffer] + piece.at +
                           (to ? (int64_t)run->to + run->to_stride * (int64_t)k
                               : (int64_t)run->from + run->from_stride * (int64_t)k);
    return (span_t){at, at + piece.bytes};
}

static bool touches(const view_t *v, int r, uint32_t step, span_t place)
{
    bool any = false;
    for (uint32_t i = v->step[r][step].first; i < v->step[r][step].end; i++) {
        const mc_device_run_t *const run = &v->call->program[r]->run[i];
        for (uint32_t k = 0; k < 2 * run->n; k++) {
            const span_t s = span_of(v, r, run, k % 2, k / 2);
            any = any || (s.at && s.at < place.end && place.at < s.end);
        }
    }
    return any;
}

/* Would the message that a step receives come where an earlier step may still be? */
static bool collides(const view_t *v, int r, uint32_t step)
{
    uint32_t known[RANKS];
    look_back(v, v->step[r][step].peer, v->step[r][step].other, known);
    for (uint32_t i = v->step[r][step].first; i < v->step[r][step].end; i++) {
        const mc_device_run_t *const run = &v->call->program[r]->run[i];
        for (uint32_t k = 0; k < run->n; k++) {
            const span_t place = span_of(v, r, run, true, k);
            for (uint32_t before = known[r]; place.at && before < step; before++)
                if (touches(v, r, before, place))
                    return true;
        }
    }
    return false;
}

typedef struct {
    unsigned direct, collisions;
} found_t;

/* Of messages that are direct, or of all that could be. */
static found_t search(const call_t *c, bool all)
{
    static view_t v;
    found_t found = {0};
    uint64_t longest = 0;
    for (int r = 0; r < c->mesh.size; r++)
        longest = c->program[r]->longest > longest ? c->program[r]->longest : longest;
    v.call = c;
    v.cut.piece = MC_DEVICE_WORD;
    for (v.block = 0; v.block < c->blocks; v.block++)
        for (v.pass = 0; v.pass * MC_DEVICE_WORD < longest; v.pass++) {
            for (int r = 0; r < c->mesh.size; r++)
                list_steps(&v, r);
            for (int r = 0; r < c->mesh.size; r++)
                for (int p = 0; p < c->mesh.size; p++)
                    join_ends(&v, r, p);
            for (int r = 0; r < c->mesh.size; r++)
                for (uint32_t i = 0; i < v.n[r]; i++) {
                    const mc_device_run_t *const run = &c->program[r]->run[v.step[r][i].first];
                    if (run->op != MC_DEVICE_RECV || run->to_buffer != MC_DEVICE_OUT ||
                        !(all || run->flags & MC_DEVICE_DIRECT))
                        continue;
                    found.direct++;
                    found.collisions += collides(&v, r, i);
                }
        }
    return found;
}

static found_t search_strategy(const char *mesh, meshcoll_collective_t collective,
                               const char *strategy, unsigned turn, bool all)
{
    static const size_t counts[] = {25, 97, 7, 121, 50};
    static call_t c;
    c = (call_t){.in_place = turn % 2, .count = counts[turn % 5], .blocks = 1 + turn % 3};
    open_call(&c, mesh, collective, strategy, !all);
    const found_t found = search(&c, all);
    close_call(&c);
    return found;
}

static found_t sweep(const char *text, bool all)
{
    found_t sum = {0};
    mc_mesh_t mesh;
    unsigned turn = 0;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, SAMPLE, &sample), 0);
        for (int i = 0; i < 4 * sample.n; i++, turn++) {
            char strategy[4096];
            const bool cut = turn % 3 == 0 && !strchr(sample.text[i / 4], '|') &&
                             !strstr(sample.text[i / 4], "segments");
            snprintf(strategy, sizeof strategy, "%s%s", sample.text[i / 4],
                     cut ? " segments=3" : "");
            const found_t one =
                search_strategy(text, (meshcoll_collective_t)k, strategy, turn, all);
            cr_expect(all || one.collisions == 0, "%s on %s, turn %u: %u collisions", strategy,
                      text, turn, one.collisions);
            sum.direct += one.direct;
            sum.collisions += one.collisions;
        }
        mc_sample_close(&sample);
    }
    return sum;
}

static const char *const meshes[] = {"gpu=4", "box=2,gpu=2", "gpu=3", "box=2+1", "box=2,gpu=4"};

Test(direct, places_are_free_when_messages_come)
{
    for (size_t i = 0; i < MC_COUNT(meshes); i++) {
        const found_t found = sweep(meshes[i], false);
        cr_expect_gt(found.direct, 500, "%s: %u", meshes[i], found.direct);
    }
}

/* The search would find it: if all messages that are only stored were direct, some would collide. */
Test(direct, unproved_messages_collide)
{
    for (size_t i = 0; i < MC_COUNT(meshes); i++) {
        const found_t proved = sweep(meshes[i], false), all = sweep(meshes[i], true);
        cr_expect_gt(all.collisions, 0, "%s: no collisions of %u", meshes[i], all.direct);
        cr_log_info("%s: %u proved, %u may be direct, %u collide\n", meshes[i], proved.direct,
                    all.direct, all.collisions);
    }
}

/* Chains of messages ------------------------------------------------------------------------------ */

static mc_step_t step_of(mc_op_t op, mc_buffer_t src, mc_buffer_t dst, int32_t peer, uint32_t chunk)
{
    return (mc_step_t){.op = (uint8_t)op,
                       .src = (uint8_t)src & 0xf,
                       .dst = (uint8_t)dst & 0xf,
                       .peer = peer,
                       .first = chunk,
                       .to = chunk,
                       .run = 1,
                       .nrun = 1};
}

/* Rank 0 copies a chunk, tells rank 1 of it by a message of another chunk, and has the first one sent back. Is
 * that direct? Chunks 0 and 1 of a vector of two: the first is the longer one. */
static bool is_chained(uint32_t copied, size_t count, uint32_t blocks)
{
    static const unsigned char linked[] = {0, 1, 1, 0};
    const uint32_t other = 1 - copied;
    const mc_step_t step[2][3] = {{step_of(MC_OP_COPY, MC_IN, MC_OUT, -1, copied),
                                   step_of(MC_OP_SEND, MC_IN, MC_IN, 1, other),
                                   step_of(MC_OP_RECV, MC_OUT, MC_OUT, 1, copied)},
                                  {step_of(MC_OP_RECV, MC_OUT, MC_OUT, 0, other),
                                   step_of(MC_OP_SEND, MC_IN, MC_IN, 0, copied)}};
    mc_binding_t binding[2];
    mc_plan_t *plan[2];
    mc_mesh_t mesh;
    mc_strategy_t s;
    mc_direct_t direct;
    int16_t in[128], out[128];
    cr_assert_eq(mc_mesh_parse("gpu=2", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse("reduce_scatter:ring(gpu) allgather:ring(gpu)",
                                   MESHCOLL_ALLREDUCE, &mesh, &s),
                 MESHCOLL_OK);
    for (int r = 0; r < 2; r++) {
        mc_plan_t *like;
        const mc_operands_t operands = {
            .in = in, .out = out, .count = count, .datatype = MESHCOLL_INT16};
        cr_assert_eq(mc_strategy_plan(&s, &mesh, r, 0, &like), MESHCOLL_OK);
        cr_assert_eq(mc_seal_steps(like, step[r], r == 0 ? 3 : 2, &plan[r]), MESHCOLL_OK);
        cr_assert_eq(mc_binding_init(&binding[r], plan[r]), MESHCOLL_OK);
        cr_assert_eq(mc_binding_measure(&binding[r], &operands), MESHCOLL_OK);
        mc_plan_free(like);
    }
    const mc_direct_world_t world = {
        .n = 2, .binding = binding, .linked = linked, .blocks = blocks};
    cr_assert_eq(mc_direct_find(&world, &direct), MESHCOLL_OK);
    const mc_direct_step_t *const sent = mc_direct_message(&direct, 1, 1);
    cr_assert_eq(sent != NULL, mc_direct_message(&direct, 0, 2) != NULL);
    mc_arena_free(&direct.arena);
    for (int r = 0; r < 2; r++) {
        mc_binding_free(&binding[r]);
        mc_plan_free(plan[r]);
    }
    return sent;
}

/* A message that tells of a place must be there for every block and pass that has a part of the place. */
Test(direct, chains_have_parts_wherever_places_have)
{
    cr_expect(is_chained(0, 16, 1));  /* a word each */
    cr_expect(!is_chained(0, 17, 1)); /* two words and one */
    cr_expect(is_chained(1, 17, 1));
    cr_expect(is_chained(1, 49, 2));  /* four and three: 2 + 2 and 2 + 1 */
    cr_expect(!is_chained(1, 49, 3)); /* 2 + 2 + 0 and 1 + 1 + 1 */
}

/* What is marked, and what moves ------------------------------------------------------------------ */

/* Chunks that a rank reads and writes for messages; a receive that is direct and alone moves none. */
static unsigned traffic_of(const mc_device_program_t *p)
{
    unsigned chunks = 0, kept = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const mc_device_run_t *const r = &p->run[i];
        const bool joins = i > 0 && p->run[i - 1].flags & MC_DEVICE_JOIN;
        const bool joined = r->flags & MC_DEVICE_JOIN, drops = r->flags & MC_DEVICE_DROP;
        cr_assert_eq(r->flags & MC_DEVICE_MORE, 0);
        if (r->op == MC_DEVICE_SEND)
            chunks += 1 + !joins;
        else if (r->op == MC_DEVICE_RECV && r->flags & MC_DEVICE_DIRECT)
            chunks += joined; /* it is read once, for what it is joined to */
        else if (r->op == MC_DEVICE_RECV)
            chunks += 1 + !drops;
        else if (r->op == MC_DEVICE_RECV_REDUCE)
            chunks += 1 + !joins + !drops;
        kept += !drops;
    }
    cr_assert(kept > 0 || p->n_runs == 0);
    return chunks;
}

typedef struct {
    meshcoll_collective_t collective;
    const char *strategy;
    unsigned stored,
        direct; /* messages of all ranks that are only stored in OUT; of these are direct */
    unsigned chunks;
} row_t;

/* docs/gpu.md has these numbers; chunks beside those of device/traffic_of_joined_messages. */
Test(direct, traffic)
{
    static const row_t rows[] = {
        {MESHCOLL_ALLREDUCE, "reduce_scatter:ring(gpu) allgather:ring(gpu)", 56, 56, 288},
        {MESHCOLL_ALLGATHER, "allgather:ring(gpu)", 56, 56, 112},
        {MESHCOLL_ALLREDUCE, "reduce_scatter:fullmesh(gpu) allgather:fullmesh(gpu)", 56, 56, 384},
        {MESHCOLL_ALLREDUCE, "reduce:mst(gpu) bcast:mst(gpu)", 7, 7, 36},
        {MESHCOLL_BCAST, "bcast:chain(gpu)", 7, 7, 14},
        {MESHCOLL_ALLTOALL, "alltoall:pairwise(gpu)", 56, 56, 112},
    };
    for (size_t i = 0; i < MC_COUNT(rows); i++) {
        static call_t c;
        unsigned stored = 0, direct = 0, chunks = 0;
        c = (call_t){.count = 97, .blocks = 2};
        open_call(&c, "gpu=8", rows[i].collective, rows[i].strategy, true);
        for (int r = 0; r < c.mesh.size; r++) {
            const mc_device_program_t *const p = c.program[r];
            for (uint32_t k = 0; k < p->n_runs; k++)
                stored += p->run[k].op == MC_DEVICE_RECV && p->run[k].to_buffer == MC_DEVICE_OUT;
            for (uint32_t lane = 1; lane < 2 * p->n_peers; lane += 2)
                direct += mc_device_messages(p, lane, true);
            chunks += traffic_of(p);
        }
        close_call(&c);
        cr_expect_eq(stored, rows[i].stored, "%s: %u stored", rows[i].strategy, stored);
        cr_expect_eq(direct, rows[i].direct, "%s: %u direct", rows[i].strategy, direct);
        cr_expect_eq(chunks, rows[i].chunks, "%s: %u chunks", rows[i].strategy, chunks);
    }
}
