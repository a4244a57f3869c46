// Pooling: windows become tables of taps, which taps.h folds by maximum or sum.
#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/checked_arithmetic.h"
#include "ops/check.h"
#include "ops/reduce.h"
#include "ops/taps.h"

namespace volta::pooling {
namespace {

constexpr int64_t largest =
    int64_t(1) << 31;  // of a kernel, stride, padding or dilation: products of two do not overflow

void check_input(const Tensor& x, int axes, const char* op) {
  require_floating(x, op);
  require(x.dim() == axes + 1 || x.dim() == axes + 2, ErrorKind::shape, op, "needs ", axes + 2, " axes, or ", axes + 1,
          " without a batch, got shape ", x);
}
Shape last_sizes(const Tensor& x, int axes) {
  Shape s;
  for (int i = 0; i < axes; ++i) s.push_back(x.shape()[int(x.dim()) - axes + i]);
  return s;
}

Shape in_range(const PerAxis& values, int axes, const char* op, const char* what, int64_t least) {
  const Shape s = values.of(axes, op, what);
  for (int64_t n : s)
    require(n >= least && n < largest, ErrorKind::argument, op, what, " must be at least ", least, ", got ", s);
  return s;
}

// The windows of each axis, checked.
std::vector<Window> windows_of(int axes, const char* op, const PerAxis& kernel, const PerAxis& stride,
                               const PerAxis& padding, const PerAxis& dilation, bool ceil) {
  const Shape k = in_range(kernel, axes, op, "kernel_size", 1);
  const Shape s = stride.given().empty() ? k : in_range(stride, axes, op, "stride", 1);
  const Shape p = in_range(padding, axes, op, "padding", 0), d = in_range(dilation, axes, op, "dilation", 1);
  std::vector<Window> windows;
  for (int i = 0; i < axes; ++i) {
    require(p[i] <= k[i] / 2, ErrorKind::argument, op, "padding ", p, " is more than half of a kernel of ", k);
    windows.push_back({k[i], s[i], p[i], d[i], ceil});
  }
  return windows;
}

std::shared_ptr<std::vector<Taps>> taps_of(const Tensor& x, const std::vector<Window>& windows, const char* op) {
  const Shape sizes = last_sizes(x, int(windows.size()));
  auto taps = std::make_shared<std::vector<Taps>>();
  taps->reserve(windows.size());
  within_memory(op, [&] {
    for (size_t i = 0; i < windows.size(); ++i) taps->push_back(window_taps(sizes[int(i)], windows[i], op));
  });
  return taps;
}

// How many places each window counts: those in the input, or also those in the padding (but none beyond it).
std::vector<double> counts(const Taps& t, const Window& w, bool with_padding) {
  std::vector<double> n;
  n.reserve(size_t(t.out));
  for (int64_t j = 0; j < t.out; ++j) {
    const int64_t start = j * w.stride - w.padding, end = std::min(start + w.kernel, t.in + w.padding);
    n.push_back(double(with_padding ? end - start : std::min(end, t.in) - std::max<int64_t>(start, 0)));
  }
  return n;
}

constexpr const char *max_names[] = {"max_pool1d",
                                     "max_pool2d",
                                     "max_pool3d",
                                     "max_pool1d_with_indices",
                                     "max_pool2d_with_indices",
                                     "max_pool3d_with_indices"},
                     *avg_names[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"},
                     *lp_names[] = {"lp_pool1d", "lp_pool2d", "lp_pool3d"},
                     *adaptive_avg_names[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"},
                     *adaptive_max_names[] = {"adaptive_max_pool1d",
                                              "adaptive_max_pool2d",
                                              "adaptive_max_pool3d",
                                              "adaptive_max_pool1d_with_indices",
                                              "adaptive_max_pool2d_with_indices",
                                              "adaptive_max_pool3d_with_indices"},
                     *unpool_names[] = {"max_unpool1d", "max_unpool2d", "max_unpool3d"};

// The sizes asked for, -1 replaced by the input's.
Shape adaptive_sizes(const Tensor& x, int axes, const PerAxis& wanted, const char* op) {
  check_input(x, axes, op);
  Shape sizes = wanted.of(axes, op, "output_size");
  const Shape in = last_sizes(x, axes);
  for (int i = 0; i < axes; ++i) {
    if (sizes[i] == -1) sizes[i] = in[i];
    require(sizes[i] >= 0, ErrorKind::argument, op, "output_size must not be negative, got ", sizes);
    require(in[i] > 0, ErrorKind::shape, op, "an axis to be pooled is empty in shape ", x);
  }
  return sizes;
}
TapTable adaptive_table(const Tensor& x, const Shape& sizes, const char* op) {
  const Shape in = last_sizes(x, sizes.size());
  return tables_of(x, sizes, op, [&](int i) { return adaptive_taps(in[i], sizes[i], op); });
}

}  // namespace

ValuesIndices max(int axes, const Tensor& x, const PerAxis& kernel, const MaxPoolOptions& o, bool indices) {
  const char* op = max_names[axes - 1 + 3 * indices];
  check_input(x, axes, op);
  return max_of_taps(op, x, taps_of(x, windows_of(axes, op, kernel, o.stride, o.padding, o.dilation, o.ceil_mode), op),
                     indices);
}

Tensor average(int axes, const Tensor& x, const PerAxis& kernel, const AvgPoolOptions& o) {
  const char* op = avg_names[axes - 1];
  check_input(x, axes, op);
  require(o.divisor_override.value_or(1) != 0, ErrorKind::argument, op, "divisor_override must not be 0");
  const std::vector<Window> windows = windows_of(axes, op, kernel, o.stride, o.padding, 1, o.ceil_mode);
  const auto taps = taps_of(x, windows, op);
  for (size_t i = 0; i < windows.size(); ++i) {
    Taps& t = (*taps)[i];
    const double last = i + 1 == windows.size() ? double(o.divisor_override.value_or(1)) : 1;
    t.rule.divisor = o.divisor_override    ? TapRule::Divisor::constant
                     : o.count_include_pad ? TapRule::Divisor::padded
                                           : TapRule::Divisor::inside;
    t.rule.constant = last;
    t.divisor = within_memory(op, [&] {
      return o.divisor_override ? std::vector<double>(size_t(t.out), last) : counts(t, windows[i], o.count_include_pad);
    });
  }
  return sum_of_taps(op, x, taps);
}

Tensor lp(int axes, const Tensor& x, double p, const PerAxis& kernel, const LPPoolOptions& o) {
  const char* op = lp_names[axes - 1];
  check_input(x, axes, op);
  require(p != 0 && !std::isnan(p), ErrorKind::argument, op, "norm_type must not be ", p);
  const Shape sizes = in_range(kernel, axes, op, "kernel_size", 1);
  if (is_half(x.dtype())) return lp(axes, x.to(f32), p, kernel, o).to(x.dtype());  // a power need not fit a half
  const Tensor means =
      blamed_on(op, [&] { return average(axes, pow(x, p), kernel, {.stride = o.stride, .ceil_mode = o.ceil_mode}); });
  return pow(sign(means) * relu(abs(means)) * double(checked_numel(sizes, op)), 1 / p);
}

Tensor adaptive_average(int axes, const Tensor& x, const PerAxis& output_size) {
  const char* op = adaptive_avg_names[axes - 1];
  const Shape sizes = adaptive_sizes(x, axes, output_size, op);
  if (sizes == Shape::filled(axes, 1)) {
    std::vector<int64_t> last;
    for (int i = -axes; i < 0; ++i) last.push_back(i);
    return x.mean(last, true);
  }
  return sum_of_taps(op, x, adaptive_table(x, sizes, op));
}

ValuesIndices adaptive_max(int axes, const Tensor& x, const PerAxis& output_size, bool indices) {
  const char* op = adaptive_max_names[axes - 1 + 3 * indices];
  const Shape sizes = adaptive_sizes(x, axes, output_size, op);
  return max_of_taps(op, x, adaptive_table(x, sizes, op), indices);
}

Tensor unpool(int axes, const Tensor& x, const Tensor& indices, const PerAxis& kernel, const MaxUnpoolOptions& o) {
  const char* op = unpool_names[axes - 1];
  check_input(x, axes, op);
  const DType dtype = indices.checked(op).dtype();
  require(dtype == i64 && indices.shape() == x.shape(), ErrorKind::shape, op, "needs i64 indices of shape ", x,
          ", got ", dtype, " of shape ", indices);
  const std::vector<Window> windows = windows_of(axes, op, kernel, o.stride, o.padding, 1, false);
  const Shape in = last_sizes(x, axes);
  const int given = o.output_size.size(), from = int(x.dim()) - axes;
  require(given == 0 || given == axes || given == int(x.dim()), ErrorKind::argument, op, "output_size ", o.output_size,
          " names neither the pooled axes nor all of shape ", x);
  Shape out;
  for (int i = 0; i < axes; ++i) {
    const Window& w = windows[size_t(i)];
    const int64_t least = ((Checked(in[i]) - 1) * w.stride - 2 * w.padding + w.kernel).value(op);
    out.push_back(given ? o.output_size[given - axes + i] : least);
    require(out[i] > least - w.stride && out[i] < least + w.stride, ErrorKind::shape, op, "a size of ", out[i],
            " is not within ", w.stride, " of ", least, ", which axis ", from + i, " of shape ", x, " came from");
  }
  const Shape shape = spliced(x.shape(), from, axes, out);
  checked_numel(shape, op);
  const int64_t plane = checked_numel(out, op);
  if (x.numel() > 0) {
    const auto low = read_for<int64_t>(op, indices.min()), high = read_for<int64_t>(op, indices.max());
    require(low >= 0 && high < plane, ErrorKind::index, op, "indices from ", low, " to ", high, " leave a plane of ",
            out);
  }
  return scatter(zeros(spliced(x.shape(), from, axes, {plane}), {x.dtype(), x.device()}), from, indices.flatten(from),
                 x.flatten(from))
      .reshape(shape);
}

}  // namespace volta::pooling

namespace volta {

// clang-format off
Tensor max_pool1d(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(1, x, k, o, false).values; }
Tensor max_pool2d(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(2, x, k, o, false).values; }
Tensor max_pool3d(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(3, x, k, o, false).values; }
ValuesIndices max_pool1d_with_indices(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(1, x, k, o, true); }
ValuesIndices max_pool2d_with_indices(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(2, x, k, o, true); }
ValuesIndices max_pool3d_with_indices(const Tensor& x, const PerAxis& k, const MaxPoolOptions& o) { return pooling::max(3, x, k, o, true); }
Tensor avg_pool1d(const Tensor& x, const PerAxis& k, const AvgPoolOptions& o) { return pooling::average(1, x, k, o); }
Tensor avg_pool2d(const Tensor& x, const PerAxis& k, const AvgPoolOptions& o) { return pooling::average(2, x, k, o); }
Tensor avg_pool3d(const Tensor& x, const PerAxis& k, const AvgPoolOptions& o) { return pooling::average(3, x, k, o); }
Tensor Plain::lp_pool1d(const Tensor& x, double p, const PerAxis& k, const LPPoolOptions& o) { return pooling::lp(1, x, p, k, o); }
Tensor Plain::lp_pool2d(const Tensor& x, double p, const PerAxis& k, const LPPoolOptions& o) { return pooling::lp(2, x, p, k, o); }
Tensor Plain::lp_pool3d(const Tensor& x, double p, const PerAxis& k, const LPPoolOptions& o) { return pooling::lp(3, x, p, k, o); }
Tensor adaptive_avg_pool1d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_average(1, x, size); }
Tensor adaptive_avg_pool2d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_average(2, x, size); }
Tensor adaptive_avg_pool3d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_average(3, x, size); }
Tensor adaptive_max_pool1d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(1, x, size, false).values; }
Tensor adaptive_max_pool2d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(2, x, size, false).values; }
Tensor adaptive_max_pool3d(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(3, x, size, false).values; }
ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(1, x, size, true); }
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(2, x, size, true); }
ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, const PerAxis& size) { return pooling::adaptive_max(3, x, size, true); }
Tensor max_unpool1d(const Tensor& x, const Tensor& at, const PerAxis& k, const MaxUnpoolOptions& o) { return pooling::unpool(1, x, at, k, o); }
Tensor max_unpool2d(const Tensor& x, const Tensor& at, const PerAxis& k, const MaxUnpoolOptions& o) { return pooling::unpool(2, x, at, k, o); }
Tensor max_unpool3d(const Tensor& x, const Tensor& at, const PerAxis& k, const MaxUnpoolOptions& o) { return pooling::unpool(3, x, at, k, o); }
// clang-format on

}  // namespace volta
