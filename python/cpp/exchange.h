/* The library's out-of-band allgather, over the store that torch gives each process group. */
#ifndef MESHCOLL_TORCH_EXCHANGE_H
#define MESHCOLL_TORCH_EXCHANGE_H

#include "connections.h"

#include <optional>
#include <string>
#include <vector>

namespace meshcoll_torch
{

/*
 * Rank 0 collects what the others set and answers them all with one key. So the store has at most
 * one key for each rank and two answers at a time. One answer and a count of who has read it are left when the group
 * works, which rank 0 deletes by forget() at the group's end; why a group failed stays, for ranks that are still to
 * come.
 */
class Exchange
{
  public:
    /* `tag` tells exchanges over one store apart: a group may be made again under its old name. */
    Exchange(c10::intrusive_ptr<c10d::Store> store, int rank, int size, uint64_t tag,
             std::chrono::milliseconds patience);

    /* For meshcoll_oob_t; the context is an Exchange. */
    static int allgather(void *context, const void *in, void *out, size_t bytes);

    /* Between both, rounds use a connection of their own. */
    void open_own_connection();
    void close_own_connection();

    /* Has the other ranks fail at once, those that are still to come too, unless one of them has told it. */
    void tell_failure(const std::string &why);
    /* This rank has read the last answer. Called by all ranks. */
    void has_read();
    /* Leaves the store as it was, unless a rank has not read the last answer yet. */
    void forget();

    /* Ends a wait at once; may be called by any thread. */
    void give_up()
    {
        given_up_ = true;
    }
    /* Why the last round failed, "" if none has. */
    const std::string &why() const
    {
        return why_;
    }

  private:
    c10d::Store &store() const
    {
        return own_ ? own_->store() : *store_;
    }
    std::string readers() const;
    std::string key(uint64_t round) const;
    std::string key(uint64_t round, int rank) const;
    void round(const uint8_t *in, uint8_t *out, size_t bytes);
    void collect(uint8_t *out, size_t bytes);
    void await(const std::vector<std::string> &keys);
    std::string missing(const std::vector<std::string> &keys) const;
    std::vector<uint8_t> take(const std::string &key, size_t bytes);

    const c10::intrusive_ptr<c10d::Store> store_;
    std::optional<Connection> own_;
    const int rank_, size_;
    const uint64_t tag_;
    const std::chrono::milliseconds patience_;
    uint64_t rounds_ = 0;
    std::atomic<bool> given_up_{false};
    std::string why_;
    bool heard_ = false; /* that another rank could not */
};

} // namespace meshcoll_torch

#endif
