// fused_update: a rule of one's own, written once as a formula for one element, run in one pass over memory.
#pragma once
#include <array>

#include <volta/autograd.h>
#include <volta/ops.h>
#include <volta/update_rule.h>

namespace volta::optim {

namespace detail {

using volta::detail::UpdateRule;

// Whether the device of p ran the rule.
bool run_rule(const UpdateRule& rule, const double* constants, const Tensor& p, const Tensor& g,
              std::initializer_list<Tensor> states);

// Not inlined: only parameters keep the promise that they do not overlap, without which this is no vector loop.
template <class T, size_t C, class Rule, class... S>
[[gnu::noinline]] void run_elements(int64_t n, const std::array<T, C>& c, const Rule& rule, T* __restrict x,
                                    const T* __restrict g, S* __restrict... state) {
  for (int64_t i = 0; i < n; ++i) rule(c, x[i], g[i], state[i]...);
}

template <class T, size_t C, class Rule, size_t... I> void row(const void* rule, int64_t n, const double* constants,
                                                               void* x, const void* g, void* const* states,
                                                               std::index_sequence<I...>) {
  std::array<T, C> c;
  for (size_t i = 0; i < C; ++i) c[i] = T(constants[i]);
  run_elements<T>(n, c, *static_cast<const Rule*>(rule), static_cast<T*>(x), static_cast<const T*>(g),
                  static_cast<T*>(states[I])...);
}
template <class T, size_t C, class Rule, size_t States> constexpr UpdateRule::Row row_of() {
  return [](const void* rule, int64_t n, const double* c, void* x, const void* g, void* const* states) {
    row<T, C, Rule>(rule, n, c, x, g, states, std::make_index_sequence<States>());
  };
}

// The same formula on whole tensors: any device, layout and dtype; halves are computed in f32.
template <size_t C, class Rule, class... S> void run_anywhere(const std::array<double, C>& c, const Rule& rule,
                                                              const Tensor& p, const Tensor& g, const S&... state) {
  const NoGrad off;
  const DType compute = traits(p.dtype()).compute;
  Tensor next = p.detach().to(compute);
  [&](auto... values) {
    rule(c, next, g.detach().to(compute), values...);
    p.detach().copy_(next);
    (state.detach().copy_(values), ...);
  }(state.detach()...);
}

}  // namespace detail

// rule(c, p, g, state…) changes one element of p and of up to three states; c are the constants as numbers of p's type.
// Tensors stand for the numbers where a device cannot run it, so it assigns (m = m + g) and never adds in place (m += g):
//   fused_update(p, g, std::array{lr, 0.9}, [](auto c, auto& p, auto g, auto& m) {
//     const auto [lr, beta] = c;
//     m = beta * m + g;
//     p = p - lr * m;
//   }, state.at(0, p));
template <size_t C, class Rule, class... S> void fused_update(const Tensor& p, const Tensor& g,
                                                              const std::array<double, C>& c, const Rule& rule,
                                                              const S&... state) {
  using detail::UpdateRule;
  constexpr size_t states = sizeof...(S);
  static_assert(C <= UpdateRule::max_constants && states <= UpdateRule::max_states, "at most 10 constants, 3 states");
  const UpdateRule described{"fused_update",
                             -1,
                             int(C),
                             int(states),
                             {detail::row_of<float, C, Rule, states>(), detail::row_of<double, C, Rule, states>()},
                             &rule};
  if (!detail::run_rule(described, c.data(), p, g, {state...})) detail::run_anywhere(c, rule, p, g, state...);
}

}  // namespace volta::optim
