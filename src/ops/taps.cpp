// Tables of taps, and the two folds over them.
#include "ops/taps.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include <volta/create.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "core/room.h"
#include "graph/record.h"
#include "ops/channels_last.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

int64_t outputs_of(int64_t in, const Window& w, const char* op) {
  const int64_t room =
      (in + 2 * Checked(w.padding) - Checked(w.dilation) * (w.kernel - 1) - 1 + (w.ceil ? w.stride - 1 : 0)).value(op);
  if (room < 0) return 0;
  const int64_t out = room / w.stride + 1;
  return w.ceil && (out - 1) * w.stride >= in + w.padding ? out - 1
                                                          : out;  // the last begins in the input or left of it
}

}  // namespace

Taps window_taps(int64_t in, const Window& w, const char* op) {
  const int64_t out = outputs_of(in, w, op);
  require(in > 0 && out > 0, ErrorKind::shape, op, "a kernel of ", w.kernel, " with dilation ", w.dilation,
          " is larger than an axis of ", in, " padded by ", w.padding);
  // A window that is larger than the input never sees all of its places: those that it can see are enough.
  const int64_t most = (in - 1) / w.dilation + 1, count = std::min(w.kernel, most);
  Taps t(in, out, count, op);
  t.weight.resize(t.index.size());
  for (int64_t j = 0; j < out; ++j) {
    const int64_t start = j * w.stride - w.padding;
    const int64_t skipped = start < 0 ? (-start + w.dilation - 1) / w.dilation : 0;
    const int64_t first = start + skipped * w.dilation;
    require(first < in && skipped < w.kernel, ErrorKind::argument, op, "a window with dilation ", w.dilation,
            " sees nothing but padding");
    int64_t last = first;
    const int64_t from = count < w.kernel ? skipped : 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t place = start + (from + k) * w.dilation;
      const bool inside = place >= 0 && place < in && from + k < w.kernel;
      if (inside) last = place;
      t.at(k, j) = last;
      t.weight[size_t(k * out + j)] = inside;
    }
  }
  t.rule = {TapRule::Kind::window, TapRule::Divisor::none, w.kernel, w.stride, w.padding, w.dilation};
  t.stride = w.stride;
  t.begin = std::min(out, (w.padding + w.stride - 1) / w.stride);
  const int64_t reach = in + w.padding - (w.kernel - 1) * w.dilation - 1;
  t.end = reach < 0 ? t.begin : std::clamp(reach / w.stride + 1, t.begin, out);
  return t;
}

size_t Taps::entries(int64_t outputs, int64_t taps_each, const char* op) {
  constexpr int64_t bytes = sizeof(int64_t) + sizeof(double);
  const int64_t n = (Checked(outputs) * taps_each).value(op);
  require_memory((Checked(n) * bytes + Checked(outputs) * int64_t(sizeof(double))).value(op), op);
  return size_t(n);
}

bool require_room(const Tensor& x, const Shape& last, const char* op) {
  Shape shape = x.shape();
  for (int i = 0; i < last.size(); ++i) shape[shape.size() - last.size() + i] = last[i];
  const Tensor room =
      allocate(shape, x.dtype(), x.device(), op);  // goes back to the cache, from where the result comes
  return room.numel() > 0;
}

Taps adaptive_taps(int64_t in, int64_t out, const char* op) {
  (Checked(in) * out + in + out).value(op);
  const auto begin = [=](int64_t j) { return j * in / out; };
  const auto end = [=](int64_t j) { return ((j + 1) * in + out - 1) / out; };
  // Output j begins at a remainder of j in / out that is a multiple of their common divisor, and ends `in` further on.
  const int64_t most = out == 0 ? 0 : (out - std::gcd(in, out) + in + out - 1) / out;
  Taps t(in, out, most, op);
  t.rule = {TapRule::Kind::adaptive, TapRule::Divisor::inside};
  t.weight.resize(t.index.size());
  t.divisor.reserve(size_t(out));
  for (int64_t j = 0; j < out; ++j) {
    const int64_t n = end(j) - begin(j);
    t.divisor.push_back(double(n));
    for (int64_t k = 0; k < most; ++k) {
      t.at(k, j) = begin(j) + std::min(k, n - 1);
      t.weight[size_t(k * out + j)] = k < n;
    }
  }
  return t;
}

namespace {

Shape with_last(const Shape& shape, const std::vector<Taps>& taps, bool inputs) {
  Shape s = shape;
  const int from = s.size() - int(taps.size());
  for (size_t i = 0; i < taps.size(); ++i) s[from + int(i)] = inputs ? taps[i].in : taps[i].out;
  return s;
}

// Whether the loops see rows of channels, and so does what comes after them.
bool in_rows(const Tensor& x, const std::vector<Taps>& taps) {
  return x.dim() == int64_t(taps.size()) + 2 && keeps_channels_last(x);
}

Tensor ordered(const Tensor& x, bool last) { return last ? channels_last(x) : x.contiguous(); }

// Describes the windows that gave `pooled`, or will.
PoolShape described(Pool pool, const Tensor& pooled, const std::vector<Taps>& taps, bool last) {
  static constexpr int64_t zero = 0;
  static constexpr double one = 1;
  PoolShape s{};
  s.pool = pool;
  if (last) s.channels = pooled.size(1);
  const size_t skipped = 3 - taps.size();
  int64_t outputs = 1;
  for (size_t i = 0; i < skipped; ++i) {
    s.axis[i].index = &zero, s.axis[i].weight = &one;
    s.axis[i].rule.kind = TapRule::Kind::window;
  }
  for (size_t i = 0; i < taps.size(); ++i) {
    const Taps& t = taps[i];
    const double* divisor = t.divisor.empty() ? nullptr : t.divisor.data();
    s.axis[skipped + i] = {t.in,    t.out,   t.count, t.index.data(), t.weight.data(),
                           divisor, t.begin, t.end,   t.stride,       t.rule};
    outputs *= t.out;
  }
  s.planes = pooled.numel() / (outputs * s.channels);
  return s;
}

// Whether there was nothing to look at: then `out` is zero.
bool done(const Tensor& out, const Tensor& in) {
  if (out.numel() > 0 && in.numel() > 0) return false;
  if (out.numel() > 0) Tensor(out).zero_();
  return true;
}

// All tensors but the given one are channels-last, or contiguous.
bool run_forward(const char* op, Pool pool, const Tensor& out, const Tensor& given, const Tensor& indices,
                 const std::vector<Taps>& taps, bool last) {
  const Tensor in = ordered(given, last);
  if (done(out, in)) return true;
  PoolCall call{described(pool, out, taps, last), arg(out), arg(in), {}};
  if (indices.defined()) call.indices = arg(indices);
  if (!offered(in.device(), call)) return false;
  within_memory(op, [&] { backend(in.device()).pool(call); });
  return true;
}
// Likewise. It is offered where its forward call is.
bool run_backward(const char* op, Pool pool, const Tensor& dx, const Tensor& given, const Tensor& indices,
                  const std::vector<Taps>& taps, bool last) {
  const Tensor g = ordered(given, last);
  if (done(dx, g)) return true;
  PoolBackwardCall call{described(pool, g, taps, last), arg(g), arg(dx), {}};
  if (indices.defined()) call.indices = arg(indices);
  if (!offered(g.device(), PoolCall{call, call.g, call.dx, call.indices})) return false;
  within_memory(op, [&] { backend(g.device()).pool_backward(call); });
  return true;
}

// A table of numbers on a device. Training meets the same few again and again: each thread keeps its last ones there, so
// that a step transfers nothing.
template <class T> Tensor kept_on(const std::vector<T>& values, DType dtype, Device device) {
  struct Table {
    std::vector<T> values;
    DType dtype;
    Tensor tensor;
  };
  constexpr size_t most_tables = 64, most_values = 1 << 14;
  thread_local std::deque<Table> tables;
  for (const Table& t : tables)
    if (t.dtype == dtype && t.tensor.device() == device && t.values == values) return t.tensor;
  const Tensor made = tensor(values).to(dtype).to(device);
  if (values.size() > most_values) return made;
  if (tables.size() == most_tables) tables.pop_front();
  return tables.emplace_back(Table{values, dtype, made}).tensor;
}
Tensor on(const std::vector<double>& values, const Tensor& like) {
  return kept_on(values, like.dtype(), like.device());
}
Tensor on(const std::vector<int64_t>& values, const Tensor& like) { return kept_on(values, i64, like.device()); }

// v over [count, out] or [out], to be multiplied with an axis that was split into [count, out].
Tensor beside(const Tensor& v, int64_t count, int64_t out, int axes_after) {
  Shape s{count, out};
  for (int i = 0; i < axes_after; ++i) s.push_back(1);
  return v.reshape(s);
}

// One axis of the composed sum: its inputs picked for all taps, weighed and added; or the transpose of that.
Tensor sum_axis(const Tensor& x, int axis, const Taps& t, bool back) {
  const int after = int(x.dim()) - 1 - axis;
  const Tensor weight = beside(on(t.weight, x), t.count, t.out, after), index = on(t.index, x);
  const Tensor divisor = t.divisor.empty() ? Tensor() : beside(on(t.divisor, x), 1, t.out, after);
  if (!back) {
    const Tensor picked = x.index_select(axis, index).unflatten(axis, {t.count, t.out});
    const Tensor sum = where(weight == 0, 0, picked * weight).sum(axis);
    return divisor.defined() ? sum / divisor.squeeze(0) : sum;
  }
  const Tensor g = (divisor.defined() ? x / divisor.squeeze(0) : x).unsqueeze(axis);
  Shape shape = x.shape();
  shape[axis] = t.in;
  return index_add(zeros(shape, {x.dtype(), x.device()}), axis, index,
                   where(weight == 0, 0, g * weight).flatten(axis, axis + 1));
}

Tensor composed_sum(Tensor x, const std::vector<Taps>& taps, bool back) {
  const int from = int(x.dim()) - int(taps.size());
  for (size_t i = 0; i < taps.size(); ++i) x = sum_axis(x, from + int(i), taps[i], back);
  return x;
}

// [..., in...] to [..., out..., all taps of a window, in its order].
Tensor windows(Tensor x, const std::vector<Taps>& taps) {
  const int axes = int(taps.size()), from = int(x.dim()) - axes;
  for (int i = axes - 1; i >= 0; --i)
    x = x.index_select(from + i, on(taps[size_t(i)].index, x))
            .unflatten(from + i, {taps[size_t(i)].count, taps[size_t(i)].out});
  Shape order;
  for (int i = 0; i < from; ++i) order.push_back(i);
  for (int i = 0; i < axes; ++i) order.push_back(from + 2 * i + 1);
  for (int i = 0; i < axes; ++i) order.push_back(from + 2 * i);
  return x.permute(order).flatten(from + axes, -1);
}

ValuesIndices composed_max(const Tensor& x, const std::vector<Taps>& taps) {
  const auto [values, local] = windows(x, taps).max(-1);
  Shape plane;
  for (const Taps& t : taps) plane.push_back(t.in);
  const Tensor places = windows(arange(0, plane.numel(), 1, {.dtype = i64, .device = x.device()}).reshape(plane), taps);
  return {values, places.expand(joined(local.shape(), {places.size(-1)})).gather(-1, local.unsqueeze(-1)).squeeze(-1)};
}

// The gradient of max: g goes to the places it came from.
Tensor max_back(const char* op, const Tensor& g, const Tensor& indices, const TapTable& taps, bool last) {
  const Shape shape = with_last(g.shape(), *taps, true);
  if (!grad_enabled()) {
    const Tensor dx = allocate(shape, last, g.dtype(), g.device(), op);
    if (run_backward(op, Pool::max, dx, g, ordered(indices, last), *taps, last)) return dx;
  }
  if (is_half(g.dtype())) return max_back(op, g.to(f32), indices, taps, last).to(g.dtype());  // summed as floats
  const int from = int(g.dim()) - int(taps->size());
  const Tensor none = zeros(shape, {g.dtype(), g.device()}).flatten(from);
  return scatter_add(none, from, indices.flatten(from), g.flatten(from)).reshape(shape);
}

}  // namespace

namespace {

// The device's loop; where it does not take halves, as floats; where it has none, composed.
Tensor sum_values(const char* op, const Tensor& x, const std::vector<Taps>& taps, bool back, bool last) {
  const Tensor y = allocate(with_last(x.shape(), taps, back), last, x.dtype(), x.device(), op);
  if ((back ? run_backward : run_forward)(op, Pool::sum, y, x, {}, taps, last)) return y;
  return is_half(x.dtype()) ? sum_values(op, x.to(f32), taps, back, last).to(x.dtype()) : composed_sum(x, taps, back);
}
ValuesIndices max_values(const char* op, const Tensor& x, const std::vector<Taps>& taps, bool indices, bool last) {
  const Shape shape = with_last(x.shape(), taps, false);
  const ValuesIndices y = {allocate(shape, last, x.dtype(), x.device(), op),
                           indices ? allocate(shape, last, i64, x.device(), op) : Tensor()};
  if (run_forward(op, Pool::max, y.values, x, y.indices, taps, last)) return y;
  if (!is_half(x.dtype())) return composed_max(x, taps);
  const ValuesIndices wide = max_values(op, x.to(f32), taps, indices, last);
  return {wide.values.to(x.dtype()), wide.indices};
}

Tensor ordered_sum(const char* op, const Tensor& x, const TapTable& taps, bool back, bool last) {
  Tensor y;
  {
    const NoGrad off;
    y = sum_values(op, x, *taps, back, last);
  }
  return record(op, y, {x}, [op, taps, back, last](const Tensor& g, Gradients& d) {
    d[0] = ordered_sum(op, g, taps, !back, last);
  });
}

}  // namespace

Tensor sum_of_taps(const char* op, const Tensor& x, const TapTable& taps, bool back) {
  return ordered_sum(op, x, taps, back, in_rows(x, *taps));
}

ValuesIndices max_of_taps(const char* op, const Tensor& x, const TapTable& taps, bool indices) {
  ValuesIndices y;
  const bool last = in_rows(x, *taps);
  {
    const bool wanted = indices || any_needs_grad(x);
    const NoGrad off;
    y = max_values(op, x, *taps, wanted, last);
  }
  y.values = record(op, y.values, {x}, [op, taps, last, places = save(y.indices)](const Tensor& g, Gradients& d) {
    d[0] = max_back(op, g, d.take(places), taps, last);
  });
  return y;
}

}  // namespace volta
