// Ops that order: sort, topk, kthvalue, unique, searching, counting.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "core/room.h"
#include "graph/record.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"

namespace volta {
namespace {

int64_t size_along(const Tensor& x, int axis) { return row_layout(x).shape[axis]; }

// Positions [begin, begin + count) of the order along an axis.
ValuesIndices sorted_part(const char* op, const Tensor& x, int axis, bool descending, int64_t begin, int64_t count) {
  const Shape shape = x.dim() == 0 ? Shape() : spliced(x.shape(), axis, 1, {count});
  Tensor values = allocate(shape, x.dtype(), x.device(), op);
  const Tensor indices = allocate(shape, i64, x.device(), op);
  within_memory(op, [&] {
    backend(x.device()).sort({row_arg(values), row_arg(indices), row_arg(x), axis, descending, begin});
  });
  return {chosen(op, std::move(values), x, axis, indices), indices};
}

void require_rank(const Tensor& x, int axis, int64_t k, int64_t least, const char* op) {
  const int64_t n = size_along(x, axis);
  require(k >= least && k <= n, ErrorKind::argument, op, "k is ", k, " but the axis has ", n, " elements, for shape ",
          x);
}

// How often each number below n occurs, or the sum of its weights where they are defined.
Tensor counted(const char* op, const Tensor& x, const Tensor& weights, int64_t n) {
  return place_add(op, {n}, 0, x, weights.defined() ? weights : number(1, x).expand(x.shape()));
}

// Which elements (or rows) of a list differ from the one before: the first of their kind where equal ones are together.
Tensor begins_group(const Tensor& list) {
  const int64_t n = list.size(0);
  Tensor first = ones({n}, {.dtype = boolean, .device = list.device()});
  if (n <= 1) return first;
  Tensor differs = list.narrow(0, 1, n - 1) != list.narrow(0, 0, n - 1);
  if (differs.dim() > 1) differs = differs.any(1);
  first.narrow(0, 1, n - 1).copy_(differs);
  return first;
}

// The order that sorts rows by their first elements, then the second ones, and so on.
Tensor order_of_rows(const Tensor& rows) {
  Tensor order = counting(rows.size(0), rows);
  for (int64_t c = rows.size(1) - 1; c >= 0; --c) {
    const Tensor column = pick_slices("unique", rows.select(1, c).contiguous(), 0, order);
    order = pick_slices("unique", order, 0, argsort(column, 0));
  }
  return order;
}

// Groups of equal neighbours along an axis, or of the flattened tensor; with `ordered` of all equal ones.
UniqueResult grouped(const char* op, const Tensor& x, std::optional<int64_t> dim, bool inverse, bool counts,
                     bool ordered) {
  refuse_grad(op, {x.checked(op)});
  const NoGrad off;
  const bool whole = !dim || x.dim() == 0;
  const int axis = dim ? axis_of(x, *dim, op) : 0;
  const Tensor moved = whole ? x.reshape({x.numel()}) : movedim(x, axis, 0);
  const int64_t n = moved.size(0);
  if (!whole)
    require(n == 0 || x.numel() > 0, ErrorKind::shape, op, "there are no elements to compare along axis ", axis,
            " of shape ", x);
  Tensor list = whole ? moved : moved.reshape({n, n == 0 ? 1 : x.numel() / n}), order;
  if (!whole && n == 0) list = list.reshape({0});
  if (ordered) {
    if (list.dim() == 1) {
      const ValuesIndices sorted = blamed_on(op, [&] { return volta::sort(list, 0); });
      list = sorted.values, order = sorted.indices;
    } else {
      order = blamed_on(op, [&] { return order_of_rows(list); });
      list = pick_slices(op, list, 0, order);
    }
  }
  const Tensor first = begins_group(list), places = true_positions(op, first);
  Tensor values = pick_slices(op, list, 0, places);
  if (!whole) values = movedim(values.reshape(spliced(moved.shape(), 0, 1, {places.numel()})), 0, axis).contiguous();
  UniqueResult r{values, {}, {}};
  if (!inverse && !counts) return r;
  const Tensor group = first.to(i64).cumsum(0) - 1;
  if (inverse) {
    const Shape shape = whole ? x.shape() : Shape{n};
    r.inverse =
        (ordered ? scattered(Combine::set, empty({n}, {.dtype = i64, .device = x.device()}), 0, order, group) : group)
            .reshape(shape);
  }
  if (counts) r.counts = counted(op, group, {}, places.numel());
  return r;
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, bool) {
  const int axis = axis_of(x, dim, "sort");
  return sorted_part("sort", x, axis, descending, 0, size_along(x, axis));
}

Tensor msort(const Tensor& x) {
  return blamed_on("msort", [&] { return volta::sort(x, 0).values; });
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending) {
  const int axis = axis_of(x, dim, "argsort");
  const Tensor indices = allocate(x.shape(), i64, x.device(), "argsort");
  within_memory("argsort", [&] { backend(x.device()).sort({{}, row_arg(indices), row_arg(x), axis, descending}); });
  return indices;
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
  const int axis = axis_of(x, dim, "topk");
  require_rank(x, axis, k, x.dim() == 0 ? 1 : 0, "topk");
  return sorted_part("topk", x, axis, largest, 0, k);
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  const int axis = axis_of(x, dim, "kthvalue");
  require_rank(x, axis, k, 1, "kthvalue");
  const ValuesIndices r = sorted_part("kthvalue", x, axis, false, k - 1, 1);
  if (keepdim || x.dim() == 0) return r;
  return {r.values.squeeze(axis), r.indices.squeeze(axis)};
}

UniqueResult unique(const Tensor& x, const UniqueOptions& o) {
  return grouped("unique", x, o.dim, o.return_inverse, o.return_counts, true);
}
UniqueResult unique_consecutive(const Tensor& x, const UniqueConsecutiveOptions& o) {
  return grouped("unique_consecutive", x, o.dim, o.return_inverse, o.return_counts, false);
}

Tensor isin(const Operand& elements, const Operand& test_elements, const IsinOptions& options) {
  const char* op = "isin";
  const NoGrad off;
  require(elements.tensor || test_elements.tensor, ErrorKind::argument, op, "needs a tensor");
  const Tensor& like = (elements.tensor ? elements.tensor : test_elements.tensor)->checked(op);
  const Operand both[] = {elements, test_elements};
  if (elements.tensor && test_elements.tensor) common_device(like, test_elements.tensor->checked(op), op);
  const DType dtype = result_type(both, op);
  const auto as_tensor = [&](const Operand& x) {
    return blamed_on(op, [&] {
      return x.tensor ? x.tensor->detach().to(dtype) : full({}, x.scalar, {dtype, like.device()});
    });
  };
  const Tensor x = as_tensor(elements), others = as_tensor(test_elements);
  const int64_t n = others.numel();
  if (n == 0) return full(x.shape(), options.invert, {boolean, like.device()});
  const Tensor sorted = blamed_on(op, [&] { return volta::sort(others.reshape({n}), 0).values; });
  const Tensor place = searchsorted(sorted, x).clamp_max(n - 1);
  const Tensor found = pick_slices(op, sorted, 0, place) == x;
  return options.invert ? logical_not(found) : found;
}

Tensor searchsorted(const Tensor& sorted, const Operand& values, const SearchOptions& options) {
  const char* op = "searchsorted";
  const NoGrad off;
  if (values.tensor) common_device(sorted.checked(op), values.tensor->checked(op), op);
  const Operand both[] = {sorted, values};
  DType dtype = result_type(both, op);
  const bool integers = !is_floating(sorted.dtype()) || (values.tensor && !is_floating(values.tensor->dtype()));
  if (is_floating(dtype) && integers) dtype = f64;  // f32 would join neighbouring whole numbers
  const Shape wanted = values.tensor ? values.tensor->shape() : Shape{}, shape = wanted.empty() ? Shape{1} : wanted;
  const int last = shape.size() - 1;
  const Shape rows = sorted.dim() == 0 ? Shape{} : spliced(shape, last, 1, {sorted.size(-1)});
  require(sorted.dim() == 1 || (sorted.dim() > 1 && sorted.shape() == rows), ErrorKind::shape, op,
          "a sorted tensor of shape ", sorted, " has no row for each of the values of shape ", wanted);
  const Tensor table = sorted.to(dtype).expand(rows), out = allocate(shape, i64, sorted.device(), op);
  const auto wanted_number = [&] { return number(values.scalar, table); };
  const Tensor sought = values.tensor ? values.tensor->to(dtype) : blamed_on(op, wanted_number);
  backend(sorted.device()).search({arg(out), arg(table), arg(sought.reshape(shape)), options.right});
  return out.reshape(wanted);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, const SearchOptions& options) {
  const char* op = "bucketize";
  require(boundaries.checked(op).dim() == 1, ErrorKind::shape, op, "needs boundaries of one axis, got ", boundaries);
  return searchsorted(boundaries, x.checked(op), options);
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const char* op = "bincount";
  const Tensor numbers = as_index(x, op);
  require(x.dim() == 1, ErrorKind::shape, op, "needs one axis, got shape ", x);
  require(minlength >= 0, ErrorKind::argument, op, "minlength is negative: ", minlength);
  if (weights.defined()) {
    refuse_grad(op, {weights});
    common_device(x, weights, op);
    require(weights.shape() == x.shape(), ErrorKind::shape, op, "weights of shape ", weights, " for numbers of shape ",
            x);
  }
  const NoGrad off;
  const int64_t low = x.numel() == 0 ? 0 : read_for<int64_t>(op, amin(numbers));
  const int64_t high = x.numel() == 0 ? -1 : read_for<int64_t>(op, amax(numbers));
  require(low >= 0, ErrorKind::index, op, "counts numbers that are not negative, got ", low);
  const Tensor w = weights.defined() && !is_floating(weights.dtype()) ? weights.to(f64) : weights;
  const int64_t bins = std::max((Checked(high) + 1).value(op), minlength);
  return blamed_on(op, [&] { return counted(op, numbers, w, bins); });
}

HistogramResult histogram(const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range) {
  const char* op = "histogram";
  refuse_grad(op, {x.checked(op)});
  const NoGrad off;
  require(bins >= 1, ErrorKind::argument, op, "needs at least one bin, got ", bins);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : default_dtype();
  const Tensor values = x.reshape({x.numel()}).to(traits(dtype).compute);
  if (!range)
    range = x.numel() == 0 ? std::pair(0.0, 1.0)
                           : std::pair(read_for<double>(op, amin(values)), read_for<double>(op, amax(values)));
  double low = range->first, high = range->second;
  require(std::isfinite(low) && std::isfinite(high) && low <= high, ErrorKind::argument, op, "the range [", low, ", ",
          high, "] is not one of finite numbers");
  if (low == high) low -= 0.5, high += 0.5;
  const int64_t ends = (Checked(bins) + 1).value(op);
  const Tensor edges =
      blamed_on(op, [&] { return linspace(low, high, ends, {.dtype = values.dtype(), .device = x.device()}); });
  // The last bin holds its right edge; everything outside, and NaN, is counted past the end and dropped.
  const Tensor bin = searchsorted(edges, values, {.right = true}) - 1;
  const Tensor inside = logical_and(values >= low, values <= high);
  const Tensor place = where(inside, bin.clamp(0, bins - 1), bins);
  return {counted(op, place, {}, ends).narrow(0, 0, bins).to(dtype), edges.to(dtype)};
}

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  const char* op = "histc";
  require_floating(x, op);
  refuse_grad(op, {x});
  if (min == max && x.numel() > 0) {
    const NoGrad off;
    min = read_for<double>(op, amin(x)), max = read_for<double>(op, amax(x));
  }
  if (min == max) --min, ++max;
  return blamed_on(op, [&] { return histogram(x, bins, std::pair(min, max)).counts; });
}

}  // namespace volta
