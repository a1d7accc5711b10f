/* Who wants to hear of works that are complete. */
#ifndef MESHCOLL_TORCH_HOOKS_H
#define MESHCOLL_TORCH_HOOKS_H

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace meshcoll_torch
{

/* Of one process group, by the caller's numbers. torch's flight recorder is the one that has some. */
class Hooks
{
  public:
    using Completed = std::function<void(uint64_t key, float milliseconds)>;

    void on_completion(int64_t id, Completed hook)
    {
        const std::unique_lock<std::mutex> lock(mutex_);
        completed_[id] = std::move(hook);
    }
    void remove(int64_t id)
    {
        const std::unique_lock<std::mutex> lock(mutex_);
        completed_.erase(id);
    }
    /* With the lock held: torch promises that they are short. */
    void completed(uint64_t key, float milliseconds)
    {
        const std::unique_lock<std::mutex> lock(mutex_);
        for (const auto &hook : completed_)
            hook.second(key, milliseconds);
    }

  private:
    std::mutex mutex_;
    std::map<int64_t, Completed> completed_;
};

} // namespace meshcoll_torch

#endif
