// The backward pass: an iterative walk over the graph in topological order, returning or accumulating gradients.
#include <unordered_map>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/modes.h"
#include "autograd/record.h"
#include "ops/reduce.h"

namespace volta {
namespace {

// Pointer to position, open addressing: the walk looks up every edge once.
class NodeTable {
 public:
  NodeTable() : slots_(64) {}
  // Position of the node, or -1 after inserting it with `fresh`.
  int64_t find_or_insert(Node* n, int64_t fresh) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& s = place(n);
    if (s.node) return s.position;
    s = {n, fresh};
    ++count_;
    return -1;
  }
  int64_t find(Node* n) const {
    const Slot& s = const_cast<NodeTable*>(this)->place(n);
    return s.node ? s.position : -1;
  }
  void set(Node* n, int64_t position) { place(n).position = position; }

 private:
  struct Slot {
    Node* node = nullptr;
    int64_t position = 0;
  };
  Slot& place(Node* n) {
    size_t i = (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15ull >> 20;
    for (;; ++i) {
      Slot& s = slots_[i & (slots_.size() - 1)];
      if (!s.node || s.node == n) return s;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.node) place(s.node) = s;
  }
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

struct Visit {
  Node* node;
  bool needed = false;  // leads to something whose gradient is asked for
  Tensor grad;          // of output 0
  std::vector<Tensor> more;
};

struct Target {
  Node* node;
  uint32_t output;
};

class Walker {
 public:
  Walker(bool retain, bool create) : retain_(retain), create_(create) {}

  // Inputs before users; roots last.
  void plan(std::span<const Tensor> roots, std::span<const Target> targets, bool to_leaves) {
    for (const Tensor& y : roots) visit(y.impl().node.get(), targets, to_leaves);
  }

  void seed(const Tensor& y, Tensor g) { add(at(y.impl().node.get()), y.impl().output, std::move(g)); }

  // Calls leaf(node, grad) for leaves and keep(node, output, grad) for what is asked for.
  template <class Leaf, class Keep> void run(Leaf leaf, Keep keep) {
    const GradGuard mode(create_);
    for (size_t i = order_.size(); i-- > 0;) {
      Visit& v = order_[i];
      if (!v.needed) continue;
      std::vector<Tensor> outputs(v.node->output_count());
      outputs[0] = std::move(v.grad);
      for (size_t k = 0; k < v.more.size(); ++k) outputs[k + 1] = std::move(v.more[k]);
      bool any = false;
      for (const Tensor& g : outputs) any |= g.defined();
      if (!any) continue;
      run_hooks(*v.node, outputs);
      keep(v.node, outputs);
      if (v.node->is_leaf()) leaf(static_cast<LeafNode&>(*v.node), std::move(outputs[0]));
      else step(*v.node, outputs);
    }
  }

 private:
  Visit& at(Node* n) { return order_[size_t(table_.find(n))]; }

  void visit(Node* root, std::span<const Target> targets, bool to_leaves) {
    if (!root || table_.find_or_insert(root, -2) != -1) return;
    std::vector<std::pair<Node*, size_t>> stack{{root, 0}};
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next < n->edges.size()) {
        Node* child = n->edges[next++].node.get();
        if (child && table_.find_or_insert(child, -2) == -1) stack.emplace_back(child, 0);
        continue;
      }
      Visit v{n, n->is_leaf() && to_leaves, {}, {}};
      for (const Target& t : targets) v.needed |= t.node == n;
      for (const Edge& e : n->edges)
        if (e.node) v.needed |= order_[size_t(table_.find(e.node.get()))].needed;
      table_.set(n, int64_t(order_.size()));
      order_.push_back(std::move(v));
      stack.pop_back();
    }
  }

  static void accumulate(Tensor& into, Tensor g) { into = into.defined() ? into + g : std::move(g); }

  static void add(Visit& v, uint32_t output, Tensor g) {
    if (output == 0) return accumulate(v.grad, std::move(g));
    if (v.more.size() < output) v.more.resize(output);
    accumulate(v.more[output - 1], std::move(g));
  }

  static void run_hooks(Node& n, std::vector<Tensor>& outputs) {
    if (!n.hooks) return;
    std::vector<Hooks::Entry> entries;
    {
      const std::lock_guard lock(n.hooks->mutex);
      entries = n.hooks->entries;
    }
    for (const auto& h : entries)
      if (outputs[h.output].defined())
        if (auto replaced = h.hook(outputs[h.output])) outputs[h.output] = fit(*replaced, n.meta(h.output), "hook");
  }

  // Reduces broadcast axes and returns to the dtype of the tensor the gradient belongs to.
  static Tensor fit(Tensor g, const OutputMeta& meta, const char* op) {
    if (g.shape() != meta.shape) g = sum_to(g, meta.shape, op);
    if (g.dtype() != meta.dtype) g = g.to(meta.dtype);
    return g;
  }

  void step(Node& n, std::vector<Tensor>& outputs) {
    if (n.released)
      throw Error(Error::Kind::autograd, n.name,
                  "the graph was already consumed by a backward pass; pass {.retain_graph = true} to the first one");
    std::vector<Tensor> inputs(n.edges.size());
    n.backward(outputs, inputs);
    if (!retain_) {
      n.release_saved();
      n.released = true;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge& e = n.edges[i];
      if (!e.node || !inputs[i].defined()) continue;
      Visit& v = at(e.node.get());
      if (!v.needed) continue;
      if (anomaly_enabled()) check_finite(n, inputs[i]);
      add(v, e.output, fit(std::move(inputs[i]), e.node->meta(e.output), n.name));
    }
  }

  static void check_finite(const Node& n, const Tensor& g) {
    const NoGrad off;
    if (is_floating(g.dtype()) && isnan(g).any().item<bool>())
      throw Error(Error::Kind::autograd, n.name, "its backward rule made a NaN");
  }

  bool retain_, create_;
  NodeTable table_;
  std::vector<Visit> order_;
};

Tensor cotangent(const Tensor& y, const Tensor* given, const char* op) {
  if (!given || !given->defined()) {
    if (y.numel() != 1)
      throw Error(Error::Kind::shape, op,
                  "a result of shape " + y.shape().str() + " needs a cotangent; only one element does not");
    return ones(y.shape(), {y.dtype(), y.device()});
  }
  if (given->shape() != y.shape())
    throw Error(Error::Kind::shape, op,
                "the cotangent has shape " + given->shape().str() + ", the result " + y.shape().str());
  common_device(y, *given, op);
  return given->dtype() == y.dtype() ? *given : given->to(y.dtype());
}

void require_graph(const Tensor& y, const char* op) {
  if (!needs_grad(y.checked(op)))
    throw Error(Error::Kind::autograd, op, "the result does not depend on anything that has requires_grad");
}

}  // namespace

std::vector<Tensor> grad(const std::vector<Tensor>& ys, const std::vector<Tensor>& xs, const GradOptions& options) {
  if (ys.empty() || xs.empty()) throw Error(Error::Kind::argument, "grad", "needs at least one result and one input");
  if (!options.grad_outputs.empty() && options.grad_outputs.size() != ys.size())
    throw Error(Error::Kind::argument, "grad", "needs one grad_output per result");
  std::vector<Target> targets;
  for (const Tensor& x : xs) {
    if (!needs_grad(x.checked("grad")))
      throw Error(Error::Kind::autograd, "grad",
                  "an input of shape " + x.shape().str() + " does not have requires_grad set");
    targets.push_back({x.impl().node.get(), x.impl().output});
  }
  for (const Tensor& y : ys) require_graph(y, "grad");
  Walker walker(options.retain_graph.value_or(options.create_graph), options.create_graph);
  walker.plan(ys, targets, false);
  for (size_t i = 0; i < ys.size(); ++i)
    walker.seed(ys[i], cotangent(ys[i], i < options.grad_outputs.size() ? &options.grad_outputs[i] : nullptr, "grad"));
  std::vector<Tensor> result(xs.size());
  walker.run([](LeafNode&, const Tensor&) {},
             [&](Node* n, const std::vector<Tensor>& outputs) {
               for (size_t i = 0; i < targets.size(); ++i)
                 if (targets[i].node == n) result[i] = outputs[targets[i].output];
             });
  for (size_t i = 0; i < xs.size(); ++i)
    if (!result[i].defined() && !options.allow_unused)
      throw Error(Error::Kind::autograd, "grad",
                  "the result does not depend on input " + std::to_string(i) + " of shape " + xs[i].shape().str() +
                      "; {.allow_unused = true} gives an undefined tensor for it");
  return result;
}

std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, const GradOptions& options) {
  return grad(std::vector<Tensor>{y}, xs, options);
}

Tensor grad(const Tensor& y, const Tensor& x, const GradOptions& options) {
  return grad(std::vector<Tensor>{y}, std::vector<Tensor>{x}, options)[0];
}

namespace {

void backward_from(const Tensor& y, const Tensor* v, const BackwardOptions& options) {
  require_graph(y, "backward");
  Walker walker(options.retain_graph || options.create_graph, options.create_graph);
  walker.plan(std::span(&y, 1), {}, true);
  walker.seed(y, cotangent(y, v, "backward"));
  walker.run([&](LeafNode& leaf, Tensor g) { leaf.accumulate(std::move(g), options.create_graph); },
             [](Node*, const std::vector<Tensor>&) {});
}

}  // namespace

void Tensor::backward(const BackwardOptions& options) const { backward_from(*this, nullptr, options); }
void Tensor::backward(const Tensor& v, const BackwardOptions& options) const {
  v.checked("backward");
  backward_from(*this, &v, options);
}

}  // namespace volta
