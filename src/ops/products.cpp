// Products built of others: outer, tensordot, Kronecker, cross, trace.
#include <algorithm>

#include <volta/ops.h>

#include "core/impl.h"

namespace volta {
namespace {

std::string pair_text(const Tensor& a, const Tensor& b) { return a.shape().str() + " x " + b.shape().str() + ": "; }

int64_t product_of_sizes(const Tensor& x, const Shape& axes) {
  int64_t n = 1;
  for (int64_t a : axes) n *= x.shape()[int(a)];
  return n;
}

Shape other_axes(const Tensor& x, const Shape& axes) {
  Shape rest;
  for (int i = 0; i < x.shape().size(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) rest.push_back(i);
  return rest;
}

Shape joined(const Shape& a, const Shape& b) {
  Shape s = a;
  for (int64_t x : b) s.push_back(x);
  return s;
}

Shape sizes_of(const Tensor& x, const Shape& axes) {
  Shape s;
  for (int64_t a : axes) s.push_back(x.shape()[int(a)]);
  return s;
}

Shape checked_axes(const Tensor& x, const std::vector<int64_t>& dims) {
  Shape axes;
  for (int64_t d : dims) {
    if (x.dim() == 0)
      throw Error(Error::Kind::index, "tensordot", "axis " + std::to_string(d) + " is out of range for shape []");
    const int axis = normalize_axis(d, int(x.dim()), x.shape(), "tensordot");
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      throw Error(Error::Kind::argument, "tensordot", "axis " + std::to_string(d) + " is named twice");
    axes.push_back(axis);
  }
  return axes;
}

// A size-1 axis before (or after) every axis of x, which first gets `rank` axes.
Tensor interleaved(const Tensor& x, int rank, bool before) {
  Shape s;
  for (int i = 0; i < rank; ++i) {
    const int own = i - (rank - int(x.dim()));
    if (before) s.push_back(1);
    s.push_back(own < 0 ? 1 : x.shape()[own]);
    if (!before) s.push_back(1);
  }
  return x.reshape(s);
}

}  // namespace

Tensor outer(const Tensor& x, const Tensor& other) {
  common_device(x.checked("outer"), other.checked("outer"), "outer");
  if (x.dim() != 1 || other.dim() != 1)
    throw Error(Error::Kind::shape, "outer", pair_text(x, other) + "needs two vectors");
  checked_numel({x.numel(), other.numel()}, "outer");
  return mul(x.unsqueeze(1), other);
}

Tensor tensordot(const Tensor& x, const Tensor& other, const std::vector<int64_t>& dims_x,
                 const std::vector<int64_t>& dims_other) {
  common_device(x.checked("tensordot"), other.checked("tensordot"), "tensordot");
  if (dims_x.size() != dims_other.size())
    throw Error(
        Error::Kind::argument, "tensordot",
        std::to_string(dims_x.size()) + " axes of one tensor are paired with " + std::to_string(dims_other.size()));
  const Shape axes_x = checked_axes(x, dims_x), axes_other = checked_axes(other, dims_other);
  for (int i = 0; i < axes_x.size(); ++i) {
    const int64_t n = x.size(axes_x[i]), m = other.size(axes_other[i]);
    if (n != m)
      throw Error(Error::Kind::shape, "tensordot",
                  pair_text(x, other) + "axes " + std::to_string(axes_x[i]) + " and " + std::to_string(axes_other[i]) +
                      " have sizes " + std::to_string(n) + " and " + std::to_string(m));
  }
  const Shape rest_x = other_axes(x, axes_x), rest_other = other_axes(other, axes_other);
  const Shape shape = joined(sizes_of(x, rest_x), sizes_of(other, rest_other));
  const int64_t k = product_of_sizes(x, axes_x);
  const Tensor a = x.permute(joined(rest_x, axes_x)).reshape({product_of_sizes(x, rest_x), k});
  const Tensor b = other.permute(joined(axes_other, rest_other)).reshape({k, product_of_sizes(other, rest_other)});
  return mm(a, b).reshape(shape);
}

Tensor tensordot(const Tensor& x, const Tensor& other, int64_t dims) {
  const int64_t most = std::min(x.checked("tensordot").dim(), other.checked("tensordot").dim());
  if (dims < 0 || dims > most)
    throw Error(Error::Kind::argument, "tensordot",
                pair_text(x, other) + std::to_string(dims) + " axes cannot be contracted");
  std::vector<int64_t> last, first;
  for (int64_t i = 0; i < dims; ++i) {
    last.push_back(x.dim() - dims + i);
    first.push_back(i);
  }
  return tensordot(x, other, last, first);
}

Tensor kron(const Tensor& x, const Tensor& other) {
  common_device(x.checked("kron"), other.checked("kron"), "kron");
  const int rank = int(std::max(x.dim(), other.dim()));
  if (2 * rank > Shape::max_rank)
    throw Error(Error::Kind::shape, "kron", pair_text(x, other) + "more than 6 axes are not supported");
  const Tensor a = interleaved(x, rank, false), b = interleaved(other, rank, true);
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(a.shape()[2 * i] * b.shape()[2 * i + 1]);
  return mul(a, b).reshape(shape);
}

Tensor trace(const Tensor& x) {
  if (x.checked("trace").dim() != 2)
    throw Error(Error::Kind::shape, "trace", "needs a matrix, got shape " + x.shape().str());
  return x.diagonal().sum();
}

Tensor cross(const Tensor& x, const Tensor& other, int64_t dim) {
  common_device(x.checked("cross"), other.checked("cross"), "cross");
  if (x.dim() != other.dim() || x.dim() == 0)
    throw Error(Error::Kind::shape, "cross", pair_text(x, other) + "needs as many axes in both, at least one");
  const int axis = normalize_axis(dim, int(x.dim()), x.shape(), "cross");
  if (x.size(axis) != 3 || other.size(axis) != 3)
    throw Error(Error::Kind::shape, "cross",
                pair_text(x, other) + "axis " + std::to_string(axis) + " must have size 3 in both");
  broadcast_shapes(x.shape(), other.shape(), "cross");
  const auto term = [&](int64_t i, int64_t j) { return mul(x.narrow(axis, i, 1), other.narrow(axis, j, 1)); };
  return cat({sub(term(1, 2), term(2, 1)), sub(term(2, 0), term(0, 2)), sub(term(0, 1), term(1, 0))}, axis);
}

}  // namespace volta
