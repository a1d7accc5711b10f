/* One operation of torch: one or several requests of the library. */
#ifndef MESHCOLL_TORCH_WORK_H
#define MESHCOLL_TORCH_WORK_H

#include "call.h"
#include "mesh.h"
#include "regions.h"
#include "types.h"

#include <torch/csrc/distributed/c10d/Backend.hpp> /* which interfaces this torch has */
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>

namespace meshcoll_torch
{

/*
 * On memory of the host, unless it is one of the classes below this one.
 *
 * Who calls the backend fills it in and posts it to the mesh; from then on its requests' callbacks
 * complete it, in whichever thread moves messages. A thread that waits for it waits in the library,
 * one for each request, and moves messages too.
 */
class Work : public c10d::Work
{
  public:
    using Begin = std::function<int(meshcoll_t *mesh, meshcoll_request_t **request)>;

    Work(std::shared_ptr<Mesh> mesh, c10d::OpType type, const char *title, uint64_t sequence,
         std::chrono::milliseconds timeout, const std::vector<at::Tensor> &inputs,
         at::Device device = at::kCPU);

    /* Before it is posted. */

    /* Where its tensors have to be. */
    at::Device device() const
    {
        return device_;
    }
    /* Its request begins like this. */
    void add(Begin begin);
    virtual void add(Call call);
    /* Is done when all requests are complete, before anybody learns of it. */
    void then(std::function<void()> step);
    /* Tensors whose memory the requests use. */
    void keep(const at::Tensor &tensor);
    void keep(std::shared_ptr<Operation> operation);
    void set_result(std::vector<at::Tensor> outputs);
    /* What is added from now on belongs to the next entry of a list. */
    void next_entry();
    /* NULL of a call without a list. */
    Entries *entries()
    {
        return entries_.get();
    }
    /* It receives one message, of exactly this many bytes. */
    meshcoll_received_t *receives(size_t bytes);

    /* By the mesh. */

    /* With the mesh's lock held. */
    virtual void start(meshcoll_t *mesh);
    virtual void refuse(const std::string &why);
    bool is_awaited_at_close() const
    {
        return !receives_;
    }
    bool is_collective() const;
    Mesh &mesh() const
    {
        return *mesh_;
    }

    /* By torch. */

    /* A loop of it gives its core to the thread that moves messages, or to another rank. */
    bool isCompleted() override;
    bool wait(std::chrono::milliseconds timeout) override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    std::vector<at::Tensor> result() override;
    int sourceRank() const override;
    uint64_t getSequencenumber() const override
    {
        return sequence_;
    }
    void synchronize() override
    {
    }
#ifdef C10D_BACKEND_HAS_HOOKS
    uint64_t getCompletionKey() const override
    {
        return key_;
    }
#endif

  protected:
    /* Tells who wants to hear of it that it has ended well. */
    void tell_hooks(std::chrono::steady_clock::time_point began);
    std::exception_ptr error(int status, const std::string &sentence) const;
    /* Of a future: where its values may be, and how it gets them, once. */
    virtual std::vector<c10::Device> devices_of_future() const
    {
        return {};
    }
    virtual bool gives_future_at_once() const /* with the lock held */
    {
        return completed_;
    }
    virtual void complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future);

    const std::shared_ptr<Mesh> mesh_;
    const char *const title_;
    const std::chrono::milliseconds timeout_;
    std::vector<at::Tensor> outputs_, kept_;
    std::vector<std::function<void()>> steps_; /* then, in this order */
    std::shared_ptr<Operation> operation_;

  private:
    enum class State { QUEUED, RUNNING, CLAIMED, DONE };

    struct Part {
        Begin begin;
        State state = State::QUEUED;
        meshcoll_request_t *request = nullptr; /* of RUNNING and CLAIMED */
        c10::intrusive_ptr<Work> work;         /* until its callback */
    };

    static void called(void *context, meshcoll_request_t *request, int status);
    void begin(Part &part, meshcoll_t *mesh);
    void part_ended(std::exception_ptr error);
    void complete();
    void finish_result();
    void tell(std::exception_ptr error);
    void complete_aside(const c10::intrusive_ptr<c10::ivalue::Future> &future);
    void wait_for(Part &part, std::unique_lock<std::mutex> &lock, double seconds);

    const uint64_t sequence_, key_;
    const at::Device device_;
    std::unique_ptr<Entries> entries_; /* until it is posted */
    std::deque<Part> parts_;           /* none is added after it was posted */
    bool receives_ = false, counted_ = false;
    size_t expected_ = 0; /* bytes */
    meshcoll_received_t received_ = {};
    std::atomic<size_t> left_{0};

    /* with the base's mutex_ */
    std::chrono::steady_clock::time_point began_;
    std::exception_ptr first_error_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace meshcoll_torch

#endif
