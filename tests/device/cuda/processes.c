/*
 * Ranks that are processes with GPUs they take in turn, so that several share one where there are fewer: all
 * collectives through the public calls, checked against values computed directly. For a real card
 * (scripts/gpu-check.sh), or the fake.
 */
#include "support/processes.h"
#include "support/case.h"
#include "support/element.h"

#include "base/base.h"
#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANNOT = 77, LIMIT_S = 120 };

/* Of libcuda, besides what the library calls. */
static mc_cu_result_t (*init)(unsigned);
static mc_cu_result_t (*retain)(mc_cu_context_t *, mc_cu_device_t);
static mc_cu_result_t (*set_current)(mc_cu_context_t);
static mc_cu_result_t (*copy_out)(void *, mc_cu_address_t, size_t);
static const mc_cuda_t *cuda;
static int rank;

static void need(int status, const char *what)
{
    if (status == MESHCOLL_OK)
        return;
    printf("rank %d: %s: %s\n", rank, what, meshcoll_last_error());
    fflush(stdout);
    _exit(1);
}

static void need_cuda(mc_cu_result_t result, const char *what)
{
    need(mc_cuda_status(result, what), "the test itself");
}

/* false, with a line: there is no driver, or there are no kernels. */
static bool open_driver(void)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA");
    mc_cuda_open();
    if (mc_cuda_check() || !mc_cuda_image()) {
        if (rank == 0)
            printf("skipped: %s\n",
                   mc_cuda() ? "the library was built without nvcc" : meshcoll_last_error());
        fflush(stdout); /* the process of a rank ends by _exit */
        return false;
    }
    void *const library = dlopen(given ? given : "libcuda.so.1", RTLD_NOW);
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
    *(void **)&copy_out = dlsym(library, "cuMemcpyDtoH_v2");
    cuda = mc_cuda();
    return true;
}

static void take_gpu(int most)
{
    mc_cu_context_t context;
    int n = 0;
    need_cuda(init(0), "begin");
    need_cuda(cuda->device_count(&n), "be counted");
    n = most < n ? most : n;
    need_cuda(retain(&context, rank % n), "make a context");
    need_cuda(set_current(context), "use a context");
}

/* Cases ----------------------------------------------------------------------------------------------- */

static mc_case_t turn_case(int size, unsigned turn)
{
    static const size_t counts[] = {7, 1, 1000, 1000003, 33, 50003};
    const meshcoll_collective_t collective = (meshcoll_collective_t)(turn % MESHCOLL_COLLECTIVES);
    const unsigned round = turn / MESHCOLL_COLLECTIVES;
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = counts[round % MC_COUNT(counts)],
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)round)
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? (int)(turn % (unsigned)size) : 0,
                       .in_place = round % 2};
}

/* The address on the GPU of something in the buffers. */
static void *there(const mc_case_rank_t *host, const mc_cu_address_t mirror[2], const void *at)
{
    for (int k = 0; k < 2; k++) {
        const size_t offset = (size_t)((const char *)at - host->memory[k]);
        if (at && (const char *)at >= host->memory[k] &&
            offset < host->bytes[k] + 2 * MC_CASE_GUARD)
            return (char *)(uintptr_t)mirror[k] + offset;
    }
    return NULL;
}

static bool run_case(meshcoll_t *mesh, const mc_case_t *c, mc_cu_stream_t stream)
{
    mc_case_rank_t host;
    mc_cu_address_t mirror[2];
    char why[256], what[128];
    if (mc_case_open(c, meshcoll_rank(mesh), meshcoll_size(mesh), &host) != 0)
        abort();
    for (int k = 0; k < 2; k++) {
        const size_t bytes = host.bytes[k] + 2 * MC_CASE_GUARD;
        need_cuda(cuda->alloc(&mirror[k], bytes), "allocate memory");
        need_cuda(cuda->copy_in(mirror[k], host.memory[k], bytes, stream), "copy buffers");
    }
    meshcoll_args_t args = mc_case_args(c, &host, NULL);
    args.in = there(&host, mirror, args.in);
    args.out = there(&host, mirror, args.out);
    need(meshcoll_enqueue(mesh, &args, stream), "enqueue");
    need_cuda(cuda->stream_synchronize(stream), "run a call");
    need(meshcoll_async_error(mesh), "a call");
    for (int k = 0; k < 2; k++) {
        need_cuda(copy_out(host.memory[k], mirror[k], host.bytes[k] + 2 * MC_CASE_GUARD),
                  "copy results");
        need_cuda(cuda->free(mirror[k]), "free memory");
    }
    mc_case_t here = *c;
    here.on_device = true;
    const bool good = mc_case_check(&here, &host, why, sizeof why) == 0;
    if (!good)
        printf("%s on rank %d: %s\n", mc_case_print(c, what, sizeof what), rank, why);
    mc_case_close(&host);
    return good;
}

/* Ranks ----------------------------------------------------------------------------------------------- */

typedef struct {
    const char *mesh;
    int gpus; /* at most */
    unsigned turns;
} job_t;

static int run(const void *context, mc_seat_t *seat)
{
    const job_t *const job = context;
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = job->mesh, .timeout = "30"};
    mc_cu_stream_t stream;
    meshcoll_t *mesh;
    bool good = true;
    rank = seat->rank;
    alarm(LIMIT_S);
    if (!open_driver())
        return CANNOT;
    take_gpu(job->gpus);
    need(meshcoll_create_oob(&oob, &params, &mesh), "create");
    need_cuda(cuda->stream_create(&stream, MC_CU_STREAM_NON_BLOCKING), "make a stream");
    const double begun = mc_now();
    for (unsigned turn = 0; turn < job->turns && good; turn++) {
        const mc_case_t c = turn_case(meshcoll_size(mesh), turn);
        good = run_case(mesh, &c, stream);
    }
    if (good && rank == 0)
        printf("%s: %u calls right in %.1f s\n", job->mesh, job->turns, mc_now() - begun);
    fflush(stdout);
    meshcoll_destroy(mesh);
    return good ? 0 : 1;
}

/* device_processes RANKS GPUS [ROUNDS]: on as many GPUs at most, so many rounds of all collectives. */
int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[1]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 6;
    char mesh[32];
    pid_t pid[MC_PROCESSES];
    int worst = 0;
    if (n < 1 || n > MC_PROCESSES || atoi(argv[2]) < 1 || rounds < 1) {
        printf("usage: device_processes RANKS GPUS [ROUNDS], up to %d ranks\n", MC_PROCESSES);
        return 2;
    }
    snprintf(mesh, sizeof mesh, "gpu=%d", n);
    const job_t job = {mesh, atoi(argv[2]), (unsigned)rounds * MESHCOLL_COLLECTIVES};
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    mc_meeting_init(meeting, n);
    mc_processes_fork(meeting, run, &job, pid);
    for (int r = 0; r < n; r++) {
        const int how = mc_process_await(pid[r]);
        if (how && how != CANNOT)
            printf("rank %d ended with %d\n", r, how);
        worst = how && worst != 1 ? (how == CANNOT ? CANNOT : 1) : worst;
    }
    munmap(meeting, sizeof *meeting);
    return worst;
}
