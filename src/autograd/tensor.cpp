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

Tensor& Tensor::requires_grad_(bool on) & {
  TensorImpl& t = checked("requires_grad_").impl();
  require(!on || is_floating(t.dtype), Wrong::dtype, "requires_grad_",
          "only floating tensors can require grad, this one is ", t.dtype);
  if (on == needs_grad(*this)) return *this;
  require(on || t.node->is_leaf(), Wrong::autograd, "requires_grad_",
          "only a leaf can stop requiring grad; use detach()");
  t.view.reset();
  t.output = 0;
  t.node = on ? Ptr<Node>::adopt(new LeafNode) : nullptr;
  if (on) t.storage->rewritten.store(true, std::memory_order_relaxed);
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

namespace {

std::mutex hooks_mutex;  // of the hooks of all nodes; few have any
[[maybe_unused]] const bool fork_watched = fork_waits_for(hooks_mutex);

}  // namespace

Hooks hooks_of(const Node& n) {
  const std::lock_guard lock(hooks_mutex);
  return *n.hooks;
}

namespace {

// Where retain_grad keeps the gradient of x, if it was called; the lock is held.
Hook* kept_by(Node& n, uint32_t output) {
  Hooks* hooks = n.hooks.load(std::memory_order_acquire);
  if (!hooks) return nullptr;
  const auto found =
      std::find_if(hooks->begin(), hooks->end(), [&](const Hook& h) { return h.kept && h.output == output; });
  return found == hooks->end() ? nullptr : &*found;
}

Hooks& hooks_for(Node& n) {
  if (!n.hooks) n.hooks = new Hooks;
  return *n.hooks;
}

Tensor retained_gradient(const Tensor& x) {
  if (!needs_grad(x)) return {};
  const std::lock_guard lock(hooks_mutex);
  const Hook* hook = kept_by(*x.impl().node, x.impl().output);
  return hook ? *hook->kept : Tensor();
}

}  // namespace

void keep_gradients(const Node& n, std::span<const Tensor> outputs, bool keep_graph) {
  for (const Hook& h : hooks_of(n)) {
    if (!h.kept || !outputs[h.output].defined()) continue;
    const Tensor& g = outputs[h.output];
    // Summed outside of the lock, again if another thread added something meanwhile.
    for (bool done = false; !done;) {
      std::unique_lock lock(hooks_mutex);
      Tensor before = *h.kept;
      lock.unlock();
      Tensor sum = before.defined() ? before + g : keep_graph ? g : g.clone();
      lock.lock();
      done = h.kept->impl_pointer() == before.impl_pointer();
      if (done) std::swap(*h.kept, sum);
    }
  }
}

void move_kept(Node& from, uint32_t output, Node& to) {
  if (!from.hooks.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(hooks_mutex);
  Hook* hook = kept_by(from, output);
  if (!hook) return;
  hooks_for(to).push_back({hook->id, 0, {}, std::move(hook->kept)});
  Hooks& all = *from.hooks.load();
  all.erase(all.begin() + (hook - all.data()));
}

void Tensor::retain_grad() const {
  require(needs_grad(checked("retain_grad")), Wrong::autograd, "retain_grad", "the tensor does not have requires_grad");
  if (leaf_of(*this)) return;
  const std::lock_guard lock(hooks_mutex);
  Node& n = *impl_->node;
  if (!kept_by(n, impl_->output)) hooks_for(n).push_back({-1, impl_->output, {}, std::make_shared<Tensor>()});
}

bool Tensor::retains_grad() const {
  if (!needs_grad(checked("retains_grad")) || leaf_of(*this)) return false;
  const std::lock_guard lock(hooks_mutex);
  return kept_by(*impl_->node, impl_->output) != nullptr;
}

MaybeTensor Tensor::grad() const {
  LeafNode* leaf = leaf_of(checked("grad"));
  if (!leaf) return retained_gradient(*this);
  const std::lock_guard lock(leaf->mutex);
  return leaf->grad;
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
  if (leaf_of(checked("zero_grad"))) return set_grad(Tensor());
  if (!needs_grad(*this)) return;
  const std::lock_guard lock(hooks_mutex);
  if (Hook* hook = kept_by(*impl_->node, impl_->output)) *hook->kept = Tensor();
}

int Tensor::register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const {
  require_function(hook, "register_hook");
  require(needs_grad(checked("register_hook")), Wrong::autograd, "register_hook",
          "the tensor does not have requires_grad");
  const std::lock_guard lock(hooks_mutex);
  static int next = 0;
  hooks_for(*impl_->node).push_back({next, impl_->output, std::move(hook), {}});
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
