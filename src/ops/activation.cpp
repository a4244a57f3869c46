// Activations that are not elementwise, or draw; and pixels as channels.
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/checked_arithmetic.h"
#include "ops/check.h"

namespace volta {

Tensor glu(const Tensor& x, int64_t dim) {
  require_floating(x, "glu");
  const int64_t n = x.size(axis_of(x, dim, "glu", 1));
  require(n % 2 == 0, ErrorKind::shape, "glu", "axis ", dim, " of ", x, " has an odd size");
  if (is_half(x.dtype())) return glu(x.to(f32), dim).to(x.dtype());  // its gradient's products need not fit a half
  return x.narrow(dim, 0, n / 2) * sigmoid(x.narrow(dim, n / 2, n / 2));
}
Tensor Plain::softmin(const Tensor& x, int64_t dim) {
  require_floating(x, "softmin");
  return blamed_on("softmin", [&] { return softmax(-x, dim); });
}

Tensor Plain::prelu(const Tensor& x, const Tensor& weight) {
  require_floating(x, "prelu"), require_floating(weight, "prelu");
  common_device(x, weight, "prelu");
  const int64_t n = weight.numel(), channels = x.dim() > 1 ? x.size(1) : 1;
  require(weight.dim() <= 1 && (n == 1 || n == channels), ErrorKind::shape, "prelu", "a weight of shape ", weight,
          " for an input of shape ", x, ": needs one slope or one per channel");
  Shape shape = Shape::filled(int(x.dim()), 1);
  if (n != 1) shape[1] = n;
  const Tensor above = x > 0;
  return where(above, x,
               where(above, 0, x) * weight.reshape(shape));  // an infinite x has no part in the slope's gradient
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training) {
  require_floating(x, "rrelu");
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Options like{.dtype = x.dtype(), .device = x.device()};
  const Tensor slopes = blamed_on("rrelu", [&] { return uniform(x.shape(), lower, upper, like); });
  return where(x > 0, x, x * slopes);
}

namespace {

// x of [..., c, h, w] seen as [n, ...sizes], its axes reordered, with the last three axes `last`.
Tensor rearranged(const char* op, const Tensor& x, Shape sizes, const Shape& order,
                  std::initializer_list<int64_t> last) {
  Shape out;
  int64_t n = 1;
  for (int axis = 0; axis < x.dim() - 3; ++axis) {
    out.push_back(x.shape()[axis]);
    n *= x.shape()[axis];
  }
  for (const int64_t size : last) out.push_back(size);
  sizes.insert(0, n);
  return blamed_on(op, [&] { return x.reshape(sizes).permute(order).reshape(out); });
}
void require_factor(bool fits, const char* op, const Tensor& x, int64_t factor) {
  require(fits, ErrorKind::shape, op, "an input of shape ", x, " does not fit the factor ", factor);
}

}  // namespace

Tensor gelu(const Tensor& x, const GELUOptions& options) {
  const bool tanh = options.approximate.of("gelu", "approximate") == GeluApproximation::tanh;
  return tanh ? blamed_on("gelu", [&] { return gelu_tanh(x); }) : gelu(x);
}
Tensor channel_shuffle(const Tensor& x, Int groups) {
  const char* op = "channel_shuffle";
  const int64_t g = groups;
  const bool fits = x.checked(op).dim() > 2 && g > 0 && x.size(1) % g == 0;
  require(fits, ErrorKind::shape, op, "an input of shape ", x, " has no channels that fall into ", g, " groups");
  return blamed_on(op, [&] {
    return x.reshape(spliced(x.shape(), 1, 1, {g, x.size(1) / g})).transpose(1, 2).reshape(x.shape());
  });
}
Tensor pixel_shuffle(const Tensor& x, Int factor) {
  const int64_t r = factor;
  const bool fits = x.checked("pixel_shuffle").dim() > 2 && r > 0;
  require_factor(fits && x.size(-3) % (Checked(r) * r).value("pixel_shuffle") == 0, "pixel_shuffle", x, r);
  const int64_t c = x.size(-3) / (r * r), h = x.size(-2), w = x.size(-1);
  return rearranged("pixel_shuffle", x, {c, r, r, h, w}, {0, 1, 4, 2, 5, 3},
                    {c, (Checked(h) * r).value("pixel_shuffle"), (Checked(w) * r).value("pixel_shuffle")});
}
Tensor pixel_unshuffle(const Tensor& x, Int factor) {
  const int64_t r = factor;
  const bool fits = x.checked("pixel_unshuffle").dim() > 2 && r > 0;
  require_factor(fits && x.size(-2) % r == 0 && x.size(-1) % r == 0, "pixel_unshuffle", x, r);
  const int64_t c = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r;
  return rearranged("pixel_unshuffle", x, {c, h, r, w, r}, {0, 1, 3, 5, 2, 4},
                    {(Checked(c) * r * r).value("pixel_unshuffle"), h, w});
}

}  // namespace volta
