// x[…]: basic indices give views, index tensors and masks copies; assigning writes into x.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

#include "graph/record.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"
#include "ops/subscript.h"

namespace volta {
namespace {

constexpr const char* op = "index";

bool is_mask(const Index& i) { return i.kind == Index::Kind::tensor && i.tensor.checked(op).dtype() == boolean; }

// A 0-d tensor of integers is an index like a number, and gives a view.
std::optional<int64_t> whole(const Index& i) {
  if (i.kind == Index::Kind::integer) return i.integer;
  if (i.kind != Index::Kind::tensor || i.tensor.checked(op).dim() > 0 || !is_integral(i.tensor.dtype())) return {};
  const Scalar value = blamed_on(op, [&] { return i.tensor.item(); });
  return value.fits<int64_t>() ? value.as<int64_t>() : INT64_MAX;
}

// How many axes of the tensor an index speaks of.
int consumed(const Index& i) {
  if (i.kind == Index::Kind::rest || i.kind == Index::Kind::fresh) return 0;
  return is_mask(i) ? int(i.tensor.dim()) : 1;
}

// An index tensor along consecutive axes of a view: what advanced indexing comes down to. A mask is one index along as
// many axes as it has, numbered row by row.
struct Advanced {
  int axis, axes;
  Tensor index;       // i64
  int64_t total = 1;  // elements of those axes
};

// x[…] as one index along one axis of a view (after integers, slices and new axes) that has its axes in another order
// and the indexed ones joined.
struct Subscripts {
  Tensor view;
  Shape order;    // of the view's axes
  Shape ordered;  // their sizes
  Shape flat;     // with the indexed axes as one
  int axis = 0;   // that one
  Tensor index;   // of any shape; undefined when the view is all
  Shape result;
};

// The mask or the integers as an index of axes `from` on of the tensor, which are `axis` on of the view.
Advanced advanced(Tensor& view, int axis, const Index& i, const Shape& shape, int from) {
  const Tensor& t = i.tensor;
  common_device(view, t, op);
  if (!is_mask(i)) {
    return {axis, 1, counted_from_start(as_index(t, op), shape[from], from, op), shape[from]};
  }
  for (int k = 0; k < t.dim(); ++k)
    require(t.shape()[k] == shape[from + k], ErrorKind::index, op, "a mask of shape ", t, " does not fit axes ", from,
            " to ", from + t.dim() - 1, " of shape ", shape);
  if (t.dim() == 0) view = view.unsqueeze(axis);  // one truth: an axis of size 0 or 1
  return {axis, std::max(1, int(t.dim())), true_positions(op, t), t.numel()};
}

// Several indices as one into the joined axes. Where a device does not know their range, a bad one becomes a place past
// the end, which the loop reports.
Tensor combined_index(const std::vector<Advanced>& list, int64_t total) {
  if (list.size() == 1) return list[0].index;
  const NoGrad off;
  Tensor place, bad;
  for (const Advanced& a : list) {
    const Tensor& i = a.index;
    place = place.defined() ? place * a.total + i : i;
    if (backend(i.device()).knows_indices()) continue;
    const Tensor outside = logical_or(i < 0, i >= a.total);
    bad = bad.defined() ? logical_or(bad, outside) : outside;
  }
  return bad.defined() ? where(bad, total, place) : place;
}

Subscripts make_plan(Tensor view, const std::vector<Advanced>& list) {
  Subscripts p;
  p.view = std::move(view);
  if (list.empty()) return p;
  p.axis = list[0].axis;
  const Shape& shape = p.view.shape();
  Shape common, indexed;
  int64_t total = 1;
  for (const Advanced& a : list) {
    common = broadcast_shapes(common, a.index.shape(), op);
    if (!indexed.empty() && a.axis != indexed.back() + 1) p.axis = 0;  // not neighbours: their axes go to the front
    for (int i = 0; i < a.axes; ++i) indexed.push_back(a.axis + i);
    total *= a.total;
  }
  for (int i = 0; i < shape.size(); ++i)
    if (std::find(indexed.begin(), indexed.end(), i) == indexed.end()) p.order.push_back(i);
  p.order = spliced(p.order, p.axis, 0, indexed);
  for (int64_t a : p.order) p.ordered.push_back(shape[int(a)]);
  p.flat = spliced(p.ordered, p.axis, indexed.size(), {total});
  p.result = spliced(p.flat, p.axis, 1, common);
  checked_numel(p.result, op);
  p.index = combined_index(list, total);
  return p;
}

Subscripts parsed(const Tensor& x, std::span<const Index> indices) {
  const Shape& shape = x.checked(op).shape();
  int named = 0, ellipses = 0;
  for (const Index& i : indices) {
    named += consumed(i);
    ellipses += i.kind == Index::Kind::rest;
  }
  require(named <= x.dim(), ErrorKind::index, op, "too many indices: ", named, " for the axes of shape ", x);
  require(ellipses <= 1, ErrorKind::index, op, "more than one ellipsis");
  Tensor view = x;
  std::vector<Advanced> list;
  int axis = 0, from = 0;  // where we are in the view and in the tensor
  for (const Index& i : indices) {
    if (const auto place = whole(i)) {
      require(*place >= -shape[from] && *place < shape[from], ErrorKind::index, op, "index ", *place,
              " is out of range for axis ", from, " of size ", shape[from], ", shape ", x);
      view = view.select(axis, *place);
      ++from;
      continue;
    }
    switch (i.kind) {
      case Index::Kind::rest:
        axis += int(x.dim()) - named;
        from += int(x.dim()) - named;
        break;
      case Index::Kind::fresh: view = view.unsqueeze(axis++); break;
      case Index::Kind::integer: break;
      case Index::Kind::range:
        require(i.range.step != 0, ErrorKind::argument, op, "a slice's step must not be 0");
        view = view.slice(axis++, i.range.begin, i.range.end, i.range.step);
        break;
      case Index::Kind::tensor:
        list.push_back(advanced(view, axis, i, shape, from));
        axis += list.back().axes;
        break;
    }
    from += consumed(i);
  }
  return make_plan(std::move(view), list);
}

Subscripts parse(const Tensor& x, std::span<const Index> indices) {
  return blamed_on(op, [&] { return parsed(x, indices); });
}

Tensor flattened(const Subscripts& p) {
  const Tensor ordered = std::is_sorted(p.order.begin(), p.order.end()) ? p.view : p.view.permute(p.order);
  return p.flat == p.ordered ? ordered : ordered.reshape(p.flat);
}

// The value in the shape that is assigned to; leading axes of size 1 do not matter.
Tensor fitted(const Operand& value, const Tensor& like, const Shape& shape) {
  if (!value.tensor) {
    require_storable(value.scalar, like.dtype(), op);
    return number(value.scalar, like).expand(shape);
  }
  Tensor v = value.tensor->checked(op);
  common_device(like, v, op);
  while (v.dim() > shape.size() && v.size(0) == 1) v = v.select(0, 0);
  require(v.dim() <= shape.size() && broadcast_shapes(v.shape(), shape, op) == shape, ErrorKind::shape, op,
          "a value of shape ", *value.tensor, " cannot be assigned to shape ", shape);
  return v.to(like.dtype()).expand(shape);
}

// Into the memory itself where no graph is wanted and the joined axes are a view of it, else by way of a copy.
void write(Subscripts& p, Tensor v, Combine how = Combine::set) {
  Tensor& view = p.view;
  const Tensor index = p.index.reshape({p.index.numel()});
  v = v.reshape(spliced(p.flat, p.axis, 1, {index.numel()}));
  Tensor spread = spread_index(index, v.shape(), p.axis);
  const auto flat = views::reshape(views::permute(layout(view), p.order), p.flat);
  const bool adds = how == Combine::add;
  if (!flat || any_needs_grad(view, v) || (adds && is_half(view.dtype()))) {
    Shape back = p.order;
    for (int i = 0; i < back.size(); ++i) back[int(p.order[i])] = i;
    const Tensor old = flattened(p);
    const Tensor made = adds ? old.scatter_add(p.axis, spread, v) : old.scatter(p.axis, spread, v);
    view.copy_(made.reshape(p.ordered).permute(back));
    return;
  }
  if (same_memory(view, v)) v = v.clone();
  if (same_memory(view, spread)) spread = spread.clone();
  scattered(how, alias(view, *flat), p.axis, spread, v);
  bump_version(view);
}

// Whether the one index is a mask of the first axes.
bool masks_front(const Tensor& base, std::span<const Index> indices) {
  if (indices.size() != 1 || !is_mask(indices[0]) || indices[0].tensor.dim() == 0) return false;
  const Shape &mask = indices[0].tensor.shape(), &shape = base.shape();
  return mask.size() <= shape.size() && std::equal(mask.begin(), mask.end(), shape.begin());
}

void assign(const Tensor& base, std::span<const Index> indices, const Operand& value) {
  // A single mask and a single number: choosing needs no positions.
  if (!value.tensor && masks_front(base, indices)) {
    require_writable(base, op);
    require_storable(value.scalar, base.dtype(), op);
    const Shape& mask = indices[0].tensor.shape();
    const Shape wide = joined(mask, Shape::filled(int(base.dim()) - mask.size(), 1));
    Tensor(base).masked_fill_(indices[0].tensor.reshape(wide), value);
    return;
  }
  Subscripts p = parse(base, indices);
  require_writable(p.view, op);
  if (!p.index.defined()) {
    p.view.copy_(fitted(value, p.view, p.view.shape()));
    return;
  }
  const Tensor v = fitted(value, p.view, p.result);
  if (v.numel() > 0 || any_needs_grad(v)) write(p, v);  // an empty selection gives v zeros as its gradient
}

void add_at(const Tensor& base, std::span<const Index> indices, const Operand& value) {
  Subscripts p = parse(base, indices);
  if (!p.index.defined()) {
    p.view.add_(fitted(value, p.view, p.view.shape()));
    return;
  }
  require_writable(p.view, op);
  const Tensor v = fitted(value, p.view, p.result);
  if (v.numel() > 0 || any_needs_grad(v)) write(p, v, Combine::add);
}

// x[i] += v and its kin: what was read, combined with v, must fit where it came from.
Tensor fitting(const Tensor& result, const Tensor& old) {
  require_fitting(result.dtype(), old.dtype(), op);
  require(result.shape() == old.shape(), ErrorKind::shape, op, "the result has shape ", result, ", the place ", old);
  return result;
}

using Combination = Tensor (*)(const Operand&, const Operand&);
using InPlace = Tensor& (Tensor::*)(const Operand&)&;

void combine(Tensor& value, const Tensor& base, std::span<const Index> indices, const Operand& other, Combination f,
             InPlace f_) {
  if (!indices.empty()) return assign(base, indices, fitting(f(value, other), value));
  // A derivative may need the old values, which the in-place form overwrites.
  if (any_needs_grad(value, other.tensor ? *other.tensor : Tensor()))
    value.copy_(fitting(f(value.clone(), other), value));
  else (value.*f_)(other);
}

Indexed indexed(const Tensor& x, const Index& index) { return subscript(x, std::span(&index, 1)); }

}  // namespace

Indexed subscript(const Tensor& x, std::span<const Index> indices) {
  Subscripts p = parse(x, indices);
  if (!p.index.defined()) return Indexed(std::move(p.view), x, {});
  return Indexed(pick_slices(op, flattened(p), p.axis, p.index), x, {indices.begin(), indices.end()});
}

void assign_subscript(const Tensor& x, std::span<const Index> indices, const Operand& value) {
  const auto copies = [](const Index& i) { return i.kind == Index::Kind::tensor && !whole(i); };
  if (std::any_of(indices.begin(), indices.end(), copies)) assign(x, indices, value);
  else subscript(x, indices) = value;
}

Indexed Tensor::operator[](Int index) const { return indexed(*this, Index(int64_t(index))); }
Indexed Tensor::operator[](const Tensor& index) const { return indexed(*this, Index(index)); }
Indexed Tensor::operator[](Slice index) const { return indexed(*this, Index(index)); }
Indexed Tensor::operator[](std::initializer_list<Index> indices) const {
  return subscript(*this, std::span(indices.begin(), indices.size()));
}

Tensor& Tensor::index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate) & {
  require_writable(checked("index_put_"), "index_put_");
  std::vector<Index> list;
  for (const Tensor& i : indices) list.push_back(i.defined() ? Index(i) : Index(volta::slice()));
  blamed_on("index_put_", [&] { accumulate ? add_at(*this, list, values) : assign(*this, list, values); });
  return *this;
}
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Operand& values, bool accumulate) {
  Tensor y = x.checked("index_put").clone();
  return blamed_on("index_put", [&] { return y.index_put_(indices, values, accumulate); });
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
void Indexed::operator%=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::remainder, &Tensor::remainder_);
}
void Indexed::operator&=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::bitwise_and, &Tensor::bitwise_and_);
}
void Indexed::operator|=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::bitwise_or, &Tensor::bitwise_or_);
}
void Indexed::operator^=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::bitwise_xor, &Tensor::bitwise_xor_);
}
void Indexed::operator<<=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::bitwise_left_shift, &Tensor::bitwise_left_shift_);
}
void Indexed::operator>>=(const Operand& value) && {
  combine(*this, base_, indices_, value, volta::bitwise_right_shift, &Tensor::bitwise_right_shift_);
}

}  // namespace volta
