/* An operation of torch on tensors of a GPU: calls in a stream of the backend's. */
#ifndef MESHCOLL_TORCH_DEVICE_WORK_H
#define MESHCOLL_TORCH_DEVICE_WORK_H

#include "work.h"

#include <c10/core/Event.h>

namespace meshcoll_torch
{

/* What the calls of a work use on the GPU, kept until they have ended or nobody can overwrite it before. */
class Flight
{
  public:
    explicit Flight(at::Device device) : device_(device)
    {
    }

    const c10::Event &end() const
    {
        return end_;
    }
    void took_off(const c10::Stream &stream)
    {
        end_.record(stream);
    }
    /* Has the GPU come to its end? Also where the driver has failed. */
    bool is_over() const;

    void keep(std::vector<at::Tensor> tensors, std::vector<std::function<void()>> steps,
              std::shared_ptr<Operation> operation);
    void release();

  private:
    const at::Device device_;
    c10::Event end_{at::kCUDA};
    std::mutex mutex_;
    std::vector<at::Tensor> tensors_;
    std::vector<std::function<void()>> steps_; /* with the tensors that they have copied to */
    std::shared_ptr<Operation> operation_;
};

/*
 * As ProcessGroupNCCL's: what is posted begins when the current stream is here, wait() has the current
 * stream wait and not the host, and futures are complete when they are made, with an event that
 * who takes the value waits for. The host waits where it gives a time limit, and in a barrier. A failure
 * is found by the mesh's watch, and told by the next wait() or call.
 */
class DeviceWork final : public Work
{
  public:
    using Work::add;
    using Work::Work;
    void add(Call call) override
    {
        calls_.push_back(std::move(call));
    }

    /* By the mesh, one at a time; throws nothing. */
    void start(meshcoll_t *mesh) override;
    void refuse(const std::string &why) override;
    /* Of a work that was started; NULL where nothing was enqueued. */
    const std::shared_ptr<Flight> &flight() const
    {
        return flight_;
    }
    bool is_captured() const
    {
        return captured_;
    }
    /* By the watch, when the mesh has failed or the flight is over. */
    void landed(int status, const std::string &sentence);
    /* Is it over its own time limit? That of the mesh is the library's business. */
    bool is_late() const;
    std::string lateness() const;

    bool isCompleted() override;
    bool wait(std::chrono::milliseconds timeout) override;
    std::vector<at::Tensor> result() override
    {
        return outputs_;
    }
    void synchronize() override
    {
        wait(kNoTimeout);
    }
    /* Of a work that only the watch still knows of, weakly. */
    void release_resources() override
    {
        outputs_.clear();
        flight_.reset();
    }

  protected:
    std::vector<c10::Device> devices_of_future() const override
    {
        return {device()};
    }
    bool gives_future_at_once() const override
    {
        return true;
    }
    void complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future) override;

  private:
    void settle(std::exception_ptr error);
    std::exception_ptr failure();
    std::exception_ptr enqueue(meshcoll_t *mesh);
    std::exception_ptr run(meshcoll_t *mesh);
    void wait_on_host(std::chrono::milliseconds timeout);

    std::vector<Call> calls_;
    std::optional<c10::Stream> posted_in_;
    std::shared_ptr<Flight> flight_;
    bool captured_ = false; /* into a graph: its events cannot be asked for */
    std::chrono::steady_clock::time_point began_;
};

} // namespace meshcoll_torch

#endif
