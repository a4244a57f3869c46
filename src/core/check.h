// The words in which arguments are checked: a line for each check, and no text is built unless something is wrong.
#pragma once
#include <concepts>

#include <volta/error.h>

#include "core/impl.h"

namespace volta {

using ErrorKind = Error::Kind;

inline std::string text_of(std::string_view x) { return std::string(x); }
inline std::string text_of(std::same_as<char> auto x) { return std::string(1, x); }
inline std::string text_of(std::same_as<Int> auto x) { return std::to_string(int64_t(x)); }
inline std::string text_of(const Shape& x) { return x.str(); }
inline std::string text_of(const Tensor& x) { return x.defined() ? x.shape().str() : "(undefined)"; }
inline std::string text_of(std::same_as<Device> auto x) { return x.str(); }
inline std::string text_of(DType x) { return std::string(name(x)); }
std::string text_of(const Scalar& x);

// Whether a dtype of integers holds the number, less its fraction.
bool holds(DType dtype, const Scalar& value);
double largest_finite(DType dtype);  // of floats

template <class... Parts>
[[noreturn, gnu::cold]] void throw_error(ErrorKind kind, const char* op, const Parts&... parts) {
  throw Error(kind, op, (text_of(parts) + ...));
}
// require(x.dim() == 2, ErrorKind::shape, op, "needs a matrix, got shape ", x);
template <class... Parts> void require(bool fine, ErrorKind kind, const char* op, const Parts&... parts) {
  if (!fine) throw_error(kind, op, parts...);
}

template <class F> void require_function(const F& f, const char* op) {
  require(bool(f), ErrorKind::argument, op, "the function is empty");
}

// What f throws is said of the op that was called, not of one that it is made of.
template <class F> decltype(auto) blamed_on(const char* op, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.op() == op) throw;
    throw Error(e.kind(), op, std::string_view(e.what()).substr(e.op().size() + 2));
  }
}

// An axis of x, which has at least so many.
inline int axis_of(const Tensor& x, int64_t dim, const char* op, int64_t least = 0) {
  require(x.checked(op).dim() >= least, ErrorKind::shape, op, "needs at least ", least, " axes, got shape ", x);
  return normalize_axis(dim, int(x.dim()), x.shape(), op);
}

}  // namespace volta
