// Strided geometry: how host code describes operands, what kernels take by value, and the kernel for one element at a
// time. Divisions are by magic numbers.
#pragma once
#include <array>
#include <bit>

#include "backend/cuda/context.h"
#include "core/check.h"
#include "core/strided_loop.h"

namespace volta::cuda {

// What an operand steps by along an axis, in bytes; one without a layout stands still.
inline int64_t step_of(const Arg& x, int axis, int rank) {
  return x.layout && axis < rank ? broadcast_stride(*x.layout, axis, rank) * size_of(x.dtype) : 0;
}

template <int N> using Args = std::array<const Arg*, size_t(N)>;

// Operands that are walked together (strides in bytes), and where they begin. One without memory begins at null: if it
// has a layout, its "addresses" count.
template <int N> struct Operands : StridedLoop<N> {
  char* data[N] = {};

  Operands() = default;
  Operands(int64_t n, const int64_t (&strides)[N]) {
    this->add_axis(n, strides);
    this->finish();
  }
  // Over a shape they broadcast to, without the axes whose bits `left_out` has.
  Operands(const Shape& shape, const Args<N>& args, uint32_t left_out = 0) {
    for (int k = 0; k < N; ++k) data[k] = static_cast<char*>(args[size_t(k)]->data);
    for (int i = 0; i < shape.size(); ++i) {
      int64_t strides[N];
      for (int k = 0; k < N; ++k) strides[k] = step_of(*args[size_t(k)], i, shape.size());
      if (!(left_out >> i & 1)) this->add_axis(shape[i], strides);
    }
    this->finish();
  }
  int64_t count() const { return this->rows() * this->size[0]; }

  // Its low bits tell what powers of two the address of operand k and its strides, from an axis on, are multiples of.
  uintptr_t low_bits(int k, int axis) const {
    uintptr_t bits = reinterpret_cast<uintptr_t>(data[k]);
    for (int i = axis; i < this->rank; ++i) bits |= uintptr_t(this->stride[i][k]);
    return bits;
  }
};

// An operand that stands still along one axis, which kernels step along by themselves.
struct Held : Arg {
  Layout rest;
  int64_t size, step;  // of that axis; in bytes
  Held(const Arg& x, int axis) : Arg(x), rest(*x.layout), size(rest.shape[axis]) {
    step = rest.strides[axis] * size_of(dtype);
    rest.strides[axis] = 0;
    layout = &rest;
  }
  Held(const Held&) = delete;
};

// n / size for n below 2^31 by one multiplication (Granlund and Montgomery).
struct Divisor {
  uint32_t size = 1, magic = 1, shift = 0;
  Divisor() = default;
  explicit Divisor(uint32_t n) : size(n), shift(uint32_t(std::bit_width(n - 1))) {
    magic = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - n)) / n + 1);
  }
  VOLTA_HD uint32_t divide(uint32_t n) const { return (uint32_t((uint64_t(n) * magic) >> 32) + n) >> shift; }
};

// Operands as kernels take them: n elements, axes innermost first.
template <int N> struct Strided {
  uint32_t n = 1;
  int rank = 1;
  Divisor axis[Shape::max_rank];
  int64_t stride[Shape::max_rank][N];
  char* data[N] = {};

  Strided() = default;
  explicit Strided(const Operands<N>& x) : n(uint32_t(x.count())), rank(x.rank) {
    for (int a = 0; a < rank; ++a) {
      axis[a] = Divisor(uint32_t(std::max<int64_t>(x.size[a], 1)));
      std::copy(x.stride[a], x.stride[a] + N, stride[a]);
    }
    std::copy(x.data, x.data + N, data);
  }
};

// AxisRows along one axis of operands: a kernel finds the place of a line, and steps along it.
template <int N> struct AxisRows {
  Strided<N> lines;
  int64_t n, step[N];  // elements of a line, and bytes from one to the next
  DType dtype[N];
  AxisRows(const Shape& shape, const Args<N>& args, int axis) : n(shape[axis]) {
    for (int k = 0; k < N; ++k) {
      step[k] = step_of(*args[size_t(k)], axis, shape.size());
      dtype[k] = args[size_t(k)]->dtype;
    }
  }
};

inline constexpr int64_t chunk_limit = int64_t(1) << 30;  // elements a kernel counts in 32 bits

// Calls f(Strided<N>) for pieces of at most `limit` elements.
template <int N, class F> void in_chunks(const Operands<N>& x, F&& f, int64_t limit = chunk_limit) {
  if (x.count() <= limit) return f(Strided<N>(x));
  const int last = x.rank - 1;
  const int64_t step = std::max<int64_t>(1, limit / (x.count() / x.size[last]));
  for (int64_t begin = 0; begin < x.size[last]; begin += step) {
    Operands<N> piece = x;
    piece.size[last] = std::min(step, x.size[last] - begin);
    if (piece.size[last] == 1 && last > 0) piece.rank = last;
    for (int k = 0; k < N; ++k) piece.data[k] += begin * x.stride[last][k];
    in_chunks(piece, f, limit);
  }
}

inline unsigned blocks_for(int64_t n, int64_t each) { return unsigned((n + each - 1) / each); }

// Starts a kernel on the device's stream, with `shared` bytes of memory that its blocks ask for at run time.
template <class... P> void launch_with(int shared, const Context& c, const char* op, void (*kernel)(P...), dim3 grid,
                                       dim3 block, const std::type_identity_t<P>&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  const auto* function = reinterpret_cast<const void*>(kernel);
  check(cudaLaunchKernel(function, grid, block, pointers, size_t(shared), c.stream()), op);
  after_launch(c, op);
}
template <class... P> void launch(const Context& c, const char* op, void (*kernel)(P...), dim3 grid, dim3 block,
                                  const std::type_identity_t<P>&... arguments) {
  launch_with(0, c, op, kernel, grid, block, arguments...);
}

inline constexpr int threads = 256;  // of a block

// Calls f(0), …, f(N - 1) without a loop.
template <int N, class F> __device__ __forceinline__ void unroll(F f) {
#pragma unroll
  for (int i = 0; i < N; ++i) f(i);
}

// The addresses of the first K operands at U elements, whose indices are used up. Offsets are summed before the bases
// are added: it takes half the registers.
template <int U, int K> struct Places {
  char* p[U][K];
  template <int N> __device__ Places(const Strided<N>& g, uint32_t (&index)[U]) {
    int64_t offset[U][K] = {};
    const auto step = [&](int u, uint32_t by, int axis) {
      unroll<K>([&](int k) { offset[u][k] += int64_t(by) * g.stride[axis][k]; });
    };
#pragma unroll 1
    for (int a = 0; a + 1 < g.rank; ++a)
      unroll<U>([&](int u) {
        const uint32_t outer = g.axis[a].divide(index[u]);
        step(u, index[u] - outer * g.axis[a].size, a);
        index[u] = outer;
      });
    unroll<U>([&](int u) { step(u, index[u], g.rank - 1); });
    unroll<U>([&](int u) { unroll<K>([&](int k) { p[u][k] = g.data[k] + offset[u][k]; }); });
  }
};
template <int N> __device__ inline Places<1, N> place(const Strided<N>& g, uint32_t i) {
  uint32_t index[] = {i};
  return Places<1, N>(g, index);
}
__device__ inline int64_t counted(const void* address) { return reinterpret_cast<int64_t>(address); }

// The elements of one thread: U of them, `threads` apart. Beyond the end it is the first of all.
template <int U> struct Share {
  uint32_t index[U];
  int count;
  __device__ explicit Share(uint32_t n) {
    const uint32_t first = blockIdx.x * (threads * U) + threadIdx.x;
    count = first < n ? int((n - first + threads - 1) / threads) : 0;
    unroll<U>([&](int u) { index[u] = u < count ? first + u * threads : 0; });
  }
};

inline constexpr int each_per_thread = 4;

// All loads of a thread are on their way before the first store.
template <int N, class F> __global__ __launch_bounds__(threads) void each_element(const __grid_constant__ Strided<N> g,
                                                                                  const __grid_constant__ F f) {
  constexpr int U = each_per_thread;
  Share<U> share(g.n);
  if (share.count == 0) return;
  const Places<U, N> places(g, share.index);
  decltype(f.load(places.p[0])) held[U];
  unroll<U>([&](int u) { held[u] = f.load(places.p[u]); });
  unroll<U>([&](int u) {
    if (u < share.count) f.store(places.p[u], held[u]);
  });
}

// Runs f.store(p, f.load(p)) with the addresses p of every element. Loads may be repeated.
template <int N, class F> void each(const Context& c, const char* op, const Operands<N>& x, const F& f) {
  in_chunks(x, [&](const Strided<N>& g) {
    launch(c, op, &each_element<N, F>, blocks_for(g.n, threads * each_per_thread), threads, g, f);
  });
}

// f(TypeTag<W>{}) with an unsigned type of `size` bytes.
template <class F> void with_word(int64_t size, F f) {
  switch (size) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 4: return f(TypeTag<uint32_t>{});
    case 8: return f(TypeTag<uint64_t>{});
    default: return f(TypeTag<uint4>{});
  }
}

// Runs F<Word>{parts…} over elements of `size` bytes that are merged, along the innermost axis, into words of at most
// 16 bytes. Operands whose bit `moved` lacks must stand still along that axis, or nothing is merged; what the functor
// steps by itself is a multiple of `step`.
template <template <class> class F, int N, class... P> void each_word(const Context& c, const char* op, Operands<N> x,
                                                                      int64_t size, uint32_t moved, int64_t step,
                                                                      const P&... parts) {
  const auto moves = [&](int k) { return (moved >> k & 1) != 0; };
  uintptr_t low = uintptr_t(x.size[0] * size) | uintptr_t(step);
  bool dense = true;
  for (int k = 0; k < N; ++k) {
    dense = dense && x.stride[0][k] == (moves(k) ? size : 0);
    if (moves(k)) low |= x.low_bits(k, 1);
  }
  int64_t word = dense ? 16 : size;
  while (word > size && low % uintptr_t(word) != 0) word /= 2;
  x.size[0] = x.size[0] * size / word;
  for (int k = 0; dense && k < N; ++k)
    if (moves(k)) x.stride[0][k] = word;
  with_word(word, [&]<class Word>(TypeTag<Word>) { each(c, op, x, F<Word>{parts...}); });
}

}  // namespace volta::cuda
