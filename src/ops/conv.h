// What the files of convolution share: its geometry with the shapes that follow, and its composed form.
#pragma once
#include "backend/conv.h"

namespace volta {

// A convolution of `rank` axes: what its three pieces share.
struct Convolution {
  const char* op;
  int rank;
  ConvGeometry g;
  ConvAlgorithm algorithm;
  int64_t chunk;
  bool channels_last_weight = false;  // in whose order its gradient is written

  Shape shaped(Shape front, int64_t ConvAxis::*size) const {
    for (int i = ConvGeometry::space - rank; i < ConvGeometry::space; ++i) front.push_back(g.axes[i].*size);
    return front;
  }
  Shape x_shape() const { return shaped({g.batch, g.in_channels}, &ConvAxis::input); }
  Shape w_shape() const { return shaped({g.out_channels, g.in_channels / g.groups}, &ConvAxis::kernel); }
  Shape y_shape() const { return shaped({g.batch, g.out_channels}, &ConvAxis::output); }
};

// A piece without a loop of the device's own, as one matrix product for every tap of the kernel: forward(x, w),
// input(w, y) or weight(x, y). No graph.
Tensor convolve_by_taps(const Convolution& c, ConvPiece piece, const Tensor& a, const Tensor& b);

}  // namespace volta
