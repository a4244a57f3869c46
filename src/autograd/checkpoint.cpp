// checkpoint: computes a function without keeping its intermediates, and again in the backward pass.
#include <volta/autograd.h>
#include <volta/ops.h>

#include "autograd/engine.h"
#include "core/check.h"
#include "core/draws.h"
#include "graph/reach.h"

namespace volta {
namespace {

using Tensors = std::vector<Tensor>;

thread_local constinit bool sharing = false;

struct Replaying {
  ~Replaying() { modes.replaying = before; }
  const bool before = std::exchange(modes.replaying, true);
};

}  // namespace

detail::Sharing::Sharing() : before_(std::exchange(sharing, true)) {}
detail::Sharing::~Sharing() { sharing = before_; }
bool detail::Sharing::on() { return sharing; }

namespace {

// What the backward pass needs to compute the function again.
struct Replay {
  TensorFunction f;
  std::vector<Saved> inputs, outside, constants;
  std::vector<size_t> roots;  // of the function's results, those with a gradient
  Draws draws;
  AutocastMode autocast = modes.autocast;

  void operator()(std::span<const Tensor> g, Gradients& d) {
    Tensors x, wanted;
    for (const Saved& s : inputs) x.push_back(s ? d.take(s) : Tensor());
    Tensors reached;
    for (const Saved& s : outside) reached.push_back(d.take(s));
    for (const Saved& s : constants) d.take(s);
    const bool create = grad_enabled();
    const EnableGrad on;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!d.needs(i)) continue;
      x[i] = create ? x[i].expand(x[i].shape()) : x[i].detach().requires_grad_();
      wanted.push_back(x[i]);
    }
    const Tensors ys = computed(x, wanted, reached);
    for (size_t i = 0; i < reached.size(); ++i)
      if (d.needs(x.size() + i)) wanted.push_back(reached[i]);
    Tensors sums;
    for (size_t i = 0; i < d.size(); ++i)
      if (d.needs(i)) sums.push_back(std::move(d[i]));
    sums = gradients(ys, g, wanted, std::move(sums), create);
    size_t next = 0;
    for (size_t i = 0; i < d.size(); ++i)
      if (d.needs(i)) d[i] = std::move(sums[next++]);
  }

  Tensors computed(const Tensors& x, const Tensors& own, const Tensors& reached) {
    Reach reach(Reach::Pass::replay);
    const DrawScope same(draws, DrawScope::Use::repeat);
    const Replaying again;
    const AutocastScope same_casts(autocast);
    for (const Tensor& t : own) reach.own(t);
    const Tensors ys = f(x);
    require(
        reach.met_only(reached), ErrorKind::autograd, "checkpoint",
        "the function used other tensors that require grad when it ran again than the first time: what it uses is made "
        "before it, not inside");
    return ys;
  }

  Tensors gradients(const Tensors& ys, std::span<const Tensor> g, const Tensors& wanted, Tensors sums,
                    bool create) const {
    Tensors from, cotangents;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (!g[i].defined()) continue;
      require(roots[i] < ys.size() && ys[roots[i]].shape() == g[i].shape(), ErrorKind::autograd, "checkpoint",
              "the function gave other results when it ran again than the first time");
      if (!needs_grad(ys[roots[i]])) continue;
      from.push_back(ys[roots[i]]);
      cotangents.push_back(g[i]);
    }
    return grad_up_to(from, cotangents, wanted, std::move(sums), create);
  }
};

std::vector<uint32_t> versions_of(const Tensors& xs) {
  std::vector<uint32_t> versions;
  for (const Tensor& x : xs) versions.push_back(x.defined() ? x.version() : 0);
  return versions;
}

// A result that shares memory with what the caller holds, or with another result, gets memory of its own: the graph
// would not see a change in place through the other.
bool shares_memory(const Tensor& y, std::span<const Tensor> others) {
  return std::any_of(others.begin(), others.end(), [&](const Tensor& x) { return x.defined() && same_memory(x, y); });
}

}  // namespace

Tensors detail::checkpoint_all(const TensorFunction& f, TensorFunction again, const Tensors& inputs) {
  const char* op = "checkpoint";
  Replay replay{std::move(again), {}, {}, {}, {}, {}};
  Tensors ys, all = inputs, results;
  {
    Reach reach(Reach::Pass::forward);
    const DrawScope log(replay.draws, DrawScope::Use::log);
    Tensors x;
    for (const Tensor& t : inputs) {
      replay.inputs.push_back(save(t));
      x.push_back(needs_grad(t) ? reach.marked(t) : t);
    }
    const std::vector<uint32_t> before = versions_of(inputs);
    ys = f(x);
    x.clear();
    require(versions_of(inputs) == before, ErrorKind::autograd, op,
            "the function changed one of its inputs in place; clone() it there");
    for (size_t i = 0; i < ys.size(); ++i) {
      if (!needs_grad(ys[i])) continue;
      reach.meet(ys[i]);
      replay.roots.push_back(i);
    }
    replay.outside = reach.outside();
    replay.constants = reach.constants();
    for (const Saved& s : replay.outside) all.push_back(s.tensor());
  }
  if (replay.roots.empty()) return ys;
  for (const size_t i : replay.roots) {
    Tensor y = ys[i].detach();
    ys[i] = Tensor();
    if (shares_memory(y, all) || shares_memory(y, ys)) y = unrecorded([&] { return y.clone(); });
    results.push_back(ys[i] = y);
  }
  const IntrusivePtr<Node> node = rule_node(op, all, std::move(replay));
  node->takes_sums = true;
  attach(node, results);
  return ys;
}

}  // namespace volta
