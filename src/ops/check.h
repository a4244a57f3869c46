// The words in which ops check their arguments: a line for each, and no text is built unless something is wrong.
#pragma once
#include <concepts>

#include <volta/tensor.h>

#include "core/impl.h"

namespace volta {

using Wrong = Error::Kind;

inline std::string text_of(std::string_view x) { return std::string(x); }
inline std::string text_of(char x) { return std::string(1, x); }
inline std::string text_of(const Shape& x) { return x.str(); }
inline std::string text_of(const Tensor& x) { return x.shape().str(); }
inline std::string text_of(DType x) { return std::string(name(x)); }
template <class T>
requires std::integral<T> || std::floating_point<T> std::string text_of(T x) { return std::to_string(x); }

template <class... Parts> [[noreturn, gnu::cold]] void refuse(Wrong kind, const char* op, const Parts&... parts) {
  throw Error(kind, op, (text_of(parts) + ...));
}
// require(x.dim() == 2, Wrong::shape, op, "needs a matrix, got shape ", x);
template <class... Parts> void require(bool fine, Wrong kind, const char* op, const Parts&... parts) {
  if (!fine) refuse(kind, op, parts...);
}

// An axis of x, which has at least so many.
inline int axis_of(const Tensor& x, int64_t dim, const char* op, int64_t least = 0) {
  require(x.checked(op).dim() >= least, Wrong::shape, op, "needs at least ", least, " axes, got shape ", x);
  return normalize_axis(dim, int(x.dim()), x.shape(), op);
}

// Throws when a C++ number loses its fraction in dtype.
void require_storable(const Scalar& value, DType dtype, const char* op);

// Throws when values of one dtype are of a higher kind than another can hold: floats in integers, numbers in booleans.
inline void require_fitting(DType values, DType place, const char* op) {
  const bool fits = traits(values).kind <= traits(place).kind || (is_integral(values) && is_integral(place));
  require(fits, Wrong::dtype, op, "a value of ", values, " cannot be stored in ", place);
}

// The dtype that the operands of a product meet in; there is none for booleans.
DType product_dtype(std::span<const Operand> operands, const char* op);

// `shape` with the `count` axes from `axis` on replaced by others.
inline Shape spliced(const Shape& shape, int axis, int count, const Shape& others) {
  Shape s = shape;
  s.resize(axis);
  for (int64_t n : others) s.push_back(n);
  for (int i = axis + count; i < shape.size(); ++i) s.push_back(shape[i]);
  return s;
}
inline Shape joined(Shape a, const Shape& b) {
  for (int64_t n : b) a.push_back(n);
  return a;
}

}  // namespace volta
