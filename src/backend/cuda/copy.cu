// Copies on the GPU: whole memory by the driver, strided elements as words as wide as the layouts allow, transpositions
// through tiles of shared memory, conversions, and filling.
#include <cstring>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

constexpr int tile = 32, tile_rows = 8;

template <class Word> struct Move {
  __device__ Word load(char* const* p) const { return *reinterpret_cast<const Word*>(p[1]); }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

template <class Word> struct Fill {
  Word value;
  __device__ Word load(char* const*) const { return value; }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

// Loads bits and converts when storing, so that loads need not wait for the choice of a conversion.
template <class To> struct Convert {
  DType from;
  int size;
  __device__ uint64_t load(char* const* p) const {
    switch (size) {
      case 1: return *reinterpret_cast<const uint8_t*>(p[1]);
      case 2: return *reinterpret_cast<const uint16_t*>(p[1]);
      case 4: return *reinterpret_cast<const uint32_t*>(p[1]);
      default: return *reinterpret_cast<const uint64_t*>(p[1]);
    }
  }
  __device__ void store(char* const* p, uint64_t bits) const {
    visit(from, [&]<class From>(TypeTag<From>) {
      Stored<From> x;
      memcpy(&x, &bits, sizeof x);
      *reinterpret_cast<To*>(p[0]) = read<To, From>(&x);
    });
  }
};

// Eight contiguous elements.
template <class To, class From> struct ConvertPack {
  using Source = Pack<From, 8>;
  __device__ Source load(char* const* p) const { return *reinterpret_cast<const Source*>(p[1]); }
  __device__ void store(char* const* p, const Source& x) const {
    Pack<To, 8> y;
#pragma unroll
    for (int j = 0; j < 8; ++j) y.v[j] = convert<To>(x.v[j]);
    *reinterpret_cast<Pack<To, 8>*>(p[0]) = y;
  }
};

// Two axes swap places: `out` is contiguous along x, `in` along y.
struct TransposeArgs {
  Strided<2> rest;              // out, in: the other axes
  int64_t nx, ny, out_y, in_x;  // sizes; strides in bytes
};

template <class Word>
__global__ __launch_bounds__(tile* tile_rows) void transpose(const __grid_constant__ TransposeArgs a) {
  __shared__ Word held[tile][tile + 1];
  const auto base = place(a.rest, blockIdx.z);
  const int64_t x0 = int64_t(blockIdx.x) * tile, y0 = int64_t(blockIdx.y) * tile;
  for (int r = threadIdx.y; r < tile; r += tile_rows) {
    const int64_t x = x0 + r, y = y0 + threadIdx.x;
    if (x < a.nx && y < a.ny) held[r][threadIdx.x] = reinterpret_cast<const Word*>(base.p[0][1] + x * a.in_x)[y];
  }
  __syncthreads();
  for (int r = threadIdx.y; r < tile; r += tile_rows) {
    const int64_t x = x0 + threadIdx.x, y = y0 + r;
    if (x < a.nx && y < a.ny) reinterpret_cast<Word*>(base.p[0][0] + y * a.out_y)[x] = held[threadIdx.x][r];
  }
}

// The second address counts the elements.
struct Iota {
  double start, step;
  uint64_t whole_start, whole_step;
  DType dtype;
  __device__ int64_t load(char* const* p) const { return reinterpret_cast<int64_t>(p[1]); }
  __device__ void store(char* const* p, int64_t i) const {
    if (dtype <= DType::f64) store_other(p[0], dtype, __dadd_rn(start, __dmul_rn(double(i), step)));
    else store_other(p[0], dtype, int64_t(whole_start + uint64_t(i) * whole_step));
  }
};

// Tries to run the walk as a transposition of two of its axes.
bool copy_transposed(Context& c, const Walk<2>& walk, const Arg& out, const Arg& in) {
  const int64_t size = size_of(out.dtype);
  if (walk.rank < 2 || walk.stride[0][0] != size || walk.stride[0][1] == size || walk.size[0] < 8) return false;
  int y = 1;
  while (y < walk.rank && walk.stride[y][1] != size) ++y;
  if (y == walk.rank || walk.size[y] < 8) return false;
  Walk<2> rest;
  for (int i = walk.rank - 1; i > 0; --i)
    if (i != y) rest.add_axis(walk.size[i], walk.stride[i]);
  rest.finish();
  const int64_t others = rest.rows() * rest.size[0], tiles_y = (walk.size[y] + tile - 1) / tile;
  if (others > 65535 || tiles_y > 65535 || walk.size[0] > (int64_t(1) << 36)) return false;
  const TransposeArgs a{strided<2>(rest, {out.data, in.data}), walk.size[0], walk.size[y], walk.stride[y][0],
                        walk.stride[0][1]};
  const dim3 grid(blocks_for(walk.size[0], tile), unsigned(tiles_y), unsigned(others));
  with_word(size,
            [&]<class Word>(TypeTag<Word>) { launch(c, "copy", &transpose<Word>, grid, dim3(tile, tile_rows), a); });
  return true;
}

// Tries to convert between f32 and the halves by packs.
bool convert_packs(Context& c, Walk<2> walk, const Arg& out, const Arg& in) {
  const int64_t n = walk.size[0], strides[] = {8 * size_of(out.dtype), 8 * size_of(in.dtype)};
  const auto addresses = reinterpret_cast<uintptr_t>(out.data) | reinterpret_cast<uintptr_t>(in.data);
  if (addresses % 16 != 0 || n % 8 != 0) return false;
  walk.size[0] = n / 8;
  std::copy(strides, strides + 2, walk.stride[0]);
  const auto between = [&]<class To, class From>(TypeTag<To>, TypeTag<From>) {
    if (out.dtype != dtype_of<To>() || in.dtype != dtype_of<From>()) return false;
    each<2>(c, "copy", walk, {out.data, in.data}, ConvertPack<To, From>{});
    return true;
  };
  const TypeTag<float> single;
  const TypeTag<float16> half;
  const TypeTag<bfloat16> brain;
  return between(half, single) || between(brain, single) || between(single, half) || between(single, brain);
}

void fill(Context& c, Walk<2> walk, const Arg& out, const Scalar& scalar) {
  alignas(16) char pattern[16];
  visit(out.dtype, [&]<class T>(TypeTag<T>) {
    const T value = scalar.as<T>();
    for (size_t i = 0; i < sizeof pattern; i += sizeof(T)) std::memcpy(pattern + i, &value, sizeof(T));
  });
  const int64_t word = widen_words<2>(walk, size_of(out.dtype), {out.data, nullptr}, {true, false});
  with_word(word, [&]<class Word>(TypeTag<Word>) {
    Fill<Word> f;
    std::memcpy(&f.value, pattern, sizeof(Word));
    each<2>(c, "fill", walk, {out.data, nullptr}, f);
  });
}

}  // namespace

void Context::copy(const Arg& out, const Arg& in) {
  const OnDevice current(device);
  if (out.layout->numel() == 0) return;
  Walk<2> walk = walk_of<2>(out.layout->shape, {&out, &in});
  if (!in.layout) return fill(*this, walk, out, in.scalar);
  const Addresses<2> data{out.data, in.data};
  const int64_t size = size_of(out.dtype), from = size_of(in.dtype), n = walk.size[0];
  const bool contiguous = walk.rank == 1 && (n == 1 || (walk.stride[0][0] == size && walk.stride[0][1] == from));
  if (out.dtype != in.dtype) {
    if (contiguous && convert_packs(*this, walk, out, in)) return;
    return visit(out.dtype, [&]<class To>(TypeTag<To>) {
      each<2>(*this, "copy", walk, data, Convert<To>{in.dtype, int(from)});
    });
  }
  if (contiguous)
    return check(cudaMemcpyAsync(out.data, in.data, size_t(n * size), cudaMemcpyDeviceToDevice, stream), "copy");
  if (copy_transposed(*this, walk, out, in)) return;
  const int64_t word = widen_words<2>(walk, size, data, {true, true});
  with_word(word, [&]<class Word>(TypeTag<Word>) { each<2>(*this, "copy", walk, data, Move<Word>{}); });
}

void Context::iota(const Arg& out, Scalar start, Scalar step) {
  const OnDevice current(device);
  if (out.layout->numel() == 0) return;
  const int64_t strides[] = {step_of(out, 0, out.layout->rank()), 1};
  Walk<2> walk;
  walk.add_axis(out.layout->numel(), strides);
  walk.finish();
  each<2>(*this, "arange", walk, {out.data, nullptr},
          Iota{start.as<double>(), step.as<double>(), start.as<uint64_t>(), step.as<uint64_t>(), out.dtype});
}

}  // namespace volta::cuda
