// The part of a tensor that a layout describes, and a tensor around a part.
#include "ops/part.h"

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

const ViewRules view_rules = {
    .extract = extract,
    .embed = [](const Tensor& piece, const Shape& shape, const Layout& part) { return embed(piece, shape, part); },
    .outside =
        [](const Tensor& whole, const Layout& part) {
          const Tensor inside = embed(ones(part.shape, {boolean, whole.device()}), whole.shape(), part);
          return where(inside, 0, whole);
        },
};

}  // namespace volta
