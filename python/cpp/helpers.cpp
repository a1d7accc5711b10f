#include "helpers.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace meshcoll_torch
{

namespace
{
struct Pool {
    std::mutex mutex;
    std::condition_variable more;
    std::deque<std::function<void()>> tasks;
    size_t idle = 0; /* threads without a task */
};
} // namespace

/* Never destroyed: its threads outlive static objects. */
static Pool &pool()
{
    static Pool *const the_pool = new Pool;
    return *the_pool;
}

static void serve()
{
    Pool &p = pool();
    std::unique_lock<std::mutex> lock(p.mutex);
    for (;;) {
        p.idle++;
        p.more.wait(lock, [&p] { return !p.tasks.empty(); });
        p.idle--;
        std::function<void()> task = std::move(p.tasks.front());
        p.tasks.pop_front();
        lock.unlock();
        task();
        task = nullptr;
        lock.lock();
    }
}

void run_aside(std::function<void()> task)
{
    Pool &p = pool();
    bool starts;
    {
        const std::lock_guard<std::mutex> lock(p.mutex);
        p.tasks.push_back(std::move(task));
        starts = p.tasks.size() > p.idle;
    }
    if (starts)
        std::thread(serve).detach();
    p.more.notify_one();
}

} // namespace meshcoll_torch
