// Gather and scatter on the GPU. Indices out of range are clamped and reported at the next synchronisation.
#include <volta/scalar.h>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

// An axis that indices choose from: its size, and what a place is apart from the next.
struct Axis {
  int64_t size, step;
  Fault* fault;
  Axis(const Context& c, const Held& x, const char* op) : size(x.size), step(x.step), fault(c.fault) {
    if (size == 0)  // there is nothing to clamp an index to
      throw Error(Error::Kind::index, op, "every index is out of range for an axis of size 0");
  }
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
    atomicMax(reinterpret_cast<long long*>(p[3]) + at, counted(p[4]));
  }
};

template <class Word> struct Put {
  Axis axis;
  __device__ int64_t load(char* const* p) const {
    const int64_t at = axis.find(p[2]);
    return reinterpret_cast<const int64_t*>(p[3])[at] == counted(p[4]) ? at : -1;
  }
  __device__ void store(char* const* p, int64_t at) const {
    if (at >= 0) *reinterpret_cast<Word*>(p[1] + at * axis.step) = *reinterpret_cast<const Word*>(p[0]);
  }
};

// Word[shift, …] = f(it) without interference, by comparing and swapping the word that holds it.
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

// *p = f(*p, x) without interference; f takes numbers to compute with, which halves become floats for.
template <class T, class F> __device__ void atomic_update(T* p, T x, F f) {
  using C = std::conditional_t<is_half_type<T>, float, T>;
  const auto combine = [=](T y) { return convert<T>(C(f(convert<C>(y), convert<C>(x)))); };
  const auto address = reinterpret_cast<uintptr_t>(p);
  if constexpr (sizeof(T) == 8) update<unsigned long long, T>(reinterpret_cast<unsigned long long*>(p), 0, combine);
  else update<unsigned, T>(reinterpret_cast<unsigned*>(address & ~uintptr_t(3)), int(address & 3) * 8, combine);
}

template <class T> __device__ void atomic_sum(T* p, T x) {
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>)
    atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x));
  else if constexpr (sizeof(T) >= 4) atomicAdd(p, x);
  else atomic_update(p, x, [](auto y, auto z) { return y + z; });
}

template <class T> struct Join {
  Axis axis;
  Combine combine;
  __device__ T load(char* const* p) const { return read<T, T>(p[0]); }
  __device__ void store(char* const* p, T x) const {
    T* to = reinterpret_cast<T*>(p[1] + axis.find(p[2]) * axis.step);
    if (combine == Combine::add) atomic_sum(to, x);
    else if (combine == Combine::multiply) atomic_update(to, x, [](auto y, auto z) { return y * z; });
    else if (combine == Combine::max) atomic_update(to, x, [](auto y, auto z) { return scalar::max(y, z); });
    else atomic_update(to, x, [](auto y, auto z) { return scalar::min(y, z); });
  }
};

}  // namespace

void Context::gather(const GatherCall& call) {
  const OnDevice current(device);
  if (call.out.layout->numel() == 0) return;
  const Held in(call.in, call.axis);
  const Axis axis(*this, in, "gather");
  const Operands<3> x(call.out.layout->shape, {&call.out, &in, &call.index});
  each_word<Gather>(*this, "gather", x, size_of(in.dtype), 0b011, axis.step, axis);
}

void Context::scatter(const ScatterCall& call) {
  const char* op = "scatter";
  const OnDevice current(device);
  const Layout &src = *call.src.layout, &index = *call.index.layout;
  if (src.numel() == 0) return;
  const Held out(call.out, call.axis);
  const Axis axis(*this, out, op);
  const auto distinct = [&](int i) { return i != call.axis && index.strides[i] != 0 && index.shape[i] > 1; };
  int64_t places = axis.size;  // owners needed; those of neighbouring rows lie axis.size apart
  for (int i = 0; i < src.rank(); ++i)
    if (distinct(i)) places *= index.shape[i];
  const bool sets = call.combine == Combine::set;
  const Room owners = memory.take(sets ? places * 8 : 0, op);
  Operands<5> all, indices;  // of every element, and of every distinct index
  const int64_t size = size_of(out.dtype);
  int64_t left = places;
  for (int i = 0; i < src.rank(); ++i) {
    if (distinct(i)) left /= index.shape[i];
    const int64_t position = i == call.axis ? 1 : 0;
    const int64_t strides[] = {src.strides[i] * size, out.rest.strides[i] * size, index.strides[i] * 8,
                               distinct(i) ? left * 8 : 0, position};
    all.add_axis(src.shape[i], strides);
    if (position || distinct(i)) indices.add_axis(src.shape[i], strides);
  }
  for (Operands<5>* x : {&all, &indices}) {
    x->finish();
    void* const data[] = {call.src.data, out.data, call.index.data, owners->data, nullptr};
    for (int k = 0; k < 5; ++k) x->data[k] = static_cast<char*>(data[k]);
  }
  if (!sets) return visit(out.dtype, [&]<class T>(TypeTag<T>) { each(*this, op, all, Join<T>{axis, call.combine}); });
  check(cudaMemsetAsync(owners->data, 0xff, size_t(places * 8), stream), op);
  each(*this, op, indices, Claim{axis});
  each_word<Put>(*this, op, all, size, 0b00011, axis.step, axis);
}

}  // namespace volta::cuda
