// The autograd side of Tensor: leaves, gradients, hooks, and the graph as text.
#include <volta/tensor.h>

#include <map>

#include <volta/ops.h>

#include "autograd/record.h"
#include "core/check.h"

namespace volta {

bool Tensor::requires_grad() const { return needs_grad(checked("requires_grad")); }

Tensor& Tensor::requires_grad_(bool on) {
  TensorImpl& t = checked("requires_grad_").impl();
  require(!on || is_floating(t.dtype), Wrong::dtype, "requires_grad_",
          "only floating tensors can require grad, this one is ", t.dtype);
  if (on == needs_grad(*this)) return *this;
  require(on || t.node->is_leaf(), Wrong::autograd, "requires_grad_",
          "only a leaf can stop requiring grad; use detach()");
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
  require(leaf, Wrong::autograd, "set_grad", "only a leaf that requires grad has a gradient");
  const Tensor& g = gradient;
  require(!g.defined() || (g.shape() == shape() && g.dtype() == dtype() && g.device() == device()), Wrong::shape,
          "set_grad", "a gradient of shape ", g, " does not fit a tensor of shape ", *this,
          ", or dtype or device differ");
  const std::lock_guard lock(leaf->mutex);
  leaf->grad = gradient;
}

void Tensor::zero_grad() const {
  if (leaf_of(checked("zero_grad"))) set_grad(Tensor());
}

int Tensor::register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const {
  require(needs_grad(checked("register_hook")), Wrong::autograd, "register_hook",
          "the tensor does not have requires_grad");
  Hooks* hooks = impl_->node->hooks.load();
  if (!hooks) {
    // Of several threads that come first, one brings the list.
    auto fresh = std::make_unique<Hooks>();
    if (impl_->node->hooks.compare_exchange_strong(hooks, fresh.get())) hooks = fresh.release();
  }
  const std::lock_guard lock(hooks->mutex);
  hooks->entries.push_back({hooks->next, impl_->output, std::move(hook)});
  return hooks->next++;
}

void Tensor::remove_hook(int hook) const {
  Hooks* hooks = needs_grad(checked("remove_hook")) ? impl_->node->hooks.load() : nullptr;
  if (!hooks) return;
  const std::lock_guard lock(hooks->mutex);
  std::erase_if(hooks->entries, [&](const Hooks::Entry& e) { return e.id == hook; });
}

namespace {

using Strings = std::vector<std::string>;

// Calls f(number, label, whether a leaf, numbers of the inputs) for every node below y.
template <class F> void for_each_node(const Tensor& y, const char* op, F f) {
  require(needs_grad(y.checked(op)), Wrong::autograd, op, "the tensor has no graph: it does not have requires_grad");
  std::vector<Node*> nodes{y.impl().node.get()};
  std::map<Node*, size_t> number{{nodes[0], 0}};
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& n = *nodes[i];
    Strings inputs;
    for (const Edge& e : n.edges) {
      if (!e.node) continue;
      const auto [at, fresh] = number.emplace(e.node.get(), nodes.size());
      if (fresh) nodes.push_back(e.node.get());
      inputs.push_back(std::to_string(at->second));
    }
    f(std::to_string(i), n.name + (" " + n.first.shape.str() + " ") + text_of(n.first.dtype), n.is_leaf(), inputs);
  }
}

}  // namespace

std::string graph_text(const Tensor& y) {
  std::string text;
  for_each_node(y, "graph_text", [&](const std::string& id, const std::string& label, bool, const Strings& inputs) {
    text += id + ": " + label;
    for (size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? " <- " : ", ") + inputs[i];
    text += "\n";
  });
  return text;
}

std::string graph_dot(const Tensor& y) {
  std::string text = "digraph {\n";
  for_each_node(y, "graph_dot", [&](const std::string& id, const std::string& label, bool leaf, const Strings& inputs) {
    text += "  n" + id + " [label=\"" + label + "\"" + (leaf ? ", shape=box" : "") + "];\n";
    for (const std::string& input : inputs) text.append("  n").append(id).append(" -> n").append(input).append(";\n");
  });
  return text + "}\n";
}

}  // namespace volta
