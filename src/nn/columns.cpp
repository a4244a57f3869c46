// Windows as columns and back, each the other's gradient.
#include <volta/create.h>
#include <volta/nn/reflect.h>
#include <volta/nn/resample.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/check.h"

namespace volta {
namespace {

// The windows of an image of two axes.
struct Columns {
  const char* op;
  Shape image, kernel, stride, padding, dilation, places;
  int64_t count() const { return places.numel(); }
};

Columns columns_of(const char* op, const Shape& image, const PerAxis& kernel, const ColumnOptions& o) {
  Columns c{op,
            image,
            kernel.of(2, op, "kernel_size"),
            o.stride.of(2, op, "stride"),
            o.padding.of(2, op, "padding"),
            o.dilation.of(2, op, "dilation"),
            {}};
  for (int i = 0; i < 2; ++i) {
    require(c.kernel[i] > 0 && c.stride[i] > 0 && c.dilation[i] > 0 && c.padding[i] >= 0, Wrong::argument, op,
            "kernel ", c.kernel, ", stride ", c.stride, ", dilation ", c.dilation, " and padding ", c.padding,
            ": sizes must be positive");
    const int64_t room = image[i] + 2 * c.padding[i] - c.dilation[i] * (c.kernel[i] - 1) - 1;
    require(image[i] > 0 && room >= 0, Wrong::shape, op, "a kernel of ", c.kernel, " with dilation ", c.dilation,
            " is larger than an image of ", image, " padded by ", c.padding);
    c.places.push_back(room / c.stride[i] + 1);
  }
  return c;
}

// Of a padded image [n, c, h, w], the elements that tap (i, j) of every window sees.
Tensor seen_by(const Tensor& padded, const Columns& c, int64_t i, int64_t j) {
  const auto along = [&](const Tensor& x, int axis, int64_t tap) {
    const int64_t first = tap * c.dilation[axis];
    return x.slice(axis + 2, first, first + (c.places[axis] - 1) * c.stride[axis] + 1, c.stride[axis]);
  };
  return along(along(padded, 0, i), 1, j);
}

Tensor to_image(const Tensor& columns, const Columns& c);

Tensor to_columns(const Tensor& x, const Columns& c) {
  const int64_t n = x.size(0), channels = x.size(1);
  Tensor y;
  {
    const NoGrad off;
    const Tensor padded = pad(x, {c.padding[1], c.padding[1], c.padding[0], c.padding[0]});
    y = empty({n, channels, c.kernel[0], c.kernel[1], c.places[0], c.places[1]}, {x.dtype(), x.device()});
    for (int64_t i = 0; i < c.kernel[0]; ++i)
      for (int64_t j = 0; j < c.kernel[1]; ++j) y.select(2, i).select(2, j).copy_(seen_by(padded, c, i, j));
    y = y.reshape({n, channels * c.kernel.numel(), c.count()});
  }
  return record(c.op, y, {x}, [c](const Tensor& g, Gradients& d) { d[0] = to_image(g, c); });
}

Tensor to_image(const Tensor& columns, const Columns& c) {
  const int64_t n = columns.size(0), channels = columns.size(1) / c.kernel.numel();
  Tensor y;
  {
    const NoGrad off;
    const Tensor split = columns.reshape({n, channels, c.kernel[0], c.kernel[1], c.places[0], c.places[1]});
    const Tensor padded = zeros({n, channels, c.image[0] + 2 * c.padding[0], c.image[1] + 2 * c.padding[1]},
                                {is_half(columns.dtype()) ? f32 : columns.dtype(), columns.device()});
    for (int64_t i = 0; i < c.kernel[0]; ++i)
      for (int64_t j = 0; j < c.kernel[1]; ++j) seen_by(padded, c, i, j).add_(split.select(2, i).select(2, j));
    y = padded.narrow(2, c.padding[0], c.image[0]).narrow(3, c.padding[1], c.image[1]).to(columns.dtype()).contiguous();
  }
  return record(c.op, y, {columns}, [c](const Tensor& g, Gradients& d) { d[0] = to_columns(g, c); });
}

}  // namespace

Tensor im2col(const Tensor& x, const PerAxis& kernel, const ColumnOptions& o) {
  const char* op = "im2col";
  const int64_t rank = x.checked(op).dim();
  require(rank == 3 || rank == 4, Wrong::shape, op, "needs [n, c, h, w] or [c, h, w], got shape ", x);
  if (rank == 3) return im2col(x.unsqueeze(0), kernel, o).squeeze(0);
  return to_columns(x, columns_of(op, {x.size(2), x.size(3)}, kernel, o));
}

Tensor col2im(const Tensor& columns, const PerAxis& output_size, const PerAxis& kernel, const ColumnOptions& o) {
  const char* op = "col2im";
  const int64_t rank = columns.checked(op).dim();
  require(rank == 2 || rank == 3, Wrong::shape, op, "needs [n, c * window, places] or one axis fewer, got shape ",
          columns);
  if (rank == 2) return col2im(columns.unsqueeze(0), output_size, kernel, o).squeeze(0);
  const Columns c = columns_of(op, output_size.of(2, op, "output_size"), kernel, o);
  require(columns.size(1) % c.kernel.numel() == 0 && columns.size(2) == c.count(), Wrong::shape, op,
          "columns of shape ", columns, " are not those of ", c.count(), " windows of ", c.kernel);
  return to_image(columns, c);
}

namespace nn {
Tensor Unfold::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return im2col(in, kernel_size, options); });
}
Tensor Fold::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return col2im(in, output_size, kernel_size, options); });
}
}  // namespace nn
}  // namespace volta
