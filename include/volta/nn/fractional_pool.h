// Layers of fractional max pooling.
#pragma once
#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

// nn::FractionalMaxPool2d(3, {.output_size = {13, 12}}); with_indices gives the places too.
template <int Axes> class FractionalMaxPool : public Layer {
 public:
  FractionalMaxPool(const PerAxis& kernel, const FractionalPoolOptions& o);
  Tensor operator()(const Tensor& x) const;
  ValuesIndices with_indices(const Tensor& x) const;
  void fields(Fields&) override {}
  PerAxis kernel_size;
  FractionalPoolOptions options;
};
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;

}  // namespace volta::nn
