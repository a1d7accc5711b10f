/*
 * A fake of libnccl for the fake of libcuda: what bench/meshcoll-bench/own_nccl.c calls. Ranks are processes of
 * one machine that share a file in memory. An operation is a copy out, a function of the host in the stream, which
 * publishes this rank's vector and computes from all, and a copy back. Sums of float32 only; no sends and receives
 * (what needs them is told so).
 */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAILED = 2, UNSUPPORTED = 5, FLOAT32 = 7, SUM = 0, MOST_RANKS = 16, ROOM = 1 << 22 };
enum { VERSION = 21800 };

typedef struct {
    char name[128];
} unique_t;

typedef struct {
    pthread_barrier_t barrier;
    char vector[MOST_RANKS][ROOM];
} shared_t;

typedef struct comm {
    shared_t *shared;
    int rank, size;
} comm_t;

FAKE_API int ncclGetVersion(int *version);
FAKE_API const char *ncclGetErrorString(int result);
FAKE_API int ncclGetUniqueId(unique_t *unique);
FAKE_API int ncclCommInitRank(comm_t **comm, int size, unique_t unique, int rank);
FAKE_API int ncclCommDestroy(comm_t *comm);
FAKE_API int ncclGroupStart(void);
FAKE_API int ncclGroupEnd(void);
FAKE_API int ncclSend(const void *in, size_t n, int type, int peer, comm_t *comm, void *stream);
FAKE_API int ncclRecv(void *out, size_t n, int type, int peer, comm_t *comm, void *stream);
FAKE_API int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, comm_t *comm,
                           void *stream);
FAKE_API int ncclReduce(const void *in, void *out, size_t n, int type, int op, int root,
                        comm_t *comm, void *stream);
FAKE_API int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, comm_t *comm,
                           void *stream);
FAKE_API int ncclAllGather(const void *in, void *out, size_t n, int type, comm_t *comm,
                           void *stream);
FAKE_API int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, comm_t *comm,
                               void *stream);

int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

const char *ncclGetErrorString(int result)
{
    return result == UNSUPPORTED ? "the fake has none" : "as the fake was told";
}

/* Communicators ------------------------------------------------------------------------------------ */

/* Without a name, so that nothing stays behind however the processes end; the others open it by rank 0's
 * descriptor. */
static int made = -1;

int ncclGetUniqueId(unique_t *unique)
{
    made = memfd_create("fake-nccl", MFD_CLOEXEC);
    snprintf(unique->name, sizeof unique->name, "/proc/%d/fd/%d", (int)getpid(), made);
    return made >= 0 && ftruncate(made, sizeof(shared_t)) == 0 ? 0 : FAILED;
}

static shared_t *map(const char *name)
{
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    void *const at = fd < 0
                         ? MAP_FAILED
                         : mmap(NULL, sizeof(shared_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* Rank 0 makes the barrier; the first byte of its vector says so to the others. */
int ncclCommInitRank(comm_t **comm, int size, unique_t unique, int rank)
{
    comm_t *const mine = calloc(1, sizeof *mine);
    pthread_barrierattr_t attributes;
    if (!mine || size > MOST_RANKS || getenv("FAKE_NCCL_FAILS"))
        return FAILED;
    *mine = (comm_t){map(unique.name), rank, size};
    if (!mine->shared)
        return FAILED;
    char *const ready = &mine->shared->vector[0][0];
    if (rank == 0) {
        pthread_barrierattr_init(&attributes);
        pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&mine->shared->barrier, &attributes, (unsigned)size);
        __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE))
        usleep(100);
    pthread_barrier_wait(&mine->shared->barrier);
    if (rank == 0)
        close(made);
    *comm = mine;
    return 0;
}

int ncclCommDestroy(comm_t *comm)
{
    munmap(comm->shared, sizeof *comm->shared);
    free(comm);
    return 0;
}

/* Operations --------------------------------------------------------------------------------------- */

/* Of the vectors of all ranks, `n` elements each: this rank's result has elements [first, first + count), summed
 * over all ranks or taken from rank `from`; ALL: of each rank in turn. */
enum { ALL = -1 };
typedef struct {
    comm_t *comm;
    float *in, *out;
    size_t n, first, count;
    int from;
    bool sums;
} op_t;

static void combine(const op_t *op)
{
    for (size_t i = 0; i < op->count; i++) {
        const int from = op->from == ALL ? (int)(i / op->n) : op->from;
        const size_t at = op->from == ALL ? i % op->n : op->first + i;
        float sum = 0;
        for (int r = 0; r < op->comm->size; r++)
            if (op->sums || r == from)
                sum += ((const float *)op->comm->shared->vector[r])[at];
        op->out[i] = sum;
    }
}

static void exchange(void *context)
{
    op_t *const op = context;
    shared_t *const shared = op->comm->shared;
    memcpy(shared->vector[op->comm->rank], op->in, op->n * sizeof(float));
    pthread_barrier_wait(&shared->barrier);
    combine(op);
    pthread_barrier_wait(&shared->barrier);
}

static void release(void *context)
{
    op_t *const op = context;
    free(op->in);
    free(op->out);
    free(op);
}

static int run(op_t given, const void *in, void *out, int type, int op, void *stream)
{
    const size_t in_bytes = given.n * sizeof(float), out_bytes = given.count * sizeof(float);
    if (type != FLOAT32 || op != SUM || in_bytes > ROOM)
        return UNSUPPORTED;
    op_t *const mine = malloc(sizeof *mine);
    *mine = given;
    mine->in = malloc(in_bytes + 1);
    mine->out = malloc(out_bytes + 1);
    mc_cu_result_t result = 0;
    if (in && in_bytes)
        result = cuMemcpyDtoHAsync_v2(mine->in, (mc_cu_address_t)(uintptr_t)in, in_bytes, stream);
    if (!result)
        result = cuLaunchHostFunc(stream, exchange, mine);
    if (!result && out && out_bytes)
        result =
            cuMemcpyHtoDAsync_v2((mc_cu_address_t)(uintptr_t)out, mine->out, out_bytes, stream);
    if (!result)
        result = cuLaunchHostFunc(stream, release, mine);
    return result ? FAILED : 0;
}

int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, comm_t *comm,
                  void *stream)
{
    const op_t op = {.comm = comm, .n = n, .count = n, .from = root};
    return run(op, comm->rank == root ? in : NULL, out, type, SUM, stream);
}

int ncclReduce(const void *in, void *out, size_t n, int type, int op, int root, comm_t *comm,
               void *stream)
{
    const op_t mine = {.comm = comm, .n = n, .count = comm->rank == root ? n : 0, .sums = true};
    return run(mine, in, out, type, op, stream);
}

int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, comm_t *comm, void *stream)
{
    const op_t mine = {.comm = comm, .n = n, .count = n, .sums = true};
    return run(mine, in, out, type, op, stream);
}

int ncclAllGather(const void *in, void *out, size_t n, int type, comm_t *comm, void *stream)
{
    const op_t op = {.comm = comm, .n = n, .count = n * (size_t)comm->size, .from = ALL};
    return run(op, in, out, type, SUM, stream);
}

int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, comm_t *comm,
                      void *stream)
{
    const op_t mine = {.comm = comm,
                       .n = n * (size_t)comm->size,
                       .first = n * (size_t)comm->rank,
                       .count = n,
                       .sums = true};
    return run(mine, in, out, type, op, stream);
}

int ncclGroupStart(void)
{
    return 0;
}

int ncclGroupEnd(void)
{
    return UNSUPPORTED;
}

int ncclSend(const void *in, size_t n, int type, int peer, comm_t *comm, void *stream)
{
    (void)in, (void)n, (void)type, (void)peer, (void)comm, (void)stream;
    return UNSUPPORTED;
}

int ncclRecv(void *out, size_t n, int type, int peer, comm_t *comm, void *stream)
{
    (void)out, (void)n, (void)type, (void)peer, (void)comm, (void)stream;
    return UNSUPPORTED;
}
