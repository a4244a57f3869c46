// Copies on the GPU: whole memory by the driver, strided elements as words as wide as the layouts allow, transpositions
// through tiles of shared memory, conversions; and filling, with a number, a range, or random numbers by the formulas
// the CPU uses.
#include "backend/cuda/capture.h"
#include "backend/cuda/element.h"
#include "core/recording.h"

namespace volta::cuda {
namespace {

template <class Word> struct Move {
  __device__ Word load(char* const* p) const { return *reinterpret_cast<const Word*>(p[1]); }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

template <class Word> struct Fill {
  Pattern pattern;
  __device__ Word load(char* const*) const { return *reinterpret_cast<const Word*>(&pattern); }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

// N contiguous elements.
template <class To, class From, int N> struct Convert {
  using Source = Pack<Stored<From>, N>;
  __device__ Source load(char* const* p) const { return *reinterpret_cast<const Source*>(p[1]); }
  __device__ void store(char* const* p, const Source& x) const {
    Pack<To, N> y;
    unroll<N>([&](int j) { y.v[j] = read<To, From>(&x.v[j]); });
    *reinterpret_cast<Pack<To, N>*>(p[0]) = y;
  }
};

// Two axes swap places: `out` is contiguous along x, `in` along y.
struct TransposeArgs {
  Strided<2> rest;              // out, in: the other axes
  int64_t nx, ny, out_y, in_x;  // sizes; strides in bytes
};

// By tiles of 32 * N elements each way. Threads move N at a time, to which operands are aligned and sizes rounded.
template <int N> inline constexpr int tile_side = 32 * N;
template <int N> inline constexpr int tile_rows = 4 * N;  // that a block moves at a time
template <class Word, int N>
__global__ __launch_bounds__(32 * tile_rows<N>) void transpose(const __grid_constant__ TransposeArgs a) {
  constexpr int side = tile_side<N>, rows = tile_rows<N>, each = side / rows;
  using P = Pack<Word, N>;
  __shared__ Word held[side][side + (sizeof(Word) < 4 ? 4 / sizeof(Word) : 1)];  // columns lie in different banks
  const auto base = place(a.rest, blockIdx.z);
  const int64_t x0 = int64_t(blockIdx.x) * side, y0 = int64_t(blockIdx.y) * side;
  const int first = int(threadIdx.x) * N, row = int(threadIdx.y);
  P fetched[each];
  unroll<each>([&](int i) {
    const int64_t x = x0 + row + i * rows, y = y0 + first;
    if (x < a.nx && y < a.ny)
      fetched[i] = *reinterpret_cast<const P*>(base.p[0][1] + x * a.in_x + y * int64_t(sizeof(Word)));
  });
  unroll<each>([&](int i) { unroll<N>([&](int j) { held[row + i * rows][first + j] = fetched[i].v[j]; }); });
  __syncthreads();
  unroll<each>([&](int i) {
    const int64_t x = x0 + first, y = y0 + row + i * rows;
    P out;
    unroll<N>([&](int j) { out.v[j] = held[first + j][row + i * rows]; });
    if (x < a.nx && y < a.ny) *reinterpret_cast<P*>(base.p[0][0] + y * a.out_y + x * int64_t(sizeof(Word))) = out;
  });
}

// The second address counts the elements.
struct Iota {
  double start, step;
  uint64_t whole_start, whole_step;
  DType dtype;
  __device__ int64_t load(char* const* p) const { return counted(p[1]); }
  __device__ void store(char* const* p, int64_t i) const {
    if (dtype <= DType::f64) store_other(p[0], dtype, __dadd_rn(start, __dmul_rn(double(i), step)));
    else store_other(p[0], dtype, int64_t(whole_start + uint64_t(i) * whole_step));
  }
};

// Four elements; the address counts the blocks of four.
template <class Formula> struct Draw {
  Formula formula;
  RandomCall call;
  int64_t size;
  __device__ int64_t load(char* const* p) const { return counted(p[0]); }
  __device__ void store(char* const*, int64_t i) const {
    const auto block = volta::random::draw_block(formula, call.seed, call.offset + uint64_t(i));
    using Value = std::decay_t<decltype(block.element[0])>;
    using Source = std::conditional_t<std::is_same_v<Value, uint64_t>, int64_t, Value>;
    char* out = static_cast<char*>(call.out) + 4 * i * size;
    unroll<4>([&](int k) {
      if (4 * i + k < call.n) cuda::store(out + k * size, call.dtype, Source(block.element[k]));
    });
  }
};

// Tries to run the copy as a transposition of two of its axes.
bool copy_transposed(Context& c, const Operands<2>& x, int64_t size) {
  if (x.rank < 2 || x.stride[0][0] != size || x.stride[0][1] == size || x.size[0] < 8) return false;
  int y = 1;
  while (y < x.rank && x.stride[y][1] != size) ++y;
  if (y == x.rank || x.size[y] < 8) return false;
  Operands<2> rest;
  std::copy(x.data, x.data + 2, rest.data);
  for (int i = x.rank - 1; i > 0; --i)
    if (i != y) rest.add_axis(x.size[i], x.stride[i]);
  rest.finish();
  if (rest.count() > 65535 || x.size[y] / 32 >= 65535 || x.size[0] > (int64_t(1) << 36)) return false;
  const TransposeArgs a{Strided<2>(rest), x.size[0], x.size[y], x.stride[y][0], x.stride[0][1]};
  // Both operands step by `size` along one axis; where all else is a multiple of 8 bytes, these are moved at a time.
  uintptr_t low =
      uintptr_t(x.size[0] * size) | uintptr_t(x.size[y] * size) | x.low_bits(0, 1) | uintptr_t(x.stride[0][1]);
  for (int i = 0; i < x.rank; ++i) low |= i == y ? 0 : uintptr_t(x.stride[i][1]);
  low |= reinterpret_cast<uintptr_t>(x.data[1]);
  const auto start = [&]<class Word, int N>() {
    constexpr int side = tile_side<N>;
    const dim3 grid(blocks_for(a.nx, side), blocks_for(a.ny, side), unsigned(rest.count()));
    launch(c, "copy", &transpose<Word, N>, grid, dim3(32, tile_rows<N>), a);
  };
  with_word(size, [&]<class Word>(TypeTag<Word>) {
    constexpr int wide = sizeof(Word) < 8 ? std::min<int>(8 / sizeof(Word), 4) : 1;
    if (low % (wide * sizeof(Word)) == 0) start.template operator()<Word, wide>();
    else start.template operator()<Word, 1>();
  });
  return true;
}

// Between f32 and the halves, contiguous elements go by packs of eight.
template <class To, class From> void convert_all(Context& c, Operands<2> x, bool contiguous) {
  constexpr bool common =
      (is_half_type<To> && std::is_same_v<From, float>) || (std::is_same_v<To, float> && is_half_type<From>);
  if constexpr (common)
    if (contiguous && (x.low_bits(0, 1) | x.low_bits(1, 1)) % 16 == 0 && x.size[0] % 8 == 0) {
      x.size[0] /= 8;
      for (int64_t& stride : x.stride[0]) stride *= 8;
      return each(c, "copy", x, Convert<To, From, 8>{});
    }
  each(c, "copy", x, Convert<To, From, 1>{});
}

}  // namespace

void Context::copy(const Arg& out, const Arg& in) {
  const OnDevice current(device);
  if (out.layout->numel() == 0) return;
  const Operands<2> x(out.layout->shape, {&out, &in});
  const int64_t size = size_of(out.dtype), from = size_of(in.dtype);
  if (!in.layout) return each_word<Fill>(*this, "fill", x, size, 0b01, 0, pattern_of(in.scalar, out.dtype));
  const bool contiguous = x.rank == 1 && (x.size[0] == 1 || (x.stride[0][0] == size && x.stride[0][1] == from));
  if (out.dtype != in.dtype)
    return visit(out.dtype, [&]<class To>(TypeTag<To>) {
      visit(in.dtype, [&]<class From>(TypeTag<From>) {
        if constexpr (!std::is_same_v<To, From>) convert_all<To, From>(*this, x, contiguous);
      });
    });
  if (contiguous) {
    const auto bytes = size_t(x.size[0] * size);
    check(cudaMemcpyAsync(out.data, in.data, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
    return after_launch(*this, "copy");
  }
  if (!copy_transposed(*this, x, size)) each_word<Move>(*this, "copy", x, size, 0b11, 0);
}

void Context::iota(const Arg& out, Scalar start, Scalar step) {
  const OnDevice current(device);
  if (out.layout->numel() == 0) return;
  Operands<2> x(out.layout->numel(), {step_of(out, 0, out.layout->rank()), 1});
  x.data[0] = static_cast<char*>(out.data);
  each(*this, "arange", x,
       Iota{start.as<double>(), step.as<double>(), start.as<uint64_t>(), step.as<uint64_t>(), out.dtype});
}

void Context::random(const RandomCall& call) {
  const OnDevice current(device);
  volta::check(call);
  if (call.n <= 0) return;
  volta::random::with_formula(call, [&]<class Formula>(const Formula& formula) {
    Draw<Formula> draw{formula, call, size_of(call.dtype)};
    each(*this, "random", Operands<1>((call.n + 3) / 4, {1}), draw);
    if (!Capture::current()) return;
    require((call.n + 3) / 4 <= chunk_limit, ErrorKind::memory, "random", "too many numbers for a captured step");
    vary_draw(
        2, 1, draw, [](auto& args) -> auto& { return args.call; });
  });
}

}  // namespace volta::cuda
