#include "regions.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <iterator>

namespace meshcoll_torch
{

static const char *begin_of(const at::Tensor &tensor)
{
    return static_cast<const char *>(tensor.const_data_ptr());
}

static const char *end_of(const at::Tensor &tensor)
{
    return begin_of(tensor) +
           at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

bool Regions::meet(const at::Tensor &tensor) const
{
    const auto after = ends_.lower_bound(end_of(tensor));
    return tensor.numel() > 0 && after != ends_.begin() &&
           std::prev(after)->second > begin_of(tensor);
}

void Regions::add(const at::Tensor &tensor)
{
    const char *begin = begin_of(tensor), *end = end_of(tensor);
    if (tensor.numel() == 0)
        return;
    auto at = ends_.lower_bound(end);
    while (at != ends_.begin() && std::prev(at)->second > begin) {
        --at;
        begin = std::min(begin, at->first);
        end = std::max(end, at->second);
        at = ends_.erase(at);
    }
    ends_.emplace(begin, end);
}

void Entries::begin_next()
{
    for (const Use &use : of_this_) {
        used_.add(use.tensor);
        if (use.is_written)
            written_.add(use.tensor);
    }
    of_this_.clear();
}

} // namespace meshcoll_torch
