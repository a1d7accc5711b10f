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
    struct mc_stream_signals *signals; /* of the stream executor; NULL: kernels wait themselves */
    mc_proxy_end_t *end;               /* of lanes to other machines; NULL: all ranks are on one */
    /* For SCRATCH, the largest first, which is in use: kernels that were captured keep the address
     * of those behind it. */
    mc_gpu_memory_t *scratch;
    mc_gpu_memory_t *spare;     /* of programs that are gone */
    mc_device_report_t *report; /* by block, in pinned memory: of the first launch that gave up */
    mc_cu_address_t report_address;

    mc_cu_event_t done;          /* recorded after each launch that was not captured */
    uint64_t n_launches, n_done; /* those; of them are known to be complete */
    mc_cu_event_t passed;        /* recorded behind launch n_passed; 0: behind none */
    uint64_t n_passed;
    uint32_t number[MC_GPU_NUMBERS];  /* operation numbers of the last ones, in turn */
    uint32_t program[MC_GPU_NUMBERS]; /* and those of their programs */
    int64_t since; /* in ms: of the first look for the end of these; 0: there was none */
    int64_t due;   /* in ms: peers are asked whether they make the same calls */

    struct mc_gpu_timed *timed; /* launches of MESHCOLL_EXPLAIN (gpu/launch/times.h), in order */

    mc_gpu_window_t *registrations; /* the newest first */
    bool captured;                  /* graphs hold calls of the mesh */
    bool unmapped;                  /* mc_gpu_unmap is done */

    struct mc_gpu_program *programs; /* the one used last first */
    uint32_t next_program;
} mc_gpu_t;

/* What the job has; made when it is asked for first. NULL: no memory, with a sentence. */
mc_gpu_job_t *mc_gpu_job(mc_job_t *job);

/* What this rank finds alone breaks the mesh: peers, and their kernels, would wait for it until their limit. */
int mc_gpu_fail_alone(meshcoll_t *h, int status);

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

/* Between visit and leave a context is current, and a capture of this thread is not disturbed. */
typedef struct {
    const mc_cuda_t *cuda;
    mc_cu_capture_mode_t mode; /* the thread's, where it was changed */
    bool changed;
} mc_gpu_visit_t;
int mc_gpu_visit(mc_cu_context_t context, mc_gpu_visit_t *visit);
void mc_gpu_leave(mc_gpu_visit_t *visit);

/* Opening and closing ------------------------------------------------------------------------------- */

/* Makes h->gpu, unless it is there; `buffer` is a pointer of the call. Collective; `number` is the
 * call's. Either all ranks succeed, or all fail and *agreed is set: they know it of each other. */
int mc_gpu_open(meshcoll_t *h, const mc_pointer_t *buffer, uint32_t number, bool *agreed);
/* May ranks of this mesh use GPUs? The same on all of them. */
int mc_gpu_check_ranks(const meshcoll_t *h);
/* When the kernels of all ranks are complete: peers' memory is not used any more. */
void mc_gpu_unmap(meshcoll_t *h);
/* When all ranks have done that, frees what mc_gpu_open has made, and memory of programs; the context is current.
 * `leaves`: what peers or kernels may still use stays until the process ends. */
void mc_gpu_free(const meshcoll_t *h, mc_gpu_t *gpu, bool leaves);
/* What its meshes share, of a job with `gpu`, at last. */
void mc_gpu_shared_free(const mc_job_t *job);

/* Registered memory -------------------------------------------------------------------------------- */

/*
 * Registered memory: a buffer of each rank's GPU that the other ranks on its machine have mapped.
 * Where OUT of a call lies in one, ranks know where the others' lies: at the same offset of theirs.
 */
struct mc_gpu_window {
    struct meshcoll_registration is; /* first */
    mc_gpu_window_t *next;           /* of the mesh's */
    uint32_t number; /* of the operation that registered it, the same on all ranks */
    char *buffer;    /* this rank's */
    size_t bytes;    /* the same on all ranks */
    /* By mesh rank, as this process's GPU sees it; 0: not mapped. What was mapped is an allocation,
     * in which the buffer begins at `peer`. */
    mc_cu_address_t *peer, mapped[];
};

/* The registration that OUT of a checked call lies in as a whole; NULL: none, or the call takes no
 * advantage of it: tables of counts may differ between ranks; not all ranks need have an OUT; and
 * one that is a block lies elsewhere on each rank where it is in place. */
const mc_gpu_window_t *mc_gpu_window(const meshcoll_t *h, const meshcoll_args_t *args);

/* Closes what is mapped. The context is current. */
void mc_gpu_window_unmap(mc_gpu_window_t *window, int32_t ranks);
/* Frees it, and takes it out of the list, if it is there. */
void mc_gpu_window_free(mc_gpu_t *gpu, mc_gpu_window_t *window);

#endif
