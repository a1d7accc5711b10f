#include "order.h"

#include "helpers.h"

#include <atomic>
#include <stdexcept>
#include <vector>

namespace meshcoll_torch
{

using Lock = std::unique_lock<std::mutex>;
using TaskPtr = std::shared_ptr<Task>;
using Run = std::function<void(std::exception_ptr)>;

static thread_local std::shared_ptr<Line> current_line;

const std::shared_ptr<Line> &Line::current()
{
    if (!current_line)
        current_line = std::make_shared<Line>();
    return current_line;
}

const std::shared_ptr<Line> &Line::callbacks()
{
    if (!callbacks_) {
        callbacks_ = std::make_shared<Line>();
        callbacks_->depth_ = depth_ + 1;
    }
    return callbacks_;
}

class Task : public std::enable_shared_from_this<Task>
{
  public:
    Task(std::shared_ptr<Line> line, Run run) : line_(std::move(line)), run_(std::move(run))
    {
    }

    void follow(const TaskPtr &other)
    {
        if (!other)
            return;
        const Lock lock(other->mutex_);
        if (other->has_ended_)
            return;
        waits_for_++;
        other->next_.push_back(shared_from_this());
    }

    /* One thing less to wait for. `here`: it may take this thread. */
    void release(bool here)
    {
        if (--waits_for_ > 0)
            return;
        if (here) {
            run(nullptr);
            return;
        }
        try {
            run_aside([self = shared_from_this()] { self->run(nullptr); });
        } catch (const std::system_error &e) {
            run(std::make_exception_ptr(
                std::runtime_error("meshcoll: " + no_thread("for a callback", e))));
        }
    }

  private:
    void run(std::exception_ptr error)
    {
        std::vector<TaskPtr> next;
        std::shared_ptr<Line> outer = Line::current();
        current_line = line_;
        run_(error);
        current_line = std::move(outer);
        run_ = nullptr;
        {
            const Lock lock(mutex_);
            has_ended_ = true;
            next.swap(next_);
        }
        for (const TaskPtr &task : next)
            task->release(false);
    }

    const std::shared_ptr<Line> line_;
    Run run_;
    std::atomic<int> waits_for_{2}; /* its future and hang(), then what it follows */
    std::mutex mutex_;
    bool has_ended_ = false;
    std::vector<TaskPtr> next_;
};

void Group::hang(const std::function<void(std::function<void()> ready)> &on_future, Run run)
{
    const std::shared_ptr<Line> line = Line::current();
    const auto task = std::make_shared<Task>(line->callbacks(), std::move(run));
    task->follow(line->last_);
    line->last_ = task;
    {
        const Lock lock(mutex_);
        task->follow(last_);
        last_ = task;
    }
    on_future([task] { task->release(is_helper() && Line::current()->depth() == 0); });
    task->release(true);
}

} // namespace meshcoll_torch
