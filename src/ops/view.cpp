// Views: reshape, permute, slice and their kin. None of them copies.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "core/room.h"
#include "core/watch.h"
#include "graph/record.h"
#include "ops/check.h"
#include "ops/part.h"

namespace volta {
namespace {

// y = x seen through f(layout); undefined where f gives nothing. Gradients go back by rule(g). A view whose layout
// relative to the base cannot be said is not traced to it.
const Layout& base_of(const Tensor& x) {
  const ViewOf* parent = view_of(x.impl());
  return layout(parent ? parent->base : x);
}

// Where in the memory of x's base a view lies, if that memory is dense.
std::optional<Layout> place_in_base(const Tensor& x, Layout seen) {
  const Layout& base = base_of(x);
  if (!base.is_contiguous() && !base.is_dense()) return std::nullopt;
  seen.offset -= base.offset;
  return seen;
}

template <class F, class Rule> Tensor make_view(const char* op, const Tensor& x, F f, Rule rule) {
  const std::optional<Layout> seen = f(layout(x));
  if (!seen) return {};
  gives_view(x);
  Tensor y = alias(x, *seen);
  if (!grad_enabled()) {
    mark_unrecorded(y.impl(), x);
    return y;
  }
  y.impl().unrecorded = x.impl().unrecorded;
  const ViewOf* parent = view_of(x.impl());
  if (auto place = place_in_base(x, *seen)) remember_view(y, x, place, view_rules);
  else if (!parent) remember_view(y, x, f(Layout::contiguous(x.shape())), view_rules);
  else remember_view(y, x, parent->relative ? std::optional<Layout>(f(*parent->relative)) : std::nullopt, view_rules);
  return record(op, std::move(y), {x}, std::move(rule));
}
// A part of x: its gradient is embedded into zeros, or added in its place to that of other parts.
template <class F> struct PartRule {
  Layout base;
  F f;
  Tensor operator()(const Tensor& g) const { return embed(g, base.shape, f(base)); }
  bool add_in_place(const Tensor& sum, const Tensor& g) const {
    const Layout place = f(layout(sum));
    if (!sum.is_contiguous() || g.dtype() != sum.dtype() || place.overlaps_itself()) return false;
    alias(sum, place).add_(g);
    return true;
  }
};
template <class F> Tensor make_part(const char* op, const Tensor& x, F f) {
  return make_view(op, x, f, PartRule<F>{Layout::contiguous(x.shape()), f});
}
// All of x in another shape.
template <class F> Tensor make_reshaped(const char* op, const Tensor& x, F f) {
  return make_view(op, x, f, [shape = x.shape()](const Tensor& g) { return g.reshape(shape); });
}

Tensor reshaped(const char* op, const Tensor& x, const Shape& shape) {
  return make_reshaped(op, x, [shape](const Layout& l) { return views::reshape(l, shape); });
}

Tensor permuted(const char* op, const Tensor& x, const Shape& axes) {
  Shape back = axes;
  for (int i = 0; i < axes.size(); ++i) back[int(axes[i])] = i;
  return make_view(
      op, x, [axes](const Layout& l) { return views::permute(l, axes); },
      [back](const Tensor& g) { return g.permute(back); });
}

// Throws unless every element of the layout lies in a storage of so many. Strides that are never taken stay small too:
// later views multiply them.
void require_inside(const Layout& l, int64_t numel, int64_t held, const char* op) {
  constexpr int64_t longest = int64_t(1) << 59;
  Checked low = l.offset, high = l.offset;
  bool inside = l.offset >= 0 && l.offset <= held;
  for (int i = 0; i < l.rank(); ++i) {
    inside = inside && Checked(l.strides[i]).within(-longest, longest);
    (l.strides[i] < 0 ? low : high) += Checked(l.strides[i]) * (numel == 0 ? 0 : l.shape[i] - 1);
  }
  inside = inside && low.within(0, held) && high.within(0, numel == 0 ? held : held - 1);
  require(inside, ErrorKind::index, op, "size ", l.shape, ", stride ", l.strides, " and offset ", l.offset,
          " leave the storage of ", held, " elements");
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape target = infer_shape(shape, x.checked("reshape").shape(), "reshape");
  const Tensor y = reshaped("reshape", x, target);
  return y.defined() ? y : reshaped("reshape", x.contiguous(), target);
}

Tensor reshape_as(const Tensor& x, const Tensor& other) {
  const Shape& shape = other.checked("reshape_as").shape();
  return blamed_on("reshape_as", [&] { return x.reshape(shape); });
}

Tensor ravel(const Tensor& x) {
  return blamed_on("ravel", [&] { return x.checked("ravel").reshape({x.numel()}); });
}

namespace {

Tensor viewed(const char* op, const Tensor& x, const Shape& shape) {
  const Shape target = infer_shape(shape, x.checked(op).shape(), op);
  const Tensor y = reshaped(op, x, target);
  require(y.defined(), ErrorKind::shape, op, "shape ", x, " with strides ", x.strides(), " cannot be viewed as ",
          target, " without a copy; use reshape");
  return y;
}

}  // namespace

Tensor view(const Tensor& x, const Shape& shape) { return viewed("view", x, shape); }
Tensor view_as(const Tensor& x, const Tensor& other) { return viewed("view_as", x, other.checked("view_as").shape()); }

Tensor permute(const Tensor& x, const Shape& dims) {
  const char* op = "permute";
  require(dims.size() == x.checked(op).dim(), ErrorKind::shape, op, dims, " does not name once every axis of shape ",
          x);
  Shape axes = dims;
  uint32_t named = 0;
  for (int64_t& axis : axes) {
    axis = axis_of(x, axis, op);
    require(!(named >> axis & 1), ErrorKind::shape, op, dims, " names an axis of shape ", x, " twice");
    named |= 1u << axis;
  }
  return permuted(op, x, axes);
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  const int a = axis_of(x, dim0, "transpose"), b = axis_of(x, dim1, "transpose");
  if (x.dim() == 0) return x;
  return make_view(
      "transpose", x, [a, b](const Layout& l) { return views::transpose(l, a, b); },
      [a, b](const Tensor& g) { return g.transpose(a, b); });
}

Tensor t(const Tensor& x) {
  require(x.checked("t").dim() <= 2, ErrorKind::shape, "t", "needs at most 2 axes, got shape ", x);
  return x.dim() < 2 ? x : x.transpose(0, 1);
}

Tensor mT(const Tensor& x) {
  axis_of(x, 0, "mT", 2);
  return x.transpose(-2, -1);
}

Tensor movedim(const Tensor& x, const Axes& source, const Axes& destination) {
  const char* op = "movedim";
  const Shape &shape = x.checked(op).shape(), &from = source.list(), &to = destination.list();
  require(from.size() == to.size(), ErrorKind::argument, op, "as many sources as destinations, got ", from, " and ",
          to);
  normalize_axes(source, shape, op);
  normalize_axes(destination, shape, op);
  if (shape.empty()) return x;
  Shape order = Shape::filled(shape.size(), -1);
  uint32_t moved = 0;
  for (int i = 0; i < from.size(); ++i) {
    const int axis = axis_of(x, from[i], op);
    order[axis_of(x, to[i], op)] = axis;
    moved |= 1u << axis;
  }
  int next = 0;
  for (int64_t& axis : order) {
    while (moved >> next & 1) ++next;
    if (axis < 0) axis = next++;
  }
  return permuted(op, x, order);
}

namespace {

Tensor expanded(const char* op, const Tensor& x, const Shape& shape) {
  return make_view(
      op, x.checked(op), [shape, op](const Layout& l) { return views::expand(l, shape, op); },
      [](const Tensor& g) { return g; });  // the engine sums broadcast axes away
}

}  // namespace

Tensor expand(const Tensor& x, const Shape& shape) { return expanded("expand", x, shape); }
Tensor expand_as(const Tensor& x, const Tensor& other) {
  return expanded("expand_as", x, other.checked("expand_as").shape());
}
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return expanded("broadcast_to", x, shape); }

Tensor squeeze(const Tensor& x, const Axes& dim) {
  const Shape axes = normalize_axes(dim, x.checked("squeeze").shape(), "squeeze");
  return make_reshaped("squeeze", x, [axes](const Layout& l) { return views::squeeze(l, axes); });
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const Shape& shape = x.checked("unsqueeze").shape();
  const int axis = normalize_axis(dim, shape.size() + 1, shape, "unsqueeze");
  return make_reshaped("unsqueeze", x, [axis](const Layout& l) {
    return blamed_on("unsqueeze", [&] { return views::unsqueeze(l, axis); });
  });
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  const int a = axis_of(x, start_dim, "flatten"), b = axis_of(x, end_dim, "flatten");
  require(a <= b, ErrorKind::argument, "flatten", "the first axis comes after the last, for shape ", x);
  int64_t total = 1;
  for (int i = a; i <= b && i < x.dim(); ++i) total *= x.shape()[i];
  return x.reshape(spliced(x.shape(), a, b - a + 1, {total}));
}

Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes) {
  const int axis = axis_of(x, dim, "unflatten", 1);
  return blamed_on("unflatten", [&] {
    return x.reshape(spliced(x.shape(), axis, 1, infer_shape(sizes, {x.size(axis)}, "unflatten")));
  });
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const int axis = axis_of(x, dim, "narrow", 1);
  const int64_t n = x.shape()[axis], from = start < 0 ? start + n : start;
  require(from >= 0 && length >= 0 && from <= n && length <= n - from, ErrorKind::index, "narrow", "start ", start,
          " and length ", length, " leave axis ", axis, " of shape ", x);
  return make_part("narrow", x, [axis, from, length](const Layout& l) { return views::narrow(l, axis, from, length); });
}

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step) {
  const int axis = axis_of(x, dim, "slice", 1);
  return make_part("slice", x, [=](const Layout& l) { return views::slice(l, axis, {begin, end, step}, "slice"); });
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  const int axis = axis_of(x, dim, "select", 1);
  return make_part("select", x, [=](const Layout& l) { return views::select(l, axis, index, "select"); });
}

Tensor flip(const Tensor& x, const Axes& dims) {
  const Shape& shape = x.checked("flip").shape();
  const Shape axes = dims.all() ? Shape() : normalize_axes(dims, shape, "flip");  // an empty list names none
  return make_view(
      "flip", x, [axes](const Layout& l) { return views::flip(l, axes); },
      [axes](const Tensor& g) { return g.flip(axes); });
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const int a = axis_of(x, dim1, "diagonal", 2), b = axis_of(x, dim2, "diagonal", 2);
  require(a != b, ErrorKind::argument, "diagonal", "needs two different axes of shape ", x);
  return make_part("diagonal", x, [=](const Layout& l) { return views::diagonal(l, offset, a, b); });
}

Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  const int axis = axis_of(x, dim, "unfold", 1);
  require(size >= 0 && step > 0 && size <= x.size(axis), ErrorKind::argument, "unfold", "windows of size ", size,
          " and step ", step, " do not fit axis ", axis, " of shape ", x);
  return make_part("unfold", x, [=](const Layout& l) {
    return blamed_on("unfold", [&] { return views::unfold(l, axis, size, step); });
  });
}

Tensor as_strided(const Tensor& x, const Shape& size, const Shape& stride, std::optional<int64_t> storage_offset) {
  const char* op = "as_strided";
  const int64_t numel = checked_numel(size, op), origin = x.checked(op).storage_offset();
  require(size.size() == stride.size(), ErrorKind::shape, op, "as many strides as sizes, got ", size, " and ", stride);
  const Layout wanted{size, stride, storage_offset.value_or(origin)};
  const int64_t held = x.impl().storage->bytes / size_of(x.dtype());
  require_inside(wanted, numel, held, op);
  const Extent e = extent(wanted);
  const auto within = [&](const Layout& l) { return e.begin >= l.offset && e.end <= l.offset + l.numel(); };
  if (!any_needs_grad(x)) {
    Tensor y = alias(x, wanted);
    const auto place = place_in_base(x, wanted);
    if (!grad_enabled() || !place || !within(base_of(x))) {
      mark_unrecorded(y.impl(), x);
    } else {
      y.impl().unrecorded = x.impl().unrecorded;
      remember_view(y, x, place, view_rules);
    }
    return y;
  }
  // Gradients are traced through positions in a contiguous x; other layouts have no such positions.
  require(x.is_contiguous() && within(layout(x)), ErrorKind::autograd, op,
          "with gradients the input must be contiguous and the result lie within it");
  return make_part(op, x, [=](const Layout& l) { return Layout{size, stride, wanted.offset - origin + l.offset}; });
}

void require_pieces(const Tensor& x, int64_t pieces, const char* op) {
  constexpr int64_t most = 1 << 24;
  require(pieces <= most, ErrorKind::memory, op, pieces, " pieces of shape ", x, " are too many; the most are ", most);
}

std::vector<Tensor> split(const Tensor& x, const Ints& sizes, int64_t dim) {
  const int axis = axis_of(x, dim, "split", 1);
  Checked total = 0;
  for (int64_t n : sizes) {
    require(n >= 0, ErrorKind::shape, "split", "a size is negative: ", n);
    total += n;
  }
  require(total.get() == x.size(axis), ErrorKind::shape, "split", sizes.size(), " sizes",
          total.fits() ? " with sum " + std::to_string(*total.get()) : std::string(), " do not add up to axis ", axis,
          " of shape ", x);
  return within_memory("split", [&] {
    std::vector<Tensor> pieces;
    pieces.reserve(sizes.size());
    int64_t end = 0;
    for (int64_t n : sizes) pieces.push_back(x.narrow(axis, (end += n) - n, n));
    return pieces;
  });
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  const int axis = axis_of(x, dim, "split", 1);
  require(split_size > 0, ErrorKind::argument, "split", "needs a positive size, got ", split_size);
  require_pieces(x, x.size(axis) / split_size, "split");
  return within_memory("split", [&] {
    std::vector<int64_t> sizes;
    for (int64_t rest = x.size(axis); rest > 0 || sizes.empty(); rest -= split_size)
      sizes.push_back(std::min(split_size, rest));
    return split(x, sizes, axis);
  });
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  const int64_t n = x.size(axis_of(x, dim, "chunk", 1));
  require(chunks > 0, ErrorKind::argument, "chunk", "needs a positive number of chunks, got ", chunks);
  require_pieces(x, n == 0 ? chunks : std::min(n, chunks), "chunk");
  return within_memory("chunk", [&] {
    // An axis without elements gives all the pieces, each of them empty.
    if (n == 0) return split(x, std::vector<int64_t>(size_t(chunks)), dim);
    return split(x, (n - 1) / chunks + 1, dim);
  });
}

RowIterator Tensor::begin() const {
  require(checked("begin").dim() > 0, ErrorKind::shape, "begin", "a 0-d tensor has no rows to go along");
  return {*this, 0};
}
RowIterator Tensor::end() const {
  require(checked("end").dim() > 0, ErrorKind::shape, "end", "a 0-d tensor has no rows to go along");
  return {*this, shape()[0]};
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, "unbind", 1);
  require_pieces(x, x.size(axis), "unbind");
  return within_memory("unbind", [&] {
    std::vector<Tensor> pieces;
    pieces.reserve(size_t(x.size(axis)));
    for (int64_t i = 0; i < x.size(axis); ++i) pieces.push_back(x.select(axis, i));
    return pieces;
  });
}

}  // namespace volta
