// Ops that join, repeat and pad.
#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/index.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

int axis_of(const Tensor& x, int64_t dim, const char* op) {
  return normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
}

// The shape and dtype of tensors joined along an axis.
struct Joined {
  Shape shape;
  DType dtype;
  int axis;
};

Joined join(const std::vector<Tensor>& tensors, int64_t dim) {
  const char* op = "cat";
  if (tensors.empty()) throw Error(Error::Kind::argument, op, "needs at least one tensor");
  const Tensor& first = tensors[0].checked(op);
  if (first.dim() == 0) throw Error(Error::Kind::shape, op, "0-d tensors have no axis to join along; use stack");
  Joined j{first.shape(), first.dtype(), normalize_axis(dim, int(first.dim()), first.shape(), op)};
  j.shape[j.axis] = 0;
  for (const Tensor& t : tensors) {
    common_device(first, t.checked(op), op);
    Shape expected = j.shape;
    if (t.dim() == expected.size()) expected[j.axis] = t.size(j.axis);
    if (t.shape() != expected)
      throw Error(
          Error::Kind::shape, op,
          first.shape().str() + " and " + t.shape().str() + " must agree on every axis but " + std::to_string(j.axis));
    j.shape[j.axis] += t.size(j.axis);
    j.dtype = promote(j.dtype, t.dtype());
  }
  return j;
}

// Axis `axis` of x as the middle one of three.
Tensor around(const Tensor& x, int axis) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.dim(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape()[i];
  return x.reshape({outer, x.shape()[axis], inner});
}

// Axis `axis` n times over: the whole of it again and again, or each element.
Tensor repeated(const Tensor& x, int axis, int64_t n, bool each) {
  if (n == 1) return x;
  const Tensor three = around(x, axis);
  Shape wide{three.size(0), three.size(1), three.size(2)};
  wide.insert(each ? 2 : 1, n);
  Shape shape = x.shape();
  if (__builtin_mul_overflow(shape[axis], n, &shape[axis]))
    throw Error(Error::Kind::shape, "repeat", "too many elements");
  checked_numel(shape, "repeat");
  return three.unsqueeze(each ? 2 : 1).expand(wide).reshape(shape);
}

Tensor repeat_axes(const Tensor& x, const Shape& sizes, const char* op) {
  for (int64_t n : sizes)
    if (n < 0)
      throw Error(Error::Kind::argument, op, "the numbers of repetitions " + sizes.str() + " must not be negative");
  Shape shape = x.shape();
  while (shape.size() < sizes.size()) shape.insert(0, 1);
  Tensor y = x.reshape(shape);
  for (int i = shape.size() - 1; i >= 0; --i) y = repeated(y, i, sizes[i], false);
  return y.shares_storage(x) ? y.clone() : y;
}

Tensor roll_axis(const Tensor& x, int axis, int64_t shift) {
  const int64_t n = x.size(axis);
  if (n == 0) return x;
  const int64_t s = ((shift % n) + n) % n;
  return s == 0 ? x : cat({x.narrow(axis, n - s, s), x.narrow(axis, 0, n - s)}, axis);
}

struct Padding {
  Shape before, after;
};

Padding padding_of(const Tensor& x, const std::vector<int64_t>& pad) {
  const int rank = int(x.dim());
  if (pad.size() % 2 != 0 || pad.size() / 2 > size_t(rank))
    throw Error(Error::Kind::argument, "pad",
                "pairs of sizes for at most " + std::to_string(rank) + " axes are needed, got " +
                    std::to_string(pad.size()) + " numbers for shape " + x.shape().str());
  Padding p{Shape::filled(rank, 0), Shape::filled(rank, 0)};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    p.before[rank - 1 - int(i)] = pad[2 * i];
    p.after[rank - 1 - int(i)] = pad[2 * i + 1];
  }
  for (int i = 0; i < rank; ++i) {
    int64_t size = x.shape()[i];
    const bool fits = !__builtin_add_overflow(size, p.before[i], &size) &&
                      !__builtin_add_overflow(size, p.after[i], &size) && size >= 0 &&
                      x.shape()[i] + std::min<int64_t>(p.before[i], 0) + std::min<int64_t>(p.after[i], 0) >= 0;
    if (!fits)
      throw Error(Error::Kind::argument, "pad",
                  "axis " + std::to_string(i) + " of shape " + x.shape().str() + " cannot be padded by " +
                      std::to_string(p.before[i]) + " and " + std::to_string(p.after[i]));
  }
  return p;
}

Tensor pad_constant(const Tensor& x, const Padding& p, double value) {
  Shape shape = x.shape();
  for (int i = 0; i < shape.size(); ++i) shape[i] += p.before[i] + p.after[i];
  checked_numel(shape, "pad");
  Tensor y = full(shape, is_floating(x.dtype()) ? Scalar(value) : Scalar(int64_t(value)),
                  {.dtype = x.dtype(), .device = x.device()});
  Layout from = layout(x), to = layout(y);
  for (int i = 0; i < shape.size(); ++i) {
    const int64_t cut = std::max<int64_t>(-p.before[i], 0),
                  kept = x.shape()[i] - cut - std::max<int64_t>(-p.after[i], 0);
    from = views::narrow(from, i, cut, kept);
    to = views::narrow(to, i, std::max<int64_t>(p.before[i], 0), kept);
  }
  const Tensor source = alias(x, from), target = alias(y, to);
  backend(x.device()).copy(arg(target), arg(source));
  return record("pad", std::move(y), {x}, [p](const Tensor& g, Gradients& d) {
    Padding back = p;
    for (int64_t& n : back.before) n = -n;
    for (int64_t& n : back.after) n = -n;
    d[0] = pad_constant(g, back, 0);
  });
}

enum class Border { reflect, replicate, circular };

int64_t source_of(int64_t i, int64_t n, Border edge) {
  if (edge == Border::replicate) return std::clamp<int64_t>(i, 0, n - 1);
  if (edge == Border::circular) return i < 0 ? i + n : i >= n ? i - n : i;
  return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

Tensor pad_axis(const Tensor& x, int axis, int64_t before, int64_t after, Border edge) {
  const int64_t n = x.size(axis);
  std::vector<int64_t> index;
  for (int64_t i = -before; i < n + after; ++i) index.push_back(source_of(i, n, edge));
  return pick_slices("pad", x, axis, tensor(index).to(x.device()));
}

void require_edge(const Tensor& x, const Padding& p, Border edge) {
  for (int i = 0; i < x.dim(); ++i) {
    const int64_t n = x.size(i), most = std::max(p.before[i], p.after[i]);
    const bool fits = edge == Border::reflect ? most < n : edge == Border::circular ? most <= n : n > 0;
    if (most > 0 && !fits)
      throw Error(Error::Kind::argument, "pad",
                  "axis " + std::to_string(i) + " of shape " + x.shape().str() + " is too short to be padded by " +
                      std::to_string(most) +
                      (edge == Border::reflect    ? " in mode reflect"
                       : edge == Border::circular ? " in mode circular"
                                                  : " in mode replicate"));
  }
}

Tensor triangle(const Tensor& x, int64_t diagonal, bool lower, const char* op) {
  if (x.checked(op).dim() < 2)
    throw Error(Error::Kind::shape, op, "needs at least 2 axes, got shape " + x.shape().str());
  const int64_t rows = x.size(-2), cols = x.size(-1), k = std::clamp(diagonal, -rows - 1, cols + 1);
  const Options options{.dtype = i64, .device = x.device()};
  const Tensor row = arange(k, rows + k, 1, options).unsqueeze(1), column = arange(0, cols, 1, options);
  return where(lower ? column <= row : column >= row, x, false);
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) {
  const Joined j = join(tensors, dim);
  Tensor y = allocate(j.shape, j.dtype, tensors[0].device(), "cat");
  int64_t start = 0;
  std::vector<int64_t> starts;
  for (const Tensor& t : tensors) {
    const int64_t length = t.size(j.axis);
    const Tensor target = alias(y, views::narrow(layout(y), j.axis, start, length));
    if (t.numel() > 0) backend(y.device()).copy(arg(target), arg(t));
    starts.push_back(start);
    start += length;
  }
  starts.push_back(start);
  if (!is_floating(j.dtype)) return y;
  return record("cat", std::move(y), std::span(tensors), [axis = j.axis, starts](const Tensor& g, Gradients& d) {
    for (size_t i = 0; i < d.size(); ++i)
      if (d.needs(i)) d[i] = g.narrow(axis, starts[i], starts[i + 1] - starts[i]);
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  const char* op = "stack";
  if (tensors.empty()) throw Error(Error::Kind::argument, op, "needs at least one tensor");
  const Shape& shape = tensors[0].checked(op).shape();
  const int axis = normalize_axis(dim, shape.size() + 1, shape, op);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    if (t.checked(op).shape() != shape)
      throw Error(Error::Kind::shape, op, "shapes " + shape.str() + " and " + t.shape().str() + " differ");
    parts.push_back(t.unsqueeze(axis));
  }
  return cat(parts, axis);
}

Tensor roll(const Tensor& x, const Axes& shifts, const Axes& dims) {
  const char* op = "roll";
  const Shape& by = shifts.list();
  x.checked(op);
  if (dims.all()) {
    if (by.size() != 1) throw Error(Error::Kind::argument, op, "without axes one shift is needed, got " + by.str());
    return x.numel() == 0 ? x.clone() : roll_axis(x.reshape({x.numel()}), 0, by[0]).reshape(x.shape());
  }
  if (by.size() != dims.list().size())
    throw Error(Error::Kind::argument, op,
                "as many shifts as axes are needed, got " + by.str() + " and " + dims.list().str());
  Shape axes;
  for (int64_t a : dims.list()) axes.push_back(axis_of(x, a, op));
  Tensor y = x;
  for (int i = 0; i < axes.size() && x.dim() > 0; ++i) y = roll_axis(y, int(axes[i]), by[i]);
  return y.shares_storage(x) ? y.clone() : y;
}

Tensor tile(const Tensor& x, const Shape& dims) {
  Shape sizes = dims;
  while (sizes.size() < x.checked("tile").dim()) sizes.insert(0, 1);
  return repeat_axes(x, sizes, "tile");
}

Tensor repeat(const Tensor& x, const Shape& sizes) {
  if (sizes.size() < x.checked("repeat").dim())
    throw Error(Error::Kind::argument, "repeat",
                "a number for every axis of shape " + x.shape().str() + " is needed, got " + sizes.str());
  return repeat_axes(x, sizes, "repeat");
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  const char* op = "repeat_interleave";
  x.checked(op);
  if (repeats < 0)
    throw Error(Error::Kind::argument, op, "the number of repetitions is negative: " + std::to_string(repeats));
  if (!dim || x.dim() == 0) {
    if (dim) axis_of(x, *dim, op);
    const Tensor y = repeated(x.reshape({x.numel()}), 0, repeats, true);
    return y.shares_storage(x) ? y.clone() : y;
  }
  const Tensor y = repeated(x, axis_of(x, *dim, op), repeats, true);
  return y.shares_storage(x) ? y.clone() : y;
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim) {
  const char* op = "repeat_interleave";
  x.checked(op);
  Tensor n = as_index(repeats, op);
  common_device(x, n, op);
  const Tensor source = dim && x.dim() > 0 ? x : x.reshape({x.numel()});
  const int axis = dim ? axis_of(source, *dim, op) : 0;
  const int64_t size = source.size(axis);
  if (n.dim() > 1 || (n.numel() != 1 && n.numel() != size))
    throw Error(Error::Kind::shape, op,
                "repeats of shape " + n.shape().str() + " do not fit " + std::to_string(size) +
                    " elements along axis " + std::to_string(axis));
  if (n.numel() > 0 && amin(n).item<int64_t>() < 0)
    throw Error(Error::Kind::argument, op, "a number of repetitions is negative");
  const Options options{.dtype = i64, .device = x.device()};
  if (size == 0) return source.clone();
  const Tensor ends = n.reshape({n.numel()}).expand({size}).cumsum(0);
  const int64_t total = ends.select(0, size - 1).item<int64_t>();
  return pick_slices(op, source, axis, searchsorted(ends, arange(0, total, 1, options), {.right = true}));
}

Tensor pad(const Tensor& x, const std::vector<int64_t>& pad, const PadOptions& options) {
  const char* op = "pad";
  const Padding p = padding_of(x.checked(op), pad);
  if (options.mode == "constant") {
    require_storable(options.value, x.dtype(), op);
    return pad_constant(x, p, options.value);
  }
  const bool known = options.mode == "reflect" || options.mode == "replicate" || options.mode == "circular";
  if (!known)
    throw Error(Error::Kind::argument, op,
                "mode is one of constant, reflect, replicate, circular; got " + options.mode);
  const Border edge = options.mode == "reflect"     ? Border::reflect
                      : options.mode == "replicate" ? Border::replicate
                                                    : Border::circular;
  require_edge(x, p, edge);
  Tensor y = x;
  for (int i = int(x.dim()) - 1; i >= 0; --i)
    if (p.before[i] != 0 || p.after[i] != 0) y = pad_axis(y, i, p.before[i], p.after[i], edge);
  return y.shares_storage(x) ? y.clone() : y;
}

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle(x, diagonal, true, "tril"); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle(x, diagonal, false, "triu"); }

Tensor diag(const Tensor& x, int64_t diagonal) {
  const int64_t rank = x.checked("diag").dim();
  if (rank == 2) return volta::diagonal(x, diagonal).clone();
  if (rank != 1) throw Error(Error::Kind::shape, "diag", "needs one or two axes, got shape " + x.shape().str());
  const int64_t n = x.numel() + std::abs(diagonal);
  checked_numel({n, n}, "diag");
  return embed(x, {n, n}, views::diagonal(Layout::contiguous({n, n}), diagonal, 0, 1));
}

}  // namespace volta
