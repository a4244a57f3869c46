// The autograd side of Tensor: leaves, gradients, hooks, and the graph as text.
#include <volta/tensor.h>

#include <algorithm>
#include <map>
#include <sstream>

#include <volta/ops.h>

#include "autograd/record.h"
#include "core/check.h"
#include "core/fork.h"

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

namespace {

std::mutex hooks_mutex;  // of the hooks of all nodes; few have any
[[maybe_unused]] const bool fork_watched = fork_waits_for(hooks_mutex);

}  // namespace

Hooks hooks_of(const Node& n) {
  const std::lock_guard lock(hooks_mutex);
  return *n.hooks;
}

int Tensor::register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const {
  require(needs_grad(checked("register_hook")), Wrong::autograd, "register_hook",
          "the tensor does not have requires_grad");
  const std::lock_guard lock(hooks_mutex);
  static int next = 0;
  Node& n = *impl_->node;
  if (!n.hooks) n.hooks = new Hooks;
  n.hooks.load()->push_back({next, impl_->output, std::move(hook)});
  return next++;
}

void Tensor::remove_hook(int hook) const {
  if (!needs_grad(checked("remove_hook")) || !impl_->node->hooks) return;
  Hooks removed;  // ends outside the lock: what a hook holds may have hooks of its own
  const std::lock_guard lock(hooks_mutex);
  Hooks& all = *impl_->node->hooks;
  const auto gone = std::stable_partition(all.begin(), all.end(), [&](const Hook& h) { return h.id != hook; });
  removed.assign(std::move_iterator(gone), std::move_iterator(all.end()));
  all.erase(gone, all.end());
}

namespace {

// Every node below y with the numbers of its inputs, as lines of text or as a graph of the dot language.
std::string graph(const Tensor& y, const char* op, bool dot) {
  require(needs_grad(y.checked(op)), Wrong::autograd, op, "the tensor has no graph: it does not have requires_grad");
  std::vector<Node*> nodes{y.impl().node.get()};
  std::map<Node*, size_t> number{{nodes[0], 0}};
  std::ostringstream text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& n = *nodes[i];
    text << (dot ? "  n" : "") << i << (dot ? " [label=\"" : ": ") << n.name << ' ' << n.first.shape.str() << ' '
         << text_of(n.first.dtype);
    if (dot) text << (n.is_leaf() ? "\", shape=box];\n" : "\"];\n");
    const char* between = " <- ";
    for (const Edge& e : n.edges) {
      if (!e.node) continue;
      const auto [at, fresh] = number.emplace(e.node.get(), nodes.size());
      if (fresh) nodes.push_back(e.node.get());
      if (dot) text << "  n" << i << " -> n" << at->second << ";\n";
      else text << std::exchange(between, ", ") << at->second;
    }
    if (!dot) text << '\n';
  }
  return text.str();
}

}  // namespace

std::string graph_text(const Tensor& y) { return graph(y, "graph_text", false); }
std::string graph_dot(const Tensor& y) { return "digraph {\n" + graph(y, "graph_dot", true) + "}\n"; }

}  // namespace volta
