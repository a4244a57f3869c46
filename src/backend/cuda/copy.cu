// Copies on the GPU: whole memory by the driver, strided elements as words as wide as the layouts allow, transpositions
// through tiles of shared memory, conversions, and filling.
#include <cstring>

#include "backend/cuda/element.h"
#include "backend/cuda/loops.h"
#include "backend/cuda/widen.h"

namespace volta::cuda {
namespace {

constexpr int threads = 256, per_thread = 4, tile = 32, tile_rows = 8;

struct CopyArgs {
  Strided<2> geometry;  // out, in
  char* out;
  const char* in;
  DType to, from;
};

// The elements of one thread, `threads` apart.
struct Span {
  uint32_t first;
  int count;
  __device__ explicit Span(uint32_t n) : first(blockIdx.x * (threads * per_thread) + threadIdx.x) {
    count = first < n ? int((n - first + threads - 1) / threads) : 0;
  }
  __device__ uint32_t at(int u) const { return u < count ? first + u * threads : first; }
};

template <class Word> __global__ __launch_bounds__(threads) void copy_words(const __grid_constant__ CopyArgs a) {
  const Span span(a.geometry.n);
  if (span.count == 0) return;
  uint32_t index[per_thread];
  int64_t offset[per_thread][2];
  for (int u = 0; u < per_thread; ++u) index[u] = span.at(u);
  offsets(a.geometry, index, offset);
  Word held[per_thread];
#pragma unroll
  for (int u = 0; u < per_thread; ++u) held[u] = *reinterpret_cast<const Word*>(a.in + offset[u][1]);
#pragma unroll
  for (int u = 0; u < per_thread; ++u)
    if (u < span.count) *reinterpret_cast<Word*>(a.out + offset[u][0]) = held[u];
}

template <class To> __global__ __launch_bounds__(threads) void convert_elements(const __grid_constant__ CopyArgs a) {
  const Span span(a.geometry.n);
  if (span.count == 0) return;
  uint32_t index[per_thread];
  int64_t offset[per_thread][2];
  for (int u = 0; u < per_thread; ++u) index[u] = span.at(u);
  offsets(a.geometry, index, offset);
  To held[per_thread];
  visit_element(a.from, [&]<class From>(TypeTag<From>) {
#pragma unroll
    for (int u = 0; u < per_thread; ++u) held[u] = read<To, From>(a.in + offset[u][1]);
  });
#pragma unroll
  for (int u = 0; u < per_thread; ++u)
    if (u < span.count) *reinterpret_cast<To*>(a.out + offset[u][0]) = held[u];
}

// Contiguous conversion between f32 and the halves: packs of 8 elements.
template <class To, class From>
__global__ __launch_bounds__(threads) void convert_packs(int64_t n, To* out, const From* in) {
  constexpr int V = 8;
  const int64_t i = (int64_t(blockIdx.x) * threads + threadIdx.x) * V;
  if (i + V <= n) {
    struct alignas(16) Source {
      From v[V];
    };
    struct alignas(16) Target {
      To v[V];
    };
    const Source source = *reinterpret_cast<const Source*>(in + i);
    Target target;
#pragma unroll
    for (int j = 0; j < V; ++j) target.v[j] = convert<To>(source.v[j]);
    *reinterpret_cast<Target*>(out + i) = target;
  } else {
    for (int64_t j = i; j < n; ++j) out[j] = convert<To>(in[j]);
  }
}

// Two axes swap places: `out` is contiguous along x, `in` along y.
struct TransposeArgs {
  Strided<2> rest;  // the other axes
  char* out;
  const char* in;
  int64_t nx, ny, out_y, in_x;  // sizes; strides in bytes
};

template <class Word>
__global__ __launch_bounds__(tile* tile_rows) void transpose(const __grid_constant__ TransposeArgs a) {
  __shared__ Word held[tile][tile + 1];
  int64_t base[2];
  offsets(a.rest, blockIdx.z, base);
  const int64_t x0 = int64_t(blockIdx.x) * tile, y0 = int64_t(blockIdx.y) * tile;
  for (int r = threadIdx.y; r < tile; r += tile_rows) {
    const int64_t x = x0 + r, y = y0 + threadIdx.x;
    if (x < a.nx && y < a.ny)
      held[r][threadIdx.x] = *reinterpret_cast<const Word*>(a.in + base[1] + x * a.in_x + y * int64_t(sizeof(Word)));
  }
  __syncthreads();
  for (int r = threadIdx.y; r < tile; r += tile_rows) {
    const int64_t x = x0 + threadIdx.x, y = y0 + r;
    if (x < a.nx && y < a.ny)
      *reinterpret_cast<Word*>(a.out + base[0] + y * a.out_y + x * int64_t(sizeof(Word))) = held[threadIdx.x][r];
  }
}

template <class Word>
__global__ __launch_bounds__(threads) void fill_words(const __grid_constant__ CopyArgs a, Word value) {
  const Span span(a.geometry.n);
  if (span.count == 0) return;
  uint32_t index[per_thread];
  int64_t offset[per_thread][2];
  for (int u = 0; u < per_thread; ++u) index[u] = span.at(u);
  offsets(a.geometry, index, offset);
#pragma unroll
  for (int u = 0; u < per_thread; ++u)
    if (u < span.count) *reinterpret_cast<Word*>(a.out + offset[u][0]) = value;
}

struct IotaArgs {
  char* out;
  int64_t n, stride;
  double start, step;
  uint64_t whole_start, whole_step;
  DType dtype;
};

__global__ void iota_elements(const __grid_constant__ IotaArgs a) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.n; i += int64_t(gridDim.x) * blockDim.x) {
    char* p = a.out + i * a.stride;
    if (a.dtype <= DType::f64) store_other(p, a.dtype, __dadd_rn(a.start, __dmul_rn(double(i), a.step)));
    else store_other(p, a.dtype, int64_t(a.whole_start + uint64_t(i) * a.whole_step));
  }
}

unsigned blocks_of(uint32_t n) { return blocks_for(n, threads * per_thread); }

void copy_pieces(Context& c, const Walk<2>& walk, const Arg& out, const Arg& in, void (*kernel)(CopyArgs)) {
  in_chunks(walk, [&](const Strided<2>& g, const auto& base) {
    const CopyArgs a{g, static_cast<char*>(out.data) + base[0], static_cast<const char*>(in.data) + base[1], out.dtype,
                     in.dtype};
    launch(c, "copy", kernel, blocks_of(g.n), threads, a);
  });
}

// Tries to run the walk as a transposition of two of its axes.
bool copy_transposed(Context& c, const Walk<2>& walk, const Arg& out, const Arg& in) {
  const int64_t size = size_of(out.dtype);
  if (walk.rank < 2 || walk.stride[0][0] != size || walk.stride[0][1] == size || walk.size[0] < 8) return false;
  int y = 1;
  while (y < walk.rank && walk.stride[y][1] != size) ++y;
  if (y == walk.rank || walk.size[y] < 8) return false;
  Walk<2> rest;
  rest.rank = 0;
  for (int i = 1; i < walk.rank; ++i)
    if (i != y) {
      rest.size[rest.rank] = walk.size[i];
      std::copy(walk.stride[i], walk.stride[i] + 2, rest.stride[rest.rank++]);
    }
  if (rest.rank == 0) {
    rest.rank = 1;
    rest.size[0] = 1;
    rest.stride[0][0] = rest.stride[0][1] = 0;
  }
  const int64_t others = rest.rows() * rest.size[0], tiles_y = (walk.size[y] + tile - 1) / tile;
  if (others > 65535 || tiles_y > 65535 || walk.size[0] > (int64_t(1) << 36)) return false;
  const TransposeArgs a{strided(rest),
                        static_cast<char*>(out.data),
                        static_cast<const char*>(in.data),
                        walk.size[0],
                        walk.size[y],
                        walk.stride[y][0],
                        walk.stride[0][1]};
  const auto kernel = size == 1   ? &transpose<uint8_t>
                      : size == 2 ? &transpose<uint16_t>
                      : size == 4 ? &transpose<uint32_t>
                                  : &transpose<uint64_t>;
  launch(c, "copy", kernel, dim3(blocks_for(walk.size[0], tile), unsigned(tiles_y), unsigned(others)),
         dim3(tile, tile_rows), a);
  return true;
}

void copy_same(Context& c, Walk<2> walk, const Arg& out, const Arg& in) {
  if (copy_transposed(c, walk, out, in)) return;
  switch (widen_words<2>(walk, size_of(out.dtype), {out.data, in.data}, {true, true})) {
    case 1: return copy_pieces(c, walk, out, in, &copy_words<uint8_t>);
    case 2: return copy_pieces(c, walk, out, in, &copy_words<uint16_t>);
    case 4: return copy_pieces(c, walk, out, in, &copy_words<uint32_t>);
    case 8: return copy_pieces(c, walk, out, in, &copy_words<uint64_t>);
    default: return copy_pieces(c, walk, out, in, &copy_words<uint4>);
  }
}

template <class To, class From> void launch_packs(Context& c, int64_t n, const Arg& out, const Arg& in) {
  launch(c, "copy", &convert_packs<To, From>, blocks_for(n, threads * 8), threads, n, static_cast<To*>(out.data),
         static_cast<const From*>(in.data));
}

bool convert_contiguous(Context& c, int64_t n, const Arg& out, const Arg& in) {
  if ((reinterpret_cast<uintptr_t>(out.data) | reinterpret_cast<uintptr_t>(in.data)) % 16 != 0) return false;
  const auto from_to = [&](DType from, DType to) { return in.dtype == from && out.dtype == to; };
  if (from_to(f32, bf16)) launch_packs<bfloat16, float>(c, n, out, in);
  else if (from_to(f32, f16)) launch_packs<float16, float>(c, n, out, in);
  else if (from_to(bf16, f32)) launch_packs<float, bfloat16>(c, n, out, in);
  else if (from_to(f16, f32)) launch_packs<float, float16>(c, n, out, in);
  else return false;
  return true;
}

template <class Word> void fill_pieces(Context& c, const Walk<2>& walk, void* out, Word value) {
  in_chunks(walk, [&](const Strided<2>& g, const auto& base) {
    const CopyArgs a{g, static_cast<char*>(out) + base[0], nullptr, f32, f32};
    launch(c, "fill", &fill_words<Word>, blocks_of(g.n), threads, a, value);
  });
}

void fill(Context& c, Walk<2> walk, const Arg& out, const Scalar& scalar) {
  const int64_t size = size_of(out.dtype);
  alignas(16) char pattern[16];
  visit(out.dtype, [&]<class T>(TypeTag<T>) {
    const T value = scalar.as<T>();
    for (size_t i = 0; i < sizeof pattern; i += sizeof(T)) std::memcpy(pattern + i, &value, sizeof(T));
  });
  const auto as = [&]<class Word>(Word word) {
    std::memcpy(&word, pattern, sizeof word);
    fill_pieces(c, walk, out.data, word);
  };
  switch (widen_words<2>(walk, size, {out.data, nullptr}, {true, false})) {
    case 1: return as(uint8_t());
    case 2: return as(uint16_t());
    case 4: return as(uint32_t());
    case 8: return as(uint64_t());
    default: return as(uint4());
  }
}

}  // namespace

void copy(Context& c, const Arg& out, const Arg& in) {
  const Layout& y = *out.layout;
  if (y.numel() == 0) return;
  Walk<2> walk;
  for (int i = 0; i < y.rank(); ++i) {
    const int64_t strides[] = {y.strides[i] * size_of(out.dtype),
                               in.layout ? in.layout->strides[i] * size_of(in.dtype) : 0};
    walk.add_axis(y.shape[i], strides);
  }
  walk.finish();
  if (!in.layout) return fill(c, walk, out, in.scalar);
  const bool contiguous =
      walk.rank == 1 &&
      (walk.size[0] == 1 || (walk.stride[0][0] == size_of(out.dtype) && walk.stride[0][1] == size_of(in.dtype)));
  if (out.dtype == in.dtype) {
    if (!contiguous) return copy_same(c, walk, out, in);
    const size_t bytes = size_t(walk.size[0] * size_of(out.dtype));
    return check(cudaMemcpyAsync(out.data, in.data, bytes, cudaMemcpyDeviceToDevice, c.stream), "copy");
  }
  if (contiguous && convert_contiguous(c, walk.size[0], out, in)) return;
  visit(out.dtype, [&]<class To>(TypeTag<To>) { copy_pieces(c, walk, out, in, &convert_elements<To>); });
}

void iota(Context& c, const Arg& out, Scalar start, Scalar step) {
  const int64_t n = out.layout->numel();
  if (n == 0) return;
  const int64_t stride = out.layout->rank() > 0 ? out.layout->strides[0] * size_of(out.dtype) : 0;
  const IotaArgs a{
      static_cast<char*>(out.data), n,        stride, start.as<double>(), step.as<double>(), start.as<uint64_t>(),
      step.as<uint64_t>(),          out.dtype};
  launch(c, "arange", &iota_elements, unsigned(std::min<int64_t>(blocks_for(n, threads), 4096)), threads, a);
}

}  // namespace volta::cuda
