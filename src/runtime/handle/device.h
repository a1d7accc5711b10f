/*
 * GPUs, as the runtime knows them: one table, as a transport is. src/gpu fills it in. What it keeps of a mesh and of a
 * job lies behind one pointer each (`gpu` in handle.h and job.h), NULL until the first call on device memory.
 */
#ifndef MC_HANDLE_DEVICE_H
#define MC_HANDLE_DEVICE_H

#include "base/base.h"

struct mc_call;
struct mc_job;

/* REGISTERED: of the host, and pinned by CUDA. MANAGED: moves between host and devices. */
typedef enum {
    MC_MEMORY_HOST,
    MC_MEMORY_REGISTERED,
    MC_MEMORY_MANAGED,
    MC_MEMORY_DEVICE
} mc_memory_kind_t;

typedef struct {
    mc_memory_kind_t kind;
    int device;    /* of DEVICE and MANAGED: its ordinal */
    void *context; /* of CUDA, that it was allocated in; NULL: unknown */
} mc_pointer_t;

/* The head of a registration. */
struct meshcoll_registration {
    meshcoll_t *mesh;
};

/* The caller of what concerns a mesh or a request holds the mesh's lock. */
typedef struct mc_device_ops {
    /* NULL is HOST. The function is NULL where all memory is: there is no driver. */
    mc_pointer_t (*pointer)(const void *at);
    /* OK, or ERR_UNSUPPORTED: why no call on device memory can run. */
    int (*check)(void);

    /* All below are NULL where the library is built without src/gpu. Runs a checked call that has its numbers to its
     * end; or makes a persistent request for it. */
    int (*run)(meshcoll_t *mesh, struct mc_call *call);
    int (*init)(meshcoll_t *mesh, struct mc_call *call, meshcoll_request_t **request);
    /* Can a call run the strategy call->best with the memory that calls of the mesh have taken so far? Prepares it. */
    bool (*can_try)(meshcoll_t *mesh, const struct mc_call *call);
    /* The public calls of these names. */
    int (*enqueue)(meshcoll_t *mesh, const meshcoll_args_t *args, void *stream);
    int (*enqueue_request)(meshcoll_request_t *request, void *stream);
    int (*register_memory)(meshcoll_t *mesh, void *buffer, size_t bytes,
                           struct meshcoll_registration **registration);
    int (*deregister)(struct meshcoll_registration *registration);

    /* Of a mesh with `gpu`: how its launches fare, IN_PROGRESS, OK or what went wrong; are any in graphs; stores the
     * times of those that are complete, for MESHCOLL_EXPLAIN. */
    int (*state)(meshcoll_t *mesh);
    bool (*is_captured)(const meshcoll_t *mesh);
    void (*collect)(const meshcoll_t *mesh);
    /* Its end: waits until this rank's launches are complete; when all ranks' are, peers' memory is not used any
     * more; when all ranks have done that, frees all. Where it was not done, and of a mesh that failed, memory that
     * peers may still use stays until the process ends. */
    void (*await)(meshcoll_t *mesh);
    void (*unmap)(meshcoll_t *mesh);
    void (*close)(meshcoll_t *mesh);
    /* The end of a job with `gpu`: of its threads, before its transports are closed; then, when its monitor is closed
     * and its meshes are freed, of the rest. */
    void (*stop)(struct mc_job *job);
    void (*free)(struct mc_job *job);
} mc_device_ops_t;

/* Opens the driver, once in a process. Any thread. Never NULL. */
const mc_device_ops_t *mc_gpu_ops(void);

/* ERR_UNSUPPORTED where the library is built without src/gpu. */
static inline int mc_device_check_built(const mc_device_ops_t *device)
{
    return device->run ? MESHCOLL_OK : device->check();
}

/* Is any of two device memory? */
static inline bool mc_device_has(const mc_device_ops_t *device, const void *a, const void *b)
{
    return device->pointer && (device->pointer(a).kind == MC_MEMORY_DEVICE ||
                               device->pointer(b).kind == MC_MEMORY_DEVICE);
}

static inline mc_pointer_t mc_device_pointer(const mc_device_ops_t *device, const void *at)
{
    return device->pointer ? device->pointer(at) : (mc_pointer_t){.kind = MC_MEMORY_HOST};
}

#endif
