// Matrix products of integers and of strides the library does not take, and the epilogues it does not have.
#include "backend/cuda/element.h"
#include "ops/point_activation.h"
#include "ops/point_math.h"

namespace volta::cuda {
namespace {

template <class T> __device__ T activate(T x, Fused activation) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (activation) {
      case Fused::gelu: return point::Gelu::f(x);
      case Fused::gelu_tanh: return point::GeluTanh::f(x);
      case Fused::silu: return point::Silu::f(x);
      case Fused::tanh: return point::Tanh::f(x);
      case Fused::sigmoid: return point::Sigmoid::f(x);
      default: break;
    }
  }
  return activation == Fused::relu ? scalar::max(x, T(0)) : x;
}

// What is added to a sum of type C before the activation.
struct Ending {
  DType out, bias;
  Fused activation;
  bool accumulate;
  template <class C> __device__ C added(const char* to, const char* bias_at) const {
    const C old = accumulate ? cuda::load<C>(to, out) : C(0);
    return bias_at ? C(old + cuda::load<C>(bias_at, bias)) : old;
  }
};

template <class T> struct Finish {  // out, product, bias
  Ending ending;
  DType product;
  __device__ T load(char* const* p) const { return cuda::load<T>(p[1], product) + ending.added<T>(p[0], p[2]); }
  __device__ void store(char* const* p, T x) const { cuda::store(p[0], ending.out, activate(x, ending.activation)); }
};

// Halves are summed in float; integers wrap around, as unsigned numbers do; truth values combine as any(a and b).
template <class T> using SumOf = std::conditional_t<
    is_half_type<T>, float,
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>>;

template <class T> struct Product {  // out, a, b, bias
  Ending ending;
  int64_t k, step_a, step_b;
  __device__ int load(char* const*) const { return 0; }
  __device__ void store(char* const* p, int) const {
    using C = SumOf<T>;
    C sum = 0;
#pragma unroll 4
    for (int64_t i = 0; i < k; ++i) {
      const C x = read<C, T>(p[1] + i * step_a), y = read<C, T>(p[2] + i * step_b);
      if constexpr (std::is_same_v<T, bool>) sum |= x & y;
      else sum += x * y;
    }
    sum += ending.added<C>(p[0], p[3]);
    if constexpr (std::is_integral_v<T>) cuda::store(p[0], ending.out, activate(convert<T>(sum), ending.activation));
    else cuda::store(p[0], ending.out, activate(sum, ending.activation));
  }
};

}  // namespace

void plain_product(Context& c, const MatmulCall& call) {
  const int last = call.a.layout->rank() - 1;
  const Held a(call.a, last), b(call.b, last - 1);  // both stand still along the inner axis
  const Operands<4> x(call.out.layout->shape, {&call.out, &a, &b, &call.bias});
  const Ending ending{call.out.dtype, call.bias.dtype, call.activation, call.accumulate};
  visit(a.dtype, [&]<class T>(TypeTag<T>) { each(c, "matmul", x, Product<T>{ending, a.size, a.step, b.step}); });
}

void finish_product(Context& c, const MatmulCall& call, const Arg& product, bool accumulate) {
  const Operands<3> x(call.out.layout->shape, {&call.out, &product, &call.bias});
  const Ending ending{call.out.dtype, call.bias.dtype, call.activation, accumulate};
  if (call.out.dtype == f64) each(c, "matmul", x, Finish<double>{ending, product.dtype});
  else each(c, "matmul", x, Finish<float>{ending, product.dtype});
}

}  // namespace volta::cuda
