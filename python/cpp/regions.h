/* What memory the entries of a list of tensors use. */
#ifndef MESHCOLL_TORCH_REGIONS_H
#define MESHCOLL_TORCH_REGIONS_H

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace meshcoll_torch
{

class Regions
{
  public:
    void add(const at::Tensor &tensor);
    /* Takes a tensor with gaps for one without. */
    bool meet(const at::Tensor &tensor) const;

  private:
    std::map<const char *, const char *> ends_; /* of each, by its begin; none meets another */
};

/*
 * The entries of a list run at the same time, each on the values that were there before the call. So what one writes
 * may not be what another reads or writes; it is a copy then, whose values go to the tensor at the end, in the order of
 * the entries. Within an entry this is the entry's own business.
 */
class Entries
{
  public:
    void begin_next();
    void reads(const at::Tensor &tensor)
    {
        of_this_.push_back({tensor, false});
    }
    void writes(const at::Tensor &tensor)
    {
        of_this_.push_back({tensor, true});
    }
    bool may_read(const at::Tensor &tensor) const
    {
        return !written_.meet(tensor);
    }
    bool may_write(const at::Tensor &tensor) const
    {
        return !used_.meet(tensor);
    }

  private:
    struct Use {
        at::Tensor tensor;
        bool is_written;
    };
    std::vector<Use> of_this_;
    Regions used_, written_; /* by the entries before */
};

} // namespace meshcoll_torch

#endif
