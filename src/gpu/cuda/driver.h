/*
 * libcuda, opened at run time: libcuda.so.1, or what MESHCOLL_LIBCUDA names; "off": none. Nothing
 * of CUDA is linked, and the library never initialises the driver: a process that has device memory has
 * done that. Commands do (tools/gpu).
 */
#ifndef MC_CUDA_DRIVER_H
#define MC_CUDA_DRIVER_H

#include "base/base.h"
#include "gpu/cuda/functions.h"
#include "gpu/cuda/types.h"

typedef struct {
#define MC_CUDA_MEMBER(member, symbol, parameters) mc_cu_result_t(*member) parameters;
    MC_CUDA_FUNCTIONS(MC_CUDA_MEMBER)
    MC_CUDA_DIRECT_FUNCTIONS(MC_CUDA_MEMBER)
    MC_CUDA_STREAM_FUNCTIONS(MC_CUDA_MEMBER)
#undef MC_CUDA_MEMBER
    const char *missing; /* a function that this libcuda does not have; NULL: it has all */
    const char *missing_in_streams; /* the same, of the stream executor's */
} mc_cuda_t;

/* Was one found? false until mc_cuda_open; then it stays. */
extern bool mc_cuda_there;

/* Opens it, once in a process. Any thread. */
void mc_cuda_open(void);
/* NULL: there is none. */
const mc_cuda_t *mc_cuda(void);
/* OK, or ERR_UNSUPPORTED: there is no libcuda, or one that is too old. */
int mc_cuda_check(void);
/* The same for the stream executor, where mc_cuda_check() is OK. */
int mc_cuda_check_streams(void);
/* OK for 0, else ERR_DEVICE with a sentence: "a GPU cannot `what`: CUDA_ERROR_…". */
int mc_cuda_status(mc_cu_result_t result, const char *what);

/* Memory of the host that the processor and devices both use, zeroed; *address is how devices see it. A context is
 * current. ERR_DEVICE. The caller frees it by host_free. */
int mc_cuda_pinned(size_t bytes, void **at, mc_cu_address_t *address);

/* The kernels, compiled for GPUs: what cuModuleLoadData takes. NULL: the library was built without. */
const void *mc_cuda_image(void);

#endif
