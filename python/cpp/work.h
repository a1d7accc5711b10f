/* One operation of torch: one or several requests of the library. */
#ifndef MESHCOLL_TORCH_WORK_H
#define MESHCOLL_TORCH_WORK_H

#include "mesh.h"
#include "types.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>

namespace meshcoll_torch
{

/*
 * Who calls the backend fills it in and posts it to the mesh; from then on its requests' callbacks
 * complete it, in whichever thread moves messages. A thread that waits for it waits in the library,
 * one for each request, and moves messages too.
 */
class Work : public c10d::Work
{
  public:
    using Begin = std::function<int(meshcoll_t *mesh, meshcoll_request_t **request)>;

    Work(std::shared_ptr<Mesh> mesh, c10d::OpType type, const char *title, uint64_t sequence,
         std::chrono::milliseconds timeout, const std::vector<at::Tensor> &inputs);

    /* Before it is posted. */

    /* Its request begins like this. */
    void add(Begin begin);
    /* Is done when all requests are complete, before anybody learns of it. */
    void then(std::function<void()> step);
    /* Tensors whose memory the requests use. */
    void keep(const at::Tensor &tensor);
    void keep(std::shared_ptr<Operation> operation);
    void set_result(std::vector<at::Tensor> outputs);
    /* It receives one message, of exactly this many bytes. */
    meshcoll_received_t *receives(size_t bytes);

    /* By the mesh. */

    /* With the mesh's lock held. */
    void start(meshcoll_t *mesh);
    void refuse(const std::string &why);
    bool is_awaited_at_close() const
    {
        return !receives_;
    }

    /* By torch. */

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
    std::exception_ptr error(int status, const std::string &sentence) const;
    void wait_for(Part &part, std::unique_lock<std::mutex> &lock, double seconds);
    void complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future) const;

    const std::shared_ptr<Mesh> mesh_;
    const char *const title_;
    const uint64_t sequence_;
    const std::chrono::milliseconds timeout_;
    std::deque<Part> parts_; /* none is added after it was posted */
    std::vector<at::Tensor> outputs_, kept_;
    std::vector<std::function<void()>> steps_;
    std::shared_ptr<Operation> operation_;
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
