// Resizing images: both axes filtered in one pass over rows, from u8 or f32 without a copy in between.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include <volta/data/functional.h>
#include <volta/ops.h>

#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "core/parallel.h"
#include "data/host.h"
#include "data/image_check.h"

namespace volta::data {
namespace {

constexpr const char* op = "resize";

// For each output of an axis: its first input, and as many weights for each as `width` says.
struct Filter {
  int64_t width = 0;
  std::vector<int64_t> first;
  std::vector<float> weights;
  std::vector<int64_t> count;
};

// The triangle of the scale's width, as PyTorch and Pillow place it.
Filter antialiased(int64_t in, int64_t out) {
  const double scale = double(in) / double(out), support = std::max(scale, 1.0);
  Filter f{.width = std::min(in, int64_t(std::ceil(support)) * 2 + 1), .first = {}, .weights = {}, .count = {}};
  f.weights.assign(size_t((Checked(out) * f.width).value(op)), 0);
  for (int64_t i = 0; i < out; ++i) {
    const double center = scale * (double(i) + 0.5);
    const int64_t low = std::max<int64_t>(int64_t(std::floor(center - support + 0.5)), 0);
    const int64_t n = std::min(std::min<int64_t>(int64_t(std::floor(center + support + 0.5)), in) - low, f.width);
    float* w = &f.weights[size_t(i * f.width)];
    double total = 0;
    std::vector<double> raw(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j)
      total += raw[size_t(j)] = std::max(0.0, 1 - std::abs((double(j + low) - center + 0.5) / support));
    for (int64_t j = 0; j < n; ++j) w[j] = float(raw[size_t(j)] / total);
    f.first.push_back(low);
    f.count.push_back(n);
  }
  return f;
}

Filter between_two(int64_t in, int64_t out) {
  const double scale = double(in) / double(out);
  Filter f{.width = std::min<int64_t>(in, 2), .first = {}, .weights = {}, .count = {}};
  for (int64_t i = 0; i < out; ++i) {
    const double place = std::clamp(scale * (double(i) + 0.5) - 0.5, 0.0, double(in - 1));
    const int64_t left = std::clamp<int64_t>(int64_t(place), 0, in - f.width);
    const double share = place - double(left);
    f.first.push_back(left);
    f.count.push_back(f.width);
    f.weights.push_back(float(f.width == 1 ? 1 : 1 - share));
    if (f.width == 2) f.weights.push_back(float(share));
  }
  return f;
}

Filter filter_of(int64_t in, int64_t out, bool antialias) {
  return antialias ? antialiased(in, out) : between_two(in, out);
}

// A plane, or interleaved channels: rows of `pixels` times `channels` adjacent numbers.
struct Rows {
  int64_t pixels, channels, stride;
};

// Four channels at once.
using Four [[gnu::vector_size(16)]] = float;
using FourInts [[gnu::vector_size(16)]] = int32_t;

inline void store(float x, float& to) { to = x; }
inline void store(float x, uint8_t& to) { to = uint8_t(std::clamp(x + 0.5f, 0.f, 255.f)); }
template <int channels> void store(Four x, float* to) { std::memcpy(to, &x, channels * sizeof(float)); }
template <int channels> void store(Four x, uint8_t* to) {
  x += 0.5f;
  x = x > 0.f ? x : Four{};
  x = x < 255.f ? x : Four{} + 255.f;
  const auto whole = __builtin_convertvector(x, FourInts);
  for (int c = 0; c < channels; ++c) to[c] = uint8_t(whole[c]);
}

// Adds `n` rows, in order, to what there is.
template <int n, bool first, class T>
void add_rows(const T* in, int64_t stride, const float* w, int64_t begin, int64_t end, float* sum) {
  for (int64_t i = begin; i < end; ++i) {
    float s = first ? w[0] * float(in[i]) : sum[i] + w[0] * float(in[i]);
    for (int k = 1; k < n; ++k) s += w[k] * float(in[k * stride + i]);
    sum[i] = s;
  }
}

template <class T>
void vertical(const T* in, const Rows& rows, const float* w, int64_t count, int64_t begin, int64_t end, float* sum) {
  if (count >= 4) add_rows<4, true>(in, rows.stride, w, begin, end, sum);
  else if (count == 3) add_rows<3, true>(in, rows.stride, w, begin, end, sum);
  else if (count == 2) add_rows<2, true>(in, rows.stride, w, begin, end, sum);
  else add_rows<1, true>(in, rows.stride, w, begin, end, sum);
  int64_t k = 4;
  for (; k + 1 < count; k += 2) add_rows<2, false>(in + k * rows.stride, rows.stride, w + k, begin, end, sum);
  if (k < count) add_rows<1, false>(in + k * rows.stride, rows.stride, w + k, begin, end, sum);
}

// With three channels, a number behind the last is read too.
template <int channels, class T> void horizontal(const float* row, const Filter& f, T* out, int64_t pixels) {
  for (int64_t x = 0; x < pixels; ++x) {
    const float* w = &f.weights[size_t(x * f.width)];
    const float* from = row + f.first[size_t(x)] * channels;
    if constexpr (channels == 1) {
      float sum = 0;
      for (int64_t k = 0; k < f.count[size_t(x)]; ++k) sum += w[k] * from[k];
      store(sum, out[x]);
    } else {
      Four sum{}, pixel;
      for (int64_t k = 0; k < f.count[size_t(x)]; ++k) {
        std::memcpy(&pixel, from + k * channels, sizeof pixel);
        sum += w[k] * pixel;
      }
      store<channels>(sum, out + x * channels);
    }
  }
}

template <class T>
void resize_rows(const T* in, const Rows& from, T* out, const Rows& to, const Filter& across, const Filter& down) {
  const int64_t block = 16, rows = int64_t(down.first.size());
  parallel((rows + block - 1) / block, [&](int64_t part) {
    std::vector<float> sum(size_t(from.pixels * from.channels) + 1);
    const int64_t begin = across.first.front() * from.channels;
    const int64_t end = (across.first.back() + across.count.back()) * from.channels;
    for (int64_t y = part * block; y < std::min(rows, (part + 1) * block); ++y) {
      vertical(in + down.first[size_t(y)] * from.stride, from, &down.weights[size_t(y * down.width)],
               down.count[size_t(y)], begin, end, sum.data());
      T* line = out + y * to.stride;
      if (from.channels == 1) horizontal<1>(sum.data(), across, line, to.pixels);
      else if (from.channels == 3) horizontal<3>(sum.data(), across, line, to.pixels);
      else horizontal<4>(sum.data(), across, line, to.pixels);
    }
  });
}

bool interleaved(const Tensor& x) {
  const int64_t c = x.size(-3);
  return (c == 3 || c == 4) && x.stride(-3) == 1 && x.stride(-1) == c;
}

template <class T> Tensor filtered(const Tensor& given, int64_t height, int64_t width, bool antialias) {
  const bool mixed = given.dim() == 3 && interleaved(given);
  const Tensor x = mixed || (given.dim() == 3 && given.stride(-1) == 1) ? given : given.contiguous();
  // Allocated first: sizes beyond memory are refused before tables of that size are made.
  if (mixed) {
    const int64_t c = x.size(-3);
    const Tensor y = allocate({height, width, c}, x.dtype(), x.device(), op);
    const Filter across = filter_of(x.size(-1), width, antialias), down = filter_of(x.size(-2), height, antialias);
    resize_rows(static_cast<const T*>(address(x)), {x.size(-1), c, x.stride(-2)}, static_cast<T*>(address(y)),
                {width, c, width * c}, across, down);
    return y.permute({2, 0, 1});
  }
  Shape shape = x.shape();
  shape[-2] = height;
  shape[-1] = width;
  const Tensor y = allocate(shape, x.dtype(), x.device(), op);
  const Filter across = filter_of(x.size(-1), width, antialias), down = filter_of(x.size(-2), height, antialias);
  const int64_t planes = x.numel() / (x.size(-1) * x.size(-2));
  const int64_t plane = x.dim() == 3 ? x.stride(0) : x.size(-1) * x.size(-2);
  for (int64_t p = 0; p < planes; ++p)
    resize_rows(static_cast<const T*>(address(x)) + p * plane, {x.size(-1), 1, x.stride(-2)},
                static_cast<T*>(address(y)) + p * height * width, {width, 1, width}, across, down);
  return y;
}

// Other dtypes, devices and filters.
Tensor composed(const Tensor& x, int64_t height, int64_t width, Interpolation how, bool antialias) {
  Shape flat{-1, x.size(-3), x.size(-2), x.size(-1)}, shape = x.shape();
  shape[-2] = height;
  shape[-1] = width;
  const bool nearest = how == Interpolation::nearest;
  const InterpolateMode mode = nearest                          ? InterpolateMode::nearest
                               : how == Interpolation::bilinear ? InterpolateMode::bilinear
                                                                : InterpolateMode::bicubic;
  const auto sized = [&](const Tensor& from, int64_t h, int64_t w) {
    return interpolate(from, {.size = {h, w}, .mode = mode, .antialias = antialias && !nearest});
  };
  Tensor from = as_floating(x).reshape(flat);
  // Bicubic filters overshoot. Bytes are cut to their range between the axes, too, by PyTorch and Pillow.
  if (x.dtype() == u8 && how == Interpolation::bicubic && width != x.size(-1) && height != x.size(-2))
    from = as_floating(rounded_to(sized(from, x.size(-2), width), u8));
  return rounded_to(sized(from, height, width).reshape(shape), x.dtype());
}

Shape target(const Tensor& x, const PerAxis& size, const ResizeOptions& options) {
  if (size.given().size() != 1) {
    require(!options.max_size, ErrorKind::argument, op,
            "max_size goes with one number as size, that of the shorter side");
    return height_width(size, op);
  }
  const int64_t h = x.size(-2), w = x.size(-1), wanted = size.given()[0];
  require(wanted > 0, ErrorKind::argument, op, "size ", wanted, " must be above 0");
  int64_t shorter = wanted, longer = (Checked(wanted) * std::max(h, w)).value(op) / std::min(h, w);
  if (options.max_size) {
    const int64_t most = *options.max_size;
    require(most > wanted, ErrorKind::argument, op, "max_size ", most, " must be above size ", wanted);
    if (longer > most) {
      shorter = std::max<int64_t>((Checked(most) * shorter).value(op) / longer, 1);
      longer = most;
    }
  }
  return w <= h ? Shape{longer, shorter} : Shape{shorter, longer};
}

}  // namespace

Tensor functional::resize(const Tensor& x, const PerAxis& size, const ResizeOptions& options) {
  image(x, op, 3);
  require(x.numel() > 0, ErrorKind::shape, op, "an image of shape ", x, " has no pixels");
  const Shape hw = target(x, size, options);
  if (hw[0] == x.size(-2) && hw[1] == x.size(-1)) return x;
  const Interpolation how = options.interpolation.of(op, "interpolation");
  // The filter goes over the host's memory; elsewhere `interpolate` does.
  const bool direct = how == Interpolation::bilinear && is_on_host(x);
  (void)(Checked(hw[0]) * hw[1] * x.size(-3) * 8).value(op);
  try {
    if (direct && x.dtype() == u8) return filtered<uint8_t>(x, hw[0], hw[1], options.antialias);
    if (direct && x.dtype() == f32) return filtered<float>(x, hw[0], hw[1], options.antialias);
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, op, "there is no memory for the weights from an image of shape ", x, " to ", hw);
  }
  return blamed_on(op, [&] { return composed(x, hw[0], hw[1], how, options.antialias); });
}

Tensor functional::resized_crop(const Tensor& x, Int top, Int left, Int height, Int width, const PerAxis& size,
                                const ResizeOptions& options) {
  return resize(crop(x, top, left, height, width), height_width(size, "resized_crop"), options);
}

}  // namespace volta::data
