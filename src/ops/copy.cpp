// Copies: clone, contiguous, conversion between dtypes and devices, and writing into a tensor.
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

void copy_values(const Tensor& to, const Tensor& from) { backend(to.device()).copy(arg(to), arg(from)); }

Tensor copied(const char* op, const Tensor& x, DType dtype, bool keep_layout) {
  const bool dense = keep_layout && layout(x).is_dense();
  Tensor y = dense ? allocate_like(layout(x), dtype, x.device(), op) : allocate(x.shape(), dtype, x.device(), op);
  copy_values(y, x);
  if (!is_floating(dtype)) return y;
  return record(op, std::move(y), {x}, [](const Tensor& g, Gradients& d) { d[0] = g; });
}

// Across devices only contiguous bytes travel.
Tensor moved(const Tensor& x, Device device) {
  const Tensor source = x.contiguous();
  Tensor y = allocate(x.shape(), x.dtype(), device, "to");
  const NoGrad off;
  if (x.numel() == 0) return y;
  if (x.device().is_cpu()) {
    backend(device).upload(address(y), address(source), source.nbytes());
  } else if (device.is_cpu()) {
    backend(x.device()).download(address(y), address(source), source.nbytes());
  } else {
    const Tensor host = moved(source, Device());
    backend(device).upload(address(y), address(host), host.nbytes());
  }
  return y;
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
  copy_values(*this, wide);
  bump_version(*this);
  if (!is_floating(dtype()) || !grad_enabled() || (!needs_grad(source) && !needs_grad(*this))) return *this;
  auto rule = [](const Tensor& g, Gradients& d) { d[0] = g; };
  auto node = Ptr<Node>::adopt(new RuleNode<decltype(rule)>(op, 1, std::move(rule)));
  if (is_floating(source.dtype())) connect(*node, 0, wide);
  rewrite_history(*this, node);
  return *this;
}

Tensor& Tensor::fill_(const Operand& value) {
  if (value.tensor) {
    if (value.tensor->checked("fill_").numel() != 1)
      throw Error(Error::Kind::shape, "fill_",
                  "needs a number or a tensor of one element, got shape " + value.tensor->shape().str());
    return copy_(value.tensor->reshape({}));
  }
  checked("fill_");
  if (value.scalar.is_floating() && !is_floating(dtype()) &&
      value.scalar.as<double>() != double(value.scalar.as<int64_t>()))
    throw Error(Error::Kind::dtype, "fill_", "a fractional number cannot be stored in " + std::string(name(dtype())));
  require_writable(*this, "fill_");
  backend(device()).copy(arg(*this), arg(value));
  bump_version(*this);
  if (grad_enabled() && needs_grad(*this)) {
    auto rule = [](const Tensor&, Gradients&) {};
    rewrite_history(*this, Ptr<Node>::adopt(new RuleNode<decltype(rule)>("fill_", 0, std::move(rule))));
  }
  return *this;
}

Tensor& Tensor::zero_() { return fill_(0); }

Tensor& Tensor::masked_fill_(const Tensor& mask, const Operand& value) {
  require_writable(checked("masked_fill_"), "masked_fill_");
  return copy_(volta::masked_fill(*this, mask, value));
}

}  // namespace volta
