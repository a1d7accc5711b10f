#include "exchange.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

namespace meshcoll_torch
{

using std::chrono::milliseconds;

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
    if (own_ && !why_.empty())
        own_->give_up();
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
        if (!has_key(store(), k))
            ranks += (ranks.empty() ? "" : ", ") + k.substr(k.rfind('/') + 1);
    return ranks;
}

/* Rank 0 sees a failure where its own answer would be. */
void Exchange::await(const std::vector<std::string> &keys)
{
    const std::string instead = rank_ == 0 ? key(rounds_) : "";
    const Came came = await_keys(store(), keys, deadline(patience_), instead, &given_up_);
    if (came == Came::ALL)
        return;
    if (came == Came::INSTEAD)
        take(instead, 0);
    const auto seconds = std::to_string(patience_.count() / 1000);
    TORCH_CHECK(rank_ == 0, "rank 0 did not answer within ", seconds,
                " s: it has not begun, has ended or waits for other ranks");
    TORCH_CHECK(false, "these ranks did not join within ", seconds, " s: ", missing(keys));
}

/* Values: a byte that says which of both it is, and a part of a round, or why a rank cannot make the group. */
enum : uint8_t { PART, FAILURE };

static std::vector<uint8_t> value_of(uint8_t kind, const void *data, size_t bytes)
{
    std::vector<uint8_t> value(1 + bytes, kind);
    if (bytes > 0)
        std::memcpy(value.data() + 1, data, bytes);
    return value;
}

std::vector<uint8_t> Exchange::take(const std::string &key, size_t bytes)
{
    std::vector<uint8_t> value = store().get(key);
    heard_ = !value.empty() && value[0] == FAILURE;
    TORCH_CHECK(!heard_, std::string(value.begin() + 1, value.end()));
    TORCH_CHECK(value.size() == 1 + bytes, "the store's key ", key, " has ", value.size(),
                " bytes, expected ", 1 + bytes, ": do all ranks use the same version of meshcoll?");
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
        std::memcpy(out + static_cast<size_t>(r) * bytes, theirs.data() + 1, bytes);
        forget_key(store(), name);
    }
}

void Exchange::round(const uint8_t *in, uint8_t *out, size_t bytes)
{
    const size_t all = static_cast<size_t>(size_) * bytes;
    if (rank_ == 0) {
        std::memcpy(out, in, bytes);
        collect(out, bytes);
        store().set(key(rounds_), value_of(PART, out, all));
        if (rounds_ > 0)
            forget_key(store(), key(rounds_ - 1)); /* who is in this round has read the last one */
    } else {
        store().set(key(rounds_, rank_), value_of(PART, in, bytes));
        await({key(rounds_)});
        const std::vector<uint8_t> answer = take(key(rounds_), all);
        std::memcpy(out, answer.data() + 1, all);
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

/* As rank 0's answers, of this round and the next: another rank may have been answered already. */
void Exchange::tell_failure(const std::string &why)
{
    if (size_ == 1 || heard_)
        return;
    const std::string text = "rank " + std::to_string(rank_) + " could not make the group: " + why;
    const std::vector<uint8_t> value = value_of(FAILURE, text.data(), text.size());
    try {
        for (const uint64_t round : {rounds_, rounds_ + 1})
            store().set(key(round), value);
    } catch (const std::exception &) {
        /* the others find the store as this rank does */
    }
}

std::string Exchange::readers() const
{
    return key(rounds_ - 1) + "/read";
}

void Exchange::has_read()
{
    if (rank_ == 0 || rounds_ == 0)
        return;
    try {
        store().add(readers(), 1);
    } catch (const std::exception &) {
        /* the answer is left */
    }
}

void Exchange::forget()
{
    if (rank_ != 0 || rounds_ == 0)
        return;
    try {
        if (store().add(readers(), 0) != size_ - 1)
            return;
    } catch (const std::exception &) {
        return; /* the store has ended */
    }
    forget_key(store(), key(rounds_ - 1));
    forget_key(store(), readers());
}

} // namespace meshcoll_torch
