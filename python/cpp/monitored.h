/* A barrier over torch's store: it names the ranks that do not come, and leaves the group usable. */
#ifndef MESHCOLL_TORCH_MONITORED_H
#define MESHCOLL_TORCH_MONITORED_H

#include "deadline.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <vector>

namespace meshcoll_torch
{

class MonitoredBarrier
{
  public:
    /* tag: of what is made over one store, see Exchange */
    MonitoredBarrier(c10::intrusive_ptr<c10d::Store> store, int rank, int size, uint64_t tag);

    /* Throws after this time: rank 0 the first rank that is missing, or all of them; the others
     * what rank 0 found. The sentences are Gloo's, which programs search for words. */
    void pass(std::chrono::milliseconds timeout, bool names_all);

  private:
    std::string key(uint64_t barrier) const;
    std::string key(uint64_t barrier, int rank) const;
    bool comes(const std::string &key, Clock::time_point end) const;
    std::string missing(uint64_t barrier, std::chrono::milliseconds timeout, bool names_all) const;
    std::string answer_of_rank_0(uint64_t barrier, std::chrono::milliseconds timeout) const;

    const c10::intrusive_ptr<c10d::Store> store_;
    const int rank_, size_;
    const uint64_t tag_;
    uint64_t begun_ = 0; /* barriers */
};

} // namespace meshcoll_torch

#endif
