// One call for random numbers as data, its checks, and the formula that answers it on any device.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include <volta/dtype.h>
#include <volta/error.h>
#include <volta/operand.h>

#include "core/distributions.h"

namespace volta {

enum class Distribution : uint8_t { uniform, normal, randint, bernoulli, exponential };

constexpr std::string_view name(Distribution kind) {
  constexpr std::string_view names[] = {"uniform", "normal", "randint", "bernoulli", "exponential"};
  return names[size_t(kind)];
}

struct RandomCall {
  Distribution kind;
  DType dtype;
  double a = 0, b = 1;  // uniform: [a, b) · normal: mean, deviation · bernoulli: probability a · exponential: rate a
  int64_t low = 0;  // randint: low, low + 1, …, `range` values in all; 0 stands for 2^64. The sum wraps, so u64 takes
  uint64_t range = 0;  // its bounds as bits
  uint64_t seed = 0, offset = 0;
  int64_t n = 0;
  void* out = nullptr;  // contiguous
};

// How far a call moves its generator's offset: four elements to a counter, whatever the distribution and dtype.
constexpr uint64_t counters_used(Distribution, DType, int64_t n) { return (uint64_t(n) + 3) / 4; }

// Throws if the call's parameters or dtype make no sense, in the name of `op` or of the distribution.
void check(const RandomCall& call, const char* op = nullptr);

namespace random {

// The neighbour of x toward +infinity or -infinity.
template <class T> T neighbour(T x, bool up) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1));
  const Bits bits = std::bit_cast<Bits>(x), magnitude = Bits(bits & ~sign);
  if (magnitude == 0) return std::bit_cast<T>(up ? Bits(1) : Bits(sign | 1));
  const bool outward = (bits == magnitude) == up;
  return std::bit_cast<T>(Bits(outward ? bits + 1 : bits - 1));
}

// Bounds are those of the output's dtype; the arithmetic is in C, which holds them all.
template <class T, class C> Uniform<C> make_uniform(double a, double b) {
  const auto value = [](T x) { return Scalar(x).as<double>(); };
  T least = Scalar(a).as<T>(), greatest = Scalar(b).as<T>();
  if (value(least) < a) least = neighbour(least, true);
  while (value(greatest) >= b) greatest = neighbour(greatest, false);
  const C lowest = C(value(least)), highest = C(value(greatest));
  return {C(a), C(b - a), lowest, highest < lowest ? lowest : highest};
}

inline Bernoulli make_bernoulli(double probability) {
  const uint64_t chances = uint64_t(__builtin_floor(probability * 0x1p32 + 0.5));
  return {uint32_t(chances - 1), chances != 0};
}

template <class T, class F> void with_real_formula(const RandomCall& call, F&& f) {
  using C = std::conditional_t<sizeof(T) == 8, double, float>;
  if (call.kind == Distribution::uniform) f(make_uniform<T, C>(call.a, call.b));
  else if (call.kind == Distribution::normal) f(Normal<C>{C(call.a), C(call.b)});
  else f(Exponential<C>{C(1 / call.a)});
}

// Calls f with the formula of a checked call.
template <class F> void with_formula(const RandomCall& call, F&& f) {
  if (call.kind == Distribution::bernoulli) f(make_bernoulli(call.a));
  else if (call.kind == Distribution::randint && call.range - 1 < 0xffffffffu)
    f(NarrowInteger{uint64_t(call.low), uint32_t(call.range)});
  else if (call.kind == Distribution::randint) f(WideInteger{uint64_t(call.low), call.range});
  else if (call.dtype == f16) with_real_formula<float16>(call, f);
  else if (call.dtype == bf16) with_real_formula<bfloat16>(call, f);
  else if (call.dtype == f32) with_real_formula<float>(call, f);
  else with_real_formula<double>(call, f);
}

}  // namespace random
}  // namespace volta
