// In-place changes and views: keeps the graph of a base and its views consistent.
#include "autograd/history.h"

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/pointwise.h"

namespace volta {

Tensor extract(const Tensor& x, const Layout& relative) {
  const Tensor whole = x.contiguous();
  Layout placed = relative;
  placed.offset += layout(whole).offset;
  return record("extract", alias(whole, placed), {x},
                [shape = x.shape(), relative](const Tensor& g, Gradients& d) { d[0] = embed(g, shape, relative); });
}

Tensor embed(const Tensor& piece, const Shape& shape, const Layout& relative) {
  Tensor whole = zeros(shape, {piece.dtype(), piece.device()});
  {
    const NoGrad off;
    if (relative.overlaps_itself()) {
      // Windows that overlap add up: each element of the piece goes to its place by index.
      const Tensor places = alias(arange(0, shape.numel(), 1, {i64, piece.device()}), relative).reshape({-1});
      whole = whole.reshape({-1}).scatter_add(0, places, piece.reshape({-1})).reshape(shape);
    } else {
      const Tensor target = alias(whole, relative);
      backend(piece.device()).copy(arg(target), arg(piece));
    }
  }
  return record("embed", whole, {piece}, [relative](const Tensor& g, Gradients& d) { d[0] = extract(g, relative); });
}

void remember_view(const Tensor& y, const Tensor& x, const std::optional<Layout>& relative) {
  if (!grad_enabled()) return;
  y.impl().view = std::make_unique<ViewOf>(ViewOf{x.impl().view ? x.impl().view->base : x, relative, y.version()});
}

namespace {

const Layout& relative_or_throw(const ViewOf& view, const char* op) {
  if (!view.relative)
    throw Error(Error::Kind::autograd, op,
                "this view cannot be traced back to its base for an in-place change; clone() it first");
  return *view.relative;
}

// The node of a view of `base`, as if it had just been made.
void renew_view_node(TensorImpl& view) {
  const EnableGrad on;
  const Layout relative = relative_or_throw(*view.view, "view");
  const Shape shape = view.view->base.shape();
  auto rule = [relative, shape](const Tensor& g, Gradients& d) { d[0] = embed(g, shape, relative); };
  auto node = Ptr<Node>::adopt(new RuleNode<decltype(rule)>("view", 1, std::move(rule)));
  connect(*node, 0, view.view->base);
  node->first = {view.layout.shape, view.dtype, view.storage->device};
  view.node = std::move(node);
  view.output = 0;
}

}  // namespace

bool refresh_view(TensorImpl& view) {
  const uint32_t now = view.storage->version.load(std::memory_order_relaxed);
  if (view.view->version != now && is_floating(view.dtype) && needs_grad(view.view->base)) {
    renew_view_node(view);
    view.view->version = now;
  }
  return bool(view.node);
}

void rewrite_history(const Tensor& self, const Ptr<Node>& node) {
  TensorImpl& t = self.impl();
  node->first = {t.layout.shape, t.dtype, t.storage->device};
  if (!t.view) {
    t.node = node;
    t.output = 0;
    return;
  }
  // The base is now its old self outside the view and the node's result inside it.
  const Tensor base = t.view->base;
  const Layout relative = relative_or_throw(*t.view, node->name);
  auto rule = [relative](const Tensor& g, Gradients& d) {
    if (d.needs(1)) d[1] = extract(g, relative);
    if (!d.needs(0)) return;
    const Tensor inside = embed(ones(relative.shape, {boolean, g.device()}), g.shape(), relative);
    d[0] = where(inside, 0, g);
  };
  auto merged = Ptr<Node>::adopt(new RuleNode<decltype(rule)>("write_view", 2, std::move(rule)));
  connect(*merged, 0, base);
  merged->edges[1] = {node, 0};
  merged->first = {base.shape(), base.dtype(), base.device()};
  base.impl().node = std::move(merged);
  base.impl().output = 0;
  renew_view_node(t);
  t.view->version = self.version();
}

}  // namespace volta
