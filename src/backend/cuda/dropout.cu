// Dropout in one pass, four elements to a block of random words.
#include "backend/cuda/capture.h"
#include "backend/cuda/element.h"
#include "backend/dropout.h"
#include "core/distributions.h"

namespace volta::cuda {
namespace {

constexpr int packs = 2;  // of four elements that a thread reads before it draws, `threads` packs apart

template <class T> using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T> struct DropArgs {
  const T* in;
  T* out;
  int64_t n;
  bool aligned;    // both to packs
  uint32_t least;  // of the bits of a random word
  Wide<T> factor;
  uint64_t seed, offset;
};

// A product and no choice: what is not finite becomes NaN where it is dropped.
template <class T> __device__ inline T dropped(const DropArgs<T>& a, T x, uint32_t word) {
  const Wide<T> factor = (word >> 8) >= a.least ? a.factor : Wide<T>(0);
  return convert<T>(convert<Wide<T>>(x) * factor);
}

template <class T> __global__ __launch_bounds__(threads) void drop(const __grid_constant__ DropArgs<T> a) {
  using P = Pack<T, 4>;
  const int64_t first = int64_t(blockIdx.x) * (threads * packs) + threadIdx.x;
  P held[packs];
  unroll<packs>([&](int u) {
    const int64_t begin = 4 * (first + u * threads), count = a.n - begin;
    if (a.aligned && count >= 4) held[u] = *reinterpret_cast<const P*>(a.in + begin);
    else unroll<4>([&](int k) { held[u].v[k] = k < count ? a.in[begin + k] : T(0.f); });
  });
  unroll<packs>([&](int u) {
    const int64_t pack = first + u * threads, begin = 4 * pack, count = a.n - begin;
    if (count <= 0) return;
    const auto w = volta::random::block_words(a.seed, a.offset + uint64_t(pack), 0);
    const uint32_t words[] = {w.x, w.y, w.z, w.w};
    unroll<4>([&](int k) { held[u].v[k] = dropped(a, held[u].v[k], words[k]); });
    if (a.aligned && count >= 4) *reinterpret_cast<P*>(a.out + begin) = held[u];
    else
      unroll<4>([&](int k) {
        if (k < count) a.out[begin + k] = held[u].v[k];
      });
  });
}

template <class T> void run(const Context& c, const DropoutCall& call) {
  const auto places = reinterpret_cast<uintptr_t>(call.in.data) | reinterpret_cast<uintptr_t>(call.out.data);
  const DropArgs<T> a{static_cast<const T*>(call.in.data),
                      static_cast<T*>(call.out.data),
                      call.in.layout->numel(),
                      places % alignof(Pack<T, 4>) == 0,
                      least_kept(call.p),
                      Wide<T>(Scalar(1 / (1 - call.p)).as<T>()),
                      call.seed,
                      call.offset};
  launch(c, "dropout", &drop<T>, blocks_for(a.n, 4 * packs * threads), threads, a);
  vary_draw(
      1, 0, a, [](auto& args) -> auto& { return args; });
}

}  // namespace

bool Context::offers(const DropoutCall& call) const { return call.in.layout->numel() > 0; }

void Context::dropout(const DropoutCall& call) {
  const OnDevice current(device);
  if (call.in.dtype == f64) run<double>(*this, call);
  else if (call.in.dtype == f32) run<float>(*this, call);
  else if (call.in.dtype == f16) run<float16>(*this, call);
  else run<bfloat16>(*this, call);
}

}  // namespace volta::cuda
