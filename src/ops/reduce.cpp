// Reductions over axes and their gradients.
#include "ops/reduce.h"

#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/fold.h"

namespace volta {
namespace {

// Integers and truth values add up as i64; u64 keeps its own.
DType sum_type(DType t) { return is_floating(t) || t == u64 ? t : i64; }

// There is no largest of nothing; of no results there is nothing to say.
void require_elements(const Tensor& x, const Reduction& r) {
  if (r.count == 0 && r.kept.numel() > 0)
    throw Error(Error::Kind::shape, r.op, "no result over zero elements, for shape " + x.shape().str());
}

Tensor sum_over(const Tensor& x, const Reduction& r) {
  Tensor y = run_fold(Fold::sum, x, r, sum_type(x.dtype()));
  return record(r.op, std::move(y), {x}, [r](const Tensor& g, Gradients& d) { d[0] = r.restore(g); });
}

// Products of all other elements of the row, without division: of those before times those after.
Tensor product_of_others(const Tensor& x) {
  const int64_t n = x.size(-1);
  Shape column = x.shape();
  column[column.size() - 1] = 1;
  const Tensor one = ones(column, {x.dtype(), x.device()});
  const Tensor before = cat({one, cumprod(narrow(x, -1, 0, n - 1), -1)}, -1);
  const Tensor after = cat({flip(cumprod(flip(narrow(x, -1, 1, n - 1), -1), -1), -1), one}, -1);
  return before * after;
}

Tensor prod_back(const Tensor& g, const Tensor& x, const Reduction& r) {
  if (x.numel() == 0) return zeros_like(x);
  Shape order, rows, back = Shape::filled(x.shape().size(), 0);
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < r.from.size(); ++i)
      if ((r.mask >> i & 1) == uint32_t(pass)) order.push_back(i);
  for (int i = 0; i < order.size(); ++i) {
    back[int(order[i])] = i;
    if (!(r.mask >> order[i] & 1)) rows.push_back(r.from[int(order[i])]);
  }
  const Tensor moved = permute(x, order);
  rows.push_back(r.count);
  const Tensor others = reshape(product_of_others(reshape(moved, rows)), moved.shape());
  return r.restore(g) * permute(others, back);
}

Tensor extreme(const char* op, Fold fold, const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, op);
  require_elements(x, r);
  Tensor y = run_fold(fold, x, r, x.dtype());
  const Saved kept = save_output(y);
  return record(op, std::move(y), {x}, [r, x = save(x), kept](const Tensor& g, Gradients& d) {
    d[0] = share_evenly(g, d.take(x), d.take(kept), r);
  });
}

ValuesIndices extreme_along(const char* op, Fold fold, const Tensor& x, int64_t dim, bool keepdim) {
  const int axis = normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
  const Reduction r(x, axis, keepdim, op);
  require_elements(x, r);
  ValuesIndices y;
  y.values = run_fold(fold, x, r, x.dtype(), 0, &y.indices);
  y.values = record(op, std::move(y.values), {x}, [r, axis, indices = save(y.indices)](const Tensor& g, Gradients& d) {
    const Tensor where = d.take(indices);
    if (r.from.empty()) d[0] = g;
    else d[0] = scatter(zeros(r.from, {g.dtype(), g.device()}), axis, reshape(where, r.kept), reshape(g, r.kept));
  });
  return y;
}

Tensor index_of_extreme(const char* op, Fold fold, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const Reduction r(x, dim ? Axes(*dim) : Axes(), keepdim, op);
  require_elements(x, r);
  return run_fold(fold, x, r, i64);
}

Tensor truth(const char* op, Fold fold, const Tensor& x, const Axes& dim, bool keepdim) {
  return run_fold(fold, x, Reduction(x, dim, keepdim, op), boolean);
}

// x minus its mean over the axes, in at least f32.
Tensor centred(const Tensor& x, const Reduction& r) {
  const Tensor wide = widened(x);
  return wide - mean(wide, r.axes(), true);
}

// What the sum of squared deviations is divided by.
double freedom(const Reduction& r, double correction) { return std::max(double(r.count) - correction, 0.0); }

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape, const char* op) {
  const int extra = int(x.checked(op).dim()) - shape.size();
  Shape axes;
  for (int i = 0; i < x.dim(); ++i) {
    const int64_t wanted = i < extra ? 1 : shape[i - extra];
    if (wanted != x.shape()[i] && wanted != 1)
      throw Error(Error::Kind::shape, op, x.shape().str() + " does not sum to " + shape.str());
    if (i < extra || wanted != x.shape()[i]) axes.push_back(i);
  }
  if (extra < 0) throw Error(Error::Kind::shape, op, x.shape().str() + " does not sum to " + shape.str());
  if (axes.empty()) return x;
  Reduction r(x, axes, true, op);
  r.to = shape;
  if (grad_enabled()) {
    r.to = r.kept;
    return reshape(sum_over(x, r), shape);
  }
  return run_fold(Fold::sum, x, r, x.dtype());
}

Tensor sum(const Tensor& x, const Axes& dim, bool keepdim) { return sum_over(x, Reduction(x, dim, keepdim, "sum")); }

Tensor mean(const Tensor& x, const Axes& dim, bool keepdim) {
  require_floating(x, "mean");
  const Reduction r(x, dim, keepdim, "mean");
  return record("mean", run_fold(Fold::mean, x, r, x.dtype()), {x},
                [r](const Tensor& g, Gradients& d) { d[0] = r.restore(g * (1.0 / double(r.count))); });
}

Tensor prod(const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, "prod");
  return record("prod", run_fold(Fold::prod, x, r, sum_type(x.dtype())), {x},
                [r, x = save(x)](const Tensor& g, Gradients& d) { d[0] = prod_back(g, d.take(x), r); });
}

Tensor nansum(const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, "nansum");
  return record("nansum", run_fold(Fold::nansum, x, r, sum_type(x.dtype())), {x},
                [r, x = save(x)](const Tensor& g, Gradients& d) { d[0] = where(isnan(d.take(x)), 0, r.restore(g)); });
}

Tensor amax(const Tensor& x, const Axes& dim, bool keepdim) { return extreme("amax", Fold::max, x, dim, keepdim); }
Tensor amin(const Tensor& x, const Axes& dim, bool keepdim) { return extreme("amin", Fold::min, x, dim, keepdim); }
Tensor max(const Tensor& x) { return extreme("max", Fold::max, x, {}, false); }
Tensor min(const Tensor& x) { return extreme("min", Fold::min, x, {}, false); }

ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("max", Fold::max, x, dim, keepdim);
}
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("min", Fold::min, x, dim, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmax", Fold::argmax, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmin", Fold::argmin, x, dim, keepdim);
}

Tensor any(const Tensor& x, const Axes& dim, bool keepdim) { return truth("any", Fold::any, x, dim, keepdim); }
Tensor all(const Tensor& x, const Axes& dim, bool keepdim) { return truth("all", Fold::all, x, dim, keepdim); }

Tensor count_nonzero(const Tensor& x, const Axes& dim) {
  return run_fold(Fold::count_nonzero, x, Reduction(x, dim, false, "count_nonzero"), i64);
}

Tensor var(const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, "var");
  const Reduction r(x, dim, options.keepdim, "var");
  const double n = freedom(r, options.correction);
  return record(
      "var", run_fold(Fold::var, x, r, x.dtype(), options.correction), {x},
      [r, n, x = save(x)](const Tensor& g, Gradients& d) { d[0] = r.restore(g * (2 / n)) * centred(d.take(x), r); });
}

Tensor std_dev(const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, "std_dev");
  const Reduction r(x, dim, options.keepdim, "std_dev");
  const double n = freedom(r, options.correction);
  Tensor y;
  {
    const NoGrad off;
    y = sqrt(run_fold(Fold::var, x, r, traits(x.dtype()).compute, options.correction)).to(x.dtype());
  }
  return record("std_dev", y, {x}, [r, n, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor root = d.take(y), flat = eq(root, 0);
    d[0] = r.restore(where(flat, 0, g / (where(flat, 1, root) * n))) * centred(d.take(x), r);
  });
}

Tensor logsumexp(const Tensor& x, const Axes& dim, bool keepdim) {
  require_floating(x, "logsumexp");
  const Reduction r(x, dim, keepdim, "logsumexp");
  const Tensor y = run_fold(Fold::logsumexp, x, r, x.dtype());
  return record("logsumexp", y, {x}, [r, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor wide = widened(d.take(x));
    const Tensor total = is_half(g.dtype()) ? logsumexp(wide, r.axes(), true) : reshape(d.take(y), r.kept);
    d[0] = r.restore(g) * exp(wide - where(eq(total, -INFINITY), 0, total));
  });
}

Tensor Tensor::std(const Axes& dim, const VarOptions& options) const { return std_dev(*this, dim, options); }

}  // namespace volta
