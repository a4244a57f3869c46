// Custom rules, recomputation, and derivatives as matrices and products.
#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"

namespace volta {
namespace {

// A user's rule; it owns the name its node shows.
struct CustomNode final : Node {
  CustomNode(std::string label, size_t inputs, std::function<std::vector<Tensor>(const Tensor&)> r)
      : Node("", inputs), text(std::move(label)), rule(std::move(r)) {
    name = text.c_str();
  }
  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    std::vector<Tensor> grads = rule(g[0]);
    if (grads.size() != out.size())
      throw Error(Error::Kind::autograd, name,
                  "its rule returned " + std::to_string(grads.size()) + " gradients for " + std::to_string(out.size()) +
                      " inputs");
    for (size_t i = 0; i < out.size(); ++i)
      if (needs(i)) out[i] = std::move(grads[i]);
  }
  void release_saved() override { rule = nullptr; }
  std::string text;
  std::function<std::vector<Tensor>(const Tensor&)> rule;
};

Tensor leaf_copy(const Tensor& x) {
  Tensor y = x.detach();
  if (is_floating(y.dtype())) y.requires_grad_();
  return y;
}

}  // namespace

Tensor with_backward(const std::string& name, const Tensor& value, const std::vector<Tensor>& inputs,
                     std::function<std::vector<Tensor>(const Tensor&)> rule) {
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

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs) {
  Tensor y;
  const Generator::State before = default_generator().state();
  {
    const NoGrad off;
    y = f(inputs).detach();
  }
  std::vector<Saved> kept;
  for (const Tensor& x : inputs) kept.push_back(save(x));
  // The second run draws the same random numbers (dropout) and leaves the generator as it found it.
  return record("checkpoint", std::move(y), std::span(inputs), [f, kept, before](const Tensor& g, Gradients& d) {
    const bool again = grad_enabled();
    std::vector<Tensor> x, wanted;
    for (const Saved& s : kept) x.push_back(again ? d.take(s) : leaf_copy(d.take(s)));
    const Generator::State now = default_generator().state();
    default_generator().set_state(before);
    Tensor value;
    {
      const EnableGrad on;
      value = f(x);
    }
    default_generator().set_state(now);
    for (size_t i = 0; i < x.size(); ++i)
      if (d.needs(i)) wanted.push_back(x[i]);
    const auto grads = grad(std::vector{value}, wanted,
                            {.grad_outputs = {g}, .retain_graph = again, .create_graph = again, .allow_unused = true});
    for (size_t i = 0, k = 0; i < x.size(); ++i)
      if (d.needs(i)) d[i] = grads[k++];
  });
}

Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, bool create_graph) {
  const EnableGrad on;
  const Tensor at = create_graph && needs_grad(x) ? x : leaf_copy(x.checked("jacobian"));
  const Tensor y = f(at);
  Shape shape = y.shape();
  for (int64_t s : x.shape()) shape.push_back(s);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < y.numel(); ++i) {
    Tensor v = zeros({y.numel()}, {y.dtype(), y.device()});
    v.select(0, i).fill_(1);
    Tensor row;
    if (needs_grad(y))
      row = grad(std::vector{y}, std::vector{at},
                 {.grad_outputs = {v.reshape(y.shape())},
                  .retain_graph = true,
                  .create_graph = create_graph,
                  .allow_unused = true})[0];
    rows.push_back(row.defined() ? row : zeros_like(at));
  }
  if (rows.empty()) return zeros(shape, {x.dtype(), x.device()});
  return stack(rows).reshape(shape);
}

Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return jacobian(
             [&](const Tensor& at) {
               const Tensor y = f(at);
               if (y.numel() != 1)
                 throw Error(Error::Kind::shape, "hessian",
                             "needs a function with one output, got shape " + y.shape().str());
               const Tensor g = needs_grad(y) ? grad(std::vector{y}, std::vector{at},
                                                     {.create_graph = true, .allow_unused = true})[0]
                                              : Tensor();
               return g.defined() ? g : zeros_like(at);
             },
             x)
      .detach();
}

ValueProduct vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v) {
  const EnableGrad on;
  const Tensor at = leaf_copy(x.checked("vjp")), y = f(at);
  if (!needs_grad(y)) return {y, zeros_like(at)};
  const Tensor product = grad(std::vector{y}, std::vector{at}, {.grad_outputs = {v}, .allow_unused = true})[0];
  return {y.detach(), product.defined() ? product : zeros_like(at)};
}

// Reverse mode twice: the derivative of u -> u^T J along any u is J^T's transpose applied to v.
ValueProduct jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v) {
  const EnableGrad on;
  if (v.checked("jvp").shape() != x.checked("jvp").shape())
    throw Error(Error::Kind::shape, "jvp",
                "the direction has shape " + v.shape().str() + ", the input " + x.shape().str());
  const Tensor at = leaf_copy(x), y = f(at);
  if (!needs_grad(y)) return {y, zeros_like(y)};
  const Tensor u = zeros_like(y).requires_grad_();
  const Tensor ju =
      grad(std::vector{y}, std::vector{at}, {.grad_outputs = {u}, .create_graph = true, .allow_unused = true})[0];
  if (!ju.defined() || !needs_grad(ju)) return {y.detach(), zeros_like(y)};
  const Tensor product = grad(std::vector{ju}, std::vector{u}, {.grad_outputs = {v}, .allow_unused = true})[0];
  return {y.detach(), product.defined() ? product : zeros_like(y)};
}

}  // namespace volta
