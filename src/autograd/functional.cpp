// Custom rules, recomputation, derivatives as matrices and products, and their comparison with central differences.
#include <cmath>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"

namespace volta {
namespace {

using Tensors = std::vector<Tensor>;
using OneToOne = std::function<Tensor(const Tensor&)>;

// A user's rule; it owns the name its node shows.
struct CustomNode final : Node {
  CustomNode(std::string label, size_t inputs, std::function<Tensors(const Tensor&)> r)
      : Node("", inputs), text(std::move(label)), rule(std::move(r)) {
    name = text.c_str();
  }
  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    Tensors grads = rule(g[0]);
    if (grads.size() != out.size())
      throw Error(Error::Kind::autograd, name,
                  "its rule returned " + std::to_string(grads.size()) + " gradients for " + std::to_string(out.size()) +
                      " inputs");
    for (size_t i = 0; i < out.size(); ++i)
      if (needs(i)) out[i] = std::move(grads[i]);
  }
  void release_saved() override { rule = nullptr; }
  std::string text;
  std::function<Tensors(const Tensor&)> rule;
};

Tensor leaf_copy(const Tensor& x) {
  Tensor y = x.detach();
  if (is_floating(y.dtype())) y.requires_grad_();
  return y;
}

Tensor one_at(const Shape& shape, int64_t element, const Options& options) {
  Tensor v = zeros({shape.numel()}, options);
  v.select(0, element).fill_(1);
  return v.reshape(shape);
}

// The gradient of ys by x as grad() gives it, or zeros when none of them depends on x.
Tensor grad_or_zeros(const Tensors& ys, const Tensor& x, GradOptions options) {
  Tensors roots, cotangents;
  for (size_t k = 0; k < ys.size(); ++k) {
    if (!needs_grad(ys[k])) continue;
    roots.push_back(ys[k]);
    cotangents.push_back(options.grad_outputs[k]);
  }
  options.grad_outputs = cotangents;
  options.allow_unused = true;
  const Tensor g = roots.empty() ? Tensor() : grad(roots, Tensors{x}, options)[0];
  return g.defined() ? g : zeros_like(x);
}

}  // namespace

Tensor with_backward(const std::string& name, const Tensor& value, const Tensors& inputs,
                     std::function<Tensors(const Tensor&)> rule) {
  Tensor y = value.checked(name.c_str()).detach();
  bool any = false;
  for (const Tensor& x : inputs) any |= grad_enabled() && needs_grad(x.checked(name.c_str()));
  if (!any) return y;
  if (!is_floating(y.dtype()))
    throw Error(Error::Kind::dtype, name,
                "a result with a gradient must be floating, got " + std::string(volta::name(y.dtype())));
  auto node = Ptr<Node>::adopt(new CustomNode(name, inputs.size(), std::move(rule)));
  for (size_t i = 0; i < inputs.size(); ++i) connect(*node, i, inputs[i]);
  attach(node, std::span(&y, 1));
  return y;
}

Tensor checkpoint(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  const Generator::State before = default_generator().state();
  const auto run = [f](const Tensors& x, bool recording) {
    const GradGuard mode(recording);
    return f(x);
  };
  const Tensor y = run(inputs, false).detach();
  std::vector<Saved> kept;
  for (const Tensor& x : inputs) kept.push_back(save(x));
  // The second run draws the same random numbers (dropout) and leaves the generator as it found it.
  return record("checkpoint", y, std::span(inputs), [run, kept, before](const Tensor& g, Gradients& d) {
    const bool again = grad_enabled();
    Tensors x, wanted;
    for (const Saved& s : kept) x.push_back(again ? d.take(s) : leaf_copy(d.take(s)));
    const Generator::State now = default_generator().state();
    default_generator().set_state(before);
    const Tensor value = run(x, true);
    default_generator().set_state(now);
    for (size_t i = 0; i < x.size(); ++i)
      if (d.needs(i)) wanted.push_back(x[i]);
    const auto grads = grad(Tensors{value}, wanted,
                            {.grad_outputs = {g}, .retain_graph = again, .create_graph = again, .allow_unused = true});
    for (size_t i = 0, k = 0; i < x.size(); ++i)
      if (d.needs(i)) d[i] = grads[k++];
  });
}

Tensor jacobian(const OneToOne& f, const Tensor& x, bool create_graph) {
  const EnableGrad on;
  const Tensor at = create_graph && needs_grad(x) ? x : leaf_copy(x.checked("jacobian")), y = f(at);
  Shape shape = y.shape();
  for (int64_t s : x.shape()) shape.push_back(s);
  Tensors rows;
  for (int64_t i = 0; i < y.numel(); ++i)
    rows.push_back(grad_or_zeros({y}, at,
                                 {.grad_outputs = {one_at(y.shape(), i, {y.dtype(), y.device()})},
                                  .retain_graph = true,
                                  .create_graph = create_graph}));
  return rows.empty() ? zeros(shape, {x.dtype(), x.device()}) : stack(rows).reshape(shape);
}

Tensor hessian(const OneToOne& f, const Tensor& x) {
  const OneToOne gradient = [&](const Tensor& at) {
    const Tensor y = f(at);
    if (y.numel() != 1)
      throw Error(Error::Kind::shape, "hessian", "needs a function with one output, got shape " + y.shape().str());
    return grad_or_zeros({y}, at, {.grad_outputs = {Tensor()}, .create_graph = true});
  };
  return jacobian(gradient, x).detach();
}

ValueProduct vjp(const OneToOne& f, const Tensor& x, const Tensor& v) {
  const EnableGrad on;
  const Tensor at = leaf_copy(x.checked("vjp")), y = f(at);
  return {y.detach(), grad_or_zeros({y}, at, {.grad_outputs = {v}})};
}

// Reverse mode twice: u -> u^T J is linear in u, and pulling v back through it gives J v.
ValueProduct jvp(const OneToOne& f, const Tensor& x, const Tensor& v) {
  const EnableGrad on;
  if (v.checked("jvp").shape() != x.checked("jvp").shape())
    throw Error(Error::Kind::shape, "jvp",
                "the direction has shape " + v.shape().str() + ", the input " + x.shape().str());
  const Tensor at = leaf_copy(x), y = f(at);
  if (!needs_grad(y)) return {y, zeros_like(y)};
  const Tensor u = zeros_like(y).requires_grad_();
  const Tensor pulled = grad_or_zeros({y}, at, {.grad_outputs = {u}, .create_graph = true});
  return {y.detach(), grad_or_zeros({pulled}, u, {.grad_outputs = {v}})};
}

namespace {

struct Checker {
  const TensorFunction& f;
  const Tensors& inputs;
  const GradcheckOptions& options;

  bool fail(const std::string& why) const {
    if (options.raise) throw Error(Error::Kind::autograd, "gradcheck", why);
    return false;
  }

  Tensors evaluate(const Tensors& at) const {
    const NoGrad off;
    Tensors ys = f(at);
    for (Tensor& y : ys) y = y.detach().to(f64);
    return ys;
  }

  // (f(x + e d) - f(x - e d)) / 2e along direction d of input i, the outputs weighted by w and summed.
  double numeric(size_t i, const Tensor& direction, const Tensors& w) const {
    const NoGrad off;
    double total = 0;
    for (int side : {1, -1}) {
      Tensors at;
      for (const Tensor& x : inputs) at.push_back(x.detach());
      at[i] = at[i] + direction * (side * options.eps);
      const Tensors ys = evaluate(at);
      for (size_t k = 0; k < ys.size(); ++k)
        if (w[k].defined()) total += side * (ys[k] * w[k]).sum().item<double>();
    }
    return total / (2 * options.eps);
  }

  bool compare(size_t i, const std::string& where, double analytic, double numeric) const {
    return std::abs(analytic - numeric) <= options.atol + options.rtol * std::abs(numeric) ||
           fail("input " + std::to_string(i) + where + ": analytic " + std::to_string(analytic) + ", numeric " +
                std::to_string(numeric));
  }

  bool check_direction(size_t i, const Tensors& ys) const {
    Tensors w;
    for (const Tensor& y : ys) w.push_back(randn(y.shape(), {f64, y.device()}));
    const Tensor direction = randn(inputs[i].shape(), {f64, inputs[i].device()});
    const Tensor g = grad_or_zeros(ys, inputs[i], {.grad_outputs = w, .retain_graph = true});
    return compare(i, " along a random direction", (g * direction).sum().item<double>(), numeric(i, direction, w));
  }

  bool check_elements(size_t i, const Tensors& ys) const {
    for (size_t k = 0; k < ys.size(); ++k)
      for (int64_t j = 0; j < ys[k].numel(); ++j) {
        Tensors w(ys.size());
        w[k] = one_at(ys[k].shape(), j, {f64, ys[k].device()});
        const Tensor g = grad_or_zeros({ys[k]}, inputs[i], {.grad_outputs = {w[k]}, .retain_graph = true});
        const auto analytic = g.to_vector<double>();
        for (int64_t e = 0; e < inputs[i].numel(); ++e) {
          const std::string where = " element " + std::to_string(e) + ", output element " + std::to_string(j);
          const Tensor direction = one_at(inputs[i].shape(), e, {f64, inputs[i].device()});
          if (!compare(i, where, analytic[size_t(e)], numeric(i, direction, w))) return false;
        }
      }
    return true;
  }
};

void require_f64(const Tensors& inputs, const char* op) {
  if (inputs.empty()) throw Error(Error::Kind::argument, op, "needs at least one input");
  for (const Tensor& x : inputs)
    if (needs_grad(x.checked(op)) && x.dtype() != f64)
      throw Error(Error::Kind::dtype, op, "inputs that require grad must be f64, got " + std::string(name(x.dtype())));
}

}  // namespace

bool gradcheck_all(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  require_f64(inputs, "gradcheck");
  const EnableGrad on;
  const Checker checker{f, inputs, options};
  const Tensors ys = f(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (needs_grad(inputs[i]) && !(options.fast ? checker.check_direction(i, ys) : checker.check_elements(i, ys)))
      return false;
  // Recording must not change the result; on a GPU, sums by atomic additions may differ in their last bits.
  const Tensors plain = checker.evaluate(inputs);
  const double tolerance = inputs[0].device().is_cpu() ? 0 : 1e-13;
  for (size_t k = 0; k < ys.size(); ++k)
    if (!allclose(plain[k], ys[k].detach().to(f64), {.rtol = tolerance, .atol = tolerance, .equal_nan = true}))
      return checker.fail("the result with recording differs from the result without");
  return true;
}

bool gradgradcheck_all(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  require_f64(inputs, "gradgradcheck");
  const EnableGrad on;
  Tensors all = inputs;
  for (const Tensor& y : f(inputs))
    if (needs_grad(y)) all.push_back(randn(y.shape(), {f64, y.device()}).requires_grad_());
  if (all.size() == inputs.size()) return true;
  // The gradient as a function of the inputs and the cotangents.
  const TensorFunction first = [&](const Tensors& x) {
    const EnableGrad inner;
    const auto middle = x.begin() + int64_t(inputs.size());
    Tensors at(x.begin(), middle), wanted, roots;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!needs_grad(inputs[i])) continue;
      if (!needs_grad(at[i])) at[i] = leaf_copy(at[i]);
      wanted.push_back(at[i]);
    }
    for (const Tensor& y : f(at))
      if (needs_grad(y)) roots.push_back(y);
    Tensors grads =
        grad(roots, wanted, {.grad_outputs = {middle, x.end()}, .create_graph = true, .allow_unused = true});
    std::erase_if(grads, [](const Tensor& g) { return !g.defined(); });
    return grads;
  };
  return gradcheck_all(first, all, options);
}

}  // namespace volta
