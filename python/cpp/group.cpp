/* A group's life: its meshes, its end, and what it is made into, parts of it and the same one with other ranks. */
#include "backend.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <random>

namespace meshcoll_torch
{

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/* For the other ranks to come to the end of the group as well. If they take longer, the mesh is
 * closed in the background, so that groups can be ended in any order. */
static constexpr Timeout PATIENCE{1000};

Backend::Backend(Setup setup, Makers makers, bool begins)
    : c10d::Backend(setup.rank, setup.size), makers_(std::move(makers)), setup_(std::move(setup))
{
    setup_.hooks = std::make_shared<Hooks>();
    if (begins)
        open(setup_);
}

/* In place of the meshes that it had. */
void Backend::open(Setup setup)
{
    const auto limit = timeout();
    const auto mesh = Mesh::open(setup);
    if (limit != setup.timeout)
        mesh->set_timeout(limit);
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    rank_ = setup.rank;
    size_ = setup.size;
    monitored_ = std::make_unique<MonitoredBarrier>(setup.store, setup.rank, setup.size, setup.tag);
    lanes_.clear();
    lanes_[0].mesh = mesh;
}

Backend::~Backend()
{
    close();
}

/* Of lines of one depth. A group that is being closed has no further one: the
 * first one refuses the call. */
Backend::Lane &Backend::lane(int depth)
{
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    TORCH_CHECK(!lanes_.empty(), "meshcoll: the process group was made with enable_reconfigure: "
                                 "call reconfigure before it is used");
    Lane &first = lanes_.at(0);
    const auto found = lanes_.find(depth);
    if (found != lanes_.end())
        return found->second;
    first.mesh->check_ours();
    if (closing_)
        return first;
    auto mesh = first.mesh->sibling(depth);
    Lane &made = lanes_[depth];
    made.mesh = std::move(mesh);
    return made;
}

std::shared_ptr<Mesh> Backend::main()
{
    return lane(0).mesh;
}

Timeout Backend::timeout() const
{
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    return setup_.timeout;
}

std::vector<std::shared_ptr<Mesh>> Backend::meshes() const
{
    std::vector<std::shared_ptr<Mesh>> meshes;
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    for (const auto &lane : lanes_)
        meshes.push_back(lane.second.mesh);
    return meshes;
}

void Backend::close()
{
    {
        const std::lock_guard<std::mutex> lock(lanes_mutex_);
        closing_ = true;
    }
    for (const auto &mesh : meshes())
        mesh->close();
}

void Backend::shutdown()
{
    close();
    Mesh::await_all(meshes(), Mesh::end_of_waiting(PATIENCE));
}

void Backend::abort()
{
    for (const auto &mesh : meshes())
        mesh->abort("by torch.distributed");
}

void Backend::setTimeout(Timeout timeout)
{
    {
        const std::lock_guard<std::mutex> lock(lanes_mutex_);
        setup_.timeout = timeout;
    }
    for (const auto &mesh : meshes())
        mesh->set_timeout(timeout);
}

int Backend::failure() const
{
    for (const auto &mesh : meshes())
        if (mesh->failure() != MESHCOLL_OK)
            return mesh->failure();
    return MESHCOLL_OK;
}

c10d::ErrorType Backend::getError()
{
    switch (failure()) {
    case MESHCOLL_OK:
        return c10d::ErrorType::SUCCESS;
    case MESHCOLL_ERR_TIMEOUT:
        return c10d::ErrorType::TIMEOUT;
    case MESHCOLL_ERR_PEER:
    case MESHCOLL_ERR_ABORTED:
        return c10d::ErrorType::REMOTE_ERROR;
    default:
        return c10d::ErrorType::COMM_ERROR;
    }
}

c10::intrusive_ptr<c10d::Backend::Options> Backend::getBackendOptions()
{
    return c10::make_intrusive<Options>(getBackendName(), timeout());
}

#ifdef C10D_BACKEND_HAS_HOOKS

void Backend::registerCompletionHook(int64_t id, c10d::CompletionHook hook)
{
    setup_.hooks->on_completion(id, [hook = std::move(hook)](uint64_t key, float milliseconds) {
        hook({.completionKey = key, .duration_ms = milliseconds});
    });
}

void Backend::unregisterCompletionHook(int64_t id)
{
    setup_.hooks->remove(id);
}

#endif

/* Other groups --------------------------------------------------------------------------------- */

/* Undefined on ranks that are not among these. */
c10::intrusive_ptr<c10d::Backend> Backend::split(const StorePtr &store,
                                                 const std::vector<int> &ranks,
                                                 const c10::intrusive_ptr<Options> &options)
{
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    if (own == ranks.end())
        return {};
    return makers_.part(store, static_cast<int>(own - ranks.begin()),
                        static_cast<int>(ranks.size()), ranks, timeout_of(options));
}

c10::intrusive_ptr<c10d::Backend> Backend::merge(const StorePtr &store,
                                                 const c10::intrusive_ptr<Options> &options,
                                                 const int &rank, const int &size)
{
    return makers_.part(store, rank, size, {}, timeout_of(options));
}

double Backend::timeout_of(const c10::intrusive_ptr<Options> &options) const
{
    return static_cast<double>((options ? options->timeout : timeout()).count()) / 1e3;
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE

std::string Backend::new_handle()
{
    std::random_device random;
    std::string handle = "meshcoll-";
    for (int i = 0; i < 4; i++)
        handle += std::to_string(random()) + (i < 3 ? "-" : "");
    return handle;
}

/* One handle for each rank, in their order; a set has none, and is sorted. */
static std::vector<std::string> in_order(const c10d::ReconfigureOptions &options)
{
    if (const auto *const list = std::get_if<std::vector<std::string>>(&options.handles))
        return *list;
    const auto &set = std::get<std::unordered_set<std::string>>(options.handles);
    std::vector<std::string> handles(set.begin(), set.end());
    std::sort(handles.begin(), handles.end());
    return handles;
}

/* What runs on the group's meshes fails: a rank that is no longer there may
 * never take part in it. */
void Backend::leave()
{
    for (const auto &mesh : meshes()) {
        if (!mesh->is_idle() || mesh->failure() != MESHCOLL_OK)
            mesh->abort("its process group was reconfigured");
        mesh->close();
    }
}

/* Other ranks over the same store, told apart by the program's number. The work
 * is complete when all have met. */
WorkPtr Backend::reconfigure(const c10d::ReconfigureOptions &options)
{
    const auto handles = in_order(options);
    const auto own = std::find(handles.begin(), handles.end(), handle_);
    TORCH_CHECK_VALUE(own != handles.end(), "meshcoll: reconfigure got ", handles.size(),
                      " handles, and that of this rank, ", handle_, ", is not among them");
    const Timeout limit = options.timeout.value_or(timeout());
    Setup setup = setup_;
    setup.store = c10::make_intrusive<c10d::PrefixStore>(
        "meshcoll/reconfigured/" + std::to_string(options.uuid), setup_.store);
    setup.rank = static_cast<int>(own - handles.begin());
    setup.size = static_cast<int>(handles.size());
    setup.tag = 0;
    setup.mesh = "";
    setup.name.clear();
    setup.timeout = limit;
    leave();
    open(std::move(setup));
    const auto work =
        make(c10d::OpType::BARRIER, "meshcoll:reconfigure", limit, {}, at::Device(at::kCPU));
    work->add([](meshcoll_t *mesh, meshcoll_request_t **request) {
        return meshcoll_ibarrier(mesh, request);
    });
    return post(work, {});
}

#endif

} // namespace meshcoll_torch
