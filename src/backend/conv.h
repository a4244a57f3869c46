// ConvCall: one of the three products that tie the input x, the weight w and the output y of a convolution.
#pragma once
#include <volta/conv_algorithm.h>

#include "backend/backend.h"

namespace volta {

// Output o of an axis sees input o * stride + k * dilation - padding under kernel element k; zero outside the input.
struct ConvAxis {
  int64_t input = 1, kernel = 1, output = 1, stride = 1, padding = 0, dilation = 1;
};

// One- and two-dimensional convolutions have ones in front.
struct ConvGeometry {
  static constexpr int space = 3;
  int64_t batch, in_channels, out_channels, groups;
  ConvAxis axes[space];
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t outputs() const { return axes[0].output * axes[1].output * axes[2].output; }
  double work() const {  // multiply-adds
    const int64_t inputs = in_channels / groups;
    return double(batch) * double(inputs) * double(out_channels) * double(taps()) * double(outputs());
  }
};

// forward: y = x * w + bias; input: x = the transpose of that applied to y, + bias; weight: w = the correlation of x and
// y. Each piece is linear in the other two, whose gradients are the other two pieces. x is [batch, in_channels, axes…], w
// [out_channels, in_channels / groups, axes…] and y [batch, out_channels, axes…]; what is written is contiguous, and so is
// w; x and y may have any strides where they are read. With `channels_last`, where a device takes that, w is in that order
// and so is what is written, but for a w that may be contiguous. All are of one floating dtype; halves are summed in f32.
struct ConvCall {
  ConvPiece piece;
  ConvAlgorithm algorithm = ConvAlgorithm::automatic;
  int64_t chunk = 0;
  Arg x, w, y, bias;  // bias: a contiguous value per channel of what is written, or without data
  ConvGeometry geometry;
  bool channels_last = false;
  // Programs for the CPU (ops/optimize) set these, forward, in f32 or f64: y = activation(x * w + bias + added), where `added`
  // lies as y does.
  Arg added = {};
  Fused activation = Fused::none;
  Arg kept = {};  // what the device's keep() made of w, which then has no data; `algorithm` is the one it is for
};

}  // namespace volta
