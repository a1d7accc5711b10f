/* The mesh of a process group: made, used in the order of the calls, and destroyed. */
#ifndef MESHCOLL_TORCH_MESH_H
#define MESHCOLL_TORCH_MESH_H

#include "exchange.h"
#include "hooks.h"
#include "order.h"

#include <meshcoll/meshcoll.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace meshcoll_torch
{

class DeviceWork;
class Work;

/* A stream beside the program's, for calls on device memory. */
struct SideStream {
    c10::Stream stream;
    void *handle; /* its cudaStream_t */
};

struct Setup {
    c10::intrusive_ptr<c10d::Store> store;
    int rank, size;
    uint64_t tag;                      /* of what is made over one store: Exchange */
    std::chrono::milliseconds timeout; /* of its operations and of its making; 0: none */
    std::optional<std::string> mesh;   /* its text; "": found; none: MESHCOLL_MESH, else found */
    std::string name;                  /* for error messages; "" of the group of all ranks */
    std::shared_ptr<Hooks> hooks;      /* of the group */
};

/*
 * A thread makes the mesh, another one destroys it. So beginning a group waits for nobody, and
 * groups can be begun in any order, also in a circle; operations wait for the mesh in a queue. Those on
 * device memory do not, since the first one waits for all ranks anyway. Between making and closing a group
 * has no thread, unless it has calls on a GPU, which one looks at now and then.
 */
class Mesh : public std::enable_shared_from_this<Mesh>
{
  public:
    static std::shared_ptr<Mesh> open(Setup setup);
    /* Another mesh of the same ranks, for the calls of callbacks (Line). */
    std::shared_ptr<Mesh> sibling(int depth) const;

    /* Starts the operation, now or as soon as the mesh is there. */
    void post(const c10::intrusive_ptr<Work> &work);
    /* Starts it when the mesh is there. Throws ValueError for a second GPU. */
    void post_on_device(const c10::intrusive_ptr<DeviceWork> &work);
    /* Of the one GPU of this rank: for works that are posted. */
    const SideStream &side_stream(at::Device device);
    /* What became of calls on device memory so far, as meshcoll_async_error. */
    int device_status(std::string &sentence);

    /* Operations that closing waits for. */
    void began()
    {
        running_++;
    }
    void ended()
    {
        running_--;
    }
    bool is_idle() const
    {
        return running_ == 0;
    }

    /* Between enter and leave a thread may wait in the library; false: the mesh is being closed. */
    bool enter();
    void leave()
    {
        waiters_--;
    }

    /* Keeps the memory of operations that failed, until nothing can reach it any more. */
    void park(std::vector<at::Tensor> tensors);

    void set_timeout(std::chrono::milliseconds timeout);
    std::chrono::milliseconds timeout() const
    {
        return timeout_.load();
    }

    /* Ends the group on all its ranks: what runs on it fails. */
    void abort(const std::string &why);
    /* Destroys the mesh when what runs is complete; returns at once. */
    void close();
    /* Whether it was closed within this time. */
    bool await_closed(std::chrono::milliseconds patience);
    /* Groups that end one after the other, and do nothing meanwhile, wait for the others' ranks this long together:
     * until when? */
    static Clock::time_point end_of_waiting(std::chrono::milliseconds patience);
    /* Whether all are closed at `end`. */
    static bool await_all(const std::vector<std::shared_ptr<Mesh>> &meshes, Clock::time_point end);
    /* The status of its first failure, MESHCOLL_OK if there was none. */
    int failure() const
    {
        return failure_;
    }
    void failed(int status);
    const std::string &name() const
    {
        return setup_.name;
    }
    /* Of callbacks on futures of its works. */
    const std::shared_ptr<Group> &group() const
    {
        return group_;
    }
    Hooks &hooks() const
    {
        return *setup_.hooks;
    }

    /* Throws in a forked child of its process. */
    void check_ours() const;

    /* Closes all meshes of this process, and aborts those whose other ranks do not come in time. */
    static void close_all(std::chrono::milliseconds patience);
    /* Aborts all before it closes any, and waits for no other rank. */
    static void abort_all(const std::string &why);

  private:
    enum class State { OPENING, OPEN, FAILED, CLOSED };
    struct Watched;
    using Flights = std::vector<std::shared_ptr<Watched>>;

    explicit Mesh(Setup setup);
    std::string start_thread(void (Mesh::*run)());
    void make();
    void keep();
    void finish();
    int create(meshcoll_t **mesh);
    void opened(int status, meshcoll_t *mesh);
    std::string watch_calls();
    void watch(const c10::intrusive_ptr<DeviceWork> &work);
    bool has_flights();
    void look_at_flights();
    void remove_flights(const Flights &over);
    void await_closing();
    std::string why_not() const;
    void drain();
    void destroy();
    bool is_ours() const;
    bool is_open();

    const Setup setup_;
    const std::shared_ptr<Group> group_ = std::make_shared<Group>();
    const int pid_;
    Exchange exchange_;
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<int> running_{0}, waiters_{0}, failure_{MESHCOLL_OK};
    std::atomic<bool> shut_{false};

    std::mutex mutex_; /* what follows; also held while operations begin: it makes their order */
    std::condition_variable told_;
    State state_ = State::OPENING;
    bool closing_ = false, closed_ = false;
    bool has_thread_ = true; /* that closes it, when it has made it or watches calls */
    bool watches_ = false;   /* calls on a GPU */
    meshcoll_t *mesh_ = nullptr;
    std::string why_; /* of FAILED */
    std::deque<c10::intrusive_ptr<Work>> queue_;

    std::mutex parked_mutex_; /* may be taken while mutex_ is held */
    std::vector<at::Tensor> parked_;

    std::mutex start_mutex_; /* held while calls are enqueued: it makes their order */
    std::mutex use_mutex_;   /* held by who uses the mesh, or destroys it, without mutex_ */
    std::mutex side_mutex_;
    std::optional<SideStream> side_; /* never changes once it is there */

    std::mutex flights_mutex_; /* may be taken while mutex_ is held */
    Flights flights_;
};

} // namespace meshcoll_torch

#endif
