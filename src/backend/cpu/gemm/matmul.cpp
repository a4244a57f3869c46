// Matrix products of tensors on the CPU: hands strided, batched operands to gemm.
#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise/tables.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/fused_ops.h"

namespace volta::cpu {
namespace {

template <Fused activation, class T> void activate(T* values, int64_t n) {
  const void* in[] = {values};
  elementwise_rows(op_of(activation), 0)->by_dtype[size_t(dtype_of<T>())](n, values, in, 0);
}

Epilogue epilogue_of(const MatmulCall& call) {
  Epilogue e = {call.bias.data, 1, Activation(call.activation)};
  if (e.bias) e.bias_stride = call.bias.layout->strides[call.bias.layout->rank() - 1];
  const auto by_row = [&]<Fused a>() { e.row_f32 = &activate<a, float>, e.row_f64 = &activate<a, double>; };
  switch (call.activation) {
    case Fused::gelu: by_row.operator()<Fused::gelu>(); break;
    case Fused::gelu_tanh: by_row.operator()<Fused::gelu_tanh>(); break;
    case Fused::silu: by_row.operator()<Fused::silu>(); break;
    case Fused::tanh: by_row.operator()<Fused::tanh>(); break;
    case Fused::sigmoid: by_row.operator()<Fused::sigmoid>(); break;
    case Fused::none:
    case Fused::relu: break;
  }
  return e;
}

static_assert(int(Fused::relu) == int(Activation::relu) && int(Fused::sigmoid) == int(Activation::sigmoid));

}  // namespace

void matmul(const MatmulCall& call) {
  const int row = call.out.layout->rank() - 2, column = row + 1;
  // Plain pointers, as small products are felt by every check of an axis.
  const int64_t *a = call.a.layout->strides.begin(), *b = call.b.layout->strides.begin(),
                *c = call.out.layout->strides.begin(), *size = call.out.layout->shape.begin();
  BatchAxis batch[Shape::max_rank];
  for (int i = 0; i < row; ++i) batch[i] = {size[i], a[i], b[i], c[i]};
  gemm({call.a.dtype, size[row], size[column], call.a.layout->shape[column], Matrix{call.a.data, a[row], a[column]},
        Matrix{call.b.data, b[row], b[column]}, call.out.data, c[row], c[column], call.accumulate, epilogue_of(call),
        std::span(batch, size_t(row)), call.out.dtype});
}

}  // namespace volta::cpu
