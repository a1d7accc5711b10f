#include "monitored.h"

#include "connections.h"

#include <c10/util/Exception.h>

namespace meshcoll_torch
{

using std::chrono::milliseconds;

MonitoredBarrier::MonitoredBarrier(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                   uint64_t tag)
    : store_(std::move(store)), rank_(rank), size_(size), tag_(tag)
{
}

/* Of rank 0's answer: what it found wrong, or OK. */
std::string MonitoredBarrier::key(uint64_t barrier) const
{
    return "meshcoll/" + std::to_string(tag_) + "/monitored/" + std::to_string(barrier);
}

std::string MonitoredBarrier::key(uint64_t barrier, int rank) const
{
    return key(barrier) + "/" + std::to_string(rank);
}

static const std::string OK = "ok";

static std::string milliseconds_text(milliseconds time)
{
    return std::to_string(time.count()) + " ms";
}

bool MonitoredBarrier::comes(const std::string &key, Clock::time_point end) const
{
    return await_keys(*store_, {key}, end, "", nullptr) == Came::ALL;
}

std::string MonitoredBarrier::missing(uint64_t barrier, milliseconds timeout, bool names_all) const
{
    const auto end = deadline(timeout);
    std::string ranks;
    for (int r = 1; r < size_; r++) {
        if (!names_all && Clock::now() >= end)
            return "Rank 0 timed out in monitoredBarrier after " + milliseconds_text(timeout);
        if (comes(key(barrier, r), end))
            forget_key(*store_, key(barrier, r));
        else if (!names_all)
            return "Rank " + std::to_string(r) + " failed to pass monitoredBarrier in " +
                   milliseconds_text(timeout);
        else
            ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
    }
    if (ranks.empty())
        return OK;
    return "Ranks " + ranks + " failed to pass monitoredBarrier in " + milliseconds_text(timeout);
}

static std::vector<uint8_t> bytes_of(const std::string &text)
{
    return {text.begin(), text.end()};
}

std::string MonitoredBarrier::answer_of_rank_0(uint64_t barrier, milliseconds timeout) const
{
    if (!comes(key(barrier), deadline(timeout)))
        return "no answer within " + milliseconds_text(timeout);
    const std::vector<uint8_t> value = store_->get(key(barrier));
    return {value.begin(), value.end()};
}

void MonitoredBarrier::pass(milliseconds timeout, bool names_all)
{
    const uint64_t barrier = begun_++;
    if (rank_ == 0) {
        const std::string found = missing(barrier, timeout, names_all);
        store_->set(key(barrier), bytes_of(found));
        if (found == OK && barrier > 0)
            forget_key(*store_,
                       key(barrier - 1)); /* who is in this barrier has read the last one */
        TORCH_CHECK(found == OK, found);
        return;
    }
    store_->set(key(barrier, rank_), bytes_of(OK));
    const std::string found = answer_of_rank_0(barrier, timeout);
    TORCH_CHECK(found == OK, "Rank ", rank_,
                " successfully reached monitoredBarrier, but received errors while waiting for "
                "send/recv from rank 0: ",
                found);
}

} // namespace meshcoll_torch
