#include "work.h"

#include "helpers.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>

#include <thread>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using Lock = std::unique_lock<std::mutex>;

static double seconds(milliseconds time)
{
    return static_cast<double>(time.count()) / 1e3;
}

/* Of all works of the process. */
static uint64_t next_key()
{
    static std::atomic<uint64_t> keys{0};
    return keys++;
}

Work::Work(std::shared_ptr<Mesh> mesh, c10d::OpType type, const char *title, uint64_t sequence,
           milliseconds timeout, const std::vector<at::Tensor> &inputs, at::Device device)
    : c10d::Work(-1, type, title, inputs), mesh_(std::move(mesh)), title_(title), timeout_(timeout),
      sequence_(sequence), key_(next_key()), device_(device)
{
}

void Work::add(Begin begin)
{
    parts_.emplace_back().begin = std::move(begin);
}

void Work::add(Call call)
{
    add([call = std::move(call)](meshcoll_t *mesh, meshcoll_request_t **request) {
        const meshcoll_args_t args = call.args();
        return meshcoll_begin(mesh, &args, request);
    });
}

void Work::then(std::function<void()> step)
{
    steps_.push_back(std::move(step));
}

void Work::keep(const at::Tensor &tensor)
{
    kept_.push_back(tensor);
}

void Work::keep(std::shared_ptr<Operation> operation)
{
    operation_ = std::move(operation);
}

void Work::set_result(std::vector<at::Tensor> outputs)
{
    outputs_ = std::move(outputs);
    entries_.reset();
}

bool Work::is_collective() const
{
    using c10d::OpType;
    return opType_ != OpType::SEND && opType_ != OpType::RECV && opType_ != OpType::RECVANYSOURCE;
}

void Work::next_entry()
{
    if (entries_)
        entries_->begin_next();
    else
        entries_ = std::make_unique<Entries>();
}

meshcoll_received_t *Work::receives(size_t bytes)
{
    receives_ = true;
    expected_ = bytes;
    return &received_;
}

/* Beginning ------------------------------------------------------------------------------------ */

/* A waiter may claim the request only when its callback is set, which may complete and free it. */
void Work::begin(Part &part, meshcoll_t *mesh)
{
    meshcoll_request_t *request = nullptr;
    const int status = part.begin(mesh, &request);
    if (status < 0) {
        const std::string sentence = meshcoll_last_error();
        {
            const Lock lock(mutex_);
            part.state = State::DONE;
        }
        mesh_->failed(status);
        part_ended(error(status, sentence));
        return;
    }
    if (timeout_ != mesh_->timeout())
        meshcoll_set_request_timeout(request, seconds(timeout_));
    part.work = c10::intrusive_ptr<Work>::reclaim_copy(this);
    meshcoll_set_callback(request, called, &part);
    const Lock lock(mutex_);
    if (part.state == State::QUEUED) {
        part.state = State::RUNNING;
        part.request = request;
        cv_.notify_all();
    }
}

void Work::start(meshcoll_t *mesh)
{
    const auto self = c10::intrusive_ptr<Work>::reclaim_copy(this);
    counted_ = is_awaited_at_close();
    if (counted_)
        mesh_->began();
    {
        const Lock lock(mutex_);
        began_ = Clock::now();
    }
    left_ = parts_.size() + 1; /* the last one is this function */
    for (Part &part : parts_)
        begin(part, mesh);
    part_ended(nullptr);
}

void Work::refuse(const std::string &why)
{
    tell(error(MESHCOLL_ERR_INVALID_ARG, why));
}

/* Ending --------------------------------------------------------------------------------------- */

std::exception_ptr Work::error(int status, const std::string &sentence) const
{
    std::string text = title_;
    if (!mesh_->name().empty())
        text += " in " + mesh_->name();
    if (status == MESHCOLL_ERR_TIMEOUT)
        text += ": Timed out waiting"; /* words of Gloo's that programs look for */
    text += ": " + (sentence.empty() ? meshcoll_status_string(status) : sentence);
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text));
}

void Work::called(void *context, meshcoll_request_t *request, int status)
{
    Part &part = *static_cast<Part *>(context);
    const c10::intrusive_ptr<Work> work = std::move(part.work);
    const std::string sentence = status < 0 ? meshcoll_last_error() : "";
    bool is_claimed;
    {
        const Lock lock(work->mutex_);
        is_claimed = part.state == State::CLAIMED;
        part.state = State::DONE;
    }
    if (!is_claimed)
        meshcoll_free(request); /* else the waiter's meshcoll_wait does */
    if (status < 0)
        work->mesh_->failed(status);
    work->part_ended(status < 0 ? work->error(status, sentence) : nullptr);
}

void Work::part_ended(std::exception_ptr error)
{
    if (error) {
        const Lock lock(mutex_);
        if (!first_error_)
            first_error_ = error;
    }
    if (left_.fetch_sub(1) == 1)
        complete();
}

void Work::finish_result()
{
    /* may be in a thread without torch's modes: nothing here is to be differentiated */
    const at::AutoDispatchBelowADInplaceOrView guard;
    TORCH_CHECK(!receives_ || received_.bytes == expected_, "rank ", received_.source, " sent ",
                received_.bytes, " bytes, but the tensor to receive them has ", expected_);
    for (const auto &step : steps_)
        step();
}

void Work::complete()
{
    std::exception_ptr failed;
    {
        const Lock lock(mutex_);
        failed = first_error_;
    }
    if (failed) {
        mesh_->park(std::move(kept_));
    } else {
        try {
            finish_result();
        } catch (const c10::Error &e) {
            failed = error(MESHCOLL_ERR_INVALID_ARG, e.what_without_backtrace());
        } catch (const std::exception &e) {
            failed = error(MESHCOLL_ERR_INVALID_ARG, e.what());
        }
    }
    tell(failed);
}

void Work::tell_hooks(Clock::time_point began)
{
    const std::chrono::duration<float, std::milli> took = Clock::now() - began;
    mesh_->hooks().completed(key_, took.count());
}

void Work::tell(std::exception_ptr error)
{
    c10::intrusive_ptr<c10::ivalue::Future> future;
    kept_.clear();
    steps_.clear();
    operation_.reset();
    for (Part &part : parts_)
        part.begin = nullptr;
    {
        const Lock lock(mutex_);
        completed_ = true;
        exception_ = error;
        future = future_;
        if (recordFunctionEndCallback_) {
            recordFunctionEndCallback_();
            recordFunctionEndCallback_ = nullptr;
        }
    }
    cv_.notify_all();
    if (!error)
        tell_hooks(began_);
    if (counted_)
        mesh_->ended();
    if (future)
        complete_aside(future);
}

/* What hangs on a future may wait for other collectives, which a thread that moves messages cannot: where no other can
 * be made, the future fails. */
void Work::complete_aside(const c10::intrusive_ptr<c10::ivalue::Future> &future)
{
    const auto self = c10::intrusive_ptr<Work>::reclaim_copy(this);
    try {
        run_aside([self, future] { self->complete_future(future); });
    } catch (const std::system_error &e) {
        future->setError(exception_ ? exception_
                                    : error(MESHCOLL_ERR_SYSTEM, no_thread("for a future", e)));
    }
}

/* Waiting -------------------------------------------------------------------------------------- */

/* `seconds`: from now on, 0 for those that the operation has anyway. The mesh fails after them. */
void Work::wait_for(Part &part, Lock &lock, double limit)
{
    if (part.state != State::RUNNING || !mesh_->enter())
        return;
    part.state = State::CLAIMED;
    meshcoll_request_t *const request = part.request;
    const double passed = std::chrono::duration<double>(Clock::now() - began_).count();
    lock.unlock();
    if (limit > 0)
        meshcoll_set_request_timeout(request, passed + limit);
    meshcoll_wait(request);
    mesh_->leave();
    lock.lock();
    if (part.state == State::CLAIMED) /* refused, in a callback: another thread completes it */
        part.state = State::RUNNING;
}

bool Work::isCompleted()
{
    const bool is_completed = c10d::Work::isCompleted();
    if (!is_completed)
        std::this_thread::yield();
    return is_completed;
}

bool Work::wait(milliseconds timeout)
{
    const bool has_limit = timeout > milliseconds::zero();
    Lock lock(mutex_);
    if (!completed_)
        mesh_->check_ours();
    const auto moved = [this](const Part &part) {
        return completed_ || part.state != State::QUEUED;
    };
    for (Part &part : parts_) {
        if (!has_limit)
            cv_.wait(lock, [&] { return moved(part); });
        else if (!cv_.wait_until(lock, deadline(timeout), [&] { return moved(part); }))
            C10_THROW_ERROR(DistBackendError,
                            std::string(title_) + ": Timed out waiting: not begun after " +
                                std::to_string(seconds(timeout)) +
                                " s: the ranks of the process group have not all met");
        wait_for(part, lock, seconds(timeout));
    }
    const auto ended = [this] { return completed_; };
    if (!has_limit)
        cv_.wait(lock, ended);
    else if (!cv_.wait_until(lock, deadline(timeout), ended))
        C10_THROW_ERROR(DistBackendError, std::string(title_) +
                                              ": Timed out waiting: not complete after " +
                                              std::to_string(seconds(timeout)) + " s");
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

std::vector<at::Tensor> Work::result()
{
    TORCH_CHECK(isCompleted(), title_, ": wait for it before asking for its result");
    return outputs_;
}

int Work::sourceRank() const
{
    TORCH_CHECK(receives_, title_, ": only a receive has a source");
    return received_.source;
}

/* Futures -------------------------------------------------------------------------------------- */

void Work::complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future)
{
    if (exception_)
        future->setError(exception_);
    else
        future->markCompleted(c10::IValue(outputs_));
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    bool is_late = false;
    {
        const Lock lock(mutex_);
        if (!future_) {
            if (!completed_)
                mesh_->check_ours();
            future_ = c10::make_intrusive<c10::ivalue::Future>(
                c10::ListType::create(c10::TensorType::get()), devices_of_future());
            is_late = gives_future_at_once();
        }
    }
    if (is_late)
        complete_future(future_);
    return future_;
}

} // namespace meshcoll_torch
