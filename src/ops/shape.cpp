// Copies: clone, conversion between dtypes and devices, writing into a tensor; and ops that join, repeat and pad.
#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "graph/record.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"
#include "ops/part.h"

namespace volta {
namespace {

Tensor copied(const char* op, const Tensor& x, DType dtype, bool keep_layout) {
  const Device device = x.device();
  Tensor y = keep_layout ? allocate_as(x, dtype, device, op) : allocate(x.shape(), dtype, device, op);
  backend(device).copy(arg(y), arg(x));
  if (!is_floating(dtype)) return y;
  return record(op, std::move(y), {x}, [](const Tensor& g) { return g; });
}

// Across devices only contiguous bytes travel, and between two that are not the CPU by way of it.
Tensor moved(const Tensor& x, Device device) {
  const NoGrad off;
  if (!x.device().is_cpu() && !device.is_cpu()) return moved(moved(x, Device()), device);
  const Tensor source = x.contiguous(), y = allocate(x.shape(), x.dtype(), device, "to");
  reads(source);
  if (x.numel() == 0) return y;
  if (x.device().is_cpu()) backend(device).upload(address(y), address(source), source.nbytes());
  else backend(x.device()).download(address(y), address(source), source.nbytes());
  return y;
}

// The graph of `self`, all of which was just overwritten: by `source`, or by numbers when that is undefined.
void written(const Tensor& self, const Tensor& source, const char* op) {
  bump_version(self);
  if (!is_floating(self.dtype()) || !any_needs_grad(source, self)) return;
  rewrite_history(self, rule_node(op, std::span(&source, 1), [](const Tensor& g) { return g; }));
}

// A result is never x itself, and has a place for every element.
Tensor apart(const Tensor& y, const Tensor& x) {
  return y.shares_storage(x) || layout(y).overlaps_itself() ? y.clone() : y;
}

// Axis `axis` n times over: the whole of it again and again, or each element.
Tensor repeated(const Tensor& x, int axis, int64_t n, bool each, const char* op) {
  if (n == 1) return x;
  Shape shape = x.shape();
  require(!__builtin_mul_overflow(shape[axis], n, &shape[axis]), ErrorKind::shape, op, "too many elements");
  checked_numel(shape, op);
  // As three axes, the middle one repeated, so that the rank does not matter.
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  Shape wide{outer, x.size(axis), inner};
  const Tensor three = x.reshape(wide);
  wide.insert(each ? 2 : 1, n);
  return three.unsqueeze(each ? 2 : 1).expand(wide).reshape(shape);
}

Tensor repeat_axes(const Tensor& x, const Shape& sizes, const char* op) {
  for (int64_t n : sizes)
    require(n >= 0, ErrorKind::argument, op, "the numbers of repetitions ", sizes, " must not be negative");
  return blamed_on(op, [&] {
    Tensor y = x.reshape(joined(Shape::filled(sizes.size() - int(x.dim()), 1), x.shape()));
    for (int i = sizes.size() - 1; i >= 0; --i) y = repeated(y, i, sizes[i], false, op);
    return apart(y, x);
  });
}

Tensor roll_axis(const Tensor& x, int axis, int64_t shift) {
  const int64_t n = x.size(axis);
  if (n == 0 || shift % n == 0) return x;
  const int64_t s = ((shift % n) + n) % n;
  return cat({x.narrow(axis, n - s, s), x.narrow(axis, 0, n - s)}, axis);
}

using Border = PadMode;

// Pairs (before, after) from the last axis on; negative ones cut.
void check_padding(const Tensor& x, const std::vector<int64_t>& pad, Border border) {
  const int rank = int(x.dim());
  require(pad.size() % 2 == 0 && pad.size() / 2 <= size_t(rank), ErrorKind::argument, "pad",
          "pairs of sizes for at most ", rank, " axes are needed, got ", pad.size(), " numbers for shape ", x);
  for (size_t k = 0; k < pad.size(); k += 2) {
    const int axis = rank - 1 - int(k / 2);
    const int64_t before = pad[k], after = pad[k + 1], n = x.shape()[axis], most = std::max(before, after);
    const Checked cut = Checked(std::min<int64_t>(before, 0)) + std::min<int64_t>(after, 0);
    const bool fits = (Checked(n) + before + after).within(0, INT64_MAX) && (n + cut).within(0, n);
    require(fits, ErrorKind::argument, "pad", "axis ", axis, " of shape ", x, " cannot be padded by ", before, " and ",
            after);
    if (border == Border::constant) continue;
    const int64_t left = n + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    const int64_t limit = border == Border::reflect ? n - 1 : border == Border::circular ? left : n == 0 ? n : most;
    require(most <= 0 || most <= limit, ErrorKind::argument, "pad", "axis ", axis, " of shape ", x,
            " is too short to be padded by ", most, " in mode ", choice_names(border)[size_t(border)]);
  }
}

Tensor pad_constant(const Tensor& x, const std::vector<int64_t>& pad, Scalar value) {
  Shape shape = x.shape();
  for (size_t k = 0; k < pad.size(); ++k) shape[shape.size() - 1 - int(k / 2)] += pad[k];
  checked_numel(shape, "pad");
  Layout place = Layout::contiguous(shape);
  Tensor kept = x;
  for (size_t k = 0; k < pad.size(); k += 2) {
    const int axis = shape.size() - 1 - int(k / 2);
    const int64_t cut = std::max<int64_t>(-pad[k], 0), n = x.size(axis) - cut - std::max<int64_t>(-pad[k + 1], 0);
    if (n != x.size(axis)) kept = kept.narrow(axis, cut, n);
    place = views::narrow(place, axis, std::max<int64_t>(pad[k], 0), n);
  }
  return blamed_on("pad", [&] { return embed(kept, shape, place, value); });
}

// What stands beside an axis of x, `count` places of it, at its beginning or its end.
Tensor beside(const Tensor& x, int axis, int64_t count, bool at_end, Border border) {
  const int64_t n = x.size(axis);
  if (border == Border::replicate)
    return x.narrow(axis, at_end ? n - 1 : 0, 1).expand(spliced(x.shape(), axis, 1, {count}));
  if (border == Border::circular) return x.narrow(axis, at_end ? 0 : n - count, count);
  return x.narrow(axis, at_end ? n - 1 - count : 1, count).flip(axis);
}

Tensor pad_axis(const Tensor& x, int axis, int64_t before, int64_t after, Border border) {
  if (before == 0 && after == 0) return x;
  checked_numel(spliced(x.shape(), axis, 1, {x.size(axis) + before + after}), "pad");
  const int64_t from = std::max<int64_t>(-before, 0), end = x.size(axis) - std::max<int64_t>(-after, 0);
  const Tensor kept = x.narrow(axis, from, end - from);
  const Tensor& source = border == Border::circular ? kept : x;  // what is left after cutting goes round
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(beside(source, axis, before, false, border));
  parts.push_back(kept);
  if (after > 0) parts.push_back(beside(source, axis, after, true, border));
  return blamed_on("pad", [&] { return cat(parts, axis); });
}

// Where a triangle is not: true above the diagonal of a lower one, below that of an upper one.
Tensor beyond_triangle(const Tensor& x, int64_t diagonal, bool lower, const char* op) {
  axis_of(x, 0, op, 2);
  const int64_t rows = x.size(-2), cols = x.size(-1), k = std::clamp(diagonal, -rows - 1, cols + 1);
  const Tensor row = (counting(rows, x) + k).unsqueeze(1), column = counting(cols, x);
  return lower ? column > row : column < row;
}
Tensor triangle(const Tensor& x, int64_t diagonal, bool lower, const char* op) {
  return where(beyond_triangle(x, diagonal, lower, op), false, x);
}

}  // namespace

Tensor clone(const Tensor& x) {
  const DType dtype = x.checked("clone").dtype();
  return copied("clone", x, dtype, true);
}

Tensor contiguous(const Tensor& x) {
  return x.checked("contiguous").is_contiguous() ? x : copied("contiguous", x, x.dtype(), false);
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.checked("to").dtype() == dtype) return x;
  require_dtype(dtype, "to");
  return copied("to", x, dtype, true);
}

Tensor to(const Tensor& x, const Device& device) {
  const Device from = x.checked("to").device();
  if (from == device) return x;
  backend(device);  // throws when there is no such device
  return record("to", moved(x.detach(), device), {x}, [from](const Tensor& g) { return g.to(from); });
}

Tensor to(const Tensor& x, const Device& device, DType dtype) {
  require_dtype(dtype, "to");
  // The fewer bytes travel.
  const bool first = size_of(dtype) < size_of(x.checked("to").dtype());
  return first ? x.to(dtype).to(device) : x.to(device).to(dtype);
}

Tensor type_as(const Tensor& x, const Tensor& other) {
  return x.checked("type_as").to(other.checked("type_as").dtype()).to(other.device());
}

Tensor& Tensor::copy_(const Tensor& source) & {
  const char* op = "copy_";
  source.checked(op);
  const Tensor local = source.device() == checked(op).device() ? source : source.to(device());
  Tensor wide = local;
  if (local.shape() != shape()) wide = blamed_on(op, [&] { return local.expand(shape()); });
  require_writable(*this, op);
  if (overlaps(*this, wide)) wide = wide.clone();
  if (impl_pointer() == wide.impl_pointer()) return *this;
  if (is_floating(dtype()) && any_needs_grad(wide)) require_recorded_view(*this, op);
  // The same values may still come with another graph.
  if (!same_memory(*this, wide) || layout(*this) != layout(wide)) backend(device()).copy(arg(*this), arg(wide));
  written(*this, wide, op);
  return *this;
}

Tensor& Tensor::fill_(const Operand& value) & {
  const char* op = "fill_";
  if (value.tensor) {
    const Tensor& v = value.tensor->checked(op);
    require(v.numel() == 1, ErrorKind::shape, op, "needs a number or a tensor of one element, got shape ", v);
    return copy_(v.reshape({}));
  }
  require_storable(value.scalar, checked(op).dtype(), op);
  require_writable(*this, op);
  backend(device()).copy(arg(*this), arg(value));
  written(*this, {}, op);
  return *this;
}

Tensor& Tensor::zero_() & { return fill_(0); }

Tensor& Tensor::tril_(int64_t diagonal) & {
  const Tensor beyond = beyond_triangle(*this, diagonal, true, "tril_");
  return blamed_on("tril_", [&]() -> Tensor& { return masked_fill_(beyond, 0); });
}
Tensor& Tensor::triu_(int64_t diagonal) & {
  const Tensor beyond = beyond_triangle(*this, diagonal, false, "triu_");
  return blamed_on("triu_", [&]() -> Tensor& { return masked_fill_(beyond, 0); });
}

Tensor& Tensor::fill_diagonal_(const Operand& value, bool wrap) & {
  const char* op = "fill_diagonal_";
  axis_of(*this, 0, op, 2);
  for (const int64_t size : shape())
    require(dim() == 2 || size == shape()[0], ErrorKind::shape, op,
            "more than two axes must be of one size, got shape ", *this);
  if (numel() == 0) return *this;
  const int64_t rows = shape()[0], square = wrap && dim() == 2 ? shape()[1] + 1 : rows;
  for (int64_t from = 0; from < rows; from += square) {
    Tensor part = narrow(0, from, rows - from);
    while (part.dim() > 1) part = part.diagonal(0, 0, part.dim() - 1);
    blamed_on(op, [&] { part.fill_(value); });
  }
  return *this;
}

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) {
  const char* op = "cat";
  require(!tensors.empty(), ErrorKind::argument, op, "needs at least one tensor");
  // As in PyTorch, a tensor of shape [0] joins any others.
  const auto joins_any = [&](const Tensor& t) { return t.checked(op).shape() == Shape{0}; };
  const auto shaped = std::find_if_not(tensors.begin(), tensors.end(), joins_any);
  const Tensor& first = shaped == tensors.end() ? tensors[0] : *shaped;
  require(first.dim() > 0, ErrorKind::shape, op, "0-d tensors have no axis to join along; use stack");
  const int axis = axis_of(first, dim, op);
  Shape shape = first.shape();
  DType dtype = first.dtype();
  std::vector<int64_t> starts{0};
  for (const Tensor& t : tensors) {
    common_device(first, t, op);
    dtype = promote(dtype, t.dtype());
    if (joins_any(t)) {
      starts.push_back(starts.back());
      continue;
    }
    if (t.dim() == first.dim()) shape[axis] = t.shape()[axis];
    require(t.shape() == shape, ErrorKind::shape, op, first, " and ", t, " must agree on every axis but ", axis);
    starts.push_back((Checked(starts.back()) + shape[axis]).value(op));
  }
  shape[axis] = starts.back();
  Tensor y = allocate(shape, dtype, first.device(), op);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Layout part = views::narrow(layout(y), axis, starts[i], starts[i + 1] - starts[i]);
    if (tensors[i].numel() > 0) backend(y.device()).copy(arg(alias(y, part)), arg(tensors[i]));
  }
  if (!is_floating(dtype)) return y;
  std::vector<bool> skipped;
  for (const Tensor& t : tensors) skipped.push_back(joins_any(t));
  return record(op, std::move(y), std::span(tensors), [axis, starts, skipped](const Tensor& g, Gradients& d) {
    for (size_t i = 0; i < d.size(); ++i)
      if (d.needs(i))
        d[i] = skipped[i] ? zeros({0}, {g.dtype(), g.device()}) : g.narrow(axis, starts[i], starts[i + 1] - starts[i]);
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  const char* op = "stack";
  require(!tensors.empty(), ErrorKind::argument, op, "needs at least one tensor");
  const Shape& shape = tensors[0].checked(op).shape();
  const int axis = normalize_axis(dim, shape.size() + 1, shape, op);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    require(t.checked(op).shape() == shape, ErrorKind::shape, op, "shapes ", shape, " and ", t, " differ");
    common_device(tensors[0], t, op);
    parts.push_back(blamed_on(op, [&] { return t.unsqueeze(axis); }));
  }
  return cat(parts, axis);
}

Tensor roll(const Tensor& x, const Axes& shifts, const Axes& dims) {
  const char* op = "roll";
  const Shape &by = shifts.list(), &axes = dims.list();
  x.checked(op);
  if (dims.all()) {
    require(by.size() == 1, ErrorKind::argument, op, "without axes one shift is needed, got ", by);
    return apart(roll_axis(x.reshape({x.numel()}), 0, by[0]).reshape(x.shape()), x);
  }
  require(by.size() == axes.size(), ErrorKind::argument, op, "as many shifts as axes are needed, got ", by, " and ",
          axes);
  for (int64_t a : axes) axis_of(x, a, op);
  Tensor y = x;
  for (int i = 0; i < axes.size() && x.dim() > 0; ++i) y = roll_axis(y, axis_of(x, axes[i], op), by[i]);
  return apart(y, x);
}

Tensor tile(const Tensor& x, const Shape& dims) {
  const int missing = std::max(0, int(x.checked("tile").dim()) - dims.size());
  return repeat_axes(x, joined(Shape::filled(missing, 1), dims), "tile");
}

Tensor repeat(const Tensor& x, const Shape& sizes) {
  require(sizes.size() >= x.checked("repeat").dim(), ErrorKind::argument, "repeat", "a number for every axis of shape ",
          x, " is needed, got ", sizes);
  return repeat_axes(x, sizes, "repeat");
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  const char* op = "repeat_interleave";
  const int axis = axis_of(x, dim.value_or(0), op);
  require(repeats >= 0, ErrorKind::argument, op, "the number of repetitions is negative: ", repeats);
  const bool flat = !dim || x.dim() == 0;
  return blamed_on(
      op, [&] { return apart(repeated(flat ? x.reshape({x.numel()}) : x, flat ? 0 : axis, repeats, true, op), x); });
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim) {
  const char* op = "repeat_interleave";
  const int axis = axis_of(x, dim.value_or(0), op);
  const Tensor n = as_index(repeats, op), source = dim && x.dim() > 0 ? x : x.reshape({x.numel()});
  common_device(x, n, op);
  const int64_t size = source.size(axis);
  require(n.dim() <= 1 && (n.numel() == 1 || n.numel() == size), ErrorKind::shape, op, "repeats of shape ", n,
          " do not fit ", size, " elements along axis ", axis);
  require(n.numel() == 0 || read_for<int64_t>(op, amin(n)) >= 0, ErrorKind::argument, op,
          "a number of repetitions is negative");
  if (size == 0) return source.clone();
  const Tensor each = n.reshape({n.numel()}).expand({size});
  require(read_for<double>(op, each.to(f64).sum()) < 0x1p59, ErrorKind::shape, op, "too many elements");
  return blamed_on(op, [&] {
    const Tensor ends = each.cumsum(0), places = counting(ends.select(0, size - 1).item<int64_t>(), x);
    return pick_slices(op, source, axis, searchsorted(ends, places, {.right = true}));
  });
}

Tensor pad(const Tensor& x, const Ints& pairs, const PadOptions& options) {
  const std::vector<int64_t>& pad = pairs;
  const Border border = options.mode.of("pad", "mode");
  check_padding(x.checked("pad"), pad, border);
  if (border == Border::constant) return pad_constant(x, pad, factor_for(options.value, x.dtype(), "pad"));
  Shape all = x.shape();
  for (size_t k = 0; k < pad.size(); ++k) all[all.size() - 1 - int(k / 2)] += pad[k];
  checked_numel(all, "pad");
  Tensor y = x;
  for (size_t k = 0; k < pad.size(); k += 2) y = pad_axis(y, int(x.dim()) - 1 - int(k / 2), pad[k], pad[k + 1], border);
  return apart(y, x);
}

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle(x, diagonal, true, "tril"); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle(x, diagonal, false, "triu"); }

Tensor diag(const Tensor& x, int64_t diagonal) {
  const int64_t rank = x.checked("diag").dim();
  if (rank == 2) return volta::diagonal(x, diagonal).clone();
  require(rank == 1, ErrorKind::shape, "diag", "needs one or two axes, got shape ", x);
  const Checked below = diagonal;
  const int64_t n = (x.numel() + (diagonal < 0 ? -below : below)).value("diag");
  checked_numel({n, n}, "diag");
  return embed(x, {n, n}, views::diagonal(Layout::contiguous({n, n}), diagonal, 0, 1));
}

}  // namespace volta
