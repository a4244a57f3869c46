// The values of an image's pixels: dtypes, normalising, colours, blur and erasing.
#include <cmath>

#include <volta/data/functional.h>
#include <volta/ops.h>

#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "core/parallel.h"
#include "data/host.h"
#include "data/image_check.h"

namespace volta::data::functional {
namespace {

// u8 [c, h, w] of any strides to contiguous f32: photographs come with channels last.
Tensor floats_of_bytes(const Tensor& x, const char* op) {
  const Tensor y = allocate(x.shape(), f32, x.device(), op);
  const auto* from = static_cast<const uint8_t*>(address(x));
  auto* to = static_cast<float*>(address(y));
  const int64_t h = x.size(1), w = x.size(2), step = x.stride(2);
  parallel(x.size(0), [&](int64_t c) {
    for (int64_t i = 0; i < h; ++i) {
      const uint8_t* row = from + c * x.stride(0) + i * x.stride(1);
      float* line = to + (c * h + i) * w;
      for (int64_t j = 0; j < w; ++j) line[j] = float(row[j * step]) / 255.f;
    }
  });
  return y;
}

Tensor blended(const Tensor& a, const Tensor& b, double ratio, DType dtype) {
  const Tensor y = (as_floating(a) * ratio + b * (1 - ratio)).clamp(0, is_floating(dtype) ? 1 : 255);
  return y.to(dtype);
}

// In the image's range, not rounded.
Tensor gray(const Tensor& x) {
  const Tensor v = as_floating(x);
  return v.narrow(-3, 0, 1) * 0.2989 + v.narrow(-3, 1, 1) * 0.587 + v.narrow(-3, 2, 1) * 0.114;
}
Tensor whole_gray(const Tensor& x) { return is_floating(x.dtype()) ? gray(x) : gray(x).floor(); }

void check_colours(const Tensor& x, double factor, const char* op) {
  image(x, op, 3);
  require(x.size(-3) == 1 || x.size(-3) == 3, ErrorKind::shape, op, "needs 1 or 3 channels, got shape ", x);
  require(factor >= 0 && std::isfinite(factor), ErrorKind::argument, op, "the factor must not be below 0, got ",
          std::to_string(factor));
}

// The colour of hue h (in turns), saturation s and value v: each channel is v less the share that its distance says.
Tensor channel_of(const Tensor& h, const Tensor& s, const Tensor& v, double shift) {
  const Tensor k = (h * 6 + shift).remainder(6);
  return (v - v * s * minimum(k, 4 - k).clamp(0, 1)).clamp(0, 1);
}

}  // namespace

Tensor to_tensor(const Tensor& x) {
  constexpr const char* op = "to_tensor";
  require(x.checked(op).dim() == 2 || x.dim() == 3, ErrorKind::shape, op, "needs [h, w, c] or [h, w], got ", x);
  const Tensor planes = x.dim() == 2 ? x.unsqueeze(0) : x.permute({2, 0, 1});
  return x.dtype() == u8 ? convert_image_dtype(planes, f32) : planes.contiguous();
}

Tensor convert_image_dtype(const Tensor& x, DType dtype) {
  constexpr const char* op = "convert_image_dtype";
  image(x, op);
  require(is_image_dtype(dtype), ErrorKind::dtype, op, "converts to u8 or floating dtypes, not ", dtype);
  if (x.dtype() == dtype) return x;
  // In one pass over the host's memory; elsewhere by two ops.
  if (x.dtype() == u8 && dtype == f32 && x.dim() == 3 && is_on_host(x)) return floats_of_bytes(x, op);
  if (x.dtype() == u8) return x.to(dtype == f64 ? f64 : f32).div(255).to(dtype);
  if (is_floating(dtype)) return x.to(dtype);
  // A little less than 256, so that each of the 256 values has an equal share of the unit interval.
  return as_floating(x.clamp(0, 1)).mul(255.999).to(u8);
}

Tensor normalize(const Tensor& x, const std::vector<double>& mean, const std::vector<double>& std) {
  constexpr const char* op = "normalize";
  image(x, op, 3);
  require(is_floating(x.dtype()), ErrorKind::dtype, op, "needs floating numbers, got ", x.dtype(),
          "; to_tensor or convert_image_dtype come first");
  const int64_t channels = x.size(-3);
  for (const auto* list : {&mean, &std})
    require(list->size() == 1 || int64_t(list->size()) == channels, ErrorKind::shape, op, list->size(),
            list == &mean ? " means" : " deviations", " for ", channels, " channels of an image of shape ", x);
  for (const double s : std) require(s != 0, ErrorKind::argument, op, "a deviation is 0");
  if (x.dtype() != f32 || !is_host_bytes(x)) {
    const auto column = [&](const std::vector<double>& v) {
      return tensor(v).to(x.device()).to(x.dtype()).reshape({-1, 1, 1});
    };
    return (x - column(mean)) / column(std);
  }
  const Tensor y = allocate(x.shape(), f32, x.device(), op);
  const auto* from = static_cast<const float*>(address(x));
  auto* to = static_cast<float*>(address(y));
  const int64_t plane = x.size(-2) * x.size(-1);
  if (x.numel() == 0) return y;
  parallel(x.numel() / plane, [&](int64_t p) {
    const size_t c = size_t(p % channels);
    const float m = float(mean[mean.size() == 1 ? 0 : c]), s = float(std[std.size() == 1 ? 0 : c]);
    for (int64_t i = p * plane; i < (p + 1) * plane; ++i) to[i] = (from[i] - m) / s;
  });
  return y;
}

Tensor adjust_brightness(const Tensor& x, double factor) {
  check_colours(x, factor, "adjust_brightness");
  return (as_floating(x) * factor).clamp(0, is_floating(x.dtype()) ? 1 : 255).to(x.dtype());
}

Tensor adjust_contrast(const Tensor& x, double factor) {
  check_colours(x, factor, "adjust_contrast");
  if (x.numel() == 0) return x;
  const Tensor light = x.size(-3) == 3 ? whole_gray(x) : as_floating(x);
  return blended(x, light.mean({-3, -2, -1}, true), factor, x.dtype());
}

Tensor adjust_saturation(const Tensor& x, double factor) {
  check_colours(x, factor, "adjust_saturation");
  return x.size(-3) == 1 ? x : blended(x, whole_gray(x), factor, x.dtype());
}

Tensor adjust_hue(const Tensor& x, double factor) {
  constexpr const char* op = "adjust_hue";
  check_colours(x, 0, op);
  require(factor >= -0.5 && factor <= 0.5, ErrorKind::argument, op, "the factor must be from -0.5 to 0.5, got ",
          std::to_string(factor));
  if (x.size(-3) == 1 || x.numel() == 0) return x;
  const DType wide = x.dtype() == f64 ? f64 : f32;
  const Tensor rgb = convert_image_dtype(x, wide);
  const Tensor r = rgb.narrow(-3, 0, 1), g = rgb.narrow(-3, 1, 1), b = rgb.narrow(-3, 2, 1);
  const Tensor v = rgb.amax(-3, true), range = v - rgb.amin(-3, true), gray_too = range == 0;
  const Tensor by = where(gray_too, 1, range), s = range / where(gray_too, 1, v);
  const Tensor sixths = where(v == r, (g - b) / by, where(v == g, (b - r) / by + 2, (r - g) / by + 4));
  const Tensor h = (sixths / 6 + factor).remainder(1);
  // With k = (n + 6 h) mod 6 a channel is v - v s max(0, min(k, 4 - k, 1)), for n = 5, 3 and 1.
  return convert_image_dtype(cat({channel_of(h, s, v, 5), channel_of(h, s, v, 3), channel_of(h, s, v, 1)}, -3),
                             x.dtype());
}

Tensor rgb_to_grayscale(const Tensor& x, int num_output_channels) {
  constexpr const char* op = "rgb_to_grayscale";
  check_colours(x, 0, op);
  require(num_output_channels == 1 || num_output_channels == 3, ErrorKind::argument, op, "makes 1 or 3 channels, not ",
          num_output_channels);
  const Tensor y = x.size(-3) == 1 ? x : gray(x).to(x.dtype());
  if (num_output_channels == 1) return y;
  return cat({y, y, y}, -3);
}

Tensor gaussian_blur(const Tensor& x, const PerAxis& kernel_size, const Numbers& sigma) {
  constexpr const char* op = "gaussian_blur";
  image(x, op, 3);
  const Shape size = kernel_size.of(2, op, "kernel_size");  // across, down
  require(sigma.size() <= 2, ErrorKind::argument, op, "sigma is one number or two");
  const int64_t reach[] = {x.size(-1), x.size(-2)};
  Tensor kernel[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t n = size[int(i)];
    require(n > 0 && n % 2 == 1, ErrorKind::argument, op, "kernel_size must be odd and above 0, got ", size);
    require(n / 2 < std::max<int64_t>(reach[i], 1), ErrorKind::shape, op, "kernel_size ", size,
            " needs a larger image than ", x);
    const double deviation = sigma.empty() ? double(n) * 0.15 + 0.35 : sigma[i];
    require(deviation > 0, ErrorKind::argument, op, "sigma must be above 0, got ", std::to_string(deviation));
    const Tensor places = arange(-(n / 2), n / 2 + 1).to(f64);
    kernel[i] = softmax(places.div(deviation).square().mul(-0.5), 0);
  }
  if (x.numel() == 0) return x;
  const DType wide = x.dtype() == f64 ? f64 : f32;
  const int64_t across = size[0] / 2, down = size[1] / 2;
  const Tensor flat = x.to(wide).reshape({-1, 1, x.size(-2), x.size(-1)});
  const Tensor padded = volta::pad(flat, {across, across, down, down}, {.mode = "reflect"});
  const Tensor rows = conv2d(padded, kernel[0].to(x.device()).to(wide).reshape({1, 1, 1, size[0]}));
  const Tensor both = conv2d(rows, kernel[1].to(x.device()).to(wide).reshape({1, 1, size[1], 1}));
  return rounded_to(both.reshape(x.shape()), x.dtype());
}

Tensor erase(const Tensor& x, Int top, Int left, Int height, Int width, const Tensor& value) {
  constexpr const char* op = "erase";
  image(x, op, 3);
  require(top >= 0 && left >= 0 && height >= 0 && width >= 0 && top <= x.size(-2) && left <= x.size(-1) &&
              height <= x.size(-2) - top && width <= x.size(-1) - left,
          ErrorKind::index, op, "a part of ", height, " x ", width, " at ", top, ", ", left, " of an image of shape ",
          x);
  const Tensor y = x.clone();
  y.slice(-2, top, top + height).slice(-1, left, left + width).copy_(value.checked(op).to(x.device()).to(x.dtype()));
  return y;
}

}  // namespace volta::data::functional
