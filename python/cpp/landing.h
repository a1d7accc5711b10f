/* A message for a tensor on a GPU. */
#ifndef MESHCOLL_TORCH_LANDING_H
#define MESHCOLL_TORCH_LANDING_H

#include "work.h"

#include <c10/core/Event.h>

namespace meshcoll_torch
{

/*
 * It arrives in memory of the host. Who waits for it first copies it to the tensor, in the current
 * stream, behind what the stream did when the receive was posted; a future does so in a stream of its
 * own. Threads that move messages do not, as a copy may wait for a GPU.
 */
class Landing final : public Work
{
  public:
    Landing(std::shared_ptr<Mesh> mesh, c10d::OpType type, const char *title, uint64_t sequence,
            std::chrono::milliseconds timeout, const std::vector<at::Tensor> &tensors);

    /* Where it arrives. */
    const at::Tensor &place() const
    {
        return place_;
    }

    bool wait(std::chrono::milliseconds timeout) override;

  protected:
    std::vector<c10::Device> devices_of_future() const override
    {
        return {to_.device()};
    }
    void complete_future(const c10::intrusive_ptr<c10::ivalue::Future> &future) override;

  private:
    void land();

    const at::Tensor to_, place_;
    c10::Event posted_{at::kCUDA};
    std::mutex landing_; /* what follows */
    bool landed_ = false;
    c10::Event copied_{at::kCUDA};
};

} // namespace meshcoll_torch

#endif
