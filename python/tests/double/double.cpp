/*
 * A CUDA device for torch, played by the fake of libcuda (tests/device/cuda): streams, events and
 * memory are the fake's, so that the host faults where it touches device memory. Operations run
 * on the CPU: they copy their arguments there, in the current stream, and what they change back.
 * Only copies of contiguous tensors stay on the device.
 *
 * Torch's own kernels for CUDA, where it has any, are replaced. Python's torch.cuda stays as it is.
 */
#include "driver.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <cstring>
#include <set>

namespace meshcoll_double
{

using c10::DispatchKey;

/* Memory --------------------------------------------------------------------------------------- */

/* As torch's allocator: memory that is given back belongs to what its stream does later. Here nobody can use it
 * then, which finds those who still do. */
struct Block {
    Address at;
    Stream stream;
};

static void give_back(void *context)
{
    Block *const block = static_cast<Block *>(context);
    check(cuLaunchHostFunc(
        block->stream,
        [](void *argument) {
            Block *const b = static_cast<Block *>(argument);
            check(cuMemFree_v2(b->at));
            delete b;
        },
        block));
}

struct Memory final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        const c10::Device device(at::kCUDA, current_device());
        if (bytes == 0)
            return {nullptr, nullptr, nullptr, device};
        auto *const block = new Block{0, handle(current_stream_of(current_device()))};
        check(cuMemAlloc_v2(&block->at, bytes));
        return {reinterpret_cast<void *>(block->at), block, give_back, device};
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return nullptr;
    }
    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        check(cuMemcpyAsync(address(to), address(from), bytes, current_handle()));
    }
};

static Memory memory;

static at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device> device,
                        std::optional<bool>, std::optional<at::MemoryFormat> format)
{
    const c10::OptionalDeviceGuard on(device);
    return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(DispatchKey::CUDA),
                                     c10::dtype_or_default(type), format);
}

static at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                                std::optional<at::ScalarType> type, std::optional<at::Layout>,
                                std::optional<at::Device> device, std::optional<bool>)
{
    const c10::OptionalDeviceGuard on(device);
    return at::detail::empty_strided_generic(
        size, stride, &memory, c10::DispatchKeySet(DispatchKey::CUDA), c10::dtype_or_default(type));
}

static const at::Tensor &resize(const at::Tensor &self, at::IntArrayRef size,
                                std::optional<at::MemoryFormat>)
{
    if (self.sizes() == size)
        return self;
    const at::Tensor fresh = at::empty(size, self.options());
    auto *const impl = self.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(fresh.storage());
    impl->set_storage_offset(0);
    impl->set_sizes_contiguous(size);
    return self;
}

/* Copies --------------------------------------------------------------------------------------- */

/* From its first element to its last, with what is between them. */
static size_t extent(const at::Tensor &t)
{
    return at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.itemsize());
}

static at::Tensor downloaded(const at::Tensor &t)
{
    if (t.is_cpu())
        return t;
    at::Tensor host = at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kCPU));
    if (t.numel() > 0) {
        check(cuMemcpyDtoHAsync_v2(host.data_ptr(), address(t.data_ptr()), extent(t),
                                   current_handle()));
        check(cuStreamSynchronize(current_handle()));
    }
    host._set_conj(t.is_conj());
    host._set_neg(t.is_neg());
    return host;
}

/* Pageable memory: the driver reads it before it returns. */
static void upload(const at::Tensor &to, const at::Tensor &from)
{
    const size_t bytes = extent(to);
    void *const staged = std::malloc(bytes);
    std::memcpy(staged, from.const_data_ptr(), bytes);
    check(cuMemcpyHtoDAsync_v2(address(to.data_ptr()), staged, bytes, current_handle()));
    check(cuLaunchHostFunc(
        current_handle(), [](void *argument) { std::free(argument); }, staged));
}

static bool are_alike(const at::Tensor &a, const at::Tensor &b)
{
    return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.is_contiguous() &&
           b.is_contiguous() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

static at::Tensor &copy(at::Tensor &self, const at::Tensor &given, bool)
{
    const c10::DeviceGuard on(self.is_cuda() ? self.device() : given.device());
    const at::Tensor from = given.expand_as(self);
    if (self.numel() == 0)
        return self;
    if (self.is_cuda() && from.is_cuda() && are_alike(self, from)) {
        check(cuMemcpyDtoDAsync_v2(address(self.data_ptr()), address(from.data_ptr()),
                                   self.nbytes(), current_handle()));
    } else if (!self.is_cuda()) {
        self.copy_(downloaded(from));
    } else if (from.is_cpu() && are_alike(self, from)) {
        upload(self, from);
    } else {
        at::Tensor whole = downloaded(self);
        whole.copy_(downloaded(from));
        upload(self, whole);
    }
    return self;
}

static at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &to)
{
    resize(to, self.sizes(), std::nullopt);
    at::Tensor out = to;
    return copy(out, self, false);
}

static void record_stream(at::Tensor &, at::Stream)
{
}

/* Kernels -------------------------------------------------------------------------------------- */

static void on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    at::native::cpu_fallback(op, stack);
}

static void define_own(torch::Library &m)
{
    m.impl("empty.memory_format", TORCH_FN(empty));
    m.impl("empty_strided", TORCH_FN(empty_strided));
    m.impl("resize_", TORCH_FN(resize));
    m.impl("copy_", TORCH_FN(copy));
    m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
    m.impl("record_stream", TORCH_FN(record_stream));
    m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
    m.impl("view", TORCH_FN(at::native::view));
    m.impl("unfold", TORCH_FN(at::native::unfold));
    m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
    m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
    m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

static bool is_own(const std::string &name)
{
    static const char *const own[] = {"aten::empty.memory_format",
                                      "aten::empty_strided",
                                      "aten::resize_",
                                      "aten::copy_",
                                      "aten::_copy_from_and_resize",
                                      "aten::record_stream",
                                      "aten::as_strided",
                                      "aten::view",
                                      "aten::unfold",
                                      "aten::_reshape_alias",
                                      "aten::view_as_real",
                                      "aten::view_as_complex"};
    return std::find(std::begin(own), std::end(own), name) != std::end(own);
}

static void define_kernels()
{
    static torch::Library aten(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
    static torch::Library others(torch::Library::IMPL, "_", DispatchKey::CUDA, __FILE__, __LINE__);
    const auto there =
        c10::Dispatcher::singleton().getRegistrationsForDispatchKey(DispatchKey::CUDA);
    for (const c10::OperatorName &op : there) {
        const std::string name = c10::toString(op);
        if (name.rfind("aten::", 0) == 0 && !is_own(name))
            aten.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
    }
    define_own(aten);
    others.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
    c10::SetAllocator(at::kCUDA, &memory, 255);
}

static unsigned count_calls(const std::string &function)
{
    static std::set<std::string> names; /* the fake keeps the address */
    return fake_calls(names.insert(function).first->c_str());
}

/* For tests ------------------------------------------------------------------------------------ */

/* Streams stand still where they were held, until all are let go. */
static std::atomic<unsigned> let_go{0};

static void hold()
{
    check(cuLaunchHostFunc(
        current_handle(),
        [](void *argument) {
            const auto since = static_cast<unsigned>(reinterpret_cast<uintptr_t>(argument));
            while (let_go == since)
                sleep_a_little();
        },
        reinterpret_cast<void *>(static_cast<uintptr_t>(let_go.load()))));
}

} // namespace meshcoll_double

PYBIND11_MODULE(_double, m)
{
    using namespace meshcoll_double;
    namespace py = pybind11;
    const py::call_guard<py::gil_scoped_release> unlocked;
    open_driver();
    define_kernels();
    m.def("set_device", [](int device) { set_device(static_cast<c10::DeviceIndex>(device)); });
    m.def("new_stream", [] { return new_stream(current_device()).id(); });
    m.def("set_stream", [](int64_t id) { exchange_stream(stream_of_id(current_device(), id)); });
    m.def("current_stream", [] { return current_stream_of(current_device()).id(); });
    m.def(
        "synchronize", [] { check(cuStreamSynchronize(current_handle())); }, unlocked);
    m.def("is_idle", [] { return cuStreamQuery(current_handle()) == 0; });
    m.def("hold", &hold);
    m.def("let_go", [] { let_go++; });
    m.def("areas", &fake_areas);
    m.def("calls", &count_calls);
}
