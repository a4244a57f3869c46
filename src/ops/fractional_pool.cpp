// Fractional max pooling: the places of all windows as one table of indices, gathered and reduced.
#include <volta/create.h>
#include <volta/ops.h>

#include "graph/record.h"
#include "ops/check.h"
#include "ops/fractional_pool.h"

namespace volta {

void check_ratio(const Numbers& ratio, const PerAxis& size, int axes, const char* op) {
  require(size.given().empty() != ratio.empty(), ErrorKind::argument, op, "needs either output_size or output_ratio");
  require(ratio.size() <= 1 || int(ratio.size()) == axes, ErrorKind::argument, op, "output_ratio has ", ratio.size(),
          " numbers for ", axes, " axes");
  for (const double r : ratio.list())
    require(r > 0 && r < 1, ErrorKind::argument, op, "output_ratio must lie in (0, 1), not ", r);
}

namespace {

struct Sizes {
  Shape in, kernel, out;
};

Sizes sizes_of(int axes, const Tensor& x, const PerAxis& kernel, const FractionalPoolOptions& o, const char* op) {
  require_floating(x, op);
  require(x.dim() == axes + 1 || x.dim() == axes + 2, ErrorKind::shape, op, "needs ", axes + 2, " axes, or ", axes + 1,
          " without a batch, got shape ", x);
  check_ratio(o.output_ratio, o.output_size, axes, op);
  Sizes s;
  s.kernel = kernel.of(axes, op, "kernel_size");
  if (o.output_ratio.empty()) s.out = o.output_size.of(axes, op, "output_size");
  for (int i = 0; i < axes; ++i) {
    const int64_t n = x.shape()[int(x.dim()) - axes + i];
    s.in.push_back(n);
    if (!o.output_ratio.empty()) s.out.push_back(int64_t(double(n) * o.output_ratio[size_t(i)]));
    require(s.kernel[i] > 0, ErrorKind::argument, op, "kernel_size must be positive, got ", s.kernel);
    require(s.out[i] > 0 && s.out[i] <= n && s.kernel[i] <= n - s.out[i] + 1, ErrorKind::shape, op, "windows of ",
            s.kernel, " do not give ", s.out, " places in shape ", x);
  }
  return s;
}

// Where the windows of one axis begin, [planes, out]: steps of (in - kernel) / (out - 1), shifted by the sample, whole.
Tensor starts(const Tensor& sample, int64_t in, int64_t kernel, int64_t out) {
  const Tensor i = arange(0, out, 1, {.dtype = sample.dtype(), .device = sample.device()});
  const Tensor last = full({}, in - kernel, {.dtype = i64, .device = sample.device()});
  if (out == 1) return last.expand({sample.size(0), 1});
  const Tensor alpha = full({}, double(in - kernel), {sample.dtype(), sample.device()}) / double(out - 1);
  const Tensor s = sample.unsqueeze(1), place = ((i + s) * alpha).to(i64) - (s * alpha).to(i64);
  return where(i == double(out - 1), last, place);
}

ValuesIndices pooled(int axes, const Tensor& x, const PerAxis& kernel, const FractionalPoolOptions& o, const char* op) {
  const Sizes s = sizes_of(axes, x, kernel, o, op);
  const bool batched = x.dim() == axes + 2;
  const Shape given{batched ? x.size(0) : 1, x.size(batched ? 1 : 0), axes};
  if (o.random_samples.defined()) {
    require(!any_needs_grad(o.random_samples), ErrorKind::autograd, op,
            "has no derivative by random_samples; detach() it");
    require(o.random_samples.shape() == given, ErrorKind::shape, op, "random_samples has shape ", o.random_samples,
            ", not ", given);
    require(o.random_samples.dtype() == x.dtype(), ErrorKind::dtype, op, "random_samples is ", o.random_samples.dtype(),
            ", the input ", x.dtype());
    common_device(x, o.random_samples, op);
    require(!read_for<bool>(op, any((o.random_samples < 0) | (o.random_samples >= 1) | isnan(o.random_samples))),
            ErrorKind::argument, op, "random_samples must lie in [0, 1)");
  }
  const DType wide = x.dtype() == f64 ? f64 : f32;
  const Tensor samples = (o.random_samples.defined() ? o.random_samples.detach().to(wide)
                                                     : rand(given, {.dtype = wide, .device = x.device()}))
                             .flatten(0, 1);
  const int64_t planes = samples.size(0);
  // The table [planes, out..., kernel...] of indices into a plane; PyTorch's samples of 2 axes are the last axis first.
  Tensor table;
  for (int i = 0; i < axes; ++i) {
    Shape place = Shape::filled(1 + 2 * axes, 1), window = place;
    place[0] = planes, place[1 + i] = s.out[i], window[1 + axes + i] = s.kernel[i];
    const Tensor sample = samples.select(1, axes == 2 ? 1 - i : i);
    const Tensor at = starts(sample, s.in[i], s.kernel[i], s.out[i]).reshape(place) +
                      arange(0, s.kernel[i], 1, {.dtype = i64, .device = x.device()}).reshape(window);
    table = table.defined() ? table * s.in[i] + at : at;
  }
  table = table.flatten(1);
  const int from = batched ? 2 : 1;
  Shape shape = x.shape();
  for (int i = 0; i < axes; ++i) shape[from + i] = s.out[i];
  const Tensor flat = x.reshape({planes, s.in.numel()});
  const auto [values, local] = flat.gather(1, table).unflatten(1, {s.out.numel(), s.kernel.numel()}).max(-1);
  const Tensor places = table.unflatten(1, {s.out.numel(), s.kernel.numel()}).gather(-1, local.unsqueeze(-1));
  return {values.reshape(shape), places.reshape(shape)};
}

}  // namespace

ValuesIndices fractional_max_pool2d_with_indices(const Tensor& x, const PerAxis& k, const FractionalPoolOptions& o) {
  return pooled(2, x, k, o, "fractional_max_pool2d_with_indices");
}
ValuesIndices fractional_max_pool3d_with_indices(const Tensor& x, const PerAxis& k, const FractionalPoolOptions& o) {
  return pooled(3, x, k, o, "fractional_max_pool3d_with_indices");
}
Tensor fractional_max_pool2d(const Tensor& x, const PerAxis& k, const FractionalPoolOptions& o) {
  return pooled(2, x, k, o, "fractional_max_pool2d").values;
}
Tensor fractional_max_pool3d(const Tensor& x, const PerAxis& k, const FractionalPoolOptions& o) {
  return pooled(3, x, k, o, "fractional_max_pool3d").values;
}

}  // namespace volta
