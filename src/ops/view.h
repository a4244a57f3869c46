// How views are made: a function on layouts, and the rule that undoes it for gradients.
#pragma once
#include "autograd/record.h"

namespace volta {

// y = x seen through f(layout). Gradients go back by embedding into zeros unless `inverse(g)` knows better.
template <class F> Tensor make_view(const char* op, const Tensor& x, F f) {
  const Layout base = Layout::contiguous(x.shape());
  return make_view(op, x, f, [base, f](const Tensor& g) { return embed(g, base.shape, f(base)); });
}
template <class F, class Inverse> Tensor make_view(const char* op, const Tensor& x, F f, Inverse inverse) {
  x.checked(op);
  Tensor y = alias(x, f(layout(x)));
  if (!grad_enabled()) return y;
  const auto& parent = x.impl().view;
  std::optional<Layout> relative;
  if (!parent) relative = f(Layout::contiguous(x.shape()));
  else if (parent->relative) relative = f(*parent->relative);
  remember_view(y, x, relative);
  return record(op, std::move(y), {x}, [inverse](const Tensor& g, Gradients& d) { d[0] = inverse(g); });
}

}  // namespace volta
