// Gather, scatter and their kin.
#include "ops/index.h"

#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/cpu/cpu.h"
#include "ops/pointwise.h"

namespace volta {

Tensor as_index(const Tensor& index, const char* op) {
  const DType dtype = index.checked(op).dtype();
  if (!is_integral(dtype))
    throw Error(Error::Kind::dtype, op, "an index must be of integers, got " + std::string(name(dtype)));
  if (dtype == u64) return index.clamp_max(std::numeric_limits<int64_t>::max()).to(i64);
  return index.to(i64);
}

void check_indices(const Tensor& index, int64_t size, int axis, const char* op) {
  if (index.numel() == 0 || !index.device().is_cpu()) return;
  const cpu::IndexRange range = cpu::index_range(arg(index));
  if (range.low >= -size && range.high < size) return;
  throw Error(Error::Kind::index, op,
              "index " + std::to_string(range.low < -size ? range.low : range.high) + " is out of range for axis " +
                  std::to_string(axis) + " of size " + std::to_string(size));
}

void require_storable(const Scalar& value, DType dtype, const char* op) {
  if (!value.is_floating() || is_floating(dtype)) return;
  const double v = value.as<double>();
  if (!std::isfinite(v) || v != std::trunc(v))
    throw Error(Error::Kind::dtype, op, std::to_string(v) + " cannot be stored in " + std::string(name(dtype)));
}

Tensor with_axis(const Tensor& x) { return x.dim() == 0 ? x.reshape({1}) : x; }

Tensor spread_index(const Tensor& index, const Shape& shape, int axis) {
  Layout spread{shape, Shape::filled(shape.size(), 0), layout(index).offset};
  if (index.dim() > 0) spread.strides[axis] = layout(index).strides[0];
  return alias(index, spread);
}

Tensor pick(const char* op, const Tensor& x, int axis, const Tensor& index) {
  Tensor y = allocate(index.shape(), x.dtype(), x.device(), op);
  backend(x.device()).gather({arg(y), arg(x), arg(index), axis});
  if (!any_needs_grad(x)) return y;
  return record(op, std::move(y), {x},
                [op, shape = x.shape(), axis, kept = save(index)](const Tensor& g, Gradients& d) {
                  d[0] = place_add(op, shape, axis, d.take(kept), g);
                });
}

Tensor place_add(const char* op, const Shape& shape, int axis, const Tensor& index, const Tensor& src) {
  Tensor sum;
  {
    const NoGrad off;
    const DType dtype = traits(src.dtype()).compute;  // halves add up in f32
    sum = zeros(shape, {.dtype = dtype, .device = src.device()});
    const Tensor values = src.to(dtype);
    backend(src.device()).scatter({Combine::add, arg(sum), arg(values), arg(index), axis});
    sum = sum.to(src.dtype());
  }
  if (!any_needs_grad(src)) return sum;
  return record(op, std::move(sum), {src}, [op, axis, kept = save(index)](const Tensor& g, Gradients& d) {
    d[0] = pick(op, g, axis, d.take(kept));
  });
}

Tensor scattered(const char*, Combine combine, const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  const NoGrad off;
  const bool sums = combine == Combine::add || combine == Combine::multiply;
  const DType dtype = sums ? traits(x.dtype()).compute : x.dtype();
  const Tensor out = dtype == x.dtype() ? x.clone() : x.to(dtype), values = src.to(dtype);
  backend(x.device()).scatter({combine, arg(out), arg(values), arg(index), axis});
  return out.to(x.dtype());
}

Tensor pick_slices(const char* op, const Tensor& x, int axis, const Tensor& index) {
  Shape shape = x.shape();
  shape[axis] = index.numel();
  checked_numel(shape, op);
  return pick(op, x, axis, spread_index(index, shape, axis));
}

namespace {

Shape one_axis(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

void same_dtype(const Tensor& x, const Tensor& src, const char* op) {
  if (x.dtype() != src.dtype())
    throw Error(Error::Kind::dtype, op,
                "the tensor is " + std::string(name(x.dtype())) + " but the source " + std::string(name(src.dtype())));
}

// Arguments of gather and the scatters, checked; 0-d tensors count as one axis of one element.
struct Along {
  Tensor x, index, src;
  int axis;
};

void require_fits(const Shape& index, const Shape& other, int except, const char* what, const char* op) {
  bool fits = index.size() == other.size();
  for (int i = 0; fits && i < index.size(); ++i) fits = i == except || index[i] <= other[i];
  if (!fits)
    throw Error(Error::Kind::shape, op,
                "an index of shape " + index.str() + " does not fit " + what + " of shape " + other.str());
}

Along along(const Tensor& x, int64_t dim, const Tensor& index, const Tensor* src, const char* op) {
  x.checked(op);
  const Tensor i = as_index(index, op);
  common_device(x, i, op);
  Along a{{}, {}, {}, normalize_axis(dim, int(x.dim()), x.shape(), op)};
  if (i.numel() > 0) require_fits(one_axis(i.shape()), one_axis(x.shape()), a.axis, "a tensor", op);
  if (src) {
    common_device(x, src->checked(op), op);
    same_dtype(x, *src, op);
    if (i.numel() > 0) require_fits(one_axis(i.shape()), one_axis(src->shape()), -1, "a source", op);
  }
  check_indices(i, one_axis(x.shape())[a.axis], a.axis, op);
  a.x = with_axis(x);
  a.index = with_axis(i);
  if (src) {
    a.src = with_axis(*src);
    for (int k = 0; k < a.index.dim() && i.numel() > 0; ++k)
      if (a.src.size(k) != a.index.size(k)) a.src = a.src.narrow(k, 0, a.index.size(k));
  }
  return a;
}

// Which of the values that meet in one place are the last, and so stay.
Tensor kept_values(const Shape& shape, int axis, const Tensor& index) {
  const NoGrad off;
  const Tensor order = arange(0, index.size(axis), 1, {.dtype = i64, .device = index.device()});
  const Tensor position = spread_index(order, index.shape(), axis);
  const Tensor last =
      scattered("scatter", Combine::set, zeros(shape, {.dtype = i64, .device = index.device()}), axis, index, position);
  return pick("scatter", last, axis, index) == position;
}

Tensor put(const char* op, const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  Tensor y = scattered(op, Combine::set, x, axis, index, src);
  if (!any_needs_grad(x, src)) return y;
  return record(op, std::move(y), {x, src}, [op, axis, kept = save(index)](const Tensor& g, Gradients& d) {
    const Tensor i = d.take(kept);
    if (d.needs(0))
      d[0] = put(op, g, axis, i, spread_index(zeros({}, {.dtype = g.dtype(), .device = g.device()}), i.shape(), axis));
    if (d.needs(1)) d[1] = where(kept_values(g.shape(), axis, i), pick(op, g, axis, i), 0);
  });
}

Tensor add_at(const char* op, const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  Tensor y = scattered(op, Combine::add, x, axis, index, src);
  if (!any_needs_grad(x, src)) return y;
  return record(op, std::move(y), {x, src}, [op, axis, kept = save(index)](const Tensor& g, Gradients& d) {
    if (d.needs(0)) d[0] = g;
    if (d.needs(1)) d[1] = pick(op, g, axis, d.take(kept));
  });
}

// The product of all factors of a place but `value`: y is the whole product, `others` that of the factors that are not 0,
// `zeros` counts the rest and `sum` adds them up (so that second derivatives see them).
Tensor product_without(const Tensor& value, const Tensor& y, const Tensor& others, const Tensor& zeros,
                       const Tensor& sum) {
  const Tensor zero = value == 0;
  const Tensor without = where(zeros == 1, others, where(zeros == 2, others * (sum - value), 0));
  return where(zero, without, y / where(zero, 1, value));
}

Tensor multiply_at(const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  const char* op = "scatter_reduce";
  Tensor y = scattered(op, Combine::multiply, x, axis, index, src);
  if (!any_needs_grad(x, src)) return y;
  return record(
      op, y, {x, src},
      [op, axis, i = save(index), a = save(x), b = save(src), out = save_output(y)](const Tensor& g, Gradients& d) {
        const Tensor at = d.take(i), self = d.take(a), values = d.take(b), whole = d.take(out);
        const Tensor self_zero = self == 0, zero = values == 0;
        const Tensor zeros = self_zero.to(i64) + place_add(op, self.shape(), axis, at, zero.to(i64));
        const Tensor others = multiply_at(where(self_zero, 1, self), axis, at, where(zero, 1, values));
        const Tensor sum = add_at(op, where(self_zero, self, 0), axis, at, where(zero, values, 0));
        const auto there = [&](const Tensor& t) { return pick(op, t, axis, at); };
        if (d.needs(0)) d[0] = g * product_without(self, whole, others, zeros, sum);
        if (d.needs(1))
          d[1] = there(g) * product_without(values, there(whole), there(others), there(zeros), there(sum));
      });
}

// Tied elements share the gradient.
Tensor extreme_at(Combine which, const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  const char* op = "scatter_reduce";
  Tensor y = scattered(op, which, x, axis, index, src);
  if (!any_needs_grad(x, src)) return y;
  return record(
      op, y, {x, src},
      [op, axis, i = save(index), a = save(x), b = save(src), out = save_output(y)](const Tensor& g, Gradients& d) {
        const Tensor at = d.take(i);
        Tensor self_wins, wins, share;
        {
          const NoGrad off;
          const Tensor best = d.take(out);
          self_wins = d.take(a) == best;
          wins = d.take(b) == pick(op, best, axis, at);
          share = (self_wins.to(i64) + place_add(op, best.shape(), axis, at, wins.to(i64))).clamp_min(1).to(g.dtype());
        }
        const Tensor shared = g / share;
        if (d.needs(0)) d[0] = where(self_wins, shared, 0);
        if (d.needs(1)) d[1] = where(wins, pick(op, shared, axis, at), 0);
      });
}

// What does not change a maximum (or minimum) of this dtype.
Scalar neutral(DType dtype, bool largest) {
  if (is_floating(dtype)) return largest ? -INFINITY : INFINITY;
  return visit(dtype, [&]<class T>(TypeTag<T>) -> Scalar {
    if constexpr (std::is_integral_v<T>)
      return largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    else return 0;
  });
}

Tensor single(Scalar value, const Tensor& like, const Shape& shape) {
  return spread_index(full({}, value, {.dtype = like.dtype(), .device = like.device()}), shape, 0);
}

Tensor mean_at(const Tensor& x, int axis, const Tensor& index, const Tensor& src, bool include_self) {
  const char* op = "scatter_reduce";
  Tensor count;
  {
    const NoGrad off;
    const Tensor one = ones({}, {.dtype = i64, .device = x.device()});
    const Tensor once = spread_index(one, x.shape(), 0), each = spread_index(one, index.shape(), 0);
    const Tensor start = include_self ? once.contiguous() : put(op, once, axis, index, each - 1);
    count = scattered(op, Combine::add, start, axis, index, each).clamp_min(1);
  }
  const Tensor start = include_self ? x : put(op, x, axis, index, single(0, x, index.shape()));
  const Tensor sum = add_at(op, start, axis, index, src);
  return is_floating(x.dtype()) ? sum / count.to(x.dtype()) : floor_divide(sum, count.to(x.dtype()));
}

Tensor reduce_at(const Along& a, const std::string& reduce, bool include_self) {
  const char* op = "scatter_reduce";
  const auto start = [&](Scalar value) {
    return include_self ? a.x : put(op, a.x, a.axis, a.index, single(value, a.x, a.index.shape()));
  };
  if (reduce == "sum") return add_at(op, start(0), a.axis, a.index, a.src);
  if (reduce == "mean") return mean_at(a.x, a.axis, a.index, a.src, include_self);
  if (reduce == "prod") return multiply_at(start(1), a.axis, a.index, a.src);
  if (reduce == "amax") return extreme_at(Combine::max, start(neutral(a.x.dtype(), true)), a.axis, a.index, a.src);
  return extreme_at(Combine::min, start(neutral(a.x.dtype(), false)), a.axis, a.index, a.src);
}

// A 1-D index (or one number), checked for an axis of x.
Tensor slices_index(const Tensor& x, int axis, const Tensor& index, const char* op) {
  const Tensor i = as_index(index, op);
  if (i.dim() > 1) throw Error(Error::Kind::shape, op, "the index must have one axis, got shape " + i.shape().str());
  common_device(x, i, op);
  check_indices(i, x.dim() == 0 ? 1 : x.size(axis), axis, op);
  return with_axis(i);
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const Along a = along(x, dim, index, nullptr, "gather");
  return pick("gather", a.x, a.axis, a.index).reshape(index.shape());
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src) {
  const char* op = "scatter";
  const Along a = along(x, dim, index, src.tensor, op);
  if (!src.tensor) require_storable(src.scalar, x.dtype(), op);
  if (a.index.numel() == 0) return x.clone();
  const Tensor values = src.tensor ? a.src : single(src.scalar, x, a.index.shape());
  return put(op, a.x, a.axis, a.index, values).reshape(x.shape());
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const Along a = along(x, dim, index, &src, "scatter_add");
  if (a.index.numel() == 0) return x.clone();
  return add_at("scatter_add", a.x, a.axis, a.index, a.src).reshape(x.shape());
}

Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce,
                      bool include_self) {
  const char* op = "scatter_reduce";
  if (reduce != "sum" && reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin")
    throw Error(Error::Kind::argument, op, "reduce is one of sum, prod, mean, amax, amin; got " + reduce);
  const Along a = along(x, dim, index, &src, op);
  if (x.dtype() == boolean && reduce == "mean") throw Error(Error::Kind::dtype, op, "mean is not defined for booleans");
  if (a.index.numel() == 0) return x.clone();
  return reduce_at(a, reduce, include_self).reshape(x.shape());
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const char* op = "index_select";
  const int axis = normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
  const Tensor i = slices_index(x, axis, index, op);
  return pick_slices(op, with_axis(x), axis, i);
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  const char* op = "index_add";
  const int axis = normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
  const Tensor i = slices_index(x, axis, index, op);
  common_device(x, source.checked(op), op);
  same_dtype(x, source, op);
  Shape wanted = one_axis(x.shape());
  wanted[axis] = i.numel();
  if (one_axis(source.shape()) != wanted)
    throw Error(Error::Kind::shape, op,
                "a source of shape " + source.shape().str() + " does not fit " + std::to_string(i.numel()) +
                    " slices along axis " + std::to_string(axis) + " of shape " + x.shape().str());
  if (x.dtype() == boolean) throw Error(Error::Kind::dtype, op, "is not defined for booleans");
  require_storable(alpha, x.dtype(), op);
  Tensor values = with_axis(source);
  if (alpha != 1) values = is_floating(x.dtype()) ? values * alpha : values * int64_t(alpha);
  return add_at(op, with_axis(x), axis, spread_index(i, wanted, axis), values).reshape(x.shape());
}

Tensor take(const Tensor& x, const Tensor& index) {
  const char* op = "take";
  const Tensor i = as_index(index, op);
  common_device(x.checked(op), i, op);
  check_indices(i, x.numel(), 0, op);
  return pick(op, x.reshape({-1}), 0, i.reshape({-1})).reshape(i.shape());
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  if (!dim) return gather(x.checked(op).reshape({x.numel()}), 0, indices.checked(op).reshape({indices.numel()}));
  const int axis = normalize_axis(*dim, int(x.checked(op).dim()), x.shape(), op);
  if (x.dim() != indices.checked(op).dim())
    throw Error(
        Error::Kind::shape, op,
        "x of shape " + x.shape().str() + " and indices of shape " + indices.shape().str() + " need as many axes");
  if (x.dim() == 0) return gather(x, 0, indices);
  Shape a = x.shape(), b = indices.shape();
  a[axis] = b[axis] = 1;
  Shape wide = broadcast_shapes(a, b, op);
  wide[axis] = x.size(axis);
  const Tensor source = x.expand(wide);
  wide[axis] = indices.size(axis);
  return gather(source, axis, indices.expand(wide));
}

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  const char* op = "embedding";
  if (weight.checked(op).dim() != 2)
    throw Error(Error::Kind::shape, op, "the weight must have 2 axes, got shape " + weight.shape().str());
  const Tensor i = as_index(indices, op);
  common_device(weight, i, op);
  Shape shape = i.shape();
  shape.push_back(weight.size(1));
  check_indices(i, weight.size(0), 0, op);
  const Tensor rows = pick_slices(op, weight, 0, i.dim() == 1 ? i : i.reshape({i.numel()}));
  return i.dim() == 1 ? rows : rows.reshape(shape);
}

}  // namespace volta
