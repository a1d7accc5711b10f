#include "rig.h"

#include "gpu/cuda/driver.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int rig_rank = -1, rig_streams;
const void *rig_image = "an image that the fake takes";
static mc_meeting_t *meeting; /* of the ranks of a test, besides that of their mesh */

/* In place of the library's, which has an image only where nvcc is. */
const void *mc_cuda_image(void)
{
    return rig_image;
}

/* Ranks ------------------------------------------------------------------------------------------- */

typedef struct {
    const rig_t *rig;
    void (*rank)(meshcoll_t *mesh);
} job_t;

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void take_gpu(const rig_t *rig)
{
    mc_cu_context_t context;
    NEED(cuInit(0) == 0);
    const int gpus = rig_streams ? rig_streams : rig->gpus;
    NEED(cuDevicePrimaryCtxRetain(&context, gpus ? rig_rank % gpus : rig_rank) == 0);
    NEED(cuCtxSetCurrent(context) == 0);
}

static bool part(char machine)
{
    char name[32];
    snprintf(name, sizeof name, "rig-%c", machine);
    return unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) == 0;
}

/* Into the network of a box of the lab, whose processes' ids are in the environment, "12 34", and under its name. */
static bool enter(const char *boxes, char machine)
{
    static const char *const spaces[] = {"net", "uts"};
    char path[64];
    char *next = NULL;
    long pid = strtol(boxes, &next, 10);
    for (int i = 0; i < machine - '0'; i++)
        pid = strtol(next, &next, 10);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        snprintf(path, sizeof path, "/proc/%ld/ns/%s", pid, spaces[i]);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, 0) != 0)
            return false;
        close(fd);
    }
    return true;
}

static bool go_to(char machine)
{
    const char *const boxes = getenv("MC_RIG_BOXES");
    return boxes ? enter(boxes, machine) : part(machine);
}

static int try_part(const void *context, mc_seat_t *seat)
{
    (void)context, (void)seat;
    return part('0') ? 0 : 1;
}

bool rig_can_part(void)
{
    mc_meeting_t *const one = mc_processes_share(sizeof *one);
    pid_t pid;
    mc_meeting_init(one, 1);
    mc_processes_fork(one, try_part, NULL, &pid);
    const bool can = mc_process_await(pid) == 0;
    munmap(one, sizeof *one);
    return can;
}

static bool is_skipped, is_to_fail;
bool rig_skip(const char *why)
{
    printf("skipped: %s\n", why);
    is_skipped = true;
    return true;
}

void rig_meet(void)
{
    pthread_barrier_wait(&meeting->barrier);
}

static int run(const void *context, mc_seat_t *seat)
{
    const job_t *const job = context;
    const rig_t *const rig = job->rig;
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = rig->mesh,
                                      .timeout = rig->timeout,
                                      .check = rig->check,
                                      .progress = rig->progress,
                                      .explain = rig->explain,
                                      .monitor = "4"};
    meshcoll_t *mesh;
    rig_rank = seat->rank;
    alarm(is_to_fail ? 6 : 120);
    set("MESHCOLL_LIBCUDA", rig->libcuda ? rig->libcuda : MC_FAKE_CUDA);
    set("MESHCOLL_GPU_BLOCKS", rig->blocks);
    set("MESHCOLL_GPU_SLOT", rig->slot);
    set("MESHCOLL_GPU_LL_SLOT", rig->ll_slot);
    set("MESHCOLL_GPU_EXECUTOR", rig_streams ? "stream" : rig->executor);
    NEED(!rig->machines || go_to(rig->machines[rig_rank]));
    take_gpu(rig);
    NEED(meshcoll_create_oob(&oob, &params, &mesh) == MESHCOLL_OK);
    job->rank(mesh);
    meshcoll_destroy(mesh);
    NEED(!rig->tidy || fake_areas() == rig->leaves);
    NEED(!rig->tidy || fake_calls("cuEventCreate") == fake_calls("cuEventDestroy_v2"));
    fflush(stdout);
    return 0;
}

/* "box=2,gpu=3", or unequal boxes, "box=2+1". */
static int size_of(const char *mesh)
{
    int size = 1;
    for (const char *c = mesh; (c = strchr(c, '=')); c++) {
        int sum = 0;
        for (char *next = (char *)c; *next == '=' || *next == '+';)
            sum += (int)strtol(next + 1, &next, 10);
        size *= sum;
    }
    return size;
}

bool rig_run(const rig_t *rig, void (*rank)(meshcoll_t *mesh))
{
    const job_t job = {rig, rank};
    const int n = size_of(rig->mesh);
    mc_meeting_t *const seats = mc_processes_share(sizeof *seats);
    pid_t pid[MC_PROCESSES];
    bool good = true;
    meeting = mc_processes_share(sizeof *meeting);
    mc_meeting_init(seats, n);
    mc_meeting_init(meeting, n);
    fflush(stdout);
    mc_processes_fork(seats, run, &job, pid);
    for (int r = 0; r < n; r++) {
        const int how = mc_process_await(pid[r]), expected = r == rig->dies - 1 ? -SIGKILL : 0;
        if (how != expected)
            printf("rank %d on %s ended with %d, expected %d\n", r, rig->mesh, how, expected);
        good = good && how == expected;
    }
    munmap(meeting, sizeof *meeting);
    munmap(seats, sizeof *seats);
    return good;
}

/* Cases ------------------------------------------------------------------------------------------- */

static size_t bytes_of(const rig_case_t *r, int k)
{
    return r->host.bytes[k] + 2 * MC_CASE_GUARD;
}

static void *mirrored(const rig_case_t *r, const void *at)
{
    for (int k = 0; k < 2; k++) {
        const size_t offset = (size_t)((const char *)at - r->host.memory[k]);
        if (at && (const char *)at >= r->host.memory[k] && offset < bytes_of(r, k))
            return (char *)(uintptr_t)r->mirror[k] + offset;
    }
    return NULL;
}

void rig_open(meshcoll_t *mesh, const mc_case_t *c, const char *strategy, rig_case_t *r)
{
    *r = (rig_case_t){.c = *c};
    NEED(mc_case_open(c, meshcoll_rank(mesh), meshcoll_size(mesh), &r->host) == 0);
    for (int k = 0; k < 2; k++)
        NEED(cuMemAlloc_v2(&r->mirror[k], bytes_of(r, k)) == 0);
    r->args = mc_case_args(c, &r->host, strategy);
    r->args.in = mirrored(r, r->args.in);
    r->args.out = mirrored(r, r->args.out);
}

void rig_move(rig_case_t *r, mc_cu_address_t at)
{
    NEED(r->moved || cuMemFree_v2(r->mirror[1]) == 0);
    r->moved = true;
    r->mirror[1] = at;
    r->args = mc_case_args(&r->c, &r->host, r->args.strategy);
    r->args.in = mirrored(r, r->args.in);
    r->args.out = mirrored(r, r->args.out);
}

void rig_fill(rig_case_t *r, mc_cu_stream_t stream)
{
    mc_case_fill(&r->c, &r->host);
    for (int k = 0; k < 2; k++)
        NEED(cuMemcpyHtoDAsync_v2(r->mirror[k], r->host.memory[k], bytes_of(r, k), stream) == 0);
}

bool rig_check(rig_case_t *r, mc_cu_stream_t stream)
{
    char why[256], what[128];
    for (int k = 0; k < 2; k++)
        NEED(cuMemcpyDtoHAsync_v2(r->host.memory[k], r->mirror[k], bytes_of(r, k), stream) == 0);
    NEED(cuStreamSynchronize(stream) == 0);
    r->c.on_device = true;
    if (mc_case_check(&r->c, &r->host, why, sizeof why) == 0)
        return true;
    printf("%s on rank %d: %s\n", mc_case_print(&r->c, what, sizeof what), rig_rank, why);
    return false;
}

void rig_close(rig_case_t *r)
{
    for (int k = 0; k < 2; k++)
        NEED((k == 1 && r->moved) || cuMemFree_v2(r->mirror[k]) == 0);
    mc_case_close(&r->host);
}

bool rig_enqueue(meshcoll_t *mesh, const mc_case_t *c, const char *strategy, mc_cu_stream_t stream)
{
    rig_case_t r;
    rig_open(mesh, c, strategy, &r);
    rig_fill(&r, stream);
    NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
    const bool good = rig_check(&r, stream);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    rig_close(&r);
    return good;
}

bool rig_works(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 500, .datatype = MESHCOLL_INT32};
    return rig_enqueue(mesh, &c, NULL, NULL);
}

static mc_cu_address_t memory;

meshcoll_args_t rig_call(meshcoll_collective_t collective)
{
    if (!memory)
        NEED(cuMemAlloc_v2(&memory, 4096) == 0);
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collective,
                             .in = (void *)(uintptr_t)memory,
                             .out = (void *)(uintptr_t)memory,
                             .count = 100,
                             .datatype = MESHCOLL_INT32};
}

void rig_call_free(void)
{
    NEED(cuMemFree_v2(memory) == 0);
    memory = 0;
}

mc_cu_stream_t rig_new_stream(void)
{
    mc_cu_stream_t stream;
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    return stream;
}

bool rig_says(const char *words)
{
    const bool so = strstr(meshcoll_last_error(), words) != NULL;
    if (!so)
        printf("rank %d: expected \"%s\" in: %s\n", rig_rank, words, meshcoll_last_error());
    return so;
}

/* By their names ---------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    bool (*run)(void);
} test_t;
#define ROW(name) {#name, test_##name},
static const test_t tests[] = {RIG_TESTS(ROW)};

/* device_gpu TEST [GPUS]; device_gpu --fails TEST [GPUS], of a mutant: the test must fail. */
int main(int argc, char **argv)
{
    is_to_fail = argc > 2 && strcmp(argv[1], "--fails") == 0;
    argc -= is_to_fail;
    argv += is_to_fail;
    rig_streams = argc == 3 ? atoi(argv[2]) : 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if ((argc == 2 || rig_streams > 0) && strcmp(tests[i].name, argv[1]) == 0) {
            const bool good = tests[i].run();
            return is_skipped && good ? 77 : good == is_to_fail;
        }
    printf("usage: device_gpu TEST [GPUS of the stream executor], one of:");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        printf(" %s", tests[i].name);
    printf("\n");
    return 2;
}
