#include "box.h"

#include "compose/strategy/strategy.h"
#include "runtime/call/request.h"
#include "support/program_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

unsigned mc_box_seconds;

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, meshcoll_last_error());
    exit(2);
}

static void *room(size_t bytes)
{
    void *memory = NULL;
    need(posix_memalign(&memory, 64, bytes + 64) == 0, "memory");
    return memory;
}

mc_box_t *mc_box_open(const char *mesh)
{
    mc_box_t *const box = calloc(1, sizeof *box);
    need(box, "memory");
    need(mc_mesh_parse(mesh, &box->mesh) == MESHCOLL_OK, mesh);
    need(box->mesh.size <= MC_BOX_RANKS, "a mesh of more ranks than a box has");
    snprintf(box->text, sizeof box->text, "%s", mesh);
    box->memory = calloc(1, MC_BOX_BYTES + MC_DEVICE_WORD);
    need(box->memory, "memory");
    box->slots = box->memory + (-(uintptr_t)box->memory) % MC_DEVICE_WORD;
    return box;
}

mc_box_t *mc_box_open_far(const char *mesh, const char *machines)
{
    mc_box_t *const box = mc_box_open(mesh);
    box->far = mc_far_open(box->mesh.size, machines, MC_BOX_BLOCKS, MC_BOX_SLOT);
    return box;
}

void mc_box_reset(mc_box_t *box)
{
    memset(box->lane, 0, sizeof box->lane);
    memset(box->track, 0, sizeof box->track);
    memset(box->slots, 0, MC_BOX_BYTES);
}

void mc_box_close(mc_box_t *box)
{
    if (box->far)
        mc_far_close(box->far);
    free(box->memory);
    free(box);
}

/* Making a run ------------------------------------------------------------------------------------ */

char *mc_box_slots(const mc_box_t *box, bool ll, int from, int to, uint32_t block)
{
    const size_t pair = ((size_t)ll * MC_BOX_RANKS + (size_t)from) * MC_BOX_RANKS + (size_t)to;
    return box->slots + (pair * MC_BOX_BLOCKS + block) * MC_BOX_LANE;
}

static void wire(mc_box_run_t *run, int rank)
{
    mc_box_rank_t *const r = &run->rank[rank];
    const uint32_t blocks = run->how.blocks;
    const bool ll = run->how.ll;
    r->end = calloc((size_t)2 * r->program->n_peers * blocks + 1, sizeof *r->end);
    need(r->end, "memory");
    for (uint32_t i = 0; i < 2 * r->program->n_peers * blocks; i++) {
        const int peer = r->program->peer[i / blocks / 2];
        const bool receives = i / blocks % 2;
        const int from = receives ? peer : rank, to = receives ? rank : peer;
        mc_box_lane_t *const lane = &run->box->lane[ll][from][to][i % blocks];
        if (run->box->far && mc_far_joins(run->box->far, from, to)) {
            r->end[i] = mc_far_lane(run->box->far, from, to, receives, i % blocks,
                                    receives ? &lane->taken : &lane->sent);
            continue;
        }
        r->end[i] = (mc_device_lane_t){.slots = mc_box_slots(run->box, ll, from, to, i % blocks),
                                       .awaited = receives ? &lane->flag : &lane->credit,
                                       .raised = receives ? &lane->credit : &lane->flag,
                                       .count = receives ? &lane->taken : &lane->sent};
        if (mc_device_messages(r->program, i / blocks, true) == 0)
            continue;
        r->end[i].begun = &lane->begun;
        r->end[i].launches = &lane->opened[receives];
        r->end[i].window = run->rank[peer].buffers.out;
        if (receives && i % blocks == 0)
            run->box->n_direct += mc_device_messages(r->program, i / blocks, true);
    }
}

static void bind_rank(mc_box_run_t *run, int rank)
{
    mc_box_rank_t *const r = &run->rank[rank];
    const meshcoll_args_t args = mc_case_args(&run->c, &r->buffers, NULL);
    const mc_operands_t operands = mc_operands_of(&args);
    need(mc_binding_init(&r->binding, r->plan) == MESHCOLL_OK, run->name);
    need(mc_binding_measure(&r->binding, &operands) == MESHCOLL_OK, run->name);
}

/* Of ranks of one machine, for calls in which all ranks have an OUT. */
static void find_direct(mc_box_run_t *run, mc_direct_t *direct)
{
    static mc_binding_t binding[MC_BOX_RANKS];
    static unsigned char linked[MC_BOX_RANKS * MC_BOX_RANKS];
    const int n = run->box->mesh.size;
    for (int i = 0; i < n; i++) {
        binding[i] = run->rank[i].binding;
        for (int j = 0; j < n; j++)
            linked[i * n + j] = i != j && !(run->box->far && mc_far_joins(run->box->far, i, j));
    }
    const mc_direct_world_t world = {.n = n,
                                     .binding = binding,
                                     .linked = linked,
                                     .apart =
                                         run->c.collective == MESHCOLL_ALLTOALL && !run->c.in_place,
                                     .blocks = run->how.blocks};
    need(mc_direct_find(&world, direct) == MESHCOLL_OK, run->name);
}

static void lower(mc_box_run_t *run, int rank, uint32_t widest, const mc_direct_t *direct)
{
    mc_box_rank_t *const r = &run->rank[rank];
    need(mc_device_lower(&r->binding, widest, run->how.blocks, &run->tracks, direct, &r->program) ==
             MESHCOLL_OK,
         run->name);
    r->scratch = room(r->binding.scratch_bytes);
    /* in place a block lies in the vector, and the check looks at the block alone */
    const uint64_t all[] = {r->buffers.bytes[0], r->buffers.bytes[1], r->binding.scratch_bytes};
    need(mc_device_program_check(r->program, all) == MESHCOLL_OK, run->name);
}

uint32_t mc_box_digest(const mc_box_run_t *run, int rank)
{
    const uint32_t digest = 311 * run->box->calls + (rank + 1 == run->how.differs);
    return digest & ((1u << MC_DEVICE_DIGEST_BITS) - 1);
}

static void launch(mc_box_run_t *run, int rank)
{
    mc_box_rank_t *const r = &run->rank[rank];
    mc_device_program_t *const p = r->program;
    wire(run, rank);
    need(mc_device_call(p, run->how.slot_bytes, run->how.ll, &r->call) == MESHCOLL_OK, run->name);
    r->call.track = run->box->track[rank];
    r->call.buffer[MC_DEVICE_IN] = r->buffers.in;
    r->call.buffer[MC_DEVICE_OUT] = r->buffers.out;
    r->call.buffer[MC_DEVICE_SCRATCH] = r->scratch;
    r->call.lane = r->end;
    r->call.abort_word = &run->abort_word;
    r->call.limit = run->how.limit;
    r->call.report = r->report;
    r->call.digest = mc_box_digest(run, rank);
    r->call.lanes = run->how.registered ? 2 * p->n_peers : 0;
    if (run->box->far)
        mc_far_give(run->box->far, rank, p, &r->call);
}

static void settle(mc_box_how_t *how, uint32_t widest)
{
    how->blocks = how->blocks ? how->blocks : 1;
    how->threads = how->threads ? how->threads : 1;
    how->limit = how->limit ? how->limit : 20000000000u;
    const uint32_t least = widest * MC_DEVICE_WORD * (how->ll ? 2 : 1);
    if (how->slot_bytes < least)
        how->slot_bytes = least;
    need(how->slot_bytes <= MC_BOX_SLOT, "a slot of that size");
}

mc_box_run_t *mc_box_run_open(mc_box_t *box, const mc_case_t *c, const char *strategy,
                              const mc_box_how_t *how)
{
    const mc_mesh_t *const mesh = &box->mesh;
    mc_box_run_t *const run = calloc(1, sizeof *run);
    mc_strategy_t s;
    char what[128];
    uint32_t widest = 1;
    need(run, "memory");
    *run = (mc_box_run_t){.box = box, .c = *c, .how = *how};
    snprintf(run->name, sizeof run->name, "%s on %s: %s", mc_case_print(c, what, sizeof what),
             box->text, strategy);
    need(mc_strategy_parse(strategy, c->collective, mesh, &s) == MESHCOLL_OK, run->name);
    for (int r = 0; r < mesh->size; r++) {
        mc_box_rank_t *const rank = &run->rank[r];
        need(mc_strategy_plan(&s, mesh, r, c->root, &rank->plan) == MESHCOLL_OK, run->name);
        need(mc_case_open(c, r, mesh->size, &rank->buffers) == 0, "memory");
        const uint32_t own = mc_device_widest(rank->plan);
        widest = own > widest ? own : widest;
    }
    run->how.ll = run->how.ll && !box->far; /* a proxy reads no flags in the data */
    settle(&run->how, widest);
    run->tracks = mc_gpu_tracks(&s, mesh, run->how.registered ? 1 : run->how.blocks);
    if (box->blocks != run->how.blocks) /* that of all calls, else */
        memset(box->track, 0, sizeof box->track);
    box->blocks = run->how.blocks;
    box->calls++;
    if (box->far)
        mc_far_settle(box->far, run->how.slot_bytes);
    run->how.registered = run->how.registered && !run->how.ll && c->collective != MESHCOLL_REDUCE &&
                          c->collective != MESHCOLL_GATHER;
    mc_direct_t direct = {.first = NULL};
    for (int r = 0; r < mesh->size; r++)
        bind_rank(run, r);
    if (run->how.registered)
        find_direct(run, &direct);
    for (int r = 0; r < mesh->size; r++)
        lower(run, r, widest, run->how.registered ? &direct : NULL);
    mc_arena_free(&direct.arena);
    for (int r = 0; r < mesh->size; r++)
        launch(run, r);
    return run;
}

void mc_box_run_close(mc_box_run_t *run)
{
    for (int i = 0; i < run->box->mesh.size; i++) {
        mc_box_rank_t *const r = &run->rank[i];
        free(r->end);
        free(r->scratch);
        mc_device_program_free(r->program);
        mc_binding_free(&r->binding);
        mc_plan_free(r->plan);
        mc_case_close(&r->buffers);
    }
    free(run);
}

/* Running it -------------------------------------------------------------------------------------- */

typedef struct {
    mc_box_run_t *run;
    int rank;
    uint32_t block;
    mc_thread_t self;
    pthread_t thread;
} worker_t;

static void *work(void *argument)
{
    const worker_t *const w = argument;
    const mc_box_rank_t *const r = &w->run->rank[w->rank];
    if (w->run->how.delay[w->rank] > 0) {
        usleep(w->run->how.delay[w->rank]);
        if (w->run->how.spoils)
            memset(r->buffers.out, 0x5a, r->buffers.bytes[1]);
    }
    mc_host_naps = w->self.index > 0 ? w->run->how.naps : 0;
    mc_host_walk(w->self, &r->call, w->block, r->program->body);
    return NULL;
}

void mc_box_run(mc_box_run_t *run)
{
    static worker_t worker[MC_BOX_RANKS * MC_BOX_BLOCKS * MC_BOX_THREADS];
    static mc_meet_t meet[MC_BOX_RANKS * MC_BOX_BLOCKS];
    const mc_box_how_t *const how = &run->how;
    uint32_t n = 0, met = 0;
    mc_host_yields = how->yields;
    if (mc_box_seconds > 0)
        alarm(mc_box_seconds);
    if (run->box->far)
        mc_far_start(run->box->far);
    for (int r = 0; r < run->box->mesh.size; r++)
        for (uint32_t b = 0; r != how->absent - 1 && b < how->blocks; b++, met++) {
            meet[met].any = 0;
            need(pthread_barrier_init(&meet[met].barrier, NULL, how->threads) == 0, "a barrier");
            for (uint32_t t = 0; t < how->threads; t++, n++)
                worker[n] = (worker_t){run, r, b, {t, how->threads, &meet[met]}, 0};
        }
    for (uint32_t i = 0; i < n; i++)
        need(pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0, "a thread");
    if (how->abort_after > 0) {
        usleep(how->abort_after);
        __atomic_store_n(&run->abort_word, 1, __ATOMIC_RELAXED);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(worker[i].thread, NULL);
    for (uint32_t i = 0; i < met; i++)
        pthread_barrier_destroy(&meet[i].barrier);
    run->lost = run->box->far && !mc_far_stop(run->box->far);
}

bool mc_box_run_check(const mc_box_run_t *run)
{
    char buffer[256];
    if (run->lost) {
        printf("%s: not all messages went between machines\n", run->name);
        return false;
    }
    for (int r = 0; r < run->box->mesh.size; r++) {
        const mc_box_rank_t *const rank = &run->rank[r];
        for (uint32_t b = 0; b < run->how.blocks; b++) {
            if (rank->report[b].status == MC_DEVICE_DONE)
                continue;
            mc_text_t text = mc_text(buffer, sizeof buffer);
            mc_device_report_print(rank->program, &rank->report[b], &text);
            printf("%s: rank %d, block %u: %s\n", run->name, r, b, buffer);
            return false;
        }
        if (mc_case_check(&run->c, &rank->buffers, buffer, sizeof buffer)) {
            printf("%s (%u blocks of %u threads, slots of %u bytes%s): %s\n", run->name,
                   run->how.blocks, run->how.threads, run->how.slot_bytes,
                   run->how.ll           ? ", flags in the data"
                   : run->how.registered ? ", OUT is registered"
                                         : "",
                   buffer);
            return false;
        }
    }
    return true;
}

bool mc_box_case(mc_box_t *box, const mc_case_t *c, const char *strategy, const mc_box_how_t *how)
{
    mc_box_run_t *const run = mc_box_run_open(box, c, strategy, how);
    mc_box_run(run);
    const bool good = mc_box_run_check(run);
    mc_box_run_close(run);
    if (!good)
        mc_box_reset(box);
    return good;
}
