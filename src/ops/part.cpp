// The part of a tensor that a layout describes, and a tensor around a part.
#include "ops/part.h"

#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {

Tensor extract(const Tensor& x, const Layout& relative) {
  const Tensor whole = x.contiguous();
  Layout placed = relative;
  placed.offset += layout(whole).offset;
  return record("extract", alias(whole, placed), {x},
                [shape = x.shape(), relative](const Tensor& g, Gradients& d) { d[0] = embed(g, shape, relative); });
}

Tensor embed(const Tensor& piece, const Shape& shape, const Layout& relative, Scalar around) {
  Tensor whole = full(shape, around, {piece.dtype(), piece.device()});
  if (relative.overlaps_itself()) {
    // Windows that overlap add up: each element of the piece goes to its place by index.
    const NoGrad off;
    const Tensor places = alias(counting(shape.numel(), piece), relative).reshape({-1});
    whole = whole.reshape({-1}).scatter_add(0, places, piece.reshape({-1})).reshape(shape);
  } else {
    backend(piece.device()).copy(arg(alias(whole, relative)), arg(piece));
  }
  return record("embed", whole, {piece}, [relative](const Tensor& g, Gradients& d) { d[0] = extract(g, relative); });
}

namespace {

// The axes of a dense tensor as they lie in memory, widest step first; nothing when they already do.
std::optional<Shape> memory_order(const Layout& base) {
  if (base.is_contiguous() || !base.is_dense()) return std::nullopt;
  Shape order;
  for (int i = 0; i < base.rank(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return base.strides[int(a)] > base.strides[int(b)]; });
  return order;
}

Tensor extract_view(const Tensor& whole, const Layout& base, const Layout& part) {
  const auto order = memory_order(base);
  return extract(order ? whole.permute(*order) : whole, part);
}

Tensor embed_view(const Tensor& piece, const Layout& base, const Layout& part) {
  const auto order = memory_order(base);
  if (!order) return embed(piece, base.shape, part);
  Shape shape = base.shape, back = base.shape;
  for (int i = 0; i < order->size(); ++i) {
    shape[i] = base.shape[int((*order)[i])];
    back[int((*order)[i])] = i;
  }
  return embed(piece, shape, part).permute(back);
}

}  // namespace

const ViewRules view_rules = {
    .extract = extract_view,
    .embed = embed_view,
    .outside =
        [](const Tensor& whole, const Layout& base, const Layout& part) {
          return where(embed_view(ones(part.shape, {boolean, whole.device()}), base, part), 0, whole);
        },
};

}  // namespace volta
