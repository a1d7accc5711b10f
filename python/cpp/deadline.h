#ifndef MESHCOLL_TORCH_DEADLINE_H
#define MESHCOLL_TORCH_DEADLINE_H

#include <algorithm>
#include <chrono>

namespace meshcoll_torch
{

using Clock = std::chrono::steady_clock;

/* When `time` is over that began at `from`: at the end of time where it is longer than the clock counts. */
inline Clock::time_point deadline(std::chrono::milliseconds time,
                                  Clock::time_point from = Clock::now())
{
    using std::chrono::milliseconds;
    const auto most = std::chrono::duration_cast<milliseconds>(Clock::time_point::max() - from);
    return from + std::min(time, most);
}

} // namespace meshcoll_torch

#endif
