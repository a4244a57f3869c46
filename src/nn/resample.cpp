// Layers that change the resolution, and those that turn windows into columns and back.
#include <volta/nn/resample.h>

#include <utility>

#include <volta/nn/reflect.h>

namespace volta::nn {

Tensor Upsample::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return interpolate(in, options); });
}
UpsamplingNearest2d::UpsamplingNearest2d(InterpolateOptions o)
    : Upsample((o.mode = InterpolateMode::nearest, std::move(o))) {}
UpsamplingBilinear2d::UpsamplingBilinear2d(InterpolateOptions o)
    : Upsample((o.mode = InterpolateMode::bilinear, o.align_corners = true, std::move(o))) {}
Tensor Unfold::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return im2col(in, kernel_size, options); });
}
Tensor Fold::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return col2im(in, output_size, kernel_size, options); });
}

}  // namespace volta::nn
