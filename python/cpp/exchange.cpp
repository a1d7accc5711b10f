#include "exchange.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Exchange::Exchange(c10::intrusive_ptr<c10d::Store> store, int rank, int size, uint64_t tag,
                   milliseconds patience)
    : store_(std::move(store)), rank_(rank), size_(size), tag_(tag), patience_(patience)
{
}

void Exchange::open_own_connection()
{
    try {
        own_.emplace(store_);
    } catch (const std::exception &) {
        own_.reset(); /* the next round tells what is wrong */
    }
}

void Exchange::close_own_connection()
{
    if (own_ && why_.empty())
        own_->give_back();
    own_.reset();
}

std::string Exchange::key(uint64_t round) const
{
    return "meshcoll/" + std::to_string(tag_) + "/" + std::to_string(round);
}

std::string Exchange::key(uint64_t round, int rank) const
{
    return key(round) + "/" + std::to_string(rank);
}

std::string Exchange::missing(const std::vector<std::string> &keys) const
{
    std::string ranks;
    for (const std::string &k : keys)
        if (!store().check({k}))
            ranks += (ranks.empty() ? "" : ", ") + k.substr(k.rfind('/') + 1);
    return ranks;
}

void Exchange::await(const std::vector<std::string> &keys) const
{
    if (keys_come(store(), keys, Clock::now() + patience_, &given_up_))
        return;
    const auto seconds = std::to_string(patience_.count() / 1000);
    TORCH_CHECK(rank_ == 0, "rank 0 did not answer within ", seconds,
                " s: it has not begun, has ended or waits for other ranks");
    TORCH_CHECK(false, "these ranks did not join within ", seconds, " s: ", missing(keys));
}

std::vector<uint8_t> Exchange::take(const std::string &key, size_t bytes) const
{
    std::vector<uint8_t> value = store().get(key);
    TORCH_CHECK(value.size() == bytes, "the store's key ", key, " has ", value.size(),
                " bytes, expected ", bytes, ": do all ranks use the same version of meshcoll?");
    return value;
}

void Exchange::collect(uint8_t *out, size_t bytes)
{
    std::vector<std::string> keys;
    for (int r = 1; r < size_; r++)
        keys.push_back(key(rounds_, r));
    await(keys);
    for (int r = 1; r < size_; r++) {
        const std::string &name = keys[static_cast<size_t>(r) - 1];
        const std::vector<uint8_t> theirs = take(name, bytes);
        std::memcpy(out + static_cast<size_t>(r) * bytes, theirs.data(), bytes);
        store().deleteKey(name);
    }
}

void Exchange::round(const uint8_t *in, uint8_t *out, size_t bytes)
{
    const size_t all = static_cast<size_t>(size_) * bytes;
    if (rank_ == 0) {
        std::memcpy(out, in, bytes);
        collect(out, bytes);
        store().set(key(rounds_), std::vector<uint8_t>(out, out + all));
        if (rounds_ > 0)
            store().deleteKey(key(rounds_ - 1)); /* who is in this round has read the last one */
    } else {
        store().set(key(rounds_, rank_), std::vector<uint8_t>(in, in + bytes));
        await({key(rounds_)});
        const std::vector<uint8_t> answer = take(key(rounds_), all);
        std::memcpy(out, answer.data(), all);
    }
    rounds_++;
}

int Exchange::allgather(void *context, const void *in, void *out, size_t bytes)
{
    auto *const self = static_cast<Exchange *>(context);
    if (self->size_ == 1) {
        std::memcpy(out, in, bytes);
        return 0;
    }
    try {
        self->round(static_cast<const uint8_t *>(in), static_cast<uint8_t *>(out), bytes);
        return 0;
    } catch (const c10::Error &e) {
        self->why_ = e.what_without_backtrace();
    } catch (const std::exception &e) {
        self->why_ = e.what();
    }
    return 1;
}

void Exchange::forget()
{
    if (rank_ != 0 || size_ == 1 || rounds_ == 0)
        return;
    try {
        store().deleteKey(key(rounds_ - 1));
    } catch (const std::exception &) {
        /* the store has ended, and its keys with it */
    }
}

} // namespace meshcoll_torch
