// record: attaches a backward rule to an op's result. The one way an op outside the pointwise list becomes differentiable.
#pragma once
#include <initializer_list>
#include <utility>

#include <volta/autograd.h>

#include "autograd/modes.h"
#include "autograd/node.h"
#include "core/impl.h"

namespace volta {

// A view whose base was changed through another view gets its node anew first.
bool refresh_view(TensorImpl& view);
inline bool needs_grad(const Tensor& x) {
  if (!x.defined()) return false;
  TensorImpl& t = x.impl();
  return t.view ? refresh_view(t) : bool(t.node);
}
template <class... X> bool any_needs_grad(const X&... x) { return grad_enabled() && (needs_grad(x) || ...); }

// A tensor kept for the backward pass; taking it out checks that nobody changed it in between.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x, bool output = false);
  // `node` is the one being differentiated: a saved output is attached to it again.
  Tensor get(Node& node) const;
  explicit operator bool() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint32_t version_ = 0, output_ = 0;
  bool is_output_ = false;
};
inline Saved save(const Tensor& x, bool when = true) { return when && x.defined() ? Saved(x) : Saved(); }
inline Saved save_output(const Tensor& y) { return Saved(y, true); }

// What a rule is given: which inputs want a gradient, and where to put it.
class Gradients {
 public:
  Gradients(Node& node, std::span<Tensor> out) : node_(node), out_(out) {}
  bool needs(size_t input) const { return node_.needs(input); }
  Tensor& operator[](size_t input) { return out_[input]; }
  size_t size() const { return out_.size(); }
  Tensor take(const Saved& s) const { return s.get(node_); }
  Node& node() const { return node_; }

 private:
  Node& node_;
  std::span<Tensor> out_;
};

template <class Rule> struct RuleNode final : Node {
  RuleNode(const char* op, size_t inputs, Rule&& r) : Node(op, inputs), rule(std::move(r)) {}
  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    Gradients d(*this, out);
    if constexpr (std::is_invocable_v<Rule&, const Tensor&, Gradients&>) (*rule)(g[0], d);
    else (*rule)(g, d);
  }
  void release_saved() override { rule.reset(); }
  std::optional<Rule> rule;
};

void connect(Node& node, size_t input, const Tensor& x);
void attach(const Ptr<Node>& node, std::span<Tensor> outputs);

// y = op(inputs) with rule(g, d): d[i] is the gradient of input i, asked for when d.needs(i).
template <class Rule> Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, Rule rule) {
  return record(op, std::move(y), std::span(inputs.begin(), inputs.size()), std::move(rule));
}
template <class Rule> Tensor record(const char* op, Tensor y, std::span<const Tensor> inputs, Rule rule) {
  record_all(op, std::span(&y, 1), inputs, std::move(rule));
  return y;
}
// Several outputs: rule(span of gradients, d).
template <class Rule>
void record_all(const char* op, std::span<Tensor> outputs, std::span<const Tensor> inputs, Rule rule) {
  bool any = false;
  if (grad_enabled())
    for (const Tensor& x : inputs) any |= needs_grad(x);
  if (!any) return;
  auto node = Ptr<Node>::adopt(new RuleNode<Rule>(op, inputs.size(), std::move(rule)));
  for (size_t i = 0; i < inputs.size(); ++i) connect(*node, i, inputs[i]);
  attach(node, outputs);
}

// For ops that have no derivative: throws when one would be needed.
void refuse_grad(const char* op, std::initializer_list<Tensor> inputs);

}  // namespace volta
