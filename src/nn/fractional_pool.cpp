// Layers of fractional max pooling.
#include <volta/nn/fractional_pool.h>

#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "ops/fractional_pool.h"

namespace volta::nn {

template <int Axes> FractionalMaxPool<Axes>::FractionalMaxPool(const PerAxis& kernel, const FractionalPoolOptions& o)
    : Layer(Axes == 2 ? "FractionalMaxPool2d" : "FractionalMaxPool3d"), kernel_size(kernel), options(o) {
  for (const int64_t k : kernel.of(Axes, type(), "kernel_size")) positive(k, type(), "kernel_size");
  check_ratio(o.output_ratio, o.output_size, Axes, type());
}
template <int Axes> Tensor FractionalMaxPool<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    return Axes == 2 ? fractional_max_pool2d(in, kernel_size, options)
                     : fractional_max_pool3d(in, kernel_size, options);
  });
}
template <int Axes> ValuesIndices FractionalMaxPool<Axes>::with_indices(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    return Axes == 2 ? fractional_max_pool2d_with_indices(in, kernel_size, options)
                     : fractional_max_pool3d_with_indices(in, kernel_size, options);
  });
}
template class FractionalMaxPool<2>;
template class FractionalMaxPool<3>;

}  // namespace volta::nn
