#include "connections.h"

#include "process.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

namespace
{
struct Shared {
    c10::weak_intrusive_ptr<c10d::Store> base;
    StorePtr own;
};

/* A forked child must not talk on its parent's connections. */
struct Pool {
    std::mutex mutex;           /* held while one is made, which others wait for */
    std::vector<Shared> shared; /* one for each store at most */
};

struct Layer : c10d::PrefixStore {
    static const std::string &prefix_of(const c10d::PrefixStore &store)
    {
        return store.*(&Layer::prefix_);
    }
};
} // namespace

template <typename S> static StorePtr clone_of(S &store)
{
    if constexpr (requires { store.clone(); }) {
        try {
            return store.clone();
        } catch (const std::exception &) {
            return {}; /* this kind of store cannot be cloned */
        }
    }
    return {};
}

/* Of this process; none where this kind of store cannot be cloned. */
static StorePtr shared_clone(const StorePtr &base)
{
    Pool &p = of_this_process<Pool>();
    const std::lock_guard<std::mutex> lock(p.mutex);
    std::erase_if(p.shared, [](const Shared &s) { return s.base.expired(); });
    const auto found = std::find_if(p.shared.begin(), p.shared.end(),
                                    [&](const Shared &s) { return s.base.lock() == base; });
    if (found != p.shared.end())
        return found->own;
    StorePtr own = clone_of(*base);
    if (own)
        p.shared.push_back({c10::weak_intrusive_ptr<c10d::Store>(base), own});
    return own;
}

Connection::Connection(const StorePtr &store) : base_(store), layered_(store)
{
    std::vector<std::string> prefixes;
    while (auto *const layer = dynamic_cast<c10d::PrefixStore *>(base_.get())) {
        prefixes.push_back(Layer::prefix_of(*layer));
        base_ = layer->getUnderlyingStore();
    }
    own_ = shared_clone(base_);
    if (!own_)
        return;
    layered_ = own_;
    for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix)
        layered_ = c10::make_intrusive<c10d::PrefixStore>(*prefix, layered_);
}

void Connection::give_up()
{
    Pool &p = of_this_process<Pool>();
    const std::lock_guard<std::mutex> lock(p.mutex);
    std::erase_if(p.shared, [this](const Shared &s) { return s.own == own_; });
}

/* A store of the program's own may have set, get, add and wait alone: it waits instead, for as long as another
 * is left in peace until it is asked again. A wait that fails before has not run out of time. */
static bool are_set(c10d::Store &store, const std::vector<std::string> &keys, milliseconds patience)
{
    try {
        return store.check(keys);
    } catch (const std::exception &) {
        /* the wait tells whether it is the store that fails */
    }
    const auto began = Clock::now();
    try {
        store.wait(keys, patience);
        return true;
    } catch (const std::exception &) {
        if (Clock::now() - began < patience / 2)
            throw;
        return false;
    }
}

/* It asks again after an eighth of the time that has passed: late by no more than that, and after a
 * second a store with a thousand clients answers 8000 questions in a second. */
Came await_keys(c10d::Store &store, const std::vector<std::string> &keys, Clock::time_point end,
                const std::string &instead, const std::atomic<bool> *given_up)
{
    const auto began = Clock::now();
    for (;;) {
        TORCH_CHECK(!given_up || !*given_up, "the group was aborted before its ranks had met");
        const auto asked = Clock::now();
        const auto left = std::chrono::duration_cast<milliseconds>(end - asked);
        const auto passed = std::chrono::duration_cast<milliseconds>(asked - began);
        const auto pause =
            std::clamp(std::min(passed / 8, left), milliseconds(1), milliseconds(250));
        if (are_set(store, keys, pause))
            return Came::ALL;
        if (!instead.empty() && are_set(store, {instead}, milliseconds(1)))
            return Came::INSTEAD;
        if (asked >= end)
            return Came::LATE;
        std::this_thread::sleep_until(asked + pause);
    }
}

bool has_key(c10d::Store &store, const std::string &key)
{
    return are_set(store, {key}, milliseconds(1));
}

void forget_key(c10d::Store &store, const std::string &key)
{
    try {
        store.deleteKey(key);
    } catch (const std::exception &) {
        /* this kind of store keeps its keys, or has ended, and they with it */
    }
}

} // namespace meshcoll_torch
