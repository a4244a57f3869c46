// x[…]: basic indices give views, index tensors and masks copies; assigning writes into x.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/index.h"
#include "ops/point.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

constexpr const char* op = "index";

bool is_mask(const Index& i) { return i.kind == Index::Kind::tensor && i.tensor.checked(op).dtype() == boolean; }

// How many axes of the tensor an index speaks of.
int64_t consumed(const Index& i) {
  switch (i.kind) {
    case Index::Kind::rest:
    case Index::Kind::fresh: return 0;
    case Index::Kind::tensor: return is_mask(i) ? i.tensor.dim() : 1;
    default: return 1;
  }
}

// Index tensors along consecutive axes of a view: what advanced indexing comes down to. A mask is one index along as many
// axes as it has, numbered row by row.
struct Advanced {
  int axis, axes;
  Tensor index;  // i64
};

struct Parsed {
  Tensor view;  // after integers, slices and new axes
  std::vector<Advanced> advanced;
};

class Parser {
 public:
  Parser(const Tensor& x, std::span<const Index> indices) : shape_(x.checked(op).shape()), indices_(indices) {
    result_.view = x;
    int64_t named = 0, ellipses = 0;
    for (const Index& i : indices) {
      named += consumed(i);
      ellipses += i.kind == Index::Kind::rest;
    }
    if (named > x.dim())
      throw Error(Error::Kind::index, op,
                  "too many indices: " + std::to_string(named) + " for shape " + shape_.str() + " with " +
                      std::to_string(x.dim()) + " axes");
    if (ellipses > 1) throw Error(Error::Kind::index, op, "more than one ellipsis");
    rest_ = int(x.dim() - named);
  }

  Parsed run() {
    for (const Index& i : indices_) step(i);
    return std::move(result_);
  }

 private:
  void step(const Index& i) {
    Tensor& view = result_.view;
    switch (i.kind) {
      case Index::Kind::rest: axis_ += rest_, from_ += rest_; return;
      case Index::Kind::fresh: view = view.unsqueeze(axis_++); return;
      case Index::Kind::integer: select(i.integer); return;
      case Index::Kind::range:
        if (i.range.step == 0) throw Error(Error::Kind::argument, op, "a slice's step must not be 0");
        view = view.slice(axis_++, i.range.begin, i.range.end, i.range.step);
        ++from_;
        return;
      case Index::Kind::tensor: return is_mask(i) ? mask(i.tensor) : tensor(i.tensor);
    }
  }

  void select(int64_t i) {
    const int64_t n = shape_[from_];
    if (i < -n || i >= n)
      throw Error(Error::Kind::index, op,
                  "index " + std::to_string(i) + " is out of range for axis " + std::to_string(from_) + " of size " +
                      std::to_string(n) + ", shape " + shape_.str());
    result_.view = result_.view.select(axis_, i);
    ++from_;
  }

  void tensor(const Tensor& index) {
    common_device(result_.view, index, op);
    const Tensor i = as_index(index, op);
    check_indices(i, shape_[from_], from_, op);
    result_.advanced.push_back({axis_++, 1, i});
    ++from_;
  }

  void mask(const Tensor& m) {
    common_device(result_.view, m, op);
    for (int i = 0; i < m.dim(); ++i)
      if (m.shape()[i] != shape_[from_ + i])
        throw Error(Error::Kind::index, op,
                    "a mask of shape " + m.shape().str() + " does not fit axes " + std::to_string(from_) + " to " +
                        std::to_string(from_ + m.dim() - 1) + " of shape " + shape_.str());
    if (m.dim() == 0) result_.view = result_.view.unsqueeze(axis_);  // one truth: an axis of size 0 or 1
    const int axes = std::max(1, int(m.dim()));
    result_.advanced.push_back({axis_, axes, true_positions(m)});
    axis_ += axes;
    from_ += int(m.dim());
  }

  Shape shape_;  // of the tensor indexed
  std::span<const Index> indices_;
  Parsed result_;
  int rest_ = 0, axis_ = 0, from_ = 0;  // axes an ellipsis stands for; where we are in the view and in the tensor
};

// Advanced indexing as one index along one axis: the view's axes in another order, some of them joined.
struct Plan {
  Shape order;    // of the view's axes
  Shape ordered;  // their sizes
  Shape joined;   // with the indexed axes as one
  int axis;       // that one
  Tensor index;   // 1-D
  Shape result;
};

bool adjacent(const std::vector<Advanced>& list) {
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i].axis != list[i - 1].axis + list[i - 1].axes) return false;
  return true;
}

int64_t extent_of(const Shape& shape, const Advanced& a) {
  int64_t n = 1;
  for (int i = 0; i < a.axes; ++i) n *= shape[a.axis + i];
  return n;
}

// Several indices as one into the joined axes. Outside the CPU a bad one becomes a place past the end, which the loop reports.
Tensor combined_index(const std::vector<Advanced>& list, const Shape& shape, const Shape& common) {
  const NoGrad off;
  if (list.size() == 1) return list[0].index.reshape({common.numel()});
  Tensor place, good;
  int64_t total = 1;
  for (const Advanced& a : list) {
    const int64_t n = extent_of(shape, a);
    const Tensor i = where(a.index < 0, a.index + n, a.index);
    place = place.defined() ? place * n + i : i;
    total *= n;
    if (a.index.device().is_cpu()) continue;
    const Tensor fits = logical_and(i >= 0, i < n);
    good = good.defined() ? logical_and(good, fits) : fits;
  }
  if (good.defined()) place = where(good, place, total);
  return place.expand(common).reshape({common.numel()});
}

Plan make_plan(const Shape& shape, const std::vector<Advanced>& list) {
  Plan p;
  Shape common;
  for (const Advanced& a : list) common = broadcast_shapes(common, a.index.shape(), op);
  const bool in_place = adjacent(list);
  std::vector<bool> indexed(size_t(shape.size()), false);
  for (const Advanced& a : list) std::fill_n(indexed.begin() + a.axis, a.axes, true);
  const int first = in_place ? list[0].axis : 0;
  for (int i = 0; i < first; ++i) p.order.push_back(i);
  for (int i = 0; i < shape.size(); ++i)
    if (indexed[size_t(i)]) p.order.push_back(i);
  for (int i = first; i < shape.size(); ++i)
    if (!indexed[size_t(i)]) p.order.push_back(i);
  for (int64_t a : p.order) p.ordered.push_back(shape[int(a)]);
  int64_t total = 1;
  for (const Advanced& a : list) total *= extent_of(shape, a);
  p.axis = first;
  for (int i = 0; i < shape.size(); ++i) {
    if (i == first) {
      p.joined.push_back(total);
      for (int64_t n : common) p.result.push_back(n);
    }
    if (indexed[size_t(p.order[i])]) continue;
    p.joined.push_back(p.ordered[i]);
    p.result.push_back(p.ordered[i]);
  }
  checked_numel(p.result, op);
  p.index = combined_index(list, shape, common);
  return p;
}

Tensor joined(const Tensor& view, const Plan& p) {
  const Tensor ordered = std::is_sorted(p.order.begin(), p.order.end()) ? view : view.permute(p.order);
  return p.joined == p.ordered ? ordered : ordered.reshape(p.joined);
}

Tensor read(const Tensor& view, const Plan& p) {
  const Tensor y = pick_slices(op, joined(view, p), p.axis, p.index);
  return y.shape() == p.result ? y : y.reshape(p.result);
}

// The value in the shape that is assigned to; leading axes of size 1 do not matter.
Tensor fitted(const Operand& value, const Tensor& like, const Shape& shape) {
  if (!value.tensor) {
    require_storable(value.scalar, like.dtype(), op);
    return full({}, value.scalar, {.dtype = like.dtype(), .device = like.device()}).expand(shape);
  }
  Tensor v = value.tensor->checked(op);
  common_device(like, v, op);
  while (v.dim() > shape.size() && v.size(0) == 1) v = v.select(0, 0);
  if (v.dim() > shape.size() || broadcast_shapes(v.shape(), shape, op) != shape)
    throw Error(Error::Kind::shape, op,
                "a value of shape " + value.tensor->shape().str() + " cannot be assigned to shape " + shape.str());
  return v.to(like.dtype()).expand(shape);
}

// As the plan sees it: [before…, indexed, after…].
Tensor planned_value(const Tensor& value, const Plan& p) {
  Shape shape = p.joined;
  shape[p.axis] = p.index.numel();
  return value.reshape(shape);
}

Tensor written(const Tensor& view, const Plan& p, const Tensor& value) {
  const Tensor v = planned_value(value, p);
  Shape back = p.order;
  for (int i = 0; i < back.size(); ++i) back[int(p.order[i])] = i;
  return joined(view, p).scatter(p.axis, spread_index(p.index, v.shape(), p.axis), v).reshape(p.ordered).permute(back);
}

// Without a graph: into the memory itself where the joined axes are a view of it.
void write_in_place(Tensor& view, const Plan& p, const Tensor& value) {
  const auto flat = views::reshape(views::permute(layout(view), p.order), p.joined);
  if (!flat) {
    view.copy_(written(view, p, value));
    return;
  }
  const Tensor target = alias(view, *flat);
  Tensor v = planned_value(value, p);
  if (same_memory(view, v)) v = v.clone();
  Tensor index = spread_index(p.index, v.shape(), p.axis);
  if (same_memory(view, index)) index = index.clone();
  backend(view.device()).scatter({Combine::set, arg(target), arg(v), arg(index), p.axis});
  bump_version(view);
}

// A single mask and a single number: choosing needs no positions.
bool fill_where(const Tensor& base, std::span<const Index> indices, const Operand& value) {
  if (value.tensor || indices.size() != 1 || !is_mask(indices[0]) || indices[0].tensor.dim() == 0) return false;
  require_writable(base, op);
  Tensor view = base;
  const Tensor& m = indices[0].tensor;
  require_storable(value.scalar, view.dtype(), op);
  Shape wide = m.shape();
  while (wide.size() < view.dim()) wide.push_back(1);
  const Tensor mask = m.reshape(wide),
               number = full({}, value.scalar, {.dtype = view.dtype(), .device = view.device()});
  if (any_needs_grad(view)) {
    view.copy_(where(mask, number, view));
    return true;
  }
  const Tensor choice = same_memory(mask, view) ? mask.clone() : mask;
  MapCall call{&point_op(index_of<point::Where>(PointOps{})), 0, traits(view.dtype()).compute, arg(view), {}, 3};
  call.in[0] = arg(choice);
  call.in[1] = arg(number);
  call.in[2] = arg(view);
  backend(view.device()).map(call);
  bump_version(view);
  return true;
}

void assign(const Tensor& base, std::span<const Index> indices, const Operand& value) {
  if (fill_where(base, indices, value)) return;
  Parsed parsed = Parser(base, indices).run();
  Tensor& view = parsed.view;
  require_writable(view, op);
  const Plan p = make_plan(view.shape(), parsed.advanced);
  const Tensor v = fitted(value, view, p.result);
  if (p.index.numel() == 0 || v.numel() == 0) return;
  if (any_needs_grad(view, v)) view.copy_(written(view, p, v));
  else write_in_place(view, p, v);
}

// x[i] += v and its kin: what was read, combined with v, must fit where it came from.
Tensor fitting(Tensor result, const Tensor& old) {
  if (traits(result.dtype()).kind > traits(old.dtype()).kind &&
      !(is_integral(result.dtype()) && is_integral(old.dtype())))
    throw Error(
        Error::Kind::dtype, op,
        "a result of " + std::string(name(result.dtype())) + " cannot be stored in " + std::string(name(old.dtype())));
  if (result.shape() != old.shape())
    throw Error(Error::Kind::shape, op,
                "the result has shape " + result.shape().str() + ", the place " + old.shape().str());
  return result;
}

using Combination = Tensor (*)(const Operand&, const Operand&);
using InPlace = Tensor& (Tensor::*)(const Operand&);

void combine(Tensor& value, const Tensor& base, std::span<const Index> indices, const Operand& other, Combination f,
             InPlace f_) {
  if (!indices.empty()) return assign(base, indices, fitting(f(value, other), value));
  // A derivative may need the old values, which the in-place form overwrites.
  if (any_needs_grad(value, other.tensor ? *other.tensor : Tensor()))
    value.copy_(fitting(f(value.clone(), other), value));
  else (value.*f_)(other);
}

Indexed indexed(const Tensor& x, std::span<const Index> indices) {
  Parsed parsed = Parser(x, indices).run();
  if (parsed.advanced.empty()) return Indexed(std::move(parsed.view), x, {});
  Tensor value = read(parsed.view, make_plan(parsed.view.shape(), parsed.advanced));
  return Indexed(std::move(value), x, std::vector<Index>(indices.begin(), indices.end()));
}

}  // namespace

Indexed Tensor::operator[](int64_t index) const {
  const Index i(index);
  return indexed(*this, std::span(&i, 1));
}
Indexed Tensor::operator[](const Tensor& index) const {
  const Index i(index);
  return indexed(*this, std::span(&i, 1));
}
Indexed Tensor::operator[](Slice index) const {
  const Index i(index);
  return indexed(*this, std::span(&i, 1));
}
Indexed Tensor::operator[](std::initializer_list<Index> indices) const {
  return indexed(*this, std::span(indices.begin(), indices.size()));
}

void Indexed::operator=(const Operand& value) && {
  if (!indices_.empty()) return assign(base_, indices_, value);
  if (!value.tensor) fill_(value);
  else copy_(fitted(value, *this, shape()));
}
void Indexed::operator+=(const Operand& value) && { combine(*this, base_, indices_, value, volta::add, &Tensor::add_); }
void Indexed::operator-=(const Operand& value) && { combine(*this, base_, indices_, value, volta::sub, &Tensor::sub_); }
void Indexed::operator*=(const Operand& value) && { combine(*this, base_, indices_, value, volta::mul, &Tensor::mul_); }
void Indexed::operator/=(const Operand& value) && { combine(*this, base_, indices_, value, volta::div, &Tensor::div_); }

}  // namespace volta
