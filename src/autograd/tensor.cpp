// The autograd side of Tensor: leaves, gradients, hooks.
#include <volta/tensor.h>

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
LeafNode& require_leaf(const Tensor& x, const char* op) {
  if (LeafNode* leaf = leaf_of(x.checked(op))) return *leaf;
  throw Error(Error::Kind::autograd, op, "only a leaf that requires grad has a gradient");
}
}  // namespace

std::optional<Tensor> Tensor::grad() const {
  LeafNode* leaf = leaf_of(checked("grad"));
  if (!leaf) return std::nullopt;
  const std::lock_guard lock(leaf->mutex);
  return leaf->grad.defined() ? std::optional(leaf->grad) : std::nullopt;
}

void Tensor::set_grad(const Tensor& gradient) const {
  LeafNode& leaf = require_leaf(*this, "set_grad");
  if (gradient.defined() &&
      (gradient.shape() != shape() || gradient.dtype() != dtype() || gradient.device() != device()))
    throw Error(Error::Kind::shape, "set_grad",
                "a gradient of shape " + gradient.shape().str() + " does not fit a tensor of shape " + shape().str() +
                    ", or dtype or device differ");
  const std::lock_guard lock(leaf.mutex);
  leaf.grad = gradient;
}

void Tensor::zero_grad() const {
  if (LeafNode* leaf = leaf_of(checked("zero_grad"))) {
    const std::lock_guard lock(leaf->mutex);
    leaf->grad = {};
  }
}

int Tensor::register_hook(TensorHook hook) const {
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

}  // namespace volta
