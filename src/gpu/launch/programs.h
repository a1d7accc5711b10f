/*
 * The programs that a mesh has on its GPU: a call's plan, lowered, with this rank's ends of lanes.
 * They are kept for calls of the same arguments, whatever their buffers are.
 */
#ifndef MC_LAUNCH_PROGRAMS_H
#define MC_LAUNCH_PROGRAMS_H

#include "gpu/mesh/gpu.h"
#include "gpu/stream/stream.h"
#include "runtime/diagnose/waits/waits.h"

/* As many programs as are kept beyond those that run, were captured or belong to a request: a
 * training step makes few different calls, and a program takes little memory. */
enum { MC_GPU_PROGRAMS = 64 };

typedef struct mc_gpu_program {
    struct mc_gpu_program *next;
    uint32_t number; /* in reports */
    /* What calls it serves, with `asked`; `tables`: only the one that it was made for. */
    meshcoll_op_t op;
    int32_t root;
    bool in_place, tables;
    mc_strategy_t strategy;
    const mc_gpu_window_t *window; /* that OUT lies in; NULL: none */
    mc_waits_launch_t asked;       /* without a number */
    bool by_comm;                  /* the ranks of its plan are the caller's */

    mc_device_program_t *lowered;
    mc_gpu_memory_t *memory;    /* its runs, then its ends of lanes; NULL: it has none */
    mc_route_t **route;         /* by lane, the proxy's; NULL: it moves nothing for it */
    mc_stream_lane_t *lane;     /* of the stream executor, which needs no memory of the GPU */
    mc_cu_function_t kernel;    /* that walks it, or that of its sums; NULL: it has no sums */
    mc_device_call_t call;      /* without buffers */
    size_t scratch;             /* bytes */
    uint64_t sent[MC_MAX_DIMS]; /* bytes that a run sends along each dimension */
    uint32_t by_host;           /* peers whose messages lie in memory of the host */
    const char *why_host;       /* of those on other machines; mc_proxy_why_host */
    uint32_t n_sent, n_direct;  /* messages of a pass; of these go straight to OUT */
    uint64_t last;              /* the launch that used it last */
    uint32_t held;              /* by requests */
    bool captured;              /* a graph may launch it at any time */
} mc_gpu_program_t;

/* Finds or makes the program of checked arguments. `forwarded`: of the blocks of an alltoallv that pass
 * through this rank; NULL: not known. `tries`: only if it needs no more scratch and routes than there are, else
 * ERR_NO_MEMORY. ERR_UNSUPPORTED: all ranks find so; ERR_DEVICE, ERR_NO_MEMORY. */
int mc_gpu_program(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                   const mc_forwarded_t *forwarded, bool tries, mc_gpu_program_t **program);
/* That of a report; NULL: it is gone. */
const mc_gpu_program_t *mc_gpu_program_find(const mc_gpu_t *gpu, uint32_t number);

/* Frees those of a registration; ERR_INVALID_ARG with a sentence where a request needs one. */
int mc_gpu_programs_drop(mc_gpu_t *gpu, const mc_gpu_window_t *window);
/* Frees all; their memory of the GPU becomes spare. */
void mc_gpu_programs_free(mc_gpu_t *gpu);

#endif
