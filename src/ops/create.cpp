// Making tensors: filled, ranges, and from C++ data.
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

std::string text(const Scalar& value) {
  if (value.kind() == Kind::unsigned_int) return std::to_string(value.as<uint64_t>());
  if (!value.is_floating()) return std::to_string(value.as<int64_t>());
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value.as<double>());
  return buffer;
}

template <class T> bool holds(const Scalar& x) {
  if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) {
    return true;
  } else if (x.is_floating()) {
    const double d = std::trunc(x.as<double>());
    constexpr double high = double(uint64_t(1) << (8 * sizeof(T) - 1)) * (std::is_signed_v<T> ? 1.0 : 2.0);
    return d >= double(std::numeric_limits<T>::min()) && d < high;
  } else if (x.kind() == Kind::unsigned_int || x.as<int64_t>() >= 0) {
    return x.as<uint64_t>() <= uint64_t(std::numeric_limits<T>::max());
  } else {
    return std::is_signed_v<T> && x.as<int64_t>() >= int64_t(std::numeric_limits<T>::min());
  }
}

DType dtype_of_kind(Kind kind) {
  return kind == Kind::floating ? default_dtype() : kind == Kind::boolean ? boolean : i64;
}

Tensor filled(Tensor x, Scalar value, const Options& options) {
  fill(x, value);
  return finished(std::move(x), options);
}

Tensor filled(const Shape& shape, Scalar value, const Options& given, DType fallback, const char* op) {
  const Options options = resolved(given, fallback, op);
  if (!value.is_floating()) require_held(value, *options.dtype, op);
  return filled(allocate(shape, *options.dtype, *options.device, op), value, options);
}

// As dense as x: a transposed tensor gives a transposed one.
Tensor make_like(const Tensor& x, const Options& options, const char* op) {
  if (x.is_contiguous() || !layout(x).is_dense()) return allocate(x.shape(), *options.dtype, *options.device, op);
  return allocate_like(layout(x), *options.dtype, *options.device, op);
}

Tensor filled_like(const Tensor& x, Scalar value, const Options& given, const char* op) {
  const Options options = resolved_like(x, given, op);
  if (!value.is_floating()) require_held(value, *options.dtype, op);
  return filled(make_like(x, options, op), value, options);
}

[[noreturn]] void refuse_range(const std::string& why) { throw Error(Error::Kind::argument, "arange", why); }

// How many elements arange has; T is int64_t or double, as its arguments are.
template <class T> int64_t count_steps(Scalar from, Scalar to, Scalar by) {
  constexpr bool whole = std::is_integral_v<T>;
  for (const Scalar& x : {from, to, by}) {
    if (whole) require_held(x, i64, "arange");
    else if (!std::isfinite(x.as<double>()))
      refuse_range("from " + text(from) + " to " + text(to) + " by " + text(by) + ": all three must be finite");
  }
  const T start = from.as<T>(), end = to.as<T>(), step = by.as<T>();
  if (step == 0) refuse_range("the step must not be 0");
  if (start == end) return 0;
  if ((end > start) != (step > 0))
    refuse_range("a step of " + text(by) + " does not lead from " + text(from) + " to " + text(to));
  if constexpr (whole) {
    const uint64_t distance = end > start ? uint64_t(end) - uint64_t(start) : uint64_t(start) - uint64_t(end);
    const uint64_t stride = step > 0 ? uint64_t(step) : -uint64_t(step), count = (distance - 1) / stride + 1;
    if (count <= uint64_t(std::numeric_limits<int64_t>::max())) return int64_t(count);
  } else {
    const double count = std::ceil((end - start) / step);
    if (count < 0x1p62) return int64_t(count);
  }
  refuse_range("too many elements");
}

// Steps between integers must be whole, and the first and the last element must fit.
void check_integers(Scalar start, Scalar step, int64_t count, DType dtype) {
  for (const Scalar& x : {start, step})
    if (x.is_floating() && x.as<double>() != std::trunc(x.as<double>()))
      refuse_range("a start of " + text(start) + " and a step of " + text(step) + " are not whole, as " +
                   std::string(name(dtype)) + " needs");
  require_held(start, dtype, "arange");
  const uint64_t way = count > 0 ? uint64_t(count - 1) * step.as<uint64_t>() : 0;
  require_held(int64_t(uint64_t(start.as<int64_t>()) + way), dtype, "arange");
}

bool is_whole(Scalar x) { return !x.is_floating() && x.kind() != Kind::boolean; }

// start, start + step, … up to the middle, and end, end - step, … down to it: both ends are exact.
void fill_linspace(const Tensor& x, double start, double end) {
  const int64_t n = x.numel(), half = n / 2 + n % 2;
  const double gaps = double(std::max<int64_t>(n - 1, 1)), range = end - start;
  const double step = std::isfinite(range) ? range / gaps : end / gaps - start / gaps;
  const Layout upper = views::narrow(views::flip(layout(x), {0}), 0, 0, n - half);
  Backend& device = backend(x.device());
  if (n > 0) device.iota(arg(alias(x, views::narrow(layout(x), 0, 0, half))), start, step);
  if (n > half) device.iota(arg(alias(x, upper)), end, -step);
}

Tensor spaced(double start, double end, int64_t steps, DType dtype, Device device, const char* op) {
  if (steps < 0)
    throw Error(Error::Kind::argument, op, "the number of steps must not be negative, got " + std::to_string(steps));
  if (!std::isfinite(start) || !std::isfinite(end))
    throw Error(Error::Kind::argument, op, "the ends " + text(start) + " and " + text(end) + " must be finite");
  const Tensor x = allocate({steps}, is_floating(dtype) ? dtype : f64, device, op);
  fill_linspace(x, start, end);
  return x;
}

// The shape of the first element at every depth; `check_lists` then holds all others to it.
Shape shape_of(const Data& data) {
  Shape shape;
  for (const Data* d = &data; d->is_list(); d = &d->list()[0]) {
    shape.push_back(int64_t(d->list().size()));
    if (d->list().empty()) break;
  }
  return shape;
}

void check_lists(const Data& data, const Shape& shape, int depth) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Error::Kind::shape, "tensor",
                "ragged lists: at depth " + std::to_string(depth) + " " + what + " where shape " + shape.str() +
                    " is expected");
  };
  if (depth == shape.size()) {
    if (data.is_list()) refuse("a list stands among numbers");
    return;
  }
  if (!data.is_list()) refuse("a number stands among lists");
  if (int64_t(data.list().size()) != shape[depth])
    refuse("a list has " + std::to_string(data.list().size()) + " elements");
  for (const Data& d : data.list()) check_lists(d, shape, depth + 1);
}

template <class F> void for_each_number(const Data& data, F&& f) {
  if (!data.is_list()) return f(data.value());
  for (const Data& d : data.list()) for_each_number(d, f);
}

DType dtype_of_numbers(const Data& data) {
  std::optional<Kind> kind;
  for_each_number(data, [&](const Scalar& x) { kind = std::max(kind.value_or(Kind::boolean), x.kind()); });
  return dtype_of_kind(kind.value_or(Kind::floating));
}

}  // namespace

DType default_dtype() { return default_float.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, "set_default_dtype", "needs a floating dtype, got " + std::string(name(dtype)));
  default_float.store(dtype, std::memory_order_relaxed);
}

void require_held(const Scalar& value, DType dtype, const char* op) {
  if (!visit(dtype, [&]<class T>(TypeTag<T>) { return holds<T>(value); }))
    throw Error(Error::Kind::argument, op, text(value) + " does not fit " + std::string(name(dtype)));
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.FEp127;
    case DType::f32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

Options resolved(Options options, DType dtype, const char* op, Device device) {
  options.dtype = options.dtype.value_or(dtype);
  options.device = options.device.value_or(device);
  if (options.requires_grad && !is_floating(*options.dtype))
    throw Error(Error::Kind::dtype, op,
                "only floating tensors can require grad, not " + std::string(name(*options.dtype)));
  backend(*options.device);
  return options;
}

Options resolved_like(const Tensor& x, const Options& options, const char* op) {
  const Tensor& like = x.checked(op);
  return resolved(options, like.dtype(), op, like.device());
}

Tensor finished(Tensor x, const Options& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

void fill(const Tensor& x, Scalar value) {
  if (x.numel() > 0) backend(x.device()).copy(arg(x), Arg{nullptr, nullptr, x.dtype(), value});
}

Tensor empty(const Shape& shape, const Options& given) {
  const Options options = resolved(given, default_dtype(), "empty");
  return finished(allocate(shape, *options.dtype, *options.device, "empty"), options);
}
Tensor zeros(const Shape& shape, const Options& options) { return filled(shape, 0, options, default_dtype(), "zeros"); }
Tensor ones(const Shape& shape, const Options& options) { return filled(shape, 1, options, default_dtype(), "ones"); }
Tensor full(const Shape& shape, Scalar value, const Options& options) {
  return filled(shape, value, options, dtype_of_kind(value.kind()), "full");
}

Tensor empty_like(const Tensor& x, Options options) {
  options = resolved_like(x, options, "empty_like");
  return finished(make_like(x, options, "empty_like"), options);
}
Tensor zeros_like(const Tensor& x, Options options) { return filled_like(x, 0, options, "zeros_like"); }
Tensor ones_like(const Tensor& x, Options options) { return filled_like(x, 1, options, "ones_like"); }
Tensor full_like(const Tensor& x, Scalar value, Options options) { return filled_like(x, value, options, "full_like"); }

Tensor arange(Scalar end) { return arange(0, end); }

Tensor arange(Scalar start, Scalar end, Scalar step, const Options& given) {
  const bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  const int64_t count = whole ? count_steps<int64_t>(start, end, step) : count_steps<double>(start, end, step);
  const Options options = resolved(given, whole ? i64 : default_dtype(), "arange");
  if (options.dtype == boolean) throw Error(Error::Kind::dtype, "arange", "is not defined for booleans");
  if (!is_floating(*options.dtype)) {
    check_integers(start, step, count, *options.dtype);
    start = start.as<int64_t>();
    step = step.as<int64_t>();
  }
  Tensor x = allocate({count}, *options.dtype, *options.device, "arange");
  if (count > 0) backend(x.device()).iota(arg(x), start, step);
  return finished(std::move(x), options);
}

Tensor linspace(double start, double end, int64_t steps, const Options& given) {
  const Options options = resolved(given, default_dtype(), "linspace");
  return finished(spaced(start, end, steps, *options.dtype, *options.device, "linspace").to(*options.dtype), options);
}

Tensor logspace(double start, double end, int64_t steps, double base, const Options& given) {
  const Options options = resolved(given, default_dtype(), "logspace");
  return finished(pow(base, spaced(start, end, steps, f64, *options.device, "logspace")).to(*options.dtype), options);
}

Tensor eye(int64_t n, std::optional<int64_t> m, const Options& options) {
  const Tensor x = filled({n, m.value_or(n)}, 0, options, default_dtype(), "eye");
  if (x.numel() > 0) fill(alias(x, views::diagonal(layout(x), 0, 0, 1)), 1);
  return x;
}

Tensor tri(int64_t n, std::optional<int64_t> m, int64_t k, const Options& given) {
  const Shape shape{n, m.value_or(n)};
  checked_numel(shape, "tri");
  const Options options = resolved(given, default_dtype(), "tri"), indices{i64, options.device};
  const int64_t shift = std::clamp(k, -n - 1, shape[1] + 1);
  const Tensor below = ge(arange(shift, n + shift, 1, indices).unsqueeze(1), arange(0, shape[1], 1, indices));
  return finished(below.to(*options.dtype), options);
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

Tensor tensor(const Data& data, const Options& given) {
  const Shape shape = shape_of(data);
  check_lists(data, shape, 0);
  const Options options = resolved(given, dtype_of_numbers(data), "tensor");
  for_each_number(data, [&](const Scalar& x) { require_held(x, *options.dtype, "tensor"); });
  Tensor x = allocate(shape, *options.dtype, *options.device, "tensor");
  visit(*options.dtype, [&]<class T>(TypeTag<T>) {
    const auto write = [&](T* out) { for_each_number(data, [&](const Scalar& v) { *out++ = v.as<T>(); }); };
    if (x.device().is_cpu()) return write(static_cast<T*>(address(x)));
    const auto host = std::make_unique<T[]>(size_t(x.numel()));
    write(host.get());
    if (x.numel() > 0) backend(x.device()).upload(address(x), host.get(), x.nbytes());
  });
  return finished(std::move(x), options);
}

Tensor tensor_from(const void* data, DType dtype, const Shape& shape, const Options& given) {
  const Options options = resolved(given, dtype, "tensor");
  const Tensor x = allocate(shape, dtype, *options.device, "tensor");
  if (x.numel() > 0) backend(x.device()).upload(address(x), data, x.nbytes());
  return finished(x.to(*options.dtype), options);
}

Tensor from_blob(void* data, const Shape& shape, const Options& given, std::function<void()> release) {
  const int64_t n = checked_numel(shape, "from_blob");
  const Options options = resolved(given, default_dtype(), "from_blob");
  if (!data && n > 0) throw Error(Error::Kind::argument, "from_blob", "a null pointer for shape " + shape.str());
  auto storage = foreign_storage(data, n * size_of(*options.dtype), *options.device, std::move(release));
  return finished(from_storage(std::move(storage), Layout::contiguous(shape), *options.dtype), options);
}

}  // namespace volta
