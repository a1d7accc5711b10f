#include "device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdlib>

#include <dlfcn.h>

namespace meshcoll_torch
{

using Guard = c10::impl::VirtualGuardImpl;

bool has_device(c10::DeviceType type)
{
    return c10::impl::hasDeviceGuardImpl(type) &&
           c10::impl::getDeviceGuardImpl(type)->deviceCount() > 0;
}

c10::Stream current_stream(c10::Device device)
{
    return Guard(device.type()).getStream(device);
}

c10::Stream other_stream(c10::Device device)
{
    return Guard(device.type()).getStreamFromGlobalPool(device);
}

/* For versions whose streams tell it in Python only. */
static void *handle_by_python(const c10::Stream &stream)
{
    namespace py = pybind11;
    const py::gil_scoped_acquire locked;
    const py::object found =
        py::module_::import("torch.cuda")
            .attr("Stream")(py::arg("stream_id") = stream.id(),
                            py::arg("device_index") = stream.device_index(),
                            py::arg("device_type") = static_cast<int64_t>(stream.device_type()))
            .attr("cuda_stream");
    return reinterpret_cast<void *>(found.cast<uintptr_t>());
}

/* Templates, so that what a version of torch lacks is not looked up. */

template <typename Impl> static void *handle_by(const Impl &impl, const c10::Stream &stream)
{
    if constexpr (requires { impl.getStreamNativeHandle(stream); })
        return impl.getStreamNativeHandle(stream);
    else
        return handle_by_python(stream);
}

template <typename Impl> static bool captures_by(const Impl &impl, const c10::Stream &stream)
{
    if constexpr (requires { impl.isStreamCapturing(stream); })
        return impl.isStreamCapturing(stream);
    else
        return false;
}

void *handle_of(const c10::Stream &stream)
{
    return handle_by(*c10::impl::getDeviceGuardImpl(stream.device_type()), stream);
}

bool is_captured(const c10::Stream &stream)
{
    return captures_by(*c10::impl::getDeviceGuardImpl(stream.device_type()), stream);
}

/* While a thread captures as torch does by default, others may not even ask about events, unless they
 * say that they know what they do. torch has no generic call for that. */
void allow_questions_during_captures()
{
    using Exchange = int (*)(int *mode);
    static constexpr int RELAXED = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
    const char *const given = std::getenv("MESHCOLL_LIBCUDA");
    void *const library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return;
    const auto exchange =
        reinterpret_cast<Exchange>(dlsym(library, "cuThreadExchangeStreamCaptureMode"));
    int mode = RELAXED;
    if (exchange)
        exchange(&mode);
    dlclose(library);
}

} // namespace meshcoll_torch
