// Making tensors from C++ data: nested braces, arrays, foreign memory.
#include <cmath>
#include <cstring>
#include <limits>

#include <volta/ops.h>

#include "backend/backend.h"
#include "ops/create.h"

namespace volta {
namespace {

std::string text(const Scalar& value) {
  if (!value.is_floating())
    return value.kind() == Kind::unsigned_int ? std::to_string(value.as<uint64_t>())
                                              : std::to_string(value.as<int64_t>());
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value.as<double>());
  return buffer;
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
  bool any = false;
  Kind kind = Kind::boolean;
  for_each_number(data, [&](const Scalar& x) {
    any = true;
    kind = std::max(kind, x.kind());
  });
  if (!any || kind == Kind::floating) return default_dtype();
  return kind == Kind::boolean ? boolean : i64;
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

template <class T> void check_range(const Data& data, DType dtype) {
  for_each_number(data, [&](const Scalar& x) {
    if (!holds<T>(x))
      throw Error(Error::Kind::argument, "tensor", text(x) + " does not fit " + std::string(name(dtype)));
  });
}

template <class T> T convert(const Scalar& x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) return T(x.as<float>());
  else return x.as<T>();
}

}  // namespace

Tensor tensor(const Data& data, const Options& options) {
  const Shape shape = shape_of(data);
  check_lists(data, shape, 0);
  const DType dtype = checked_dtype(options, dtype_of_numbers(data), "tensor");
  return visit(dtype, [&]<class T>(TypeTag<T>) {
    check_range<T>(data, dtype);
    Tensor x = make_empty(shape, options, dtype, "tensor");
    const auto write = [&](T* out) { for_each_number(data, [&](const Scalar& v) { *out++ = convert<T>(v); }); };
    if (options.device.is_cpu()) {
      write(static_cast<T*>(address(x)));
    } else if (x.numel() > 0) {
      const auto host = std::make_unique<T[]>(size_t(x.numel()));
      write(host.get());
      backend(options.device).upload(address(x), host.get(), x.nbytes());
    }
    return finished(std::move(x), options);
  });
}

Tensor tensor_from(const void* data, DType dtype, const Shape& shape, const Options& options) {
  const DType wanted = checked_dtype(options, dtype, "tensor");
  const Tensor x = allocate(shape, dtype, options.device, "tensor");
  if (x.numel() > 0) backend(options.device).upload(address(x), data, x.nbytes());
  return finished(x.to(wanted), options);
}

Tensor from_blob(void* data, const Shape& shape, const Options& options, std::function<void()> release) {
  const int64_t n = checked_numel(shape, "from_blob");
  const DType dtype = checked_dtype(options, default_dtype(), "from_blob");
  if (!data && n > 0) throw Error(Error::Kind::argument, "from_blob", "a null pointer for shape " + shape.str());
  auto storage = foreign_storage(data, n * size_of(dtype), options.device, std::move(release));
  return finished(from_storage(std::move(storage), Layout::contiguous(shape), dtype), options);
}

}  // namespace volta
