// The geometry of reductions, and the rules their gradients share.
#include "ops/fold.h"

#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/pointwise.h"

namespace volta {

Reduction::Reduction(const Tensor& x, const Axes& axes_given, bool keep, const char* name) : op(name) {
  from = kept = x.checked(name).shape();
  for (int64_t a : normalize_axes(axes_given, from, name)) mask |= 1u << a;
  for (int i = 0; i < from.size(); ++i) {
    const bool gone = mask >> i & 1;
    if (gone) count *= from[i], kept[i] = 1;
    if (!gone || keep) to.push_back(kept[i]);
  }
}

Axes Reduction::axes() const {
  Shape list;
  for (int i = 0; i < from.size(); ++i)
    if (mask >> i & 1) list.push_back(i);
  return list;
}

Tensor Reduction::restore(const Tensor& y) const {
  if (grad_enabled()) return expand(reshape(y, kept), from);
  Layout l{from, from, layout(y).offset};
  for (int i = 0, k = 0; i < from.size(); ++i) {
    const bool gone = mask >> i & 1;
    l.strides[i] = gone ? 0 : layout(y).strides[k];
    k += !gone || to.size() == from.size();
  }
  return alias(y, l);
}

Tensor run_fold(Fold fold, const Tensor& x, const Reduction& r, DType result, double parameter, Tensor* indices) {
  Tensor y = allocate(r.to, result, x.device(), r.op);
  if (indices) *indices = allocate(r.to, i64, x.device(), r.op);
  const Layout out = Layout::contiguous(r.kept);
  FoldCall call{fold, traits(x.dtype()).compute, arg(y), {}, arg(x), r.mask, parameter};
  if (is_integral(result) && (fold == Fold::sum || fold == Fold::prod || fold == Fold::nansum)) call.compute = result;
  call.out.layout = &out;
  if (indices) {
    call.indices = arg(*indices);
    call.indices.layout = &out;
  }
  backend(x.device()).fold(call);
  return y;
}

Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, const Reduction& r) {
  Tensor mask, many;
  {
    const NoGrad off;
    mask = logical_or(eq(x, r.restore(y)), isnan(x));
    many = run_fold(Fold::sum, mask, r, i64).to(traits(x.dtype()).compute);
  }
  return where(mask, r.restore(widened(g) / many), 0);
}

void require_floating(const Tensor& x, const char* op) {
  if (!is_floating(x.checked(op).dtype()))
    throw Error(Error::Kind::dtype, op,
                "needs floats, got " + std::string(name(x.dtype())) + "; convert with x.to(f32)");
}

Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? x.to(f32) : x; }

}  // namespace volta
