/* A collective by its arguments: begun on memory of the host, or enqueued on that of a GPU. */
#ifndef MESHCOLL_TORCH_CALL_H
#define MESHCOLL_TORCH_CALL_H

#include <meshcoll/meshcoll.h>

#include <utility>
#include <vector>

namespace meshcoll_torch
{

class Call
{
  public:
    using Counts = std::vector<size_t>;

    Call(meshcoll_collective_t collective, const void *in, void *out, size_t count,
         meshcoll_datatype_t type)
    {
        args_.size = sizeof args_;
        args_.collective = collective;
        args_.in = in;
        args_.out = out;
        args_.count = count;
        args_.datatype = type;
    }
    Call &&op(meshcoll_op_t op) &&
    {
        args_.op = op;
        return std::move(*this);
    }
    Call &&root(int rank) &&
    {
        args_.root = rank;
        return std::move(*this);
    }
    /* Of blocks of unequal sizes; of alltoall: the output's, and the input's. */
    Call &&blocks(Counts counts, Counts in_counts = {}) &&
    {
        counts_ = std::move(counts);
        in_counts_ = std::move(in_counts);
        return std::move(*this);
    }

    /* Valid as long as the call. */
    meshcoll_args_t args() const
    {
        meshcoll_args_t args = args_;
        args.counts = counts_.empty() ? nullptr : counts_.data();
        args.in_counts = in_counts_.empty() ? nullptr : in_counts_.data();
        return args;
    }

  private:
    meshcoll_args_t args_ = {};
    Counts counts_, in_counts_;
};

} // namespace meshcoll_torch

#endif
