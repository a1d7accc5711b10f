/* The memory of tensors as the library reads and writes it: their own where elements lie in order,
 * else a copy. */
#ifndef MESHCOLL_TORCH_BUFFERS_H
#define MESHCOLL_TORCH_BUFFERS_H

#include "work.h"

#include <string>
#include <vector>

namespace meshcoll_torch
{

/* Throws ValueError for what the backend cannot take: other kinds of devices, sparse tensors. */
void check_tensor(const at::Tensor &tensor);
const at::Tensor &single(const std::vector<at::Tensor> &tensors);

/* A copy on the host of a tensor that is elsewhere, pinned where it can be; waits for what the current
 * stream does. */
at::Tensor on_host(const at::Tensor &tensor);
/* Such memory, for as many elements. */
at::Tensor host_place_of(const at::Tensor &tensor);

/* An input; the work keeps what it returns. The tensor has to be on the work's device. */
at::Tensor input_of(Work &work, const at::Tensor &tensor);
/* An output, or what is both; afterwards the tensor has the result. */
at::Tensor in_place_of(Work &work, const at::Tensor &tensor);
/* An output whose contents do not matter before. */
at::Tensor output_of(Work &work, const at::Tensor &tensor);

/* An input for a call that writes `out`: `in` where both are apart, or in place as the library takes it, with `offset`
 * elements between their starts; else a copy. Of its own block a rank says where it lies; others may
 * pass other tensors, and none of them is refused. */
at::Tensor apart(Work &work, const at::Tensor &in, const at::Tensor &out,
                 std::optional<int64_t> offset);

/* Several tensors back to back, of one type. */
at::Tensor inputs_of(Work &work, const std::vector<at::Tensor> &tensors);
at::Tensor outputs_of(Work &work, const std::vector<at::Tensor> &tensors);
std::vector<size_t> counts_of(const std::vector<at::Tensor> &tensors);
bool are_equal(const std::vector<size_t> &counts);

} // namespace meshcoll_torch

#endif
