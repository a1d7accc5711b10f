/* Threads for what users hang on futures. */
#ifndef MESHCOLL_TORCH_HELPERS_H
#define MESHCOLL_TORCH_HELPERS_H

#include <functional>

namespace meshcoll_torch
{

/*
 * Runs `task` soon, in a thread that does nothing else meanwhile: neither one that moves messages,
 * nor one that is busy with another task, since a task may wait for a collective, whose end is
 * another task. Threads are reused, and stay until the process ends.
 */
void run_aside(std::function<void()> task);

} // namespace meshcoll_torch

#endif
