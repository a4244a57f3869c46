// How pointwise ops are run: one function for all of them, and one for their in-place forms.
#pragma once
#include <initializer_list>

#include <volta/custom_op.h>

#include "backend/allocate.h"
#include "backend/backend.h"
#include "core/impl.h"
#include "core/watch.h"
#include "graph/record.h"
#include "math/inner.h"

namespace volta {

extern const ElementwiseOp* const point_ops;  // in the order of ElementwiseOps
inline const ElementwiseOp& point_op(int index) { return point_ops[index]; }

// self = op(self, rest…); and self = op(operands…), self being one of them or not.
Tensor& map_in_place(const ElementwiseOp& op, Tensor& self, std::initializer_list<Operand> rest);
Tensor& map_into(Tensor& self, const ElementwiseOp& op, std::span<Operand> operands);

inline Arg arg(const Tensor& x) {
  reads(x);
  return {address(x), &layout(x), x.impl().dtype, {}};
}
inline Arg arg(const Operand& x) { return x.tensor ? arg(*x.tensor) : Arg{nullptr, nullptr, f64, x.scalar}; }

// The dtype operands meet in: tensors by the array API's lattice, numbers weakly.
DType result_type(std::span<const Operand> operands, const char* op);

// An operand that lies in the memory of `self` in another way is copied, so that writing into self is well defined.
bool overlaps(const Tensor& self, const Tensor& x);

}  // namespace volta
