// The backward pass: an iterative walk over the graph in topological order, returning or accumulating gradients.
#include <memory_resource>
#include <unordered_map>
#include <unordered_set>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "core/check.h"
#include "ops/reduce.h"

namespace volta {
namespace {

// Reduces broadcast axes and returns to the dtype of the tensor the gradient belongs to.
Tensor fit(Tensor g, const OutputMeta& meta, const char* op) {
  if (g.shape() != meta.shape) g = sum_to(g, meta.shape, op);
  return g.dtype() == meta.dtype ? g : g.to(meta.dtype);
}

void run_hooks(const Node& n, std::vector<Tensor>& outputs) {
  for (const Hook& h : hooks_of(n))
    if (outputs[h.output].defined())
      if (auto replaced = h.function(outputs[h.output])) outputs[h.output] = fit(*replaced, n.meta(h.output), "hook");
}

void check_finite(const Node& n, const Tensor& g) {
  const NoGrad off;
  require(!is_floating(g.dtype()) || !isnan(g).any().item<bool>(), Wrong::autograd, n.name,
          "its backward rule made a NaN");
}

class Walker {
 public:
  // Wanted: the nodes whose gradients are asked for; none means the leaves.
  Walker(std::span<const Tensor> roots, std::unordered_set<Node*> wanted) : wanted_(std::move(wanted)) {
    for (const Tensor& y : roots) plan(y.impl().node.get());
  }

  void seed(const Tensor& y, Tensor g) { add({y.impl().node, y.impl().output}, std::move(g)); }

  // Calls arrive(node, gradients of its outputs) at the wanted nodes.
  template <class Arrive> void run(bool retain, bool create, Arrive arrive) {
    const GradGuard mode(create);
    for (size_t i = order_.size(); i-- > 0;) {
      const auto [n, visit] = order_[i];
      std::vector<Tensor> outputs = std::move(visit->grads);
      if (!visit->needed || outputs.empty()) continue;
      run_hooks(*n, outputs);
      if (is_wanted(*n)) arrive(*n, outputs);
      if (!n->is_leaf()) step(*n, outputs, retain);
    }
  }

 private:
  struct Visit {
    bool needed = false;        // leads to something whose gradient is asked for
    std::vector<Tensor> grads;  // of its outputs; empty until the first arrives
  };

  bool is_wanted(Node& n) const { return wanted_.empty() ? n.is_leaf() : wanted_.contains(&n); }
  Visit& at(const Edge& e) { return visits_.find(e.node.get())->second; }

  // Inputs before users; roots last.
  void plan(Node* root) {
    std::vector<std::pair<Node*, size_t>> stack;
    const auto enter = [&](Node* n) {
      if (n && visits_.try_emplace(n).second) stack.emplace_back(n, 0);
    };
    for (enter(root); !stack.empty();) {
      auto& [n, next] = stack.back();
      if (next < n->edges.size()) {
        enter(n->edges[next++].node.get());
        continue;
      }
      Visit& v = visits_.find(n)->second;
      v.needed = is_wanted(*n);
      for (const Edge& e : n->edges) v.needed = v.needed || (e.node && at(e).needed);
      order_.emplace_back(n, &v);
      stack.pop_back();
    }
  }

  void add(const Edge& e, Tensor g) {
    Visit& v = at(e);
    if (v.grads.empty()) v.grads.resize(1 + e.node->more_outputs.size());
    Tensor& sum = v.grads[e.output];
    sum = sum.defined() ? sum + g : std::move(g);
  }

  bool added_in_place(Node& n, std::span<const Tensor> outputs) {
    if (n.edges.size() != 1 || !n.edges[0].node || grad_enabled() || modes.anomaly) return false;
    const Edge& e = n.edges[0];
    const Visit& v = at(e);
    if (!v.needed || v.grads.empty() || !v.grads[e.output].defined()) return false;
    const TensorImpl& sum = v.grads[e.output].impl();
    const bool ours = sum.refs.load(std::memory_order_acquire) == 1 && sum.storage->unique() && !sum.node && !sum.view;
    return ours && n.add_in_place(v.grads[e.output], outputs[0]);
  }

  void step(Node& n, std::span<const Tensor> outputs, bool retain) {
    n.require_unreleased();
    std::vector<Tensor> inputs(n.edges.size());
    if (!added_in_place(n, outputs)) n.backward(outputs, inputs);
    if (!retain) {
      n.release_saved();
      n.released = true;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge& e = n.edges[i];
      if (!e.node || !inputs[i].defined() || !at(e).needed) continue;
      if (modes.anomaly) check_finite(n, inputs[i]);
      add(e, fit(std::move(inputs[i]), e.node->meta(e.output), n.name));
    }
  }

  std::unordered_set<Node*> wanted_;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_map<Node*, Visit> visits_{&memory_};
  std::vector<std::pair<Node*, Visit*>> order_;
};

Tensor cotangent(const Tensor& y, const Tensor& given, const char* op) {
  require(given.defined() || y.numel() == 1, Wrong::shape, op, "a result of shape ", y,
          " needs a cotangent; only one element does not");
  if (!given.defined()) return ones(y.shape(), {y.dtype(), y.device()});
  require(given.shape() == y.shape(), Wrong::shape, op, "the cotangent has shape ", given, ", the result ", y);
  common_device(y, given, op);
  return given.to(y.dtype());
}

void require_graph(const Tensor& y, const char* op) {
  require(needs_grad(y.checked(op)), Wrong::autograd, op,
          "the result does not depend on anything that has requires_grad");
}

void backward_from(const Tensor& y, const Tensor& v, const BackwardOptions& options) {
  require_graph(y, "backward");
  Walker walker(std::span(&y, 1), {});
  walker.seed(y, cotangent(y, v, "backward"));
  walker.run(options.retain_graph || options.create_graph, options.create_graph,
             [&](Node& leaf, std::vector<Tensor>& outputs) {
               static_cast<LeafNode&>(leaf).accumulate(std::move(outputs[0]), options.create_graph);
             });
}

}  // namespace

void Tensor::backward(const BackwardOptions& options) const { backward_from(*this, Tensor(), options); }
void Tensor::backward(const Tensor& v, const BackwardOptions& options) const {
  backward_from(*this, v.checked("backward"), options);
}

std::vector<Tensor> grad(const std::vector<Tensor>& ys, const std::vector<Tensor>& xs, const GradOptions& options) {
  const char* op = "grad";
  const auto& seeds = options.grad_outputs;
  require(!ys.empty() && !xs.empty(), Wrong::argument, op, "needs at least one result and one input");
  require(seeds.empty() || seeds.size() == ys.size(), Wrong::argument, op, "needs one grad_output per result");
  std::unordered_set<Node*> wanted;
  for (const Tensor& x : xs) {
    require(needs_grad(x.checked(op)), Wrong::autograd, op, "an input of shape ", x,
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
    require(result[i].defined() || options.allow_unused, Wrong::autograd, op, "the result does not depend on input ", i,
            " of shape ", xs[i], "; {.allow_unused = true} gives an undefined tensor for it");
  return result;
}

std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, const GradOptions& options) {
  return grad(std::vector{y}, xs, options);
}

Tensor grad(const Tensor& y, const Tensor& x, const GradOptions& options) {
  return grad(std::vector{y}, std::vector{x}, options)[0];
}

}  // namespace volta
