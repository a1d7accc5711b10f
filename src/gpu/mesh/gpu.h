/*
 * A mesh's calls on device memory: the rank's GPU, its arena and those of its peers, the programs
 * it runs, and how to launch them: as kernels, or by the stream executor. Made by the first such
 * call, by all ranks together; NULL in the handle until then. The caller holds the mesh's lock.
 *
 * Kernels of one mesh run one after the other, in the order of the calls, in whatever streams:
 * lanes carry messages in that order.
 */
#ifndef MC_GPU_GPU_H
#define MC_GPU_GPU_H

#include "gpu/cuda/driver.h"
#include "gpu/mesh/arena.h"
#include "gpu/program/program.h"
#include "gpu/proxy/proxy.h"
#include "job/monitor/news.h"

/* Memory of the GPU, a member of a list. It is not freed before the mesh: the driver may wait for all
 * that the GPU runs then, and so for kernels that wait for what this thread has not launched yet. */
typedef struct mc_gpu_memory {
    struct mc_gpu_memory *next;
    mc_cu_address_t at;
    size_t bytes;
} mc_gpu_memory_t;

/* Of so many launches in flight, the last ones, it is noticed that another rank was refused the call; as
 * many refusals as a board keeps. */
enum { MC_GPU_NUMBERS = MC_NEWS_REFUSALS };

typedef struct mc_gpu_window mc_gpu_window_t;

typedef struct mc_gpu {
    mc_cu_context_t context;
    mc_cu_device_t device;
    mc_cu_module_t module;
    mc_cu_stream_t stream; /* of blocking calls, and for preparations */
    mc_gpu_arena_t arena;
    struct mc_gpu_signals *signals; /* of the stream executor; NULL: kernels wait themselves */
    mc_proxy_end_t *end;            /* of lanes to other machines; NULL: all ranks are on one */
    /* For SCRATCH, the largest first, which is in use: kernels that were captured keep the address
     * of those behind it. */
    mc_gpu_memory_t *scratch;
    mc_gpu_memory_t *spare;     /* of programs that are gone */
    mc_device_report_t *report; /* by block, in pinned memory: of the first launch that gave up */
    mc_cu_address_t report_address;

    mc_cu_event_t done;              /* recorded after each launch that was not captured */
    mc_cu_stream_t last_stream;      /* of the last one */
    uint64_t n_launches, n_done;     /* those; of them are known to be complete */
    uint32_t number[MC_GPU_NUMBERS]; /* operation numbers of the last ones, in turn */

    struct mc_gpu_times *times; /* of launches, for MESHCOLL_EXPLAIN; NULL: none */

    mc_gpu_window_t *registrations; /* the newest first */
    bool captured;                  /* graphs hold calls of the mesh */

    struct mc_gpu_program *programs; /* the one used last first */
    uint32_t n_programs, next_program;
} mc_gpu_t;

/* What the job has; made when it is asked for first. NULL: no memory, with a sentence. */
mc_gpu_job_t *mc_gpu_job(mc_job_t *job);

/* Takes memory of at least so many bytes, spare or new; `what`: for the sentence. The context is
 * current. */
int mc_gpu_memory_take(mc_gpu_t *gpu, size_t bytes, const char *what, mc_gpu_memory_t **memory);
void mc_gpu_memory_return(mc_gpu_t *gpu, mc_gpu_memory_t *memory);
/* Frees a list; `leaves`: not the GPU's memory. */
void mc_gpu_memory_free(mc_gpu_memory_t **list, bool leaves);

/* NULL is HOST, and so is everything where there is no libcuda. */
mc_pointer_t mc_pointer(const void *at);
/* The context that a buffer of a call was allocated in, else this thread's. */
int mc_gpu_context(const mc_pointer_t *buffer, mc_cu_context_t *context);

/* Between enter, or visit, and leave the GPU's context is current, and a capture of this thread is not disturbed. */
typedef struct {
    const mc_cuda_t *cuda;
    mc_cu_capture_mode_t mode;
} mc_gpu_visit_t;
int mc_gpu_visit(mc_cu_context_t context, mc_gpu_visit_t *visit);
int mc_gpu_enter(const mc_gpu_t *gpu, mc_gpu_visit_t *visit);
void mc_gpu_leave(mc_gpu_visit_t *visit);

#endif
