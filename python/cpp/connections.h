/* Connections to torch's stores that a thread has for itself. */
#ifndef MESHCOLL_TORCH_CONNECTIONS_H
#define MESHCOLL_TORCH_CONNECTIONS_H

#include "deadline.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>

namespace meshcoll_torch
{

/*
 * A client of a TCPStore serves one thread at a time, also while it waits, as
 * the program's may. All groups of the process share one of the backend's, on
 * which nobody waits: each costs a TCP connection and a question to the
 * resolver, and of twenty at once some were answered after 5 s only.
 */
class Connection
{
  public:
    /* store() is `store` itself, where its kind cannot be cloned. */
    explicit Connection(const c10::intrusive_ptr<c10d::Store> &store);
    /* Groups that begin later get another one. */
    void give_up();

    c10d::Store &store() const
    {
        return *layered_;
    }

  private:
    c10::intrusive_ptr<c10d::Store> base_, own_;
    c10::intrusive_ptr<c10d::Store> layered_; /* own_ under the prefixes */
};

/* What follows needs no more of a store than set, get, add and wait. */

enum class Came { ALL, INSTEAD, LATE };

/* Whether the keys are set before `end`, or `instead`, which may be "". Asks instead of waiting: a wait that
 * ends in vain prints a warning, and cannot be given up, which throws. */
Came await_keys(c10d::Store &store, const std::vector<std::string> &keys, Clock::time_point end,
                const std::string &instead, const std::atomic<bool> *given_up);
bool has_key(c10d::Store &store, const std::string &key);
/* Where the store can. */
void forget_key(c10d::Store &store, const std::string &key);

} // namespace meshcoll_torch

#endif
