/*
 * All ranks of a box in one grid of one GPU: what a single card can show of the kernels. Each case is lowered
 * as tests/device/box.c does it, moved to the GPU with everything that it points to, launched once for all
 * ranks, and checked against values computed directly. For a real card (scripts/gpu-check.sh), or the fake.
 */
#include "box.h"
#include "support/strategies.h"

#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGIONS = 8 + 8 * MC_BOX_RANKS, LIMIT_S = 20 };

/* Of libcuda, besides what the library calls. */
static mc_cu_result_t (*init)(unsigned);
static mc_cu_result_t (*retain)(mc_cu_context_t *, mc_cu_device_t);
static mc_cu_result_t (*set_current)(mc_cu_context_t);
static mc_cu_result_t (*copy_out)(void *, mc_cu_address_t, size_t);
static const mc_cuda_t *cuda;
static mc_cu_module_t module;

static void need(mc_cu_result_t result, const char *what)
{
    if (mc_cuda_status(result, what) == MESHCOLL_OK)
        return;
    printf("%s\n", meshcoll_last_error());
    exit(1);
}

/* Memory of the host, and its image on the GPU. */
typedef struct {
    char *host;
    size_t bytes;
    mc_cu_address_t device;
} region_t;
typedef struct {
    region_t region[REGIONS];
    int n;
} mirror_t;

static void add(mirror_t *m, const void *host, size_t bytes)
{
    if (m->n == REGIONS)
        abort();
    region_t *const r = &m->region[m->n++];
    *r = (region_t){.host = (char *)(uintptr_t)host, .bytes = bytes};
    need(cuda->alloc(&r->device, bytes ? bytes : 1), "allocate memory");
}

/* The address on the GPU of something in a region. */
static void *there(const mirror_t *m, const void *at)
{
    for (int i = 0; i < m->n; i++) {
        const size_t offset = (size_t)((const char *)at - m->region[i].host);
        if (at && (const char *)at >= m->region[i].host &&
            (offset < m->region[i].bytes || (offset == 0 && m->region[i].bytes == 0)))
            return (char *)(uintptr_t)m->region[i].device + offset;
    }
    return NULL;
}

static void copy(const mirror_t *m, bool back)
{
    for (int i = 0; i < m->n; i++) {
        const region_t *const r = &m->region[i];
        if (r->bytes > 0 && back)
            need(copy_out(r->host, r->device, r->bytes), "copy results");
        else if (r->bytes > 0)
            need(cuda->copy_in(r->device, r->host, r->bytes, NULL), "copy buffers");
    }
}

static void free_mirror(mirror_t *m)
{
    while (m->n > 0)
        need(cuda->free(m->region[--m->n].device), "free memory");
}

/* Runs ------------------------------------------------------------------------------------------------ */

/* Every address in the run, as the GPU sees it; returns the calls, which the caller frees. */
static mc_device_call_t *translate(mc_box_run_t *run, const mirror_t *lanes, mirror_t *m)
{
    const int n = run->box->mesh.size;
    mc_device_call_t *const calls = calloc((size_t)n, sizeof *calls);
    if (!calls)
        abort();
    for (int r = 0; r < n; r++) {
        mc_box_rank_t *const rank = &run->rank[r];
        const size_t ends = (size_t)2 * rank->program->n_peers * run->how.blocks;
        add(m, rank->program->run, rank->program->n_runs * sizeof *rank->program->run);
        add(m, rank->end, ends * sizeof *rank->end);
        add(m, rank->report, sizeof rank->report);
        add(m, rank->scratch, rank->binding.scratch_bytes);
        for (int k = 0; k < 2; k++)
            add(m, rank->buffers.memory[k], rank->buffers.bytes[k] + 2 * MC_CASE_GUARD);
        for (size_t i = 0; i < ends; i++) {
            mc_device_lane_t *const end = &rank->end[i];
            *end = (mc_device_lane_t){.slots = there(lanes, end->slots),
                                      .awaited = there(lanes, end->awaited),
                                      .raised = there(lanes, end->raised),
                                      .count = there(lanes, end->count),
                                      .begun = there(lanes, end->begun),
                                      .launches = there(lanes, end->launches),
                                      .window = end->window};
        }
    }
    for (int r = 0; r < n; r++) /* buffers of other ranks */
        for (uint32_t i = 0; i < 2 * run->rank[r].program->n_peers * run->how.blocks; i++)
            run->rank[r].end[i].window = there(m, run->rank[r].end[i].window);
    add(m, &run->abort_word, sizeof run->abort_word);
    for (int r = 0; r < n; r++) {
        calls[r] = run->rank[r].call;
        calls[r].run = there(m, calls[r].run);
        calls[r].lane = there(m, calls[r].lane);
        calls[r].report = there(m, calls[r].report);
        calls[r].abort_word = there(m, calls[r].abort_word);
        for (int b = 0; b < MC_DEVICE_BUFFERS; b++)
            calls[r].buffer[b] = there(m, calls[r].buffer[b]);
    }
    return calls;
}

static void launch(const mc_box_run_t *run, const mc_device_call_t *calls,
                   const mc_device_call_t *many)
{
    char name[64];
    mc_cu_function_t kernel;
    mc_device_launch_t parameter = {.one = calls[0], .many = many};
    void *parameters[] = {&parameter};
    snprintf(name, sizeof name, "mc_walk_%s", mc_device_body_name(run->rank[0].program->body));
    need(cuda->module_function(&kernel, module, name), "find a kernel");
    need(cuda->launch(kernel, run->how.blocks * (unsigned)run->box->mesh.size, 1, 1,
                      MC_DEVICE_THREADS, 1, 1, 0, NULL, parameters, NULL),
         "launch a kernel");
    need(cuda->stream_synchronize(NULL), "run a kernel");
}

static bool run_case(mc_box_t *box, const mirror_t *lanes, const mc_case_t *c, const char *strategy,
                     const mc_box_how_t *how)
{
    mc_box_run_t *const run = mc_box_run_open(box, c, strategy, how);
    mirror_t m = {.n = 0};
    mc_device_call_t *const calls = translate(run, lanes, &m);
    add(&m, calls, (size_t)box->mesh.size * sizeof *calls);
    copy(&m, false);
    launch(run, calls, there(&m, calls));
    copy(&m, true);
    const bool good = mc_box_run_check(run);
    free_mirror(&m);
    free(calls);
    mc_box_run_close(run);
    return good;
}

static mc_case_t turn_case(meshcoll_collective_t collective, int size, unsigned turn)
{
    static const size_t counts[] = {7, 1, 1000, 100003, 33, 5003};
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = counts[turn % (sizeof counts / sizeof counts[0])],
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)(turn / 4))
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? (int)turn % size : 0,
                       .in_place = turn % 3 == 0,
                       .bare = turn % 2};
}

static bool sweep(const char *mesh, int most, int times, unsigned *turn)
{
    mc_box_t *const box = mc_box_open(mesh);
    mirror_t lanes = {.n = 0};
    bool good = true;
    add(&lanes, box->lane, sizeof box->lane);
    add(&lanes, box->slots, MC_BOX_BYTES);
    need(cuda->fill(lanes.region[0].device, 0, sizeof box->lane, NULL), "zero counters");
    need(cuda->fill(lanes.region[1].device, 0, MC_BOX_BYTES, NULL), "zero slots");
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        good = good && mc_sample_open((meshcoll_collective_t)k, &box->mesh, most, &sample) == 0;
        for (int i = 0; good && i < times * sample.n; i++, ++*turn) {
            const mc_case_t c = turn_case((meshcoll_collective_t)k, box->mesh.size, *turn);
            const mc_box_how_t how = {.blocks = 1 + *turn % MC_BOX_BLOCKS,
                                      .slot_bytes = *turn % 4 ? 16384 : 512,
                                      .ll = *turn / 2 % 2,
                                      .registered = *turn % 8 < 2,
                                      .limit = LIMIT_S * UINT64_C(1000000000)};
            good = run_case(box, &lanes, &c, sample.text[i / times], &how);
        }
        mc_sample_close(&sample);
    }
    free_mirror(&lanes);
    mc_box_close(box);
    return good;
}

static bool open_driver(void)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA");
    mc_cu_context_t context;
    mc_cuda_open();
    if (mc_cuda_check() || !mc_cuda_image()) {
        printf("skipped: %s\n",
               mc_cuda() ? "the library was built without nvcc" : meshcoll_last_error());
        return false;
    }
    void *const library = dlopen(given ? given : "libcuda.so.1", RTLD_NOW);
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
    *(void **)&copy_out = dlsym(library, "cuMemcpyDtoH_v2");
    cuda = mc_cuda();
    need(init(0), "begin");
    need(retain(&context, 0), "make a context");
    need(set_current(context), "use a context");
    need(cuda->module_load(&module, mc_cuda_image()), "load the kernels");
    return true;
}

/* one_grid [MOST [TIMES]]: so many strategies of each collective and mesh, and calls of each. */
int main(int argc, char **argv)
{
    static const char *const meshes[] = {"gpu=4", "box=2,gpu=2", "gpu=8", "gpu=3"};
    const int most = argc > 1 ? atoi(argv[1]) : 10, times = argc > 2 ? atoi(argv[2]) : 3;
    unsigned turn = 0;
    bool good = true;
    if (!open_driver())
        return 77;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0] && good; i++) {
        const unsigned before = turn;
        good = sweep(meshes[i], most, times, &turn);
        printf("%s: %u calls %s\n", meshes[i], turn - before,
               good ? "right" : "and then one wrong");
    }
    return good && turn > 0 ? 0 : 1;
}
