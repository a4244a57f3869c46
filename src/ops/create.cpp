// Making tensors that are empty, filled, or ranges.
#include "ops/create.h"

#include <atomic>
#include <cmath>
#include <limits>

#include <volta/ops.h>

#include "backend/backend.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

std::atomic<DType> default_float{f32};

std::string text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", x);
  return buffer;
}

DType dtype_of_number(Scalar value) {
  if (value.is_floating()) return default_dtype();
  return value.kind() == Kind::boolean ? boolean : i64;
}

// As dense as x: a transposed tensor gives a transposed one.
Tensor make_empty_like(const Tensor& x, const Options& options, const char* op) {
  const DType dtype = checked_dtype(options, x.dtype(), op);
  if (x.is_contiguous() || !layout(x).is_dense()) return allocate(x.shape(), dtype, options.device, op);
  return allocate_like(layout(x), dtype, options.device, op);
}

Tensor filled(const Shape& shape, Scalar value, const Options& options, DType fallback, const char* op) {
  Tensor x = make_empty(shape, options, fallback, op);
  fill(x, value);
  return finished(std::move(x), options);
}

Tensor filled_like(const Tensor& x, Scalar value, const Options& given, const char* op) {
  const Options options = options_like(x, given, op);
  Tensor y = make_empty_like(x, options, op);
  fill(y, value);
  return finished(std::move(y), options);
}

struct Range {
  Scalar start, step;
  int64_t count;
};

[[noreturn]] void refuse_range(const std::string& why) { throw Error(Error::Kind::argument, "arange", why); }

void check_direction(bool upward, bool forward, const std::string& start, const std::string& end,
                     const std::string& step) {
  if (upward != forward) refuse_range("a step of " + step + " does not lead from " + start + " to " + end);
}

int64_t whole_number(Scalar x) {
  if (x.kind() == Kind::unsigned_int && x.as<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    refuse_range(std::to_string(x.as<uint64_t>()) + " is beyond i64");
  return x.as<int64_t>();
}

Range whole_range(Scalar from, Scalar to, Scalar by) {
  const int64_t start = whole_number(from), end = whole_number(to), step = whole_number(by);
  if (step == 0) refuse_range("the step must not be 0");
  if (start == end) return {start, step, 0};
  check_direction(end > start, step > 0, std::to_string(start), std::to_string(end), std::to_string(step));
  const uint64_t distance = end > start ? uint64_t(end) - uint64_t(start) : uint64_t(start) - uint64_t(end);
  const uint64_t stride = step > 0 ? uint64_t(step) : -uint64_t(step);
  const uint64_t count = distance / stride + (distance % stride != 0);
  if (count > uint64_t(std::numeric_limits<int64_t>::max())) refuse_range("too many elements");
  return {start, step, int64_t(count)};
}

Range real_range(Scalar from, Scalar to, Scalar by) {
  const double start = from.as<double>(), end = to.as<double>(), step = by.as<double>();
  if (!std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step))
    refuse_range("from " + text(start) + " to " + text(end) + " by " + text(step) + ": all three must be finite");
  if (step == 0) refuse_range("the step must not be 0");
  if (start == end) return {start, step, 0};
  check_direction(end > start, step > 0, text(start), text(end), text(step));
  const double count = std::ceil((end - start) / step);
  if (!(count < 0x1p62)) refuse_range("too many elements");
  return {start, step, int64_t(count)};
}

// An integer dtype must hold the first and the last element, and steps must be whole.
Range for_integers(const Range& r, DType dtype) {
  const double start = r.start.as<double>(), step = r.step.as<double>();
  if (start != std::trunc(start) || step != std::trunc(step))
    refuse_range("a start of " + text(start) + " and a step of " + text(step) + " are not whole, as " +
                 std::string(name(dtype)) + " needs");
  const int64_t first = r.start.as<int64_t>(), by = r.step.as<int64_t>();
  const int64_t last = r.count > 0 ? int64_t(uint64_t(first) + uint64_t(r.count - 1) * uint64_t(by)) : first;
  visit(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      for (const int64_t x : {first, last})
        if (int64_t(T(x)) != x || (x < 0 && std::is_unsigned_v<T>))
          refuse_range(std::to_string(x) + " does not fit " + std::string(name(dtype_of<T>())));
    }
  });
  return {first, by, r.count};
}

bool is_whole(Scalar x) { return !x.is_floating() && x.kind() != Kind::boolean; }

// start, start + step, … up to the middle, and end, end - step, … down to it: both ends are exact.
void fill_linspace(const Tensor& x, double start, double end) {
  const int64_t n = x.numel(), half = n / 2 + n % 2;
  const double gaps = double(std::max<int64_t>(n - 1, 1)), range = end - start;
  const double step = std::isfinite(range) ? range / gaps : end / gaps - start / gaps;
  const Layout upper = views::narrow(views::flip(layout(x), {0}), 0, 0, n - half);
  Backend& device = backend(x.device());
  device.iota(arg(alias(x, views::narrow(layout(x), 0, 0, half))), start, step);
  if (n > half) device.iota(arg(alias(x, upper)), end, -step);
}

void check_steps(double start, double end, int64_t steps, const char* op) {
  if (steps < 0)
    throw Error(Error::Kind::argument, op, "the number of steps must not be negative, got " + std::to_string(steps));
  if (!std::isfinite(start) || !std::isfinite(end))
    throw Error(Error::Kind::argument, op, "the ends " + text(start) + " and " + text(end) + " must be finite");
}

Shape matrix_shape(int64_t n, std::optional<int64_t> m) { return {n, m.value_or(n)}; }

}  // namespace

DType default_dtype() { return default_float.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, "set_default_dtype", "needs a floating dtype, got " + std::string(name(dtype)));
  default_float.store(dtype, std::memory_order_relaxed);
}

DType checked_dtype(const Options& options, DType fallback, const char* op) {
  const DType dtype = options.dtype.value_or(fallback);
  if (options.requires_grad && !is_floating(dtype))
    throw Error(Error::Kind::dtype, op, "only floating tensors can require grad, not " + std::string(name(dtype)));
  backend(options.device);
  return dtype;
}

Options options_like(const Tensor& x, Options options, const char* op) {
  x.checked(op);
  if (!options.dtype) options.dtype = x.dtype();
  if (options.device == Device()) options.device = x.device();
  return options;
}

Tensor make_empty(const Shape& shape, const Options& options, DType fallback, const char* op) {
  checked_numel(shape, op);
  const DType dtype = checked_dtype(options, fallback, op);
  return allocate(shape, dtype, options.device, op);
}

Tensor finished(Tensor x, const Options& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

void fill(const Tensor& x, Scalar value) {
  if (x.numel() > 0) backend(x.device()).copy(arg(x), Arg{nullptr, nullptr, x.dtype(), value});
}

Tensor empty(const Shape& shape, const Options& options) {
  return finished(make_empty(shape, options, default_dtype(), "empty"), options);
}
Tensor zeros(const Shape& shape, const Options& options) { return filled(shape, 0, options, default_dtype(), "zeros"); }
Tensor ones(const Shape& shape, const Options& options) { return filled(shape, 1, options, default_dtype(), "ones"); }
Tensor full(const Shape& shape, Scalar value, const Options& options) {
  return filled(shape, value, options, dtype_of_number(value), "full");
}

Tensor empty_like(const Tensor& x, Options options) {
  options = options_like(x, options, "empty_like");
  return finished(make_empty_like(x, options, "empty_like"), options);
}
Tensor zeros_like(const Tensor& x, Options options) { return filled_like(x, 0, options, "zeros_like"); }
Tensor ones_like(const Tensor& x, Options options) { return filled_like(x, 1, options, "ones_like"); }
Tensor full_like(const Tensor& x, Scalar value, Options options) { return filled_like(x, value, options, "full_like"); }

Tensor arange(Scalar end) { return arange(0, end); }

Tensor arange(Scalar start, Scalar end, Scalar step, const Options& options) {
  const bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  Range range = whole ? whole_range(start, end, step) : real_range(start, end, step);
  const DType dtype = checked_dtype(options, whole ? i64 : default_dtype(), "arange");
  if (dtype == boolean) throw Error(Error::Kind::dtype, "arange", "is not defined for booleans");
  if (!is_floating(dtype)) range = for_integers(range, dtype);
  Tensor x = make_empty({range.count}, options, dtype, "arange");
  if (range.count > 0) backend(x.device()).iota(arg(x), range.start, range.step);
  return finished(std::move(x), options);
}

Tensor linspace(double start, double end, int64_t steps, const Options& options) {
  check_steps(start, end, steps, "linspace");
  const DType dtype = checked_dtype(options, default_dtype(), "linspace");
  Options exact = options;
  exact.dtype = is_floating(dtype) ? dtype : f64;
  Tensor x = make_empty({steps}, exact, f64, "linspace");
  if (steps > 0) fill_linspace(x, start, end);
  return finished(x.to(dtype), options);
}

Tensor logspace(double start, double end, int64_t steps, double base, const Options& options) {
  check_steps(start, end, steps, "logspace");
  const DType dtype = checked_dtype(options, default_dtype(), "logspace");
  const Tensor exponents = linspace(start, end, steps, {f64, options.device});
  return finished(pow(base, exponents).to(dtype), options);
}

Tensor eye(int64_t n, std::optional<int64_t> m, const Options& options) {
  Tensor x = make_empty(matrix_shape(n, m), options, default_dtype(), "eye");
  fill(x, 0);
  if (x.numel() > 0) fill(alias(x, views::diagonal(layout(x), 0, 0, 1)), 1);
  return finished(std::move(x), options);
}

Tensor tri(int64_t n, std::optional<int64_t> m, int64_t k, const Options& options) {
  const Shape shape = matrix_shape(n, m);
  checked_numel(shape, "tri");
  const DType dtype = checked_dtype(options, default_dtype(), "tri");
  const int64_t shift = std::clamp(k, -n - 1, shape[1] + 1);
  const Options indices{i64, options.device};
  const Tensor below = ge(arange(shift, n + shift, 1, indices).unsqueeze(1), arange(0, shape[1], 1, indices));
  return finished(below.to(dtype), options);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, const std::string& indexing) {
  if (indexing != "ij" && indexing != "xy")
    throw Error(Error::Kind::argument, "meshgrid", "indexing '" + indexing + "' is not one of ij, xy");
  const int rank = int(axes.size());
  Shape sizes;
  for (const Tensor& x : axes) {
    if (x.checked("meshgrid").dim() > 1)
      throw Error(Error::Kind::shape, "meshgrid", "needs vectors, got shape " + x.shape().str());
    if (x.dtype() != axes[0].dtype())
      throw Error(Error::Kind::dtype, "meshgrid",
                  "all must have one dtype, got " + std::string(name(axes[0].dtype())) + " and " +
                      std::string(name(x.dtype())));
    common_device(axes[0], x, "meshgrid");
    sizes.push_back(x.numel());
  }
  const bool swap = indexing == "xy" && rank >= 2;
  if (swap) std::swap(sizes[0], sizes[1]);
  checked_numel(sizes, "meshgrid");
  std::vector<Tensor> grids;
  for (int i = 0; i < rank; ++i) {
    const int axis = swap && i < 2 ? 1 - i : i;
    Shape own = Shape::filled(rank, 1);
    own[axis] = sizes[axis];
    grids.push_back(axes[size_t(i)].reshape(own).expand(sizes));
  }
  return grids;
}

}  // namespace volta
