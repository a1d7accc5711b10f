#include "backend.h"

#include "buffers.h"
#include "device.h"
#include "device_work.h"
#include "landing.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <numeric>

namespace meshcoll_torch
{

using c10d::OpType;

/* What all operations share -------------------------------------------------------------------- */

/* Without a device on that of the inputs, which are checked later. */
c10::intrusive_ptr<Work> Backend::make(OpType type, const char *title, Timeout timeout,
                                       const Tensors &inputs, std::optional<at::Device> device)
{
    const bool is_message = type == OpType::SEND || type == OpType::RECV;
    const auto mesh = lane(is_message ? 0 : Line::current()->depth()).mesh;
    const Timeout limit = timeout == c10d::kUnsetTimeout ? mesh->timeout() : timeout;
    if (!device && !inputs.empty() && inputs[0].defined())
        device = inputs[0].device();
    if (device && device->is_cuda())
        return c10::make_intrusive<DeviceWork>(mesh, type, title, sequence_++, limit, inputs,
                                               *device);
    return c10::make_intrusive<Work>(mesh, type, title, sequence_++, limit, inputs);
}

WorkPtr Backend::post(const c10::intrusive_ptr<Work> &work, Tensors result)
{
    work->set_result(std::move(result));
    if (work->device().is_cuda())
        work->mesh().post_on_device(c10::static_intrusive_pointer_cast<DeviceWork>(work));
    else
        work->mesh().post(work);
    return work;
}

std::shared_ptr<Operation> Backend::operation(Work &work, const c10d::ReduceOp &op,
                                              const at::Tensor &of) const
{
    auto made = std::make_shared<Operation>(op, of.scalar_type());
    work.keep(made);
    return made;
}

int Backend::root(int64_t rank) const
{
    TORCH_CHECK_VALUE(rank >= 0 && rank < size_, "meshcoll: there is no rank ", rank,
                      " in the group: its ranks are 0 to ", size_ - 1);
    return static_cast<int>(rank);
}

void Backend::check_list(const Tensors &list, const char *what) const
{
    TORCH_CHECK_VALUE(list.size() == static_cast<size_t>(size_), "meshcoll: ", what, " has ",
                      list.size(), " tensors, expected one for each of ", size_, " ranks");
}

static void check_type(const at::Tensor &a, const at::Tensor &b)
{
    TORCH_CHECK_VALUE(a.scalar_type() == b.scalar_type(),
                      "meshcoll: input and output have different types: ", b.scalar_type(), " and ",
                      a.scalar_type());
}

static void check_count(const at::Tensor &tensor, int64_t count, const char *what)
{
    TORCH_CHECK_VALUE(tensor.numel() == count, "meshcoll: ", what, " has ", tensor.numel(),
                      " elements, expected ", count);
}

static size_t elements(const at::Tensor &tensor)
{
    return static_cast<size_t>(tensor.numel());
}

/* None for blocks of one size, which need none. */
static std::vector<size_t> unless_equal(std::vector<size_t> counts)
{
    return are_equal(counts) ? std::vector<size_t>() : std::move(counts);
}

/* Elements before the rank's block. */
static int64_t before(const std::vector<size_t> &counts, int rank)
{
    return static_cast<int64_t>(std::accumulate(counts.begin(), counts.begin() + rank, size_t{0}));
}

static std::vector<size_t> times(std::vector<size_t> counts, size_t each)
{
    for (size_t &count : counts)
        count *= each;
    return counts;
}

/* One buffer for all
 * ---------------------------------------------------------------------------
 */

WorkPtr Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::BROADCAST, "meshcoll:broadcast", options.timeout, tensors);
    const at::Tensor &tensor = single(tensors);
    const int from = root(options.rootRank);
    const at::Tensor b = from == rank_ ? input_of(*work, tensor) : output_of(*work, tensor);
    const Elements e = elements_to_move(b.scalar_type());
    work->add(
        Call(MESHCOLL_BCAST, b.data_ptr(), b.data_ptr(), elements(b) * e.each, e.type).root(from));
    return post(work, tensors);
}

void Backend::add_allreduce(Work &work, const at::Tensor &tensor, const c10d::ReduceOp &op) const
{
    const at::Tensor b = in_place_of(work, tensor);
    const auto how = operation(work, op, b);
    work.add(Call(MESHCOLL_ALLREDUCE, b.data_ptr(), b.data_ptr(), elements(b), how->type())
                 .op(how->op()));
}

/* The first one waits for all ranks. */
WorkPtr Backend::sparse_allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    const int depth = Line::current()->depth();
    Lane &its = lane(depth);
    if (!its.gloo)
        its.gloo = makers_.gloo(setup_.store, setup_.tag, rank_, size_, depth);
    sequence_++;
    return its.gloo->allreduce(tensors, options);
}

WorkPtr Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    if (makers_.gloo && tensors.size() == 1 && tensors[0].is_sparse())
        return sparse_allreduce(tensors, options);
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::ALLREDUCE, "meshcoll:all_reduce", options.timeout, tensors);
    add_allreduce(*work, single(tensors), options.reduceOp);
    return post(work, tensors);
}

WorkPtr Backend::allreduce_coalesced(Tensors &tensors,
                                     const c10d::AllreduceCoalescedOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work =
        make(OpType::ALLREDUCE_COALESCED, "meshcoll:all_reduce", options.timeout, tensors);
    for (const at::Tensor &tensor : tensors) {
        work->next_entry();
        add_allreduce(*work, tensor, options.reduceOp);
    }
    return post(work, tensors);
}

WorkPtr Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::REDUCE, "meshcoll:reduce", options.timeout, tensors);
    const at::Tensor &tensor = single(tensors);
    const int to = root(options.rootRank);
    const at::Tensor b = to == rank_ ? in_place_of(*work, tensor) : input_of(*work, tensor);
    const auto how = operation(*work, options.reduceOp, b);
    void *const out = to == rank_ ? b.data_ptr() : nullptr;
    work->add(
        Call(MESHCOLL_REDUCE, b.data_ptr(), out, elements(b), how->type()).op(how->op()).root(to));
    return post(work, tensors);
}

/* A block of each rank ------------------------------------------------------------------------- */

void Backend::add_allgather(Work &work, const at::Tensor &output, const at::Tensor &input) const
{
    check_type(output, input);
    check_count(output, input.numel() * size_, "the output of an allgather");
    const at::Tensor out = output_of(work, output);
    const at::Tensor in = apart(work, input_of(work, input), out, input.numel() * rank_);
    const Elements e = elements_to_move(in.scalar_type());
    work.add(Call(MESHCOLL_ALLGATHER, in.const_data_ptr(), out.data_ptr(), elements(in) * e.each,
                  e.type));
}

WorkPtr Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::AllgatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work =
        make(OpType::_ALLGATHER_BASE, "meshcoll:_all_gather_base", options.timeout, {input});
    add_allgather(*work, output, input);
    return post(work, {output});
}

WorkPtr Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::AllgatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::COALESCED, "meshcoll:all_gather", options.timeout, inputs);
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "meshcoll: ", inputs.size(), " inputs, but ",
                      outputs.size(), " outputs");
    for (size_t i = 0; i < inputs.size(); i++) {
        work->next_entry();
        add_allgather(*work, outputs[i], inputs[i]);
    }
    return post(work, outputs);
}

/* Outputs may differ in size, as all ranks have the same list. */
void Backend::add_allgather(Work &work, const Tensors &outputs, const at::Tensor &input) const
{
    check_list(outputs, "the output of an allgather");
    check_type(outputs[0], input);
    check_count(input, outputs[static_cast<size_t>(rank_)].numel(), "the input of an allgather");
    const auto counts = counts_of(outputs);
    const at::Tensor out = outputs_of(work, outputs);
    const at::Tensor in = apart(work, input_of(work, input), out, before(counts, rank_));
    const Elements e = elements_to_move(in.scalar_type());
    work.add(
        Call(MESHCOLL_ALLGATHER, in.const_data_ptr(), out.data_ptr(), elements(in) * e.each, e.type)
            .blocks(unless_equal(times(counts, e.each))));
}

WorkPtr Backend::allgather(TensorLists &outputs, Tensors &inputs,
                           const c10d::AllgatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::ALLGATHER, "meshcoll:all_gather", options.timeout, inputs);
    const at::Tensor &input = single(inputs);
    TORCH_CHECK_VALUE(outputs.size() == 1, "meshcoll: expected one list of outputs, got ",
                      outputs.size());
    add_allgather(*work, outputs[0], input);
    return post(work, outputs[0]);
}

/* outputs[rank][i] is for the rank's inputs[i]. */
WorkPtr Backend::allgather_coalesced(TensorLists &outputs, Tensors &inputs,
                                     const c10d::AllgatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work =
        make(OpType::ALLGATHER_COALESCED, "meshcoll:all_gather", options.timeout, inputs);
    Tensors result;
    TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_), "meshcoll: ", outputs.size(),
                      " lists of outputs, expected one for each of ", size_, " ranks");
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors of_ranks;
        for (const Tensors &list : outputs) {
            TORCH_CHECK_VALUE(list.size() == inputs.size(), "meshcoll: a list of ", list.size(),
                              " outputs for ", inputs.size(), " inputs");
            of_ranks.push_back(list[i]);
        }
        work->next_entry();
        add_allgather(*work, of_ranks, inputs[i]);
    }
    for (const Tensors &list : outputs)
        result.insert(result.end(), list.begin(), list.end());
    return post(work, std::move(result));
}

static void check_blocks(const Tensors &list, const at::Tensor &block)
{
    for (const at::Tensor &t : list) {
        check_type(t, block);
        check_count(t, block.numel(), "a tensor of the list of gather or scatter");
    }
}

/* `out` is undefined except on the root, `to`. */
void Backend::add_gather(Work &work, const at::Tensor &out, const at::Tensor &input, int to) const
{
    const at::Tensor in = out.defined() ? apart(work, input, out, input.numel() * rank_) : input;
    const Elements e = elements_to_move(in.scalar_type());
    work.add(Call(MESHCOLL_GATHER, in.const_data_ptr(), out.defined() ? out.data_ptr() : nullptr,
                  elements(in) * e.each, e.type)
                 .root(to));
}

WorkPtr Backend::gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::GATHER, "meshcoll:gather", options.timeout, inputs);
    const at::Tensor in = input_of(*work, single(inputs));
    const int to = root(options.rootRank);
    at::Tensor out;
    Tensors result;
    TORCH_CHECK_VALUE(outputs.size() == (to == rank_ ? 1 : 0),
                      "meshcoll: gather takes a list of outputs on the root, and "
                      "none elsewhere");
    if (to == rank_) {
        result = outputs[0];
        check_list(result, "the output of a gather");
        check_blocks(result, in);
        out = outputs_of(*work, result);
    }
    add_gather(*work, out, in, to);
    return post(work, std::move(result));
}

WorkPtr Backend::gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                    const c10d::GatherOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::GATHER, "meshcoll:gather", options.timeout, {input});
    const at::Tensor in = input_of(*work, input);
    const int to = root(options.rootRank);
    if (to != rank_) {
        add_gather(*work, {}, in, to);
        return post(work, {});
    }
    check_type(output, in);
    check_count(output, in.numel() * size_, "the output of a gather");
    add_gather(*work, output_of(*work, output), in, to);
    return post(work, {output});
}

WorkPtr Backend::scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const int from = root(options.rootRank);
    const bool sends = from == rank_;
    TORCH_CHECK_VALUE(inputs.size() == (sends ? 1 : 0),
                      "meshcoll: scatter takes a list of inputs on the root, and "
                      "none elsewhere");
    const auto work = make(OpType::SCATTER, "meshcoll:scatter", options.timeout,
                           sends ? inputs[0] : Tensors(), single(outputs).device());
    const at::Tensor out = output_of(*work, outputs[0]);
    const void *in = nullptr;
    if (sends) {
        check_list(inputs[0], "the input of a scatter");
        check_blocks(inputs[0], out);
        const at::Tensor all = inputs_of(*work, inputs[0]);
        in = apart(*work, all, out, -out.numel() * rank_).const_data_ptr();
    }
    const Elements e = elements_to_move(out.scalar_type());
    work->add(
        Call(MESHCOLL_SCATTER, in, out.data_ptr(), elements(out) * e.each, e.type).root(from));
    return post(work, outputs);
}

/* Sums by block
 * --------------------------------------------------------------------------------
 */

void Backend::add_reduce_scatter(Work &work, const at::Tensor &output, const at::Tensor &input,
                                 const c10d::ReduceOp &op) const
{
    check_type(output, input);
    check_count(input, output.numel() * size_, "the input of a reduce-scatter");
    const at::Tensor out = output_of(work, output);
    const at::Tensor in = apart(work, input_of(work, input), out, -out.numel() * rank_);
    const auto how = operation(work, op, in);
    work.add(Call(MESHCOLL_REDUCE_SCATTER, in.const_data_ptr(), out.data_ptr(), elements(out),
                  how->type())
                 .op(how->op()));
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::ReduceScatterOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::_REDUCE_SCATTER_BASE, "meshcoll:_reduce_scatter_base",
                           options.timeout, {input});
    add_reduce_scatter(*work, output, input, options.reduceOp);
    return post(work, {output});
}

WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::ReduceScatterOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::COALESCED, "meshcoll:reduce_scatter", options.timeout, inputs);
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "meshcoll: ", inputs.size(), " inputs, but ",
                      outputs.size(), " outputs");
    for (size_t i = 0; i < inputs.size(); i++) {
        work->next_entry();
        add_reduce_scatter(*work, outputs[i], inputs[i], options.reduceOp);
    }
    return post(work, outputs);
}

/* Inputs may differ in size, as all ranks have the same list. */
WorkPtr Backend::reduce_scatter(Tensors &outputs, TensorLists &inputs,
                                const c10d::ReduceScatterOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    TORCH_CHECK_VALUE(inputs.size() == 1, "meshcoll: expected one list of inputs, got ",
                      inputs.size());
    check_list(inputs[0], "the input of a reduce-scatter");
    const auto work =
        make(OpType::REDUCE_SCATTER, "meshcoll:reduce_scatter", options.timeout, inputs[0]);
    const at::Tensor &output = single(outputs);
    check_type(output, inputs[0][0]);
    check_count(output, inputs[0][static_cast<size_t>(rank_)].numel(),
                "the output of a reduce-scatter");
    const auto counts = counts_of(inputs[0]);
    const at::Tensor out = output_of(*work, output);
    const at::Tensor in = apart(*work, inputs_of(*work, inputs[0]), out, -before(counts, rank_));
    const auto how = operation(*work, options.reduceOp, in);
    work->add(Call(MESHCOLL_REDUCE_SCATTER, in.const_data_ptr(), out.data_ptr(), elements(out),
                   how->type())
                  .op(how->op())
                  .blocks(unless_equal(counts)));
    return post(work, outputs);
}

/* From all to all
 * ------------------------------------------------------------------------------
 */

/* A rank knows its own counts only. */
void Backend::add_exchange(Work &work, const at::Tensor &out, std::vector<size_t> out_counts,
                           const at::Tensor &input, std::vector<size_t> in_counts) const
{
    const auto own = static_cast<size_t>(rank_);
    check_type(out, input);
    TORCH_CHECK_VALUE(in_counts[own] == out_counts[own], "meshcoll: rank ", rank_, " sends itself ",
                      in_counts[own], " elements in an alltoall, and expects ", out_counts[own]);
    const at::Tensor in =
        apart(work, input, out, in_counts == out_counts ? std::optional<int64_t>(0) : std::nullopt);
    const Elements e = elements_to_move(in.scalar_type());
    work.add(
        Call(MESHCOLL_ALLTOALL, in.const_data_ptr(), out.data_ptr(), 0, e.type)
            .blocks(times(std::move(out_counts), e.each), times(std::move(in_counts), e.each)));
}

/* Splits are in rows; without any the rows are divided evenly. */
std::vector<size_t> Backend::split_counts(const at::Tensor &tensor,
                                          const std::vector<int64_t> &splits,
                                          const char *what) const
{
    const int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
    const auto n = static_cast<size_t>(size_);
    if (splits.empty()) {
        TORCH_CHECK_VALUE(rows % size_ == 0, "meshcoll: the ", what, " of an alltoall has ", rows,
                          " rows, which ", size_, " ranks cannot share evenly: give split sizes");
        return std::vector<size_t>(n, elements(tensor) / n);
    }
    const size_t row = rows > 0 ? elements(tensor) / static_cast<size_t>(rows) : 0;
    std::vector<size_t> counts;
    int64_t total = 0;
    for (const int64_t split : splits) {
        TORCH_CHECK_VALUE(split >= 0, "meshcoll: a split size of an alltoall is ", split);
        counts.push_back(static_cast<size_t>(split) * row);
        total += split;
    }
    TORCH_CHECK_VALUE(splits.size() == n && total == rows, "meshcoll: the ", what,
                      " of an alltoall has ", rows, " rows and ", size_, " ranks, but ",
                      splits.size(), " split sizes with a sum of ", total);
    return counts;
}

WorkPtr Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                               std::vector<int64_t> &output_splits,
                               std::vector<int64_t> &input_splits,
                               const c10d::AllToAllOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::ALLTOALL_BASE, "meshcoll:all_to_all", options.timeout, {input});
    const at::Tensor out = output_of(*work, output);
    at::Tensor in = input_of(*work, input);
    auto ins = split_counts(in, input_splits, "input");
    auto outs = split_counts(out, output_splits, "output");
    if (!input_splits.empty() || !output_splits.empty()) {
        add_exchange(*work, out, std::move(outs), in, std::move(ins));
        return post(work, {output});
    }
    check_type(out, in);
    check_count(out, in.numel(), "the output of an alltoall");
    in = apart(*work, in, out, 0);
    const Elements e = elements_to_move(in.scalar_type());
    work->add(
        Call(MESHCOLL_ALLTOALL, in.const_data_ptr(), out.data_ptr(), ins[0] * e.each, e.type));
    return post(work, {output});
}

WorkPtr Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::ALLTOALL, "meshcoll:all_to_all", options.timeout, inputs);
    check_list(inputs, "the input of an alltoall");
    check_list(outputs, "the output of an alltoall");
    const at::Tensor in = inputs_of(*work, inputs), out = outputs_of(*work, outputs);
    add_exchange(*work, out, counts_of(outputs), in, counts_of(inputs));
    return post(work, outputs);
}

/* No data
 * --------------------------------------------------------------------------------------
 */

/* On a GPU where torch names one. It tells backends the ids of the call and of the group, and
 * nothing of the device that it has chosen itself. Programs name ids on machines without a GPU, too. */
at::Device Backend::device_of(const c10d::BarrierOptions &options) const
{
    if (!has_device(at::kCUDA))
        return at::kCPU;
    if (!options.device_ids.empty())
        return {at::kCUDA, static_cast<c10::DeviceIndex>(options.device_ids[0])};
    const auto bound = getBoundDeviceId();
    return bound && bound->is_cuda() && bound->has_index() ? *bound : at::Device(at::kCPU);
}

WorkPtr Backend::barrier(const c10d::BarrierOptions &options)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    const at::Device device = device_of(options);
    const auto work = make(OpType::BARRIER, "meshcoll:barrier", options.timeout, {}, device);
    if (device.is_cuda()) {
        const at::Tensor token =
            at::empty({1}, at::TensorOptions().device(device).dtype(at::kByte));
        add_allreduce(*work, token, c10d::ReduceOp::MAX);
        return post(work, {});
    }
    work->add([](meshcoll_t *mesh, meshcoll_request_t **request) {
        return meshcoll_ibarrier(mesh, request);
    });
    return post(work, {});
}

void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks)
{
    const Timeout limit = options.timeout == c10d::kUnsetTimeout ? timeout() : options.timeout;
    main(); /* throws where there is none */
    monitored_->pass(limit, wait_all_ranks);
}

/* Two ranks
 * ------------------------------------------------------------------------------------
 */

static void check_tag(int tag)
{
    TORCH_CHECK_VALUE(tag >= 0, "meshcoll: expected a tag from 0 on, got ", tag);
}

WorkPtr Backend::send(Tensors &tensors, int rank, int tag)
{
    check_tag(tag);
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto work = make(OpType::SEND, "meshcoll:send", c10d::kUnsetTimeout, tensors, at::kCPU);
    const at::Tensor b = input_of(*work, on_host(single(tensors)));
    const Elements e = elements_to_move(b.scalar_type());
    work->add([p = b.const_data_ptr(), n = elements(b) * e.each, type = e.type, to = root(rank),
               tag](meshcoll_t *mesh, meshcoll_request_t **request) {
        return meshcoll_send_begin(mesh, p, n, type, to, tag, request);
    });
    return post(work, tensors);
}

WorkPtr Backend::receive(OpType type, const char *title, Tensors &tensors, int rank, int tag)
{
    const at::AutoDispatchBelowADInplaceOrView guard;
    check_tag(tag);
    c10::intrusive_ptr<Work> work;
    at::Tensor b = single(tensors);
    if (b.is_cuda()) {
        auto landing =
            c10::make_intrusive<Landing>(main(), type, title, sequence_++, timeout(), tensors);
        b = landing->place();
        work = std::move(landing);
    } else {
        work = make(type, title, c10d::kUnsetTimeout, tensors);
    }
    b = output_of(*work, b);
    const Elements e = elements_to_move(b.scalar_type());
    meshcoll_received_t *const received = work->receives(b.nbytes());
    work->add([p = b.data_ptr(), n = elements(b) * e.each, kind = e.type, rank, tag,
               received](meshcoll_t *mesh, meshcoll_request_t **request) {
        return meshcoll_recv_begin(mesh, p, n, kind, rank, tag, received, request);
    });
    return post(work, tensors);
}

WorkPtr Backend::recv(Tensors &tensors, int rank, int tag)
{
    return receive(OpType::RECV, "meshcoll:recv", tensors, root(rank), tag);
}

WorkPtr Backend::recvAnysource(Tensors &tensors, int tag)
{
    return receive(OpType::RECVANYSOURCE, "meshcoll:recvAnySource", tensors, MESHCOLL_ANY_SOURCE,
                   tag);
}

} // namespace meshcoll_torch
