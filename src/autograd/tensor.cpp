// The autograd side of Tensor: leaves, gradients, hooks, and the graph as text.
#include <volta/tensor.h>

#include <map>

#include <volta/ops.h>

#include "autograd/record.h"

namespace volta {

bool Tensor::requires_grad() const { return needs_grad(checked("requires_grad")); }

Tensor& Tensor::requires_grad_(bool on) {
  TensorImpl& t = checked("requires_grad_").impl();
  if (on && !is_floating(t.dtype))
    throw Error(Error::Kind::dtype, "requires_grad_",
                "only floating tensors can require grad, this one is " + std::string(name(t.dtype)));
  if (on == needs_grad(*this)) return *this;
  if (!on && !t.node->is_leaf())
    throw Error(Error::Kind::autograd, "requires_grad_", "only a leaf can stop requiring grad; use detach()");
  t.view.reset();
  t.output = 0;
  t.node = on ? Ptr<Node>::adopt(new LeafNode) : nullptr;
  if (on) t.node->first = {t.layout.shape, t.dtype, t.storage->device};
  return *this;
}

bool Tensor::is_leaf() const { return !needs_grad(checked("is_leaf")) || impl_->node->is_leaf(); }

namespace {

LeafNode* leaf_of(const Tensor& x) {
  return needs_grad(x) && x.impl().node->is_leaf() ? static_cast<LeafNode*>(x.impl().node.get()) : nullptr;
}

}  // namespace

void LeafNode::accumulate(Tensor gradient, bool keep_graph) {
  const std::lock_guard lock(mutex);
  if (!grad.defined()) {
    // Moved in when nobody else holds it; a shared or expanded one must not be changed later through this handle.
    const TensorImpl& t = gradient.impl();
    const bool own = t.refs.load() == 1 && t.storage->unique() && t.layout.is_dense();
    grad = own || keep_graph ? std::move(gradient) : gradient.clone();
  } else if (keep_graph) {
    grad = grad + gradient;
  } else {
    grad.add_(gradient);
  }
}

std::optional<Tensor> Tensor::grad() const {
  LeafNode* leaf = leaf_of(checked("grad"));
  if (!leaf) return std::nullopt;
  const std::lock_guard lock(leaf->mutex);
  return leaf->grad.defined() ? std::optional(leaf->grad) : std::nullopt;
}

void Tensor::set_grad(const Tensor& gradient) const {
  LeafNode* leaf = leaf_of(checked("set_grad"));
  if (!leaf) throw Error(Error::Kind::autograd, "set_grad", "only a leaf that requires grad has a gradient");
  if (gradient.defined() &&
      (gradient.shape() != shape() || gradient.dtype() != dtype() || gradient.device() != device()))
    throw Error(Error::Kind::shape, "set_grad",
                "a gradient of shape " + gradient.shape().str() + " does not fit a tensor of shape " + shape().str() +
                    ", or dtype or device differ");
  const std::lock_guard lock(leaf->mutex);
  leaf->grad = gradient;
}

void Tensor::zero_grad() const {
  if (leaf_of(checked("zero_grad"))) set_grad(Tensor());
}

int Tensor::register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const {
  if (!needs_grad(checked("register_hook")))
    throw Error(Error::Kind::autograd, "register_hook", "the tensor does not have requires_grad");
  Node& n = *impl_->node;
  if (!n.hooks) n.hooks = std::make_unique<Hooks>();
  const std::lock_guard lock(n.hooks->mutex);
  n.hooks->entries.push_back({n.hooks->next, impl_->output, std::move(hook)});
  return n.hooks->next++;
}

void Tensor::remove_hook(int hook) const {
  if (!needs_grad(checked("remove_hook")) || !impl_->node->hooks) return;
  Hooks& h = *impl_->node->hooks;
  const std::lock_guard lock(h.mutex);
  std::erase_if(h.entries, [&](const Hooks::Entry& e) { return e.id == hook; });
}

namespace {

// Every node below y with its number and the numbers of its inputs: text += line(node, number, inputs).
template <class Line> std::string list_graph(const Tensor& y, const char* op, Line line) {
  if (!needs_grad(y.checked(op)))
    throw Error(Error::Kind::autograd, op, "the tensor has no graph: it does not have requires_grad");
  std::vector<Node*> nodes, pending{y.impl().node.get()};
  std::map<Node*, size_t> number;
  while (!pending.empty()) {
    Node* n = pending.back();
    pending.pop_back();
    if (!number.emplace(n, nodes.size()).second) continue;
    nodes.push_back(n);
    for (const Edge& e : n->edges)
      if (e.node) pending.push_back(e.node.get());
  }
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string> inputs;
    for (const Edge& e : nodes[i]->edges)
      if (e.node) inputs.push_back(std::to_string(number.at(e.node.get())));
    const OutputMeta& meta = nodes[i]->first;
    const std::string label =
        std::string(nodes[i]->name) + " " + meta.shape.str() + " " + std::string(name(meta.dtype));
    text += line(std::to_string(i), label, nodes[i]->is_leaf(), inputs);
  }
  return text;
}

using Strings = std::vector<std::string>;

}  // namespace

std::string graph_text(const Tensor& y) {
  return list_graph(y, "graph_text", [](const std::string& id, std::string text, bool, const Strings& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? " <- " : ", ") + inputs[i];
    return id + ": " + text + "\n";
  });
}

std::string graph_dot(const Tensor& y) {
  const auto line = [](const std::string& id, const std::string& label, bool leaf, const Strings& inputs) {
    std::string text = "  n" + id + " [label=\"" + label + "\"" + (leaf ? ", shape=box" : "") + "];\n";
    for (const std::string& input : inputs) text.append("  n").append(id).append(" -> n").append(input).append(";\n");
    return text;
  };
  return "digraph {\n" + list_graph(y, "graph_dot", line) + "}\n";
}

}  // namespace volta
