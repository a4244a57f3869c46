// What the files of convolution share: its geometry with the shapes that follow, and its composed form.
#pragma once
#include "backend/convolve.h"

namespace volta {

// A convolution of `rank` axes: what its three pieces share.
struct Convolution {
  const char* op;
  int rank;
  ConvolveGeometry g;
  ConvAlgorithm algorithm;
  int64_t chunk;

  Shape shaped(Shape front, int64_t ConvolveAxis::*size) const {
    for (int i = ConvolveGeometry::space - rank; i < ConvolveGeometry::space; ++i) front.push_back(g.axes[i].*size);
    return front;
  }
  Shape x_shape() const { return shaped({g.batch, g.in_channels}, &ConvolveAxis::input); }
  Shape w_shape() const { return shaped({g.out_channels, g.in_channels / g.groups}, &ConvolveAxis::kernel); }
  Shape y_shape() const { return shaped({g.batch, g.out_channels}, &ConvolveAxis::output); }
};

// A piece without a loop of the device's own, as one matrix product for every tap of the kernel: forward(x, w),
// input(w, y) or weight(x, y). No graph.
Tensor convolve_by_taps(const Convolution& c, ConvPiece piece, const Tensor& a, const Tensor& b);

}  // namespace volta
