// Rows of the update rules.
#include "backend/cpu/update/kernels.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Parameters keep the promise not to overlap; without it this is no vector loop.
template <class Rule, class T> [[gnu::noinline]] void run(int64_t n, const T* constants, T* __restrict x,
                                                          const T* __restrict g, T* __restrict s0, T* __restrict s1,
                                                          T* __restrict s2) {
  T c[UpdateRule::max_constants];
  for (int i = 0; i < Rule::constants; ++i) c[i] = constants[i];
  for (int64_t i = 0; i < n; ++i) {
    T s[UpdateRule::max_states] = {}, value = x[i];
    if constexpr (Rule::states > 0) s[0] = s0[i];
    if constexpr (Rule::states > 1) s[1] = s1[i];
    if constexpr (Rule::states > 2) s[2] = s2[i];
    Rule::f(c, value, g[i], s);
    x[i] = value;
    if constexpr (Rule::states > 0) s0[i] = s[0];
    if constexpr (Rule::states > 1) s1[i] = s[1];
    if constexpr (Rule::states > 2) s2[i] = s[2];
  }
}

template <class Rule, class T>
void row(const void*, int64_t n, const double* constants, void* x, const void* g, void* const* states) {
  T c[UpdateRule::max_constants] = {};
  for (int i = 0; i < Rule::constants; ++i) c[i] = T(constants[i]);
  T* s[UpdateRule::max_states] = {};
  for (int k = 0; k < Rule::states; ++k) s[k] = static_cast<T*>(states[k]);
  run<Rule, T>(n, c, static_cast<T*>(x), static_cast<const T*>(g), s[0], s[1], s[2]);
}

template <class... Rules> constexpr UpdateRows table_of(List<Rules...>) {
  return {{{row<Rules, float>, row<Rules, double>}...}};
}
constexpr UpdateRows table = table_of(UpdateRules{});

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::UpdateRows& volta::cpu::update_rows<volta::cpu::Isa::VOLTA_ISA>() {
  return VOLTA_ISA::table;
}
