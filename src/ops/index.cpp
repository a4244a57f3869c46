// Gather, scatter and their kin; masks.
#include "ops/index.h"

#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/cpu/cpu.h"
#include "ops/point.h"
#include "ops/pointwise.h"

namespace volta {

Tensor as_index(const Tensor& index, const char* op) {
  const DType dtype = index.checked(op).dtype();
  require(is_integral(dtype), Wrong::dtype, op, "an index must be of integers, got ", dtype);
  if (dtype == u64) return index.clamp_max(std::numeric_limits<int64_t>::max()).to(i64);
  return index.to(i64);
}

void check_indices(const Tensor& index, int64_t size, int axis, const char* op) {
  if (index.numel() == 0 || !index.device().is_cpu()) return;
  const auto [low, high] = cpu::index_range(arg(index));
  require(low >= -size && high < size, Wrong::index, op, "index ", low < -size ? low : high,
          " is out of range for axis ", axis, " of size ", size);
}

void require_storable(const Scalar& value, DType dtype, const char* op) {
  if (!value.is_floating() || is_floating(dtype)) return;
  const double v = value.as<double>();
  require(std::isfinite(v) && v == std::trunc(v), Wrong::dtype, op, v, " cannot be stored in ", dtype);
}

Tensor number(Scalar value, const Tensor& like) {
  return full({}, value, {.dtype = like.dtype(), .device = like.device()});
}

Tensor with_axis(const Tensor& x) { return x.dim() == 0 ? x.reshape({1}) : x; }

Tensor spread_index(const Tensor& index, const Shape& shape, int axis) {
  Layout spread{shape, Shape::filled(shape.size(), 0), layout(index).offset};
  spread.strides[axis] = layout(index).strides[0];
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

Tensor pick_slices(const char* op, const Tensor& x, int axis, const Tensor& index) {
  const Shape result = spliced(x.shape(), axis, 1, index.shape());
  checked_numel(result, op);
  if (index.dim() == 1) return pick(op, x, axis, spread_index(index, result, axis));
  return pick_slices(op, x, axis, index.reshape({index.numel()})).reshape(result);
}

Tensor scattered(Combine combine, const Tensor& out, int axis, const Tensor& index, const Tensor& src) {
  const NoGrad off;
  backend(out.device()).scatter({combine, arg(out), arg(src.to(out.dtype())), arg(index), axis});
  return out;
}

Tensor place_add(const char* op, const Shape& shape, int axis, const Tensor& index, const Tensor& src) {
  // Halves add up in f32.
  const Tensor start = zeros(shape, {.dtype = traits(src.dtype()).compute, .device = src.device()});
  const Tensor sum = scattered(Combine::add, start, axis, index, src).to(src.dtype());
  if (!any_needs_grad(src)) return sum;
  return record(op, sum, {src}, [op, axis, kept = save(index)](const Tensor& g, Gradients& d) {
    d[0] = pick(op, g, axis, d.take(kept));
  });
}

namespace {

// Where values are combined into a tensor: the differentiable scatters.
struct Place {
  const char* op;
  int axis;
  Tensor index;

  Tensor there(const Tensor& x) const { return pick(op, x, axis, index); }
  Tensor repeated(Scalar value, const Tensor& like) const { return number(value, like).expand(index.shape()); }
  Tensor combine(Combine how, const Tensor& x, const Tensor& src) const;  // in a copy of x
};

// Which of the values that meet in one place are the last, and so stay.
Tensor kept_values(const Place& at, const Shape& shape) {
  const Options options{.dtype = i64, .device = at.index.device()};
  const Tensor position = spread_index(arange(0, at.index.size(at.axis), 1, options), at.index.shape(), at.axis);
  return at.there(scattered(Combine::set, zeros(shape, options), at.axis, at.index, position)) == position;
}

// The product of all factors of a place but `value`: y is the whole product, `others` that of the factors that are not 0,
// `zeros` counts the rest and `sum` adds them up (so that second derivatives see them).
Tensor product_without(const Tensor& value, const Tensor& y, const Tensor& others, const Tensor& zeros,
                       const Tensor& sum) {
  const Tensor zero = value == 0;
  const Tensor without = where(zeros == 1, others, where(zeros == 2, others * (sum - value), 0));
  return where(zero, without, y / where(zero, 1, value));
}

void multiply_back(const Place& at, const Tensor& x, const Tensor& src, const Tensor& y, const Tensor& g,
                   Gradients& d) {
  const Tensor x_zero = x == 0, zero = src == 0;
  const Tensor zeros = at.combine(Combine::add, x_zero.to(i64), zero.to(i64));
  const Tensor others = at.combine(Combine::multiply, where(x_zero, 1, x), where(zero, 1, src));
  const Tensor sum = at.combine(Combine::add, where(x_zero, x, 0), where(zero, src, 0));
  if (d.needs(0)) d[0] = g * product_without(x, y, others, zeros, sum);
  if (d.needs(1))
    d[1] = at.there(g) * product_without(src, at.there(y), at.there(others), at.there(zeros), at.there(sum));
}

// Tied elements share the gradient.
void extreme_back(const Place& at, const Tensor& x, const Tensor& src, const Tensor& y, const Tensor& g, Gradients& d) {
  const Tensor x_wins = x == y, wins = src == at.there(y);
  const Tensor shared = g / at.combine(Combine::add, x_wins.to(i64), wins.to(i64)).clamp_min(1).to(g.dtype());
  if (d.needs(0)) d[0] = where(x_wins, shared, 0);
  if (d.needs(1)) d[1] = where(wins, at.there(shared), 0);
}

Tensor Place::combine(Combine how, const Tensor& x, const Tensor& src) const {
  const bool rounds = how == Combine::add || how == Combine::multiply;  // halves then do so in f32
  const DType dtype = rounds ? traits(x.dtype()).compute : x.dtype();
  const Tensor start = x.detach(), out = dtype == x.dtype() ? start.clone() : start.to(dtype);
  const Tensor y = scattered(how, out, axis, index, src).to(x.dtype());
  if (!any_needs_grad(x, src)) return y;
  const auto rule = [o = op, along = axis, kept = save(index)](auto back) {
    return [=](const Tensor& g, Gradients& d) { back(Place{o, along, d.take(kept)}, g, d); };
  };
  if (how == Combine::add)
    return record(op, y, {x, src}, rule([](const Place& at, const Tensor& g, Gradients& d) {
                    if (d.needs(0)) d[0] = g;
                    if (d.needs(1)) d[1] = at.there(g);
                  }));
  if (how == Combine::set)
    return record(op, y, {x, src}, rule([](const Place& at, const Tensor& g, Gradients& d) {
                    if (d.needs(0)) d[0] = at.combine(Combine::set, g, at.repeated(0, g));
                    if (d.needs(1)) d[1] = where(kept_values(at, g.shape()), at.there(g), 0);
                  }));
  const auto back = how == Combine::multiply ? multiply_back : extreme_back;
  return record(
      op, y, {x, src},
      rule([=, a = save(x), b = save(src), c = save_output(y)](const Place& at, const Tensor& g, Gradients& d) {
        back(at, d.take(a), d.take(b), d.take(c), g, d);
      }));
}

const Shape& one_axis(const Shape& shape) {
  static const Shape one{1};
  return shape.empty() ? one : shape;
}

// The index as i64, for an axis of x.
Tensor index_for(const Tensor& x, int axis, const Tensor& index, const char* op) {
  const Tensor i = as_index(index, op);
  common_device(x, i, op);
  check_indices(i, one_axis(x.shape())[axis], axis, op);
  return i;
}

void require_fits(const Tensor& index, const Tensor& other, int except, const char* what, const char* op) {
  const Shape &a = one_axis(index.checked(op).shape()), &b = one_axis(other.shape());
  bool fits = a.size() == b.size();
  for (int i = 0; fits && i < a.size(); ++i) fits = i == except || a[i] <= b[i];
  require(fits || a.numel() == 0, Wrong::shape, op, "an index of shape ", a, " does not fit ", what, " of shape ", b);
}

void require_source(const Tensor& x, const Tensor& src, const char* op) {
  common_device(x, src.checked(op), op);
  require(x.dtype() == src.dtype(), Wrong::dtype, op, "the tensor is ", x.dtype(), " but the source ", src.dtype());
}

// Arguments of gather and the scatters, checked; 0-d tensors count as one axis of one element.
struct Along {
  Place at;
  Tensor x, src;
};

Along along(const Tensor& x, int64_t dim, const Tensor& index, const Tensor* src, const char* op) {
  const int axis = axis_of(x, dim, op);
  require_fits(index, x, axis, "a tensor", op);
  if (src) {
    require_source(x, *src, op);
    require_fits(index, *src, -1, "a source", op);
  }
  const Tensor i = with_axis(index_for(x, axis, index, op));
  Along a{{op, axis, i}, with_axis(x), src ? with_axis(*src) : Tensor()};
  for (int k = 0; src && k < i.dim() && i.numel() > 0; ++k)
    if (a.src.size(k) != i.size(k)) a.src = a.src.narrow(k, 0, i.size(k));
  return a;
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

Tensor reduce_at(const Along& a, const std::string& reduce, bool include_self) {
  const DType dtype = a.x.dtype();
  const auto start = [&](const Tensor& x, Scalar value) {
    return include_self ? x : a.at.combine(Combine::set, x, a.at.repeated(value, x));
  };
  if (reduce == "prod") return a.at.combine(Combine::multiply, start(a.x, 1), a.src);
  if (reduce == "amax") return a.at.combine(Combine::max, start(a.x, neutral(dtype, true)), a.src);
  if (reduce == "amin") return a.at.combine(Combine::min, start(a.x, neutral(dtype, false)), a.src);
  const Tensor sum = a.at.combine(Combine::add, start(a.x, 0), a.src);
  if (reduce == "sum") return sum;
  const Tensor once = start(number(1, a.at.index).expand(a.x.shape()), 0);
  const Tensor count = a.at.combine(Combine::add, once, a.at.repeated(1, once)).clamp_min(1).to(dtype);
  return is_floating(dtype) ? sum / count : floor_divide(sum, count);
}

// A 1-D index (or one number) of slices along an axis of x.
Tensor slices_index(const Tensor& x, int axis, const Tensor& index, const char* op) {
  require(index.checked(op).dim() <= 1, Wrong::shape, op, "the index must have one axis, got shape ", index);
  return with_axis(index_for(x, axis, index, op));
}

void require_mask(const Tensor& x, const Tensor& mask, const char* op) {
  common_device(x.checked(op), mask.checked(op), op);
  require(mask.dtype() == boolean, Wrong::dtype, op, "the mask must be boolean, got ", mask.dtype());
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const Along a = along(x, dim, index, nullptr, "gather");
  return a.at.there(a.x).reshape(index.shape());
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src) {
  const Along a = along(x, dim, index, src.tensor, "scatter");
  if (!src.tensor) require_storable(src.scalar, x.dtype(), "scatter");
  if (index.numel() == 0) return x.clone();
  return a.at.combine(Combine::set, a.x, src.tensor ? a.src : a.at.repeated(src.scalar, x)).reshape(x.shape());
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const Along a = along(x, dim, index, &src, "scatter_add");
  return index.numel() == 0 ? x.clone() : a.at.combine(Combine::add, a.x, a.src).reshape(x.shape());
}

Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce,
                      bool include_self) {
  const char* op = "scatter_reduce";
  const bool known = reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin";
  require(known, Wrong::argument, op, "reduce is one of sum, prod, mean, amax, amin; got ", reduce);
  const Along a = along(x, dim, index, &src, op);
  require(x.dtype() != boolean || reduce != "mean", Wrong::dtype, op, "mean is not defined for booleans");
  if (index.numel() == 0) return x.clone();
  return reduce_at(a, reduce, include_self).reshape(x.shape());
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int axis = axis_of(x, dim, "index_select");
  return pick_slices("index_select", with_axis(x), axis, slices_index(x, axis, index, "index_select"));
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  const char* op = "index_add";
  const int axis = axis_of(x, dim, op);
  const Tensor i = slices_index(x, axis, index, op);
  require_source(x, source, op);
  const Shape wanted = spliced(x.shape(), axis, 1, {i.numel()});
  require(one_axis(source.shape()) == wanted, Wrong::shape, op, "a source of shape ", source, " does not fit ",
          i.numel(), " slices along axis ", axis, " of shape ", x);
  require(x.dtype() != boolean, Wrong::dtype, op, "is not defined for booleans");
  require_storable(alpha, x.dtype(), op);
  Tensor values = with_axis(source);
  if (alpha != 1) values = is_floating(x.dtype()) ? values * alpha : values * int64_t(alpha);
  return Place{op, axis, spread_index(i, wanted, axis)}.combine(Combine::add, with_axis(x), values).reshape(x.shape());
}

Tensor take(const Tensor& x, const Tensor& index) {
  const Tensor flat = x.checked("take").reshape({-1});
  return pick_slices("take", flat, 0, index_for(flat, 0, index, "take"));
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  indices.checked(op);
  if (!dim) return gather(x.checked(op).reshape({x.numel()}), 0, indices.reshape({indices.numel()}));
  const int axis = axis_of(x, *dim, op);
  require(x.dim() == indices.dim(), Wrong::shape, op, "x of shape ", x, " and indices of shape ", indices,
          " need as many axes");
  if (x.dim() == 0) return gather(x, 0, indices);
  const Shape wide = broadcast_shapes(spliced(x.shape(), axis, 1, {1}), spliced(indices.shape(), axis, 1, {1}), op);
  return gather(x.expand(spliced(wide, axis, 1, {x.size(axis)})), axis,
                indices.expand(spliced(wide, axis, 1, {indices.size(axis)})));
}

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  const char* op = "embedding";
  require(weight.checked(op).dim() == 2, Wrong::shape, op, "the weight must have 2 axes, got shape ", weight);
  return pick_slices(op, weight, 0, index_for(weight, 0, indices, op));
}

Tensor true_positions(const Tensor& mask) {
  const NoGrad off;
  const int64_t n = mask.numel();
  const Options options{.dtype = i64, .device = mask.device()};
  if (n == 0) return empty({0}, options);
  const Tensor flat = mask.reshape({n}).contiguous();
  if (mask.device().is_cpu()) {
    const cpu::TruePositions positions(static_cast<const uint8_t*>(flat.raw_data()), n);
    const Tensor out = empty({positions.count()}, options);
    positions.write(out.data<int64_t>());
    return out;
  }
  // Each true element's place among the true ones is a running count; the others go to one place past the end.
  const Tensor count = flat.to(i64).cumsum(0);
  const int64_t found = count.select(0, n - 1).item<int64_t>();
  const Tensor place = where(flat, count - 1, found), order = arange(0, n, 1, options);
  return scattered(Combine::set, empty({found + 1}, options), 0, place, order).narrow(0, 0, found);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  const char* op = "masked_fill";
  require_mask(x, mask, op);
  if (!value.tensor) {
    require_storable(value.scalar, x.dtype(), op);
    const bool fits = value.scalar.kind() <= traits(x.dtype()).kind && x.dtype() != boolean;
    return fits ? where(mask, value, x) : where(mask, number(value.scalar, x), x);
  }
  const Tensor& v = value.tensor->checked(op);
  require(v.dim() == 0, Wrong::shape, op, "the value must be a number or a 0-d tensor, got shape ", v);
  require_fitting(v.dtype(), x.dtype(), op);
  return where(mask, v.to(x.dtype()), x);
}

void fill_where(Tensor& x, const Tensor& mask, Scalar value) {
  const Tensor v = number(value, x);
  if (any_needs_grad(x)) {
    x.copy_(where(mask, v, x));
    return;
  }
  const Tensor choice = same_memory(mask, x) ? mask.clone() : mask;
  const PointOp& where_op = point_op(index_of<point::Where>(PointOps{}));
  backend(x.device()).map({&where_op, 0, traits(x.dtype()).compute, arg(x), {arg(choice), arg(v), arg(x)}, 3});
  bump_version(x);
}

Tensor& Tensor::masked_fill_(const Tensor& mask, const Operand& value) {
  const char* op = "masked_fill_";
  require_writable(checked(op), op);
  if (value.tensor) return copy_(volta::masked_fill(*this, mask, value));
  require_mask(*this, mask, op);
  require_storable(value.scalar, dtype(), op);
  require(broadcast_shapes(shape(), mask.shape(), op) == shape(), Wrong::shape, op, "a mask of shape ", mask,
          " does not broadcast to shape ", *this);
  fill_where(*this, mask, value.scalar);
  return *this;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const char* op = "masked_select";
  require_mask(x, mask, op);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), op);
  return pick(op, x.expand(shape).reshape({shape.numel()}), 0, true_positions(mask.expand(shape)));
}

Tensor nonzero(const Tensor& x) {
  const NoGrad off;
  Tensor rest = true_positions(x.checked("nonzero").dtype() == boolean ? x : x != 0);
  const Tensor out = allocate({rest.numel(), x.dim()}, i64, x.device(), "nonzero");
  for (int axis = int(x.dim()) - 1; axis >= 0; --axis) {
    const int64_t size = std::max<int64_t>(1, x.shape()[axis]);
    out.select(1, axis).copy_(axis == 0 ? rest : remainder(rest, size));
    if (axis > 0) rest = floor_divide(rest, size);
  }
  return out;
}

Tensor one_hot(const Tensor& x, int64_t num_classes) {
  const char* op = "one_hot";
  const NoGrad off;
  const Tensor classes = as_index(x, op);
  require(num_classes >= -1, Wrong::argument, op, "num_classes is -1 or not negative, got ", num_classes);
  require(num_classes >= 0 || x.numel() > 0, Wrong::argument, op,
          "an empty tensor does not say how many classes there are; give num_classes");
  const int64_t n = num_classes < 0 ? amax(classes).item<int64_t>() + 1 : num_classes;
  if (classes.device().is_cpu() && classes.numel() > 0) {
    check_indices(classes, n, int(x.dim()), op);
    const int64_t low = amin(classes).item<int64_t>();
    require(low >= 0, Wrong::index, op, "class ", low, " is negative");
  }
  return (classes.unsqueeze(-1) == arange(0, n, 1, {.dtype = i64, .device = x.device()})).to(i64);
}

}  // namespace volta
