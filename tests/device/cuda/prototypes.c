/*
 * Are the library's own names for CUDA's interface those of cuda.h? Checked by the compiler, where
 * there is a cuda.h: parameters, results, constants and sizes.
 */
#include <stddef.h>
#include <stdio.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

/* What gpu/cuda/types.h says, as cuda.h says it. */
typedef CUresult mc_cu_result_t;
typedef CUdevice mc_cu_device_t;
typedef CUdeviceptr mc_cu_address_t;
typedef CUdevice_attribute mc_cu_device_attribute_t;
typedef CUpointer_attribute mc_cu_pointer_attribute_t;
typedef CUdevice_P2PAttribute mc_cu_p2p_attribute_t;
typedef CUstreamCaptureStatus mc_cu_capture_status_t;
typedef CUstreamCaptureMode mc_cu_capture_mode_t;
typedef CUflushGPUDirectRDMAWritesTarget mc_cu_flush_target_t;
typedef CUflushGPUDirectRDMAWritesScope mc_cu_flush_scope_t;
typedef CUcontext mc_cu_context_t;
typedef CUmodule mc_cu_module_t;
typedef CUfunction mc_cu_function_t;
typedef CUstream mc_cu_stream_t;
typedef CUevent mc_cu_event_t;
typedef CUuuid mc_cu_uuid_t;
typedef CUipcMemHandle mc_cu_ipc_t;
typedef CUstreamBatchMemOpParams mc_cu_memory_op_t;

#include "common/gpu_functions.h"
#include "gpu/cuda/functions.h"

#define SAME(member, symbol, parameters)                                                        \
    _Static_assert(__builtin_types_compatible_p(mc_cu_result_t parameters, __typeof__(symbol)), \
                   #symbol " has other parameters in cuda.h");
MC_CUDA_FUNCTIONS(SAME)
GPU_FUNCTIONS(SAME) /* and of the benchmarks */
MC_CUDA_STREAM_FUNCTIONS(SAME)
MC_CUDA_DIRECT_FUNCTIONS(SAME)

/* The types themselves, in a scope of their own. */
static void check_types(void)
{
#define mc_cu_result_t            own_result_t
#define mc_cu_device_t            own_device_t
#define mc_cu_address_t           own_address_t
#define mc_cu_device_attribute_t  own_device_attribute_t
#define mc_cu_pointer_attribute_t own_pointer_attribute_t
#define mc_cu_p2p_attribute_t     own_p2p_attribute_t
#define mc_cu_capture_status_t    own_capture_status_t
#define mc_cu_capture_mode_t      own_capture_mode_t
#define mc_cu_flush_target_t      own_flush_target_t
#define mc_cu_flush_scope_t       own_flush_scope_t
#define mc_cu_context_t           own_context_t
#define mc_cu_module_t            own_module_t
#define mc_cu_function_t          own_function_t
#define mc_cu_stream_t            own_stream_t
#define mc_cu_event_t             own_event_t
#define mc_cu_uuid_t              own_uuid_t
#define mc_cu_ipc_t               own_ipc_t
#define mc_cu_memory_op_t         own_memory_op_t
#include "gpu/cuda/types.h"
#define ALIKE(own, theirs)                                                             \
    _Static_assert(sizeof(own) == sizeof(theirs) && _Alignof(own) == _Alignof(theirs), \
                   #theirs " is another type in cuda.h")
    ALIKE(own_result_t, CUresult);
    ALIKE(own_device_t, CUdevice);
    ALIKE(own_address_t, CUdeviceptr);
    ALIKE(own_device_attribute_t, CUdevice_attribute);
    ALIKE(own_pointer_attribute_t, CUpointer_attribute);
    ALIKE(own_p2p_attribute_t, CUdevice_P2PAttribute);
    ALIKE(own_capture_status_t, CUstreamCaptureStatus);
    ALIKE(own_capture_mode_t, CUstreamCaptureMode);
    ALIKE(own_flush_target_t, CUflushGPUDirectRDMAWritesTarget);
    ALIKE(own_flush_scope_t, CUflushGPUDirectRDMAWritesScope);
    ALIKE(own_context_t, CUcontext);
    ALIKE(own_module_t, CUmodule);
    ALIKE(own_function_t, CUfunction);
    ALIKE(own_stream_t, CUstream);
    ALIKE(own_event_t, CUevent);
    ALIKE(own_uuid_t, CUuuid);
    ALIKE(own_ipc_t, CUipcMemHandle);
    ALIKE(own_memory_op_t, CUstreamBatchMemOpParams);
#define AT(member, theirs)                                                         \
    _Static_assert(offsetof(own_memory_op_t, word.member) ==                       \
                           offsetof(CUstreamBatchMemOpParams, waitValue.theirs) && \
                       offsetof(own_memory_op_t, word.member) ==                   \
                           offsetof(CUstreamBatchMemOpParams, writeValue.theirs),  \
                   #theirs " lies elsewhere in cuda.h")
    AT(operation, operation);
    AT(address, address);
    AT(value, value);
    AT(value64, value64);
    AT(flags, flags);
    AT(alias, alias);
#define EQUAL(own, theirs, value) _Static_assert((int)(own) == (int)(theirs), #theirs " differs");
    MC_CUDA_CONSTANTS(EQUAL)
    MC_CUDA_DIRECT_CONSTANTS(EQUAL)
}

int main(void)
{
    check_types();
    printf("as cuda.h of CUDA %d.%d has them\n", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return 0;
}
#else
int main(void)
{
    printf("skipped: there is no cuda.h here to compare with\n");
    return 77;
}
#endif
