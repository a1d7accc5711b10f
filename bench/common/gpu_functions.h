/*
 * The functions of libcuda that benchmarks call besides those of the library (gpu/cuda/functions.h), by the
 * names they are exported under. Include gpu/cuda/types.h, or what gives the same, before.
 */
#ifndef BENCH_GPU_FUNCTIONS_H
#define BENCH_GPU_FUNCTIONS_H

/* X(member of gpu_t, exported name, parameters) */
#define GPU_FUNCTIONS(X)                                                                 \
    X(init, cuInit, (unsigned))                                                          \
    X(device_name, cuDeviceGetName, (char *, int, mc_cu_device_t))                       \
    X(context_retain, cuDevicePrimaryCtxRetain, (mc_cu_context_t *, mc_cu_device_t))     \
    X(context_set, cuCtxSetCurrent, (mc_cu_context_t))                                   \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void *, mc_cu_address_t, size_t, mc_cu_stream_t)) \
    X(copy_within, cuMemcpyDtoDAsync_v2,                                                 \
      (mc_cu_address_t, mc_cu_address_t, size_t, mc_cu_stream_t))                        \
    X(event_elapsed, cuEventElapsedTime, (float *, mc_cu_event_t, mc_cu_event_t))

#endif
