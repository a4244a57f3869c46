// Taps: which inputs each output of an axis reads, and with what weight. Pooling and interpolation are such tables, one for
// each axis, under a maximum or a sum.
#pragma once
#include <memory>
#include <vector>

#include <volta/tensor.h>

#include "backend/pool.h"
#include "core/room.h"

namespace volta {

struct Taps {
  // Throws unless memory holds the table.
  Taps(int64_t inputs, int64_t outputs, int64_t taps_each, const char* op)
      : in(inputs), out(outputs), count(taps_each), index(entries(outputs, taps_each, op)) {}
  // Without a table, for a result that has no elements.
  Taps(int64_t inputs, int64_t outputs) : in(inputs), out(outputs), count(0) {}
  int64_t& at(int64_t tap, int64_t output) { return index[size_t(tap * out + output)]; }

  int64_t in, out, count;
  std::vector<int64_t> index;   // [count, out]
  std::vector<double> weight;   // [count, out], for sums; an input of weight 0 is not read
  std::vector<double> divisor;  // [out], for averages, else empty
  // In [begin, end) every tap moves by `stride` from one output to the next, and weighs 1.
  int64_t begin = 0, end = 0, stride = 0;
  TapRule rule = {};

 private:
  static size_t entries(int64_t outputs, int64_t taps_each, const char* op);
};
using TapTable = std::shared_ptr<const std::vector<Taps>>;  // one for each of the last axes, at most three

// A window of `kernel` places along an axis.
struct Window {
  int64_t kernel, stride, padding, dilation = 1;
  bool ceil = false;
};
// Places in the padding are left out: they repeat another tap, with weight 0. Throws where a window does not fit.
Taps window_taps(int64_t in, const Window& window, const char* op);
// Output j sees inputs [j in / out, (j + 1) in / out), rounded outwards.
Taps adaptive_taps(int64_t in, int64_t out, const char* op);
// Throws unless memory holds a tensor like x with these sizes of the last axes: asked before any table is made. Whether
// that tensor has elements.
bool require_room(const Tensor& x, const Shape& last, const char* op);
// A table for each of the last axes, which become of these sizes: number i is make(i).
template <class F> TapTable tables_of(const Tensor& x, const Shape& last, const char* op, F make) {
  const bool any = require_room(x, last, op);
  auto taps = std::make_shared<std::vector<Taps>>();
  within_memory(op, [&] {
    for (int i = 0; i < last.size(); ++i) taps->push_back(any ? make(i) : Taps(x.size(i - last.size()), last[i]));
  });
  return taps;
}

// The sums over the taps of the last axes, as often differentiable as one likes: its gradient is its transpose. `back` is
// that transpose, from outputs to inputs.
Tensor sum_of_taps(const char* op, const Tensor& x, const TapTable& taps, bool back = false);
// The largest of the taps, and where they lie in the plane of the last axes (i64; undefined unless wanted).
ValuesIndices max_of_taps(const char* op, const Tensor& x, const TapTable& taps, bool indices);

}  // namespace volta
