// Convolution where a device has no loop for it: a matrix product for every tap of the kernel, which needs no patches.
#include <algorithm>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "ops/conv.h"

namespace volta {
namespace {

constexpr int space = ConvGeometry::space;

// What tap k sees of a zero-padded x: every output's input under it, [batch, groups, channels / groups, outputs…].
Tensor under_tap(const Convolution& c, const Tensor& padded, int64_t k) {
  Tensor seen = padded;
  for (int i = space - 1, axis = c.rank + 1; axis > 1; --i, --axis) {
    const ConvAxis& a = c.g.axes[i];
    const int64_t first = k % a.kernel * a.dilation;
    seen = seen.slice(axis, first, first + (a.output - 1) * a.stride + 1, a.stride);
    k /= a.kernel;
  }
  return seen.unflatten(1, {c.g.groups, -1});
}

// Pads so that every tap of every output lies inside.
Tensor padded(const Convolution& c, const Tensor& x) {
  std::vector<int64_t> sides;
  for (int i = space - 1; i >= space - c.rank; --i) {
    const ConvAxis& a = c.g.axes[i];
    const int64_t reach = (a.output - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
    sides.push_back(a.padding);
    sides.push_back(std::max<int64_t>(0, reach - a.padding - a.input));
  }
  return pad(x, sides);
}
Tensor cropped(const Convolution& c, Tensor x) {
  for (int i = space - c.rank, axis = 2; i < space; ++i, ++axis)
    x = x.narrow(axis, c.g.axes[i].padding, c.g.axes[i].input);
  return x;
}

}  // namespace

Tensor convolve_by_taps(const Convolution& c, ConvPiece piece, const Tensor& a, const Tensor& b) {
  const ConvGeometry& g = c.g;
  const int64_t per_group = g.out_channels / g.groups, outputs = g.outputs();
  const Tensor w = piece == ConvPiece::forward ? b : a;  // not used for the weight
  const Tensor image = piece == ConvPiece::input
                           ? padded(c, zeros(c.x_shape(), {.dtype = a.dtype(), .device = a.device()}))
                           : padded(c, a);
  const Tensor y = piece == ConvPiece::forward
                       ? zeros({g.batch, g.groups, per_group, outputs}, {.dtype = a.dtype(), .device = a.device()})
                       : b.reshape({g.batch, g.groups, per_group, outputs});
  std::vector<Tensor> taps;
  for (int64_t k = 0; k < g.taps(); ++k) {
    Tensor seen = under_tap(c, image, k);
    const Tensor matrix =
        piece == ConvPiece::weight ? Tensor() : w.reshape({g.groups, per_group, -1, g.taps()}).select(-1, k);
    if (piece == ConvPiece::forward) Tensor(y).add_(matmul(matrix, seen.flatten(3)));
    else if (piece == ConvPiece::input) seen.add_(matmul(matrix.mT(), y).reshape(seen.shape()));
    else taps.push_back(matmul(y, seen.flatten(3).mT()).sum(0));
  }
  if (piece == ConvPiece::forward) return y.reshape(c.y_shape());
  return piece == ConvPiece::input ? cropped(c, image).contiguous() : stack(taps, -1).reshape(c.w_shape());
}

}  // namespace volta
