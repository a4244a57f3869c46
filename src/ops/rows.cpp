// Softmax and log-softmax with their gradients.
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/fold.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

// A result as dense as x, in its order of axes.
Tensor dense_like(const Tensor& x, const char* op) {
  const Layout& l = layout(x);
  return l.is_dense() ? allocate_like(l, x.dtype(), x.device(), op) : allocate(x.shape(), x.dtype(), x.device(), op);
}

Tensor run_rows(RowOp kind, const Tensor& a, const Tensor& b, int axis, const char* op) {
  const Tensor& like = b.defined() ? b : a;
  Tensor y = dense_like(like, op);
  RowCall call{kind, arg(y), {arg(a), b.defined() ? arg(b) : Arg{}}, axis};
  const Layout single = Layout::contiguous({1});  // a 0-d tensor is a row of one
  if (a.dim() == 0) call.out.layout = call.in[0].layout = call.in[1].layout = &single;
  backend(y.device()).rows(call);
  return y;
}

Tensor softmax_back(const Tensor& g, const Tensor& y, int axis) {
  if (!grad_enabled()) return run_rows(RowOp::softmax_back, g, y, axis, "softmax");
  const Tensor weighted = g * y;
  return weighted - y * sum(weighted, axis, true);
}

Tensor log_softmax_back(const Tensor& g, const Tensor& y, int axis) {
  if (!grad_enabled()) return run_rows(RowOp::log_softmax_back, g, y, axis, "log_softmax");
  return g - exp(y) * sum(g, axis, true);
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  require_floating(x, "softmax");
  const int axis = normalize_axis(dim, int(x.dim()), x.shape(), "softmax");
  const Tensor y = run_rows(RowOp::softmax, x, {}, axis, "softmax");
  return record("softmax", y, {x},
                [axis, y = save_output(y)](const Tensor& g, Gradients& d) { d[0] = softmax_back(g, d.take(y), axis); });
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  require_floating(x, "log_softmax");
  const int axis = normalize_axis(dim, int(x.dim()), x.shape(), "log_softmax");
  const Tensor y = run_rows(RowOp::log_softmax, x, {}, axis, "log_softmax");
  return record("log_softmax", y, {x}, [axis, y = save_output(y)](const Tensor& g, Gradients& d) {
    d[0] = log_softmax_back(g, d.take(y), axis);
  });
}

}  // namespace volta
