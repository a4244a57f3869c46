// Custom rules, recomputation, derivatives as matrices and products, and their comparison with central differences.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "backend/backend.h"
#include "core/check.h"
#include "graph/record.h"

namespace volta {
namespace {

using Tensors = std::vector<Tensor>;
using OneToOne = std::function<Tensor(const Tensor&)>;

// A user's rule; it owns the name its node shows.
struct CustomNode final : Node {
  CustomNode(std::string label, size_t inputs, TensorFunction r)
      : Node("", inputs), text(std::move(label)), rule(std::move(r)) {
    name = text.c_str();
  }
  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    Tensors arrived(g.begin(), g.end());
    for (uint32_t i = 0; i < arrived.size(); ++i)
      if (const OutputMeta& m = meta(i); !arrived[i].defined()) arrived[i] = zeros(m.shape, {m.dtype, m.device});
    Tensors grads = rule(arrived);
    require(grads.size() == out.size(), ErrorKind::autograd, name, "its rule returned ", grads.size(),
            " gradients for ", out.size(), " inputs");
    for (size_t i = 0; i < out.size(); ++i)
      if (needs(i)) out[i] = std::move(grads[i]);
  }
  void release_saved() override { rule = nullptr; }
  std::string text;
  TensorFunction rule;
};

// Each way down from the value must pass an input: what is reached otherwise would get no gradient. Inside a checkpoint
// there is no graph to look at until it runs again.
void require_listed(const Tensor& value, const Tensors& inputs, const char* op) {
  if (!needs_grad(value)) return;
  std::unordered_set<Node*> seen;
  for (const Tensor& x : inputs)
    if (needs_grad(x)) seen.insert(x.impl().node.get());
  std::vector<Node*> next{value.impl().node.get()};
  while (!next.empty()) {
    Node& n = *next.back();
    next.pop_back();
    if (n.inside || !seen.insert(&n).second) continue;
    require(!n.is_leaf(), ErrorKind::autograd, op, "its value depends on a tensor of shape ", n.first.shape,
            " that requires grad and is not among its inputs; list it there, or detach() it");
    for (const Edge& e : n.edges)
      if (e.node) next.push_back(e.node.get());
  }
}

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

// The gradient of y by x as grad() gives it, or zeros when y does not depend on x.
Tensor grad_or_zeros(const Tensor& y, const Tensor& x, const Tensor& cotangent, GradOptions options = {}) {
  if (!needs_grad(y)) return zeros_like(x);
  options.grad_outputs = {cotangent};
  options.allow_unused = true;
  const Tensor g = grad(y, x, options);
  return g.defined() ? g : zeros_like(x);
}

}  // namespace

Tensor with_backward(const std::string& name, const Tensor& value, const Tensors& inputs,
                     std::function<Tensors(const Tensor&)> rule) {
  require_function(rule, name.c_str());
  return with_backward(name, Tensors{value}, inputs,
                       [one = std::move(rule)](const Tensors& g) { return one(g[0]); })[0];
}

Tensors with_backward(const std::string& name, const Tensors& values, const Tensors& inputs, TensorFunction rule) {
  const char* op = name.c_str();
  require(!values.empty(), ErrorKind::argument, op, "needs at least one result");
  require_function(rule, op);
  bool any = false;
  for (const Tensor& x : inputs) any |= grad_enabled() && needs_grad(x.checked(op));
  Tensors ys;
  for (const Tensor& value : values) {
    if (grad_enabled()) require_listed(value.checked(op), inputs, op);
    ys.push_back(value.checked(op).detach());
  }
  if (!any) return ys;
  // A change of the result in place must not reach what stands elsewhere in the graph.
  const auto shared = [](const Tensor& a) { return [&a](const Tensor& b) { return same_memory(a, b); }; };
  for (size_t i = 0; i < ys.size(); ++i)
    if (needs_grad(values[i]) || std::any_of(inputs.begin(), inputs.end(), shared(ys[i])) ||
        std::any_of(ys.begin(), ys.begin() + ptrdiff_t(i), shared(ys[i])))
      ys[i] = ys[i].clone();
  require(std::any_of(ys.begin(), ys.end(), [](const Tensor& y) { return is_floating(y.dtype()); }), ErrorKind::dtype,
          op, "a result with a gradient must be floating, got ", ys[0].dtype());
  auto node = IntrusivePtr<Node>::adopt(new CustomNode(name, inputs.size(), std::move(rule)));
  for (size_t i = 0; i < inputs.size(); ++i) connect(*node, i, inputs[i]);
  attach(node, ys);
  return ys;
}

namespace {
// In InferenceMode nothing is recorded, which would look like a function that does not depend on its input.
void require_differentiable(const OneToOne& f, const char* op) {
  require_function(f, op);
  require(!is_inference_mode(), ErrorKind::autograd, op, "cannot differentiate inside InferenceMode");
}
}  // namespace

Tensor jacobian(const OneToOne& f, const Tensor& x, bool create_graph) {
  require_differentiable(f, "jacobian");
  const EnableGrad on;
  const Tensor at = create_graph && needs_grad(x) ? x : leaf_copy(x.checked("jacobian")), y = f(at);
  const Shape shape = joined(y.shape(), x.shape());
  Tensors rows;
  for (int64_t i = 0; i < y.numel(); ++i)
    rows.push_back(grad_or_zeros(y, at, one_at(y.shape(), i, {y.dtype(), y.device()}),
                                 {.retain_graph = true, .create_graph = create_graph}));
  return rows.empty() ? zeros(shape, {x.dtype(), x.device()}) : stack(rows).reshape(shape);
}

Tensor hessian(const OneToOne& f, const Tensor& x) {
  require_differentiable(f, "hessian");
  const OneToOne gradient = [&](const Tensor& at) {
    const Tensor y = f(at);
    require(y.numel() == 1, ErrorKind::shape, "hessian", "needs a function with one output, got shape ", y);
    return grad_or_zeros(y, at, Tensor(), {.create_graph = true});
  };
  return jacobian(gradient, x).detach();
}

ValueProduct vjp(const OneToOne& f, const Tensor& x, const Tensor& v) {
  require_differentiable(f, "vjp");
  const EnableGrad on;
  const Tensor at = leaf_copy(x.checked("vjp")), y = f(at);
  require(!v.defined() || v.shape() == y.shape(), ErrorKind::shape, "vjp", "the cotangent has shape ", v,
          ", the result ", y);
  return {y.detach(), grad_or_zeros(y, at, v)};
}

// Reverse mode twice: u -> u^T J is linear in u, and pulling v back through it gives J v.
ValueProduct jvp(const OneToOne& f, const Tensor& x, const Tensor& v) {
  require_differentiable(f, "jvp");
  const EnableGrad on;
  require(v.checked("jvp").shape() == x.checked("jvp").shape(), ErrorKind::shape, "jvp", "the direction has shape ", v,
          ", the input ", x);
  const Tensor at = leaf_copy(x), y = f(at);
  if (!needs_grad(y)) return {y, zeros_like(y)};
  const Tensor u = zeros_like(y).requires_grad_();
  const Tensor pulled = grad_or_zeros(y, at, u, {.create_graph = true});
  return {y.detach(), grad_or_zeros(pulled, u, v)};
}

ValueProduct hvp(const OneToOne& f, const Tensor& x, const Tensor& v) {
  require_differentiable(f, "hvp");
  const EnableGrad on;
  require(v.checked("hvp").shape() == x.checked("hvp").shape(), ErrorKind::shape, "hvp", "the direction has shape ", v,
          ", the input ", x);
  const Tensor at = leaf_copy(x), y = f(at);
  require(y.numel() == 1, ErrorKind::shape, "hvp", "needs a function with one output, got shape ", y);
  if (!needs_grad(y)) return {y, zeros_like(at.detach())};
  const Tensor slope = grad_or_zeros(y, at, Tensor(), {.create_graph = true});
  if (!needs_grad(slope)) return {y.detach(), zeros_like(at.detach())};
  return {y.detach(), grad_or_zeros(slope, at, v)};
}

namespace {

// Every dot product of one of a with one of b, row by row.
std::vector<double> dots(const Tensors& a, const Tensors& b) {
  const auto rows = [](const Tensors& xs) { return stack(xs).reshape({int64_t(xs.size()), xs[0].numel()}); };
  return matmul(rows(a), rows(b).transpose(0, 1)).to_vector<double>();
}

struct Checker {
  const TensorFunction& f;
  const Tensors& inputs;
  const GradcheckOptions& options;
  bool recorded = false;  // f differentiates within, so that it has to be recorded

  template <class... Why> bool fail(const Why&... why) const {
    require(!options.raise, ErrorKind::autograd, "gradcheck", why...);
    return false;
  }

  // All results as one vector.
  Tensor evaluate(const Tensors& at) const {
    Tensors ys = f(at);
    for (Tensor& y : ys) y = y.to(f64).reshape({-1});
    return cat(ys, 0);
  }

  // (f(x + e d) - f(x - e d)) / 2e along direction d of input i.
  Tensor slope(size_t i, const Tensor& direction) const {
    const auto at = [&](double step) {
      Tensors x;
      for (const Tensor& input : inputs) x.push_back(input.detach());
      x[i] = x[i] + direction * step;
      if (!recorded) return evaluate(x);
      for (size_t j = 0; j < x.size(); ++j)
        if (needs_grad(inputs[j])) x[j] = leaf_copy(x[j]);
      const EnableGrad on;
      return evaluate(x).detach();
    };
    return unrecorded([&] { return (at(options.eps) - at(-options.eps)) / (2 * options.eps); });
  }

  // Every element, or one random direction.
  Tensors probes(const Tensor& x) const {
    if (options.fast) return {randn(x.shape(), {f64, x.device()})};
    Tensors units;
    for (int64_t j = 0; j < x.numel(); ++j) units.push_back(one_at(x.shape(), j, {f64, x.device()}));
    return units;
  }

  // Compared as matrices [output element, direction], in one go: a device is asked twice per element, not once per pair.
  bool check(size_t i, const Tensor& y) const {
    const Tensors directions = probes(inputs[i]), weights = probes(y);
    if (directions.empty() || weights.empty()) return true;
    Tensors slopes, rows;
    for (const Tensor& direction : directions) slopes.push_back(slope(i, direction));
    for (const Tensor& weight : weights) rows.push_back(grad_or_zeros(y, inputs[i], weight, {.retain_graph = true}));
    const std::vector<double> analytic = dots(rows, directions), numeric = dots(weights, slopes);
    for (size_t j = 0; j < weights.size(); ++j)
      for (size_t e = 0; e < directions.size(); ++e) {
        const double a = analytic[j * directions.size() + e], n = numeric[j * directions.size() + e];
        if (!(std::abs(a - n) <= options.atol + options.rtol * std::abs(n)))
          return fail("input ", i, options.fast ? " along random direction " : " element ", e, ", output element ", j,
                      ": analytic ", a, ", numeric ", n);
      }
    return true;
  }
};

void require_f64(const Tensors& inputs, const char* op) {
  require(!inputs.empty(), ErrorKind::argument, op, "needs at least one input");
  for (const Tensor& x : inputs)
    if (const DType dtype = x.checked(op).dtype(); needs_grad(x))
      require(dtype == f64, ErrorKind::dtype, op, "inputs that require grad must be f64, got ", dtype);
  require(std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return needs_grad(x); }), ErrorKind::autograd,
          op, "no input requires grad, so there is nothing to check");
}

}  // namespace

bool gradcheck_all(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  require_function(f, "gradcheck");
  require_f64(inputs, "gradcheck");
  const EnableGrad on;
  Checker checker{f, inputs, options};
  const Tensor y = checker.evaluate(inputs);
  const auto unrecorded_y = attempt([&] { return unrecorded([&] { return checker.evaluate(inputs); }); });
  if (!unrecorded_y && unrecorded_y.error().kind() != ErrorKind::autograd) throw unrecorded_y.error();
  checker.recorded = !unrecorded_y;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (needs_grad(inputs[i]) && !checker.check(i, y)) return false;
  if (!unrecorded_y) return true;
  const Tensor& plain = *unrecorded_y;
  // Recording must not change the result; sums by atomic additions may differ in their last bits.
  const double tolerance = backend(inputs[0].device()).repeats_bits() ? 0 : 1e-13;
  if (allclose(plain, y.detach(), {.rtol = tolerance, .atol = tolerance, .equal_nan = true})) return true;
  return checker.fail("the result with recording differs from the result without");
}

bool gradgradcheck_all(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  require_function(f, "gradgradcheck");
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
