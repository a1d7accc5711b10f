#include "buffers.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>

namespace meshcoll_torch
{

using Tensors = std::vector<at::Tensor>;

void check_tensor(const at::Tensor &tensor)
{
    TORCH_CHECK_VALUE(tensor.defined(), "meshcoll: a tensor is undefined");
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "meshcoll takes dense tensors only; got a ",
                      tensor.layout(), " one: use Gloo for sparse gradients, or make them dense");
    TORCH_CHECK_VALUE(tensor.device().is_cpu() || tensor.device().is_cuda(),
                      "meshcoll takes tensors on the CPU and on CUDA devices; got one on ",
                      tensor.device());
    const size_t bytes =
        at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                         static_cast<size_t>(tensor.storage_offset()));
    TORCH_CHECK_VALUE(tensor.numel() == 0 || tensor.storage().nbytes() >= bytes,
                      "meshcoll: a tensor needs ", bytes, " bytes of its storage, which has ",
                      tensor.storage().nbytes(), ": its memory was given back");
}

const at::Tensor &single(const Tensors &tensors)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "meshcoll takes one tensor of each rank; got ",
                      tensors.size());
    check_tensor(tensors[0]);
    return tensors[0];
}

static void check_tensor_of(const Work &work, const at::Tensor &tensor)
{
    check_tensor(tensor);
    TORCH_CHECK_VALUE(tensor.device() == work.device(), "meshcoll: the tensors of a call are on ",
                      work.device(), " and ", tensor.device(), ": expected one device");
}

/* Of what the result is copied to. */
static void check_output(const Work &work, const at::Tensor &tensor)
{
    check_tensor_of(work, tensor);
    TORCH_CHECK_VALUE(at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
                      "meshcoll: elements of an output lie in one place, as those of an expanded "
                      "tensor do: clone() it before");
}

at::Tensor host_place_of(const at::Tensor &tensor)
{
    const at::TensorOptions options = tensor.options().device(at::kCPU);
    try {
        return at::empty(tensor.sizes(), options.pinned_memory(true));
    } catch (const c10::Error &) {
        return at::empty(tensor.sizes(), options); /* copies take longer */
    }
}

at::Tensor on_host(const at::Tensor &tensor)
{
    if (tensor.device().is_cpu())
        return tensor;
    const at::Tensor copy = host_place_of(tensor);
    copy.copy_(tensor.detach());
    return copy;
}

/* Its memory holds its elements in their order, as they are. */
static bool is_direct(const at::Tensor &t)
{
    return t.is_contiguous() && !t.is_conj() && !t.is_neg();
}

/* Are its values those before the call until it is read, though other entries of the list are written? */
static bool can_be_read(Work &work, const at::Tensor &t)
{
    return is_direct(t) && (!work.entries() || work.entries()->may_read(t));
}

static bool can_be_written(Work &work, const at::Tensor &t)
{
    return is_direct(t) && (!work.entries() || work.entries()->may_write(t));
}

static at::Tensor copy_of(const at::Tensor &t)
{
    return t.detach().clone(at::MemoryFormat::Contiguous).resolve_conj().resolve_neg();
}

static void will_be_read(Work &work, const at::Tensor &t)
{
    if (work.entries())
        work.entries()->reads(t);
}

static void will_be_written(Work &work, const at::Tensor &t)
{
    if (work.entries())
        work.entries()->writes(t);
}

at::Tensor input_of(Work &work, const at::Tensor &tensor)
{
    check_tensor_of(work, tensor);
    const at::Tensor b = can_be_read(work, tensor) ? tensor : copy_of(tensor);
    will_be_read(work, b);
    work.keep(b);
    return b;
}

/* What the tensor gets at the end, if it is not the tensor itself. */
static at::Tensor to_be_output(Work &work, const at::Tensor &tensor, const at::Tensor &b)
{
    will_be_written(work, tensor);
    work.keep(b);
    if (!b.is_same(tensor))
        work.then([tensor, b] { tensor.copy_(b); });
    return b;
}

at::Tensor in_place_of(Work &work, const at::Tensor &tensor)
{
    check_output(work, tensor);
    return to_be_output(work, tensor, can_be_written(work, tensor) ? tensor : copy_of(tensor));
}

at::Tensor output_of(Work &work, const at::Tensor &tensor)
{
    check_output(work, tensor);
    const bool is_free = can_be_written(work, tensor);
    return to_be_output(work, tensor,
                        is_free ? tensor : at::empty(tensor.sizes(), tensor.options()));
}

static bool overlap(const at::Tensor &a, const at::Tensor &b)
{
    const auto *const at_a = static_cast<const char *>(a.const_data_ptr());
    const auto *const at_b = static_cast<const char *>(b.const_data_ptr());
    return at_a < at_b + b.nbytes() && at_b < at_a + a.nbytes();
}

at::Tensor apart(Work &work, const at::Tensor &in, const at::Tensor &out,
                 std::optional<int64_t> offset)
{
    if (!overlap(in, out))
        return in;
    const auto *const start = static_cast<const char *>(out.const_data_ptr());
    const auto each = static_cast<int64_t>(out.itemsize());
    if (offset && in.const_data_ptr() == start + *offset * each)
        return in;
    const at::Tensor copy = in.detach().clone();
    work.keep(copy);
    return copy;
}

/* Do they lie back to back in memory, as the parts of one tensor do? */
static bool are_adjacent(const Tensors &tensors)
{
    const char *next = nullptr;
    for (const at::Tensor &t : tensors) {
        const char *const at = static_cast<const char *>(t.const_data_ptr());
        if (!is_direct(t) || !t.is_alias_of(tensors[0]) || (next && at != next))
            return false;
        next = at + t.nbytes();
    }
    return true;
}

static int64_t check_alike(const Work &work, const Tensors &tensors)
{
    int64_t total = 0;
    TORCH_CHECK_VALUE(!tensors.empty(), "meshcoll: a list of tensors is empty");
    for (const at::Tensor &t : tensors) {
        check_tensor_of(work, t);
        TORCH_CHECK_VALUE(t.scalar_type() == tensors[0].scalar_type(),
                          "meshcoll: the tensors of a list have different types: ",
                          tensors[0].scalar_type(), " and ", t.scalar_type());
        total += t.numel();
    }
    return total;
}

static at::Tensor part_of(const at::Tensor &all, int64_t first, const at::Tensor &like)
{
    return all.narrow(0, first, like.numel()).view(like.sizes());
}

/* All of them as one flat tensor, without a copy. */
static at::Tensor joined(const Tensors &tensors, int64_t total)
{
    return tensors[0].detach().as_strided({total}, {1}, tensors[0].storage_offset());
}

at::Tensor inputs_of(Work &work, const Tensors &tensors)
{
    const int64_t total = check_alike(work, tensors);
    at::Tensor all;
    if (are_adjacent(tensors) && can_be_read(work, joined(tensors, total))) {
        all = joined(tensors, total);
        will_be_read(work, all);
    } else {
        all = at::empty({total}, tensors[0].options());
        int64_t first = 0;
        for (const at::Tensor &t : tensors) {
            part_of(all, first, t).copy_(t);
            first += t.numel();
        }
    }
    work.keep(all);
    return all;
}

at::Tensor outputs_of(Work &work, const Tensors &tensors)
{
    const int64_t total = check_alike(work, tensors);
    for (const at::Tensor &t : tensors)
        check_output(work, t);
    if (are_adjacent(tensors) && can_be_written(work, joined(tensors, total))) {
        const at::Tensor all = joined(tensors, total);
        will_be_written(work, all);
        work.keep(all);
        return all;
    }
    for (const at::Tensor &t : tensors)
        will_be_written(work, t);
    const at::Tensor all = at::empty({total}, tensors[0].options());
    work.keep(all);
    work.then([tensors, all] {
        int64_t first = 0;
        for (const at::Tensor &t : tensors) {
            t.copy_(part_of(all, first, t));
            first += t.numel();
        }
    });
    return all;
}

std::vector<size_t> counts_of(const Tensors &tensors)
{
    std::vector<size_t> counts;
    for (const at::Tensor &t : tensors)
        counts.push_back(static_cast<size_t>(t.numel()));
    return counts;
}

bool are_equal(const std::vector<size_t> &counts)
{
    return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

} // namespace meshcoll_torch
