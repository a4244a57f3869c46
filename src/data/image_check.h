// Checks that functions on images share.
#pragma once
#include <volta/tensor.h>

#include "core/check.h"

namespace volta::data {

inline bool is_image_dtype(DType dtype) { return dtype == u8 || is_floating(dtype); }

// An image of at least so many axes, u8 or floating.
inline const Tensor& image(const Tensor& x, const char* op, int64_t axes = 2) {
  require(x.checked(op).dim() >= axes, ErrorKind::shape, op, "needs an image of shape [..., ",
          axes > 2 ? "channels, " : "", "height, width], got ", x);
  require(is_image_dtype(x.dtype()), ErrorKind::dtype, op, "needs an image of u8 or floating numbers, got ", x.dtype());
  return x;
}

// Height and width; one number stands for both.
inline Shape height_width(const PerAxis& size, const char* op) {
  const Shape hw = size.of(2, op, "size");
  require(hw[0] > 0 && hw[1] > 0, ErrorKind::argument, op, "size ", hw, " must be above 0");
  return hw;
}

// What a u8 image is computed in, and back by rounding.
inline Tensor as_floating(const Tensor& x) { return is_floating(x.dtype()) ? x : x.to(f32); }
inline Tensor rounded_to(const Tensor& y, DType dtype) {
  return is_floating(dtype) ? y.to(dtype) : y.clamp(0, 255).round().to(dtype);
}

}  // namespace volta::data
