// The backward pass: an iterative walk over the graph in topological order, returning or accumulating gradients.
#include "autograd/engine.h"

#include <unordered_set>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "core/check.h"
#include "core/profile.h"
#include "graph/record.h"
#include "ops/reduce.h"

namespace volta {
namespace {

// From node to position, by open addressing: the walk looks up every edge. A new node has position `unseen`.
class Positions {
 public:
  static constexpr int64_t unseen = -1;
  int64_t& operator[](Node* n) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& s = place(n);
    count_ += s.node == nullptr;
    s.node = n;
    return s.position;
  }

 private:
  struct Slot {
    Node* node = nullptr;
    int64_t position = unseen;
  };
  Slot& place(Node* n) {
    size_t i = (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15ull >> 20;
    for (;; ++i) {
      Slot& s = slots_[i & (slots_.size() - 1)];
      if (!s.node || s.node == n) return s;
    }
  }
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& s : old)
      if (s.node) place(s.node) = s;
  }
  std::vector<Slot> slots_{32};
  size_t count_ = 0;
};

// Reduces broadcast axes and returns to the dtype of the tensor the gradient belongs to.
Tensor fit(Tensor g, const OutputMeta& meta, const char* op) {
  if (g.shape() != meta.shape) g = sum_to(g, meta.shape, op);
  return g.dtype() == meta.dtype ? g : g.to(meta.dtype);
}

void run_hooks(const Node& n, std::vector<Tensor>& outputs) {
  for (const Hook& h : hooks_of(n))
    if (outputs[h.output].defined() && h.function)
      if (auto replaced = h.function(outputs[h.output])) {
        const OutputMeta& meta = n.meta(h.output);
        require(replaced->checked("hook").shape() == meta.shape, ErrorKind::shape, "hook", "gave a gradient of shape ",
                *replaced, " for one of shape ", meta.shape);
        outputs[h.output] = fit(*replaced, meta, "hook");
      }
}

// Adds to the gradients that retain_grad keeps: outside of the lock, again if another thread added something meanwhile.
void keep_gradients(const Node& n, std::span<const Tensor> outputs) {
  for (const Hook& h : hooks_of(n)) {
    if (!h.kept || !outputs[h.output].defined()) continue;
    const Tensor& g = outputs[h.output];
    for (bool done = false; !done;) {
      const Tensor before = kept_gradient(h);
      done = replace_kept(h, before, before.defined() ? before + g : g.clone());
    }
  }
}

void accumulate(LeafNode& leaf, Tensor gradient, bool keep_graph) {
  if (leaf.off) return;
  Tensor before;  // ends outside the lock: the owner of its memory may take locks
  const std::lock_guard lock(leaf.mutex);
  Tensor& grad = leaf.grad;
  if (!grad.defined()) {
    // Moved in when nobody else holds it; a shared or expanded one must not be changed later through this handle.
    const TensorImpl& t = gradient.impl();
    const bool own = t.refs.load() == 1 && t.storage->exclusive() && t.layout.is_dense();
    grad = own ? std::move(gradient) : gradient.clone();
  } else if (keep_graph) {
    before = std::exchange(grad, grad + gradient);
  } else {
    grad.add_(gradient);
  }
}

void check_finite(const Node& n, const Tensor& g) {
  const NoGrad off;
  require(!is_floating(g.dtype()) || !isnan(g).any().item<bool>(), ErrorKind::autograd, n.name,
          "its backward rule made a NaN");
}

// The right to run a node's rule: of several passes that keep the graph, or of one that consumes it.
class Claim {
 public:
  Claim(Node& n, bool consume) : node_(n), consume_(consume) {
    int32_t now = n.passes.load(std::memory_order_relaxed);
    do {
      require(now >= 0, ErrorKind::autograd, n.name, consumed_graph);
      require(now == 0 || !consume, ErrorKind::autograd, n.name,
              "another backward pass goes through this graph; pass {.retain_graph = true} to all but the last");
    } while (!n.passes.compare_exchange_weak(now, consume ? -1 : now + 1, std::memory_order_acquire,
                                             std::memory_order_relaxed));
  }
  // A rule that threw has consumed nothing.
  ~Claim() {
    if (!consume_) node_.passes.fetch_sub(1, std::memory_order_release);
    else if (!node_.released) node_.passes.store(0, std::memory_order_release);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  Node& node_;
  bool consume_;
};

// Rules that run in the pass may differentiate.
class Running final : public BackwardPass {
 public:
  Running() : before_(std::exchange(modes.pass, this)) {}
  ~Running() { modes.pass = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& wanted,
                           const std::vector<Tensor>& cotangents, bool create_graph) const override {
    return volta::grad(roots, wanted, {cotangents, create_graph, create_graph, true});
  }
  const BackwardPass* before_;
};

class Walker {
  static constexpr size_t usual_size = 8;  // nodes of a small graph, for which every allocation counts

 public:
  // Wanted: the nodes whose gradients are asked for; none means the leaves. The walk may end there.
  Walker(std::span<const Tensor> roots, std::unordered_set<Node*> wanted, bool end_there = false)
      : wanted_(std::move(wanted)), end_there_(end_there) {
    order_.reserve(usual_size);
    for (const Tensor& y : roots) plan(y.impl().node.get());
  }

  void seed(const Tensor& y, Tensor g) { add(at(y.impl().node.get()), y.impl().output, std::move(g)); }
  bool reaches(const Tensor& x) { return positions_[x.impl().node.get()] != Positions::unseen; }

  // Calls arrive(node, gradients of its outputs) at the wanted nodes.
  template <class Arrive> void run(bool retain, bool create, Arrive arrive) {
    const profile::Region region(profile::Kind::backward, "backward");
    const GradGuard mode(create);
    const AutocastScope as_recorded({});  // rules run in the dtypes of the forward pass
    const Running pass;
    for (size_t i = order_.size(); i-- > 0;) {
      Node& n = *order_[i].node;
      std::vector<Tensor> outputs = std::move(order_[i].grads);
      if (!order_[i].needed || outputs.empty()) continue;
      if (n.hooks.load(std::memory_order_acquire)) {
        if (!ends_at(n)) run_hooks(n, outputs);
        if (wanted_.empty()) keep_gradients(n, outputs);
      }
      if (is_wanted(n)) arrive(n, outputs);
      if (order_[i].onward) step(n, outputs, retain);
    }
  }

 private:
  struct Visit {
    Node* node;
    bool needed = false;             // is or leads to something whose gradient is asked for
    bool onward = false;             // leads to more of it: its rule must run
    std::vector<Tensor> grads = {};  // of its outputs; empty until the first arrives
  };

  bool is_wanted(Node& n) const { return wanted_.empty() ? n.is_leaf() : wanted_.contains(&n); }
  bool ends_at(Node& n) const { return end_there_ && is_wanted(n); }
  Visit& at(Node* n) { return order_[size_t(positions_[n])]; }

  // Inputs before users; roots last.
  void plan(Node* root) {
    std::vector<std::pair<Node*, size_t>> stack;
    stack.reserve(usual_size);
    const auto enter = [&](Node* n) {
      int64_t& position = positions_[n];
      if (position != Positions::unseen) return;
      require(
          !n->inside, ErrorKind::autograd, n->name,
          "the graph inside is not kept: nothing can be differentiated there, and tensors leave it as results only");
      stack.emplace_back(n, ends_at(*n) ? n->edges.size() : 0);
      position = 0;
    };
    for (enter(root); !stack.empty();) {
      auto& [n, next] = stack.back();
      if (next < n->edges.size()) {
        if (Node* child = n->edges[next++].node.get()) enter(child);
        continue;
      }
      Visit v{n};
      if (!ends_at(*n))
        for (const Edge& e : n->edges) v.onward = v.onward || (e.node && at(e.node.get()).needed);
      v.needed = v.onward || is_wanted(*n);
      positions_[n] = int64_t(order_.size());
      order_.push_back(std::move(v));
      stack.pop_back();
    }
  }

  static void add(Visit& v, uint32_t output, Tensor g) {
    if (v.grads.empty()) v.grads.resize(1 + v.node->more_outputs.size());
    Tensor& sum = v.grads[output];
    sum = sum.defined() ? sum + g : std::move(g);
  }

  bool added_in_place(Node& n, std::span<const Tensor> outputs) {
    if (n.edges.size() != 1 || !n.edges[0].node || grad_enabled() || modes.anomaly) return false;
    const Edge& e = n.edges[0];
    const Visit& v = at(e.node.get());
    if (!v.needed || v.grads.empty() || !v.grads[e.output].defined()) return false;
    const TensorImpl& sum = v.grads[e.output].impl();
    const bool ours =
        sum.refs.load(std::memory_order_acquire) == 1 && sum.storage->exclusive() && !sum.node && !sum.view;
    return ours && n.add_in_place(v.grads[e.output], outputs[0]);
  }

  void step(Node& n, std::span<const Tensor> outputs, bool retain) {
    const profile::Region region(profile::Kind::backward, n.name);
    std::vector<Tensor> inputs(n.edges.size());
    {
      const bool consume = !retain && !n.lasting;
      const Claim claim(n, consume);
      if (n.takes_sums) take_sums(n, inputs);
      if (!added_in_place(n, outputs)) n.backward(outputs, inputs);
      if (consume) {
        n.release_saved();
        n.released = true;
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge& e = n.edges[i];
      if (!e.node || !inputs[i].defined()) continue;
      Visit& v = at(e.node.get());
      if (!v.needed) continue;
      if (modes.anomaly) check_finite(n, inputs[i]);
      add(v, e.output, fit(std::move(inputs[i]), e.node->meta(e.output), n.name));
    }
  }

  // A node that stands for many adds their gradients one by one to what has arrived, as it would be without it: the same
  // order gives the same bits. Of edges to one tensor the first takes the sum.
  void take_sums(Node& n, std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge& e = n.edges[i];
      if (!e.node) continue;
      Visit& v = at(e.node.get());
      if (v.needed && !v.grads.empty()) inputs[i] = std::exchange(v.grads[e.output], Tensor());
    }
  }

  std::unordered_set<Node*> wanted_;
  bool end_there_;
  Positions positions_;
  std::vector<Visit> order_;
};

Tensor cotangent(const Tensor& y, const Tensor& given, const char* op) {
  require(given.defined() || y.numel() == 1, ErrorKind::shape, op, "a result of shape ", y,
          " needs a cotangent; only one element does not");
  if (!given.defined()) return ones(y.shape(), {y.dtype(), y.device()});
  require(given.shape() == y.shape(), ErrorKind::shape, op, "the cotangent has shape ", given, ", the result ", y);
  common_device(y, given, op);
  return given.to(y.dtype());
}

void require_graph(const Tensor& y, const char* op) {
  require(needs_grad(y.checked(op)), ErrorKind::autograd, op,
          "the result does not depend on anything that has requires_grad");
}

void backward_from(const Tensor& y, const Tensor& v, const BackwardOptions& options) {
  require_graph(y, "backward");
  Walker walker(std::span(&y, 1), {});
  walker.seed(y, cotangent(y, v, "backward"));
  walker.run(options.retain_graph || options.create_graph, options.create_graph,
             [&](Node& leaf, std::vector<Tensor>& outputs) {
               accumulate(static_cast<LeafNode&>(leaf), std::move(outputs[0]), options.create_graph);
             });
}

}  // namespace

void Tensor::backward(const BackwardOptions& options) const { backward_from(*this, Tensor(), options); }
void Tensor::backward(const Tensor& v, const BackwardOptions& options) const { backward_from(*this, v, options); }

std::vector<Tensor> grad(const std::vector<Tensor>& ys, const std::vector<Tensor>& xs, const GradOptions& options) {
  const char* op = "grad";
  const auto& seeds = options.grad_outputs;
  require(!ys.empty() && !xs.empty(), ErrorKind::argument, op, "needs at least one result and one input");
  require(seeds.empty() || seeds.size() == ys.size(), ErrorKind::argument, op, "needs one grad_output per result");
  std::unordered_set<Node*> wanted;
  for (const Tensor& x : xs) {
    require(needs_grad(x.checked(op)), ErrorKind::autograd, op, "an input of shape ", x,
            " does not have requires_grad set");
    wanted.insert(x.impl().node.get());
  }
  for (const Tensor& y : ys) require_graph(y, op);
  Walker walker(ys, std::move(wanted));
  for (size_t i = 0; i < ys.size(); ++i) walker.seed(ys[i], cotangent(ys[i], seeds.empty() ? Tensor() : seeds[i], op));
  std::vector<Tensor> result(xs.size());
  walker.run(options.retain_graph.value_or(options.create_graph), options.create_graph,
             [&](Node& n, const std::vector<Tensor>& outputs) {
               for (size_t i = 0; i < xs.size(); ++i)
                 if (xs[i].impl().node.get() == &n) result[i] = outputs[xs[i].impl().output];
             });
  for (size_t i = 0; i < xs.size(); ++i)
    require(result[i].defined() || options.allow_unused, ErrorKind::autograd, op,
            "the result does not depend on input ", i, " of shape ", xs[i],
            "; {.allow_unused = true} gives an undefined tensor for it");
  return result;
}

std::vector<Tensor> grad_up_to(std::span<const Tensor> ys, std::span<const Tensor> gs, std::span<const Tensor> xs,
                               std::vector<Tensor> sums, bool create_graph) {
  if (ys.empty() || xs.empty()) return sums;
  std::unordered_set<Node*> wanted;
  for (const Tensor& x : xs) wanted.insert(x.impl().node.get());
  Walker walker(ys, std::move(wanted), true);
  for (size_t i = 0; i < xs.size(); ++i)
    if (sums[i].defined() && walker.reaches(xs[i])) walker.seed(xs[i], std::exchange(sums[i], Tensor()));
  for (size_t i = 0; i < ys.size(); ++i) walker.seed(ys[i], gs[i].to(ys[i].dtype()));
  walker.run(create_graph, create_graph, [&](Node& n, const std::vector<Tensor>& outputs) {
    for (size_t i = 0; i < xs.size(); ++i)
      if (xs[i].impl().node.get() == &n) sums[i] = outputs[xs[i].impl().output];
  });
  return sums;
}

std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, const GradOptions& options) {
  return grad(std::vector{y}, xs, options);
}

Tensor grad(const Tensor& y, const Tensor& x, const GradOptions& options) {
  return grad(std::vector{y}, std::vector{x}, options)[0];
}

}  // namespace volta
