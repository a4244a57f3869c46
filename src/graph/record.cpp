// Lifetime of nodes, what they save, modes, and the graph behind tensors that change in place or through views.
#include <atomic>

#include "core/check.h"
#include "core/fork.h"
#include "graph/reach.h"

namespace volta {

thread_local constinit Modes modes;

bool is_grad_enabled() { return modes.record; }
bool is_inference_mode() { return modes.inference; }

// Inside InferenceMode an inner EnableGrad records nothing: the whole region promises not to need gradients.
GradGuard::GradGuard(bool record, bool inference) : before_(modes.record), inference_before_(modes.inference) {
  modes.inference = modes.inference || inference;
  modes.record = record && !modes.inference;
}
GradGuard::~GradGuard() {
  modes.record = before_;
  modes.inference = inference_before_;
}

DetectAnomaly::DetectAnomaly() : before_(std::exchange(modes.anomaly, true)) {}
DetectAnomaly::~DetectAnomaly() { modes.anomaly = before_; }

void retain(Node* n) noexcept { n->refs.fetch_add(1, std::memory_order_relaxed); }

// Destroying a node releases its inputs' nodes. They queue up here instead of recursing.
void release(Node* n) noexcept {
  if (!drop_reference(n->refs)) return;
  thread_local constinit Node* dead = nullptr;
  thread_local constinit bool draining = false;
  n->next_dead = std::exchange(dead, n);
  if (draining) return;
  draining = true;
  while (dead) delete std::exchange(dead, dead->next_dead);
  draining = false;
}

void Node::require_unreleased() const { require(!released, ErrorKind::autograd, name, consumed_graph); }

Saved::Saved(const Tensor& x, bool output)
    : tensor_(output ? x.detach() : x), version_(x.version()), output_(x.impl().output), is_output_(output) {}

Tensor Saved::get(Node& node) const {
  node.require_unreleased();
  require(unchanged(), ErrorKind::autograd, node.name, "a tensor of shape ", tensor_,
          " saved for its gradient was changed in place (version ", tensor_.version(), ", saved at ", version_, ")");
  if (!is_output_ || !grad_enabled()) return tensor_;
  Tensor y = tensor_.detach();
  y.impl().node = IntrusivePtr<Node>::share(&node);
  y.impl().output = output_;
  return y;
}

void connect(Node& node, size_t input, const Tensor& x) {
  if (!needs_grad(x)) return;
  node.edges[input] = {x.impl().node, x.impl().output};
  if (modes.reach) modes.reach->meet(x);
}

namespace {

OutputMeta meta_of(const TensorImpl& t) { return {t.layout.shape, t.dtype, t.storage->device}; }

void become_output(TensorImpl& t, IntrusivePtr<Node> node) {
  node->first = meta_of(t);
  if (t.node) move_kept(*t.node, t.output, *node);
  t.node = modes.reach ? modes.reach->made(std::move(node)) : std::move(node);
  t.output = 0;
}

void require_traceable(const ViewOf& view, const char* op) {
  require(view.relative.has_value(), ErrorKind::autograd, op,
          "this view cannot be traced back to its base for an in-place change; clone() it first");
}

}  // namespace

void attach(const IntrusivePtr<Node>& node, std::span<Tensor> outputs) {
  node->first = meta_of(outputs[0].impl());
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    TensorImpl& t = outputs[i].impl();
    if (i > 0) node->more_outputs.push_back(meta_of(t));
    t.unrecorded = TensorImpl::Unrecorded::no;
    if (!is_floating(t.dtype)) continue;
    t.node = node;
    t.output = i;
  }
  if (modes.reach) modes.reach->made(node, outputs);
}

void refuse_grad(const char* op, std::initializer_list<Tensor> inputs) {
  require(!grad_enabled() || std::none_of(inputs.begin(), inputs.end(), needs_grad), ErrorKind::autograd, op,
          "has no derivative; detach() its inputs or use NoGrad");
}

void require_writable(const Tensor& x, const char* op) {
  x.checked(op);
  const TensorImpl& t = x.impl();
  if (t.unrecorded != TensorImpl::Unrecorded::no && grad_enabled())
    if (t.unrecorded == TensorImpl::Unrecorded::view_of_graph || t.storage->rewritten.load(std::memory_order_relaxed))
      require_recorded_view(x, op);
  if (grad_enabled()) {
    const ViewOf* view = view_of(t);
    const Tensor& base = view ? view->base : x;
    const bool recorded = needs_grad(base);
    require(!recorded || !base.impl().node->is_leaf(), ErrorKind::autograd, op,
            "in-place change of a leaf that requires grad, or of a view of one; use NoGrad or detach()");
    if (recorded && view) require_traceable(*view, op);
  }
  require(!layout(x).overlaps_itself(), ErrorKind::argument, op, "writing into a tensor of shape ", x,
          " whose elements share memory; clone() it first");
}

void mark_unrecorded(TensorImpl& y, const Tensor& x) {
  using Unrecorded = TensorImpl::Unrecorded;
  const bool graph = needs_grad(x) || x.impl().unrecorded == Unrecorded::view_of_graph;
  y.unrecorded = graph ? Unrecorded::view_of_graph : Unrecorded::view;
  y.rewrites_seen = y.storage->rewrites.load(std::memory_order_relaxed);
}

void require_current_view(const TensorImpl& t) {
  require(
      !grad_enabled() || t.storage->rewrites.load(std::memory_order_relaxed) == t.rewrites_seen, ErrorKind::autograd,
      "view",
      "this view was made under NoGrad, and what it views was changed in place since by a recorded op: its gradient "
      "would be lost; make the view again, or detach() it");
}

void require_recorded_view(const Tensor& self, const char* op) {
  const TensorImpl& t = self.impl();
  // With memory of its own there is no base left that could notice.
  require(t.unrecorded == TensorImpl::Unrecorded::no || t.storage->unique(), ErrorKind::autograd, op,
          "in-place change of a view that was made under NoGrad: its base would keep the old graph; make the view "
          "again, or change it under NoGrad");
  if (const ViewOf* view = view_of(t)) require_traceable(*view, op);
}

void remember_view(const Tensor& y, const Tensor& x, const std::optional<Layout>& relative, const ViewRules& rules) {
  if (!grad_enabled()) return;
  const ViewOf* parent = view_of(x.impl());
  const Tensor& base = parent ? parent->base : x;
  // The view of a base that requires no grad has no node yet: it is made when the base requires grad one day.
  const uint32_t version = y.version() - (needs_grad(base) ? 0 : 1);
  y.impl().view = std::make_unique<ViewOf>(ViewOf{base, &rules, relative, version});
}

namespace {

std::mutex views_mutex;  // of the nodes that views get anew; threads that only read a view may all come here
[[maybe_unused]] const bool views_watched = fork_waits_for(views_mutex);

// The node of a view of its base as it is now, as if the view had just been made.
void renew_view_node(TensorImpl& view) {
  const EnableGrad on;
  const Tensor& base = view.view->base;
  // A view from outside a checkpoint stays outside, even if its node is made anew there.
  struct Restore {
    ~Restore() { modes.reach = before; }
    Reach* before = modes.reach;
  } const restore;
  if (modes.reach && base.impl().node && !modes.reach->is_inside(base)) modes.reach = nullptr;
  require_traceable(*view.view, "view");
  auto rule = [whole = layout(base), part = *view.view->relative, embed = view.view->rules->embed](
                  const Tensor& g, Gradients& d) { d[0] = embed(g, whole, part); };
  become_output(view, rule_node("view", std::span(&base, 1), std::move(rule)));
}

}  // namespace

bool refresh_view(TensorImpl& view) {
  const uint32_t now = view.storage->version.load(std::memory_order_relaxed);
  std::atomic_ref known(view.view->version);
  if (known.load(std::memory_order_acquire) != now && is_floating(view.dtype) && view_of(view) &&
      needs_grad(view.view->base)) {
    IntrusivePtr<Node> before;  // ends outside the lock: what it saved may belong to somebody
    const std::lock_guard lock(views_mutex);
    if (known.load(std::memory_order_relaxed) != now) {
      before = view.node;
      renew_view_node(view);
      known.store(now, std::memory_order_release);
    }
  }
  return view.node && !view.node->off;
}

void rewrite_history(const Tensor& self, const IntrusivePtr<Node>& node) {
  TensorImpl& t = self.impl();
  t.storage->rewritten.store(true, std::memory_order_relaxed);
  t.storage->rewrites.fetch_add(1, std::memory_order_relaxed);
  const ViewOf* view = view_of(t);
  if (!view) return become_output(t, node);
  // The base is now its old self outside the view and the node's result inside it.
  node->first = meta_of(t);
  require_traceable(*view, node->name);
  const Tensor inputs[] = {view->base, {}};
  auto rule = [whole = layout(view->base), part = *view->relative, rules = view->rules](const Tensor& g, Gradients& d) {
    if (d.needs(1)) d[1] = rules->extract(g, whole, part);
    if (d.needs(0)) d[0] = rules->outside(g, whole, part);
  };
  IntrusivePtr<Node> merged = rule_node("write_view", inputs, std::move(rule));
  merged->edges[1] = {node, 0};
  become_output(inputs[0].impl(), std::move(merged));
  renew_view_node(t);
  t.view->version = t.storage->version.load(std::memory_order_relaxed);
}

}  // namespace volta
