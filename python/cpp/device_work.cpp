#include "device_work.h"

#include "device.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <thread>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using Lock = std::unique_lock<std::mutex>;

/* Between looks of a host that waits: from short, as most calls are, to long. */
static constexpr std::chrono::microseconds FIRST_PAUSE{20}, LAST_PAUSE{1000};

static std::string seconds_text(milliseconds time)
{
    char text[32];
    std::snprintf(text, sizeof text, "%g s", static_cast<double>(time.count()) / 1e3);
    return text;
}

/* Flights -------------------------------------------------------------------------------------- */

bool Flight::is_over() const
{
    try {
        const c10::DeviceGuard on(
            device_); /* else a driver may open the first GPU for this thread */
        return end_.query();
    } catch (const c10::Error &) {
        return true;
    }
}

void Flight::keep(std::vector<at::Tensor> tensors, std::vector<std::function<void()>> steps,
                  std::shared_ptr<Operation> operation)
{
    tensors_ = std::move(tensors);
    steps_ = std::move(steps);
    operation_ = std::move(operation);
}

void Flight::release()
{
    std::vector<at::Tensor> tensors;
    std::vector<std::function<void()>> steps;
    const Lock lock(mutex_);
    tensors.swap(tensors_);
    steps.swap(steps_);
}

/* Beginning ------------------------------------------------------------------------------------ */

std::exception_ptr DeviceWork::run(meshcoll_t *mesh)
{
    const SideStream &side = mesh_->side_stream(device());
    std::string sentence;
    int status =
        mesh_->device_status(sentence); /* of earlier calls, whose result may be used now */
    for (size_t i = 0; i < calls_.size() && status >= 0; i++) {
        const meshcoll_args_t args = calls_[i].args();
        status = meshcoll_enqueue(mesh, &args, side.handle);
        if (status < 0) {
            sentence = meshcoll_last_error();
            mesh_->failed(status);
        }
    }
    if (status < 0)
        return error(status, sentence);
    const c10::StreamGuard in(side.stream);
    for (const auto &step : steps_)
        step();
    return nullptr;
}

static std::string sentence_of(const std::exception &e)
{
    const auto *const torchs = dynamic_cast<const c10::Error *>(&e);
    return torchs ? torchs->what_without_backtrace() : e.what();
}

std::exception_ptr DeviceWork::enqueue(meshcoll_t *mesh)
{
    const c10::DeviceGuard on(device());
    const c10::Stream &side = mesh_->side_stream(device()).stream;
    std::exception_ptr failed;
    posted_in_ = current_stream(device());
    captured_ = meshcoll_torch::is_captured(*posted_in_);
    c10::Event ready(at::kCUDA);
    ready.record(*posted_in_);
    ready.block(side);
    flight_ = std::make_shared<Flight>(device());
    try {
        failed = run(mesh);
    } catch (const std::exception &e) {
        failed = error(MESHCOLL_ERR_DEVICE, sentence_of(e));
    }
    flight_->keep(std::move(kept_), std::move(steps_), std::move(operation_));
    flight_->took_off(side);
    return failed;
}

void DeviceWork::start(meshcoll_t *mesh)
{
    std::exception_ptr failed;
    began_ = Clock::now();
    try {
        failed = enqueue(mesh);
    } catch (const std::exception &e) {
        failed = error(MESHCOLL_ERR_DEVICE, sentence_of(e));
        flight_.reset();
    }
    if (failed)
        settle(failed);
    const Lock lock(mutex_);
    if (recordFunctionEndCallback_) {
        recordFunctionEndCallback_();
        recordFunctionEndCallback_ = nullptr;
    }
}

void DeviceWork::refuse(const std::string &why)
{
    settle(error(MESHCOLL_ERR_INVALID_ARG, why));
}

/* Ending --------------------------------------------------------------------------------------- */

void DeviceWork::settle(std::exception_ptr error)
{
    const Lock lock(mutex_);
    if (completed_)
        return;
    completed_ = true;
    exception_ = error;
    if (!error)
        tell_hooks(began_);
}

std::exception_ptr DeviceWork::failure()
{
    const Lock lock(mutex_);
    return exception_;
}

void DeviceWork::landed(int status, const std::string &sentence)
{
    settle(status < 0 ? error(status, sentence) : nullptr);
}

bool DeviceWork::is_late() const
{
    return timeout_ > milliseconds::zero() && timeout_ < mesh_->timeout() &&
           Clock::now() > deadline(timeout_, began_);
}

std::string DeviceWork::lateness() const
{
    return std::string(title_) + " was not complete after its time limit of " +
           seconds_text(timeout_);
}

/* Only a flight that is over tells of all that went wrong before. */
bool DeviceWork::isCompleted()
{
    {
        const Lock lock(mutex_);
        if (completed_ || captured_)
            return true;
    }
    const bool is_over = flight_->is_over();
    if (!is_over && mesh_->failure() == MESHCOLL_OK) {
        std::this_thread::yield(); /* as Work's */
        return false;
    }
    std::string sentence;
    const int status = mesh_->device_status(sentence);
    if (!is_over && status == MESHCOLL_OK)
        return false;
    landed(status, sentence);
    return true;
}

void DeviceWork::wait_on_host(milliseconds timeout)
{
    const auto end = deadline(timeout);
    for (auto pause = FIRST_PAUSE; !isCompleted(); pause = std::min(2 * pause, LAST_PAUSE)) {
        if (timeout > milliseconds::zero() && Clock::now() > end) {
            const std::string why = "not complete after " + seconds_text(timeout);
            mesh_->abort(std::string(title_) + " was " + why);
            std::rethrow_exception(error(MESHCOLL_ERR_TIMEOUT, why));
        }
        std::this_thread::sleep_for(pause);
    }
}

/* Memory that the current stream has given is its own again for what it does later. Another stream's may be
 * overwritten at once, and is kept until the GPU is done. */
bool DeviceWork::wait(milliseconds timeout)
{
    if (timeout > milliseconds::zero() || opType_ == c10d::OpType::BARRIER)
        wait_on_host(timeout);
    else if (mesh_->failure() != MESHCOLL_OK)
        isCompleted(); /* finds what this work has come to */
    if (const std::exception_ptr failed = failure())
        std::rethrow_exception(failed);
    const c10::DeviceGuard on(device());
    const c10::Stream here = current_stream(device());
    flight_->end().block(here);
    if (here == *posted_in_)
        flight_->release();
    return true;
}

/* By an event behind this work alone, not behind what was posted later. */
void DeviceWork::complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future)
{
    if (const std::exception_ptr failed = failure()) {
        future->setError(failed);
        return;
    }
    const c10::DeviceGuard on(device());
    const c10::StreamGuard in(captured_ ? mesh_->side_stream(device()).stream
                                        : other_stream(device()));
    flight_->end().block(in.current_stream());
    future->markCompleted(c10::IValue(outputs_));
}

} // namespace meshcoll_torch
