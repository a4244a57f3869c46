// What the losses share: checking shapes, and what becomes of the losses of the elements.
#pragma once
#include <volta/ops.h>
namespace volta::loss {

inline Reduce reduction(const Choice<Reduce>& given, const char* op) {
  const Reduce how = given.of(op, "reduction");
  if (how != Reduce::batchmean) return how;
  throw Error(Error::Kind::argument, op, "reduction 'batchmean' is of kl_div; here it is one of none, mean, sum");
}

inline Tensor reduced(const Tensor& losses, Reduce how) {
  return how == Reduce::none ? losses : how == Reduce::mean ? mean(losses) : sum(losses);
}

inline void require_same_shape(const Tensor& input, const Tensor& target, const char* op) {
  if (input.checked(op).shape() != target.checked(op).shape())
    throw Error(Error::Kind::shape, op,
                "input " + input.shape().str() + " and target " + target.shape().str() + " differ in shape");
}

inline void require_floats(const Tensor& input, const char* op) {
  if (!is_floating(input.checked(op).dtype()))
    throw Error(Error::Kind::dtype, op, "the input must be floating, not " + std::string(name(input.dtype())));
}

}  // namespace volta::loss
