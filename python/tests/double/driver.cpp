#include "driver.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace meshcoll_double
{

using c10::Device;
using c10::DeviceIndex;

static constexpr int NOT_READY = 600, MOST_DEVICES = 16;
static constexpr unsigned NON_BLOCKING = 1, NO_TIMING = 2;
static constexpr size_t POOL = 32; /* as torch's */

void check(int result)
{
    TORCH_CHECK(result == 0, "the fake of libcuda answered ", result);
}

void sleep_a_little()
{
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

/* Devices -------------------------------------------------------------------------------------- */

static thread_local DeviceIndex device_now = 0;

static int count_devices()
{
    int n = 0;
    check(cuDeviceGetCount(&n));
    return n;
}

DeviceIndex current_device()
{
    return device_now;
}

void set_device(DeviceIndex device)
{
    CUcontext context;
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    device_now = device;
}

/* Streams: number 0 is the driver's default, the others are in the order in which they were made -- */

static std::mutex streams_mutex;
static std::vector<CUstream> streams[MOST_DEVICES];
static size_t next_in_pool[MOST_DEVICES];
static thread_local c10::StreamId stream_now[MOST_DEVICES];

c10::Stream stream_of_id(DeviceIndex device, c10::StreamId id)
{
    return c10::Stream(c10::Stream::UNSAFE, Device(c10::kCUDA, device), id);
}

c10::Stream current_stream_of(DeviceIndex device)
{
    return stream_of_id(device, stream_now[device]);
}

c10::Stream exchange_stream(c10::Stream stream)
{
    const c10::Stream was = current_stream_of(stream.device_index());
    stream_now[stream.device_index()] = stream.id();
    return was;
}

c10::Stream new_stream(DeviceIndex device)
{
    const std::lock_guard<std::mutex> lock(streams_mutex);
    const DeviceIndex was = device_now;
    CUstream made;
    set_device(device);
    check(cuStreamCreate(&made, NON_BLOCKING));
    set_device(was);
    streams[device].push_back(made);
    return stream_of_id(device, static_cast<c10::StreamId>(streams[device].size()));
}

static c10::Stream pooled(DeviceIndex device)
{
    size_t number;
    {
        const std::lock_guard<std::mutex> lock(streams_mutex);
        number = next_in_pool[device]++;
        if (number >= POOL)
            return stream_of_id(device, static_cast<c10::StreamId>(number % POOL + 1));
    }
    return new_stream(device);
}

CUstream handle(c10::Stream stream)
{
    const std::lock_guard<std::mutex> lock(streams_mutex);
    const auto id = static_cast<size_t>(stream.id());
    return id == 0 ? nullptr : streams[stream.device_index()].at(id - 1);
}

CUstream current_handle()
{
    return handle(current_stream_of(device_now));
}

/* What torch asks ------------------------------------------------------------------------------ */

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override
    {
        return c10::kCUDA;
    }
    Device exchangeDevice(Device device) const override
    {
        const Device was = getDevice();
        set_device(device.index()); /* the thread may have no context yet */
        return was;
    }
    Device getDevice() const override
    {
        return Device(c10::kCUDA, device_now);
    }
    void setDevice(Device device) const override
    {
        set_device(device.index());
    }
    void uncheckedSetDevice(Device device) const noexcept override
    {
        set_device(device.index());
    }
    DeviceIndex deviceCount() const noexcept override
    {
        return static_cast<DeviceIndex>(count_devices());
    }

    c10::Stream getStream(Device device) const override
    {
        return current_stream_of(device.index() < 0 ? device_now : device.index());
    }
    c10::Stream getDefaultStream(Device device) const override
    {
        return stream_of_id(device.index(), 0);
    }
    c10::Stream getNewStream(Device device, int) const override
    {
        return new_stream(device.index());
    }
    c10::Stream getStreamFromGlobalPool(Device device, bool) const override
    {
        return pooled(device.index());
    }
    c10::Stream exchangeStream(c10::Stream stream) const override
    {
        return exchange_stream(stream);
    }
    void *getStreamNativeHandle(const c10::Stream stream) const override
    {
        return handle(stream);
    }
    bool queryStream(const c10::Stream &stream) const override
    {
        return cuStreamQuery(handle(stream)) == 0;
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        check(cuStreamSynchronize(handle(stream)));
    }
    bool isStreamCapturing(const c10::Stream &stream) const override
    {
        int status = 0;
        check(cuStreamIsCapturing(handle(stream), &status));
        return status != 0;
    }

    void record(void **event, const c10::Stream &stream, const DeviceIndex,
                const c10::EventFlag) const override
    {
        auto made = static_cast<CUevent>(*event);
        if (!made)
            check(cuEventCreate(&made, NO_TIMING));
        *event = made;
        check(cuEventRecord(made, handle(stream)));
    }
    void block(void *event, const c10::Stream &stream) const override
    {
        check(cuStreamWaitEvent(handle(stream), static_cast<CUevent>(event), 0));
    }
    bool queryEvent(void *event) const override
    {
        const int result = event ? cuEventQuery(static_cast<CUevent>(event)) : 0;
        if (result != NOT_READY)
            check(result);
        return result == 0;
    }
    void destroyEvent(void *event, const DeviceIndex) const noexcept override
    {
        if (event)
            cuEventDestroy_v2(static_cast<CUevent>(event));
    }
    void synchronizeEvent(void *event) const override
    {
        while (!queryEvent(event))
            sleep_a_little();
    }
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override
    {
    }
};

void open_driver()
{
    check(cuInit(0));
    set_device(0);
    static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kCUDA, new Guard());
}

} // namespace meshcoll_double
