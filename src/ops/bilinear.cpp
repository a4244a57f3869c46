// Bilinear maps.
#include <volta/ops.h>

#include <volta/create.h>

#include "core/check.h"

namespace volta {

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  const auto fail = [&] {
    throw Error(Error::Kind::shape, "bilinear",
                a.shape().str() + " and " + b.shape().str() + " with weight " + weight.shape().str() +
                    ": needs [..., in1], [..., in2] and [out, in1, in2]");
  };
  const Shape &sa = a.shape(), &sb = b.shape(), &sw = weight.shape();
  if (sw.size() != 3 || sa.empty() || sa.size() != sb.size() || sa.back() != sw[1] || sb.back() != sw[2]) fail();
  for (int i = 0; i + 1 < sa.size(); ++i)
    if (sa[i] != sb[i]) fail();
  // First a with every W_o, then the inner product with b.
  const Tensor half = linear(a, weight.transpose(1, 2).reshape({sw[0] * sw[2], sw[1]})).unflatten(-1, {sw[0], sw[2]});
  const Tensor y = matmul(half, b.unsqueeze(-1)).squeeze(-1);
  return bias.defined() ? y + bias : y;
}

}  // namespace volta
