// Analytic gradients against central differences, in f64.
#include <algorithm>
#include <cmath>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"

namespace volta {
namespace {

struct Checker {
  const TensorFunction& f;
  const std::vector<Tensor>& inputs;
  const GradcheckOptions& options;
  const char* op;

  bool fail(const std::string& why) const {
    if (options.raise) throw Error(Error::Kind::autograd, op, why);
    return false;
  }

  std::vector<Tensor> evaluate(const std::vector<Tensor>& at) const {
    const NoGrad off;
    std::vector<Tensor> ys = f(at);
    for (Tensor& y : ys) y = y.detach().to(f64);
    return ys;
  }

  // (f(x + e d) - f(x - e d)) / 2e along direction d of input i, as one number per output, weighted by w.
  double numeric(size_t i, const Tensor& direction, const std::vector<Tensor>& w) const {
    const NoGrad off;
    double total = 0;
    for (int side : {1, -1}) {
      std::vector<Tensor> at;
      for (const Tensor& x : inputs) at.push_back(x.detach());
      at[i] = at[i] + direction * (side * options.eps);
      const auto ys = evaluate(at);
      for (size_t k = 0; k < ys.size(); ++k)
        if (w[k].defined()) total += side * (ys[k] * w[k]).sum().item<double>();
    }
    return total / (2 * options.eps);
  }

  bool close(double a, double n) const { return std::abs(a - n) <= options.atol + options.rtol * std::abs(n); }

  bool check_input(size_t i, const std::vector<Tensor>& ys) const {
    const int64_t n = inputs[i].numel();
    if (options.fast) {
      std::vector<Tensor> w;
      for (const Tensor& y : ys) w.push_back(randn(y.shape(), {f64, y.device()}));
      const Tensor direction = randn(inputs[i].shape(), {f64, inputs[i].device()});
      const Tensor g = analytic(i, ys, w);
      const double a = (g.detach() * direction).sum().item<double>(), m = numeric(i, direction, w);
      return close(a, m) || fail(describe(i, -1, 0, a, m));
    }
    for (size_t k = 0; k < ys.size(); ++k)
      for (int64_t j = 0; j < ys[k].numel(); ++j) {
        std::vector<Tensor> w(ys.size());
        w[k] = one_at(ys[k].shape(), j, ys[k].device());
        const std::vector<double> a = analytic(i, ys, w).detach().to(f64).to_vector<double>();
        for (int64_t e = 0; e < n; ++e) {
          const double m = numeric(i, one_at(inputs[i].shape(), e, inputs[i].device()), w);
          if (!close(a[size_t(e)], m)) return fail(describe(i, e, j, a[size_t(e)], m));
        }
      }
    return true;
  }

  static Tensor one_at(const Shape& shape, int64_t j, Device device) {
    Tensor v = zeros({shape.numel()}, {f64, device});
    v.select(0, j).fill_(1);
    return v.reshape(shape);
  }

  Tensor analytic(size_t i, const std::vector<Tensor>& ys, const std::vector<Tensor>& w) const {
    std::vector<Tensor> roots, cotangents;
    for (size_t k = 0; k < ys.size(); ++k)
      if (w[k].defined() && needs_grad(ys[k])) {
        roots.push_back(ys[k]);
        cotangents.push_back(w[k].to(ys[k].dtype()));
      }
    Tensor g;
    if (!roots.empty())
      g = grad(roots, std::vector{inputs[i]},
               {.grad_outputs = cotangents, .retain_graph = true, .allow_unused = true})[0];
    return g.defined() ? g : zeros_like(inputs[i]);
  }

  std::string describe(size_t i, int64_t element, int64_t output, double a, double m) const {
    return "input " + std::to_string(i) +
           (element < 0 ? " along a random direction" : " element " + std::to_string(element)) + ", output element " +
           std::to_string(output) + ": analytic " + std::to_string(a) + ", numeric " + std::to_string(m);
  }
};

void require_f64(const std::vector<Tensor>& inputs, const char* op) {
  if (inputs.empty()) throw Error(Error::Kind::argument, op, "needs at least one input");
  for (const Tensor& x : inputs)
    if (needs_grad(x.checked(op)) && x.dtype() != f64)
      throw Error(Error::Kind::dtype, op, "inputs that require grad must be f64, got " + std::string(name(x.dtype())));
}

}  // namespace

bool gradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  require_f64(inputs, "gradcheck");
  const EnableGrad on;
  const Checker checker{f, inputs, options, "gradcheck"};
  const std::vector<Tensor> ys = f(inputs);
  bool ok = true;
  for (size_t i = 0; i < inputs.size() && ok; ++i)
    if (needs_grad(inputs[i])) ok = checker.check_input(i, ys);
  // Recording must not change the result; on a GPU, sums by atomic additions may differ in their last bits.
  const std::vector<Tensor> plain = checker.evaluate(inputs);
  const double tolerance = inputs[0].device().is_cpu() ? 0 : 1e-13;
  for (size_t k = 0; k < ys.size() && ok; ++k)
    if (!allclose(plain[k], ys[k].detach().to(f64), {.rtol = tolerance, .atol = tolerance, .equal_nan = true}))
      ok = checker.fail("the result with recording differs from the result without");
  return ok;
}

bool gradgradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  require_f64(inputs, "gradgradcheck");
  const EnableGrad on;
  std::vector<Tensor> all = inputs;
  size_t outputs = 0;
  for (const Tensor& y : f(inputs)) {
    if (!needs_grad(y)) continue;
    all.push_back(randn(y.shape(), {f64, y.device()}).requires_grad_());
    ++outputs;
  }
  if (outputs == 0) return true;
  // The gradient as a function of the inputs and the cotangents.
  const TensorFunction first = [&](const std::vector<Tensor>& x) {
    const EnableGrad inner;
    std::vector<Tensor> at(x.begin(), x.end() - int64_t(outputs)), wanted, roots;
    std::vector<Tensor> cotangents(x.end() - int64_t(outputs), x.end());
    for (size_t i = 0; i < at.size(); ++i) {
      if (!needs_grad(inputs[i])) continue;
      if (!needs_grad(at[i])) at[i] = at[i].detach().requires_grad_();
      wanted.push_back(at[i]);
    }
    for (const Tensor& y : f(at))
      if (needs_grad(y)) roots.push_back(y);
    auto grads = grad(roots, wanted, {.grad_outputs = cotangents, .create_graph = true, .allow_unused = true});
    std::erase_if(grads, [](const Tensor& g) { return !g.defined(); });
    return grads;
  };
  return gradcheck_all(first, all, options);
}

}  // namespace volta
