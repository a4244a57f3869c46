// Matrix products of integers and of strides the library does not take, and the epilogues it does not have.
#include "backend/cuda/element.h"
#include "backend/cuda/matmul.h"
#include "ops/point_activation.h"
#include "ops/point_math.h"

namespace volta::cuda {
namespace {

constexpr int tile = 16, threads = 256;

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

struct MatrixArgs {
  char* data;
  int64_t row, column;  // strides in bytes
};

struct TiledArgs {
  Strided<3> batch;  // out, a, b
  MatrixArgs out, a, b;
  int64_t m, n, k;
  const char* bias;
  int64_t bias_step;
  Fused activation;
  bool accumulate;
  DType out_dtype;
};

// Halves are summed in float; integers wrap around; truth values combine as any(a and b).
template <class T> using SumOf = std::conditional_t<
    is_half_type<T>, float,
    std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4 && !std::is_same_v<T, bool>, int32_t, T>>;

template <class T> __global__ __launch_bounds__(tile* tile) void tiled(const __grid_constant__ TiledArgs g) {
  using C = SumOf<T>;
  using Wrapping = std::conditional_t<std::is_integral_v<C>,
                                      std::make_unsigned<std::conditional_t<std::is_same_v<C, bool>, uint32_t, C>>,
                                      std::type_identity<C>>;
  using W = typename Wrapping::type;
  __shared__ W left[tile][tile + 1], right[tile][tile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t column = int64_t(blockIdx.x) * tile + tx;
  for (uint32_t matrix = blockIdx.z; matrix < g.batch.n; matrix += gridDim.z)
    for (int64_t row0 = int64_t(blockIdx.y) * tile; row0 < g.m; row0 += int64_t(gridDim.y) * tile) {
      int64_t base[3];
      offsets(g.batch, matrix, base);
      const int64_t row = row0 + ty;
      W sum = 0;
      for (int64_t k0 = 0; k0 < g.k; k0 += tile) {
        const char* a = g.a.data + base[1] + row * g.a.row + (k0 + tx) * g.a.column;
        const char* b = g.b.data + base[2] + (k0 + ty) * g.b.row + column * g.b.column;
        left[ty][tx] = row < g.m && k0 + tx < g.k ? W(read<C, T>(a)) : W(0);
        right[ty][tx] = k0 + ty < g.k && column < g.n ? W(read<C, T>(b)) : W(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < tile; ++i) {
          if constexpr (std::is_same_v<T, bool>) sum |= left[ty][i] & right[i][tx];
          else sum += left[ty][i] * right[i][tx];
        }
        __syncthreads();
      }
      if (row >= g.m || column >= g.n) continue;
      char* p = g.out.data + base[0] + row * g.out.row + column * g.out.column;
      if (g.accumulate) sum += W(load<C>(p, g.out_dtype));
      if (g.bias) sum += W(load<C>(g.bias + column * g.bias_step, g.out_dtype));
      if constexpr (std::is_integral_v<T>) store(p, g.out_dtype, activate(convert<T>(sum), g.activation));
      else store(p, g.out_dtype, activate(C(sum), g.activation));
    }
}

struct FinishArgs {
  Strided<3> geometry;  // out, product, bias
  char* out;
  const char *product, *bias;
  DType dtype, product_dtype, bias_dtype;
  Fused activation;
  bool accumulate;
};

template <class T> __global__ __launch_bounds__(threads) void finish(const __grid_constant__ FinishArgs a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[3];
  offsets(a.geometry, i, offset);
  T x = load<T>(a.product + offset[1], a.product_dtype);
  if (a.accumulate) x += load<T>(a.out + offset[0], a.dtype);
  if (a.bias) x += load<T>(a.bias + offset[2], a.bias_dtype);
  store(a.out + offset[0], a.dtype, activate(x, a.activation));
}

int64_t bias_step(const MatmulCall& call) {
  const Layout& bias = *call.bias.layout;
  const bool single = bias.rank() == 0 || bias.shape.back() == 1;
  return single ? 0 : bias.strides.back() * size_of(call.bias.dtype);
}

MatrixArgs matrix(const Arg& x) {
  const int row = x.layout->rank() - 2;
  const int64_t size = size_of(x.dtype);
  return {static_cast<char*>(x.data), x.layout->strides[row] * size, x.layout->strides[row + 1] * size};
}

}  // namespace

void tiled_product(Context& c, const MatmulCall& call) {
  const Layout &a = *call.a.layout, &b = *call.b.layout, &out = *call.out.layout;
  const int row = out.rank() - 2;
  Walk<3> walk;
  for (int i = 0; i < row; ++i) {
    const int64_t strides[] = {out.strides[i] * size_of(call.out.dtype), a.strides[i] * size_of(call.a.dtype),
                               b.strides[i] * size_of(call.b.dtype)};
    walk.add_axis(out.shape[i], strides);
  }
  walk.finish();
  TiledArgs g{{},
              matrix(call.out),
              matrix(call.a),
              matrix(call.b),
              out.shape[row],
              out.shape[row + 1],
              a.shape[row + 1],
              nullptr,
              0,
              call.activation,
              call.accumulate,
              call.out.dtype};
  if (call.bias.data) {
    g.bias = static_cast<const char*>(call.bias.data);
    g.bias_step = bias_step(call);
  }
  in_chunks(walk, [&](const Strided<3>& batch, const auto& base) {
    TiledArgs piece = g;
    piece.batch = batch;
    piece.out.data += base[0];
    piece.a.data += base[1];
    piece.b.data += base[2];
    const dim3 grid(blocks_for(g.n, tile), unsigned(std::min<int64_t>(blocks_for(g.m, tile), 65535)),
                    std::min(batch.n, 65535u));
    visit(call.a.dtype, [&]<class T>(TypeTag<T>) { launch(c, "matmul", &tiled<T>, grid, dim3(tile, tile), piece); });
  });
}

void finish_product(Context& c, const MatmulCall& call, const Arg& product, bool accumulate) {
  const Layout &out = *call.out.layout, &source = *product.layout;
  Walk<3> walk;
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t bias = call.bias.data && i == out.rank() - 1 ? bias_step(call) : 0;
    const int64_t strides[] = {out.strides[i] * size_of(call.out.dtype), source.strides[i] * size_of(product.dtype),
                               bias};
    walk.add_axis(out.shape[i], strides);
  }
  walk.finish();
  FinishArgs a{};
  a.bias = static_cast<const char*>(call.bias.data);
  a.dtype = call.out.dtype;
  a.product_dtype = product.dtype;
  a.bias_dtype = call.bias.dtype;
  a.activation = call.activation;
  a.accumulate = accumulate;
  in_chunks(walk, [&](const Strided<3>& g, const auto& base) {
    FinishArgs piece = a;
    piece.geometry = g;
    piece.out = static_cast<char*>(call.out.data) + base[0];
    piece.product = static_cast<const char*>(product.data) + base[1];
    if (piece.bias) piece.bias += base[2];
    launch(c, "matmul", call.out.dtype == f64 ? &finish<double> : &finish<float>, blocks_for(g.n, threads), threads,
           piece);
  });
}

}  // namespace volta::cuda
