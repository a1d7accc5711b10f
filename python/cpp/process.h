/* What a process has once, and a forked child anew. */
#ifndef MESHCOLL_TORCH_PROCESS_H
#define MESHCOLL_TORCH_PROCESS_H

#include <atomic>

#include <unistd.h>

namespace meshcoll_torch
{

/*
 * The T of this process. In a forked child the parent's threads do not exist, and nobody will unlock what they held, so
 * that the child leaves its copy alone. Never destroyed: threads outlive static objects.
 */
template <typename T> T &of_this_process()
{
    struct Made {
        pid_t pid;
        T value;
    };
    static std::atomic<Made *> made{nullptr};
    Made *now = made.load();
    while (!now || now->pid != getpid()) {
        Made *const fresh = new Made{.pid = getpid(), .value = {}};
        if (made.compare_exchange_strong(now, fresh))
            return fresh->value;
        delete fresh;
    }
    return now->value;
}

} // namespace meshcoll_torch

#endif
