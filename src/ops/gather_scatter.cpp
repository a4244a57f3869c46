// Gather, scatter and their kin; masks.
#include "ops/gather_scatter.h"

#include <cmath>
#include <limits>

#include <volta/ops.h>
#include <volta/plain.h>

#include "graph/record.h"
#include "math/elementwise.h"
#include "ops/elementwise.h"
#include "ops/fused.h"

namespace volta {

namespace {

void require_range(int64_t low, int64_t high, int64_t least, int64_t size, int axis, const char* op) {
  require(low >= least && high < size, ErrorKind::index, op, "index ", low < least ? low : high,
          " is out of range for axis ", axis, " of size ", size);
}

}  // namespace

Tensor as_index(const Tensor& index, const char* op) {
  const DType dtype = index.checked(op).dtype();
  require(is_integral(dtype), ErrorKind::dtype, op, "an index must be of integers, got ", dtype);
  if (dtype == u64) return index.clamp_max(std::numeric_limits<int64_t>::max()).to(i64);
  return index.to(i64);
}

void check_indices(const Tensor& index, int64_t size, int axis, const char* op) {
  if (index.numel() == 0) return;
  if (const auto range = backend(index.device()).index_range(arg(index)))
    require_range(range->low, range->high, 0, size, axis, op);
}

Tensor counted_from_start(const Tensor& index, int64_t size, int axis, const char* op) {
  if (index.numel() == 0) return index;
  const NoGrad off;
  const auto range = backend(index.device()).index_range(arg(index));
  // A bad one stays what it is, for the loop to report.
  if (!range) return where(logical_and(index < 0, index >= -size), index + size, index);
  require_range(range->low, range->high, -size, size, axis, op);
  return range->low < 0 ? where(index < 0, index + size, index) : index;
}

Tensor number(Scalar value, const Tensor& like) { return full({}, value, {like.dtype(), like.device()}); }

Tensor spread_index(const Tensor& index, const Shape& shape, int axis) {
  Layout spread{shape, Shape::filled(shape.size(), 0), layout(index).offset};
  if (!shape.empty()) spread.strides[axis] = layout(index).strides[0];
  return alias(index, spread);
}

Tensor chosen(const char* op, Tensor y, const Tensor& x, int axis, const Tensor& index) {
  if (!any_needs_grad(x)) return y;
  return record(op, std::move(y), {x},
                [op, shape = x.shape(), axis, kept = save(index)](const Tensor& g, Gradients& d) {
                  const auto whole = [&](const Tensor& t) { return t.dim() < shape.size() ? t.unsqueeze(axis) : t; };
                  d[0] = place_add(op, shape, axis, whole(d.take(kept)), whole(g));
                });
}

Tensor pick(const char* op, const Tensor& x, int axis, const Tensor& index) {
  Tensor y = allocate(index.shape(), x.dtype(), x.device(), op);
  blamed_on(op, [&] { backend(x.device()).gather({row_arg(y), row_arg(x), row_arg(index), axis}); });
  return chosen(op, std::move(y), x, axis, index);
}

Tensor pick_slices(const char* op, const Tensor& x, int axis, const Tensor& index) {
  const Shape result = spliced(x.shape(), axis, 1, index.shape());
  checked_numel(result, op);
  if (index.dim() == 1) return pick(op, x, axis, spread_index(index, result, axis));
  return pick_slices(op, x, axis, index.reshape({index.numel()})).reshape(result);
}

Tensor scattered(Combine combine, const Tensor& out, int axis, const Tensor& index, const Tensor& src) {
  const NoGrad off;
  backend(out.device()).scatter({combine, row_arg(out), row_arg(src.to(out.dtype())), row_arg(index), axis});
  return out;
}

Tensor place_add(const char* op, const Shape& shape, int axis, const Tensor& index, const Tensor& src) {
  // Halves add up in f32.
  const Tensor start = zeros(shape, {traits(src.dtype()).compute, src.device()});
  const Tensor sum = scattered(Combine::add, start, axis, index, src).to(src.dtype());
  if (!any_needs_grad(src)) return sum;
  return record(op, sum, {src}, [op, axis, kept = save(index)](const Tensor& g, Gradients& d) {
    d[0] = pick(op, g, axis, d.take(kept));
  });
}

namespace {

// Where values are combined into a tensor: the differentiable scatters.
struct ScatterPlace {
  const char* op;
  int axis;
  Tensor index;

  Tensor there(const Tensor& x) const { return pick(op, x, axis, index); }
  Tensor repeated(Scalar value, const Tensor& like) const {
    return blamed_on(op, [&] { return number(value, like); }).expand(index.shape());
  }
  Tensor combine(Combine how, const Tensor& x, const Tensor& src) const;  // in a copy of x
  Tensor& combine_in_place(Combine how, Tensor& x, Tensor src) const;
};

// Where several values meet in one place, the last one stays and takes the gradient.
void set_back(const ScatterPlace& at, const Tensor& g, Gradients& d) {
  if (d.needs(0)) d[0] = at.combine(Combine::set, g, at.repeated(0, g));
  if (!d.needs(1)) return;
  const int64_t n = row_layout(at.index).shape[at.axis];
  const Tensor position = spread_index(counting(n, g), at.index.shape(), at.axis);
  const Tensor start = zeros(g.shape(), {i64, g.device()});
  const Tensor last = at.there(scattered(Combine::set, start, at.axis, at.index, position));
  d[1] = where(last == position, at.there(g), 0);
}

// The product of all factors of a place but `value`: y is the whole product, `others` that of the factors that are
// not 0, `zeros` counts the rest and `sum` adds them up (so that second derivatives see them).
Tensor product_without(const Tensor& value, const Tensor& y, const Tensor& others, const Tensor& zeros,
                       const Tensor& sum) {
  const Tensor zero = value == 0;
  const Tensor without = where(zeros == 1, others, where(zeros == 2, others * (sum - value), 0));
  return where(zero, without, y / where(zero, 1, value));
}

// Halves are computed in f32 throughout; the product is taken again.
void multiply_back(const ScatterPlace& at, const Tensor& x, const Tensor& src, const Tensor& y, const Tensor& g,
                   Gradients& d) {
  if (is_half(x.dtype())) {
    const Tensor a = x.to(f32), b = src.to(f32);
    return multiply_back(at, a, b, at.combine(Combine::multiply, a, b), g.to(f32), d);
  }
  const Tensor x_zero = x == 0, zero = src == 0;
  const Tensor zeros = at.combine(Combine::add, x_zero.to(i64), zero.to(i64));
  const Tensor others = at.combine(Combine::multiply, where(x_zero, 1, x), where(zero, 1, src));
  const Tensor sum = at.combine(Combine::add, where(x_zero, x, 0), where(zero, src, 0));
  if (d.needs(0)) d[0] = g * product_without(x, y, others, zeros, sum);
  if (d.needs(1))
    d[1] = at.there(g) * product_without(src, at.there(y), at.there(others), at.there(zeros), at.there(sum));
}

// Tied elements share the gradient.
void extreme_back(const ScatterPlace& at, const Tensor& x, const Tensor& src, const Tensor& y, const Tensor& g,
                  Gradients& d) {
  const Tensor x_wins = x == y, wins = src == at.there(y);
  const DType wide = traits(g.dtype()).compute;
  const Tensor many = at.combine(Combine::add, x_wins.to(i64), wins.to(i64)).clamp_min(1).to(wide);
  const Tensor shared = g.to(wide) / many;
  if (d.needs(0)) d[0] = where(x_wins, shared, 0);
  if (d.needs(1)) d[1] = where(wins, at.there(shared), 0);
}

Tensor ScatterPlace::combine(Combine how, const Tensor& x, const Tensor& src) const {
  if (index.numel() == 0)
    return record(op, x.detach().clone(), {x, src}, [shape = src.shape()](const Tensor& g, Gradients& d) {
      d[0] = g;
      if (d.needs(1)) d[1] = zeros(shape, {g.dtype(), g.device()});
    });
  const bool linear = how == Combine::add || how == Combine::set;
  const bool rounds = how == Combine::add || how == Combine::multiply;  // halves then do so in f32
  const DType dtype = rounds ? traits(x.dtype()).compute : x.dtype();
  const Tensor start = x.detach(), out = dtype == x.dtype() ? start.clone() : start.to(dtype);
  const Tensor y = scattered(how, out, axis, index, src).to(x.dtype());
  if (!any_needs_grad(x, src)) return y;
  return record(op, y, {x, src},
                [how, linear, o = op, along = axis, kept = save(index), a = save(x, !linear), b = save(src, !linear),
                 c = linear ? Saved() : save_output(y)](const Tensor& g, Gradients& d) {
                  const ScatterPlace at{o, along, d.take(kept)};
                  if (how == Combine::set) return set_back(at, g, d);
                  if (how == Combine::multiply) return multiply_back(at, d.take(a), d.take(b), d.take(c), g, d);
                  if (!linear) return extreme_back(at, d.take(a), d.take(b), d.take(c), g, d);
                  if (d.needs(0)) d[0] = g;
                  if (d.needs(1)) d[1] = at.there(g);
                });
}

// Into the memory itself where no graph is wanted and nothing is to be rounded but once, else by way of a copy.
Tensor& ScatterPlace::combine_in_place(Combine how, Tensor& x, Tensor src) const {
  const bool saves = how != Combine::add && how != Combine::set;
  const bool wider = traits(x.dtype()).compute != x.dtype() && (how == Combine::add || how == Combine::multiply);
  if (any_needs_grad(x, src) || wider) return x.copy_(combine(how, saves ? x.clone() : x, src));
  if (index.numel() == 0) return x;
  if (same_memory(x, src)) src = src.clone();
  scattered(how, x, axis, same_memory(x, index) ? index.clone() : index, src);
  bump_version(x);
  return x;
}

// An index fits a tensor when it is nowhere larger, but for one axis.
void require_fits(const Tensor& index, const Tensor& other, int except, const char* what, const char* op) {
  const Shape &a = row_layout(index).shape, &b = row_layout(other).shape;
  bool fits = a.size() == b.size();
  for (int i = 0; fits && i < a.size(); ++i) fits = i == except || a[i] <= b[i];
  require(fits || a.numel() == 0, ErrorKind::shape, op, "an index of shape ", a, " does not fit ", what, " of shape ",
          b);
}

// The index as i64, for an axis of x.
Tensor index_for(const Tensor& x, int axis, const Tensor& index, const char* op) {
  const Tensor i = as_index(index, op);
  common_device(x, i, op);
  check_indices(i, row_layout(x).shape[axis], axis, op);
  return i;
}

// Arguments of gather and the scatters, checked.
ScatterPlace along(const Tensor& x, int64_t dim, const Tensor& index, const char* op) {
  const int axis = axis_of(x, dim, op);
  require_fits(index.checked(op), x, axis, "a tensor", op);
  return {op, axis, index_for(x, axis, index, op)};
}

// Scatters take a 0-d index for a vector.
ScatterPlace within(const Tensor& x, int64_t dim, const Tensor& index, const char* op) {
  ScatterPlace at = along(x, dim, index, op);
  if (x.dim() == 1 && at.index.dim() == 0) at.index = at.index.reshape({1});
  return at;
}

Tensor picked(const Tensor& x, int64_t dim, const Tensor& index, const char* op) {
  return along(x, dim, index, op).there(x);
}

void require_source(const Tensor& x, const Tensor& src, const char* op) {
  common_device(x, src, op);
  require(x.dtype() == src.dtype(), ErrorKind::dtype, op, "the tensor is ", x.dtype(), " but the source ", src.dtype());
}

// The part of the source that the index speaks of.
Tensor source_for(const ScatterPlace& at, const Tensor& x, Tensor src) {
  require_source(x, src, at.op);
  require_fits(at.index, src, -1, "a source", at.op);
  if (at.index.numel() == 0) return src;
  const Shape& wanted = row_layout(at.index).shape;
  for (int k = 0; k < src.dim(); ++k)
    if (src.size(k) != wanted[k]) src = src.narrow(k, 0, wanted[k]);
  return src.dim() == at.index.dim() ? src : src.reshape(at.index.shape());
}

// What does not change a sum, a product, a maximum or minimum of this dtype.
Scalar neutral(Combine how, DType dtype) {
  if (how == Combine::add || how == Combine::multiply) return how == Combine::add ? 0 : 1;
  const bool lowest = how == Combine::max;
  return visit(dtype, [&]<class T>(TypeTag<T>) -> Scalar {
    if constexpr (!std::is_integral_v<T>) return lowest ? -INFINITY : INFINITY;
    else return lowest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  });
}

// A 1-D index (or one number) of slices along an axis of x.
Tensor slices_index(const Tensor& x, int axis, const Tensor& index, const char* op) {
  require(index.checked(op).dim() <= 1, ErrorKind::shape, op, "the index must have one axis, got shape ", index);
  const Tensor i = index_for(x, axis, index, op);
  return i.dim() == 0 ? i.reshape({1}) : i;
}

void require_mask(const Tensor& x, const Tensor& mask, const char* op) {
  common_device(x, mask, op);
  require(mask.dtype() == boolean, ErrorKind::dtype, op, "the mask must be boolean, got ", mask.dtype());
}

// What is to stand where a mask holds: the number itself or, where it must take the dtype of x, a tensor kept in `typed`.
Operand filling(const Tensor& x, const Tensor& mask, const Operand& value, Tensor& typed, const char* op) {
  require_mask(x, mask, op);
  if (!value.tensor) {
    require_storable(value.scalar, x.dtype(), op);
    const bool fits = value.scalar.kind() <= traits(x.dtype()).kind && x.dtype() != boolean;
    return fits ? value : Operand(typed = number(value.scalar, x));
  }
  const Tensor& v = value.tensor->checked(op);
  require(v.dim() == 0, ErrorKind::shape, op, "the value must be a number or a 0-d tensor, got shape ", v);
  require_fitting(v.dtype(), x.dtype(), op);
  return typed = v.to(x.dtype());
}

// One change of x by an index, checked: made in a copy, or in place.
struct Change {
  ScatterPlace at;
  Combine how;
  Tensor values;
  bool fits(const Tensor& x) const { return x.dim() == at.index.dim() || at.index.numel() == 0; }
  Tensor made(const Tensor& x) const {
    return fits(x) ? at.combine(how, x, values) : at.combine(how, x.reshape({1}), values).reshape(x.shape());
  }
};

template <class F> Tensor& changed(Tensor& x, const char* op, F change) {
  require_writable(x.checked(op), op);
  const Change c = change(op);
  if (c.fits(x)) return c.at.combine_in_place(c.how, x, c.values);
  return x.copy_(c.made(x));
}

Change scatter_change(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src, const char* op) {
  const ScatterPlace at = within(x, dim, index, op);
  if (!src.tensor) require_storable(src.scalar, x.dtype(), op);
  return {at, Combine::set, src.tensor ? source_for(at, x, *src.tensor) : at.repeated(src.scalar, x)};
}

Change scatter_add_change(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, const char* op) {
  const ScatterPlace at = within(x, dim, index, op);
  return {at, Combine::add, source_for(at, x, src)};
}

// Slices of a source, put or added along an axis.
Change slices_change(Combine how, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                     const char* op) {
  const int axis = axis_of(x, dim, op);
  const Tensor i = slices_index(x, axis, index, op);
  require_source(x, source, op);
  const Shape wanted = spliced(row_layout(x).shape, axis, 1, {i.numel()});
  require(row_layout(source).shape == wanted, ErrorKind::shape, op, "a source of shape ", source, " does not fit ",
          i.numel(), " slices along axis ", axis, " of shape ", x);
  return {{op, axis, spread_index(i, wanted, axis)}, how, source.reshape(wanted)};
}

Change index_add_change(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, double alpha,
                        const char* op) {
  Change c = slices_change(Combine::add, x, dim, index, source, op);
  require(x.dtype() != boolean, ErrorKind::dtype, op, "is not defined for booleans");
  const Scalar factor = factor_for(alpha, x.dtype(), op);
  if (alpha != 1) c.values = c.values * factor;
  return c;
}

// As in PyTorch, its index counts from the end where negative.
Change index_fill_change(const Tensor& x, int64_t dim, const Tensor& index, const Operand& value, const char* op) {
  const int axis = axis_of(x, dim, op);
  const Tensor given = as_index(index, op);
  require(given.dim() <= 1, ErrorKind::shape, op, "the index must have one axis, got shape ", index);
  common_device(x, given, op);
  const Tensor i = counted_from_start(given.reshape({given.numel()}), row_layout(x).shape[axis], axis, op);
  const Shape wanted = spliced(row_layout(x).shape, axis, 1, {i.numel()});
  const ScatterPlace at{op, axis, spread_index(i, wanted, axis)};
  if (!value.tensor) {
    require_storable(value.scalar, x.dtype(), op);
    return {at, Combine::set, at.repeated(value.scalar, x)};
  }
  const Tensor& v = value.tensor->checked(op);
  common_device(x, v, op);
  require(v.dim() == 0, ErrorKind::shape, op, "the value must be a number or a 0-d tensor, got shape ", v);
  require_fitting(v.dtype(), x.dtype(), op);
  return {at, Combine::set, v.to(x.dtype()).expand(wanted)};
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) { return picked(x, dim, index, "gather"); }

Tensor Plain::scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src) {
  return scatter_change(x, dim, index, src, "scatter").made(x);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Operand& src) & {
  return changed(*this, "scatter_", [&](const char* op) { return scatter_change(*this, dim, index, src, op); });
}

Tensor Plain::scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_add_change(x, dim, index, src, "scatter_add").made(x);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) & {
  return changed(*this, "scatter_add_", [&](const char* op) { return scatter_add_change(*this, dim, index, src, op); });
}

namespace {
Tensor reduced(const ScatterPlace& at, const Tensor& x, const Tensor& values, const Choice<ScatterReduce>& reduce,
               bool include_self) {
  constexpr Combine ways[] = {Combine::add, Combine::multiply, Combine::add, Combine::max, Combine::min};
  const ScatterReduce asked = reduce.of(at.op, "reduce");
  const Combine how = ways[size_t(asked)];
  require(x.dtype() != boolean || asked != ScatterReduce::mean, ErrorKind::dtype, at.op,
          "mean is not defined for booleans");
  // The sum of halves need not fit into one.
  if (asked == ScatterReduce::mean && is_half(x.dtype()))
    return reduced(at, x.to(f32), values.to(f32), reduce, include_self).to(x.dtype());
  const auto start = [&](const Tensor& from, Scalar value) {
    return include_self ? from : at.combine(Combine::set, from, at.repeated(value, from));
  };
  const Tensor y = at.combine(how, start(x, neutral(how, x.dtype())), values);
  if (asked != ScatterReduce::mean) return y;
  const Tensor once = start(number(1, at.index).expand(x.shape()), 0);
  const Tensor count = at.combine(Combine::add, once, at.repeated(1, once)).clamp_min(1).to(x.dtype());
  return is_floating(x.dtype()) ? y / count : floor_divide(y, count);
}

Tensor scatter_reduced(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                       const Choice<ScatterReduce>& reduce, bool include_self, const char* op) {
  const ScatterPlace at = within(x, dim, index, op);
  return reduced(at, x, source_for(at, x, src), reduce, include_self);
}

Tensor index_reduced(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                     const Choice<ScatterReduce>& reduce, bool include_self, const char* op) {
  const Change c = slices_change(Combine::set, x, dim, index, source, op);
  return reduced(c.at, c.fits(x) ? x : x.reshape({1}), c.values, reduce, include_self).reshape(x.shape());
}
}  // namespace

Tensor Plain::scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                             const Choice<ScatterReduce>& reduce, bool include_self) {
  return scatter_reduced(x, dim, index, src, reduce, include_self, "scatter_reduce");
}
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                                const Choice<ScatterReduce>& reduce, bool include_self) & {
  const char* op = "scatter_reduce_";
  require_writable(checked(op), op);
  return copy_(
      scatter_reduced(any_needs_grad(*this, src) ? clone() : *this, dim, index, src, reduce, include_self, op));
}

Tensor Plain::index_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                           const Choice<ScatterReduce>& reduce, bool include_self) {
  return index_reduced(x, dim, index, source, reduce, include_self, "index_reduce");
}
Tensor& Tensor::index_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                              const Choice<ScatterReduce>& reduce, bool include_self) & {
  const char* op = "index_reduce_";
  require_writable(checked(op), op);
  return copy_(
      index_reduced(any_needs_grad(*this, source) ? clone() : *this, dim, index, source, reduce, include_self, op));
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int axis = axis_of(x, dim, "index_select");
  const Tensor i = slices_index(x, axis, index, "index_select");
  if (x.dim() > 0) return pick_slices("index_select", x, axis, i);
  require(i.numel() == 1, ErrorKind::shape, "index_select", "of a 0-d tensor one element is chosen, not ", i.numel());
  return pick_slices("index_select", x.reshape({1}), axis, i).reshape({});
}

Tensor Plain::index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  return index_add_change(x, dim, index, source, alpha, "index_add").made(x);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, double alpha) & {
  return changed(*this, "index_add_",
                 [&](const char* op) { return index_add_change(*this, dim, index, source, alpha, op); });
}

Tensor Plain::index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return slices_change(Combine::set, x, dim, index, source, "index_copy").made(x);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) & {
  return changed(*this, "index_copy_",
                 [&](const char* op) { return slices_change(Combine::set, *this, dim, index, source, op); });
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Operand& value) {
  return index_fill_change(x, dim, index, value, "index_fill").made(x);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Operand& value) & {
  return changed(*this, "index_fill_", [&](const char* op) { return index_fill_change(*this, dim, index, value, op); });
}

Tensor take(const Tensor& x, const Tensor& index) {
  const Tensor flat = x.checked("take").reshape({-1});
  const Tensor i = as_index(index, "take");
  common_device(flat, i, "take");
  return pick_slices("take", flat, 0, counted_from_start(i, flat.numel(), 0, "take"));
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  indices.checked(op);
  if (!dim) return picked(x.checked(op).reshape({x.numel()}), 0, indices.reshape({indices.numel()}), op);
  const int axis = axis_of(x, *dim, op);
  require(x.dim() == indices.dim(), ErrorKind::shape, op, "x of shape ", x, " and indices of shape ", indices,
          " need as many axes");
  if (x.dim() == 0) return picked(x, 0, indices, op);
  const Shape wide = broadcast_shapes(spliced(x.shape(), axis, 1, {1}), spliced(indices.shape(), axis, 1, {1}), op);
  const auto widened = [&](const Tensor& t) { return t.expand(spliced(wide, axis, 1, {t.size(axis)})); };
  return picked(widened(x), axis, widened(indices), op);
}

Tensor embedding(const Tensor& indices, const Tensor& weight) {
  const char* op = "embedding";
  require(weight.checked(op).dim() == 2, ErrorKind::shape, op, "the weight must have 2 axes, got shape ", weight);
  return blamed_on(op, [&] { return pick_slices(op, weight, 0, index_for(weight, 0, indices, op)); });
}

Tensor true_positions(const char* op, const Tensor& mask) {
  const NoGrad off;
  const int64_t n = mask.numel();
  const Options options{i64, mask.device()};
  if (n == 0) return empty({0}, options);
  const Tensor flat = mask.reshape({n}).contiguous();
  Tensor out;
  const PositionsCall call{arg(flat), [&](int64_t count) {
                             out = empty({count}, options);
                             return static_cast<int64_t*>(address(out));
                           }};
  if (offered(mask.device(), call)) {
    backend(mask.device()).positions(call);
    return out;
  }
  // Each true element's place among the true ones is a running count; the others go to one place past the end.
  const Tensor count = flat.to(i64).cumsum(0);
  const int64_t found = read_for<int64_t>(op, count.select(0, n - 1));
  const Tensor place = where(flat, count - 1, found), order = counting(n, mask);
  return scattered(Combine::set, empty({found + 1}, options), 0, place, order).narrow(0, 0, found);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  Tensor typed;
  return blamed_on("masked_fill", [&] { return where(mask, filling(x, mask, value, typed, "masked_fill"), x); });
}

Tensor& Tensor::masked_fill_(const Tensor& mask, const Operand& value) & {
  const char* op = "masked_fill_";
  require_writable(checked(op), op);
  Tensor typed;
  const Operand v = filling(*this, mask, value, typed, op);
  require(broadcast_shapes(shape(), mask.shape(), op) == shape(), ErrorKind::shape, op, "a mask of shape ", mask,
          " does not broadcast to shape ", *this);
  Operand choice[] = {mask, v, *this};
  return map_into(*this, point_op(index_of<point::Where>(ElementwiseOps{})), choice);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const char* op = "masked_select";
  require_mask(x, mask, op);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), op);
  return pick(op, x.expand(shape).reshape({shape.numel()}), 0, true_positions(op, mask.expand(shape)));
}

namespace {
// x, of the mask's shape and in a copy, with the elements of the source one after another where the mask holds.
Tensor mask_scattered(const Tensor& x, const Tensor& mask, const Tensor& source, const char* op) {
  require_mask(x, mask, op);
  require_source(x, source, op);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), op);
  const Tensor places = true_positions(op, mask.expand(shape));
  const int64_t n = places.numel();
  require(n <= source.numel(), ErrorKind::shape, op, "a source of shape ", source, " has fewer elements than the ", n,
          " places of the mask");
  const ScatterPlace at{op, 0, places};
  const Tensor values = source.reshape({source.numel()}).narrow(0, 0, n);
  return at.combine(Combine::set, x.expand(shape).reshape({shape.numel()}), values).reshape(shape);
}
}  // namespace

Tensor Plain::masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  return mask_scattered(x, mask, source, "masked_scatter");
}
Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) & {
  const char* op = "masked_scatter_";
  require_writable(checked(op), op);
  require(broadcast_shapes(shape(), mask.checked(op).shape(), op) == shape(), ErrorKind::shape, op, "a mask of shape ",
          mask, " does not broadcast to shape ", *this);
  return copy_(mask_scattered(*this, mask, source, op));
}

}  // namespace volta
