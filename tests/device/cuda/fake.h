/*
 * A fake of libcuda, for machines without a GPU: a shared library that is opened in its place.
 * Device memory is a memory file that other processes open by an IPC handle; where the processor
 * has protection keys, threads of the host cannot access it. Streams are threads; kernels are the
 * library's own text, compiled for the host. Calls can be made to fail. With FAKE_SPOIL in the
 * environment each kernel leaves a wrong byte in its result: those who check must notice.
 *
 * This header is for the parts of the fake, and for tests, which are linked with it.
 */
#ifndef MC_TEST_FAKE_H
#define MC_TEST_FAKE_H

#include "gpu/cuda/types.h"
#include "gpu/program/format.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_API __attribute__((visibility("default")))

/* What cuda.h names so. */
enum {
    FAKE_SUCCESS = 0,
    FAKE_ERROR_NO_DEVICE = 100,
    FAKE_ERROR_INVALID_HANDLE = 400,
    FAKE_ERROR_ALREADY_REGISTERED = 712,
    FAKE_ERROR_CAPTURE_UNSUPPORTED = 900,
    FAKE_ERROR_CAPTURE_ISOLATION = 905,
    FAKE_ERROR_CAPTURED_EVENT = 907
};
enum { FAKE_WAIT_GEQ = 0, FAKE_WAIT_EQ = 1, FAKE_MOST_MEMORY_OPS = 255 };
enum { FAKE_DEVICES = 16 };

/* For tests --------------------------------------------------------------------------------------- */

/* The call of `function`, as exported, after `after` more of them fails once with `result`. */
FAKE_API void fake_fail(const char *function, int after, mc_cu_result_t result);
/* Calls of it so far, failed ones too. */
FAKE_API unsigned fake_calls(const char *function);
/* From now on: devices below `first` and those from it on cannot access each other; 0: all can. */
FAKE_API void fake_islands(int first);
/* Microseconds that each kernel sleeps before it begins; threads of a block that run, 1 at first. */
FAKE_API void fake_kernels(unsigned sleep, unsigned threads);
/* From now on events tell the time of their stream's own clock, which stands but for kernels that walk programs: each
 * takes as many seconds as `took` says when it has run. NULL: real time. */
FAKE_API void fake_clock(double (*took)(const mc_device_call_t *call));
/* Microseconds that each copy of a stream sleeps before it begins. */
FAKE_API void fake_copies(unsigned sleep);
/* Operations of a stream that are not done, beyond which a call waits to add one; 0: any number. */
FAKE_API void fake_queue(unsigned most);
/* Pieces of memory that this process has of the driver. */
FAKE_API unsigned fake_areas(void);
/* Does a host access to device memory fault here? */
FAKE_API bool fake_guards(void);
/* Network cards, which the fake of UCX plays (fake_ucx.c): is it memory of a GPU; they read it, and write it. What
 * they write is there after the next flush only, unless FAKE_DIRECT is "ordered". */
FAKE_API bool fake_is_device(const void *at);
FAKE_API void fake_card_reads(void *to, const void *from, size_t bytes);
FAKE_API void fake_card_writes(void *to, const void *from, size_t bytes);
/* Messages of GPUs' memory that the fake of UCX has sent and received. */
FAKE_API unsigned fake_ucx_moved(void);

/* What GPUs say of writes of network cards (FAKE_DIRECT): the host can flush them ("flush"); they are ordered
 * ("ordered"), or neither ("unordered"); ordered, but the GPU uses the host's page tables ("tables"). Else cards do not
 * reach them. */
static inline bool fake_is_direct(const char *kind)
{
    const char *const text = getenv("FAKE_DIRECT");
    return text && (!kind || strcmp(text, kind) == 0);
}

/* The box that a process sees, where the environment says so: FAKE_GPUS; FAKE_ISLAND: those of groups of
 * so many access each other; FAKE_PAIR: those of groups of so many have NVLinks to each other;
 * FAKE_MIXED: the members of these groups are so many numbers apart; FAKE_SWITCH: NVLinks of each to a
 * switch. The fake of NVML says the same. */
static inline int fake_setting(const char *name, int otherwise)
{
    const char *const text = getenv(name);
    return text ? atoi(text) : otherwise;
}
static inline bool fake_paired(int device, int other)
{
    const int pair = fake_setting("FAKE_PAIR", 0), apart = fake_setting("FAKE_MIXED", 0);
    return pair > 0 && (apart ? device % apart == other % apart : device / pair == other / pair);
}
/* The PCI bus of a GPU. */
static inline unsigned fake_bus(int device)
{
    return (0x11u + 0x10u * (unsigned)device) & 0xffu;
}

typedef struct CUgraph_st *fake_graph_t;
FAKE_API mc_cu_result_t cuMemAllocManaged(mc_cu_address_t *at, size_t bytes, unsigned flags);
FAKE_API mc_cu_result_t cuMemcpyHtoD_v2(mc_cu_address_t to, const void *from, size_t bytes);
FAKE_API mc_cu_result_t cuMemcpyDtoH_v2(void *to, mc_cu_address_t from, size_t bytes);
FAKE_API mc_cu_result_t cuMemcpyDtoHAsync_v2(void *to, mc_cu_address_t from, size_t bytes,
                                             mc_cu_stream_t stream);
FAKE_API mc_cu_result_t cuMemcpyDtoDAsync_v2(mc_cu_address_t to, mc_cu_address_t from, size_t bytes,
                                             mc_cu_stream_t stream);
FAKE_API mc_cu_result_t cuEventElapsedTime(float *ms, mc_cu_event_t from, mc_cu_event_t to);
FAKE_API mc_cu_result_t cuLaunchHostFunc(mc_cu_stream_t stream, void (*function)(void *context),
                                         void *context);
FAKE_API mc_cu_result_t cuStreamQuery(mc_cu_stream_t stream);
FAKE_API mc_cu_result_t cuStreamBeginCapture_v2(mc_cu_stream_t stream, mc_cu_capture_mode_t mode);
FAKE_API mc_cu_result_t cuStreamEndCapture(mc_cu_stream_t stream, fake_graph_t *graph);
FAKE_API mc_cu_result_t cuGraphLaunch(fake_graph_t graph, mc_cu_stream_t stream);
FAKE_API mc_cu_result_t cuGraphDestroy(fake_graph_t graph);

/* Those that the library calls. */
#define FAKE_DECLARE(member, symbol, parameters) FAKE_API mc_cu_result_t symbol parameters;
#include "gpu/cuda/functions.h"
MC_CUDA_FUNCTIONS(FAKE_DECLARE)
MC_CUDA_DIRECT_FUNCTIONS(FAKE_DECLARE)
MC_CUDA_STREAM_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

/* Between the parts ------------------------------------------------------------------------------- */

struct CUctx_st {
    int device;
};

/* Begins each function that tests may let fail. */
mc_cu_result_t fake_fault(const char *function);
#define FAKE_BEGIN                                            \
    do {                                                      \
        const mc_cu_result_t injected = fake_fault(__func__); \
        if (injected)                                         \
            return injected;                                  \
    } while (0)
/* Calls that may wait for what is being captured are refused then. */
mc_cu_result_t fake_unsafe(const char *function);
#define FAKE_UNSAFE                                           \
    do {                                                      \
        const mc_cu_result_t refused = fake_unsafe(__func__); \
        if (refused)                                          \
            return refused;                                   \
    } while (0)

/* The current context; NULL: none. */
mc_cu_context_t fake_context(void);
bool fake_reaches(int device, int other);
/* Is it a word that streams can wait for: pinned or registered memory of the host, or this device's own? What CUDA says
 * nothing of, memory of other processes, is none here. */
bool fake_is_word(mc_cu_address_t at);
/* Lets this thread access device memory, or not. */
void fake_open_memory(bool open);
/* Runs a kernel in this thread, until it has ended. */
struct CUfunc_st;
typedef struct {
    const struct CUfunc_st *function;
    int device;
    unsigned blocks;
    union {
        mc_device_launch_t launch;
        mc_device_sum_t sum;
    };
} fake_kernel_t;
/* Bytes of what a kernel is launched with. */
size_t fake_parameter(const struct CUfunc_st *function);
void fake_run(const fake_kernel_t *kernel);

/* Captures: of all threads together. */
extern _Atomic int fake_captures;
extern _Thread_local mc_cu_capture_mode_t fake_capture_mode;

#endif
