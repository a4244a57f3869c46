// Positions of sequences: sines, and turns of pairs of features.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include "core/arguments.h"
#include "core/checked_arithmetic.h"
#include "ops/check.h"

namespace volta {
namespace {

// Angles of `length` positions from `offset` on, one for each pair, in f64: the positions may be large.
Tensor angles(const char* op, int64_t offset, int64_t length, int64_t width, double base, Device device) {
  const Tensor positions = arange(offset, (Checked(offset) + length).value(op), 1, {f64, device});
  const Tensor pairs = arange(0, width, 2, {f64, device});
  return outer(positions, exp(pairs * (-std::log(base) / double(width))));
}

}  // namespace

Tensor sinusoidal_positions(Int length, Int width, double base, const Options& options) {
  require(length >= 0 && width > 0, ErrorKind::argument, "sinusoidal_positions", "cannot make ", length, " x ", width);
  above_zero(base, "sinusoidal_positions", "base");
  const Tensor a = angles("sinusoidal_positions", 0, length, width, base, options.device.value_or(default_device()));
  return stack({sin(a), cos(a)}, -1)
      .flatten(1)
      .narrow(1, 0, width)
      .contiguous()
      .to(options.dtype.value_or(default_dtype()));
}

Tensor rotary_positions(const Tensor& x, const RotaryOptions& o) {
  const char* op = "rotary_positions";
  require(x.checked(op).dim() >= 2 && x.size(-1) % 2 == 0, ErrorKind::shape, op, "needs [..., time, even width], got ",
          x);
  require(is_floating(x.dtype()), ErrorKind::dtype, op, "needs a floating input, got ", x.dtype());
  above_zero(o.base, op, "base");
  const Tensor a = angles(op, o.offset, x.size(-2), x.size(-1), o.base, x.device());
  const Tensor c = cos(a).to(x.dtype()), s = sin(a).to(x.dtype());
  if (o.interleaved) {
    const Tensor pairs = blamed_on(op, [&] { return x.unflatten(-1, Shape{x.size(-1) / 2, 2}); });
    const Tensor p = pairs.select(-1, 0), q = pairs.select(-1, 1);
    return stack({p * c - q * s, q * c + p * s}, -1).flatten(-2);
  }
  const auto halves = x.chunk(2, -1);
  return cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
}

}  // namespace volta
