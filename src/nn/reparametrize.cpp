// The tensor side of weight_norm and spectral_norm.
#include <volta/nn/reparametrize.h>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/nn/model.h>
#include <volta/nn/norm.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/check.h"
#include "graph/record.h"

namespace volta::nn {

// Squares of halves leave their range.
Tensor weight_norm_of(const Tensor& v, int64_t dim) {
  const Tensor wide = v.to(traits(v.dtype()).compute);
  if (dim == -1) return norm(wide).to(v.dtype());
  const int kept = axis_of(v, dim, "weight_norm");
  std::vector<int64_t> axes;
  for (int axis = 0; axis < int(v.dim()); ++axis)
    if (axis != kept) axes.push_back(axis);
  return axes.empty() ? abs(v) : norm(wide, 2, axes, true).to(v.dtype());
}

Parameter& parameter_named(const ModelView& model, const std::string& name, const char* who) {
  struct Find final : Visitor {
    explicit Find(const std::string& n) : wanted(n) { shows_undefined = true; }
    void parameter(const Path& path, Parameter& x) override {
      if (!found && path.str() == wanted) found = &x;
    }
    const std::string& wanted;
    Parameter* found = nullptr;
  } visitor(name);
  model.walk(visitor);
  if (visitor.found) return *visitor.found;
  std::string names;
  for (const auto& [known, x] : named_parameters(model)) names += (names.empty() ? "" : ", ") + known;
  throw Error(Error::Kind::argument, who, "the layer has no parameter '" + name + "'; it has " + names);
}

namespace {
Tensor as_matrix(const Tensor& w, int64_t dim) { return w.movedim(dim, 0).flatten(1); }
}  // namespace

SpectralVectors spectral_start(const Tensor& weight, int64_t dim) {
  const Tensor m = as_matrix(weight.detach(), dim);
  const Options like{.dtype = m.dtype(), .device = m.device()};
  return {normalize(randn({m.size(0)}, like), 2, 0), normalize(randn({m.size(1)}, like), 2, 0)};
}

Tensor spectral_weight(const Tensor& weight, const SpectralVectors& vectors, int64_t dim, int64_t iterations,
                       double eps) {
  if (iterations < 0 || iterations > 65536)
    throw Error(Error::Kind::argument, "SpectralNorm", "n_power_iterations must be from 0 to 65536");
  above_zero(eps, "SpectralNorm", "eps");
  const Tensor m = as_matrix(weight, dim);
  Tensor u = vectors.u, v = vectors.v;
  {
    const NoGrad off;
    const Tensor fixed = m.detach();
    for (int64_t i = 0; i < iterations && !is_replaying(); ++i) {
      v.copy_(normalize(fixed.t().mv(u), 2, 0, eps));
      u.copy_(normalize(fixed.mv(v), 2, 0, eps));
    }
    // The next call moves u and v on; this one's graph keeps its own.
    if (iterations > 0) u = u.clone(), v = v.clone();
  }
  return weight / dot(u, m.mv(v));
}

}  // namespace volta::nn
