/* The Python module meshcoll._torch. */
#include "backend.h"

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

namespace meshcoll_torch
{

/* Who waits must not hold Python's lock, which other threads may need to drop a tensor. */
class Unlocked
{
  public:
    Unlocked()
    {
        if (PyGILState_Check())
            released_.emplace();
    }

  private:
    std::optional<pybind11::gil_scoped_release> released_;
};

class PythonBackend : public Backend
{
  public:
    using Backend::Backend;
    ~PythonBackend() override
    {
        const Unlocked unlocked;
        close();
    }
    void shutdown() override
    {
        const Unlocked unlocked;
        Backend::shutdown();
    }
    void abort() override
    {
        const Unlocked unlocked;
        Backend::abort();
    }
};

static c10::intrusive_ptr<c10d::Backend> create(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                int size, double timeout,
                                                std::optional<std::string> mesh, std::string name,
                                                uint64_t tag, MakeBackend make_gloo)
{
    const std::chrono::milliseconds limit(static_cast<int64_t>(timeout * 1e3));
    return c10::make_intrusive<PythonBackend>(
        Setup{std::move(store), rank, size, tag, limit, std::move(mesh), std::move(name)},
        std::move(make_gloo));
}

} // namespace meshcoll_torch

PYBIND11_MODULE(_torch, m)
{
    namespace py = pybind11;
    m.doc() = "The backend of torch.distributed over libmeshcoll; use meshcoll.torch.";
    py::module::import("torch.distributed");
    m.def("create", &meshcoll_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"),
          py::arg("timeout"), py::arg("mesh"), py::arg("name"), py::arg("tag"),
          py::arg("make_gloo") = nullptr, py::call_guard<py::gil_scoped_release>());
    m.def(
        "close_all",
        [](double seconds) {
            meshcoll_torch::Mesh::close_all(
                std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
        },
        py::arg("seconds"), py::call_guard<py::gil_scoped_release>());
    m.def("abort_all", &meshcoll_torch::Mesh::abort_all, py::arg("why"),
          py::call_guard<py::gil_scoped_release>());
    m.def("version", &meshcoll_version);
}
