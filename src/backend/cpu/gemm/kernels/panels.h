// Products whose operands are made panel by panel outside the GEMM, and a matrix as such an operand.
#pragma once
#include "backend/cpu/gemm/kernels/pack.h"
#include "backend/cpu/gemm/plan.h"

namespace volta::cpu::VOLTA_ISA {

void multiply_panels(const PanelProduct<float>& p);
void multiply_panels(const PanelProduct<double>& p);

namespace {

template <class T> constexpr GemmTile gemm_tile = {sizes<T>.rows(sizes<T>.vectors), sizes<T>.vectors* lanes<T>,
                                                   lanes<T>, by_lane ? 6 : 16, by_lane ? 4 : 10};

template <class T, bool any_strides>
PanelView<T> matrix_panel(const void* self, T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) {
  const View<T> v = static_cast<const MatrixOperand<T, any_strides>*>(self)->panel(buffer, i, n, tile, p, k);
  return {v.data, v.step, v.depth_step};
}
template <class T, bool any_strides>
void matrix_panels(const void* self, T* to, int64_t count, int64_t i, int64_t tile, int64_t p, int64_t k) {
  static_cast<const MatrixOperand<T, any_strides>*>(self)->panels(to, count, i, tile, p, k);
}
template <class T, bool any_strides> PanelOperand<T> operand(const MatrixOperand<T, any_strides>& m) {
  return {&m, matrix_panel<T, any_strides>, m.side_by_side() ? matrix_panels<T, any_strides> : nullptr};
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA
