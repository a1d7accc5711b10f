/* Devices, contexts, modules and kernels of the fake, and calls that fail on demand. */
#include "fake.h"

#include "host_walk.h"

#include "gpu/program/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MULTIPROCESSORS = 16, MOST_FAULTS = 16, MOST_NAMES = 128, MOST_CONTEXTS = 16 };

/* Calls that fail, and how many there were -------------------------------------------------------- */

typedef struct {
    const char *function;
    int after;
    mc_cu_result_t result;
} fault_t;
typedef struct {
    const char *function;
    unsigned calls;
} count_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fault_t faults[MOST_FAULTS];
static count_t counts[MOST_NAMES];
static bool is_open;

void fake_fail(const char *function, int after, mc_cu_result_t result)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < MOST_FAULTS && faults[i].function)
        i++;
    if (i == MOST_FAULTS)
        abort();
    faults[i] = (fault_t){function, after, result};
    pthread_mutex_unlock(&lock);
}

static count_t *count_of(const char *function)
{
    int i = 0;
    while (i < MOST_NAMES && counts[i].function && strcmp(counts[i].function, function) != 0)
        i++;
    if (i == MOST_NAMES)
        abort();
    counts[i].function = function;
    return &counts[i];
}

unsigned fake_calls(const char *function)
{
    pthread_mutex_lock(&lock);
    const unsigned n = count_of(function)->calls;
    pthread_mutex_unlock(&lock);
    return n;
}

/* Whoever calls it must have a context current; what asks of devices, contexts and pointers need none. */
static bool needs_context(const char *function)
{
    static const char *const begin[] = {"cuMem",    "cuIpc",    "cuModule",
                                        "cuLaunch", "cuStream", "cuEvent"};
    bool needs = false;
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        needs = needs || strncmp(function, begin[i], strlen(begin[i])) == 0;
    return needs;
}

mc_cu_result_t fake_fault(const char *function)
{
    mc_cu_result_t result = FAKE_SUCCESS;
    pthread_mutex_lock(&lock);
    count_of(function)->calls++;
    for (int i = 0; i < MOST_FAULTS && !result; i++)
        if (faults[i].function && strcmp(faults[i].function, function) == 0 &&
            faults[i].after-- == 0) {
            result = faults[i].result;
            faults[i].function = NULL;
        }
    if (!is_open && !result)
        result = MC_CU_ERROR_NOT_INITIALIZED;
    pthread_mutex_unlock(&lock);
    return !result && needs_context(function) && !fake_context() ? MC_CU_ERROR_INVALID_CONTEXT
                                                                 : result;
}

mc_cu_result_t cuGetErrorName(mc_cu_result_t result, const char **name)
{
    static const struct {
        mc_cu_result_t result;
        const char *name;
    } names[] = {{FAKE_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {MC_CU_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {MC_CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {MC_CU_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {MC_CU_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].result == result) {
            *name = names[i].name;
            return FAKE_SUCCESS;
        }
    return MC_CU_ERROR_INVALID_VALUE;
}

mc_cu_result_t cuGetErrorString(mc_cu_result_t result, const char **text)
{
    (void)result;
    *text = "as the fake was told";
    return FAKE_SUCCESS;
}

/* Devices and contexts ---------------------------------------------------------------------------- */

static struct CUctx_st contexts[FAKE_DEVICES];
static _Thread_local mc_cu_context_t stack[MOST_CONTEXTS];
static _Thread_local int depth; /* of stack[0 … depth - 1], the last is current */
static _Atomic int first_island, n_devices = FAKE_DEVICES;

mc_cu_result_t cuInit(unsigned flags)
{
    (void)flags;
    for (int d = 0; d < FAKE_DEVICES; d++)
        contexts[d].device = d;
    n_devices = fake_setting("FAKE_GPUS", FAKE_DEVICES);
    if (n_devices == 0)
        return FAKE_ERROR_NO_DEVICE;
    pthread_mutex_lock(&lock);
    is_open = true;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

void fake_islands(int first)
{
    first_island = first;
}

bool fake_reaches(int device, int other)
{
    const int island = fake_setting("FAKE_ISLAND", FAKE_DEVICES);
    return device / island == other / island &&
           (first_island == 0 || (device < first_island) == (other < first_island));
}

mc_cu_context_t fake_context(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

mc_cu_result_t cuDeviceGetCount(int *n)
{
    FAKE_BEGIN;
    *n = n_devices;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceGet(mc_cu_device_t *device, int ordinal)
{
    FAKE_BEGIN;
    if (ordinal < 0 || ordinal >= FAKE_DEVICES)
        return MC_CU_ERROR_INVALID_VALUE;
    *device = ordinal;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceGetAttribute(int *value, mc_cu_device_attribute_t what,
                                    mc_cu_device_t device)
{
    (void)device;
    FAKE_BEGIN;
    switch (what) {
    case MC_CU_MULTIPROCESSORS:
        *value = MULTIPROCESSORS;
        return FAKE_SUCCESS;
    case MC_CU_FLUSHES:
        *value = 1;
        return FAKE_SUCCESS;
    case MC_CU_DIRECT:
        *value = fake_is_direct(NULL);
        return FAKE_SUCCESS;
    case MC_CU_DIRECT_FLUSHES:
        *value = fake_is_direct("flush") ? MC_CU_DIRECT_BY_HOST : 0;
        return FAKE_SUCCESS;
    case MC_CU_DIRECT_ORDER:
        *value = fake_is_direct("ordered") || fake_is_direct("tables") ? MC_CU_DIRECT_OWNER : 0;
        return FAKE_SUCCESS;
    case MC_CU_HOST_TABLES:
        *value = fake_is_direct("tables");
        return FAKE_SUCCESS;
    default:
        return MC_CU_ERROR_INVALID_VALUE;
    }
}

mc_cu_result_t cuDeviceGetUuid(mc_cu_uuid_t *uuid, mc_cu_device_t device)
{
    FAKE_BEGIN;
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "fake GPU", sizeof "fake GPU");
    uuid->bytes[MC_CU_UUID_BYTES - 1] = (char)device;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceCanAccessPeer(int *can, mc_cu_device_t device, mc_cu_device_t peer)
{
    FAKE_BEGIN;
    *can = device != peer && fake_reaches(device, peer);
    return FAKE_SUCCESS;
}

/* What the commands ask. */

mc_cu_result_t cuDriverGetVersion(int *version)
{
    *version = 13000;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceGetName(char *name, int capacity, mc_cu_device_t device)
{
    (void)device;
    FAKE_BEGIN;
    snprintf(name, (size_t)capacity, "fake GPU");
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceGetPCIBusId(char *id, int capacity, mc_cu_device_t device)
{
    FAKE_BEGIN;
    snprintf(id, (size_t)capacity, "0000:%02X:00.0", fake_bus(device));
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDeviceGetP2PAttribute(int *value, mc_cu_p2p_attribute_t what,
                                       mc_cu_device_t device, mc_cu_device_t peer)
{
    FAKE_BEGIN;
    if (device == peer || (what != MC_CU_P2P_RANK && what != MC_CU_P2P_ATOMICS))
        return MC_CU_ERROR_INVALID_VALUE;
    const bool fast = fake_paired(device, peer) || fake_setting("FAKE_SWITCH", 0) > 0;
    const int near =
        fake_setting("FAKE_RANKED", 0); /* groups that the driver ranks better, without links */
    const bool ranked = fast || (near > 0 && device / near == peer / near);
    *value = what == MC_CU_P2P_RANK ? !ranked : fast;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuDevicePrimaryCtxRetain(mc_cu_context_t *context, mc_cu_device_t device)
{
    FAKE_BEGIN;
    *context = &contexts[device];
    return FAKE_SUCCESS;
}

mc_cu_result_t cuCtxPushCurrent_v2(mc_cu_context_t context)
{
    FAKE_BEGIN;
    if (depth == MOST_CONTEXTS)
        abort();
    stack[depth++] = context;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuCtxPopCurrent_v2(mc_cu_context_t *context)
{
    FAKE_BEGIN;
    if (depth == 0)
        return MC_CU_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return FAKE_SUCCESS;
}

mc_cu_result_t cuCtxSetCurrent(mc_cu_context_t context)
{
    FAKE_BEGIN;
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuCtxGetCurrent(mc_cu_context_t *context)
{
    FAKE_BEGIN;
    *context = fake_context();
    return FAKE_SUCCESS;
}

mc_cu_result_t cuCtxGetDevice(mc_cu_device_t *device)
{
    FAKE_BEGIN;
    if (!fake_context())
        return MC_CU_ERROR_INVALID_CONTEXT;
    *device = fake_context()->device;
    return FAKE_SUCCESS;
}

/* Modules ----------------------------------------------------------------------------------------- */

struct CUmod_st {
    int unused;
};
struct CUfunc_st {
    mc_device_body_t body;
    bool sums; /* mc_sum_…; else mc_walk_… */
};
static struct CUmod_st module;
static struct CUfunc_st functions[2][MC_DEVICE_N_BODIES]; /* by `sums` */

/* Takes any image, and has the library's kernels in each. */
mc_cu_result_t cuModuleLoadData(mc_cu_module_t *loaded, const void *image)
{
    FAKE_BEGIN;
    FAKE_UNSAFE;
    if (!fake_context() || !image)
        return MC_CU_ERROR_INVALID_VALUE;
    *loaded = &module;
    return FAKE_SUCCESS;
}

mc_cu_result_t cuModuleUnload(mc_cu_module_t loaded)
{
    FAKE_BEGIN;
    return loaded == &module ? FAKE_SUCCESS : FAKE_ERROR_INVALID_HANDLE;
}

mc_cu_result_t cuModuleGetFunction(mc_cu_function_t *function, mc_cu_module_t loaded,
                                   const char *name)
{
    static const char *const prefix[] = {"mc_walk_", "mc_sum_"};
    FAKE_BEGIN;
    if (loaded != &module)
        return FAKE_ERROR_INVALID_HANDLE;
    for (unsigned b = 0; b < MC_DEVICE_N_BODIES; b++)
        for (int sums = 0; sums < 2; sums++) {
            const size_t n = strlen(prefix[sums]);
            if (strncmp(name, prefix[sums], n) != 0 || (sums && b == MC_DEVICE_BODY_move) ||
                strcmp(name + n, mc_device_body_name((mc_device_body_t)b)) != 0)
                continue;
            functions[sums][b] = (struct CUfunc_st){(mc_device_body_t)b, sums};
            *function = &functions[sums][b];
            return FAKE_SUCCESS;
        }
    return MC_CU_ERROR_NOT_FOUND;
}

size_t fake_parameter(const struct CUfunc_st *function)
{
    return function->sums ? sizeof(mc_device_sum_t) : sizeof(mc_device_launch_t);
}

/* Kernels ----------------------------------------------------------------------------------------- */

static _Atomic unsigned kernel_sleep, kernel_threads = 1;

void fake_kernels(unsigned sleep, unsigned threads)
{
    kernel_sleep = sleep;
    kernel_threads = threads;
}

/* Kernels of several processes do not run at once on a device: a process locks its byte of a file that was made
 * before any of them was forked. */
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned running[FAKE_DEVICES]; /* kernels of this process */
static int devices_file = -1;

__attribute__((constructor)) static void make_devices_file(void)
{
    devices_file = memfd_create("fake devices", MFD_CLOEXEC);
}

static void lock_device(int device, short how)
{
    struct flock own = {.l_type = how, .l_whence = SEEK_SET, .l_start = device, .l_len = 1};
    pthread_mutex_lock(&device_lock);
    const bool first = how == F_WRLCK && running[device]++ == 0;
    const bool last = how == F_UNLCK && --running[device] == 0;
    if ((first || last) && fcntl(devices_file, F_SETLKW, &own) != 0)
        abort();
    pthread_mutex_unlock(&device_lock);
}

typedef struct {
    const fake_kernel_t *kernel;
    unsigned block;
    mc_thread_t self;
    pthread_t thread;
} worker_t;

static void *work(void *argument)
{
    const worker_t *const w = argument;
    const mc_device_launch_t *const l = &w->kernel->launch;
    fake_open_memory(true);
    if (w->kernel->function->sums) {
        const mc_thread_t thread = {.index = w->block * w->self.count + w->self.index,
                                    .count = w->kernel->blocks * w->self.count};
        mc_host_sum(thread, &w->kernel->sum, w->kernel->function->body);
        return NULL;
    }
    const mc_device_call_t *const call = l->many ? &l->many[w->block / l->one.blocks] : &l->one;
    mc_host_walk(w->self, call, w->block % l->one.blocks, w->kernel->function->body);
    return NULL;
}

/* Changes the first byte of what a launch of one rank has written. */
static void spoil(const mc_device_launch_t *launch)
{
    char *const out = launch->one.buffer[MC_DEVICE_OUT];
    if (launch->many || !out || !getenv("FAKE_SPOIL"))
        return;
    fake_open_memory(true);
    *out = (char)(*out ^ 1);
    fake_open_memory(false);
}

void fake_run(const fake_kernel_t *kernel)
{
    const unsigned threads = kernel_threads, n = kernel->blocks * threads;
    worker_t *const worker = calloc(n, sizeof *worker);
    mc_meet_t *const meet = calloc(kernel->blocks, sizeof *meet);
    if (!worker || !meet)
        abort();
    lock_device(kernel->device, F_WRLCK);
    if (kernel_sleep > 0)
        usleep(kernel_sleep);
    for (unsigned i = 0; i < n; i++) {
        const unsigned block = i / threads;
        if (i % threads == 0 && pthread_barrier_init(&meet[block].barrier, NULL, threads) != 0)
            abort();
        worker[i] = (worker_t){kernel, block, {i % threads, threads, &meet[block]}, 0};
    }
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0)
            abort();
    for (unsigned i = 0; i < n; i++)
        pthread_join(worker[i].thread, NULL);
    lock_device(kernel->device, F_UNLCK);
    for (unsigned b = 0; b < kernel->blocks; b++)
        pthread_barrier_destroy(&meet[b].barrier);
    spoil(&kernel->launch);
    free(meet);
    free(worker);
}
