// The graph: nodes, what they save, and record(), which ties an op's result to the rule that goes back through it.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <volta/grad_mode.h>

#include "core/impl.h"

namespace volta {

class Reach;

// The backward pass that a rule runs in, for rules that differentiate something of their own.
class BackwardPass {
 public:
  // Gradients of the roots by the wanted, undefined where there are none.
  virtual std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& wanted,
                                   const std::vector<Tensor>& cotangents, bool create_graph) const = 0;

 protected:
  ~BackwardPass() = default;
};

struct AutocastMode {
  bool on = false, cache = true;
  DType dtype = f16;  // of products
};
// Another mode, while it lives.
class AutocastScope {
 public:
  explicit AutocastScope(AutocastMode mode);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastMode before_;
};

struct Modes {
  bool record = true, inference = false, anomaly = false;
  AutocastMode autocast;
  bool replaying = false;  // a checkpoint computes its function again: running statistics must not move twice
  Reach* reach = nullptr;  // the checkpoint whose function this thread runs
  const BackwardPass* pass = nullptr;
};
extern thread_local constinit Modes modes;
inline AutocastScope::AutocastScope(AutocastMode mode) : before_(std::exchange(modes.autocast, mode)) {}
inline AutocastScope::~AutocastScope() { modes.autocast = before_; }
inline bool grad_enabled() noexcept { return modes.record; }
inline bool is_replaying() noexcept { return modes.replaying; }
template <class F> auto unrecorded(F f) {
  const NoGrad off;
  return f();
}

struct Edge {
  IntrusivePtr<Node> node;  // null: this input needs no gradient
  uint32_t output = 0;
};

struct OutputMeta {
  Shape shape;
  DType dtype = f32;
  Device device;
};

struct Hook {
  int id;
  uint32_t output;
  std::function<std::optional<Tensor>(const Tensor&)> function;
  std::shared_ptr<Tensor> kept = {};  // of retain_grad: where the gradient goes, instead of a function
};
using Hooks = std::vector<Hook>;

// A few edges inline: most ops have one or two inputs.
class Edges {
 public:
  explicit Edges(size_t n) : size_(n) {
    if (n > inline_.size()) more_.resize(n);
  }
  Edge* begin() { return size_ > inline_.size() ? more_.data() : inline_.data(); }
  Edge* end() { return begin() + size_; }
  Edge& operator[](size_t i) { return begin()[i]; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::array<Edge, 3> inline_;
  std::vector<Edge> more_;
};

void end_hooks(Node& n);

inline constexpr const char* consumed_graph =
    "the graph was already consumed by a backward pass; pass {.retain_graph = true} to the first one";

// One recorded call.
struct Node : Pooled {
  Node(const char* op, size_t inputs) : name(op), edges(inputs) {}
  virtual ~Node() {
    if (hooks.load(std::memory_order_relaxed)) end_hooks(*this);
  }

  // Gradients of the outputs (undefined where none arrived) to gradients of the inputs (only those edges that exist).
  virtual void backward(std::span<const Tensor> outputs, std::span<Tensor> inputs) = 0;
  // Adds the gradient of the only input to the sum of those that came before, which nobody else holds, and returns true;
  // or leaves that to backward.
  virtual bool add_in_place(const Tensor&, const Tensor&) { return false; }
  virtual void release_saved() {}
  virtual bool is_leaf() const { return false; }

  const OutputMeta& meta(uint32_t output) const { return output == 0 ? first : more_outputs[output - 1]; }
  bool needs(size_t input) { return bool(edges[input].node); }
  void require_unreleased() const;  // throws when a backward pass has consumed the graph

  std::atomic<uint32_t> refs{1};
  // Backward passes that run the rule now and keep the graph; -1: one runs it and consumes it, or has.
  std::atomic<int32_t> passes{0};
  std::atomic<bool> released{false};
  bool inside = false;      // stands for a call within a checkpoint, whose graph was dropped
  bool lasting = false;     // saves nothing and stands in several graphs: a backward pass does not consume it
  bool takes_sums = false;  // backward is given what has arrived at each input, and adds to it
  bool off = false;         // a leaf that requires no grad now; graphs made before still end here
  const char* name;
  Edges edges;
  OutputMeta first;
  std::vector<OutputMeta> more_outputs;
  std::atomic<Hooks*> hooks{nullptr};  // made with the first
  Node* next_dead = nullptr;
};

Hooks hooks_of(const Node& n);

// retain_grad: what was asked of one node's output passes to another's when the tensor is changed in place; and the
// gradient that is kept, which is replaced only if it is still the one that was read.
void move_kept(Node& from, uint32_t output, Node& to);
Tensor kept_gradient(const Hook& hook);
bool replace_kept(const Hook& hook, const Tensor& before, Tensor now);

// The end of the graph: holds the gradient of a leaf.
struct LeafNode final : Node {
  LeafNode() : Node("leaf", 0) {}
  void backward(std::span<const Tensor>, std::span<Tensor>) override {}
  bool is_leaf() const override { return true; }

  std::mutex mutex;
  Tensor grad;
};

// A view whose base was changed through another view gets its node anew first.
bool refresh_view(TensorImpl& view);
// A view that nobody recorded cannot be renewed: throws if what it views got another graph since.
void require_current_view(const TensorImpl& view);
inline bool needs_grad(const Tensor& x) {
  if (!x.defined()) return false;
  TensorImpl& t = x.impl();
  if (t.unrecorded != TensorImpl::Unrecorded::no) [[unlikely]]
    require_current_view(t);
  return t.view ? refresh_view(t) : t.node && !t.node->off;
}
template <class... X> bool any_needs_grad(const X&... x) { return grad_enabled() && (needs_grad(x) || ...); }

// A tensor kept for the backward pass; taking it out checks that nobody changed it in between.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x, bool output = false);
  // `node` is the one being differentiated: a saved output is attached to it again.
  Tensor get(Node& node) const;
  const Tensor& tensor() const { return tensor_; }
  bool unchanged() const { return tensor_.version() == version_; }
  explicit operator bool() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint32_t version_ = 0, output_ = 0;
  bool is_output_ = false;
};
inline Saved save(const Tensor& x, bool when = true) { return when && x.defined() ? Saved(x) : Saved(); }
inline Saved save_output(const Tensor& y) { return grad_enabled() ? Saved(y, true) : Saved(); }

// What a rule is given: which inputs want a gradient, and where to put it.
class Gradients {
 public:
  Gradients(Node& node, std::span<Tensor> out) : node_(node), out_(out) {}
  bool needs(size_t input) const { return node_.needs(input); }
  Tensor& operator[](size_t input) { return out_[input]; }
  size_t size() const { return out_.size(); }
  Tensor take(const Saved& s) const { return s.get(node_); }

 private:
  Node& node_;
  std::span<Tensor> out_;
};

template <class Rule> struct RuleNode final : Node {
  RuleNode(const char* op, size_t inputs, Rule&& r) : Node(op, inputs), rule(std::move(r)) {}
  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    Gradients d(*this, out);
    if constexpr (std::is_invocable_v<Rule&, const Tensor&>) out[0] = (*rule)(g[0]);
    else if constexpr (std::is_invocable_v<Rule&, const Tensor&, Gradients&>) (*rule)(g[0], d);
    else (*rule)(g, d);
  }
  bool add_in_place(const Tensor& sum, const Tensor& g) override {
    if constexpr (requires { rule->add_in_place(sum, g); }) return rule->add_in_place(sum, g);
    else return false;
  }
  void release_saved() override { rule.reset(); }
  std::optional<Rule> rule;
};

void connect(Node& node, size_t input, const Tensor& x);
void attach(const IntrusivePtr<Node>& node, std::span<Tensor> outputs);
template <class Rule> IntrusivePtr<Node> rule_node(const char* op, std::span<const Tensor> inputs, Rule rule) {
  auto node = IntrusivePtr<Node>::adopt(new RuleNode<Rule>(op, inputs.size(), std::move(rule)));
  for (size_t i = 0; i < inputs.size(); ++i) connect(*node, i, inputs[i]);
  return node;
}

// y = op(inputs) with rule(g, d): d[i] is the gradient of input i, asked for when d.needs(i). For a single input that g
// alone determines, rule(g) gives it.
template <class Rule> Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, Rule rule) {
  return record(op, std::move(y), std::span(inputs.begin(), inputs.size()), std::move(rule));
}
template <class Rule> Tensor record(const char* op, Tensor y, std::span<const Tensor> inputs, Rule rule) {
  record_all(op, std::span(&y, 1), inputs, std::move(rule));
  return y;
}
// Several outputs: rule(span of gradients, d).
template <class Rule>
void record_all(const char* op, std::span<Tensor> outputs, std::span<const Tensor> inputs, Rule rule) {
  if (!grad_enabled() || std::none_of(inputs.begin(), inputs.end(), needs_grad)) return;
  attach(rule_node(op, inputs, std::move(rule)), outputs);
}

// For ops that have no derivative: throws when one would be needed.
void refuse_grad(const char* op, std::initializer_list<Tensor> inputs);

// How gradients pass between a base and a part of it. The part is described by its layout in the memory of the base if
// that is dense, else in that of a contiguous tensor of its shape. Who makes views gives these functions.
struct ViewRules {
  Tensor (*extract)(const Tensor& whole, const Layout& base, const Layout& part);
  Tensor (*embed)(const Tensor& piece, const Layout& base, const Layout& part);
  Tensor (*outside)(const Tensor& whole, const Layout& base, const Layout& part);  // with zeros in place of the part
};

// What t is a view of; nothing once the base has been given other memory.
inline const ViewOf* view_of(const TensorImpl& t) {
  return t.view && t.view->base.impl().storage == t.storage ? t.view.get() : nullptr;
}

// `self` was overwritten by the result of `node` (its output 0). Views pass that on to their base.
void rewrite_history(const Tensor& self, const IntrusivePtr<Node>& node);

// y is a view of x made while nothing is recorded; and the check that a result with this graph may be written into it.
void mark_unrecorded(TensorImpl& y, const Tensor& x);
void require_recorded_view(const Tensor& self, const char* op);

// y is a view of x, or of what x is a view of; `relative` says where (ViewRules).
void remember_view(const Tensor& y, const Tensor& x, const std::optional<Layout>& relative, const ViewRules& rules);

void require_writable(const Tensor& x, const char* op);  // not a grad-requiring leaf, not overlapping itself

}  // namespace volta
