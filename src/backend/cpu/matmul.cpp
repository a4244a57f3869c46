// Matrix products of tensors on the CPU: hands strided, batched operands to gemm.
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/point.h"

namespace volta::cpu {
namespace {

template <class Op, class T> void activate(T* values, int64_t n) {
  const void* in[] = {values};
  point_rows(index_of<Op>(PointOps{}), 0)->by_dtype[size_t(dtype_of<T>())](n, values, in, 0);
}

Epilogue epilogue_of(const MatmulCall& call) {
  Epilogue e = {call.bias.data, 1, Activation(call.activation)};
  if (e.bias) e.bias_stride = call.bias.layout->strides[call.bias.layout->rank() - 1];
  const auto by_row = [&]<class Op>(Op) { e.row_f32 = &activate<Op, float>, e.row_f64 = &activate<Op, double>; };
  switch (call.activation) {
    case Fused::gelu: by_row(point::Gelu{}); break;
    case Fused::gelu_tanh: by_row(point::GeluTanh{}); break;
    case Fused::silu: by_row(point::Silu{}); break;
    case Fused::tanh: by_row(point::Tanh{}); break;
    case Fused::sigmoid: by_row(point::Sigmoid{}); break;
    case Fused::none:
    case Fused::relu: break;
  }
  return e;
}

static_assert(int(Fused::relu) == int(Activation::relu) && int(Fused::sigmoid) == int(Activation::sigmoid));

}  // namespace

void matmul(const MatmulCall& call) {
  const Layout &a = *call.a.layout, &b = *call.b.layout, &c = *call.out.layout;
  const int row = c.rank() - 2, column = c.rank() - 1;
  BatchAxis batch[Shape::max_rank];
  for (int i = 0; i < row; ++i) batch[i] = {c.shape[i], a.strides[i], b.strides[i], c.strides[i]};
  const int64_t m = c.shape[row], n = c.shape[column], k = a.shape[column];
  const Matrix first = {call.a.data, a.strides[row], a.strides[column]};
  const Matrix second = {call.b.data, b.strides[row], b.strides[column]};
  gemm({call.a.dtype, m, n, k, first, second, call.out.data, c.strides[row], c.strides[column], call.accumulate,
        epilogue_of(call), std::span(batch, size_t(row)), call.out.dtype});
}

}  // namespace volta::cpu
