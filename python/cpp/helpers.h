/* Threads for what users hang on futures. */
#ifndef MESHCOLL_TORCH_HELPERS_H
#define MESHCOLL_TORCH_HELPERS_H

#include <functional>
#include <string>
#include <system_error>

namespace meshcoll_torch
{

/*
 * Runs `task` soon, in a thread that does nothing else meanwhile: neither one that moves messages,
 * nor one that is busy with another task, since a task may wait for a collective, whose end is
 * another task. Threads are reused, and stay until the process ends. Throws std::system_error, and keeps nothing of the
 * task, where the thread that it needs cannot be made.
 */
void run_aside(std::function<void()> task);

/* Is this one of these threads? */
bool is_helper();

/* What to say of it. */
std::string no_thread(const char *what, const std::system_error &error);

} // namespace meshcoll_torch

#endif
