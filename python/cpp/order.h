/* The order of callbacks that hang on futures. */
#ifndef MESHCOLL_TORCH_ORDER_H
#define MESHCOLL_TORCH_ORDER_H

#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace meshcoll_torch
{

class Task;

/*
 * What runs one thing after the other: a thread of the program, or the callbacks that were hung on futures by one
 * of these. Calls that a line makes have the same order on all ranks, calls of two lines have none: so those of
 * callbacks, at depth 1, have a mesh of their own, and so do those of callbacks that callbacks hang, at depth 2.
 */
class Line
{
  public:
    /* Of this thread, now. */
    static const std::shared_ptr<Line> &current();

    int depth() const
    {
        return depth_;
    }

  private:
    friend class Task;
    friend class Group;

    const std::shared_ptr<Line> &callbacks();

    int depth_ = 0;
    std::shared_ptr<Line> callbacks_;
    std::shared_ptr<Task> last_; /* that was hung by this line */
};

/* Of the futures of one group's works: whichever thread hangs a callback on them, it runs after the one hung before. */
class Group
{
  public:
    /*
     * Runs once both is true: the future is complete, which calls `ready`, and the callbacks that this line or this
     * group has hung before have ended. In this thread, before it returns, if that is so already, else in another one.
     * `task` gets an error where there is no thread.
     */
    void hang(const std::function<void(std::function<void()> ready)> &on_future,
              std::function<void(std::exception_ptr error)> task);

  private:
    std::mutex mutex_;
    std::shared_ptr<Task> last_;
};

} // namespace meshcoll_torch

#endif
