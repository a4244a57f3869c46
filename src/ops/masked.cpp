// Ops with masks, and those that find elements: masked_fill, masked_select, nonzero, one_hot.
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/cpu/cpu.h"
#include "ops/index.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

void require_mask(const Tensor& x, const Tensor& mask, const char* op) {
  common_device(x.checked(op), mask.checked(op), op);
  if (mask.dtype() != boolean)
    throw Error(Error::Kind::dtype, op, "the mask must be boolean, got " + std::string(name(mask.dtype())));
}

}  // namespace

Tensor true_positions(const Tensor& mask) {
  const NoGrad off;
  const int64_t n = mask.numel();
  const Options options{.dtype = i64, .device = mask.device()};
  if (n == 0) return empty({0}, options);
  const Tensor flat = mask.reshape({n});
  if (mask.device().is_cpu()) {
    const Tensor bytes = flat.contiguous();
    const cpu::TruePositions positions(static_cast<const uint8_t*>(bytes.raw_data()), n);
    const Tensor out = empty({positions.count()}, options);
    positions.write(out.data<int64_t>());
    return out;
  }
  // Each true element's place among the true ones is a running count; the others go to one place past the end.
  const Tensor count = flat.to(i64).cumsum(0);
  const int64_t found = count.select(0, n - 1).item<int64_t>();
  const Tensor place = where(flat, count - 1, found), order = arange(0, n, 1, options);
  return scattered("nonzero", Combine::set, empty({found + 1}, options), 0, place, order).narrow(0, 0, found);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  const char* op = "masked_fill";
  require_mask(x, mask, op);
  if (!value.tensor) {
    require_storable(value.scalar, x.dtype(), op);
    if (value.scalar.kind() <= traits(x.dtype()).kind && x.dtype() != boolean) return where(mask, value, x);
    return where(mask, full({}, value.scalar, {.dtype = x.dtype(), .device = x.device()}), x);
  }
  const Tensor& v = value.tensor->checked(op);
  if (v.dim() != 0)
    throw Error(Error::Kind::shape, op, "the value must be a number or a 0-d tensor, got shape " + v.shape().str());
  if (traits(v.dtype()).kind > traits(x.dtype()).kind && !(is_integral(v.dtype()) && is_integral(x.dtype())))
    throw Error(Error::Kind::dtype, op,
                "a value of " + std::string(name(v.dtype())) + " cannot be stored in " + std::string(name(x.dtype())));
  return where(mask, v.to(x.dtype()), x);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const char* op = "masked_select";
  require_mask(x, mask, op);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), op);
  const Tensor positions = true_positions(mask.expand(shape));
  return pick(op, x.expand(shape).reshape({shape.numel()}), 0, positions);
}

Tensor nonzero(const Tensor& x) {
  const NoGrad off;
  const Tensor places = true_positions(x.checked("nonzero").dtype() == boolean ? x : x != 0);
  const int rank = int(x.dim());
  const Tensor out = allocate({places.numel(), rank}, i64, x.device(), "nonzero");
  Tensor rest = places;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const int64_t size = std::max<int64_t>(1, x.shape()[axis]);
    out.select(1, axis).copy_(axis == 0 ? rest : remainder(rest, size));
    if (axis > 0) rest = floor_divide(rest, size);
  }
  return out;
}

Tensor one_hot(const Tensor& x, int64_t num_classes) {
  const char* op = "one_hot";
  const NoGrad off;
  const Tensor classes = as_index(x, op);
  if (num_classes < -1)
    throw Error(Error::Kind::argument, op, "num_classes is -1 or not negative, got " + std::to_string(num_classes));
  if (num_classes < 0 && x.numel() == 0)
    throw Error(Error::Kind::argument, op, "an empty tensor does not say how many classes there are; give num_classes");
  const int64_t n = num_classes < 0 ? amax(classes).item<int64_t>() + 1 : num_classes;
  if (classes.device().is_cpu() && classes.numel() > 0) {
    check_indices(classes, n, int(x.dim()), op);
    if (const int64_t low = amin(classes).item<int64_t>(); low < 0)
      throw Error(Error::Kind::index, op, "class " + std::to_string(low) + " is negative");
  }
  return (classes.unsqueeze(-1) == arange(0, n, 1, {.dtype = i64, .device = x.device()})).to(i64);
}

}  // namespace volta
