/* torch.distributed's backend "meshcoll": one object for each process group. */
#ifndef MESHCOLL_TORCH_BACKEND_H
#define MESHCOLL_TORCH_BACKEND_H

#include "monitored.h"
#include "work.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/version.h>

#include <map>

namespace meshcoll_torch
{

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<std::vector<at::Tensor>>;
using Timeout = std::chrono::milliseconds;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using MakeGloo = std::function<c10::intrusive_ptr<c10d::Backend>(
    c10::intrusive_ptr<c10d::Store> store, uint64_t tag, int rank, int size, int depth)>;
using MakePart = std::function<c10::intrusive_ptr<c10d::Backend>(
    c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::vector<int> ranks,
    double timeout)>;

/* Other groups that one needs. */
struct Makers {
    MakeGloo gloo; /* of the same ranks, called by all of them, for the calls of
                    lines of one depth; may be empty */
    MakePart part; /* of some ranks of the group, or of ranks that it does not
                    know: none */
};

class Backend : public c10d::Backend
{
  public:
    /* begins: else it has no ranks to work with until reconfigure */
    Backend(Setup setup, Makers makers, bool begins);
    ~Backend() override;

    const std::string getBackendName() const override
    {
        return "meshcoll";
    }

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    WorkPtr allreduce_coalesced(Tensors &tensors,
                                const c10d::AllreduceCoalescedOptions &options) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
    WorkPtr allgather(TensorLists &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &options) override;
    WorkPtr allgather_coalesced(TensorLists &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &options) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &options) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &options) override;
    WorkPtr gather(TensorLists &outputs, Tensors &inputs,
                   const c10d::GatherOptions &options) override;
    /* Not of every torch's interface, hence without override. */
    WorkPtr gather_into_tensor(at::Tensor &output, at::Tensor &input,
                               const c10d::GatherOptions &options);
    WorkPtr scatter(Tensors &outputs, TensorLists &inputs,
                    const c10d::ScatterOptions &options) override;
    WorkPtr reduce_scatter(Tensors &outputs, TensorLists &inputs,
                           const c10d::ReduceScatterOptions &options) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &options) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &options) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_splits, std::vector<int64_t> &input_splits,
                          const c10d::AllToAllOptions &options) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &options) override;
    WorkPtr barrier(const c10d::BarrierOptions &options) override;
    void monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks) override;
    WorkPtr send(Tensors &tensors, int rank, int tag) override;
    WorkPtr recv(Tensors &tensors, int rank, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;

    void setSequenceNumberForGroup() override
    {
        /* begins at 0 on all ranks */
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }

    bool supportsSplitting() const override
    {
        return true;
    }
    /* Not of every torch's interface, hence without override. */
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &store,
                                            const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<Options> &options);
    c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store> &store,
                                            const c10::intrusive_ptr<Options> &options,
                                            const int &rank, const int &size);

#ifdef C10D_BACKEND_HAS_RECONFIGURE
    bool supportsReconfigure() const override
    {
        return true;
    }
    bool isInitialized() override
    {
        return !meshes().empty();
    }
    std::string get_reconfigure_handle() const override
    {
        return handle_;
    }
    WorkPtr reconfigure(const c10d::ReconfigureOptions &options) override;
#endif

#ifdef C10D_BACKEND_HAS_HOOKS
    bool supportsCompletionHooks() const override
    {
        return true;
    }
    void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override;
    void unregisterCompletionHook(int64_t id) override;
#endif

    void shutdown() override;
    void abort() override;
    void setTimeout(Timeout timeout) override;
    c10d::ErrorType getError() override;
    c10::intrusive_ptr<Options> getBackendOptions() override;

  protected:
    /* The mesh is destroyed when what runs is complete; waits for nothing. */
    void close();

  private:
    c10::intrusive_ptr<Work> make(c10d::OpType type, const char *title, Timeout timeout,
                                  const Tensors &inputs,
                                  std::optional<at::Device> device = std::nullopt);
    WorkPtr post(const c10::intrusive_ptr<Work> &work, Tensors result);
    std::shared_ptr<Operation> operation(Work &work, const c10d::ReduceOp &op,
                                         const at::Tensor &of) const;
    at::Device device_of(const c10d::BarrierOptions &options) const;
    int root(int64_t rank) const;
    void check_list(const Tensors &list, const char *what) const;

    void add_allreduce(Work &work, const at::Tensor &tensor, const c10d::ReduceOp &op) const;
    void add_allgather(Work &work, const at::Tensor &output, const at::Tensor &input) const;
    void add_allgather(Work &work, const Tensors &outputs, const at::Tensor &input) const;
    void add_gather(Work &work, const at::Tensor &out, const at::Tensor &input, int to) const;
    void add_reduce_scatter(Work &work, const at::Tensor &output, const at::Tensor &input,
                            const c10d::ReduceOp &op) const;
    void add_exchange(Work &work, const at::Tensor &out, std::vector<size_t> out_counts,
                      const at::Tensor &input, std::vector<size_t> in_counts) const;
    std::vector<size_t> split_counts(const at::Tensor &tensor, const std::vector<int64_t> &splits,
                                     const char *what) const;
    WorkPtr receive(c10d::OpType type, const char *title, Tensors &tensors, int rank, int tag);

    WorkPtr sparse_allreduce(Tensors &tensors, const c10d::AllreduceOptions &options);

    /* Collectives that a line begins, by its depth (Line), have an order of their own. */
    struct Lane {
        std::shared_ptr<Mesh> mesh;
        c10::intrusive_ptr<c10d::Backend> gloo; /* once there were sparse tensors */
    };
    void open(Setup setup);
    void leave();
    Lane &lane(int depth);
    /* Of the program's threads, and for messages. */
    std::shared_ptr<Mesh> main();
    int failure() const;
    Timeout timeout() const;
    double timeout_of(const c10::intrusive_ptr<Options> &options) const;
    std::vector<std::shared_ptr<Mesh>> meshes() const;

    const Makers makers_;
    std::atomic<uint64_t> sequence_{0};
    mutable std::mutex lanes_mutex_;
    Setup setup_; /* that the group was made with */
    std::unique_ptr<MonitoredBarrier> monitored_;
    std::map<int, Lane> lanes_;
    bool closing_ = false; /* no further lane is made */
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    static std::string new_handle();
    const std::string handle_ = new_handle();
#endif
};

} // namespace meshcoll_torch

#endif
