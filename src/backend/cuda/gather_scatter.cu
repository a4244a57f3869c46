// Gather and scatter on the GPU. Indices out of range are clamped and reported at the next synchronisation.
#include <cuda/atomic>

#include <volta/scalar.h>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

// An axis that indices choose from: its size, and what a place is apart from the next.
struct Axis {
  int64_t size, step;
  Fault* fault;
  Axis(const Context& c, const Held& x, const char* op) : size(x.size), step(x.step), fault(c.fault) {
    // There is nothing to clamp an index to.
    require(size > 0, ErrorKind::index, op, "every index is out of range for an axis of size 0");
  }
  __device__ int64_t find(const char* p) const {
    const int64_t index = *reinterpret_cast<const int64_t*>(p);
    if (index >= 0 && index < size) return index;
    fault->index = index;
    fault->size = size;
    __threadfence_system();
    fault->raised = 1;
    return index < 0 ? 0 : size - 1;
  }
};

template <class Word> struct Gather {  // out, in, index
  Axis axis;
  __device__ Word load(char* const* p) const {
    return *reinterpret_cast<const Word*>(p[1] + axis.find(p[2]) * axis.step);
  }
  __device__ void store(char* const* p, Word x) const { *reinterpret_cast<Word*>(p[0]) = x; }
};

// The last of several values for one place wins: `owner` holds, per place, its position along the axis. Rows that share
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

// *p = f(*p, x) without interference; f takes numbers to compute with, which halves become floats for.
template <class T, class F> __device__ void atomic_update(T* p, T x, F f) {
  using C = std::conditional_t<is_half_type<T>, float, T>;
  using Bits = BitsOf<T>;
  ::cuda::atomic_ref<Bits, ::cuda::thread_scope_device> place(*reinterpret_cast<Bits*>(p));
  Bits seen = place.load(::cuda::memory_order_relaxed), changed;
  do changed = std::bit_cast<Bits>(convert<T>(C(f(convert<C>(std::bit_cast<T>(seen)), convert<C>(x)))));
  while (changed != seen && !place.compare_exchange_weak(seen, changed, ::cuda::memory_order_relaxed));
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
  // Indices that repeat along an axis share their owners.
  Layout owned = src, position = src;
  uint32_t repeated = 0;
  int64_t places = axis.size;
  for (int i = src.rank() - 1; i >= 0; --i) {
    const bool distinct = i != call.axis && index.strides[i] != 0;
    owned.strides[i] = distinct ? places : 0;
    position.strides[i] = i == call.axis ? 1 : 0;
    if (distinct) places *= src.shape[i];
    else if (i != call.axis) repeated |= 1u << i;
  }
  const bool sets = call.combine == Combine::set;
  const Room owners = memory().take(sets ? places * 8 : 0, op);
  const Arg owner{owners->data, &owned, i64, {}}, counter{nullptr, &position, u8, {}};
  const Args<5> args{&call.src, &out, &call.index, &owner, &counter};
  const Operands<5> all(src.shape, args);
  if (!sets) return visit(out.dtype, [&]<class T>(TypeTag<T>) { each(*this, op, all, Join<T>{axis, call.combine}); });
  check(cudaMemsetAsync(owners->data, 0xff, size_t(places * 8), stream()), op);
  each(*this, op, Operands<5>(src.shape, args, repeated), Claim{axis});
  each_word<Put>(*this, op, all, size_of(out.dtype), 0b00011, axis.step, axis);
}

}  // namespace volta::cuda
