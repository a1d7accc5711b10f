/*
 * The functions of libcuda that the library calls, by the names they are exported under: of those
 * with versions, the one of 64-bit addresses. Include types.h, or what gives the same, before.
 */
#ifndef MC_CUDA_FUNCTIONS_H
#define MC_CUDA_FUNCTIONS_H

/* X(member of mc_cuda_t, exported name, parameters). All are older than CUDA 11. */
#define MC_CUDA_FUNCTIONS(X)                                                                     \
    X(error_name, cuGetErrorName, (mc_cu_result_t, const char **))                               \
    X(error_text, cuGetErrorString, (mc_cu_result_t, const char **))                             \
    X(device_count, cuDeviceGetCount, (int *))                                                   \
    X(device_get, cuDeviceGet, (mc_cu_device_t *, int))                                          \
    X(device_attribute, cuDeviceGetAttribute, (int *, mc_cu_device_attribute_t, mc_cu_device_t)) \
    X(device_uuid, cuDeviceGetUuid, (mc_cu_uuid_t *, mc_cu_device_t))                            \
    X(device_can_access, cuDeviceCanAccessPeer, (int *, mc_cu_device_t, mc_cu_device_t))         \
    X(context_current, cuCtxGetCurrent, (mc_cu_context_t *))                                     \
    X(context_push, cuCtxPushCurrent_v2, (mc_cu_context_t))                                      \
    X(context_pop, cuCtxPopCurrent_v2, (mc_cu_context_t *))                                      \
    X(context_device, cuCtxGetDevice, (mc_cu_device_t *))                                        \
    X(pointer_attributes, cuPointerGetAttributes,                                                \
      (unsigned, mc_cu_pointer_attribute_t *, void **, mc_cu_address_t))                         \
    X(alloc, cuMemAlloc_v2, (mc_cu_address_t *, size_t))                                         \
    X(address_range, cuMemGetAddressRange_v2, (mc_cu_address_t *, size_t *, mc_cu_address_t))    \
    X(free, cuMemFree_v2, (mc_cu_address_t))                                                     \
    X(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                   \
    X(host_free, cuMemFreeHost, (void *))                                                        \
    X(host_address, cuMemHostGetDevicePointer_v2, (mc_cu_address_t *, void *, unsigned))         \
    X(host_register, cuMemHostRegister_v2, (void *, size_t, unsigned))                           \
    X(host_unregister, cuMemHostUnregister, (void *))                                            \
    X(fill, cuMemsetD8Async, (mc_cu_address_t, unsigned char, size_t, mc_cu_stream_t))           \
    X(copy_in, cuMemcpyHtoDAsync_v2, (mc_cu_address_t, const void *, size_t, mc_cu_stream_t))    \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void *, mc_cu_address_t, size_t, mc_cu_stream_t))         \
    X(copy, cuMemcpyAsync, (mc_cu_address_t, mc_cu_address_t, size_t, mc_cu_stream_t))           \
    X(ipc_get, cuIpcGetMemHandle, (mc_cu_ipc_t *, mc_cu_address_t))                              \
    X(ipc_open, cuIpcOpenMemHandle_v2, (mc_cu_address_t *, mc_cu_ipc_t, unsigned))               \
    X(ipc_close, cuIpcCloseMemHandle, (mc_cu_address_t))                                         \
    X(stream_create, cuStreamCreate, (mc_cu_stream_t *, unsigned))                               \
    X(stream_destroy, cuStreamDestroy_v2, (mc_cu_stream_t))                                      \
    X(stream_synchronize, cuStreamSynchronize, (mc_cu_stream_t))                                 \
    X(stream_await, cuStreamWaitEvent, (mc_cu_stream_t, mc_cu_event_t, unsigned))                \
    X(stream_captures, cuStreamIsCapturing, (mc_cu_stream_t, mc_cu_capture_status_t *))          \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, (mc_cu_capture_mode_t *))                 \
    X(event_create, cuEventCreate, (mc_cu_event_t *, unsigned))                                  \
    X(event_destroy, cuEventDestroy_v2, (mc_cu_event_t))                                         \
    X(event_record, cuEventRecord, (mc_cu_event_t, mc_cu_stream_t))                              \
    X(event_query, cuEventQuery, (mc_cu_event_t))                                                \
    X(event_elapsed, cuEventElapsedTime, (float *, mc_cu_event_t, mc_cu_event_t))                \
    X(module_load, cuModuleLoadData, (mc_cu_module_t *, const void *))                           \
    X(module_unload, cuModuleUnload, (mc_cu_module_t))                                           \
    X(module_function, cuModuleGetFunction, (mc_cu_function_t *, mc_cu_module_t, const char *))  \
    X(launch, cuLaunchKernel,                                                                    \
      (mc_cu_function_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
       mc_cu_stream_t, void **, void **))                                                        \
    X(init, cuInit, (unsigned))                                                                  \
    X(version, cuDriverGetVersion, (int *))                                                      \
    X(device_name, cuDeviceGetName, (char *, int, mc_cu_device_t))                               \
    X(device_pci, cuDeviceGetPCIBusId, (char *, int, mc_cu_device_t))                            \
    X(device_p2p, cuDeviceGetP2PAttribute,                                                       \
      (int *, mc_cu_p2p_attribute_t, mc_cu_device_t, mc_cu_device_t))                            \
    X(context_retain, cuDevicePrimaryCtxRetain, (mc_cu_context_t *, mc_cu_device_t))             \
    X(context_set, cuCtxSetCurrent, (mc_cu_context_t))

/* Of messages that network cards write to GPUs; of CUDA 11.3, and NULL where the driver is older. */
#define MC_CUDA_DIRECT_FUNCTIONS(X) \
    X(flush_writes, cuFlushGPUDirectRDMAWrites, (mc_cu_flush_target_t, mc_cu_flush_scope_t))
/* Of the stream executor alone. The second version, of CUDA 11.7, needs no parameter of the kernel's
 * module, as the first one does. */
#define MC_CUDA_STREAM_FUNCTIONS(X) \
    X(memory_ops, cuStreamBatchMemOp_v2, (mc_cu_stream_t, unsigned, mc_cu_memory_op_t *, unsigned))

#endif
