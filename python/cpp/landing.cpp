#include "landing.h"

#include "buffers.h"
#include "device.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

namespace meshcoll_torch
{

using std::chrono::milliseconds;

Landing::Landing(std::shared_ptr<Mesh> mesh, c10d::OpType type, const char *title,
                 uint64_t sequence, milliseconds timeout, const std::vector<at::Tensor> &tensors)
    : Work(std::move(mesh), type, title, sequence, timeout, tensors), to_(tensors[0]),
      place_(host_place_of(to_))
{
    posted_.record(current_stream(to_.device()));
}

void Landing::land()
{
    const std::lock_guard<std::mutex> lock(landing_);
    const at::AutoDispatchBelowADInplaceOrView guard;
    const c10::DeviceGuard on(to_.device());
    const c10::Stream here = current_stream(to_.device());
    if (landed_) {
        copied_.block(here);
        return;
    }
    posted_.block(here);
    to_.copy_(place_, /*non_blocking=*/true); /* torch keeps pinned memory until it is read */
    copied_.record(here);
    landed_ = true;
}

bool Landing::wait(milliseconds timeout)
{
    Work::wait(timeout);
    land();
    return true;
}

void Landing::complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future)
{
    if (exception()) {
        Work::complete_future(future);
        return;
    }
    try {
        const c10::StreamGuard in(other_stream(to_.device()));
        land();
        future->markCompleted(c10::IValue(outputs_));
    } catch (const std::exception &) {
        future->setError(std::current_exception());
    }
}

} // namespace meshcoll_torch
