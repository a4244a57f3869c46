// Views: reshape, permute, slice and their kin. None of them copies.
#include "ops/view.h"

#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

namespace volta {
namespace {

Shape as_permutation(const Shape& dims, const Shape& shape) {
  if (dims.size() != shape.size())
    throw Error(Error::Kind::shape, "permute",
                dims.str() + " does not name every axis of shape " + shape.str() + " once");
  Shape axes = dims;
  for (int64_t& a : axes) a = normalize_axis(a, shape.size(), shape, "permute");
  Shape sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Error(Error::Kind::shape, "permute", dims.str() + " names an axis of shape " + shape.str() + " twice");
  return axes;
}

Shape inverse(const Shape& axes) {
  Shape inv = axes;
  for (int i = 0; i < axes.size(); ++i) inv[int(axes[i])] = i;
  return inv;
}

Tensor permuted(const char* op, const Tensor& x, const Shape& axes) {
  return make_view(
      op, x, [axes](const Layout& l) { return views::permute(l, axes); },
      [back = inverse(axes)](const Tensor& g) { return g.permute(back); });
}

// A reshape without a copy; relative layouts of views may not follow, then the view is not traced to its base.
Tensor reshaped(const char* op, const Tensor& x, const Layout& target) {
  Tensor y = alias(x, target);
  if (!grad_enabled()) return y;
  const auto& parent = x.impl().view;
  std::optional<Layout> relative;
  if (!parent) relative = Layout::contiguous(target.shape);
  else if (parent->relative) relative = views::reshape(*parent->relative, target.shape);
  remember_view(y, x, relative);
  return record(op, std::move(y), {x}, [shape = x.shape()](const Tensor& g, Gradients& d) { d[0] = g.reshape(shape); });
}

int axis_of(const Tensor& x, int64_t dim, const char* op) {
  return normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
}

void require_axes(const Tensor& x, int rank, const char* op) {
  if (x.checked(op).dim() < rank)
    throw Error(Error::Kind::shape, op,
                "needs at least " + std::to_string(rank) + " axes, got shape " + x.shape().str());
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape target = infer_shape(shape, x.checked("reshape").shape(), "reshape");
  if (auto l = views::reshape(layout(x), target)) return reshaped("reshape", x, *l);
  const Tensor dense = x.contiguous();
  return reshaped("reshape", dense, *views::reshape(layout(dense), target));
}

Tensor view(const Tensor& x, const Shape& shape) {
  const Shape target = infer_shape(shape, x.checked("view").shape(), "view");
  const auto l = views::reshape(layout(x), target);
  if (!l)
    throw Error(Error::Kind::shape, "view",
                "shape " + x.shape().str() + " with strides " + x.strides().str() + " cannot be viewed as " +
                    target.str() + " without a copy; use reshape");
  return reshaped("view", x, *l);
}

Tensor permute(const Tensor& x, const Shape& dims) {
  return permuted("permute", x, as_permutation(dims, x.checked("permute").shape()));
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  const int a = axis_of(x, dim0, "transpose"), b = axis_of(x, dim1, "transpose");
  if (x.dim() == 0) return x;
  return make_view(
      "transpose", x, [a, b](const Layout& l) { return views::transpose(l, a, b); },
      [a, b](const Tensor& g) { return g.transpose(a, b); });
}

Tensor t(const Tensor& x) {
  if (x.checked("t").dim() > 2)
    throw Error(Error::Kind::shape, "t", "needs at most 2 axes, got shape " + x.shape().str());
  return x.dim() < 2 ? x : x.transpose(0, 1);
}

Tensor mT(const Tensor& x) {
  require_axes(x, 2, "mT");
  return x.transpose(-2, -1);
}

Tensor movedim(const Tensor& x, const Axes& source, const Axes& destination) {
  const Shape& shape = x.checked("movedim").shape();
  if (source.list().size() != destination.list().size())
    throw Error(Error::Kind::argument, "movedim",
                "as many sources as destinations, got " + source.list().str() + " and " + destination.list().str());
  Shape order = Shape::filled(shape.size(), -1), rest;
  Shape from, to;
  for (int64_t a : source.list()) from.push_back(normalize_axis(a, shape.size(), shape, "movedim"));
  for (int64_t a : destination.list()) to.push_back(normalize_axis(a, shape.size(), shape, "movedim"));
  normalize_axes(source, shape, "movedim");
  normalize_axes(destination, shape, "movedim");
  for (int i = 0; i < from.size(); ++i) order[int(to[i])] = from[i];
  for (int i = 0; i < shape.size(); ++i)
    if (std::find(from.begin(), from.end(), i) == from.end()) rest.push_back(i);
  for (int i = 0, k = 0; i < shape.size(); ++i)
    if (order[i] < 0) order[i] = rest[k++];
  return permuted("movedim", x, order);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  return make_view(
      "expand", x.checked("expand"), [shape](const Layout& l) { return views::expand(l, shape, "expand"); },
      [](const Tensor& g) { return g; });  // the engine sums broadcast axes away
}
Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.checked("expand_as").shape()); }
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return expand(x, shape); }

Tensor squeeze(const Tensor& x, const Axes& dim) {
  const Shape axes = normalize_axes(dim, x.checked("squeeze").shape(), "squeeze");
  return make_view(
      "squeeze", x, [axes](const Layout& l) { return views::squeeze(l, axes); },
      [shape = x.shape()](const Tensor& g) { return g.reshape(shape); });
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const int rank = int(x.checked("unsqueeze").dim()), axis = normalize_axis(dim, rank + 1, x.shape(), "unsqueeze");
  return make_view(
      "unsqueeze", x, [axis](const Layout& l) { return views::unsqueeze(l, axis); },
      [shape = x.shape()](const Tensor& g) { return g.reshape(shape); });
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  const int a = axis_of(x, start_dim, "flatten"), b = axis_of(x, end_dim, "flatten");
  if (a > b)
    throw Error(Error::Kind::argument, "flatten", "the first axis comes after the last, for shape " + x.shape().str());
  if (x.dim() == 0) return x.reshape({1});
  Shape shape;
  int64_t joined = 1;
  for (int i = 0; i < x.dim(); ++i) {
    if (i < a || i > b) shape.push_back(x.shape()[i]);
    else joined *= x.shape()[i];
    if (i == b) shape.push_back(joined);
  }
  return x.reshape(shape);
}

Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes) {
  const int axis = axis_of(x, dim, "unflatten");
  const Shape inner = infer_shape(sizes, Shape{x.size(axis)}, "unflatten");
  Shape shape;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
    else
      for (int64_t s : inner) shape.push_back(s);
  }
  return x.reshape(shape);
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  require_axes(x, 1, "narrow");
  const int axis = axis_of(x, dim, "narrow");
  const int64_t n = x.shape()[axis], from = start < 0 ? start + n : start;
  if (from < 0 || length < 0 || from > n || length > n - from)
    throw Error(Error::Kind::index, "narrow",
                "start " + std::to_string(start) + " and length " + std::to_string(length) + " leave axis " +
                    std::to_string(axis) + " of shape " + x.shape().str());
  return make_view("narrow", x, [axis, from, length](const Layout& l) { return views::narrow(l, axis, from, length); });
}

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step) {
  require_axes(x, 1, "slice");
  const int axis = axis_of(x, dim, "slice");
  return make_view("slice", x, [=](const Layout& l) { return views::slice(l, axis, {begin, end, step}, "slice"); });
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  require_axes(x, 1, "select");
  const int axis = axis_of(x, dim, "select");
  return make_view("select", x, [=](const Layout& l) { return views::select(l, axis, index, "index"); });
}

Tensor flip(const Tensor& x, const Axes& dims) {
  const Shape axes = normalize_axes(dims, x.checked("flip").shape(), "flip");
  return make_view(
      "flip", x, [axes](const Layout& l) { return views::flip(l, axes); },
      [axes](const Tensor& g) { return g.flip(axes); });
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  require_axes(x, 2, "diagonal");
  const int a = axis_of(x, dim1, "diagonal"), b = axis_of(x, dim2, "diagonal");
  if (a == b) throw Error(Error::Kind::argument, "diagonal", "needs two different axes of shape " + x.shape().str());
  return make_view("diagonal", x, [=](const Layout& l) { return views::diagonal(l, offset, a, b); });
}

Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  require_axes(x, 1, "unfold");
  const int axis = axis_of(x, dim, "unfold");
  if (size < 0 || step <= 0 || size > x.size(axis))
    throw Error(Error::Kind::argument, "unfold",
                "windows of size " + std::to_string(size) + " and step " + std::to_string(step) + " do not fit axis " +
                    std::to_string(axis) + " of shape " + x.shape().str());
  return make_view("unfold", x, [=](const Layout& l) { return views::unfold(l, axis, size, step); });
}

Tensor as_strided(const Tensor& x, const Shape& size, const Shape& stride, std::optional<int64_t> storage_offset) {
  const char* op = "as_strided";
  checked_numel(size, op);
  if (size.size() != stride.size())
    throw Error(Error::Kind::shape, op, "as many strides as sizes, got " + size.str() + " and " + stride.str());
  const Layout wanted{size, stride, storage_offset.value_or(x.checked(op).storage_offset())};
  const Extent e = extent(wanted);
  if (size.numel() > 0 && (e.begin < 0 || e.end * size_of(x.dtype()) > x.impl().storage->bytes))
    throw Error(Error::Kind::index, op, "size " + size.str() + " and stride " + stride.str() + " leave the storage");
  if (!any_needs_grad(x)) return alias(x, wanted);
  // Gradients are traced through positions in a contiguous x; other layouts have no such positions.
  if (!x.is_contiguous() || e.begin < x.storage_offset() || e.end > x.storage_offset() + x.numel())
    throw Error(Error::Kind::autograd, op, "with gradients the input must be contiguous and the result lie within it");
  Layout relative = wanted;
  relative.offset -= x.storage_offset();
  return make_view(op, x, [=](const Layout& l) {
    Layout out = relative;
    out.offset += l.offset;
    return out;
  });
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  require_axes(x, 1, "split");
  const int axis = axis_of(x, dim, "split");
  int64_t total = 0;
  bool fits = true;
  for (int64_t s : sizes) {
    fits = fits && s >= 0;
    total += s;
  }
  if (!fits || total != x.size(axis))
    throw Error(Error::Kind::shape, "split",
                "sizes " + Shape(sizes).str() + " do not add up to axis " + std::to_string(axis) + " of shape " +
                    x.shape().str());
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t s : sizes) {
    pieces.push_back(x.narrow(axis, at, s));
    at += s;
  }
  return pieces;
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  require_axes(x, 1, "split");
  if (split_size <= 0)
    throw Error(Error::Kind::argument, "split", "needs a positive size, got " + std::to_string(split_size));
  const int axis = axis_of(x, dim, "split");
  std::vector<Tensor> pieces;
  const int64_t n = x.size(axis);
  for (int64_t at = 0; at < n || pieces.empty(); at += split_size)
    pieces.push_back(x.narrow(axis, at, std::min(split_size, n - at)));
  return pieces;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  require_axes(x, 1, "chunk");
  if (chunks <= 0)
    throw Error(Error::Kind::argument, "chunk", "needs a positive number of chunks, got " + std::to_string(chunks));
  const int64_t n = x.size(axis_of(x, dim, "chunk"));
  return split(x, std::max<int64_t>(1, (n + chunks - 1) / chunks), dim);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  require_axes(x, 1, "unbind");
  const int axis = axis_of(x, dim, "unbind");
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < x.size(axis); ++i) pieces.push_back(x.select(axis, i));
  return pieces;
}

}  // namespace volta
