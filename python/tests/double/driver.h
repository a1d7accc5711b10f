/* The part of the fake of libcuda that torch's device is made of, and its streams as torch counts them. */
#ifndef MESHCOLL_TEST_DOUBLE_DRIVER_H
#define MESHCOLL_TEST_DOUBLE_DRIVER_H

#include <c10/core/Stream.h>

#include <cstdint>

extern "C" {
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
int cuInit(unsigned flags);
int cuDeviceGetCount(int *n);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuCtxSetCurrent(CUcontext context);
int cuMemAlloc_v2(unsigned long long *at, size_t bytes);
int cuMemFree_v2(unsigned long long at);
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes, CUstream stream);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, CUstream stream);
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                         CUstream stream);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamQuery(CUstream stream);
int cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
int cuStreamIsCapturing(CUstream stream, int *status);
int cuLaunchHostFunc(CUstream stream, void (*function)(void *context), void *context);
int cuEventCreate(CUevent *event, unsigned flags);
int cuEventDestroy_v2(CUevent event);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
unsigned fake_areas(void);
unsigned fake_calls(const char *function);
}

namespace meshcoll_double
{

using Address = unsigned long long;
using Stream = CUstream;

inline Address address(const void *at)
{
    return reinterpret_cast<Address>(at);
}

/* Throws for anything but success. */
void check(int result);

/* With torch's view of devices, streams and events (a DeviceGuardImpl). */
void open_driver();

c10::DeviceIndex current_device();
void set_device(c10::DeviceIndex device);
/* Of this thread. */
c10::Stream current_stream_of(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
c10::Stream new_stream(c10::DeviceIndex device);
c10::Stream stream_of_id(c10::DeviceIndex device, c10::StreamId id);
CUstream handle(c10::Stream stream);
/* Of the current stream of the current device. */
CUstream current_handle();

void sleep_a_little();

} // namespace meshcoll_double

#endif
