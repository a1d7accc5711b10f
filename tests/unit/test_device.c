/* Programs of the device executor: plans and bindings lowered to runs, their check and their text. */
#include "gpu/program/program.h"
#include "runtime/call/request.h"
#include "support/case.h"
#include "support/plans.h"
#include "support/program_text.h"
#include "support/stand.h"
#include "support/strategies.h"

#include <stdlib.h>

enum { SAMPLE = 25, WORLDS = 60, ROOM = 1 << 16, TEXT = 4096 };

/* One rank's call. The buffers are large enough for any. */
typedef struct {
    mc_plan_t *plan;
    mc_binding_t binding;
    mc_device_program_t *program;
    char *in, *out, *scratch;
    uint32_t widest;
} lowered_t;

static void open_buffers(lowered_t *l)
{
    l->in = malloc(ROOM);
    l->out = malloc(ROOM);
    l->scratch = malloc(ROOM);
    cr_assert(l->in && l->out && l->scratch);
}

static void lower_plan(lowered_t *l, const mc_plan_t *plan, const mc_operands_t *operands)
{
    cr_assert_eq(mc_binding_init(&l->binding, plan), MESHCOLL_OK);
    cr_assert_eq(mc_binding_measure(&l->binding, operands), MESHCOLL_OK);
    cr_assert_leq(l->binding.scratch_bytes, ROOM);
    l->widest = mc_device_widest(plan);
    cr_assert_eq(mc_device_lower(&l->binding, l->widest, 2, NULL, NULL, &l->program), MESHCOLL_OK,
                 "%s", meshcoll_last_error());
}

static void close_lowered(lowered_t *l)
{
    mc_device_program_free(l->program);
    mc_binding_free(&l->binding);
    mc_plan_free(l->plan);
    free(l->in);
    free(l->out);
    free(l->scratch);
}

static const uint64_t whole_room[MC_DEVICE_BUFFERS] = {ROOM, ROOM, ROOM};

/* A program to break: rank 1 of an allreduce on 4 ranks. */
static void open_allreduce(lowered_t *l, size_t count, meshcoll_op_t op)
{
    mc_mesh_t mesh;
    mc_strategy_t s;
    *l = (lowered_t){0};
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse("reduce_scatter:ring(gpu) allgather:ring(gpu)",
                                   MESHCOLL_ALLREDUCE, &mesh, &s),
                 MESHCOLL_OK);
    cr_assert_eq(mc_strategy_plan(&s, &mesh, 1, 0, &l->plan), MESHCOLL_OK);
    open_buffers(l);
    const mc_operands_t operands = {
        .in = l->in, .out = l->out, .count = count, .datatype = MESHCOLL_FLOAT32, .op = op};
    lower_plan(l, l->plan, &operands);
}

/* Runs lie where the host's executor finds the same bytes ------------------------------------------ */

/* The address of chunk k at one side of a run; NULL: that side is the message. */
static const char *address(const lowered_t *l, uint8_t buffer, uint64_t at, int64_t stride,
                           uint32_t k)
{
    const char *const base[] = {l->binding.operands.in, l->binding.operands.out, l->scratch};
    return buffer == MC_DEVICE_NONE ? NULL : base[buffer] + (int64_t)at + stride * (int64_t)k;
}

/* Is run `i` of this step, and reads from there? */
static bool begins(const lowered_t *l, uint32_t step, uint32_t i, const char *from)
{
    const mc_device_run_t *const r = &l->program->run[i];
    return i < l->program->n_runs && r->step == step &&
           address(l, r->from_buffer, r->from, r->from_stride, 0) == from;
}

/* Compares the runs from *run on that belong to a step with the step's spans. */
static void compare_step(const lowered_t *l, uint32_t step, uint32_t *run, const char *what)
{
    const mc_binding_t *const b = &l->binding;
    const mc_device_program_t *const p = l->program;
    uint32_t chunk = 0;
    for (uint32_t i = b->step[step].at; i < b->step[step].at + b->step[step].n; i++) {
        const char *const from = b->from[i].at, *const to = b->to[i].at;
        if (l->plan->step[step].op == MC_OP_COPY && from == to && !begins(l, step, *run, from))
            continue; /* a lent chunk's copy moves nothing, and is not lowered */
        for (size_t done = 0; done < b->from[i].bytes;) {
            cr_assert_lt(*run, p->n_runs, "%s: step %u lacks bytes", what, step);
            const mc_device_run_t *const r = &p->run[*run];
            cr_assert_eq(r->step, step, "%s: run %u is not of step %u", what, *run, step);
            cr_assert_eq(address(l, r->from_buffer, r->from, r->from_stride, chunk),
                         from ? from + done : NULL, "%s: step %u reads elsewhere", what, step);
            cr_assert_eq(address(l, r->to_buffer, r->to, r->to_stride, chunk),
                         to ? to + done : NULL, "%s: step %u writes elsewhere", what, step);
            done += r->bytes;
            cr_assert_leq(done, b->from[i].bytes, "%s: step %u has more bytes", what, step);
            *run += ++chunk == r->n;
            chunk = chunk == r->n ? 0 : chunk;
        }
    }
}

static void compare(lowered_t *l, const char *what)
{
    uint32_t run = 0;
    cr_assert_eq(mc_binding_place(&l->binding, l->scratch), MESHCOLL_OK);
    cr_assert_eq(mc_device_program_check(l->program, whole_room), MESHCOLL_OK, "%s: %s", what,
                 meshcoll_last_error());
    for (uint32_t i = 0; i < l->plan->n_steps; i++)
        compare_step(l, i, &run, what);
    while (run < l->program->n_runs && l->program->run[run].op == MC_DEVICE_DIVIDE)
        run++;
    cr_assert_eq(run, l->program->n_runs, "%s: there are runs of no step", what);
}

/* Blocks of unequal sizes, some empty, for the collectives that have such variants. */
static mc_operands_t unequal(mc_operands_t operands, const mc_plan_t *plan, size_t *counts)
{
    for (int32_t r = 0; r < plan->layout.mesh.size; r++)
        counts[r] = (size_t)(r * 7 % 5);
    if (plan->collective == MESHCOLL_ALLGATHER || plan->collective == MESHCOLL_SCATTER ||
        plan->collective == MESHCOLL_GATHER || plan->collective == MESHCOLL_REDUCE_SCATTER)
        operands.in_counts = operands.out_counts = counts;
    return operands;
}

static void compare_rank(const mc_strategy_t *s, const mc_mesh_t *mesh, int32_t rank, unsigned turn,
                         const char *what)
{
    lowered_t l = {0};
    size_t counts[64];
    cr_assert_eq(mc_strategy_plan(s, mesh, rank, 0, &l.plan), MESHCOLL_OK);
    open_buffers(&l);
    const mc_operands_t equal = {.in = turn % 3 ? l.in : l.out,
                                 .out = l.out,
                                 .count = 1 + turn * 13 % 50,
                                 .datatype = MESHCOLL_INT16,
                                 .op = turn % 2 ? MESHCOLL_SUM : MESHCOLL_AVG};
    const mc_operands_t operands = turn % 2 ? unequal(equal, l.plan, counts) : equal;
    lower_plan(&l, l.plan, &operands);
    compare(&l, what);
    close_lowered(&l);
}

static void compare_all(const char *text)
{
    mc_mesh_t mesh;
    unsigned turn = 0;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, SAMPLE, &sample), 0);
        for (int i = 0; i < sample.n; i++, turn++) {
            mc_strategy_t s;
            cr_assert_eq(mc_strategy_parse(sample.text[i], (meshcoll_collective_t)k, &mesh, &s),
                         MESHCOLL_OK);
            s.segments *= 1 + turn % 3;
            for (int32_t r = 0; r < mesh.size; r++)
                compare_rank(&s, &mesh, r, turn, sample.text[i]);
        }
        mc_sample_close(&sample);
    }
}

Test(device, lies_where_the_host_finds_it)
{
    compare_all("gpu=5");
    compare_all("box=2,gpu=3");
    compare_all("box=4+3+1");
    compare_all("rack=2,box=2,gpu=2");
}

/* Joined messages ---------------------------------------------------------------------------------- */

/* The programs of all ranks. */
typedef struct {
    lowered_t rank[STAND_RANKS];
    int n;
} world_t;

static void open_world(world_t *w, const char *strategy, meshcoll_collective_t collective,
                       const mc_mesh_t *mesh, uint32_t segments)
{
    mc_strategy_t s;
    w->n = mesh->size;
    cr_assert_eq(mc_strategy_parse(strategy, collective, mesh, &s), MESHCOLL_OK);
    s.segments *= segments;
    for (int32_t r = 0; r < mesh->size; r++) {
        lowered_t *const l = &w->rank[r];
        *l = (lowered_t){0};
        cr_assert_eq(mc_strategy_plan(&s, mesh, r, 0, &l->plan), MESHCOLL_OK);
        open_buffers(l);
        const mc_operands_t operands = {
            .in = l->in, .out = l->out, .count = 97, .datatype = MESHCOLL_INT16};
        lower_plan(l, l->plan, &operands);
    }
}

static void close_world(world_t *w)
{
    for (int r = 0; r < w->n; r++)
        close_lowered(&w->rank[r]);
}

static bool completes(const world_t *w, uint32_t slots)
{
    stand_t s = {.ranks = w->n, .slots = slots};
    for (int r = 0; r < w->n; r++)
        s.program[r] = w->rank[r].program;
    stand_run(&s);
    return stand_completes(&s);
}

static unsigned sweep_programs(const char *text)
{
    static world_t w;
    mc_mesh_t mesh;
    unsigned worlds = 0;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, WORLDS, &sample), 0);
        for (int i = 0; i < sample.n; i++, worlds++) {
            open_world(&w, sample.text[i], (meshcoll_collective_t)k, &mesh, 1 + worlds % 3);
            cr_expect(completes(&w, MC_DEVICE_SLOTS), "%s on %s stands still", sample.text[i],
                      text);
            close_world(&w);
        }
        mc_sample_close(&sample);
    }
    return worlds;
}

Test(device, joined_messages_never_stand_still)
{
    const unsigned worlds = sweep_programs("gpu=2") + sweep_programs("gpu=8") +
                            sweep_programs("box=2,gpu=4") + sweep_programs("box=4+3+1") +
                            sweep_programs("rack=2,box=2,gpu=2");
    cr_expect_gt(worlds, 1000, "%u worlds", worlds);
}

/* Bytes that a rank reads and writes in messages, in chunks; joined, or each message by itself. */
static unsigned traffic_of(const mc_device_program_t *p, bool joined)
{
    unsigned chunks = 0;
    bool goes_on = false; /* the run before is joined to this one */
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const mc_device_run_t *const r = &p->run[i];
        const bool joins = joined && goes_on, drops = joined && r->flags & MC_DEVICE_DROP;
        cr_assert_eq(r->flags & MC_DEVICE_MORE, 0);
        if (r->op == MC_DEVICE_SEND)
            chunks += r->n * (1 + !joins); /* a slot, and what it sends */
        else if (r->op == MC_DEVICE_RECV)
            chunks += r->n * (1 + !drops);
        else if (r->op == MC_DEVICE_RECV_REDUCE)
            chunks += r->n * (1 + !joins + !drops);
        goes_on = r->flags & MC_DEVICE_JOIN;
    }
    return chunks;
}

typedef struct {
    meshcoll_collective_t collective;
    const char *mesh, *strategy;
    unsigned alone, joined; /* chunks of all ranks */
} traffic_t;

/* docs/dev/gpu.md has these numbers. */
Test(device, traffic_of_joined_messages)
{
    static const traffic_t rows[] = {
        {MESHCOLL_ALLREDUCE, "gpu=8", "reduce_scatter:ring(gpu) allgather:ring(gpu)", 504, 352},
        {MESHCOLL_REDUCE_SCATTER, "gpu=8", "reduce_scatter:ring(gpu)", 280, 184},
        {MESHCOLL_ALLGATHER, "gpu=8", "allgather:ring(gpu)", 224, 176},
        {MESHCOLL_ALLREDUCE, "gpu=8", "allreduce:fullmesh(gpu)", 273, 141},
        {MESHCOLL_ALLREDUCE, "gpu=8", "reduce_scatter:fullmesh(gpu) allgather:fullmesh(gpu)", 504,
         496},
        {MESHCOLL_ALLREDUCE, "gpu=8", "reduce:mst(gpu) bcast:mst(gpu)", 63, 47},
        {MESHCOLL_BCAST, "gpu=8", "bcast:chain(gpu)", 28, 22},
        {MESHCOLL_REDUCE, "gpu=8", "reduce:star(gpu)", 35, 23},
    };
    for (size_t i = 0; i < MC_COUNT(rows); i++) {
        static world_t w;
        mc_mesh_t mesh;
        unsigned alone = 0, joined = 0;
        cr_assert_eq(mc_mesh_parse(rows[i].mesh, &mesh), MESHCOLL_OK);
        open_world(&w, rows[i].strategy, rows[i].collective, &mesh, 1);
        for (int r = 0; r < w.n; r++) {
            alone += traffic_of(w.rank[r].program, false);
            joined += traffic_of(w.rank[r].program, true);
        }
        cr_expect_eq(alone, rows[i].alone, "%s: %u chunks", rows[i].strategy, alone);
        cr_expect_eq(joined, rows[i].joined, "%s: %u chunks, joined", rows[i].strategy, joined);
        close_world(&w);
    }
}

/* The check ---------------------------------------------------------------------------------------- */

typedef struct {
    const char *what;
    void (*breaks)(mc_device_program_t *p, mc_device_run_t *run);
} broken_t;

static void break_op(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->op = MC_DEVICE_OPS;
}
static void break_empty(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->n = 0;
}
static void break_element(mc_device_program_t *p, mc_device_run_t *run)
{
    p->element = 32;
    (void)run;
}
static void break_slice(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->slice -= MC_DEVICE_WORD;
}
static void break_body(mc_device_program_t *p, mc_device_run_t *run)
{
    p->body = MC_DEVICE_BODY_move;
    (void)run;
}
static void break_order(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run[1].step = run[0].step - 1;
}
static void break_read(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->from = ROOM - run->bytes + 1;
}
static void break_write(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->to = ROOM;
}
static void break_stride(mc_device_program_t *p, mc_device_run_t *run)
{
    p->widest = 2;
    run->n = 2;
    run->to_stride = -(int64_t)run->to - 4;
}
static void break_input(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->to_buffer = MC_DEVICE_IN;
}
static void break_sides(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->to_buffer = MC_DEVICE_NONE;
}
static void break_lane(mc_device_program_t *p, mc_device_run_t *run)
{
    run->lane = 2 * p->n_peers + 1;
}
static void break_direction(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->lane ^= 1;
}
static void break_width(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->n = 2;
}
static void break_more(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->flags = MC_DEVICE_MORE;
}
static void break_more_joined(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->flags |= MC_DEVICE_MORE;
}
static void break_joined_place(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run[1].from -= 4;
}
static void break_joined_length(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run[1].bytes -= 4;
}
static void break_joined_order(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run[1].flags |= MC_DEVICE_JOIN; /* a receive follows */
}
static void break_joined_end(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)run;
    ((mc_device_run_t *)p->run)[p->n_runs - 1].flags |= MC_DEVICE_JOIN;
}
static void break_drop_alone(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run->flags = MC_DEVICE_DROP;
}
static void break_drop_send(mc_device_program_t *p, mc_device_run_t *run)
{
    (void)p;
    run[1].flags |= MC_DEVICE_DROP;
}

Test(device, the_check_finds_each_fault)
{
    static const broken_t broken[] = {
        {"no known operation", break_op},           {"or empty ones", break_empty},
        {"it cuts elements", break_element},        {"slices do not cover", break_slice},
        {"nothing to reduce", break_body},          {"before the last one", break_order},
        {"reads beyond its buffer", break_read},    {"writes beyond its buffer", break_write},
        {"writes beyond its buffer", break_stride}, {"writes the input", break_input},
        {"another number of buffers", break_sides}, {"its lane is not", break_lane},
        {"its lane is not", break_direction},       {"more chunks than the widest", break_width},
        {"the next run is of another", break_more}, {"joined to another", break_more_joined},
        {"cannot be moved", break_joined_place},    {"cannot be moved", break_joined_length},
        {"cannot be moved", break_joined_order},    {"cannot be moved", break_joined_end},
        {"dropped and not sent", break_drop_alone}, {"dropped and not sent", break_drop_send},
    };
    for (size_t i = 0; i < MC_COUNT(broken); i++) {
        lowered_t l;
        open_allreduce(&l, 401, MESHCOLL_SUM);
        uint32_t at = 0;
        while (l.program->run[at].op != MC_DEVICE_RECV_REDUCE)
            at++;
        cr_assert_eq(mc_device_program_check(l.program, whole_room), MESHCOLL_OK);
        broken[i].breaks(l.program, (mc_device_run_t *)&l.program->run[at]);
        cr_assert_eq(mc_device_program_check(l.program, whole_room), MESHCOLL_ERR_PLAN, "fault %zu",
                     i);
        cr_assert(strstr(meshcoll_last_error(), broken[i].what), "expected \"%s\": %s",
                  broken[i].what, meshcoll_last_error());
        close_lowered(&l);
    }
}

/* Texts and refusals ------------------------------------------------------------------------------- */

Test(device, text)
{
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    lowered_t l;
    open_allreduce(&l, 401, MESHCOLL_AVG);
    mc_device_program_print(l.program, &text);
    cr_assert_lt(text.length, sizeof buffer);
    cr_assert(strstr(buffer, "rank 1 of 4: float32_avg, elements of 4 bytes, 2 blocks, 1 tracks, "),
              "%s", buffer);
    cr_assert(strstr(buffer, "recv_reduce lane 1 (rank 0) 1 x "), "%s", buffer);
    cr_assert(strstr(buffer, "send lane 2 (rank 2) 1 x "), "%s", buffer);
    cr_assert(strstr(buffer, "divide 1 x 404: out+0\n"), "%s", buffer);
    cr_assert(strstr(buffer, "divide 3 x 400: out+404 every 400\n"), "%s", buffer);
    close_lowered(&l);
}

Test(device, text_of_a_report)
{
    char buffer[TEXT];
    lowered_t l;
    open_allreduce(&l, 401, MESHCOLL_SUM);
    uint32_t at = 0;
    while (l.program->run[at].op != MC_DEVICE_RECV_REDUCE)
        at++;
    const mc_device_report_t report = {.status = MC_DEVICE_LATE, .run = at, .pass = 3};
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_device_report_print(l.program, &report, &text);
    cr_assert(strstr(buffer, "waited longer than its limit at step "), "%s", buffer);
    cr_assert(strstr(buffer, "(recv_reduce, rank 0), pass 3"), "%s", buffer);
    const mc_device_report_t done = {.status = MC_DEVICE_DONE, .run = l.program->n_runs};
    text = mc_text(buffer, sizeof buffer);
    mc_device_report_print(l.program, &done, &text);
    cr_assert_str_eq(buffer, "done");
    close_lowered(&l);
}

static void multiply(void *context, void *dst, const void *a, const void *b, size_t count,
                     meshcoll_datatype_t datatype)
{
    (void)context, (void)dst, (void)a, (void)b, (void)count, (void)datatype;
}

Test(device, users_operations_are_refused)
{
    meshcoll_op_t user;
    lowered_t l;
    mc_device_program_t *program = NULL;
    cr_assert_eq(meshcoll_op_create(multiply, 1, NULL, &user), MESHCOLL_OK);
    open_allreduce(&l, 401, MESHCOLL_SUM);
    mc_operands_t operands = l.binding.operands;
    operands.op = user;
    cr_assert_eq(mc_binding_measure(&l.binding, &operands), MESHCOLL_OK);
    cr_assert_eq(mc_device_lower(&l.binding, l.widest, 2, NULL, NULL, &program),
                 MESHCOLL_ERR_UNSUPPORTED);
    cr_assert(strstr(meshcoll_last_error(), "not a user's"), "%s", meshcoll_last_error());
    cr_assert_null(program);
    close_lowered(&l);
    meshcoll_op_free(user);
}

/* Products first, in OUT, which the plan then reads. */
Test(device, scaled_sums)
{
    const float scalar = 2;
    char buffer[TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    meshcoll_op_t op;
    lowered_t l;
    cr_assert_eq(meshcoll_op_premul(&scalar, MESHCOLL_FLOAT32, &op), MESHCOLL_OK);
    open_allreduce(&l, 400, op);
    cr_assert_eq(l.program->body, MC_DEVICE_BODY_float32_premul);
    cr_assert_eq(memcmp(l.program->scalar, &scalar, sizeof scalar), 0);
    cr_assert_eq(mc_device_program_check(l.program, whole_room), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    mc_device_program_print(l.program, &text);
    cr_assert(strstr(buffer, "0 scale 4 x 400: in+0 every 400 -> out+0 every 400\n"), "%s", buffer);
    for (uint32_t i = 1; i < l.program->n_runs; i++)
        cr_assert_neq(l.program->run[i].from_buffer, MC_DEVICE_IN, "run %u", i);
    close_lowered(&l);
    meshcoll_op_free(op);
}

Test(device, messages_fit_their_slots)
{
    mc_mesh_t mesh;
    mc_strategy_t s;
    lowered_t l = {0};
    mc_device_program_t *program = NULL;
    mc_device_call_t call = {0};
    cr_assert_eq(mc_mesh_parse("gpu=8", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_parse("scatter:mst(gpu)", MESHCOLL_SCATTER, &mesh, &s), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_plan(&s, &mesh, 0, 0, &l.plan), MESHCOLL_OK);
    open_buffers(&l);
    const mc_operands_t operands = {
        .in = l.in, .out = l.out, .count = 100, .datatype = MESHCOLL_UINT8};
    lower_plan(&l, l.plan, &operands);
    cr_assert_eq(l.widest, 4);
    cr_assert_eq(mc_device_lower(&l.binding, 3, 2, NULL, NULL, &program), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(mc_device_lower(&l.binding, 4, 0, NULL, NULL, &program), MESHCOLL_ERR_INVALID_ARG);
    cr_assert_eq(mc_device_call(l.program, 4 * 32 - 1, true, &call), MESHCOLL_ERR_UNSUPPORTED);
    cr_assert_eq(mc_device_call(l.program, 8 * 32, true, &call), MESHCOLL_OK);
    cr_assert_eq(call.piece, 32);
    cr_assert_eq(mc_device_call(l.program, 4 * 16 - 1, false, &call), MESHCOLL_ERR_UNSUPPORTED);
    cr_assert_eq(mc_device_call(l.program, 4 * 16 + 40, false, &call), MESHCOLL_OK);
    cr_assert_eq(call.piece, 16);
    /* 100 bytes are 7 words, of which the first of two blocks has 4 */
    cr_assert_eq(call.passes, 4);
    close_lowered(&l);
}
