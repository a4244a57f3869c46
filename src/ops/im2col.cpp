// Windows as columns and back, each the other's gradient.
#include <volta/create.h>
#include <volta/ops.h>
#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "graph/record.h"
#include "ops/check.h"

namespace volta {
namespace {

// The windows of an image of two axes.
struct Columns {
  const char* op;
  Shape image, kernel, stride, padding, dilation, places;
  int64_t count() const { return places.numel(); }

  // A view of a padded image [n, c, h, w]: the input of every window at tap (i, j), or of window (i, j) at every tap.
  Tensor seen(const Tensor& padded, bool by_tap, int64_t i, int64_t j) const {
    const Shape &from = by_tap ? dilation : stride, &step = by_tap ? stride : dilation, &n = by_tap ? places : kernel;
    const auto along = [&](const Tensor& x, int axis, int64_t at) {
      const int64_t first = at * from[axis];
      return x.slice(axis + 2, first, first + (n[axis] - 1) * step[axis] + 1, step[axis]);
    };
    return along(along(padded, 0, i), 1, j);
  }
  // f(part of columns [n, c, kernel…, places…], part of the padded image), as few of them as there are taps or windows.
  template <class F> void each(const Tensor& columns, const Tensor& padded, F f) const {
    if (columns.numel() == 0) return;
    const bool by_tap = kernel.numel() <= places.numel();
    const Shape& n = by_tap ? kernel : places;
    const int axis = by_tap ? 2 : 4;
    for (int64_t i = 0; i < n[0]; ++i)
      for (int64_t j = 0; j < n[1]; ++j) f(columns.select(axis, i).select(axis, j), seen(padded, by_tap, i, j));
  }
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
    require(c.kernel[i] > 0 && c.stride[i] > 0 && c.dilation[i] > 0 && c.padding[i] >= 0, ErrorKind::argument, op,
            "kernel ", c.kernel, ", stride ", c.stride, ", dilation ", c.dilation, " and padding ", c.padding,
            ": sizes must be positive");
    const int64_t room =
        (image[i] + 2 * Checked(c.padding[i]) - Checked(c.dilation[i]) * (c.kernel[i] - 1) - 1).value(op);
    require(image[i] > 0 && room >= 0, ErrorKind::shape, op, "a kernel of ", c.kernel, " with dilation ", c.dilation,
            " is larger than an image of ", image, " padded by ", c.padding);
    c.places.push_back(room / c.stride[i] + 1);
  }
  checked_numel(joined(c.kernel, c.places), op);
  return c;
}

Tensor to_image(const Tensor& columns, const Columns& c);

Tensor to_columns(const Tensor& x, const Columns& c) {
  const int64_t n = x.size(0), channels = x.size(1);
  Tensor y;
  {
    const NoGrad off;
    y = allocate({n, channels, c.kernel[0], c.kernel[1], c.places[0], c.places[1]}, x.dtype(), x.device(), c.op);
    const Tensor padded = pad(x, {c.padding[1], c.padding[1], c.padding[0], c.padding[0]});
    c.each(y, padded, [](Tensor part, const Tensor& seen) { part.copy_(seen); });
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
    c.each(split, padded, [](const Tensor& part, Tensor seen) { seen.add_(part); });
    y = padded.narrow(2, c.padding[0], c.image[0]).narrow(3, c.padding[1], c.image[1]).to(columns.dtype()).contiguous();
  }
  return record(c.op, y, {columns}, [c](const Tensor& g, Gradients& d) { d[0] = to_columns(g, c); });
}

}  // namespace

Tensor im2col(const Tensor& x, const PerAxis& kernel, const ColumnOptions& o) {
  const char* op = "im2col";
  const int64_t rank = x.checked(op).dim();
  require(rank == 3 || rank == 4, ErrorKind::shape, op, "needs [n, c, h, w] or [c, h, w], got shape ", x);
  if (rank == 3) return im2col(x.unsqueeze(0), kernel, o).squeeze(0);
  return to_columns(x, columns_of(op, {x.size(2), x.size(3)}, kernel, o));
}

Tensor col2im(const Tensor& columns, const PerAxis& output_size, const PerAxis& kernel, const ColumnOptions& o) {
  const char* op = "col2im";
  const int64_t rank = columns.checked(op).dim();
  require(rank == 2 || rank == 3, ErrorKind::shape, op, "needs [n, c * window, places] or one axis fewer, got shape ",
          columns);
  if (rank == 2) return col2im(columns.unsqueeze(0), output_size, kernel, o).squeeze(0);
  const Columns c = columns_of(op, output_size.of(2, op, "output_size"), kernel, o);
  require(columns.size(1) % c.kernel.numel() == 0 && columns.size(2) == c.count(), ErrorKind::shape, op,
          "columns of shape ", columns, " are not those of ", c.count(), " windows of ", c.kernel);
  return to_image(columns, c);
}

}  // namespace volta
