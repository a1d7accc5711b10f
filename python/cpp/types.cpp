#include "types.h"

#include <ATen/ATen.h>

namespace meshcoll_torch
{

static std::optional<meshcoll_datatype_t> datatype_of(at::ScalarType type)
{
    switch (type) {
    case at::kFloat:
        return MESHCOLL_FLOAT32;
    case at::kDouble:
        return MESHCOLL_FLOAT64;
    case at::kHalf:
        return MESHCOLL_FLOAT16;
    case at::kBFloat16:
        return MESHCOLL_BFLOAT16;
    case at::kFloat8_e4m3fn:
        return MESHCOLL_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
        return MESHCOLL_FLOAT8_E5M2;
    case at::kChar:
        return MESHCOLL_INT8;
    case at::kShort:
        return MESHCOLL_INT16;
    case at::kInt:
        return MESHCOLL_INT32;
    case at::kLong:
        return MESHCOLL_INT64;
    case at::kByte:
        return MESHCOLL_UINT8;
    case at::kUInt16:
        return MESHCOLL_UINT16;
    case at::kUInt32:
        return MESHCOLL_UINT32;
    case at::kUInt64:
        return MESHCOLL_UINT64;
    case at::kComplexFloat:
        return MESHCOLL_COMPLEX64;
    case at::kComplexDouble:
        return MESHCOLL_COMPLEX128;
    case at::kBool:
        return MESHCOLL_BOOL;
    default:
        return std::nullopt;
    }
}

Elements elements_to_move(at::ScalarType type)
{
    const auto known = datatype_of(type);
    return known ? Elements{*known, 1} : Elements{MESHCOLL_UINT8, c10::elementSize(type)};
}

static meshcoll_datatype_t datatype_to_reduce(at::ScalarType type)
{
    const auto known = datatype_of(type);
    TORCH_CHECK_VALUE(known, "meshcoll does not reduce tensors of ", c10::toString(type),
                      ": convert them first; docs/training.md lists the types");
    return *known;
}

/* The sum and the product of truth values are or and and, as in NCCL. */
static meshcoll_op_t predefined(c10d::ReduceOp::RedOpType op, bool of_bool)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
        return of_bool ? MESHCOLL_LOR : MESHCOLL_SUM;
    case c10d::ReduceOp::PRODUCT:
        return of_bool ? MESHCOLL_LAND : MESHCOLL_PROD;
    case c10d::ReduceOp::AVG:
        return MESHCOLL_AVG;
    case c10d::ReduceOp::MIN:
        return MESHCOLL_MIN;
    case c10d::ReduceOp::MAX:
        return MESHCOLL_MAX;
    case c10d::ReduceOp::BAND:
        return MESHCOLL_BAND;
    case c10d::ReduceOp::BOR:
        return MESHCOLL_BOR;
    case c10d::ReduceOp::BXOR:
        return MESHCOLL_BXOR;
    default:
        C10_THROW_ERROR(ValueError, "meshcoll does not know this reduction; expected SUM, AVG, "
                                    "PRODUCT, MIN, MAX, BAND, BOR, BXOR or PREMUL_SUM");
    }
}

/* The factor of a PREMUL_SUM as one element of `type`. */
static at::Tensor factor_of(const c10d::ReduceOp &op, at::ScalarType type)
{
    const auto *const given = static_cast<c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
    TORCH_CHECK_VALUE(given, "PREMUL_SUM has no factor: make it with "
                             "torch.distributed._make_nccl_premul_sum(factor)");
    if (given->tensor_factor.defined())
        return given->tensor_factor.detach().to(at::kCPU, type).contiguous();
    return at::full({1}, given->double_factor, at::kDouble).to(type);
}

Operation::Operation(const c10d::ReduceOp &op, at::ScalarType type)
    : type_(datatype_to_reduce(type))
{
    if (op.op_ == c10d::ReduceOp::PREMUL_SUM) {
        const at::Tensor factor = factor_of(op, type);
        const int status = meshcoll_op_premul(factor.const_data_ptr(), type_, &op_);
        TORCH_CHECK_VALUE(status == MESHCOLL_OK, "meshcoll: PREMUL_SUM: ", meshcoll_last_error());
        owned_ = true;
        return;
    }
    op_ = predefined(op.op_, type == at::kBool);
    TORCH_CHECK_VALUE(meshcoll_op_check(op_, type_) == MESHCOLL_OK,
                      "meshcoll: ", meshcoll_last_error());
}

Operation::~Operation()
{
    if (owned_)
        meshcoll_op_free(op_);
}

} // namespace meshcoll_torch
