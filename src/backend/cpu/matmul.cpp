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

template <class Op> void set_rows(Epilogue& e) {
  e.row_f32 = &activate<Op, float>;
  e.row_f64 = &activate<Op, double>;
}

Epilogue epilogue_of(const MatmulCall& call) {
  Epilogue e;
  e.activation = Activation(call.activation);
  if (call.bias.data) {
    e.bias = call.bias.data;
    e.bias_stride = call.bias.layout->strides[call.bias.layout->rank() - 1];
  }
  switch (call.activation) {
    case Fused::gelu: set_rows<point::Gelu>(e); break;
    case Fused::gelu_tanh: set_rows<point::GeluTanh>(e); break;
    case Fused::silu: set_rows<point::Silu>(e); break;
    case Fused::tanh: set_rows<point::Tanh>(e); break;
    case Fused::sigmoid: set_rows<point::Sigmoid>(e); break;
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
  Gemm g{call.a.dtype,
         c.shape[row],
         c.shape[column],
         a.shape[column],
         {call.a.data, a.strides[row], a.strides[column]},
         {call.b.data, b.strides[row], b.strides[column]},
         call.out.data,
         c.strides[row],
         c.strides[column]};
  g.accumulate = call.accumulate;
  g.epilogue = epilogue_of(call);
  g.batch = std::span(batch, size_t(row));
  g.c_dtype = call.out.dtype;
  gemm(g);
}

}  // namespace volta::cpu
