/* Registered memory: results of calls whose output lies there, what is refused, and what is left. */
#include "rig.h"

#include "gpu/launch/programs.h"
#include "support/strategies.h"

#include <string.h>

enum { BYTES = 1 << 20, APART = 1024 };

/* Memory of the test's, registered at another place of its allocation on each rank. */
typedef struct {
    mc_cu_address_t allocation, at;
    meshcoll_registration_t *registration;
} memory_t;

static mc_cu_address_t allocate(size_t bytes)
{
    mc_cu_address_t at;
    NEED(cuMemAlloc_v2(&at, bytes) == 0);
    return at;
}

static void *pointer(mc_cu_address_t at)
{
    return (void *)(uintptr_t)at;
}

static void open_memory(meshcoll_t *mesh, memory_t *m)
{
    m->allocation = allocate(BYTES + 16 * APART);
    m->at = m->allocation + (mc_cu_address_t)rig_rank * APART;
    NEED(meshcoll_register(mesh, pointer(m->at), BYTES, &m->registration) == MESHCOLL_OK);
}

static void close_memory(memory_t *m)
{
    NEED(meshcoll_deregister(m->registration) == MESHCOLL_OK);
    NEED(cuMemFree_v2(m->allocation) == 0);
}

/* Messages of the mesh's programs that go straight to registered memory. */
static unsigned count_direct(const meshcoll_t *mesh)
{
    unsigned n = 0;
    for (const mc_gpu_program_t *p = mesh->gpu->programs; p; p = p->next)
        n += p->n_direct;
    return n;
}

static const meshcoll_collective_t collectives[] = {MESHCOLL_BCAST, MESHCOLL_ALLGATHER,
                                                    MESHCOLL_ALLREDUCE, MESHCOLL_ALLTOALL};

static mc_case_t some_case(meshcoll_collective_t collective, int size, unsigned turn)
{
    static const size_t counts[] = {7, 1000, 33, 5003};
    static const meshcoll_datatype_t types[] = {MESHCOLL_INT32, MESHCOLL_FLOAT32, MESHCOLL_UINT8};
    return (mc_case_t){.collective = collective,
                       .count = counts[turn % 4],
                       .datatype = types[turn % 3],
                       .root = collective == MESHCOLL_BCAST ? (int)(turn % (unsigned)size) : 0,
                       .in_place = turn / 4 % 2};
}

/* At an offset that turns, aligned to elements only. */
static void move_case(rig_case_t *r, const memory_t *m, unsigned turn)
{
    rig_move(r, m->at + turn % 5 * 4);
}

static void run_case(meshcoll_t *mesh, const memory_t *m, const mc_case_t *c, const char *strategy,
                     unsigned turn)
{
    rig_case_t r;
    rig_open(mesh, c, strategy, &r);
    move_case(&r, m, turn);
    rig_fill(&r, NULL);
    if (turn % 3 == 0) {
        meshcoll_request_t *request;
        NEED(meshcoll_init(mesh, &r.args, &request) == MESHCOLL_OK);
        NEED(meshcoll_enqueue_request(request, NULL) == MESHCOLL_OK);
        meshcoll_free(request);
    } else {
        NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
    }
    NEED(rig_check(&r, NULL));
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    rig_close(&r);
}

/* Sampled strategies of the collectives that write straight to OUT, beside calls on other memory. */
static void rank_registered(meshcoll_t *mesh)
{
    memory_t m;
    mc_mesh_t shape;
    unsigned turn = 0;
    open_memory(mesh, &m);
    NEED(mc_mesh_parse(meshcoll_mesh_text(mesh), &shape) == MESHCOLL_OK);
    for (size_t k = 0; k < MC_COUNT(collectives); k++) {
        mc_sample_t sample;
        NEED(mc_sample_open(collectives[k], &shape, 8, &sample) == 0);
        for (int i = 0; i < 2 * sample.n; i++, turn++) {
            const mc_case_t c = some_case(collectives[k], shape.size, turn);
            run_case(mesh, &m, &c, sample.text[i / 2], turn);
            if (turn % 4 == 0)
                NEED(rig_enqueue(mesh, &c, sample.text[i / 2], NULL));
        }
        mc_sample_close(&sample);
    }
    NEED(turn > 20 && count_direct(mesh) > 4);
    close_memory(&m);
    NEED(count_direct(mesh) == 0 && !mesh->gpu->registrations);
    rig_turns(mesh, 0, MESHCOLL_COLLECTIVES);
}

/* GPUs 0 and 1 do not reach 2 and 3: messages between them lie in memory of the host, as ever. */
static void rank_on_islands(meshcoll_t *mesh)
{
    fake_islands(2);
    rank_registered(mesh);
}

/* A rank of its own machine finds itself, and nobody else's memory. */
static void rank_alone(meshcoll_t *mesh)
{
    memory_t m;
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 100, .datatype = MESHCOLL_INT32};
    open_memory(mesh, &m);
    run_case(mesh, &m, &c, NULL, 0);
    close_memory(&m);
}

bool test_registered(void)
{
    const rig_t rigs[] = {
        {.mesh = "gpu=4", .blocks = "3", .slot = "4096", .ll_slot = "0", .tidy = true},
        {.mesh = "box=2,gpu=2", .blocks = "2", .slot = "1024", .ll_slot = "0", .tidy = true}};
    const rig_t alone = {.mesh = "gpu=1", .tidy = true};
    return rig_run(&rigs[0], rank_registered) && rig_run(&rigs[1], rank_registered) &&
           rig_run(&rigs[1], rank_on_islands) && rig_run(&alone, rank_alone);
}

/* Between machines nothing is mapped, and messages take slots. */
bool test_far_registered(void)
{
    const rig_t rig = {
        .mesh = "box=2,gpu=2", .blocks = "2", .slot = "1024", .machines = "0011", .tidy = true};
    return rig_can_part() ? rig_run(&rig, rank_registered) : rig_skip(RIG_CANNOT_PART);
}

/* A rank whose stream still writes to its output when others have begun: they wait for it. */
static void rank_registered_late(meshcoll_t *mesh)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .count = 3000, .datatype = MESHCOLL_INT32};
    memory_t m;
    rig_case_t r;
    open_memory(mesh, &m);
    for (int again = 0; again < 4; again++) {
        rig_open(mesh, &c, "bcast:chain(gpu)", &r);
        rig_move(&r, m.at);
        fake_copies(rig_rank == 1 ? 20 * 1000 : 0);
        rig_meet();
        rig_fill(&r, NULL);
        NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
        NEED(rig_check(&r, NULL) && meshcoll_async_error(mesh) == MESHCOLL_OK);
        rig_close(&r);
    }
    NEED(count_direct(mesh) == (rig_rank == 0));
    close_memory(&m);
}

bool test_registered_late(void)
{
    const rig_t rig = {
        .mesh = "gpu=2", .blocks = "1", .slot = "1024", .ll_slot = "0", .tidy = true};
    return rig_run(&rig, rank_registered_late);
}

/* A graph of two calls, launched three times; the registration is left to the mesh's end. */
static void rank_registered_captured(meshcoll_t *mesh)
{
    const mc_case_t cases[] = {
        {.collective = MESHCOLL_ALLREDUCE, .count = 700, .datatype = MESHCOLL_INT32},
        {.collective = MESHCOLL_ALLGATHER, .count = 90, .datatype = MESHCOLL_INT32}};
    const mc_cu_stream_t stream = rig_new_stream();
    memory_t m;
    rig_case_t r[2];
    fake_graph_t graph;
    open_memory(mesh, &m);
    for (int k = 0; k < 2; k++) {
        rig_open(mesh, &cases[k], NULL, &r[k]);
        rig_move(&r[k], m.at + (mc_cu_address_t)k * (BYTES / 2));
    }
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    for (int k = 0; k < 2; k++)
        NEED(meshcoll_enqueue(mesh, &r[k].args, stream) == MESHCOLL_OK);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    NEED(count_direct(mesh) > 0);
    for (int again = 0; again < 3; again++) {
        for (int k = 0; k < 2; k++)
            rig_fill(&r[k], stream);
        NEED(cuGraphLaunch(graph, stream) == 0);
        NEED(rig_check(&r[0], stream) && rig_check(&r[1], stream));
        run_case(mesh, &m, &cases[0], NULL, 2);
    }
    for (int k = 0; k < 2; k++)
        rig_close(&r[k]);
    NEED(cuGraphDestroy(graph) == 0);
}

bool test_registered_captured(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2", .ll_slot = "0", .tidy = true, .leaves = 1};
    return rig_run(&rig, rank_registered_captured);
}

/* What is refused ------------------------------------------------------------------------------- */

static int try(meshcoll_t *mesh, void *buffer, size_t bytes)
{
    meshcoll_registration_t *registration = NULL;
    const int status = meshcoll_register(mesh, buffer, bytes, &registration);
    NEED((status == MESHCOLL_OK) == (registration != NULL));
    return status;
}

/* On one rank; all are told, by whom and of what, and the mesh goes on. */
static void refuse_arguments(meshcoll_t *mesh, mc_cu_address_t at)
{
    char host[64];
    mc_cu_address_t managed;
    const bool one = rig_rank == 1;
    NEED(cuMemAllocManaged(&managed, 64, 1) == 0);
    NEED(try(mesh, one ? host : pointer(at), 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("rank 1: meshcoll_register: expected device memory, got host memory, which needs "
                  "no registration"));
    NEED(try(mesh, one ? pointer(managed) : pointer(at), 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("got managed memory"));
    NEED(try(mesh, one ? NULL : pointer(at), 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(try(mesh, pointer(at), one ? 0 : 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("at least one byte"));
    NEED(try(mesh, pointer(at), one ? 128 : 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("rank 0 registers 64 bytes, rank 1 128"));
    NEED(try(mesh, pointer(at + BYTES - 64), one ? 65 : 65) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("its allocation ends after 64"));
    NEED(cuMemFree_v2(managed) == 0);
    NEED(meshcoll_register(NULL, pointer(at), 64, NULL) == MESHCOLL_ERR_INVALID_ARG);
    NEED(meshcoll_deregister(NULL) == MESHCOLL_ERR_INVALID_ARG);
}

/* Memory that the driver of one rank does not share, and memory that one rank cannot open. */
static void refuse_memory(meshcoll_t *mesh, mc_cu_address_t at)
{
    static const char *const shares[] = {"cuIpcGetMemHandle", "cuMemGetAddressRange_v2"};
    for (size_t i = 0; i < MC_COUNT(shares); i++) {
        if (rig_rank == 2)
            fake_fail(shares[i], 0, MC_CU_ERROR_INVALID_VALUE);
        NEED(try(mesh, pointer(at), BYTES) == MESHCOLL_ERR_UNSUPPORTED);
        NEED(rig_says("rank 2: meshcoll_register: the GPU's driver could not ") &&
             rig_says("CUDA_ERROR_INVALID_VALUE") && rig_says("expandable segments"));
    }
    const unsigned before = fake_areas();
    if (rig_rank == 0)
        fake_fail("cuIpcOpenMemHandle_v2", 1, MC_CU_ERROR_OUT_OF_MEMORY);
    NEED(try(mesh, pointer(at), BYTES) == MESHCOLL_ERR_DEVICE);
    NEED(rig_says("rank 0: the GPU's driver could not open the memory that rank 2 registers"));
    NEED(fake_areas() == before);
}

/* A request that writes to registered memory keeps it. */
static void keep_request(meshcoll_t *mesh, mc_cu_address_t at)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 500, .datatype = MESHCOLL_INT32};
    meshcoll_registration_t *registration;
    meshcoll_request_t *request;
    rig_case_t r;
    NEED(meshcoll_register(mesh, pointer(at), BYTES, &registration) == MESHCOLL_OK);
    NEED(try(mesh, pointer(at + BYTES / 2), 64) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("overlaps one that is registered"));
    rig_open(mesh, &c, NULL, &r);
    rig_move(&r, at);
    NEED(meshcoll_init(mesh, &r.args, &request) == MESHCOLL_OK);
    for (int again = 0; again < 2; again++) {
        NEED(meshcoll_deregister(registration) == MESHCOLL_ERR_INVALID_ARG);
        NEED(rig_says("rank 0: meshcoll_deregister: a persistent request"));
        rig_fill(&r, NULL);
        NEED(meshcoll_enqueue_request(request, NULL) == MESHCOLL_OK);
        NEED(rig_check(&r, NULL));
    }
    meshcoll_free(request);
    rig_close(&r);
    NEED(meshcoll_deregister(registration) == MESHCOLL_OK);
}

/* What a program promises is checked where calls are. */
static void rank_checked(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 500, .datatype = MESHCOLL_INT32};
    memory_t m;
    rig_case_t r;
    open_memory(mesh, &m);
    rig_open(mesh, &c, NULL, &r);
    rig_move(&r, m.at + (rig_rank == 1 ? 64 : 0));
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_ERR_MISMATCH);
    NEED(rig_says("rank 0 asked for allreduce of 500 int32, sum with out at byte 64 of registered "
                  "memory; rank 1 for allreduce of 500 int32, sum with out at byte 128"));
    rig_move(&r, m.at);
    rig_fill(&r, NULL);
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK && rig_check(&r, NULL));
    rig_close(&r);
    for (unsigned turn = 0; turn < 16; turn++) {
        const mc_case_t each = some_case(collectives[turn % 4], meshcoll_size(mesh), turn);
        run_case(mesh, &m, &each, NULL, turn);
    }
    char *text;
    NEED(meshcoll_explain(mesh, &text) == MESHCOLL_OK);
    NEED(strstr(text, "1 of 2 messages sent in a pass go straight to registered memory\n") ||
         strstr(text, "1 of 1 messages sent in a pass go straight to registered memory\n"));
    free(text);
    close_memory(&m);
}

/* A rank that never comes: the others' direct messages wait for it, and end; the registration stays to the end. */
static void rank_registered_alone(meshcoll_t *mesh)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .count = 3000, .datatype = MESHCOLL_INT32};
    memory_t m;
    rig_case_t r;
    open_memory(mesh, &m);
    rig_open(mesh, &c, "bcast:chain(gpu)", &r);
    rig_move(&r, m.at);
    rig_meet();
    if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(NULL) == 0);
    }
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_TIMEOUT);
    NEED(meshcoll_deregister(m.registration) == MESHCOLL_ERR_TIMEOUT);
    meshcoll_registration_t *more = NULL;
    NEED(meshcoll_register(mesh, pointer(m.at), 64, &more) == MESHCOLL_ERR_TIMEOUT && !more);
}

static void rank_cannot_register(meshcoll_t *mesh)
{
    const mc_cu_address_t at = allocate(BYTES);
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 500, .datatype = MESHCOLL_INT32};
    refuse_arguments(mesh, at);
    refuse_memory(mesh, at);
    NEED(rig_enqueue(mesh, &c, NULL, NULL));
    keep_request(mesh, at);
    NEED(rig_enqueue(mesh, &c, NULL, NULL));
    NEED(cuMemFree_v2(at) == 0);
}

bool test_cannot_register(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .ll_slot = "0", .tidy = true};
    const rig_t checked = {.mesh = "gpu=2",
                           .blocks = "2",
                           .ll_slot = "0",
                           .check = "1",
                           .explain = "1,/dev/null",
                           .tidy = true};
    const rig_t late = {
        .mesh = "gpu=2", .blocks = "1", .slot = "1024", .ll_slot = "0", .timeout = "0.5"};
    return rig_run(&rig, rank_cannot_register) && rig_run(&checked, rank_checked) &&
           rig_run(&late, rank_registered_alone);
}
