/*
 * --memory device: the buffers that operations use are in the memory of a GPU, one per rank. Data is made and
 * checked in the host's buffers, which are copied there and back.
 */
#include "bench.h"
#include "runtime/place/places.h"

#include <stdlib.h>
#include <time.h>

static void need(int status)
{
    if (status != MESHCOLL_OK)
        die("%s", meshcoll_last_error());
}

static void need_driver(mc_cu_result_t result, const char *what)
{
    need(mc_cuda_status(result, what));
}

int device_open(bench_t *bench)
{
    mc_location_t mine;
    uint64_t *const machine = malloc((size_t)bench->size * sizeof *machine);
    int seat = 0, seats = 0;
    if (!machine)
        die("out of memory for %d machines", bench->size);
    mc_location_find(&mine);
    ranks_gather(bench, &mine.machine, machine, sizeof *machine);
    for (int r = 0; r < bench->size; r++) {
        seat += r < bench->rank && machine[r] == mine.machine;
        seats += machine[r] == mine.machine;
    }
    free(machine);
    return ranks_agree(bench, gpu_open(seat, seats, &bench->gpu));
}

void device_make_buffers(bench_t *bench, size_t room)
{
    char *const host[] = {bench->in, bench->out};
    for (int k = 0; k < 2; k++) {
        need_driver(bench->gpu.cuda->alloc(&bench->mirror[k], room), "allocate a buffer");
        need_driver(bench->gpu.cuda->copy_in(bench->mirror[k], host[k], room, bench->gpu.stream),
                    "copy a buffer");
    }
    need(gpu_wait(&bench->gpu));
}

void device_close(bench_t *bench)
{
    for (int k = 0; k < 2; k++)
        if (bench->mirror[k])
            bench->gpu.cuda->free(bench->mirror[k]);
    gpu_close(&bench->gpu);
}

char *device_at(const bench_t *bench, char *host)
{
    const char *const buffer[] = {bench->in, bench->out};
    if (!bench->options.device || !host)
        return host;
    for (int k = 0; k < 2; k++)
        if (host >= buffer[k] && host < buffer[k] + bench->room)
            return (char *)(uintptr_t)bench->mirror[k] + (host - buffer[k]);
    die("an address outside of the buffers");
}

/* The bytes of a span with its guards. */
static size_t guarded(const bench_t *bench, const span_t *s)
{
    return s->n * meshcoll_datatype_size(bench->options.datatype) + 2 * GUARD;
}

static mc_cu_address_t address(const bench_t *bench, char *host)
{
    return (mc_cu_address_t)(uintptr_t)device_at(bench, host);
}

void device_put(const bench_t *bench, const view_t *view)
{
    const span_t *const span[] = {&view->in, &view->out};
    for (int k = 0; k < 2; k++)
        if (span[k]->at)
            need_driver(bench->gpu.cuda->copy_in(address(bench, span[k]->at - GUARD),
                                                 span[k]->at - GUARD, guarded(bench, span[k]),
                                                 bench->gpu.stream),
                        "copy data to the GPU");
    need(gpu_wait(&bench->gpu));
}

void device_get(const bench_t *bench, const view_t *view)
{
    const span_t *const span[] = {&view->in, &view->out};
    for (int k = 0; k < 2; k++)
        if (span[k]->at)
            need_driver(bench->gpu.copy_out(span[k]->at - GUARD,
                                            address(bench, span[k]->at - GUARD),
                                            guarded(bench, span[k]), bench->gpu.stream),
                        "copy results from the GPU");
    need(gpu_wait(&bench->gpu));
}

void device_wait(const bench_t *bench)
{
    need(gpu_wait(&bench->gpu));
    need(meshcoll_async_error(bench->handle));
}

/* CPU time of this thread, in seconds. */
static double spent(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double device_timed(const bench_t *bench, void (*enqueue)(const void *context), const void *context,
                    double *cpu)
{
    const int n = bench->options.enqueue;
    double seconds = 0;
    need(gpu_mark(&bench->gpu, 0));
    const double before = spent();
    for (int i = 0; i < n; i++)
        enqueue(context);
    *cpu += spent() - before;
    need(gpu_mark(&bench->gpu, 1));
    device_wait(bench);
    need(gpu_elapsed(&bench->gpu, &seconds));
    return seconds / n;
}
