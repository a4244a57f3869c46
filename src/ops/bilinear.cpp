// Bilinear maps.
#include <volta/ops.h>
#include <volta/plain.h>

#include "ops/check.h"

namespace volta {

Tensor Plain::bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  const char* op = "bilinear";
  const Shape &sa = a.checked(op).shape(), &sb = b.checked(op).shape(), &sw = weight.checked(op).shape();
  bool fits = sw.size() == 3 && !sa.empty() && sa.size() == sb.size() && sa.back() == sw[1] && sb.back() == sw[2];
  for (int i = 0; fits && i + 1 < sa.size(); ++i) fits = sa[i] == sb[i];
  require(fits, ErrorKind::shape, op, a, " and ", b, " with weight ", weight,
          ": needs [..., in1], [..., in2] and [out, in1, in2]");
  require(!bias.defined() || bias.shape() == Shape{sw[0]}, ErrorKind::shape, op, "the bias must have shape [", sw[0],
          "], not ", bias.defined() ? bias.shape() : Shape());
  const Operand all[] = {a, b, weight, bias.defined() ? bias : weight};
  product_dtype(all, op);
  for (const Tensor& t : {b, weight, bias})
    if (t.defined()) common_device(a, t, op);
  // First a with every W_o, then the inner product with b.
  const Tensor wide = linear(a, weight.transpose(1, 2).reshape({sw[0] * sw[2], sw[1]}));
  const Tensor half = blamed_on(op, [&] { return wide.unflatten(-1, {sw[0], sw[2]}); });
  const Tensor y = matmul(half, b.unsqueeze(-1)).squeeze(-1);
  return bias.defined() ? y + bias : y;
}

}  // namespace volta
