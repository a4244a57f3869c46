// Copies: clone, contiguous, conversion between dtypes and devices, and writing into a tensor.
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/check.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

Tensor copied(const char* op, const Tensor& x, DType dtype, bool keep_layout) {
  const Device device = x.device();
  Tensor y = keep_layout ? allocate_as(x, dtype, device, op) : allocate(x.shape(), dtype, device, op);
  backend(device).copy(arg(y), arg(x));
  if (!is_floating(dtype)) return y;
  return record(op, std::move(y), {x}, [](const Tensor& g, Gradients& d) { d[0] = g; });
}

// Across devices only contiguous bytes travel, and between two that are not the CPU by way of it.
Tensor moved(const Tensor& x, Device device) {
  const NoGrad off;
  if (!x.device().is_cpu() && !device.is_cpu()) return moved(moved(x, Device()), device);
  const Tensor source = x.contiguous(), y = allocate(x.shape(), x.dtype(), device, "to");
  if (x.numel() == 0) return y;
  if (x.device().is_cpu()) backend(device).upload(address(y), address(source), source.nbytes());
  else backend(x.device()).download(address(y), address(source), source.nbytes());
  return y;
}

// The graph of `self`, all of which was just overwritten: by `source`, or by numbers when that is undefined.
void written(const Tensor& self, const Tensor& source, const char* op) {
  bump_version(self);
  if (!is_floating(self.dtype()) || !any_needs_grad(source, self)) return;
  rewrite_history(self, rule_node(op, std::span(&source, 1), [](const Tensor& g, Gradients& d) { d[0] = g; }));
}

}  // namespace

Tensor clone(const Tensor& x) { return copied("clone", x.checked("clone"), x.dtype(), true); }

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copied("contiguous", x, x.dtype(), false); }

Tensor to(const Tensor& x, DType dtype) { return x.checked("to").dtype() == dtype ? x : copied("to", x, dtype, true); }

Tensor to(const Tensor& x, const Device& device) {
  const Device from = x.checked("to").device();
  if (from == device) return x;
  backend(device);  // throws when there is no such device
  return record("to", moved(x.detach(), device), {x}, [from](const Tensor& g, Gradients& d) { d[0] = g.to(from); });
}

Tensor& Tensor::copy_(const Tensor& source) {
  const char* op = "copy_";
  source.checked(op);
  const Tensor local = source.device() == checked(op).device() ? source : source.to(device());
  Tensor wide = local.shape() == shape() ? local : local.expand(shape());
  require_writable(*this, op);
  if (overlaps(*this, wide)) wide = wide.clone();
  if (same_memory(*this, wide) && layout(*this) == layout(wide)) return *this;
  backend(device()).copy(arg(*this), arg(wide));
  written(*this, wide, op);
  return *this;
}

Tensor& Tensor::fill_(const Operand& value) {
  const char* op = "fill_";
  if (value.tensor) {
    const Tensor& v = value.tensor->checked(op);
    require(v.numel() == 1, Wrong::shape, op, "needs a number or a tensor of one element, got shape ", v);
    return copy_(v.reshape({}));
  }
  require_storable(value.scalar, checked(op).dtype(), op);
  require_writable(*this, op);
  backend(device()).copy(arg(*this), arg(value));
  written(*this, {}, op);
  return *this;
}

Tensor& Tensor::zero_() { return fill_(0); }

}  // namespace volta
