// Gather and scatter on the GPU. Indices out of range are clamped and reported at the next synchronisation.
#include <volta/scalar.h>

#include "backend/cuda/element.h"
#include "backend/cuda/loops.h"
#include "backend/cuda/widen.h"

namespace volta::cuda {
namespace {

constexpr int threads = 256;

__device__ int64_t resolve(int64_t index, int64_t size, Fault* fault) {
  const int64_t i = index < 0 ? index + size : index;
  if (i >= 0 && i < size) return i;
  fault->index = index;
  fault->size = size;
  __threadfence_system();
  fault->raised = 1;
  return i < 0 ? 0 : size - 1;
}

struct GatherArgs {
  Strided<3> geometry;  // out, in, index
  char* out;
  const char *in, *index;
  int64_t size, step;  // of the axis of `in`
  Fault* fault;
};

template <class Word> __global__ __launch_bounds__(threads) void gather_words(const __grid_constant__ GatherArgs a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[3];
  offsets(a.geometry, i, offset);
  const int64_t at = resolve(*reinterpret_cast<const int64_t*>(a.index + offset[2]), a.size, a.fault);
  *reinterpret_cast<Word*>(a.out + offset[0]) = *reinterpret_cast<const Word*>(a.in + offset[1] + at * a.step);
}

// Of several values for one place the last along the axis wins: `owner` holds its position, per place. Rows that share
// their indices share the owners too.
struct ScatterArgs {
  Strided<5> geometry;  // src, out, index, owner, position along the axis
  const char *src, *index;
  char* out;
  int64_t* owner;
  int64_t first_position;
  int64_t size, step;  // of the axis of `out`
  Fault* fault;
};

__global__ __launch_bounds__(threads) void claim_places(const __grid_constant__ ScatterArgs a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[5];
  offsets(a.geometry, i, offset);
  const int64_t at = resolve(*reinterpret_cast<const int64_t*>(a.index + offset[2]), a.size, a.fault);
  atomicMax(reinterpret_cast<long long*>(a.owner + offset[3] + at),
            static_cast<long long>(a.first_position + offset[4]));
}

template <class Word> __global__ __launch_bounds__(threads) void scatter_words(const __grid_constant__ ScatterArgs a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[5];
  offsets(a.geometry, i, offset);
  const int64_t at = resolve(*reinterpret_cast<const int64_t*>(a.index + offset[2]), a.size, a.fault);
  if (a.owner[offset[3] + at] != a.first_position + offset[4]) return;
  *reinterpret_cast<Word*>(a.out + offset[1] + at * a.step) = *reinterpret_cast<const Word*>(a.src + offset[0]);
}

// *p = f(*p) without interference, by comparing and swapping the word that holds it.
template <class Word, class T, class F> __device__ void update(Word* word, int shift, F f) {
  constexpr Word mask = sizeof(T) < sizeof(Word) ? (Word(1) << (8 * sizeof(T) % (8 * sizeof(Word)))) - 1 : ~Word(0);
  Word old = *reinterpret_cast<volatile Word*>(word), seen;
  do {
    seen = old;
    const Word bits = (seen >> shift) & mask;
    T value;
    memcpy(&value, &bits, sizeof(T));
    value = f(value);
    Word changed = 0;
    memcpy(&changed, &value, sizeof(T));
    changed = (seen & ~(mask << shift)) | (changed << shift);
    if (changed == seen) return;
    old = atomicCAS(word, seen, changed);
  } while (old != seen);
}

template <class T, class F> __device__ void atomic_update(T* p, F f) {
  if constexpr (sizeof(T) == 8) {
    update<unsigned long long, T>(reinterpret_cast<unsigned long long*>(p), 0, f);
  } else {
    const auto address = reinterpret_cast<uintptr_t>(p);
    update<unsigned, T>(reinterpret_cast<unsigned*>(address & ~uintptr_t(3)), int(address & 3) * 8, f);
  }
}

template <class T> __device__ void atomic_sum(T* p, T x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> ||
                std::is_same_v<T, uint32_t>)
    atomicAdd(p, x);
  else if constexpr (sizeof(T) == 8)
    atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x));
  else if constexpr (is_half_type<T>) atomic_update(p, [x](T y) { return narrow<T>(widen(y) + widen(x)); });
  else atomic_update(p, [x](T y) { return T(y + x); });
}

template <class T> __device__ auto computed(T x) {
  if constexpr (is_half_type<T>) return widen(x);
  else return x;
}

// F takes two computed values.
template <class T, class F> __device__ void atomic_combine(T* p, T x, F f) {
  const auto by = computed(x);
  atomic_update(p, [=](T y) { return convert<T>(f(computed(y), by)); });
}

template <class T>
__global__ __launch_bounds__(threads) void scatter_combine(const __grid_constant__ ScatterArgs a, Combine combine) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[5];
  offsets(a.geometry, i, offset);
  const int64_t at = resolve(*reinterpret_cast<const int64_t*>(a.index + offset[2]), a.size, a.fault);
  T* p = reinterpret_cast<T*>(a.out + offset[1] + at * a.step);
  const T x = read<T, T>(a.src + offset[0]);
  using C = decltype(computed(x));
  if (combine == Combine::add) atomic_sum(p, x);
  else if (combine == Combine::multiply) atomic_combine(p, x, [](C y, C z) { return C(y * z); });
  else if (combine == Combine::max) atomic_combine(p, x, [](C y, C z) { return scalar::max(y, z); });
  else atomic_combine(p, x, [](C y, C z) { return scalar::min(y, z); });
}

// With no place at all there is nothing to clamp an index to.
void require_places(int64_t size, const char* op) {
  if (size == 0) throw Error(Error::Kind::index, op, "every index is out of range for an axis of size 0");
}

template <class Kernel> void by_word(int64_t size, Kernel run) {
  switch (size) {
    case 1: return run(TypeTag<uint8_t>{});
    case 2: return run(TypeTag<uint16_t>{});
    case 4: return run(TypeTag<uint32_t>{});
    case 8: return run(TypeTag<uint64_t>{});
    default: return run(TypeTag<uint4>{});
  }
}

struct Scattering {
  Walk<5> all, indices;  // of every element, and of every distinct index
  int64_t places = 1;    // owners needed
};

Scattering geometry(const ScatterCall& call) {
  const Layout &src = *call.src.layout, &out = *call.out.layout, &index = *call.index.layout;
  const int64_t size = size_of(call.out.dtype);
  Scattering s;
  s.places = out.shape[call.axis];
  for (int i = src.rank() - 1; i >= 0; --i)  // owners of neighbouring rows lie `places` apart
    if (i != call.axis && index.strides[i] != 0 && index.shape[i] > 1) s.places *= index.shape[i];
  int64_t left = s.places;
  for (int i = 0; i < src.rank(); ++i) {
    const bool axis = i == call.axis, distinct = !axis && index.strides[i] != 0 && index.shape[i] > 1;
    if (distinct) left /= index.shape[i];
    const int64_t strides[] = {src.strides[i] * size, axis ? 0 : out.strides[i] * size, index.strides[i] * 8,
                               distinct ? left : 0, axis ? 1 : 0};
    s.all.add_axis(src.shape[i], strides);
    if (axis || distinct) s.indices.add_axis(src.shape[i], strides);
  }
  s.all.finish();
  s.indices.finish();
  return s;
}

}  // namespace

void gather(Context& c, const GatherCall& call) {
  const Layout &out = *call.out.layout, &in = *call.in.layout, &index = *call.index.layout;
  if (out.numel() == 0) return;
  const int64_t size = size_of(call.out.dtype);
  Walk<3> walk;
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t strides[] = {out.strides[i] * size, i == call.axis ? 0 : in.strides[i] * size, index.strides[i] * 8};
    walk.add_axis(out.shape[i], strides);
  }
  walk.finish();
  GatherArgs a{};
  a.size = in.shape[call.axis];
  require_places(a.size, "gather");
  a.step = in.strides[call.axis] * size;
  a.fault = c.fault;
  const int64_t word = widen_words<3>(walk, size, {call.out.data, call.in.data, nullptr}, {true, true, false}, a.step);
  in_chunks(walk, [&](const Strided<3>& g, const auto& base) {
    a.geometry = g;
    a.out = static_cast<char*>(call.out.data) + base[0];
    a.in = static_cast<const char*>(call.in.data) + base[1];
    a.index = static_cast<const char*>(call.index.data) + base[2];
    by_word(word, [&]<class Word>(TypeTag<Word>) {
      launch(c, "gather", &gather_words<Word>, blocks_for(g.n, threads), threads, a);
    });
  });
}

void scatter(Context& c, const ScatterCall& call) {
  const char* op = "scatter";
  if (call.src.layout->numel() == 0) return;
  Scattering s = geometry(call);
  ScatterArgs a{};
  a.size = call.out.layout->shape[call.axis];
  require_places(a.size, op);
  a.step = call.out.layout->strides[call.axis] * size_of(call.out.dtype);
  a.fault = c.fault;
  const bool sets = call.combine == Combine::set;
  const Scratch owners(c, sets ? s.places * 8 : 0, op);
  const auto run = [&](const Walk<5>& walk, auto start) {
    in_chunks(walk, [&](const Strided<5>& g, const auto& base) {
      a.geometry = g;
      a.src = static_cast<const char*>(call.src.data) + base[0];
      a.out = static_cast<char*>(call.out.data) + base[1];
      a.index = static_cast<const char*>(call.index.data) + base[2];
      a.owner = owners.as<int64_t>() + base[3];
      a.first_position = base[4];
      start(blocks_for(g.n, threads));
    });
  };
  if (!sets)
    return run(s.all, [&](unsigned blocks) {
      visit(call.out.dtype,
            [&]<class T>(TypeTag<T>) { launch(c, op, &scatter_combine<T>, blocks, threads, a, call.combine); });
    });
  check(cudaMemsetAsync(owners.data(), 0xff, size_t(s.places * 8), c.stream), op);
  run(s.indices, [&](unsigned blocks) { launch(c, op, &claim_places, blocks, threads, a); });
  const int64_t word =
      widen_words<5>(s.all, size_of(call.out.dtype), {call.src.data, call.out.data, nullptr, nullptr, nullptr},
                     {true, true, false, false, false}, a.step);
  run(s.all, [&](unsigned blocks) {
    by_word(word, [&]<class Word>(TypeTag<Word>) { launch(c, op, &scatter_words<Word>, blocks, threads, a); });
  });
}

}  // namespace volta::cuda
