#include "helpers.h"

#include "process.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace meshcoll_torch
{

namespace
{
struct Helpers {
    std::mutex mutex;
    std::condition_variable more;
    std::deque<std::function<void()>> tasks;
    size_t idle = 0; /* threads without a task */
};
} // namespace

static thread_local bool serves = false;

bool is_helper()
{
    return serves;
}

static void serve()
{
    serves = true;
    Helpers &p = of_this_process<Helpers>();
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
    Helpers &p = of_this_process<Helpers>();
    const std::lock_guard<std::mutex> lock(p.mutex);
    if (p.tasks.size() >= p.idle)
        std::thread(serve).detach(); /* before the task is there, which another thread might take */
    p.tasks.push_back(std::move(task));
    p.more.notify_one();
}

std::string no_thread(const char *what, const std::system_error &error)
{
    return std::string("no thread could be made ") + what + ": " + error.what() +
           "; raise the limit of threads (ulimit -u, or that of the container)";
}

} // namespace meshcoll_torch
