// Lifetime of nodes, saved tensors, and how results are tied to their node.
#include "autograd/node.h"

#include <volta/ops.h>

#include "autograd/record.h"

namespace volta {

void retain(Node* n) noexcept { n->refs.fetch_add(1, std::memory_order_relaxed); }

// Destroying a node releases its inputs' nodes. They queue up here instead of recursing.
void release(Node* n) noexcept {
  if (n->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  thread_local constinit Node* dead = nullptr;
  thread_local constinit bool draining = false;
  n->next_dead = dead;
  dead = n;
  if (draining) return;
  draining = true;
  while (dead) {
    Node* next = dead;
    dead = next->next_dead;
    delete next;
  }
  draining = false;
}

Saved::Saved(const Tensor& x, bool output)
    : tensor_(output ? alias(x, layout(x)) : x), version_(x.version()), output_(x.impl().output), is_output_(output) {}

Tensor Saved::get(Node& node) const {
  if (!tensor_.defined() || node.released)
    throw Error(Error::Kind::autograd, node.name,
                "the graph was already consumed by a backward pass; pass {.retain_graph = true} to the first one");
  if (tensor_.version() != version_)
    throw Error(Error::Kind::autograd, node.name,
                "a tensor of shape " + tensor_.shape().str() +
                    " saved for its gradient was changed in place (version " + std::to_string(tensor_.version()) +
                    ", saved at " + std::to_string(version_) + ")");
  if (!is_output_ || !grad_enabled()) return tensor_;
  Tensor y = alias(tensor_, layout(tensor_));
  y.impl().node = Ptr<Node>::share(&node);
  y.impl().output = output_;
  return y;
}

void connect(Node& node, size_t input, const Tensor& x) {
  if (!needs_grad(x)) return;
  node.edges[input] = {x.impl().node, x.impl().output};
}

void attach(const Ptr<Node>& node, std::span<Tensor> outputs) {
  uint32_t i = 0;
  for (Tensor& y : outputs) {
    OutputMeta meta{y.shape(), y.dtype(), y.device()};
    if (i == 0) node->first = meta;
    else node->more_outputs.push_back(meta);
    if (is_floating(y.dtype())) {
      y.impl().node = node;
      y.impl().output = i;
    }
    ++i;
  }
}

void refuse_grad(const char* op, std::initializer_list<Tensor> inputs) {
  if (!grad_enabled()) return;
  for (const Tensor& x : inputs)
    if (needs_grad(x)) throw Error(Error::Kind::autograd, op, "has no derivative; detach() its inputs or use NoGrad");
}

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

}  // namespace volta
