// Norms and medians.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/fold.h"

namespace volta {
namespace {

// The value, in f32 for halves. Powers are summed in one pass and the root taken of the few results.
Tensor norm_value(const Tensor& x, double p, const Reduction& r) {
  const DType wide = traits(x.dtype()).compute;
  if (p == 2) return sqrt(run_fold(Fold::sum_squares, x, r, wide));
  if (p == 1) return run_fold(Fold::sum_abs, x, r, wide);
  if (p == 0) return run_fold(Fold::count_nonzero, x, r, i64).to(wide);
  if (std::isinf(p)) return run_fold(p > 0 ? Fold::max : Fold::min, abs(x), r, wide);
  return pow(run_fold(Fold::sum_powers, x, r, wide, p), 1 / p);
}

// 0 where the denominator is 0; the quotient's own derivatives stay finite there.
Tensor safe_quotient(const Tensor& a, const Tensor& b) {
  const Tensor flat = eq(b, 0);
  return where(flat, 0, a / where(flat, 1, b));
}

// d|x|_p / dx = sign(x) (|x| / y)^(p-1), and 0 at the corners where it has no value.
Tensor norm_back(const Tensor& g, const Tensor& x, const Tensor& y, double p, const Reduction& r) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return r.restore(g) * sign(x);
  if (p == 2) return r.restore(safe_quotient(g, y)) * x;
  if (std::isinf(p)) return share_evenly(g, abs(x), y, r) * sign(x);
  const Tensor ratio = safe_quotient(abs(x), r.restore(y)), flat = eq(ratio, 0);
  return r.restore(g) * sign(x) * where(flat, 0, pow(where(flat, 1, ratio), p - 1));
}

// Where the lower median stands; the first NaN if there is one.
Tensor median_index(const Tensor& x, int64_t axis) {
  const NoGrad off;
  const Tensor index = kthvalue(x, (x.size(axis) + 1) / 2, axis, true).indices;
  if (!is_floating(x.dtype())) return index;
  const Tensor holes = isnan(x);
  return where(any(holes, axis, true), argmax(holes, axis, true), index);
}

void require_elements(const Tensor& x, bool none) {
  if (none) throw Error(Error::Kind::shape, "median", "no result over zero elements, for shape " + x.shape().str());
}

}  // namespace

Tensor norm(const Tensor& x, double p, const Axes& dim, bool keepdim) {
  require_floating(x, "norm");
  const Reduction r(x, dim, keepdim, "norm");
  if (std::isnan(p)) throw Error(Error::Kind::argument, "norm", "the power is NaN");
  if ((p < 0 || std::isinf(p)) && r.count == 0 && r.kept.numel() > 0)
    throw Error(Error::Kind::shape, "norm",
                "no result over zero elements for this power, for shape " + x.shape().str());
  Tensor y;
  {
    const NoGrad off;
    y = norm_value(x, p, r).to(x.dtype());
  }
  return record("norm", y, {x}, [r, p, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    d[0] = norm_back(g, d.take(x), d.take(y), p, r);
  });
}

Tensor median(const Tensor& x) {
  require_elements(x, x.checked("median").numel() == 0);
  const Reduction r(x, {}, false, "median");
  Tensor y;
  {
    const NoGrad off;
    const Tensor row = reshape(x, {-1});
    y = reshape(gather(row, 0, median_index(row, 0)), {});
  }
  const Saved kept = save_output(y);
  return record("median", y, {x}, [r, x = save(x), kept](const Tensor& g, Gradients& d) {
    d[0] = share_evenly(g, d.take(x), d.take(kept), r);
  });
}

ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  const int axis = normalize_axis(dim, int(x.checked("median").dim()), x.shape(), "median");
  const Reduction r(x, axis, keepdim, "median");
  require_elements(x, r.count == 0 && r.kept.numel() > 0);
  if (x.dim() == 0) return {x.clone(), zeros({}, {i64, x.device()})};
  if (r.kept.numel() == 0) return {empty(r.to, {x.dtype(), x.device()}), empty(r.to, {i64, x.device()})};
  const Tensor index = median_index(x, axis);
  return {reshape(gather(x, axis, index), r.to), reshape(index, r.to)};
}

}  // namespace volta
