/* The Python module meshcoll._torch. */
#include "backend.h"

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <torch/csrc/jit/python/pybind_utils.h>

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

using PythonFuture = torch::jit::PythonFutureWrapper;
using Future = c10::intrusive_ptr<c10::ivalue::Future>;

static void open_gate(const Future &gate, const Future &of, std::exception_ptr error)
{
    if (error || of->hasError())
        gate->setError(error ? error : of->exception_ptr());
    else
        gate->markCompleted(of->value());
}

/* Completes the gate as the future, when it is a callback's turn. */
static void hang(const PythonFuture &future, Group &group, const PythonFuture &gate)
{
    group.hang(
        [of = future.fut](std::function<void()> ready) {
            of->addCallback([ready](c10::ivalue::Future &) { ready(); }, false);
        },
        [gate = gate.fut, of = future.fut](std::exception_ptr error) {
            open_gate(gate, of, error);
        });
}

static c10::intrusive_ptr<c10d::Backend> create(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                int size, double timeout,
                                                std::optional<std::string> mesh, std::string name,
                                                uint64_t tag, MakeGloo gloo, MakePart part,
                                                bool begins)
{
    const std::chrono::milliseconds limit(static_cast<int64_t>(timeout * 1e3));
    return c10::make_intrusive<PythonBackend>(
        Setup{std::move(store), rank, size, tag, limit, std::move(mesh), std::move(name), {}},
        Makers{std::move(gloo), std::move(part)}, begins);
}

} // namespace meshcoll_torch

PYBIND11_MODULE(_torch, m)
{
    namespace py = pybind11;
    m.doc() = "The backend of torch.distributed over libmeshcoll; use meshcoll.torch.";
    py::module::import("torch.distributed");
    using meshcoll_torch::Group;
    using meshcoll_torch::PythonFuture;
    using meshcoll_torch::Work;
    py::class_<Group, std::shared_ptr<Group>>(m, "Group");
    py::class_<Work, c10d::Work, c10::intrusive_ptr<Work>>(m, "Work")
        .def("is_collective", &Work::is_collective)
        .def("group", [](const Work &work) { return work.mesh().group(); });
    m.def("same_as",
          [](PythonFuture &future, const PythonFuture &other) { future.fut = other.fut; });
    m.def("hang", &meshcoll_torch::hang);
    m.def("create", &meshcoll_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"),
          py::arg("timeout"), py::arg("mesh"), py::arg("name"), py::arg("tag"),
          py::arg("gloo") = nullptr, py::arg("part") = nullptr, py::arg("begins") = true,
          py::call_guard<py::gil_scoped_release>());
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
