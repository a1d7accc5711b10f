#include "gpu/launch/programs.h"

#include "compose/algorithms/placement.h"
#include "gpu/launch/price.h"
#include "gpu/mesh/gpu.h"
#include "gpu/stream/signals.h"
#include "runtime/call/args.h"
#include "runtime/call/request.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finding ----------------------------------------------------------------------------------------- */

static bool serves(const mc_gpu_program_t *p, const meshcoll_args_t *a, const mc_ranked_t *choice,
                   const mc_gpu_window_t *window)
{
    return !p->tables && p->asked.collective == (int32_t)a->collective &&
           p->asked.datatype == (int32_t)a->datatype && p->asked.count == a->count &&
           p->op == a->op && p->root == a->root && p->window == window &&
           p->in_place == (a->in == a->out) && mc_strategy_equal(&p->strategy, &choice->strategy);
}

static bool has_tables(const meshcoll_args_t *a)
{
    return a->counts || a->in_counts || a->counts_at_root;
}

/* Moves it to the front. */
static mc_gpu_program_t *find(mc_gpu_t *gpu, const meshcoll_args_t *a, const mc_ranked_t *choice,
                              const mc_gpu_window_t *window)
{
    if (has_tables(a))
        return NULL;
    for (mc_gpu_program_t **at = &gpu->programs, *p; (p = *at); at = &p->next)
        if (serves(p, a, choice, window)) {
            *at = p->next;
            p->next = gpu->programs;
            return gpu->programs = p;
        }
    return NULL;
}

const mc_gpu_program_t *mc_gpu_program_find(const mc_gpu_t *gpu, uint32_t number)
{
    const mc_gpu_program_t *p = gpu->programs;
    while (p && p->number != number)
        p = p->next;
    return p;
}

/* Freeing ----------------------------------------------------------------------------------------- */

static void free_program(mc_gpu_t *gpu, mc_gpu_program_t *p)
{
    if (p->memory)
        mc_gpu_memory_return(gpu, p->memory);
    free(p->lane);
    free(p->route);
    mc_device_program_free(p->lowered);
    free(p);
}

static bool is_idle(const mc_gpu_t *gpu, const mc_gpu_program_t *p)
{
    return !p->held && !p->captured && p->last <= gpu->n_done;
}

/* Who only enqueues does not ask how launches fare, and the last one may never be complete. */
static void learn_passed(mc_gpu_t *gpu)
{
    if (gpu->n_passed == 0 || mc_cuda()->event_query(gpu->passed))
        return;
    gpu->n_done = gpu->n_passed > gpu->n_done ? gpu->n_passed : gpu->n_done;
    gpu->n_passed = 0;
}

/* Frees those used first that nothing needs, and keeps so many. */
static void sweep(mc_gpu_t *gpu)
{
    uint32_t kept = 0;
    learn_passed(gpu);
    for (mc_gpu_program_t **at = &gpu->programs, *p; (p = *at);) {
        if ((kept >= MC_GPU_PROGRAMS || p->tables) && is_idle(gpu, p)) {
            *at = p->next;
            free_program(gpu, p);
            continue;
        }
        kept++;
        at = &p->next;
    }
}

/* A graph that still has one may not be launched any more. */
int mc_gpu_programs_drop(mc_gpu_t *gpu, const mc_gpu_window_t *window)
{
    for (const mc_gpu_program_t *p = gpu->programs; p; p = p->next)
        if (p->window == window && p->held)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "meshcoll_deregister: a persistent request writes to this memory: free "
                           "such requests first");
    for (mc_gpu_program_t **at = &gpu->programs, *p; (p = *at);) {
        if (p->window != window) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free_program(gpu, p);
    }
    return MESHCOLL_OK;
}

void mc_gpu_programs_free(mc_gpu_t *gpu)
{
    for (mc_gpu_program_t *p = gpu->programs, *next; p; p = next) {
        next = p->next;
        free_program(gpu, p);
    }
    gpu->programs = NULL;
}

/* Making ------------------------------------------------------------------------------------------ */

/* A call's plans are over mesh ranks, or over the communicator's (mc_plans_by_comm). */
typedef struct {
    meshcoll_t *mesh;
    const meshcoll_args_t *args;
    const mc_strategy_t *strategy;
    const mc_forwarded_t *forwarded;
    const mc_gpu_window_t *window;
    bool by_comm;
    mc_plan_t *plan;
    mc_binding_t binding;
    mc_device_tracks_t tracks;
    mc_gpu_load_t load; /* of all ranks */
    bool ll;            /* messages have flags in their data */
    bool tries;
} making_t;

static int refuse_trial(void)
{
    return mc_fail(MESHCOLL_ERR_NO_MEMORY,
                   "a strategy is not tried on device memory: it needs more than calls have taken");
}

static int plan_of(const making_t *m, int32_t rank, mc_plan_t **plan)
{
    const meshcoll_t *const h = m->mesh;
    const int32_t root = m->args->root;
    return mc_strategy_plan(m->strategy, &h->mesh, rank,
                            m->by_comm ? mc_comm_rank_of(&h->order, root) : root, plan);
}

static int32_t planned_rank(const making_t *m, int32_t mesh_rank)
{
    return m->by_comm ? mc_comm_rank_of(&m->mesh->order, mesh_rank) : mesh_rank;
}
static int32_t mesh_rank(const making_t *m, int32_t planned)
{
    return m->by_comm ? mc_mesh_rank_of(&m->mesh->order, planned) : planned;
}

/* What all ranks send; each finds it by itself, once for a program, and sums it in the same order: what is chosen by it
 * must be the same on all. */
static int measure(making_t *m)
{
    for (int32_t r = 0; r < m->mesh->mesh.size; r++) {
        const bool own = r == m->plan->rank;
        mc_plan_t *plan = m->plan;
        const int status = own ? MESHCOLL_OK : plan_of(m, r, &plan);
        if (status)
            return status;
        mc_gpu_load_add(&m->load, &m->tracks, &m->mesh->links, plan);
        if (!own)
            mc_plan_free(plan);
    }
    return MESHCOLL_OK;
}

/* Bytes of a chunk, on the average. With tables of counts ranks may know different ones. */
static double chunk_of(const making_t *m)
{
    const bool has_blocks = mc_move_has_blocks(&mc_moves[m->plan->collective]);
    return (double)m->args->count * (double)meshcoll_datatype_size(m->args->datatype) *
           (has_blocks ? m->mesh->mesh.size : 1) / m->plan->n_chunks;
}

static void choose_tracks(making_t *m)
{
    const mc_gpu_layout_t *const l = &m->mesh->gpu->arena.layout;
    if (m->tracks.n > 1 &&
        (has_tables(m->args) ||
         !mc_gpu_tracks_pay(&m->tracks, &m->load, l, chunk_of(m), m->strategy->segments)))
        m->tracks = (mc_device_tracks_t){.n = 1};
}

/* Are the messages better with flags in their data? The stream executor copies messages, and has no such. */
static bool takes_ll(const making_t *m)
{
    const meshcoll_t *const h = m->mesh;
    mc_gpu_layout_t l = h->gpu->arena.layout;
    const double chunk = chunk_of(m), beta = mc_gpu_slowest(&h->links, &h->mesh);
    l.blocks /= m->tracks.n;
    return !has_tables(m->args) && !h->gpu->signals &&
           mc_gpu_protocol_seconds(&m->load, &l, chunk, beta, true) <
               mc_gpu_protocol_seconds(&m->load, &l, chunk, beta, false);
}

/* An alltoallv that passes blocks through other ranks needs their counts. */
static int check_passing(const making_t *m)
{
    const mc_strategy_t *const s = m->strategy;
    const int32_t pairwise = mc_algorithm_find(MESHCOLL_ALLTOALL, "pairwise", strlen("pairwise"));
    if (!m->args->in_counts || m->forwarded || s->n_phases == 0 ||
        (s->n_phases == 1 && s->phase[0].algorithm == pairwise))
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "alltoallv in a stream: this strategy passes blocks through other ranks, which "
                   "have to wait for their counts first: expected a blocking call, a persistent "
                   "request, or a strategy that sends each block directly, as alltoall:pairwise "
                   "does");
}

/* Direct messages --------------------------------------------------------------------------------- */

/* The plans and bindings of the ranks on this machine, which each of them makes for a call whose OUT is registered: they
 * say which messages go straight there, and where to. */
typedef struct {
    mc_arena_t arena;
    mc_plan_t **plan;
    mc_binding_t *binding;
    unsigned char *linked;
    mc_direct_t direct;
} near_t;

static int bind_rank(const making_t *m, int32_t rank, mc_plan_t **plan, mc_binding_t *binding)
{
    const mc_operands_t operands = mc_operands_of(m->args);
    int status = plan_of(m, planned_rank(m, rank), plan);
    if (!status)
        status = mc_binding_init(binding, *plan);
    binding->block_of = m->by_comm ? NULL : m->mesh->order.comm_rank;
    return status ? status : mc_binding_measure(binding, &operands);
}

static void close_near(near_t *k)
{
    const int32_t n = k->direct.world.n;
    mc_arena_free(&k->direct.arena);
    for (int32_t i = 0; i < n && k->plan && k->binding; i++) {
        if (k->plan[i])
            mc_binding_free(&k->binding[i]);
        mc_plan_free(k->plan[i]);
    }
    mc_arena_free(&k->arena);
}

static int open_near(const making_t *m, near_t *near)
{
    const mc_gpu_arena_t *const arena = &m->mesh->gpu->arena;
    const int32_t size = m->mesh->mesh.size, own = m->mesh->rank;
    const size_t room = (size_t)size;
    near_t k = {.plan = NULL};
    k.plan = mc_arena_take(&k.arena, room, sizeof(mc_plan_t *));
    k.binding = mc_arena_take(&k.arena, room, sizeof *k.binding);
    k.linked = mc_arena_take(&k.arena, room, room);
    int32_t *const rank = mc_arena_take(&k.arena, room, sizeof *rank);
    int status = k.arena.failed ? mc_fail_memory("plans of other ranks") : MESHCOLL_OK;
    int32_t n = 0;
    for (int32_t r = 0; r < size && !status; r++)
        if (arena->layout.machine[own] == arena->layout.machine[r]) {
            rank[n] = r;
            status = bind_rank(m, r, &k.plan[n], &k.binding[n]);
            n++;
        }
    for (int32_t i = 0; i < n && !status; i++)
        for (int32_t j = 0; j < n; j++)
            k.linked[i * n + j] = i != j && !mc_gpu_arena_by_host(arena, rank[i], rank[j]);
    const mc_direct_world_t world = {.n = n,
                                     .binding = k.binding,
                                     .linked = k.linked,
                                     .apart = m->args->collective == MESHCOLL_ALLTOALL &&
                                              m->args->in != m->args->out,
                                     .blocks = arena->layout.blocks};
    if (!status)
        status = mc_direct_find(&world, &k.direct);
    if (status) {
        k.direct = (mc_direct_t){.world = {.n = size}};
        close_near(&k);
        return status;
    }
    *near = k;
    return MESHCOLL_OK;
}

/* Lowering ---------------------------------------------------------------------------------------- */

/* Messages with flags in their data take slots, and so do those of several tracks, whose order is not proved
 * (gpu/program/direct.h). */
static int lower_bound(const making_t *m, mc_gpu_program_t *p)
{
    const uint32_t widest = m->load.widest, blocks = m->mesh->gpu->arena.layout.blocks;
    near_t near;
    if (!m->window || m->ll || m->tracks.n > 1)
        return mc_device_lower(&m->binding, widest, blocks, &m->tracks, NULL, &p->lowered);
    int status = open_near(m, &near);
    if (status)
        return status;
    status = mc_device_lower(&m->binding, widest, blocks, NULL, &near.direct, &p->lowered);
    close_near(&near);
    return status;
}

static void count_messages(mc_gpu_program_t *p)
{
    for (uint32_t i = 0; i < p->lowered->n_peers; i++) {
        p->n_sent += mc_device_messages(p->lowered, 2 * i, false);
        p->n_direct += mc_device_messages(p->lowered, 2 * i, true);
    }
}

static void count_bytes(const making_t *m, mc_gpu_program_t *p)
{
    const mc_mesh_t *const mesh = &m->mesh->mesh;
    for (uint32_t i = 0; i < m->plan->n_steps; i++) {
        const mc_step_t *const s = &m->plan->step[i];
        if (mc_op_sends((mc_op_t)s->op))
            p->sent[mc_mesh_level(mesh, m->mesh->rank, mesh_rank(m, s->peer))] +=
                m->binding.step[i].bytes;
    }
}

static int lower(making_t *m, mc_gpu_program_t *p)
{
    mc_operands_t operands = mc_operands_of(m->args);
    int status = plan_of(m, planned_rank(m, m->mesh->rank), &m->plan);
    if (!status)
        status = check_passing(m);
    if (!status)
        status = measure(m);
    operands.forwarded = m->forwarded;
    if (!status)
        status = mc_args_own_counts(m->mesh, m->args, &operands);
    if (!status)
        status = mc_binding_init(&m->binding, m->plan);
    m->binding.block_of = m->by_comm ? NULL : m->mesh->order.comm_rank;
    if (!status)
        status = mc_binding_measure(&m->binding, &operands);
    if (status)
        return status;
    choose_tracks(m);
    m->ll = takes_ll(m);
    status = lower_bound(m, p);
    if (!status) {
        count_bytes(m, p);
        count_messages(p);
    }
    p->scratch = m->binding.scratch_bytes;
    const mc_gpu_memory_t *const had = m->mesh->gpu->scratch;
    if (!status && m->tries && p->scratch > (had ? had->bytes : 0))
        status = refuse_trial();
    return status;
}

/* Lanes that have messages to ranks of other machines, or from them, are the proxy's. */
static int find_routes(const making_t *m, mc_gpu_program_t *p)
{
    mc_proxy_end_t *const end = m->mesh->gpu->end;
    const uint32_t n = end ? 2 * p->lowered->n_peers : 0;
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; !status && i < n; i++) {
        const int32_t peer = mesh_rank(m, p->lowered->peer[i / 2]);
        if (!mc_proxy_is_far(m->mesh, peer) || mc_device_messages(p->lowered, i, false) == 0)
            continue;
        if (!p->route && !(p->route = calloc(n, sizeof(mc_route_t *))))
            return mc_fail_memory("the routes of a program");
        if (m->tries && !mc_proxy_find_route(end, peer, i % 2))
            return refuse_trial();
        status = mc_proxy_route(end, peer, i % 2, &p->route[i]);
    }
    return status;
}

static mc_device_lane_t lane_of(const making_t *m, const mc_gpu_program_t *p, uint32_t i,
                                uint32_t block)
{
    const mc_route_t *const route = p->route ? p->route[i] : NULL;
    const int32_t peer = mesh_rank(m, p->lowered->peer[i / 2]);
    mc_device_lane_t lane = mc_gpu_arena_lane(&m->mesh->gpu->arena, peer, i % 2, block, p->call.ll);
    if (route)
        return mc_route_lane(route, block, lane.count);
    if (mc_proxy_is_far(m->mesh, peer))
        return (mc_device_lane_t){0}; /* it has no messages */
    if (mc_device_messages(p->lowered, i, true) > 0)
        lane.window = (char *)(uintptr_t)m->window->peer[peer];
    else
        lane.begun = NULL;
    return lane;
}

/* Counts peers whose messages lie in memory of the host. */
static void count_by_host(const making_t *m, mc_gpu_program_t *p)
{
    const mc_gpu_t *const gpu = m->mesh->gpu;
    for (uint32_t i = 0; i < p->lowered->n_peers; i++) {
        bool far = false;
        for (uint32_t lane = 2 * i; lane < 2 * i + 2 && p->route; lane++) {
            const mc_route_t *const route = p->route[lane];
            far = far || (route && !route->params.slots);
        }
        const int32_t peer = mesh_rank(m, p->lowered->peer[i]);
        p->by_host += far || mc_gpu_arena_by_host(&gpu->arena, m->mesh->rank, peer);
        p->why_host = far ? mc_proxy_why_host(gpu->end) : p->why_host;
    }
}

static void fill_lanes(const making_t *m, mc_gpu_program_t *p, mc_device_lane_t *lane)
{
    const uint32_t blocks = m->mesh->gpu->arena.layout.blocks;
    count_by_host(m, p);
    for (uint32_t i = 0; i < 2 * p->lowered->n_peers * blocks; i++)
        lane[i] = lane_of(m, p, i / blocks, i % blocks);
}

/* Copies runs and lanes to the GPU; waits for the copy, not for other streams. */
static int upload(const making_t *m, mc_gpu_program_t *p)
{
    const mc_cuda_t *const cuda = mc_cuda();
    mc_gpu_t *const gpu = m->mesh->gpu;
    const size_t runs = p->lowered->n_runs * sizeof *p->lowered->run;
    const size_t ends = (size_t)2 * p->lowered->n_peers * gpu->arena.layout.blocks;
    const size_t bytes = runs + ends * sizeof(mc_device_lane_t);
    if (bytes == 0)
        return MESHCOLL_OK;
    char *const image = malloc(bytes);
    if (!image)
        return mc_fail_memory("a program");
    if (runs > 0)
        memcpy(image, p->lowered->run, runs);
    fill_lanes(m, p, (mc_device_lane_t *)(void *)(image + runs));
    int status = mc_gpu_memory_take(gpu, bytes, "allocate memory for a program", &p->memory);
    const mc_cu_address_t at = status ? 0 : p->memory->at;
    if (!status)
        status = mc_cuda_status(cuda->copy_in(at, image, bytes, gpu->stream), "copy a program");
    if (!status)
        status = mc_cuda_status(cuda->stream_synchronize(gpu->stream), "copy a program");
    free(image);
    p->call.run = (const mc_device_run_t *)(uintptr_t)at;
    p->call.lane = (const mc_device_lane_t *)(uintptr_t)(at + runs);
    return status;
}

/* The same for the stream executor. */
static int make_lanes(const making_t *m, mc_gpu_program_t *p)
{
    const mc_gpu_t *const gpu = m->mesh->gpu;
    const uint32_t n = 2 * p->lowered->n_peers;
    if (n == 0)
        return MESHCOLL_OK;
    p->lane = calloc(n, sizeof *p->lane);
    if (!p->lane)
        return mc_fail_memory("a program");
    for (uint32_t i = 0; i < n; i++) {
        const int32_t peer = mesh_rank(m, p->lowered->peer[i / 2]);
        mc_stream_lane_t *const lane = &p->lane[i];
        lane->slots =
            (mc_cu_address_t)(uintptr_t)mc_gpu_arena_lane(&gpu->arena, peer, i % 2, 0, false).slots;
        mc_stream_signals_lane(gpu->signals, peer, i % 2, lane);
        if (mc_device_messages(p->lowered, i, true) > 0)
            lane->window = m->window->peer[peer];
        else
            lane->begun = 0;
    }
    return MESHCOLL_OK;
}

static int find_kernel(const mc_gpu_t *gpu, mc_gpu_program_t *p)
{
    char name[64];
    if (gpu->signals && p->lowered->body == MC_DEVICE_BODY_move)
        return MESHCOLL_OK;
    snprintf(name, sizeof name, "mc_%s_%s", gpu->signals ? "sum" : "walk",
             mc_device_body_name(p->lowered->body));
    return mc_cuda_status(mc_cuda()->module_function(&p->kernel, gpu->module, name),
                          "find a kernel of meshcoll's");
}

static int fill_call(const making_t *m, mc_gpu_program_t *p)
{
    const mc_gpu_t *const gpu = m->mesh->gpu;
    const mc_gpu_layout_t *const l = &gpu->arena.layout;
    const int status =
        mc_device_call(p->lowered, m->ll ? l->ll_bytes : l->slot_bytes, m->ll, &p->call);
    if (status)
        return status;
    p->call.track = mc_gpu_arena_tracks(&gpu->arena);
    p->call.lanes = m->window && !m->ll ? 2 * p->lowered->n_peers : 0;
    p->call.abort_word = (const uint32_t *)(uintptr_t)m->mesh->job->gpu->alarm.address;
    p->call.report = (mc_device_report_t *)(uintptr_t)gpu->report_address;
    p->call.program = p->number;
    return MESHCOLL_OK;
}

static int make(making_t *m, mc_gpu_program_t *p)
{
    int status = lower(m, p);
    if (!status)
        status = fill_call(m, p);
    if (!status)
        status = find_routes(m, p);
    if (!status)
        status = find_kernel(m->mesh->gpu, p);
    if (!status)
        status = m->mesh->gpu->signals ? make_lanes(m, p) : upload(m, p);
    mc_binding_free(&m->binding);
    mc_plan_free(m->plan);
    return status;
}

/* The context is current. */
static int add(making_t *m, mc_gpu_program_t **program)
{
    const meshcoll_t *const h = m->mesh;
    const meshcoll_args_t *const a = m->args;
    mc_gpu_t *const gpu = h->gpu;
    sweep(gpu);
    mc_gpu_program_t *const p = calloc(1, sizeof *p);
    if (!p)
        return mc_fail_memory("a program");
    const mc_move_t *const move = &mc_moves[a->collective];
    *p = (mc_gpu_program_t){
        .number = gpu->next_program++,
        .op = a->op,
        .root = a->root,
        .in_place = a->in == a->out,
        .tables = has_tables(a),
        .window = m->window,
        .strategy = *m->strategy,
        .by_comm = m->by_comm,
        .asked = {.mesh = mc_wait_part(h),
                  .collective = (int32_t)a->collective,
                  .datatype = (int32_t)a->datatype,
                  .op = move->reduces ? mc_wait_op(a->op) : -1,
                  .root = move->rooted ? mc_comm_rank_of(&h->order, a->root) : -1,
                  .digest = mc_digest_on_device(h, a),
                  .count = a->count}};
    const int status = make(m, p);
    if (status) {
        free_program(gpu, p);
        return status;
    }
    p->next = gpu->programs;
    gpu->programs = p;
    *program = p;
    return MESHCOLL_OK;
}

int mc_gpu_program(meshcoll_t *h, const meshcoll_args_t *a, const mc_ranked_t *choice,
                   const mc_forwarded_t *forwarded, bool tries, mc_gpu_program_t **program)
{
    mc_gpu_t *const gpu = h->gpu;
    const mc_gpu_window_t *const window = mc_gpu_window(h, a);
    mc_gpu_program_t *const p = find(gpu, a, choice, window);
    mc_gpu_visit_t visit;
    if (p) {
        *program = p;
        return MESHCOLL_OK;
    }
    making_t m = {.mesh = h,
                  .args = a,
                  .strategy = &choice->strategy,
                  .forwarded = forwarded,
                  .tries = tries,
                  .window = window,
                  .by_comm = mc_plans_by_comm(h, a),
                  .tracks = mc_gpu_tracks(&choice->strategy, &h->mesh, gpu->arena.layout.blocks)};
    int status = mc_gpu_visit(gpu->context, &visit);
    if (status)
        return status;
    status = add(&m, program);
    mc_gpu_leave(&visit);
    return status;
}
