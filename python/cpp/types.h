/* Element types and operations of torch in the library's terms. */
#ifndef MESHCOLL_TORCH_TYPES_H
#define MESHCOLL_TORCH_TYPES_H

#include <meshcoll/meshcoll.h>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>

namespace meshcoll_torch
{

/* How a tensor's elements are passed to the library. */
struct Elements {
    meshcoll_datatype_t type;
    size_t each; /* of `type` in one element of the tensor: 1, or its bytes */
};

/* For collectives that only move elements: types that the library lacks travel as bytes. */
Elements elements_to_move(at::ScalarType type);

/* An operation on elements of one type. That of PREMUL_SUM has a handle, which lives as long. */
class Operation
{
  public:
    /* Throws ValueError, with the library's sentence, where the type lacks the operation. */
    Operation(const c10d::ReduceOp &op, at::ScalarType type);
    ~Operation();
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    meshcoll_op_t op() const
    {
        return op_;
    }
    meshcoll_datatype_t type() const
    {
        return type_;
    }

  private:
    meshcoll_datatype_t type_;
    meshcoll_op_t op_ = MESHCOLL_SUM;
    bool owned_ = false;
};

} // namespace meshcoll_torch

#endif
