// What the losses share: checking shapes, and what becomes of the losses of the elements.
#pragma once
#include <volta/ops.h>

#include "ops/check.h"
namespace volta::loss {

inline Reduce reduction(const Choice<Reduce>& given, const char* op) {
  const Reduce how = given.of(op, "reduction");
  require(how != Reduce::batchmean, ErrorKind::argument, op, "reduction 'batchmean' is of kl_div alone");
  return how;
}

inline Tensor reduced(const Tensor& losses, Reduce how) {
  return how == Reduce::none ? losses : how == Reduce::mean ? mean(losses) : sum(losses);
}

// Losses are floats, and so is one of the two at least.
inline void require_pair(const Tensor& input, const Tensor& target, const char* op) {
  require(input.checked(op).shape() == target.checked(op).shape(), ErrorKind::shape, op, "input ", input,
          " and target ", target, " differ in shape");
  common_device(input, target, op);
  require(is_floating(promote(input.dtype(), target.dtype())), ErrorKind::dtype, op, "needs floats, got ",
          input.dtype(), " and ", target.dtype());
}

// Halves are computed in f32, and the loss is rounded once. Other dtypes stay.
inline Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? x.to(f32) : x; }

// What a loss of this dtype is under a weight that may be defined.
inline DType with_weight(DType dtype, const Tensor& weight) {
  return weight.defined() ? promote(dtype, weight.dtype()) : dtype;
}

}  // namespace volta::loss
