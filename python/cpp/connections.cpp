#include "connections.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

namespace
{
struct Idle {
    c10::weak_intrusive_ptr<c10d::Store> base;
    pid_t pid; /* a forked child must not talk on its parent's connection */
    StorePtr own;
};

/* Never destroyed: threads outlive static objects. */
struct Pool {
    std::mutex mutex;
    std::vector<Idle> idle; /* one for each store at most */
};

struct Layer : c10d::PrefixStore {
    static const std::string &prefix_of(const c10d::PrefixStore &store)
    {
        return store.*(&Layer::prefix_);
    }
};
} // namespace

static Pool &pool()
{
    static Pool *const the_pool = new Pool;
    return *the_pool;
}

static StorePtr take_idle(const StorePtr &base)
{
    Pool &p = pool();
    const std::lock_guard<std::mutex> lock(p.mutex);
    std::erase_if(p.idle, [](const Idle &i) { return i.base.expired(); });
    const auto found = std::find_if(p.idle.begin(), p.idle.end(), [&](const Idle &i) {
        return i.base.lock() == base && i.pid == getpid();
    });
    if (found == p.idle.end())
        return {};
    StorePtr own = std::move(found->own);
    p.idle.erase(found);
    return own;
}

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

Connection::Connection(const StorePtr &store) : base_(store), layered_(store)
{
    std::vector<std::string> prefixes;
    while (auto *const layer = dynamic_cast<c10d::PrefixStore *>(base_.get())) {
        prefixes.push_back(Layer::prefix_of(*layer));
        base_ = layer->getUnderlyingStore();
    }
    own_ = take_idle(base_);
    if (!own_)
        own_ = clone_of(*base_);
    if (!own_)
        return;
    layered_ = own_;
    for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix)
        layered_ = c10::make_intrusive<c10d::PrefixStore>(*prefix, layered_);
}

void Connection::give_back()
{
    if (!own_)
        return;
    Pool &p = pool();
    const std::lock_guard<std::mutex> lock(p.mutex);
    const bool has_one = std::any_of(p.idle.begin(), p.idle.end(),
                                     [this](const Idle &i) { return i.base.lock() == base_; });
    if (!has_one)
        p.idle.push_back({c10::weak_intrusive_ptr<c10d::Store>(base_), getpid(), std::move(own_)});
}

/* It asks again after an eighth of the time that has passed: late by no more than that, and after a
 * second a store with a thousand clients answers 8000 questions in a second. */
bool keys_come(c10d::Store &store, const std::vector<std::string> &keys, Clock::time_point end,
               const std::atomic<bool> *given_up)
{
    const auto began = Clock::now();
    for (;;) {
        TORCH_CHECK(!given_up || !*given_up, "the group was aborted before its ranks had met");
        if (store.check(keys))
            return true;
        const auto now = Clock::now();
        if (now >= end)
            return false;
        const auto pause = std::chrono::duration_cast<milliseconds>((now - began) / 8);
        const auto left = std::chrono::duration_cast<milliseconds>(end - now);
        std::this_thread::sleep_for(
            std::clamp(std::min(pause, left), milliseconds(1), milliseconds(250)));
    }
}

} // namespace meshcoll_torch
