// The checks of a call for random numbers.
#include "core/random_call.h"

#include <cmath>

namespace volta {
namespace {

[[noreturn]] void refuse(const RandomCall& call, const std::string& why) {
  throw Error(Error::Kind::argument, name(call.kind), why);
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.FEp127;
    case DType::f32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

// Both ends of the range must be values of the dtype; of a floating one, every integer between them too.
bool holds_integers(const RandomCall& call) {
  const int64_t low = call.low;
  const uint64_t steps = call.range - 1;
  return visit(call.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, uint64_t>) {
      return uint64_t(low) + steps >= uint64_t(low);
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
      return low >= least && low <= most && steps <= uint64_t(most) - uint64_t(low);
    } else {
      constexpr int digits = std::is_same_v<T, float16>    ? 11
                             : std::is_same_v<T, bfloat16> ? 8
                             : sizeof(T) == 4              ? 24
                                                           : 53;
      constexpr int64_t exact = int64_t(1) << digits;
      return low >= -exact && low <= exact && steps <= uint64_t(exact - low);
    }
  });
}

std::string text(double x) { return std::to_string(x); }

}  // namespace

void check(const RandomCall& call) {
  const double a = call.a, b = call.b, most = largest(call.dtype);
  const bool real = call.kind != Distribution::randint && call.kind != Distribution::bernoulli;
  if (real && !is_floating(call.dtype)) {
    throw Error(Error::Kind::dtype, name(call.kind), "needs a floating dtype, got " + std::string(name(call.dtype)));
  }
  switch (call.kind) {
    case Distribution::uniform:
      if (!(a <= b)) refuse(call, "the lower bound " + text(a) + " is not below the upper bound " + text(b));
      if (!(a >= -most && b <= most && b - a <= most)) {
        refuse(call, "bounds " + text(a) + " and " + text(b) + " are beyond " + std::string(name(call.dtype)));
      }
      break;
    case Distribution::normal:
      if (!(b >= 0)) refuse(call, "the standard deviation " + text(b) + " is negative");
      break;
    case Distribution::exponential:
      if (!(a > 0)) refuse(call, "the rate " + text(a) + " is not positive");
      break;
    case Distribution::bernoulli:
      if (!(a >= 0 && a <= 1)) refuse(call, "the probability " + text(a) + " is not between 0 and 1");
      break;
    case Distribution::randint:
      if (!holds_integers(call))
        refuse(call, std::string(name(call.dtype)) + " does not hold every integer of the range");
      break;
  }
}

}  // namespace volta
