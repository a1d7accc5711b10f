/*
 * The proxy of a job: a thread that sends and receives for this rank's kernels, to and
 * from ranks of other machines (gpu/route/route.h). Each mesh with calls on device memory and
 * with ranks of other machines has an end of it.
 *
 * It has transports of its own, of the same kind and dimensions as the job's: those have no lock
 * where one thread uses the mesh, and two threads that sleep on one transport would miss each
 * other's events. So calls on host memory go on as if there were no proxy, and tags cannot meet.
 *
 * The thread sleeps as long as no launch is in flight. After one it polls, then yields, then sleeps
 * ever longer, as no event tells that a kernel has raised a flag.
 */
#ifndef MC_PROXY_PROXY_H
#define MC_PROXY_PROXY_H

#include "gpu/cuda/driver.h"
#include "gpu/route/route.h"
#include "runtime/handle/handle.h"

typedef struct mc_proxy_end mc_proxy_end_t;

/* What a job has for calls on device memory. `alarm` ends the kernels of all its meshes: a word in pinned memory, NULL
 * until it is made, that the monitor's board sets. */
typedef struct mc_gpu_job {
    struct {
        _Atomic uint32_t *word;
        mc_cu_address_t address; /* as kernels see it */
        mc_cu_context_t context; /* that it was allocated in */
    } alarm;
    mc_cu_module_t module;  /* the kernels in that context; NULL: not loaded */
    struct mc_proxy *proxy; /* NULL: none was needed */
    struct mc_stage *spare; /* memory of the host (gpu/call/call.h) */
} mc_gpu_job_t;

/* Is a rank of the mesh on another machine than this one? */
bool mc_proxy_is_far(const meshcoll_t *h, int32_t rank);
/* Is any rank of the mesh on another machine than another, on all ranks alike? */
bool mc_proxy_is_needed(const meshcoll_t *h);

/* Makes the job's proxy, unless it is there, and the transports that the mesh needs. The context of
 * the rank's GPU is current, and is that of slots in its memory, if there are any. */
int mc_proxy_open(meshcoll_t *h);
/* May slots of this rank lie in memory of the GPU of a context? */
bool mc_proxy_is_direct(const meshcoll_t *h, mc_cu_context_t context);
/* The addresses of its transports, for the others: their size, and the copy. */
size_t mc_proxy_address_bytes(const meshcoll_t *h);
void mc_proxy_address_pack(const meshcoll_t *h, char *at);

/* The mesh's end; lanes have so many blocks and bytes of a slot. `direct`: its slots may lie in memory
 * of the GPU. ERR_NO_MEMORY. */
int mc_proxy_end_open(meshcoll_t *h, uint32_t blocks, uint32_t slot_bytes, bool direct,
                      mc_proxy_end_t **end);
/* Keeps the addresses of a rank of the mesh, of `bytes` bytes at most, and whether its slots may lie in memory of its
 * GPU; before routes to it are asked for. ERR_NO_MEMORY. */
int mc_proxy_end_keep(mc_proxy_end_t *end, int32_t rank, const char *packed, size_t bytes,
                      bool direct);
/* The route to a rank of another machine, or from it, made when it is asked for first: its pinned
 * memory is allocated, so a context is current. Its slots are in memory of the GPU where they may be,
 * the transport moves that, and there is room. ERR_NO_MEMORY, ERR_DEVICE. */
int mc_proxy_route(mc_proxy_end_t *end, int32_t rank, bool receives, mc_route_t **route);
/* NULL: there is none. */
mc_route_t *mc_proxy_find_route(const mc_proxy_end_t *end, int32_t rank, bool receives);
/* Why some route has its slots in memory of the host: "…, as WHY"; static. NULL: none has. */
const char *mc_proxy_why_host(const mc_proxy_end_t *end);
/* Tells of a launch of a call with that digest, in the order of launches of the mesh. `route`: by lane of the
 * program; NULL: not a proxy's. ERR_NO_MEMORY. */
int mc_proxy_launch(mc_proxy_end_t *end, mc_device_program_t *program, mc_route_t *const *route,
                    const mc_device_call_t *call, uint32_t digest);
/* Has all been moved that was launched on the mesh, and acknowledged by the peers? */
bool mc_proxy_is_settled(const mc_proxy_end_t *end);
/* Frees it. `leaves`: not the memory of routes, which kernels may still use; else a context is current.
 * Where the job's proxy is there, it has settled, or nothing was launched: the transports, which may call back for what
 * is in flight when they are closed, have no operation of its routes. A job that failed keeps its meshes until its proxy
 * is closed (runtime/jobs/close.c). */
void mc_proxy_end_close(const meshcoll_t *h, mc_proxy_end_t *end, bool leaves);

/* Of a job: ends the thread and closes the transports, when all ranks have settled, or the mesh has
 * failed. */
void mc_proxy_close(mc_job_t *job);

#endif
