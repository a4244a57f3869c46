// Sequences of different lengths, packed and padded.
#include <algorithm>
#include <numeric>

#include <volta/create.h>
#include <volta/ops.h>
#include "core/checked_arithmetic.h"
#include "ops/check.h"

namespace volta {

void PackedSequence::check(const char* op) const {
  require(data.checked(op).dim() > 0, ErrorKind::shape, op, "packed data need an axis of rows, got shape ", data);
  const auto count = int64_t(order.size());
  Checked rows = 0;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    const int64_t n = batch_sizes[t], most = t == 0 ? count : batch_sizes[t - 1];
    require(n > 0 && n <= most && (t > 0 || n == count), ErrorKind::argument, op, "batch_sizes must begin with the ",
            count, " sequences of `order` and not grow: number ", t, " is ", n);
    rows += n;
  }
  require(rows.within(data.size(0), data.size(0)) && batch_sizes.empty() == order.empty(), ErrorKind::argument, op,
          "the batch sizes do not add up to ", data.size(0), " rows");
  std::vector<bool> seen(order.size());
  for (const int64_t i : order) {
    require(i >= 0 && i < count && !seen[size_t(i)], ErrorKind::argument, op, "order must name each of ", count,
            " sequences once: ", i, " does not fit");
    seen[size_t(i)] = true;
  }
}

std::vector<int64_t> PackedSequence::lengths() const {
  check("PackedSequence::lengths");
  std::vector<int64_t> list(order.size(), 0);
  for (const int64_t n : batch_sizes)
    for (int64_t i = 0; i < n; ++i) ++list[size_t(order[size_t(i)])];
  return list;
}

std::vector<int64_t> lengths_of(const Tensor& lengths, const char* op) {
  require(lengths.checked(op).dim() == 1, ErrorKind::shape, op, "needs lengths of shape [n], got ", lengths);
  require(is_integral(lengths.dtype()), ErrorKind::dtype, op, "needs lengths of integers, got ", lengths.dtype());
  return lengths.to_vector<int64_t>();
}

PackedSequence pack_padded_sequence(const Tensor& x, const std::vector<int64_t>& lengths, bool batch_first) {
  const char* op = "pack_padded_sequence";
  require(x.checked(op).dim() >= 2, ErrorKind::shape, op, "needs [time, batch, ...], got ", x);
  const int64_t batch = x.size(batch_first ? 0 : 1), time = x.size(batch_first ? 1 : 0);
  require(int64_t(lengths.size()) == batch, ErrorKind::argument, op, lengths.size(), " lengths for shape ", x);
  for (const int64_t n : lengths)
    require(n > 0 && n <= time, ErrorKind::argument, op, "length ", n, " is not within 1 and ", time);
  PackedSequence p;
  p.order.resize(lengths.size());
  std::iota(p.order.begin(), p.order.end(), int64_t{0});
  std::stable_sort(p.order.begin(), p.order.end(),
                   [&](int64_t a, int64_t b) { return lengths[size_t(a)] > lengths[size_t(b)]; });
  std::vector<int64_t> places;
  for (int64_t t = 0; t < time; ++t) {
    int64_t n = 0;
    for (; n < batch && lengths[size_t(p.order[size_t(n)])] > t; ++n)
      places.push_back(batch_first ? p.order[size_t(n)] * time + t : t * batch + p.order[size_t(n)]);
    if (n > 0) p.batch_sizes.push_back(n);
  }
  p.data = x.flatten(0, 1).index_select(0, tensor(places).to(x.device()));
  return p;
}

PaddedSequence pad_packed_sequence(const PackedSequence& p, bool batch_first, double padding_value) {
  const char* op = "pad_packed_sequence";
  p.check(op);
  require_storable(padding_value, p.data.dtype(), op);
  const int64_t rows = p.data.size(0), batch = int64_t(p.order.size()), time = int64_t(p.batch_sizes.size());
  std::vector<int64_t> places(size_t(batch * time), rows);  // the row after the last is padding
  int64_t row = 0;
  for (int64_t t = 0; t < time; ++t)
    for (int64_t i = 0; i < p.batch_sizes[size_t(t)]; ++i) {
      const int64_t b = p.order[size_t(i)];
      places[size_t(batch_first ? b * time + t : t * batch + b)] = row++;
    }
  Shape one = p.data.shape();
  one[0] = 1;
  const Tensor padding = full(one, padding_value, {p.data.dtype(), p.data.device()});
  const Tensor all = cat({p.data, padding}).index_select(0, tensor(places).to(p.data.device()));
  return {all.unflatten(0, batch_first ? Shape{batch, time} : Shape{time, batch}), p.lengths()};
}

}  // namespace volta
