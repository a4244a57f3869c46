// mixup and cutmix: images and labels of a batch blended with those of the neighbours.
#include <algorithm>
#include <cmath>

#include <volta/data/transforms.h>
#include <volta/ops.h>

#include "data/draw.h"
#include "data/image_check.h"

namespace volta::data {
namespace {

// Labels as shares of classes.
Tensor shares(const Tensor& x, const Tensor& y, int64_t classes, const char* op) {
  image(x, op, 4);
  require(is_floating(x.dtype()), ErrorKind::dtype, op, "needs images of floating numbers, got ", x.dtype());
  require(y.checked(op).dim() >= 1 && y.size(0) == x.size(0), ErrorKind::shape, op, "images ", x, " and labels ", y,
          " differ in number");
  if (y.dim() == 2 && is_floating(y.dtype())) return y;
  require(y.dim() == 1 && is_integral(y.dtype()), ErrorKind::argument, op,
          "labels are whole numbers [n] or shares [n, classes], got ", y.dtype(), " of shape ", y);
  require(classes > 0, ErrorKind::argument, op, "num_classes must be given for labels that are whole numbers");
  return one_hot(y.to(i64), classes).to(x.dtype());
}

double beta(Generator& g, double alpha) {
  const Tensor a = full({}, alpha, {.dtype = f64, .device = Device()});
  return sample_beta(a, a, &g).item<double>();
}

void check_alpha(const MixOptions& o, const char* op) {
  require(o.alpha > 0 && std::isfinite(o.alpha), ErrorKind::argument, op, "alpha must be above 0, got ",
          std::to_string(o.alpha));
}

Tensor blended(const Tensor& x, double share) { return x * share + x.roll(1, 0) * (1 - share); }

}  // namespace

BatchTransform::BatchTransform(std::function<Batch(const Tensor&, const Tensor&, Generator&)> f) : f_(std::move(f)) {
  require_function(f_, "BatchTransform");
}
BatchTransform::Batch BatchTransform::operator()(const Tensor& x, const Tensor& y) const {
  return (*this)(x, y, default_generator());
}
BatchTransform::Batch BatchTransform::operator()(const Tensor& x, const Tensor& y, Generator& g) const {
  require_function(f_, "BatchTransform");  // none in one that was moved from
  return f_(x, y, g);
}

BatchTransform mixup(const MixOptions& options) {
  check_alpha(options, "mixup");
  return BatchTransform([=](const Tensor& x, const Tensor& y, Generator& g) {
    const Tensor labels = shares(x, y, options.num_classes, "mixup");
    const double share = beta(g, options.alpha);
    return BatchTransform::Batch(blended(x, share), blended(labels, share));
  });
}

BatchTransform cutmix(const MixOptions& options) {
  check_alpha(options, "cutmix");
  return BatchTransform([=](const Tensor& x, const Tensor& y, Generator& g) {
    const Tensor labels = shares(x, y, options.num_classes, "cutmix");
    if (x.numel() == 0) return BatchTransform::Batch(x, labels);
    const int64_t h = x.size(-2), w = x.size(-1);
    const double reach = 0.5 * std::sqrt(1 - beta(g, options.alpha));
    const int64_t cx = integer_from(g, 0, w - 1), cy = integer_from(g, 0, h - 1);
    const int64_t half_w = int64_t(reach * double(w)), half_h = int64_t(reach * double(h));
    const int64_t left = std::max<int64_t>(cx - half_w, 0), right = std::min(cx + half_w, w);
    const int64_t top = std::max<int64_t>(cy - half_h, 0), bottom = std::min(cy + half_h, h);
    const Tensor part = x.roll(1, 0).slice(-2, top, bottom).slice(-1, left, right);
    const double share = 1 - double((bottom - top) * (right - left)) / double(h * w);
    const Tensor mixed = x.clone();
    mixed.slice(-2, top, bottom).slice(-1, left, right).copy_(part);
    return BatchTransform::Batch(mixed, blended(labels, share));
  });
}

}  // namespace volta::data
