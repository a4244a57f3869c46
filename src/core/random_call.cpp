// The checks of a call for random numbers.
#include "core/random_call.h"

#include <cmath>

#include "core/check.h"
#include "core/integer_range.h"

namespace volta {

void check(const RandomCall& call, const char* op) {
  const auto check = [&](bool fine, const auto&... why) {
    require(fine, ErrorKind::argument, op ? op : name(call.kind).data(), why...);
  };
  const double a = call.a, b = call.b, most = largest_finite(call.dtype);
  if (call.kind == Distribution::bernoulli)
    return check(a >= 0 && a <= 1, "the probability ", a, " is not between 0 and 1");
  if (call.kind == Distribution::randint)
    return check(holds_integers(call.dtype, call.low, call.range), call.dtype,
                 " does not hold every integer of the range");
  require(is_floating(call.dtype), ErrorKind::dtype, op ? op : name(call.kind).data(), "needs a floating dtype, got ",
          call.dtype);
  check(std::isfinite(a) && std::isfinite(b), "parameters ", a, " and ", b, " must be finite");
  check(call.kind != Distribution::normal || b >= 0, "the standard deviation ", b, " is negative");
  check(call.kind != Distribution::exponential || a > 0, "the rate ", a, " is not positive");
  if (call.kind != Distribution::uniform) return;
  check(a <= b, "the lower bound ", a, " is not below the upper bound ", b);
  check(a >= -most && b <= most && b - a <= most, "bounds ", a, " and ", b, " are beyond ", call.dtype);
}

}  // namespace volta
