/*
 * What the library uses of the CUDA driver's interface, under names of its own, so that it builds
 * without a CUDA toolkit. tests/device/cuda/prototypes.c compares all of it with cuda.h where there is
 * one.
 */
#ifndef MC_CUDA_TYPES_H
#define MC_CUDA_TYPES_H

#include <stdint.h>

typedef unsigned mc_cu_result_t;
typedef int mc_cu_device_t;
typedef unsigned long long mc_cu_address_t;
typedef unsigned mc_cu_device_attribute_t;
typedef unsigned mc_cu_pointer_attribute_t;
typedef unsigned mc_cu_p2p_attribute_t;
typedef unsigned mc_cu_capture_status_t;
typedef unsigned mc_cu_capture_mode_t;
typedef unsigned mc_cu_flush_target_t;
typedef unsigned mc_cu_flush_scope_t;
typedef struct CUctx_st *mc_cu_context_t;
typedef struct CUmod_st *mc_cu_module_t;
typedef struct CUfunc_st *mc_cu_function_t;
typedef struct CUstream_st *mc_cu_stream_t;
typedef struct CUevent_st *mc_cu_event_t;

enum { MC_CU_UUID_BYTES = 16, MC_CU_IPC_BYTES = 64 };
typedef struct {
    char bytes[MC_CU_UUID_BYTES];
} mc_cu_uuid_t;
typedef struct {
    char reserved[MC_CU_IPC_BYTES];
} mc_cu_ipc_t;

/* A wait or a write of a stream: both have the same members. */
typedef union {
    unsigned operation;
    struct {
        unsigned operation;
        mc_cu_address_t address;
        union {
            uint32_t value;
            uint64_t value64;
        };
        unsigned flags;
        mc_cu_address_t alias; /* the driver's own */
    } word;
    uint64_t pad[6];
} mc_cu_memory_op_t;

/* X(own name, cuda.h's, value) */
#define MC_CUDA_CONSTANTS(X)                                                        \
    X(MC_CU_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1)                       \
    X(MC_CU_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                       \
    X(MC_CU_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED, 3)                   \
    X(MC_CU_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, 201)                 \
    X(MC_CU_ERROR_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
    X(MC_CU_ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500)                             \
    X(MC_CU_ERROR_NOT_READY, CUDA_ERROR_NOT_READY, 600)                             \
    X(MC_CU_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, 801)                     \
    X(MC_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)          \
    X(MC_CU_P2P_RANK, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1)                  \
    X(MC_CU_P2P_ATOMICS, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)        \
    X(MC_CU_FLUSHES, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 98)               \
    X(MC_CU_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT, 1)                       \
    X(MC_CU_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                      \
    X(MC_CU_POINTER_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                    \
    X(MC_CU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                 \
    X(MC_CU_TYPE_HOST, CU_MEMORYTYPE_HOST, 1)                                       \
    X(MC_CU_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                   \
    X(MC_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                             \
    X(MC_CU_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP, 2)                              \
    X(MC_CU_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE, 1)                      \
    X(MC_CU_REGISTER_MAPPED, CU_MEMHOSTREGISTER_DEVICEMAP, 2)                       \
    X(MC_CU_IPC_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1)                        \
    X(MC_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                         \
    X(MC_CU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING, 2)                            \
    X(MC_CU_MEMORY_WAIT, CU_STREAM_MEM_OP_WAIT_VALUE_32, 1)                         \
    X(MC_CU_MEMORY_WRITE, CU_STREAM_MEM_OP_WRITE_VALUE_32, 2)                       \
    X(MC_CU_WAIT_AND, CU_STREAM_WAIT_VALUE_AND, 2)                                  \
    X(MC_CU_WAIT_FLUSH, CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30)                        \
    X(MC_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE, 0)                         \
    X(MC_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                     \
    X(MC_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)

/* Of memory that network cards write to. */
#define MC_CUDA_DIRECT_CONSTANTS(X)                                                             \
    X(MC_CU_HOST_TABLES, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100) \
    X(MC_CU_DIRECT, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)                         \
    X(MC_CU_DIRECT_FLUSHES, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117)      \
    X(MC_CU_DIRECT_ORDER, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 118)             \
    X(MC_CU_DIRECT_BY_HOST, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST, 1)                     \
    X(MC_CU_DIRECT_CONTEXT, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, 0)              \
    X(MC_CU_DIRECT_TO_OWNER, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER, 100)                     \
    X(MC_CU_DIRECT_OWNER, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER, 100)

#define MC_CUDA_CONSTANT(own, theirs, value) own = value,
enum { MC_CUDA_CONSTANTS(MC_CUDA_CONSTANT) MC_CUDA_DIRECT_CONSTANTS(MC_CUDA_CONSTANT) };
#undef MC_CUDA_CONSTANT

#endif
