// Metrics of values: perplexity, mean absolute and squared errors, and the coefficient of determination.
#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>
#include <volta/train/metrics.h>

#include "core/check.h"
#include "train/labels.h"

namespace volta::metrics {

void detail::throw_empty() { throw_error(ErrorKind::argument, "AnyMetric", "the metric was moved from"); }

namespace {

constexpr double undefined_value = std::numeric_limits<double>::quiet_NaN();

void require_values(const Tensor& prediction, const Tensor& target, const char* op) {
  require_same_device(prediction, target, op);
  require(prediction.shape() == target.shape(), ErrorKind::shape, op, "prediction ", prediction, " and target ", target,
          " differ in shape");
  require(prediction.dtype() != boolean && target.dtype() != boolean, ErrorKind::dtype, op,
          "needs numbers, got booleans");
}

double mean(const Tensor& sum, int64_t count) {
  return count == 0 ? undefined_value : sum.item<double>() / double(count);
}

}  // namespace

void Perplexity::add(const Tensor& loss, const Tensor& count) {
  const Tensor sum = plus(loss_, loss);
  count_ = plus(count_, count);
  loss_ = sum;
}

void Perplexity::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("Perplexity", [&] {
    require_same_device(prediction, target, "Perplexity");
    require(!is_floating(target.dtype()), ErrorKind::dtype, "Perplexity", "targets are class numbers, got ",
            target.dtype());
    const Tensor losses =
        cross_entropy(prediction.detach(), target, {.reduction = "none", .ignore_index = o_.ignore_index});
    add(losses.to(f64).sum(), (target.to(i64) != o_.ignore_index).sum());
  });
}

void Perplexity::update_loss(const Tensor& mean_loss, Int count) {
  const NoGrad off;
  require(mean_loss.checked("Perplexity").numel() == 1, ErrorKind::shape, "Perplexity",
          "a mean loss is one number, got ", mean_loss);
  require(count >= 0, ErrorKind::argument, "Perplexity", "the count of targets is negative: ", count);
  if (count == 0) return;
  blamed_on("Perplexity", [&] {
    const Tensor wide = mean_loss.detach().to(f64).reshape({});
    add(wide * double(count), full({}, int64_t(count), {.dtype = i64, .device = wide.device()}));
  });
}

double Perplexity::compute() const {
  if (!count_.defined()) return undefined_value;
  return std::exp(mean(loss_, count_.item<int64_t>()));
}

void MAE::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("MAE", [&] {
    require_values(prediction, target, "MAE");
    sum_ = plus(sum_, (prediction.to(f64) - target.to(f64)).abs().sum());
    count_ += target.numel();
  });
}
double MAE::compute() const { return mean(sum_, count_); }

void MSE::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("MSE", [&] {
    require_values(prediction, target, "MSE");
    sum_ = plus(sum_, (prediction.to(f64) - target.to(f64)).square().sum());
    count_ += target.numel();
  });
}
double MSE::compute() const { return mean(sum_, count_); }

void R2::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("R2", [&] {
    require_values(prediction, target, "R2");
    require(target.dim() >= 1, ErrorKind::shape, "R2", "needs samples along axis 0, got ", target);
    const int64_t n = target.size(0);
    if (n == 0) return;
    const Tensor y = target.to(f64), error = y - prediction.to(f64);
    const Tensor near = y.mean(0), mean = near + (y - near).mean(0);  // that of a constant is the constant
    const Tensor spread = (y - mean).square().sum(0), residual = error.square().sum(0);
    require(!mean_.defined() || mean_.shape() == mean.shape(), ErrorKind::shape, "R2", "target ", target,
            " has other outputs than earlier ones, which had ", mean_.defined() ? mean_.shape() : Shape());
    if (count_ > 0) {
      // Chan's rule for the joint sum of squares; sums of y * y would cancel where the mean is large.
      const double all = double(count_ + n);
      const Tensor apart = mean - mean_;
      const Tensor joint = spread_ + spread + apart.square() * (double(count_) * double(n) / all);
      residual_ = residual_ + residual;
      mean_ = mean_ + apart * (double(n) / all);
      spread_ = joint;
    } else {
      mean_ = mean;
      spread_ = spread;
      residual_ = residual;
    }
    count_ += n;
  });
}

double R2::compute() const {
  if (count_ < 2 || mean_.numel() == 0) return undefined_value;
  const Tensor met = (residual_ == 0).to(f64), rounding = mean_.abs() * std::numeric_limits<double>::epsilon();
  const Tensor constant = spread_ <= rounding.square() * double(count_);
  return where(constant, met, 1 - residual_ / where(constant, ones_like(spread_), spread_)).mean().item<double>();
}

}  // namespace volta::metrics
