// one_pass: an update rule, written once as a formula for one element, run in one pass over memory on all threads.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include <volta/autograd.h>
#include <volta/ops.h>

namespace volta::optim {

namespace detail {

// Calls part(begin, end) over [0, count), on several threads where that pays.
void split(int64_t count, const std::function<void(int64_t, int64_t)>& part);
void changed(const Tensor& x);  // tells the graph that x was written to

// Not inlined: only parameters keep the promise that they do not overlap, without which this is no vector loop.
template <class T, size_t C, class Rule, class... S>
[[gnu::noinline]] void run_rule(int64_t begin, int64_t end, const std::array<T, C>& c, Rule rule, T* __restrict p,
                                const T* __restrict g, S* __restrict... state) {
  for (int64_t i = begin; i < end; ++i) rule(c, p[i], g[i], state[i]...);
}

template <class T, size_t C, class Rule, class... S>
void run_fast(const std::array<double, C>& constants, Rule rule, const Tensor& p, const Tensor& g, const S&... state) {
  std::array<T, C> c;
  for (size_t i = 0; i < C; ++i) c[i] = T(constants[i]);
  const auto part = [&](int64_t begin, int64_t end) {
    run_rule<T>(begin, end, c, rule, p.data<T>(), static_cast<const T*>(g.data<T>()), state.template data<T>()...);
  };
  split(p.numel(), std::cref(part));
  (changed(p), ..., changed(state));
}

// The same formula on whole tensors: any device, layout and dtype; halves are computed in f32.
template <size_t C, class Rule, class... S>
void run_anywhere(const std::array<double, C>& c, Rule rule, const Tensor& p, const Tensor& g, const S&... state) {
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

// rule(c, p, g, state…) changes one element of p and of the state; c are the constants as numbers of p's type. Tensors
// stand for the numbers where memory is not plain, so it assigns (m = m + g) and never adds in place (m += g):
//   one_pass(p, g, std::array{lr, 0.9}, [](auto c, auto& p, auto g, auto& m) {
//     const auto [lr, beta] = c;
//     m = beta * m + g;
//     p = p - lr * m;
//   }, state.at(0, p));
template <size_t C, class Rule, class... S>
void one_pass(const Tensor& p, const Tensor& g, const std::array<double, C>& c, Rule rule, const S&... state) {
  const DType t = p.dtype();
  const bool fast = p.device().is_cpu() && p.is_contiguous() && (state.is_contiguous() && ... && true) &&
                    g.dtype() == t && ((state.dtype() == t) && ... && true) && g.shape() == p.shape() &&
                    ((state.shape() == p.shape()) && ... && true);
  if (fast && t == f32) detail::run_fast<float>(c, rule, p, g.contiguous(), state...);
  else if (fast && t == f64) detail::run_fast<double>(c, rule, p, g.contiguous(), state...);
  else detail::run_anywhere(c, rule, p, g, state...);
}

}  // namespace volta::optim
