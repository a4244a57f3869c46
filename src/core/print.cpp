// Tensors as text: aligned columns, summarised when large, followed by dtype and shape.
#include <volta/print.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <ostream>

#include <volta/autograd.h>
#include <volta/ops.h>

namespace volta {
namespace {

std::mutex options_mutex;
PrintOptions current_options;

constexpr double largest_plain = 1e8, smallest_plain = 1e-4;  // beyond these, scientific notation

std::string number(const char* format, int precision, double x) {
  std::string s(size_t(std::snprintf(nullptr, 0, format, precision, x)), ' ');
  std::snprintf(s.data(), s.size() + 1, format, precision, x);
  return s;
}

// Fewest digits after the point, up to `most`, that show every value as well as `most` digits do.
int common_digits(const std::vector<double>& values, const char* format, int most) {
  int digits = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    const std::string s = number(format, most, x), mantissa = s.substr(0, s.find('e'));
    const size_t last = mantissa.find_last_not_of('0'), point = mantissa.find('.');
    if (point != std::string::npos && last > point) digits = std::max(digits, int(last - point));
  }
  return digits;
}

std::string special(double x) { return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"; }

std::vector<std::string> real_texts(const std::vector<double>& values, int precision) {
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
  const int digits = common_digits(values, format, precision);
  std::vector<std::string> texts;
  for (const double x : values) {
    if (!std::isfinite(x)) texts.push_back(special(x));
    else texts.push_back(number(format, digits, x) + (digits == 0 && !scientific ? "." : ""));
  }
  return texts;
}

template <class T> std::vector<std::string> whole_texts(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T x : values) texts.push_back(std::to_string(x));
  return texts;
}

std::vector<std::string> texts_of(const Tensor& x, int precision) {
  std::vector<std::string> texts;
  if (is_floating(x.dtype())) {
    texts = real_texts(x.to_vector<double>(), precision);
  } else if (x.dtype() == boolean) {
    for (const bool b : x.to_vector<bool>()) texts.push_back(b ? "true" : "false");
  } else {
    texts = x.dtype() == u64 ? whole_texts(x.to_vector<uint64_t>()) : whole_texts(x.to_vector<int64_t>());
  }
  size_t width = 0;
  for (const std::string& s : texts) width = std::max(width, s.size());
  for (std::string& s : texts) s.insert(0, width - s.size(), ' ');
  return texts;
}

// The elements that will be shown: both ends of long axes.
Tensor edges_of(Tensor x, int64_t edge) {
  for (int axis = 0; axis < int(x.dim()); ++axis) {
    const int64_t n = x.size(axis);
    if (n > 2 * edge) x = cat({x.narrow(axis, 0, edge), x.narrow(axis, n - edge, edge)}, axis);
  }
  return x;
}

class Writer {
 public:
  Writer(const Shape& shape, const Shape& shown, std::vector<std::string> texts, const PrintOptions& options)
      : shape_(shape), shown_(shown), texts_(std::move(texts)), options_(options) {}

  std::string run() {
    if (shape_.empty()) return texts_[0];
    if (texts_.empty()) return "[]";
    write(0);
    return std::move(out_);
  }

 private:
  void write(int axis) {
    if (axis + 1 == shape_.size()) return write_row();
    out_ += '[';
    for (int64_t i = 0; i < shown_[axis]; ++i) {
      if (i > 0) separate(axis);
      if (is_gap(axis, i)) {
        out_ += "...";
        separate(axis);
      }
      write(axis + 1);
    }
    out_ += ']';
  }

  void write_row() {
    const int axis = shape_.size() - 1;
    const size_t indent = size_t(shape_.size());
    size_t column = indent;
    out_ += '[';
    const auto put = [&](const std::string& s, bool first) {
      if (!first) out_ += ',';
      if (!first && column + s.size() + 2 > size_t(options_.line_width)) {
        out_ += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (!first) {
        out_ += ' ';
      }
      out_ += s;
      column += s.size() + 2;
    };
    for (int64_t i = 0; i < shown_[axis]; ++i) {
      if (is_gap(axis, i)) put("...", i == 0);
      put(texts_[next_++], i == 0 && !is_gap(axis, i));
    }
    out_ += ']';
  }

  bool is_gap(int axis, int64_t i) const { return shown_[axis] < shape_[axis] && i == shown_[axis] / 2; }
  void separate(int axis) {
    out_ += ',' + std::string(size_t(shape_.size() - 1 - axis), '\n') + std::string(size_t(axis) + 1, ' ');
  }

  const Shape &shape_, &shown_;
  std::vector<std::string> texts_;
  const PrintOptions& options_;
  size_t next_ = 0;
  std::string out_;
};

}  // namespace

PrintOptions print_options() {
  const std::lock_guard lock(options_mutex);
  return current_options;
}

void set_print_options(const PrintOptions& options) {
  if (options.precision < 0 || options.precision > 100 || options.threshold < 0 || options.edge_items < 1 ||
      options.line_width < 1)
    throw Error(
        Error::Kind::argument, "set_print_options",
        "needs a precision from 0 to 100, a threshold of 0 or more, and at least 1 for edge_items and line_width");
  const std::lock_guard lock(options_mutex);
  current_options = options;
}

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  const PrintOptions options = print_options();
  const NoGrad off;
  const Tensor shown = numel() > options.threshold ? edges_of(detach(), options.edge_items) : detach();
  std::string s = Writer(shape(), shown.shape(), texts_of(shown, options.precision), options).run();
  s += "  " + std::string(name(dtype())) + " " + shape().str();
  if (!device().is_cpu()) s += " " + device().str();
  if (requires_grad()) s += " requires_grad";
  return s;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.str(); }

std::string_view name(Error::Kind kind) {
  constexpr std::string_view names[] = {"shape",  "dtype", "index",    "device",  "argument",
                                        "memory", "io",    "autograd", "internal"};
  return names[size_t(kind)];
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }
std::ostream& operator<<(std::ostream& out, Error::Kind kind) { return out << name(kind); }

}  // namespace volta
