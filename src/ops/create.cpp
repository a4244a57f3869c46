// Tensors from numbers: filled, ranges, identity, grids, nested lists, memory of others.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

std::atomic<DType> default_float{f32};
thread_local constinit std::optional<DType> own_float;
thread_local constinit Device own_device;

DType dtype_of_kind(Kind kind) {
  return kind == Kind::floating ? default_dtype() : kind == Kind::boolean ? boolean : i64;
}

// Writes one number into every element; knows nothing of graphs and versions.
void fill(const Tensor& x, Scalar value) {
  if (x.numel() > 0) backend(x.device()).copy(arg(x), Arg{nullptr, nullptr, x.dtype(), value});
}

// Filled with the value, or uninitialised without one. Exactly one of `shape` and `like` is given.
Tensor made(const Shape* shape, const Tensor* like, std::optional<Scalar> value, const Options& options,
            const char* op) {
  const DType dtype = *options.dtype;
  if (value) require_held(*value, dtype, op);
  Tensor x = like ? allocate_as(*like, dtype, *options.device, op) : allocate(*shape, dtype, *options.device, op);
  if (value) fill(x, *value);
  return finished(std::move(x), options);
}
Tensor made(const Shape& shape, std::optional<Scalar> value, const Options& options, DType fallback, const char* op) {
  return made(&shape, nullptr, value, resolved(options, fallback, op), op);
}
Tensor made_like(const Tensor& x, std::optional<Scalar> value, const Options& options, const char* op) {
  return made(nullptr, &x, value, resolved_like(x, options, op), op);
}

// Holds every integer of 64 bits, with or without a sign, and their products.
__extension__ using Wide = __int128;

template <class T> T exactly(const Scalar& x) {
  if constexpr (std::is_floating_point_v<T>) return x.as<T>();
  else return x.fits<uint64_t>() ? T(x.as<uint64_t>()) : T(x.as<int64_t>());
}

// How many elements arange has; T is Wide or double, as its arguments are.
template <class T> int64_t count_steps(Scalar from, Scalar to, Scalar by) {
  constexpr bool whole = std::is_same_v<T, Wide>;
  const char* op = "arange";
  for (const Scalar& x : {from, to, by})
    require(std::isfinite(x.as<double>()), ErrorKind::argument, op, "from ", from, " to ", to, " by ", by,
            ": all three must be finite");
  const T start = exactly<T>(from), end = exactly<T>(to), step = exactly<T>(by);
  require(step != 0, ErrorKind::argument, op, "the step must not be 0");
  if (start == end) return 0;
  require((end > start) == (step > 0), ErrorKind::argument, op, "a step of ", by, " does not lead from ", from, " to ",
          to);
  int64_t count = -1;
  if constexpr (whole) {
    const Wide steps = (end - start - (step > 0 ? 1 : -1)) / step + 1;
    if (steps <= INT64_MAX) count = int64_t(steps);
  } else {
    const double steps = std::ceil((end - start) / step);
    if (steps < 0x1p62) count = int64_t(steps);
  }
  require(count >= 0, ErrorKind::argument, op, "too many elements");
  return count;
}

// Steps between integers must be whole, and the first and the last element must fit.
void check_integers(Scalar start, Scalar step, int64_t count, DType dtype) {
  for (const Scalar& x : {start, step})
    require(x.as<double>() == std::trunc(x.as<double>()), ErrorKind::argument, "arange", "a start of ", start,
            " and a step of ", step, " are not whole, as ", dtype, " needs");
  require_held(start, dtype, "arange");
  if (count <= 1) return;
  const Wide last = exactly<Wide>(start) + (count - 1) * exactly<Wide>(step);
  require(std::abs(step.as<double>()) < 0x1p64 && last >= INT64_MIN && last <= UINT64_MAX, ErrorKind::argument,
          "arange", count, " numbers from ", start, " by ", step, " do not fit ", dtype);
  require_held(last > INT64_MAX ? Scalar(uint64_t(last)) : Scalar(int64_t(last)), dtype, "arange");
}
// As an integer of 64 bits: iota counts modulo 2^64.
Scalar as_integer(const Scalar& x) { return x.fits<int64_t>() ? Scalar(x.as<int64_t>()) : Scalar(x.as<uint64_t>()); }

void check_spaces(Scalar start, Scalar end, int64_t steps, const char* op) {
  require(steps >= 0, ErrorKind::argument, op, "the number of steps must not be negative, got ", steps);
  require(std::isfinite(start.as<double>()) && std::isfinite(end.as<double>()), ErrorKind::argument, op, "the ends ",
          start, " and ", end, " must be finite");
}

// start, start + step, … up to the middle, and end, end - step, … down to it: both ends are exact.
Tensor spaced(double start, double end, int64_t steps, DType dtype, Device device, const char* op) {
  check_spaces(start, end, steps, op);
  if (!std::isfinite(end - start)) return spaced(start / 2, end / 2, steps, dtype, device, op) * 2;
  const Tensor x = allocate({steps}, is_floating(dtype) ? dtype : f64, device, op);
  const int64_t half = steps / 2 + steps % 2;
  const double step = (end - start) / double(std::max<int64_t>(steps - 1, 1));
  const Layout upper = views::narrow(views::flip(layout(x), {0}), 0, 0, steps - half);
  if (steps > 0) backend(device).iota(arg(alias(x, views::narrow(layout(x), 0, 0, half))), start, step);
  if (steps > half) backend(device).iota(arg(alias(x, upper)), end, -step);
  return x;
}

bool is_whole(const Scalar& x) { return !x.is_floating() || x.as<double>() == std::trunc(x.as<double>()); }
Wide whole(const Scalar& x) { return x.is_floating() ? Wide(x.as<double>()) : exactly<Wide>(x); }

// The same between whole ends, exact where a double has too few bits; what is no integer is cut off as a float would be.
// Element i from the lower end is low + floor(i range / gaps), computed modulo 2^64 and in blocks, within which the
// rests fit 63 bits.
Tensor spaced_integers(Wide start, Wide end, int64_t steps, DType dtype, Device device, const char* op) {
  const Tensor x = allocate({steps}, dtype, device, op);
  const Wide low = std::min(start, end), range = std::max(start, end) - low, gaps = std::max<int64_t>(steps - 1, 1);
  const auto rest = int64_t(range % gaps);
  const int64_t block = int64_t(std::min<Wide>(Wide(1) << 24, INT64_MAX / gaps - 1));
  const Tensor upward = start <= end ? x : alias(x, views::flip(layout(x), {0}));
  for (int64_t from = 0; from < steps; from += block) {
    const int64_t n = std::min(block, steps - from);
    const Wide first = low + Wide(from) * (range / gaps) + Wide(from) * rest / gaps;
    const Tensor rests = arange(0, n, 1, {i64, device}) * rest + int64_t(Wide(from) * rest % gaps);
    const Tensor base = allocate({n}, u64, device, op);
    backend(device).iota(arg(base), uint64_t(first), uint64_t(range / gaps));
    Tensor part = (base + floor_divide(rests, int64_t(gaps)).to(u64)).to(low < 0 ? i64 : u64);
    if (low < 0) part = part + logical_and(part < 0, remainder(rests, int64_t(gaps)) != 0).to(i64);
    alias(upward, views::narrow(layout(upward), 0, from, n)).copy_(part.to(dtype));
  }
  return x;
}

// Appends the numbers of nested lists. The first list at every depth says how long the others there are.
void collect(const Data& data, int depth, Shape& shape, std::vector<Scalar>& numbers) {
  const auto check = [&](bool fine, const auto&... what) {
    require(fine, ErrorKind::shape, "tensor", "ragged lists: at depth ", depth, " ", what..., " where shape ", shape,
            " is expected");
  };
  const bool known = depth < shape.size();
  if (!data.is_list()) {
    check(!known, "a number stands among lists");
    return numbers.push_back(data.value());
  }
  check(known || numbers.empty(), "a list stands among numbers");
  const auto n = int64_t(data.list().size());
  if (!known) blamed_on("tensor", [&] { shape.push_back(n); });
  check(n == shape[depth], "a list has ", n, " elements");
  for (const Data& d : data.list()) collect(d, depth + 1, shape, numbers);
}

}  // namespace

DType default_dtype() { return own_float ? *own_float : default_float.load(std::memory_order_relaxed); }
Device default_device() { return own_device; }

DefaultDtype::DefaultDtype(DType dtype) : before_(own_float) {
  require_dtype(dtype, "DefaultDtype");
  require(is_floating(dtype), ErrorKind::dtype, "DefaultDtype", "needs a floating dtype, got ", dtype);
  own_float = dtype;
}
DefaultDtype::~DefaultDtype() { own_float = before_; }

DefaultDevice::DefaultDevice(Device device) : before_(own_device) {
  backend(device);  // throws where there is no such device
  own_device = device;
}
DefaultDevice::~DefaultDevice() { own_device = before_; }

void set_default_dtype(DType dtype) {
  require_dtype(dtype, "set_default_dtype");
  require(is_floating(dtype), ErrorKind::dtype, "set_default_dtype", "needs a floating dtype, got ", dtype);
  default_float.store(dtype, std::memory_order_relaxed);
}

void require_floating(const Tensor& x, const char* op) {
  const DType dtype = x.checked(op).dtype();
  require(is_floating(dtype), ErrorKind::dtype, op, "needs floats, got ", dtype, "; convert with x.to(f32)");
}

void require_storable(const Scalar& value, DType dtype, const char* op) {
  if (is_floating(dtype)) return;
  if (!value.is_floating()) return require_held(value, dtype, op);
  const double v = value.as<double>();
  require(std::isfinite(v) && v == std::trunc(v), ErrorKind::dtype, op, v, " is not whole, to be stored in ", dtype);
  require_held(value, dtype, op);
}

void require_held(const Scalar& value, DType dtype, const char* op) {
  require(holds(dtype, value), ErrorKind::argument, op, value, " does not fit ", dtype);
}

void detail::unknown_choice(const char* op, const char* field, std::string_view given, const std::string_view* known,
                            size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i) list += (i ? ", " : "") + std::string(known[i]);
  throw_error(ErrorKind::argument, op, field, " '", given, "' is not one of ", list);
}

void require_fitting(DType values, DType place, const char* op) {
  const bool fits = traits(values).kind <= traits(place).kind || (is_integral(values) && is_integral(place));
  require(fits, ErrorKind::dtype, op, "a value of ", values, " cannot be stored in ", place);
}

Scalar factor_for(double value, DType dtype, const char* op) {
  require_storable(value, dtype == boolean ? i64 : dtype, op);
  return is_floating(dtype) ? Scalar(value) : as_integer(value);
}

void require_dtype(DType dtype, const char* op) {
  require(size_t(dtype) < size_t(dtype_count), ErrorKind::dtype, op, "there is no dtype ", int(dtype));
}

Options resolved(Options options, DType dtype, const char* op) {
  return resolved(options, dtype, op, default_device());
}
Options resolved(Options options, DType dtype, const char* op, Device device) {
  options.dtype = options.dtype.value_or(dtype);
  require_dtype(*options.dtype, op);
  options.device = options.device.value_or(device);
  require(!options.requires_grad || is_floating(*options.dtype), ErrorKind::dtype, op,
          "only floating tensors can require grad, not ", *options.dtype);
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

Tensor empty(const Shape& shape, const Options& options) { return made(shape, {}, options, default_dtype(), "empty"); }
Tensor zeros(const Shape& shape, const Options& options) { return made(shape, 0, options, default_dtype(), "zeros"); }
Tensor ones(const Shape& shape, const Options& options) { return made(shape, 1, options, default_dtype(), "ones"); }
Tensor full(const Shape& shape, Scalar value, const Options& options) {
  return made(shape, value, options, dtype_of_kind(value.kind()), "full");
}

Tensor empty_like(const Tensor& x, Options options) { return made_like(x, {}, options, "empty_like"); }
Tensor zeros_like(const Tensor& x, Options options) { return made_like(x, 0, options, "zeros_like"); }
Tensor ones_like(const Tensor& x, Options options) { return made_like(x, 1, options, "ones_like"); }
Tensor full_like(const Tensor& x, Scalar value, Options options) { return made_like(x, value, options, "full_like"); }

Tensor Tensor::new_empty(const Shape& shape, const Options& options) const {
  return made(&shape, nullptr, {}, resolved_like(*this, options, "new_empty"), "new_empty");
}
Tensor Tensor::new_zeros(const Shape& shape, const Options& options) const {
  return made(&shape, nullptr, 0, resolved_like(*this, options, "new_zeros"), "new_zeros");
}
Tensor Tensor::new_ones(const Shape& shape, const Options& options) const {
  return made(&shape, nullptr, 1, resolved_like(*this, options, "new_ones"), "new_ones");
}
Tensor Tensor::new_full(const Shape& shape, Scalar value, const Options& options) const {
  return made(&shape, nullptr, value, resolved_like(*this, options, "new_full"), "new_full");
}

Tensor arange(Scalar end, const Options& options) { return arange(0, end, 1, options); }
Tensor arange(Scalar start, Scalar end, const Options& options) { return arange(start, end, 1, options); }

Tensor arange(Scalar start, Scalar end, Scalar step, const Options& given) {
  bool whole = true;
  for (const Scalar& x : {start, end, step}) whole = whole && !x.is_floating() && x.kind() != Kind::boolean;
  const int64_t count = whole ? count_steps<Wide>(start, end, step) : count_steps<double>(start, end, step);
  const Options options = resolved(given, whole ? i64 : default_dtype(), "arange");
  require(options.dtype != boolean, ErrorKind::dtype, "arange", "is not defined for booleans");
  if (!is_floating(*options.dtype)) {
    check_integers(start, step, count, *options.dtype);
    start = as_integer(start);
    step = as_integer(step);
  }
  Tensor x = allocate({count}, *options.dtype, *options.device, "arange");
  if (count > 0) backend(x.device()).iota(arg(x), start, step);
  return finished(std::move(x), options);
}

Tensor counting(int64_t n, const Tensor& like) { return arange(0, n, 1, {i64, like.device()}); }

Tensor linspace(Scalar start, Scalar end, Int steps, const Options& given) {
  const char* op = "linspace";
  const Options options = resolved(given, default_dtype(), op);
  const DType dtype = *options.dtype;
  check_spaces(start, end, steps, op);
  if (steps > 0) require_held(start, dtype, op);
  if (steps > 1) require_held(end, dtype, op);
  const Scalar last = steps > 1 ? end : start;
  if (is_integral(dtype) && steps > 0 && is_whole(start) && is_whole(last))
    return finished(spaced_integers(whole(start), whole(last), steps, dtype, *options.device, op), options);
  return finished(spaced(start.as<double>(), end.as<double>(), steps, dtype, *options.device, op).to(dtype), options);
}

Tensor logspace(double start, double end, Int steps, double base, const Options& given) {
  const Options options = resolved(given, default_dtype(), "logspace");
  const Tensor x = pow(base, spaced(start, end, steps, f64, *options.device, "logspace"));
  if (steps > 0 && is_integral(*options.dtype))
    for (const Tensor& end_of_range : {amin(x), amax(x)})
      require_held(read_for<double>("logspace", end_of_range), *options.dtype, "logspace");
  return finished(x.to(*options.dtype), options);
}

Tensor eye(Int n, std::optional<Int> m, const Options& options) {
  const Tensor x = made({n, m.value_or(n)}, 0, options, default_dtype(), "eye");
  if (x.numel() > 0) fill(alias(x, views::diagonal(layout(x), 0, 0, 1)), 1);
  return x;
}

Tensor tri(Int n, std::optional<Int> m, int64_t k, const Options& given) {
  const Options options = resolved(given, default_dtype(), "tri"), plain{options.dtype, options.device};
  return finished(tril(made({n, m.value_or(n)}, 1, plain, f32, "tri"), k), options);
}

namespace {
// Rows of lengths that grow by one from row to row until they have all of the columns: how many elements.
int64_t triangle_count(int64_t rows, int64_t shortest, int64_t columns, const char* op) {
  const int64_t growing = std::clamp<int64_t>(columns - shortest, 0, rows);
  const int64_t odd = growing % 2, pairs = growing / 2;  // growing (growing - 1) / 2 as a product that fits
  const Checked steps = odd ? Checked(growing) * pairs : Checked(growing - 1) * pairs;
  return (Checked(growing) * shortest + steps + Checked(rows - growing) * columns).value(op);
}

// Row by row. Rows of which nothing is wanted are left out at once: nothing that is made is longer than the result.
Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, const Options& given, bool lower, const char* op) {
  const Options options = resolved(given, i64, op);
  require(row >= 0 && col >= 0, ErrorKind::argument, op, "sizes must not be negative, got ", row, " and ", col);
  require(is_integral(*options.dtype), ErrorKind::dtype, op, "gives integers, not ", *options.dtype);
  require_held(std::max<int64_t>({row - 1, col - 1, 0}), *options.dtype, op);
  const int64_t k = std::clamp(offset, -row, col);  // of column - row
  const int64_t from = lower ? std::max<int64_t>(0, -k) : 0;
  const int64_t end = lower ? row : std::min(row, (Checked(col) - k).value_or(row));
  const int64_t rows = col == 0 ? 0 : std::max<int64_t>(0, end - from);
  const int64_t shortest = !lower ? col - std::max<int64_t>(0, end - 1 + k) : k < col ? from + k + 1 : col;
  const int64_t count = rows == 0 ? 0 : triangle_count(rows, shortest, col, op);
  const Tensor out = allocate({2, count}, *options.dtype, *options.device, op);
  if (count == 0) return out;
  const Tensor each = arange(from, from + rows, 1, {i64, options.device});
  const Tensor first = lower ? zeros_like(each) : clamp_min(each + k, 0);
  const Tensor lengths = lower ? clamp_max(each + (k + 1), col) : col - first;
  const Tensor place = counting(count, out), start = lengths.cumsum(0) - lengths;
  out.select(0, 0).copy_(repeat_interleave(each, lengths));
  out.select(0, 1).copy_(place + repeat_interleave(first - start, lengths));
  return out;
}
}  // namespace

Tensor tril_indices(Int row, Int col, int64_t offset, const Options& options) {
  return triangle_indices(row, col, offset, options, true, "tril_indices");
}
Tensor triu_indices(Int row, Int col, int64_t offset, const Options& options) {
  return triangle_indices(row, col, offset, options, false, "triu_indices");
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, const Choice<MeshIndexing>& indexing) {
  const char* op = "meshgrid";
  const bool swap = indexing.of(op, "indexing") == MeshIndexing::xy && axes.size() >= 2;
  const int rank = int(axes.size());
  Shape sizes;
  for (const Tensor& x : axes) {
    common_device(axes[0], x, op);
    require(x.dim() <= 1, ErrorKind::shape, op, "needs vectors, got shape ", x);
    require(x.dtype() == axes[0].dtype(), ErrorKind::dtype, op, "all must have one dtype, got ", axes[0].dtype(),
            " and ", x.dtype());
    blamed_on(op, [&] { sizes.push_back(x.numel()); });
  }
  checked_numel(sizes, op);
  std::vector<Tensor> grids;
  for (int i = 0; i < rank; ++i) {
    Shape own = Shape::filled(rank, 1);
    own[i] = sizes[i];
    const Tensor grid = axes[size_t(i)].reshape(own).expand(sizes);
    grids.push_back(swap ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

Tensor tensor(const Data& data, const Options& given) {
  Shape shape;
  std::vector<Scalar> numbers;
  collect(data, 0, shape, numbers);
  Kind kind = numbers.empty() ? Kind::floating : Kind::boolean;
  for (const Scalar& x : numbers) kind = std::max(kind, x.kind());
  const Options options = resolved(given, dtype_of_kind(kind), "tensor");
  for (const Scalar& x : numbers) require_held(x, *options.dtype, "tensor");
  return visit(*options.dtype, [&]<class T>(TypeTag<T>) {
    const auto values = std::make_unique<T[]>(numbers.size());
    std::transform(numbers.begin(), numbers.end(), values.get(), [](const Scalar& x) { return x.as<T>(); });
    return tensor_from(values.get(), *options.dtype, shape, options);
  });
}

Tensor tensor_from(const void* data, DType dtype, const Shape& shape, const Options& given) {
  const Options options = resolved(given, dtype, "tensor");
  const Tensor x = allocate(shape, dtype, *options.device, "tensor");
  if (x.numel() > 0) backend(x.device()).upload(address(x), data, x.nbytes());
  return finished(x.to(*options.dtype), options);
}

Tensor detail::tensor_of_truths(const std::vector<bool>& values, const Shape& shape, const Options& options) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  require(int64_t(bytes.size()) == shape.numel(), ErrorKind::shape, "tensor", bytes.size(),
          " values do not fill shape ", shape);
  return tensor_from(bytes.data(), boolean, shape, options);
}

Tensor from_blob(void* data, const Shape& shape, const Options& given, std::function<void()> release) {
  const int64_t n = checked_numel(shape, "from_blob");
  const Options options = resolved(given, default_dtype(), "from_blob", Device());  // an address is the host's
  require(data || n == 0, ErrorKind::argument, "from_blob", "a null pointer for shape ", shape);
  auto storage = foreign_storage(data, n * size_of(*options.dtype), *options.device, std::move(release));
  return finished(from_storage(std::move(storage), Layout::contiguous(shape), *options.dtype), options);
}

}  // namespace volta
