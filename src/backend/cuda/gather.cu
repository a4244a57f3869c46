// Gather and scatter on the GPU. Indices out of range are clamped and reported at the next synchronisation.
#include <volta/scalar.h>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

// An axis that indices choose from: its size, and what a place is apart from the next.
struct Axis {
  int64_t size, step;
  Fault* fault;
  __device__ int64_t find(const char* p) const {
    const int64_t index = *reinterpret_cast<const int64_t*>(p), i = index < 0 ? index + size : index;
    if (i >= 0 && i < size) return i;
    fault->index = index;
    fault->size = size;
    __threadfence_system();
    fault->raised = 1;
    return i < 0 ? 0 : size - 1;
  }
};

template <class Word> struct Gather {  // out, in, index
  Axis axis;
  __device__ Word load(char* const* p) const {
    return *reinterpret_cast<const Word*>(p[1] + axis.find(p[2]) * axis.step);
  }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

// Of several values for one place the last along the axis wins: `owner` holds its position, per place. Rows that share
// their indices share the owners too. Scatters walk over src, out, index, owner, and the position along the axis.
struct Claim {
  Axis axis;
  __device__ int64_t load(char* const* p) const { return axis.find(p[2]); }
  __device__ void store(char* const* p, int64_t at) const {
    atomicMax(reinterpret_cast<long long*>(p[3]) + at, reinterpret_cast<long long>(p[4]));
  }
};

template <class Word> struct Put {
  Axis axis;
  __device__ int64_t load(char* const* p) const {
    const int64_t at = axis.find(p[2]);
    return reinterpret_cast<const int64_t*>(p[3])[at] == reinterpret_cast<int64_t>(p[4]) ? at : -1;
  }
  __device__ void store(char* const* p, int64_t at) const {
    if (at >= 0) *reinterpret_cast<Word*>(p[1] + at * axis.step) = *reinterpret_cast<const Word*>(p[0]);
  }
};

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

template <class T> struct Join {
  Axis axis;
  Combine combine;
  __device__ T load(char* const* p) const { return read<T, T>(p[0]); }
  __device__ void store(char* const* p, T x) const {
    using C = decltype(computed(x));
    T* to = reinterpret_cast<T*>(p[1] + axis.find(p[2]) * axis.step);
    if (combine == Combine::add) atomic_sum(to, x);
    else if (combine == Combine::multiply) atomic_combine(to, x, [](C y, C z) { return C(y * z); });
    else if (combine == Combine::max) atomic_combine(to, x, [](C y, C z) { return scalar::max(y, z); });
    else atomic_combine(to, x, [](C y, C z) { return scalar::min(y, z); });
  }
};

// Takes the indexed axis out of an operand, which then stands still along it.
Axis take_axis(Context& c, Arg& x, Layout& layout, int axis, const char* op) {
  layout = *x.layout;
  x.layout = &layout;
  const Axis result{layout.shape[axis], layout.strides[axis] * size_of(x.dtype), c.fault};
  if (result.size == 0)  // there is nothing to clamp an index to
    throw Error(Error::Kind::index, op, "every index is out of range for an axis of size 0");
  layout.strides[axis] = 0;
  return result;
}

}  // namespace

void Context::gather(const GatherCall& call) {
  const OnDevice current(device);
  if (call.out.layout->numel() == 0) return;
  Arg in = call.in;
  Layout layout;
  const Axis axis = take_axis(*this, in, layout, call.axis, "gather");
  Walk<3> walk = walk_of<3>(call.out.layout->shape, {&call.out, &in, &call.index});
  const Addresses<3> data{call.out.data, in.data, call.index.data};
  const int64_t word = widen_words<3>(walk, size_of(in.dtype), data, {true, true, false}, axis.step);
  with_word(word, [&]<class Word>(TypeTag<Word>) { each<3>(*this, "gather", walk, data, Gather<Word>{axis}); });
}

void Context::scatter(const ScatterCall& call) {
  const char* op = "scatter";
  const OnDevice current(device);
  const Layout &src = *call.src.layout, &index = *call.index.layout;
  if (src.numel() == 0) return;
  Arg out = call.out;
  Layout layout;
  const Axis axis = take_axis(*this, out, layout, call.axis, op);
  const auto distinct = [&](int i) { return i != call.axis && index.strides[i] != 0 && index.shape[i] > 1; };
  int64_t places = axis.size;  // owners needed; those of neighbouring rows lie axis.size apart
  for (int i = 0; i < src.rank(); ++i)
    if (distinct(i)) places *= index.shape[i];
  const bool sets = call.combine == Combine::set;
  const Scratch owners(*this, sets ? places * 8 : 0, op);
  Addresses<5> data{call.src.data, out.data, call.index.data, owners.as(), nullptr};
  Walk<5> all, indices;  // of every element, and of every distinct index
  int64_t left = places;
  for (int i = 0; i < src.rank(); ++i) {
    if (distinct(i)) left /= index.shape[i];
    const int64_t size = size_of(out.dtype), position = i == call.axis ? 1 : 0;
    const int64_t strides[] = {src.strides[i] * size, layout.strides[i] * size, index.strides[i] * 8,
                               distinct(i) ? left * 8 : 0, position};
    all.add_axis(src.shape[i], strides);
    if (position || distinct(i)) indices.add_axis(src.shape[i], strides);
  }
  all.finish();
  indices.finish();
  if (!sets)
    return visit(out.dtype, [&]<class T>(TypeTag<T>) { each<5>(*this, op, all, data, Join<T>{axis, call.combine}); });
  check(cudaMemsetAsync(owners.as(), 0xff, size_t(places * 8), stream), op);
  each<5>(*this, op, indices, data, Claim{axis});
  const int64_t word = widen_words<5>(all, size_of(out.dtype), data, {true, true, false, false, false}, axis.step);
  with_word(word, [&]<class Word>(TypeTag<Word>) { each<5>(*this, op, all, data, Put<Word>{axis}); });
}

}  // namespace volta::cuda
