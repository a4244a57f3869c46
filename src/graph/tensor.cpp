// The graph's side of Tensor: leaves, gradients, hooks.
#include <volta/tensor.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/check.h"
#include "core/fork.h"
#include "graph/record.h"

namespace volta {

bool Tensor::requires_grad() const { return needs_grad(checked("requires_grad")); }

Tensor& Tensor::requires_grad_(bool on) & {
  TensorImpl& t = checked("requires_grad_").impl();
  require(!on || is_floating(t.dtype), ErrorKind::dtype, "requires_grad_",
          "only floating tensors can require grad, this one is ", t.dtype);
  if (on == needs_grad(*this)) return *this;
  require(on || t.node->is_leaf(), ErrorKind::autograd, "requires_grad_",
          "only a leaf can stop requiring grad; use detach()");
  // A leaf keeps its node while it is off: its gradient, its hooks and the graphs that end there come back with it.
  if (!on) {
    t.node->off = true;
    return *this;
  }
  t.view.reset();
  t.output = 0;
  if (!t.node || !t.node->off) t.node = IntrusivePtr<Node>::adopt(new LeafNode);
  t.node->off = false;
  t.storage->rewritten.store(true, std::memory_order_relaxed);
  t.node->first = {t.layout.shape, t.dtype, t.storage->device};
  return *this;
}

Tensor& Tensor::detach_() & {
  TensorImpl& t = checked("detach_").impl();
  require(!t.view, ErrorKind::autograd, "detach_", "a view belongs to the graph of what it views; use detach()");
  t.node = nullptr;
  t.output = 0;
  return *this;
}

bool Tensor::is_leaf() const { return !needs_grad(checked("is_leaf")) || impl_->node->is_leaf(); }

namespace {

LeafNode* leaf_of(const Tensor& x) {
  return needs_grad(x) && x.impl().node->is_leaf() ? static_cast<LeafNode*>(x.impl().node.get()) : nullptr;
}

}  // namespace

namespace {

std::mutex hooks_mutex;  // of the hooks of all nodes; few have any
[[maybe_unused]] const bool fork_watched = fork_waits_for(hooks_mutex);

// Whose a hook is: a tensor changed in place since has another node.
std::unordered_map<int, Node*>& hooked() {
  static auto& nodes = *new std::unordered_map<int, Node*>;
  return nodes;
}

}  // namespace

void end_hooks(Node& n) {
  const std::unique_ptr<Hooks> ended(n.hooks.load());  // outside the lock: what a hook holds may have hooks of its own
  const std::lock_guard lock(hooks_mutex);
  for (const Hook& h : *ended) hooked().erase(h.id);
}

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

Tensor kept_gradient(const Hook& hook) {
  const std::lock_guard lock(hooks_mutex);
  return *hook.kept;
}

bool replace_kept(const Hook& hook, const Tensor& before, Tensor now) {
  const std::lock_guard lock(hooks_mutex);
  const bool same = hook.kept->impl_pointer() == before.impl_pointer();
  if (same) std::swap(*hook.kept, now);
  return same;
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
  require(needs_grad(checked("retain_grad")), ErrorKind::autograd, "retain_grad",
          "the tensor does not have requires_grad");
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
  require(leaf, ErrorKind::autograd, "set_grad", "only a leaf that requires grad has a gradient");
  const Tensor& g = gradient;
  require(!g.defined() || (g.shape() == shape() && g.dtype() == dtype() && g.device() == device()), ErrorKind::shape,
          "set_grad", "a gradient of shape ", g, " does not fit a tensor of shape ", *this,
          ", or dtype or device differ");
  // The next backward pass may add to it in place. Destroyed outside the lock: the owner of its memory may take locks.
  Tensor before = g.defined() && layout(g).overlaps_itself() ? unrecorded([&] { return g.clone(); }) : g;
  const std::lock_guard lock(leaf->mutex);
  std::swap(leaf->grad, before);
}

void Tensor::zero_grad() const {
  Tensor before;  // likewise
  const IntrusivePtr<Node>& node = checked("zero_grad").impl().node;
  if (node && node->is_leaf()) {  // also one that is off now
    auto& leaf = static_cast<LeafNode&>(*node);
    const std::lock_guard lock(leaf.mutex);
    std::swap(leaf.grad, before);
    return;
  }
  if (!needs_grad(*this)) return;
  const std::lock_guard lock(hooks_mutex);
  if (Hook* hook = kept_by(*impl_->node, impl_->output)) std::swap(*hook->kept, before);
}

int Tensor::register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const {
  require_function(hook, "register_hook");
  require(needs_grad(checked("register_hook")), ErrorKind::autograd, "register_hook",
          "the tensor does not have requires_grad");
  const std::lock_guard lock(hooks_mutex);
  static int next = 0;
  hooks_for(*impl_->node).push_back({next, impl_->output, std::move(hook), {}});
  hooked()[next] = impl_->node.get();
  return next++;
}

void Tensor::remove_hook(int hook) const {
  checked("remove_hook");
  Hooks removed;  // ends outside the lock
  const std::lock_guard lock(hooks_mutex);
  const auto found = hooked().find(hook);
  if (found == hooked().end()) return;
  Hooks& all = *found->second->hooks.load();
  hooked().erase(found);
  const auto gone = std::stable_partition(all.begin(), all.end(), [&](const Hook& h) { return h.id != hook; });
  removed.assign(std::move_iterator(gone), std::move_iterator(all.end()));
  all.erase(gone, all.end());
}

}  // namespace volta
