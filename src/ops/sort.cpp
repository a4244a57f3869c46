// Ops that order: sort, topk, kthvalue, unique, searching, counting.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/index.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

// Positions [begin, begin + count) of the order along an axis.
ValuesIndices sorted_part(const char* op, const Tensor& x, int axis, bool descending, int64_t begin, int64_t count) {
  const Tensor rows = with_axis(x);
  Shape shape = rows.shape();
  shape[axis] = count;
  Tensor values = allocate(shape, x.dtype(), x.device(), op);
  const Tensor indices = allocate(shape, i64, x.device(), op);
  backend(x.device()).sort({arg(values), arg(indices), arg(rows), axis, descending, begin});
  values = record(op, std::move(values), {rows},
                  [op, shape = rows.shape(), axis, kept = save(indices)](const Tensor& g, Gradients& d) {
                    d[0] = place_add(op, shape, axis, d.take(kept), g);
                  });
  if (x.dim() == 0) return {values.reshape({}), indices.reshape({})};
  return {values, indices};
}

int axis_of(const Tensor& x, int64_t dim, const char* op) {
  return normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
}

int64_t size_along(const Tensor& x, int axis) { return x.dim() == 0 ? 1 : x.size(axis); }

void require_rank(const Tensor& k, int64_t n, bool ok, const char* op, int64_t wanted) {
  if (!ok)
    throw Error(Error::Kind::argument, op,
                "k is " + std::to_string(wanted) + " but the axis has " + std::to_string(n) + " elements, for shape " +
                    k.shape().str());
}

// Element counts of each number below n; weights may be undefined.
Tensor counted(const char* op, const Tensor& x, const Tensor& weights, int64_t n) {
  const Tensor each =
      weights.defined() ? weights : spread_index(ones({}, {.dtype = i64, .device = x.device()}), x.shape(), 0);
  return place_add(op, {n}, 0, x, each);
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, bool) {
  const int axis = axis_of(x, dim, "sort");
  return sorted_part("sort", x, axis, descending, 0, size_along(x, axis));
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending) {
  const int axis = axis_of(x, dim, "argsort");
  const Tensor rows = with_axis(x.detach());
  const Tensor indices = allocate(rows.shape(), i64, x.device(), "argsort");
  backend(x.device()).sort({{}, arg(indices), arg(rows), axis, descending});
  return x.dim() == 0 ? indices.reshape({}) : indices;
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
  const int axis = axis_of(x, dim, "topk");
  const int64_t n = size_along(x, axis);
  require_rank(x, n, k >= 0 && k <= n, "topk", k);
  if (x.dim() == 0 && k == 0)
    throw Error(Error::Kind::argument, "topk", "a 0-d tensor has exactly one element to give, got k 0");
  return sorted_part("topk", x, axis, largest, 0, k);
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  const int axis = axis_of(x, dim, "kthvalue");
  const int64_t n = size_along(x, axis);
  require_rank(x, n, k >= 1 && k <= n, "kthvalue", k);
  ValuesIndices r = sorted_part("kthvalue", x, axis, false, k - 1, 1);
  if (keepdim || x.dim() == 0) return r;
  return {r.values.squeeze(axis), r.indices.squeeze(axis)};
}

UniqueResult unique(const Tensor& x, const UniqueOptions& options) {
  refuse_grad("unique", {x.checked("unique")});
  const NoGrad off;
  const int64_t n = x.numel();
  const Options index{.dtype = i64, .device = x.device()};
  UniqueResult r;
  if (n == 0) {
    r.values = empty({0}, {.dtype = x.dtype(), .device = x.device()});
    if (options.return_inverse) r.inverse = empty(x.shape(), index);
    if (options.return_counts) r.counts = empty({0}, index);
    return r;
  }
  const auto [sorted, order] = volta::sort(x.reshape({n}), 0);
  const Tensor first = cat(
      {ones({1}, {.dtype = boolean, .device = x.device()}), sorted.narrow(0, 1, n - 1) != sorted.narrow(0, 0, n - 1)});
  r.values = pick("unique", sorted, 0, true_positions(first));
  if (!options.return_inverse && !options.return_counts) return r;
  const Tensor group = first.to(i64).cumsum(0) - 1;
  if (options.return_inverse)
    r.inverse = scattered("unique", Combine::set, empty({n}, index), 0, order, group).reshape(x.shape());
  if (options.return_counts) r.counts = counted("unique", group, {}, r.values.numel());
  return r;
}

Tensor searchsorted(const Tensor& sorted, const Operand& values, const SearchOptions& options) {
  const char* op = "searchsorted";
  const NoGrad off;
  sorted.checked(op);
  const Tensor wanted =
      values.tensor ? values.tensor->checked(op) : full({}, values.scalar, {.device = sorted.device()});
  common_device(sorted, wanted, op);
  const Operand both[] = {sorted, values};
  DType dtype = result_type(both, op);
  const bool integers = !is_floating(sorted.dtype()) || (values.tensor && !is_floating(wanted.dtype()));
  if (is_floating(dtype) && integers) dtype = f64;  // f32 would join neighbouring whole numbers
  Shape rows = wanted.dim() == 0 ? Shape{1} : wanted.shape();
  const Shape shape = rows;
  bool fits = sorted.dim() == 1 || (sorted.dim() > 1 && sorted.dim() == rows.size());
  for (int i = 0; fits && i + 1 < sorted.dim(); ++i) fits = sorted.size(i) == rows[i];
  if (!fits)
    throw Error(Error::Kind::shape, op,
                "a sorted tensor of shape " + sorted.shape().str() + " has no row for each of the values of shape " +
                    wanted.shape().str());
  rows[rows.size() - 1] = sorted.size(-1);
  const Tensor table = sorted.to(dtype).expand(rows);
  const Tensor sought =
      (values.tensor ? wanted.to(dtype) : full({}, values.scalar, {.dtype = dtype, .device = sorted.device()}))
          .reshape(shape);
  const Tensor out = allocate(shape, i64, sorted.device(), op);
  backend(sorted.device()).search({arg(out), arg(table), arg(sought), options.right});
  return out.reshape(wanted.shape());
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, const SearchOptions& options) {
  if (boundaries.checked("bucketize").dim() != 1)
    throw Error(Error::Kind::shape, "bucketize",
                "the boundaries must have one axis, got shape " + boundaries.shape().str());
  return searchsorted(boundaries, x.checked("bucketize"), options);
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const char* op = "bincount";
  const Tensor numbers = as_index(x, op);
  if (x.dim() != 1) throw Error(Error::Kind::shape, op, "needs one axis, got shape " + x.shape().str());
  if (minlength < 0) throw Error(Error::Kind::argument, op, "minlength is negative: " + std::to_string(minlength));
  if (weights.defined()) {
    refuse_grad(op, {weights});
    common_device(x, weights, op);
    if (weights.shape() != x.shape())
      throw Error(Error::Kind::shape, op,
                  "weights of shape " + weights.shape().str() + " for numbers of shape " + x.shape().str());
  }
  const NoGrad off;
  const int64_t low = x.numel() == 0 ? 0 : amin(numbers).item<int64_t>();
  const int64_t high = x.numel() == 0 ? -1 : amax(numbers).item<int64_t>();
  if (low < 0) throw Error(Error::Kind::index, op, "counts numbers that are not negative, got " + std::to_string(low));
  const Tensor w = weights.defined() && !is_floating(weights.dtype()) ? weights.to(f64) : weights;
  return counted(op, numbers, w, std::max(high + 1, minlength));
}

HistogramResult histogram(const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range) {
  const char* op = "histogram";
  refuse_grad(op, {x.checked(op)});
  const NoGrad off;
  if (bins < 1) throw Error(Error::Kind::argument, op, "needs at least one bin, got " + std::to_string(bins));
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : default_dtype();
  const Tensor values = x.reshape({x.numel()}).to(traits(dtype).compute);
  if (!range)
    range = x.numel() == 0 ? std::pair(0.0, 1.0) : std::pair(amin(values).item<double>(), amax(values).item<double>());
  auto [low, high] = *range;
  if (!std::isfinite(low) || !std::isfinite(high) || low > high)
    throw Error(Error::Kind::argument, op,
                "the range [" + std::to_string(low) + ", " + std::to_string(high) + "] is not one of finite numbers");
  if (low == high) low -= 0.5, high += 0.5;
  const Tensor edges = linspace(low, high, bins + 1, {.dtype = values.dtype(), .device = x.device()});
  // The last bin holds its right edge; everything outside, and NaN, is counted past the end and dropped.
  const Tensor bin = searchsorted(edges, values, {.right = true}) - 1;
  const Tensor inside = logical_and(values >= low, values <= high);
  const Tensor place = where(inside, bin.clamp(0, bins - 1), bins);
  return {counted(op, place, {}, bins + 1).narrow(0, 0, bins).to(dtype), edges.to(dtype)};
}

}  // namespace volta
