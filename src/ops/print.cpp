// Tensors as text: aligned columns, summarised when large, followed by dtype and shape.
#include <volta/print.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <ostream>

#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/check.h"
#include "core/fork.h"

namespace volta {
namespace {

std::mutex options_mutex;
[[maybe_unused]] const bool fork_watched = fork_waits_for(options_mutex);
PrintOptions current_options;

constexpr double largest_plain = 1e8, smallest_plain = 1e-4;  // beyond these, scientific notation

using Strings = std::vector<std::string>;

std::string number(const char* format, int precision, double x) {
  if (std::isnan(x)) return "nan";  // of either sign
  std::string s(size_t(std::snprintf(nullptr, 0, format, precision, x)), ' ');
  std::snprintf(s.data(), s.size() + 1, format, precision, x);
  return s;
}

Strings real_texts(const std::vector<double>& values, int precision) {
  double largest = 0, smallest = largest_plain;
  bool whole = true;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    whole = whole && x == std::trunc(x);
    largest = std::max(largest, std::abs(x));
    if (x != 0) smallest = std::min(smallest, std::abs(x));
  }
  const bool scientific = largest >= largest_plain || (!whole && smallest < smallest_plain);
  const char* format = scientific ? "%.*e" : "%.*f";
  // The fewest digits after the point that show every value as well as `precision` digits do.
  int digits = 0;
  for (const double x : values) {
    const std::string s = number(format, precision, x), mantissa = s.substr(0, s.find('e'));
    const size_t last = mantissa.find_last_not_of('0'), point = mantissa.find('.');
    if (point != std::string::npos) digits = std::max(digits, int(last - point));
  }
  Strings texts;
  for (const double x : values)
    texts.push_back(number(format, digits, x) + (digits == 0 && !scientific && std::isfinite(x) ? "." : ""));
  return texts;
}

Strings texts_of(const Tensor& x, int precision) {
  Strings texts;
  if (is_floating(x.dtype())) texts = real_texts(x.to_vector<double>(), precision);
  else if (x.dtype() == boolean)
    for (const bool b : x.to_vector<bool>()) texts.push_back(b ? "true" : "false");
  else
    visit(x.dtype(), [&]<class T>(TypeTag<T>) {
      for (const T n : x.to_vector<T>()) texts.push_back(text_of(Scalar(n)));
    });
  size_t width = 0;
  for (const std::string& s : texts) width = std::max(width, s.size());
  for (std::string& s : texts) s.insert(0, width - s.size(), ' ');
  return texts;
}

// The elements that will be shown: both ends of long axes, from `axis` on. Nothing is copied that is not shown.
Tensor edges_of(const Tensor& x, int64_t edge, int axis = 0) {
  if (axis == int(x.dim())) return x;
  const int64_t n = x.size(axis);
  const auto part = [&](const Tensor& t) { return edges_of(t, edge, axis + 1); };
  if (n <= 2 * edge) return part(x);
  return cat({part(x.narrow(axis, 0, edge)), part(x.narrow(axis, n - edge, edge))}, axis);
}

struct Writer {
  const Shape &shape, &shown;
  const Strings& texts;
  size_t line_width, next = 0;

  std::string block(int axis) {
    const bool row = axis + 1 == shape.size(), summarised = shown[axis] < shape[axis];
    Strings parts;
    for (int64_t i = 0; i < shown[axis]; ++i) {
      if (summarised && i == shown[axis] / 2) parts.push_back("...");
      parts.push_back(row ? texts[next++] : block(axis + 1));
    }
    const size_t start = size_t(shape.size()), lines = size_t(std::max(1, shape.size() - 1 - axis));
    const std::string below = "," + std::string(lines, '\n') + std::string(size_t(axis) + 1, ' ');
    std::string out = "[" + parts[0];
    size_t column = start + parts[0].size() + 2;
    for (size_t i = 1; i < parts.size(); ++i) {
      const size_t width = parts[i].size() + 2;
      const bool wrap = !row || column + width > line_width;
      out += (wrap ? below : ", ") + parts[i];
      column = (wrap ? start : column) + width;
    }
    return out + "]";
  }
};

}  // namespace

PrintOptions print_options() {
  const std::lock_guard lock(options_mutex);
  return current_options;
}

void set_print_options(const PrintOptions& options) {
  const char* op = "set_print_options";
  require(options.precision >= 0 && options.precision <= 100, ErrorKind::argument, op,
          "needs a precision from 0 to 100");
  require(options.threshold >= 0, ErrorKind::argument, op, "needs a threshold of 0 or more");
  require(options.edge_items > 0 && options.line_width > 0, ErrorKind::argument, op,
          "needs at least 1 for edge_items and line_width");
  const std::lock_guard lock(options_mutex);
  current_options = options;
}

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  const PrintOptions options = print_options();
  const NoGrad off;
  const Tensor shown = numel() > options.threshold ? edges_of(detach(), options.edge_items) : detach();
  const Strings texts = texts_of(shown, options.precision);
  Writer writer{shape(), shown.shape(), texts, size_t(options.line_width)};
  std::string s = dim() == 0 ? texts[0] : texts.empty() ? "[]" : writer.block(0);
  s += "  " + std::string(name(dtype())) + " " + shape().str();
  if (!device().is_cpu()) s += " " + device().str();
  if (requires_grad()) s += " requires_grad";
  return s;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.str(); }

std::ostream& operator<<(std::ostream& out, const MaybeTensor& x) { return out << x.value_; }
std::ostream& operator<<(std::ostream& out, const Scalar& x) {
  if (x.kind() == Kind::boolean) return out << x.as<bool>();
  if (x.kind() == Kind::unsigned_int) return out << x.as<uint64_t>();
  return x.is_floating() ? out << x.as<double>() : out << x.as<int64_t>();
}

std::string_view name(Error::Kind kind) {
  constexpr std::string_view names[] = {"shape",  "dtype", "index",    "device",  "argument",
                                        "memory", "io",    "autograd", "internal"};
  return names[size_t(kind)];
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }
std::ostream& operator<<(std::ostream& out, Error::Kind kind) { return out << name(kind); }

}  // namespace volta
