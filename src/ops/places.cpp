// Where elements stand: indices of what is not 0, of places in a flattened tensor, and classes as places.
#include <algorithm>

#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "graph/record.h"
#include "ops/check.h"
#include "ops/gather_scatter.h"

namespace volta {

Tensor argwhere(const Tensor& x) {
  return blamed_on("argwhere", [&] { return nonzero(x); });
}

Tensor nonzero(const Tensor& x) {
  const NoGrad off;
  Tensor rest = true_positions("nonzero", x.checked("nonzero").dtype() == boolean ? x : x != 0);
  const Tensor out = allocate({rest.numel(), x.dim()}, i64, x.device(), "nonzero");
  for (int axis = int(x.dim()) - 1; axis >= 0; --axis) {
    const int64_t size = std::max<int64_t>(1, x.shape()[axis]);
    out.select(1, axis).copy_(axis == 0 ? rest : remainder(rest, size));
    if (axis > 0) rest = floor_divide(rest, size);
  }
  return out;
}

std::vector<Tensor> unravel_index(const Tensor& indices, const Shape& shape) {
  const char* op = "unravel_index";
  const NoGrad off;
  Tensor rest = as_index(indices, op);
  check_indices(rest, checked_numel(shape, op), 0, op);
  std::vector<Tensor> places(size_t(shape.size()));
  blamed_on(op, [&] {
    for (int axis = shape.size() - 1; axis >= 0; --axis) {
      places[size_t(axis)] = remainder(rest, shape[axis]);
      rest = floor_divide(rest, shape[axis]);
    }
  });
  return places;
}

std::vector<Tensor> where(const Tensor& condition) {
  condition.checked("where");
  return blamed_on("where", [&] { return nonzero(atleast_1d(condition)).unbind(1); });
}

Tensor one_hot(const Tensor& x, int64_t num_classes) {
  const char* op = "one_hot";
  const NoGrad off;
  const Tensor classes = as_index(x, op);
  require(num_classes >= -1, ErrorKind::argument, op, "num_classes is -1 or not negative, got ", num_classes);
  require(num_classes >= 0 || x.numel() > 0, ErrorKind::argument, op,
          "an empty tensor does not say how many classes there are; give num_classes");
  const int64_t n = num_classes < 0 ? (Checked(read_for<int64_t>(op, amax(classes))) + 1).value(op) : num_classes;
  check_indices(classes, n, int(x.dim()), op);
  blamed_on(op, [&] { checked_numel(joined(x.shape(), {n}), op); });
  return blamed_on(op, [&] { return (classes.unsqueeze(-1) == counting(n, x)).to(i64); });
}

}  // namespace volta
